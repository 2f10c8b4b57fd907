// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "teardown.h"

/* A signal between the test for one and the wait is noticed after this. */
#define SLICE	100000000u

static uint64_t number(int group, const char *file, const char *key)
{
	uint64_t v;

	if (group < 0 || brumm_group_number(group, file, key, &v))
		return BRUMM_NO_LIMIT;
	return v;
}

static uint64_t dying_beside(int group)
{
	int up = openat(group, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t v = number(up, "cgroup.stat", "nr_dying_descendants");

	if (up >= 0)
		close(up);
	return v;
}

void snapshot_take(const struct target *t, struct snapshot *s)
{
	int g = t->group;

	s->memory = number(g, "memory.current", NULL);
	s->file = number(g, "memory.stat", "file");
	s->shmem = number(g, "memory.stat", "shmem");
	s->cpu = number(g, "cpu.stat", "usage_usec");
	if (s->cpu != BRUMM_NO_LIMIT)
		s->cpu *= 1000;
	s->device = forecast_device(g);
	s->dying = g < 0 ? BRUMM_NO_LIMIT : dying_beside(g);
}

int teardown_look(struct teardown *t)
{
	int err, i;

	t->gentle = (struct gentle)GENTLE_INIT;
	for (i = 0; i < STAGES; i++)
		t->at[i] = BRUMM_NO_LIMIT;
	t->reclaimed = BRUMM_NO_LIMIT;
	t->reclaim_ns = BRUMM_NO_LIMIT;
	t->locked = -ENOENT;
	err = target_tasks(&t->target, &t->tasks);
	if (err) {
		cli_fail(err, "cannot list the processes");
		return EXIT_ERROR;
	}
	tasks_order(&t->tasks);
	t->groups = t->target.group < 0 ? 0 : 1 + groups_count(t->target.group);
	snapshot_take(&t->target, &t->before);
	forecast_make(t->target.group, &t->tasks, t->target.init != 0,
		      &t->forecast);
	return EXIT_FINE;
}

void teardown_free(struct teardown *t)
{
	gentle_end(t);
	json_decref(t->holding);
	tasks_free(&t->tasks);
	target_close(&t->target);
}

static uint64_t deadline(const struct teardown *t)
{
	uint64_t end;

	if (__builtin_add_overflow(t->start, t->opts->timeout, &end))
		return BRUMM_NO_LIMIT;
	return end;
}

bool teardown_over(struct teardown *t)
{
	if (!t->sig)
		t->sig = cli_signal();
	if (cli_now() >= deadline(t))
		t->timed_out = true;
	return t->sig || t->timed_out || t->failed;
}

void teardown_wait(struct teardown *t, int fd, short events, uint64_t ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now = cli_now(), end = deadline(t);
	struct timespec ts;

	if (ns > SLICE)
		ns = SLICE;
	if (now + ns > end)
		ns = now < end ? end - now : 0;
	ts.tv_sec = 0;
	ts.tv_nsec = (long)ns;
	ppoll(&p, fd >= 0, &ts, NULL);
}

static void lock(struct teardown *t)
{
	if (t->target.group < 0)
		return;
	t->locked = brumm_group_locked(t->target.group);
	if (t->locked == 0 && keep_knob(t->keep, "brumm.lock", "1"))
		t->locked = -EACCES;
}

/* False: somebody else is at it who would be in our way. */
static bool begin_notes(struct teardown *t)
{
	bool more = t->opts->pace || t->opts->slo || t->opts->on_cpus;
	int err = keep_open(&t->target, &t->keep);

	t->put_back = err > 0;
	if (t->put_back && !t->opts->json)
		cli_error("who ended it before was killed in the middle; what that had changed is put back");
	if (!t->keep || (more && err == -EBUSY)) {
		t->error = err;
		t->failed = "another brumm reap or run of it";
		keep_close(t->keep);
		t->keep = NULL;
		return false;
	}
	if (more && err < 0)
		cli_fail(err, "no notes are kept: if this is killed by SIGKILL, nothing is put back");
	return true;
}

/* At once; also what a kill in steps has not met. */
static void kill_all(struct teardown *t)
{
	int err;

	if (t->target.init)
		/* With its init the kernel kills all of a namespace. */
		err = pidfd_send_signal(t->target.init_fd, SIGKILL, NULL, 0) ?
		      -errno : 0;
	else
		err = brumm_group_kill(t->target.group);
	if (err && err != -ESRCH && err != -ENODEV && err != -ENOENT) {
		t->error = err;
		t->failed = "kill";
	}
	t->at[STAGE_KILLED] = cli_now() - t->start;
}

static void run_stages(struct teardown *t)
{
	stage_tasks(t);
	if (t->target.group < 0)
		return;
	if (!teardown_over(t))
		stage_device(t);
	if (!teardown_over(t))
		stage_memory(t);
	snapshot_take(&t->target, &t->after);
	if (!teardown_over(t) && !t->opts->keep && !t->target.init)
		stage_remove(t);
}

void teardown_do(struct teardown *t)
{
	bool gentle = t->opts->pace || t->opts->slo;

	t->after = (struct snapshot){
		.memory = BRUMM_NO_LIMIT, .file = BRUMM_NO_LIMIT,
		.shmem = BRUMM_NO_LIMIT, .cpu = BRUMM_NO_LIMIT,
		.device = BRUMM_NO_LIMIT, .dying = BRUMM_NO_LIMIT,
	};
	t->start = cli_now();
	if (!begin_notes(t))
		return;
	lock(t);
	if (gentle)
		gentle_kill(t);
	else if (t->opts->on_cpus)
		gentle_place(t);
	if (!teardown_over(t))
		kill_all(t);
	if (!teardown_over(t))
		run_stages(t);
	if ((t->timed_out || t->failed) && t->at[STAGE_REMOVED] == BRUMM_NO_LIMIT)
		t->holding = holders_find(t);
	/* Who is still to die shall not get more to clean up. */
	keep_restore(t->keep, t->timed_out || t->failed);
	gentle_end(t);
	keep_close(t->keep);
	t->keep = NULL;
}

int teardown_status(const struct teardown *t)
{
	uint64_t all = 0;
	int i;

	if (t->failed || t->timed_out)
		return EXIT_ERROR;
	if (t->sig)
		return 128 + t->sig;
	for (i = 0; i < STAGES; i++)
		if (t->at[i] != BRUMM_NO_LIMIT && t->at[i] > all)
			all = t->at[i];
	return all > t->opts->limit ? EXIT_MISSED : EXIT_FINE;
}
