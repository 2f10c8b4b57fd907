// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../../brumm/teardown/teardown.h"
#include "neighbour.h"

#define SELF		"/proc/self/exe"
#define GROW_WAIT	120000000000ull

static bool is(const struct neighbour *n, const char *kind)
{
	return !strcmp(n->c->value[AXIS_NEIGHBOUR], kind);
}

static bool is_storm(const struct neighbour *n)
{
	return is(n, "fork-storm") || is(n, "mprotect-storm");
}

/* Starts a program of ours where the neighbour is to be. */
static int start(const struct neighbour *n, struct child *c, const char *text,
		 bool place, char *why, size_t size)
{
	struct child_opts o = CHILD_OPTS_INIT;
	const char *step;
	cpu_set_t cpus;
	int err;

	o.argv = split_words(text);
	if (!o.argv)
		return -ENOMEM;
	o.out = true;
	o.err = place ? n->said : -1;
	if (place && n->s->place) {
		if (parse_cpus(n->s->place, &cpus)) {
			snprintf(why, size, "'%s' is not a list of CPUs", n->s->place);
			free(o.argv);
			return -EINVAL;
		}
		o.cpus = &cpus;
	}
	err = child_start(c, &o, &step);
	if (err)
		snprintf(why, size, "the neighbour: %s: %s", step, strerror(-err));
	free(o.argv);
	return err;
}

/* The first line of what it said, to tell why it did not start. */
static void first_message(const struct neighbour *n, char *to, size_t size)
{
	ssize_t len = pread(n->said, to, size - 1, 0);

	to[len > 0 ? len : 0] = 0;
	to[strcspn(to, "\n")] = 0;
}

static int grow(struct neighbour *n, const char *what, char *why, size_t size)
{
	char command[1024], budget[64] = "", line[512];
	char message[160];
	int err;

	if (is(n, "teardown-budget"))
		snprintf(budget, sizeof(budget), "--max=%s ", n->s->budget);
	snprintf(command, sizeof(command),
		 SELF " run --quiet %s--pidns --name %s -- " SELF " mc tenant %s",
		 budget, n->group, what);
	err = start(n, &n->child, command, true, why, size);
	if (!err) {
		err = child_read_line(&n->child, line, sizeof(line), GROW_WAIT);
		first_message(n, message, sizeof(message));
		if (err)
			snprintf(why, size, "the neighbour did not start: %s",
				 *message ? message : strerror(-err));
	}
	if (!err)
		n->grown = json_loads(line, 0, NULL);
	return err;
}

int neighbour_start(struct neighbour *n, const struct spec *s,
		    const struct cell *c, char *why, size_t size)
{
	char what[256];

	*n = (struct neighbour){ .s = s, .c = c, .child.out = -1,
				 .said = memfd_create("neighbour", MFD_CLOEXEC) };
	if (n->said < 0)
		return -errno;
	snprintf(n->group, sizeof(n->group), "brumm-mc-%d-neighbour", (int)getpid());
	if (is(n, "none") || is_storm(n))
		return 0;
	snprintf(what, sizeof(what), "--processes=%llu --memory=%llu --mappings=%llu",
		 (unsigned long long)s->processes, (unsigned long long)s->memory,
		 (unsigned long long)s->mappings);
	return grow(n, what, why, size);
}

static int set_idle(const struct neighbour *n, char *why, size_t size)
{
	int group = brumm_group_open(n->group), err = group;

	if (group >= 0) {
		err = brumm_group_write(group, "cpu.idle", "1");
		close(group);
	}
	if (err)
		snprintf(why, size, "the neighbour cannot be made idle: %s",
			 strerror(-err));
	return err;
}

static int kill_tenant(struct neighbour *n, char *why, size_t size)
{
	struct child reap;
	char command[256], pace[64] = "", *text;
	int status = 0, err;

	if (is(n, "teardown-idle")) {
		err = set_idle(n, why, size);
		if (err)
			return err;
	}
	if (is(n, "teardown-paced"))
		snprintf(pace, sizeof(pace), "--pace%s%s ", n->s->pace ? "=" : "",
			 n->s->pace ?: "");
	snprintf(command, sizeof(command), SELF " reap --json %s%s", pace, n->group);
	n->from = cli_now();
	err = start(n, &reap, command, false, why, size);
	if (err)
		return err;
	text = child_read_all(&reap, &status);
	n->until = cli_now();
	n->reap = text ? json_loads(text, 0, NULL) : NULL;
	free(text);
	if (!n->reap || !WIFEXITED(status) || WEXITSTATUS(status)) {
		snprintf(why, size, "brumm reap did not end the neighbour");
		return cli_signal() ? -EINTR : -EIO;
	}
	return 0;
}

static int do_storm(struct neighbour *n, char *why, size_t size)
{
	char what[128];
	int err;

	snprintf(what, sizeof(what), "--storm=%s --threads=%llu",
		 is(n, "fork-storm") ? "fork" : "mprotect",
		 (unsigned long long)n->s->threads);
	n->from = cli_now();
	err = grow(n, what, why, size);
	if (!err)
		err = pause_for(n->s->lasts);
	child_end(&n->child, 5000000000ull);
	n->until = cli_now();
	return err;
}

int neighbour_act(struct neighbour *n, char *why, size_t size)
{
	if (is(n, "none"))
		return 0;
	return is_storm(n) ? do_storm(n, why, size) : kill_tenant(n, why, size);
}

void neighbour_stop(struct neighbour *n)
{
	child_end(&n->child, 10000000000ull);
	json_decref(n->grown);
	json_decref(n->reap);
	if (n->s)
		close(n->said);
	*n = (struct neighbour){ .child.out = -1 };
}

json_t *neighbour_json(const struct neighbour *n)
{
	if (is(n, "none"))
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:O?, s:O?}",
		"kind", n->c->value[AXIS_NEIGHBOUR],
		"from_ns", n->from ? json_integer((json_int_t)n->from) : json_null(),
		"until_ns", n->until ? json_integer((json_int_t)n->until) : json_null(),
		"grown", n->grown, "reap", n->reap);
}
