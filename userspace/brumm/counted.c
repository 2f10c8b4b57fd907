// SPDX-License-Identifier: GPL-2.0
/*
 * How what tasks own is learned on this kernel (Documentation/design/living.md):
 * which kinds at once by which tracepoint, and what finds the rest.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "counted.h"

#define EVENTS_MAX 3

struct source {
	const char *kinds;		/* as in brumm.price, by spaces */
	const char *events[EVENTS_MAX];	/* of tracefs: SYSTEM/NAME */
	const char *rest;
};

#define WORKER	"a look: by whoever reads, and by the worker in turn (0.1 s and more)"

static const struct source sources[] = {
	{ "process thread",
	  { "sched/sched_process_fork", "sched/sched_process_free", "cgroup/cgroup_attach_task" },
	  WORKER },
	{ "mm", { "sched/sched_process_fork", "sched/sched_process_exec", "mmap/exit_mmap" },
	  WORKER },
	{ "vma anon file shmem table swap", { "kmem/rss_stat" }, WORKER },
	{ "huge", { NULL }, WORKER },
	{ "fd", { "sched/sched_process_fork", "sched/sched_process_exec" },
	  "a walk of the descriptor tables, as open and close raise no event: by whoever reads, "
	  "and by the worker for 1/64 of its time" },
	{ "plain eventfd pipe unix tcp socket uring epoll otherfile", { NULL },
	  "a walk of the descriptor tables, as for fd" },
	{ "netns mntns ipcns pidns ns", { NULL },
	  "a walk of all tasks: by whoever reads, and by the worker (1 s and more)" },
};

/* 1 there, 0 not, -1 tracefs is not to be seen. */
static int has_event(const char *event)
{
	static const char *const mounts[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	char path[256];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		snprintf(path, sizeof(path), "%s/events", mounts[i]);
		if (access(path, X_OK))
			continue;
		snprintf(path, sizeof(path), "%s/events/%s", mounts[i], event);
		return !access(path, F_OK);
	}
	return -1;
}

/*
 * Faults for one event, or 0 where it does not count them. rss_stat: 6.2,
 * f1a7941243c1 ("mm: convert mm's rss stats into percpu_counter").
 */
static unsigned int faults_of(const char *event, const char *release)
{
	char *end;
	unsigned long major = strtoul(release, &end, 10);
	unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

	if (strcmp(event, "kmem/rss_stat"))
		return 0;
	return major > 6 || (major == 6 && minor >= 2) ? 1 : 64;
}

void counted_print(const char *release)
{
	const struct source *s;
	unsigned int faults;
	const char *name;
	size_t i;
	int e;

	puts("what tasks own, where brumm.mode is not off:");
	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		s = &sources[i];
		printf("%-8s%s\n%-10s", "", s->kinds, "");
		for (e = 0; e < EVENTS_MAX && s->events[e]; e++) {
			name = strchr(s->events[e], '/') + 1;
			printf("%s%s", e ? ", " : "at once by ", name);
			faults = faults_of(s->events[e], release);
			if (faults == 1)
				printf(" (each fault)");
			else if (faults)
				printf(" (about every %uth fault)", faults);
			if (!has_event(s->events[e]))
				printf(" (NOT on this kernel)");
		}
		printf("%s%s\n", e ? "; else by " : "by ", s->rest);
	}
}

static json_t *words(const char *text)
{
	json_t *list = json_array();
	size_t n;

	for (; *text; text += n + strspn(text + n, " ")) {
		n = strcspn(text, " ");
		json_array_append_new(list, json_stringn(text, n));
	}
	return list;
}

static json_t *faults_or_null(const char *event, const char *release)
{
	unsigned int n = faults_of(event, release);

	return n ? json_integer(n) : json_null();
}

json_t *counted_json(const char *release)
{
	json_t *list = json_array(), *events;
	const struct source *s;
	size_t i;
	int e, has;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		s = &sources[i];
		events = json_array();
		for (e = 0; e < EVENTS_MAX && s->events[e]; e++) {
			has = has_event(s->events[e]);
			json_array_append_new(events, json_pack("{s:s, s:o, s:o}",
				"tracepoint", s->events[e],
				"there", has < 0 ? json_null() : json_boolean(has),
				"faults", faults_or_null(s->events[e], release)));
		}
		json_array_append_new(list, json_pack("{s:o, s:o, s:s}",
			"kinds", words(s->kinds), "at_once_by", events,
			"else", s->rest));
	}
	return list;
}
