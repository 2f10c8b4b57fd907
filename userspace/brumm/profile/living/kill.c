// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../cli.h"
#include "../measure.h"
#include "count.h"
#include "kill.h"

#define MS		1000000u
/* Rest before a kill, and until what is deferred is done; the least of it. */
#define BEFORE_MS	5
#define AFTER_MS	12
/* How long kernel threads are watched at rest. */
#define REST_MS		100

static void rest(unsigned int ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * MS };

	nanosleep(&t, NULL);
}

static double thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double group_cpu(int group)
{
	uint64_t us = 0;

	brumm_group_number(group, "cpu.stat", "usage_usec", &us);
	return (double)us * 1e3;
}

/* Of one thread, ns; 0 if it has ended. */
static double run_time(int pid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return (double)ns;
}

/* Of all kernel threads; -1 where they are not seen, as in a PID namespace. */
static double kernel_cpu(void)
{
	FILE *f = fopen("/proc/2/task/2/children", "re");
	double sum = 0;
	int pid, n = 0;

	while (f && fscanf(f, "%d", &pid) == 1) {
		sum += run_time(pid);
		n++;
	}
	if (f)
		fclose(f);
	return n ? sum : -1;
}

/* ---- beginning and end -------------------------------------------------- */

/* Nothing of a shape may outlive this process, whatever ends it. */
static void guard(int group, int fd) __attribute__((noreturn));

static void guard(int group, int fd)
{
	struct pollfd p = { .fd = fd };

	setsid();
	prctl(PR_SET_NAME, "brumm-guard");
	while (poll(&p, 1, -1) < 1)
		;
	brumm_group_kill(group);
	_exit(0);
}

static int start_guard(struct killer *k)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	k->guard = fork();
	if (!k->guard) {
		close(fd[1]);
		guard(k->group, fd[0]);
	}
	close(fd[0]);
	k->guard_pipe = fd[1];
	return k->guard < 0 ? -errno : 0;
}

int killer_open(struct killer *k, int group, const struct kinds *kinds)
{
	uint64_t start;
	double before;
	int err;

	*k = (struct killer){ .group = group, .kinds = kinds, .rate = -1,
			      .guard_pipe = -1 };
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -errno;
	err = start_guard(k);
	if (err)
		return err;
	before = kernel_cpu();
	start = cli_now();
	rest(REST_MS);
	if (before >= 0)
		k->rate = (kernel_cpu() - before) / (double)(cli_now() - start);
	if (k->rate < 0)
		k->rate = before < 0 ? -1 : 0;
	return 0;
}

void killer_close(struct killer *k)
{
	if (k->guard > 0) {
		kill(k->guard, SIGKILL);
		while (waitpid(k->guard, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (k->guard_pipe >= 0)
		close(k->guard_pipe);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* ---- one kill ----------------------------------------------------------- */

/* The leader, when all of the shape is there. */
static int start_shape(struct killer *k, const struct living_shape *s,
		       unsigned int n, unsigned int cpus, pid_t *leader,
		       struct shape_built *built)
{
	int fd[2], err = -EIO;
	ssize_t len;

	*leader = -1;
	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	*leader = fork();
	if (*leader < 0)
		err = -errno;
	if (!*leader)
		shape_lead(s, n, k->group, cpus, fd[1]);
	close(fd[1]);
	if (*leader > 0) {
		setpgid(*leader, 0);
		while ((len = read(fd[0], built, sizeof(*built))) < 0 &&
		       errno == EINTR && !cli_signal())
			;
		if (len == sizeof(*built))
			err = built->error;
		else if (cli_signal())
			err = -EINTR;
	}
	close(fd[0]);
	return err;
}

/* Pages that go are what the shape made, or what a program has by itself. */
static void forget_pages(const struct kinds *k, struct counts *c)
{
	kinds_add(k, c, "anon_page", -kinds_get(k, c, "anon_page"));
	kinds_add(k, c, "shmem_page", -kinds_get(k, c, "shmem_page"));
}

/*
 * All that the leader has, and the others that are alike: what one of them
 * has, or without an address space of its own, that it is a process. This
 * program has mapped the same files and pages as the leader.
 */
static int count_shape(const struct killer *k, pid_t leader,
		       const struct shape_built *b, struct counts *c)
{
	struct counts one = { { 0 } };
	int err, i;

	*c = (struct counts){ { 0 } };
	err = count_process(k->kinds, leader, false, c);
	forget_pages(k->kinds, c);
	if (!err && b->shared)
		kinds_add(k->kinds, c, "process", b->copies);
	else if (!err && b->copies)
		err = count_process(k->kinds, b->sample, b->programs, &one);
	if (!b->programs)
		forget_pages(k->kinds, &one);
	if (!b->shared)
		counts_add(c, &one, b->copies);
	for (i = 0; i < SHAPE_EXTRA && *b->extra[i].kind; i++)
		kinds_add(k->kinds, c, b->extra[i].kind, b->extra[i].n);
	return err;
}

/* All of the shape are in the process group of its leader. */
static void reap_all(pid_t leader)
{
	while (waitpid(-leader, NULL, 0) > 0 || errno == EINTR)
		;
}

static void time_kill(struct killer *k, pid_t leader, unsigned int later,
		      struct kill_took *t)
{
	double tasks = group_cpu(k->group), kernel = kernel_cpu(), own, span;
	uint64_t start = cli_now(), end;

	own = thread_cpu();
	brumm_group_kill(k->group);
	reap_all(leader);
	t->reaper = thread_cpu() - own;
	end = cli_now();
	t->wall = (double)(end - start);
	rest(later > AFTER_MS ? later : AFTER_MS);
	t->tasks = group_cpu(k->group) - tasks;
	t->deferred = 0;
	if (k->rate >= 0) {
		span = (double)(cli_now() - start);
		t->deferred = kernel_cpu() - kernel - k->rate * span;
	}
	if (t->deferred < 0)
		t->deferred = 0;
	t->work = t->tasks + t->reaper + t->deferred;
}

int kill_once(struct killer *k, const struct living_shape *s, unsigned int n,
	      bool idle, unsigned int cpus, struct counts *counts,
	      struct kill_took *t)
{
	struct shape_built built = { 0 };
	pid_t leader;
	int err = start_shape(k, s, n, cpus, &leader, &built);

	*t = (struct kill_took){ 0 };
	if (!err && counts)
		err = count_shape(k, leader, &built, counts);
	if (!err && idle)
		err = measure_idle_away(false);
	else if (!err)
		rest(BEFORE_MS);
	if (!err) {
		time_kill(k, leader, s->later, t);
	} else if (leader > 0) {
		brumm_group_kill(k->group);
		reap_all(leader);
	}
	return err;
}
