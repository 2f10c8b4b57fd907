// SPDX-License-Identifier: GPL-2.0
/* The controller: sets the scene, tells the story, and clears up. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"

#define MEMORY	TOP "/memory"
#define SERVICE	TOP "/service"

static const char *const groups[] = { TENANT, SERVICE, MEMORY, TOP };
#define NR_GROUPS (sizeof(groups) / sizeof(*groups))

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t current_ns(int group)
{
	uint64_t ns;

	return brumm_group_current(group, &ns) ? UINT64_MAX : ns;
}

static uint64_t memory_bytes(int group)
{
	char text[32] = "";
	uint64_t v = 0;
	int fd = openat(group, "memory.current", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n > 0)
		brumm_parse_size(text, &v);
	return v;
}

/* What others do in their own time: a service that notices a hang-up. */
bool wait_for_zero(int group)
{
	uint64_t end = clock_ns() + 10000000000u;

	while (current_ns(group) && clock_ns() < end)
		usleep(1000);
	return !current_ns(group);
}

int tenant_start(struct scene *s, bool pid_namespace)
{
	struct report r;
	int err = actor_start(&s->tenant, TENANT, pid_namespace, tenant_play,
			      &s->stage);

	if (!err)
		err = actor_order(&s->tenant, TENANT_CONNECT, 0, &r);
	return err ? err : r.err;
}

/* Gets pages, maps one of them often, passes some on. */
int tenant_load(struct scene *s, struct report *r)
{
	int err = actor_order(&s->tenant, TENANT_ALLOC, LOAD_PAGES, r);

	if (!err && !r->err)
		err = actor_order(&s->tenant, TENANT_SELF, LOAD_SELF, r);
	if (!err && !r->err)
		err = actor_order(&s->tenant, TENANT_SHARE, LOAD_SHARED, r);
	return err ? err : r->err;
}

/* ---- the scene ---------------------------------------------------------- */

static void remove_groups(void)
{
	size_t i;
	int fd, tries, err;

	for (i = 0; i < NR_GROUPS; i++) {
		fd = brumm_group_open(groups[i]);
		if (fd < 0)
			continue;
		brumm_group_kill(fd);
		close(fd);
		for (tries = 0; tries < 200; tries++) {
			err = brumm_group_remove(groups[i]);
			if (err != -EBUSY)
				break;
			usleep(10000);
		}
		if (err)
			fprintf(stderr, "cannot remove %s: %s\n", groups[i],
				brumm_strerror(err));
	}
}

static int make_groups(struct scene *s)
{
	int *fds[] = { &s->g_tenant, &s->g_service, &s->g_memory, &s->g_top };
	size_t i;
	int err;

	for (i = NR_GROUPS; i-- > 0;) {
		err = brumm_group_create(groups[i]);
		if (err)
			return err;
		*fds[i] = brumm_group_open(groups[i]);
		if (*fds[i] < 0)
			return *fds[i];
	}
	return 0;
}

static void set_paths(struct stage *st)
{
	snprintf(st->memory_sock, sizeof(st->memory_sock), "%s/memory", st->dir);
	snprintf(st->control_sock, sizeof(st->control_sock), "%s/control",
		 st->dir);
	snprintf(st->service_sock, sizeof(st->service_sock), "%s/service",
		 st->dir);
	st->page = (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool set_scene(struct scene *s, const char *program)
{
	struct report r;
	int err;

	story_step("The scene");
	err = make_groups(s);
	if (!story_expect(!err, "cgroups " TENANT ", " SERVICE " and " MEMORY " made%s%s",
			  err ? ": " : "", err ? brumm_strerror(err) : ""))
		return false;
	err = memory_start(&s->memory, MEMORY, program, &s->stage);
	if (!err)
		err = brumm_control_open(s->stage.control_sock, &s->control);
	if (!story_expect(!err, "the memory service (brumm serve) runs"))
		return false;
	err = actor_start(&s->service, SERVICE, false, service_play, &s->stage);
	if (!err)
		err = actor_order(&s->service, SERVICE_EVENTS, 0, &r);
	if (!story_expect(!err && !r.err, "an unrelated service runs"))
		return false;
	story_say("the memory service holds %llu KiB of free pages, in its own cgroup's memory",
		  (unsigned long long)memory_bytes(s->g_memory) / 1024);
	return true;
}

static void clear_scene(struct scene *s)
{
	brumm_control_close(s->control);
	actor_end(&s->tenant);
	actor_end(&s->service);
	actor_end(&s->memory);
	rmdir(s->stage.dir);
}

/* ---- the story ---------------------------------------------------------- */

static void who_pays(struct scene *s, const char *when)
{
	uint64_t tenant = current_ns(s->g_tenant);
	uint64_t service = current_ns(s->g_service);
	char key[64];

	story_say("expected clean-up time: tenant %s, service %s",
		  show_time(tenant), show_time(service));
	snprintf(key, sizeof(key), "%s_tenant_ns", when);
	story_time("charged", key, tenant);
	snprintf(key, sizeof(key), "%s_service_ns", when);
	story_time("charged", key, service);
}

/* A page that the tenant passes on was mapped to the tenant before. */
static uint64_t price_passed_on(const struct scene *s)
{
	return s->price_map + s->price_pt + s->price_deep;
}

static bool use_memory(struct scene *s)
{
	uint64_t before, memory;
	struct report r;
	int err;

	story_step("The controller starts a tenant, in its cgroup and a PID namespace");
	err = tenant_start(s, true);
	if (!story_expect(!err, "process %d is init there, two more are its children",
			  s->tenant.pid))
		return false;
	memory = current_ns(s->g_memory);
	err = actor_order(&s->tenant, TENANT_ALLOC, LOAD_PAGES, &r);
	story_expect(!err && !r.err && r.done == LOAD_PAGES,
		     "the memory service gave it %u pages, and it wrote to them",
		     LOAD_PAGES);
	story_expect(current_ns(s->g_tenant) >=
			     LOAD_PAGES * s->price_pt + s->price_map &&
		     current_ns(s->g_memory) == memory,
		     "the tenant pays for their clean-up, the memory service does not");
	err = actor_order(&s->tenant, TENANT_SELF, LOAD_SELF, &r);
	story_expect(!err && !r.err, "it mapped one of them %u times more",
		     LOAD_SELF);
	who_pays(s, "alone");
	before = current_ns(s->g_tenant);

	story_step("The tenant passes pages on to the service");
	err = actor_order(&s->tenant, TENANT_SHARE, LOAD_SHARED, &r);
	story_expect(!err && !r.err && r.done == LOAD_SHARED,
		     "%u pages passed on, each by itself", LOAD_SHARED);
	err = actor_order(&s->service, SERVICE_READ, LOAD_SHARED, &r);
	story_expect(!err && !r.err && r.done == LOAD_SHARED,
		     "the service reads in them what the tenant wrote");
	story_expect(current_ns(s->g_tenant) - before ==
			     LOAD_SHARED * price_passed_on(s) &&
		     !current_ns(s->g_service),
		     "the tenant pays for these mappings, too; the service, where they are, pays nothing");
	who_pays(s, "shared");
	return true;
}

static bool overdraw(struct scene *s, uint64_t *accepted)
{
	uint64_t peak = 0, budget, now, one = price_passed_on(s);
	struct brumm_group_events ev = { 0 };
	struct report r;
	int err;

	story_step("The controller sets a budget, and the tenant goes over it");
	err = brumm_group_peak(s->g_tenant, &peak);
	/* The paper's rule: the peak of good behaviour and a modest margin. */
	budget = peak + peak / 4;
	if (!err)
		err = brumm_group_set_max(s->g_tenant, budget);
	story_expect(!err, "brumm.max is its peak so far (%s) and a quarter more: %s",
		     show_time(peak), show_time(budget));
	err = actor_order(&s->tenant, TENANT_OVER, GATE_PAGES, &r);
	now = current_ns(s->g_tenant);
	*accepted = r.done;
	story_expect(!err && r.err == -EDQUOT,
		     "it passes more and more on, and after %llu mappings is refused: %s",
		     (unsigned long long)r.done, strerrorname_np(-r.err));
	story_say("which means: %s", brumm_strerror(r.err));
	story_expect(now <= budget && budget - now < one,
		     "%s are left, and one more mapping costs %s",
		     show_time(budget - now), show_time(one));
	err = actor_order(&s->tenant, TENANT_ALLOC, 1, &r);
	story_expect(!err && r.err == -EDQUOT,
		     "the memory service cannot give it another page either: %s",
		     strerrorname_np(-r.err));
	brumm_group_events(s->g_tenant, BRUMM_EVENTS_LOCAL, &ev);
	story_expect(ev.max == 2, "brumm.events counts %llu refusals",
		     (unsigned long long)ev.max);
	who_pays(s, "budget");
	story_time("budget", "peak_ns", peak);
	story_time("budget", "max_ns", budget);
	story_time("budget", "used_ns", now);
	story_note("budget", "accepted_mappings",
		   json_integer((json_int_t)*accepted));
	story_note("budget", "refused", json_integer((json_int_t)ev.max));
	story_note("budget", "error", json_string("EDQUOT"));
	return true;
}

/* Kills and looks as often as it can until nothing is charged any more. */
static void kill_and_time(struct scene *s, uint64_t *gone, uint64_t *dead,
			  uint64_t *gap)
{
	struct pollfd p = { .fd = s->tenant.pidfd, .events = POLLIN };
	uint64_t start = clock_ns(), last = start, now = start;
	uint64_t end = start + 60000000000u;

	*gone = *dead = *gap = 0;
	kill(s->tenant.pid, SIGKILL);
	while ((!*gone || !*dead) && now < end) {
		if (!*gone && !current_ns(s->g_tenant))
			*gone = clock_ns() - start;
		if (!*dead && poll(&p, 1, 0) == 1)
			*dead = clock_ns() - start;
		now = clock_ns();
		if (now - last > *gap)
			*gap = now - last;
		last = now;
	}
	waitpid(s->tenant.pid, NULL, 0);
	close(s->tenant.pidfd);
	close(s->tenant.sock);
	s->tenant = (struct actor){ .pidfd = -1, .sock = -1 };
}

static bool kill_tenant(struct scene *s, uint64_t accepted)
{
	uint64_t expected, gone, dead, gap, mapped = LOAD_SHARED + accepted;
	struct brumm_group_events ev = { 0 };
	struct report r;
	int err;

	story_step("The controller locks the budget and kills the PID namespace");
	err = brumm_group_lock(s->g_tenant, true);
	if (!err)
		err = actor_order(&s->tenant, TENANT_OVER, 1, &r);
	story_expect(!err && r.err == -EBUSY,
		     "locked (brumm.lock): no further mapping, not even a small one: %s",
		     err ? "?" : strerrorname_np(-r.err));
	brumm_group_events(s->g_tenant, BRUMM_EVENTS_LOCAL, &ev);
	story_expect(ev.locked == 1, "brumm.events counts it");
	expected = current_ns(s->g_tenant);
	kill_and_time(s, &gone, &dead, &gap);
	story_expect(gone && dead, "all is gone: mappings %s, processes %s after the kill",
		     show_time(gone), show_time(dead));
	story_say("expected clean-up of its memory: %s; the rest is dying itself (looked every %s or more often)",
		  show_time(expected), show_time(gap));
	story_time("kill", "expected_ns", expected);
	story_time("kill", "mappings_gone_ns", gone);
	story_time("kill", "processes_gone_ns", dead);
	story_time("kill", "resolution_ns", gap);
	story_note("kill", "rounds", json_integer(1));

	story_step("The service touches what it had been given");
	err = actor_order(&s->service, SERVICE_READ, LOAD_SHARED, &r);
	story_expect(!err && !r.err && r.gone == LOAD_SHARED && !r.wrong,
		     "every access is a clean error (%s), it lives on",
		     strerrorname_np(EFAULT));
	story_note("service", "clean_errors", json_integer((json_int_t)r.gone));
	err = actor_order(&s->service, SERVICE_EVENTS, 0, &r);
	story_expect(!err && !r.err && r.bytes >= mapped * s->stage.page,
		     "its window had told it: %llu events for %llu KiB",
		     (unsigned long long)r.done,
		     (unsigned long long)r.bytes / 1024);
	story_note("service", "events", json_integer((json_int_t)r.done));
	story_note("service", "mappings_lost", json_integer((json_int_t)mapped));
	return true;
}

static void all_back(struct scene *s)
{
	struct brumm_service_status st = { 0 };
	uint64_t end = clock_ns() + 10000000000u;
	int err;

	story_step("Everything is back");
	/* The memory service notices by itself that its client hung up. */
	do {
		err = brumm_control_status(s->control, &st);
	} while (!err && st.clients && clock_ns() < end);
	story_expect(!err && st.free == st.pool && !st.clients,
		     "the memory service has all its %llu KiB again",
		     (unsigned long long)st.pool / 1024);
	who_pays(s, "end");
	story_expect(!current_ns(s->g_tenant) && !current_ns(s->g_service),
		     "nothing is charged to tenant and service");
	story_note("end", "pool_free_bytes", json_integer((json_int_t)st.free));
}

static void tell(struct scene *s, const char *program)
{
	uint64_t accepted = 0;

	if (!set_scene(s, program) || !profile(s, program) || !use_memory(s) ||
	    !overdraw(s, &accepted) || !kill_tenant(s, accepted))
		return;
	all_back(s);
	brumm_group_lock(s->g_tenant, false);
	brumm_group_set_max(s->g_tenant, BRUMM_NO_LIMIT);
	compare(s);
}

static void the_end(struct scene *s)
{
	bool left = false;
	size_t i;

	story_step("The end");
	clear_scene(s);
	if (s->g_top >= 0)
		story_expect(wait_for_zero(s->g_top),
			     "nothing is charged to " TOP " and all below");
	remove_groups();
	for (i = 0; i < NR_GROUPS; i++)
		left |= brumm_group_open(groups[i]) != -ENOENT;
	story_expect(!left, "all cgroups are removed");
}

/* ---- main --------------------------------------------------------------- */

struct args {
	const char *out, *program;
};

static const struct argp_option options[] = {
	{ "out", 'o', "FILE", 0, "where the JSON goes (out/demo/figure4.json)", 0 },
	{ "brumm", 'b', "PROGRAM", 0, "the command brumm", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'o':
		a->out = arg;
		return 0;
	case 'b':
		a->program = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Play Figure 4 of the paper with real processes. Needs root, the "
	       "module, and cgroup v2 with the memory controller."
	       "\vExit code 1 if something was not as the story says, 4 if it cannot be "
	       "played here (see brumm info).",
};

static void on_signal(int sig)
{
	/* The actors die of it, the story fails, and the scene is cleared. */
	(void)sig;
}

int main(int argc, char **argv)
{
	struct args a = { .out = "out/demo/figure4.json", .program = "brumm" };
	struct sigaction sa = { .sa_handler = on_signal };
	struct scene s = {
		.stage.dir = "/tmp/brumm-demo-XXXXXX",
		.memory = { .pidfd = -1, .sock = -1 },
		.service = { .pidfd = -1, .sock = -1 },
		.tenant = { .pidfd = -1, .sock = -1 },
		.g_top = -1,
	};
	struct utsname un;
	int fd, err;

	argp_err_exit_status = 1;
	if (argp_parse(&argp, argc, argv, 0, NULL, &a))
		return 1;
	fd = brumm_open(0);
	if (fd < 0) {
		fprintf(stderr, "figure4: " BRUMM_DEVICE ": %s\n",
			brumm_strerror(fd));
		return 4;
	}
	close(fd);
	if (!mkdtemp(s.stage.dir)) {
		perror("figure4: /tmp");
		return 1;
	}
	set_paths(&s.stage);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	uname(&un);
	printf("Figure 4 of the paper, with real processes, on Linux %s\n",
	       un.release);
	story_note("machine", "kernel", json_string(un.release));
	story_note("machine", "cpus",
		   json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	remove_groups();
	tell(&s, a.program);
	the_end(&s);
	err = story_write(a.out);
	if (err)
		fprintf(stderr, "figure4: %s: %s\n", a.out, strerror(-err));
	else
		printf("\n%s; the figures are in %s\n",
		       story_failed() ? "The story FAILED" :
					"All as the story says", a.out);
	return err || story_failed();
}
