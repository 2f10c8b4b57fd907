// SPDX-License-Identifier: GPL-2.0
/* What is waited for after the kill. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "teardown.h"

#define MS	1000000u

static void reached(struct teardown *t, enum stage stage, uint64_t when)
{
	t->at[stage] = when - t->start;
}

/* On a terminal, a word from time to time. */
static void progress(const struct teardown *t, uint64_t *last)
{
	struct tasks left = { 0 };

	if (t->opts->json || !cli_fancy(stderr) || cli_now() - *last < 1000 * MS)
		return;
	*last = cli_now();
	if (!target_tasks(&t->target, &left))
		fprintf(stderr, "\r\033[K%zu of %zu processes left", left.n,
			t->tasks.n);
	tasks_free(&left);
}

static void progress_end(const struct teardown *t)
{
	if (!t->opts->json && cli_fancy(stderr))
		fputs("\r\033[K", stderr);
}

static void wait_namespace(struct teardown *t)
{
	struct pollfd p = { .fd = t->target.init_fd, .events = POLLIN };
	uint64_t last = cli_now();

	/* An init ends when all of its namespace have ended. */
	while (poll(&p, 1, 0) <= 0) {
		if (teardown_over(t))
			return;
		teardown_wait(t, p.fd, POLLIN, BRUMM_NO_LIMIT);
		progress(t, &last);
	}
	reached(t, STAGE_TASKS, cli_now());
}

static bool populated(struct teardown *t)
{
	uint64_t v = 0;
	int err = brumm_group_number(t->target.group, "cgroup.events",
				     "populated", &v);

	/* Somebody else has removed it: nobody is in it. */
	if (err && err != -ENODEV && err != -ENOENT) {
		t->error = err;
		t->failed = "cgroup.events";
	}
	return v;
}

static void wait_group(struct teardown *t)
{
	int fd = openat(t->target.group, "cgroup.events", O_RDONLY | O_CLOEXEC);
	uint64_t last = cli_now();
	char c;

	/* Reading arms the next event of an open file. */
	while (pread(fd, &c, 1, 0), populated(t)) {
		if (teardown_over(t))
			break;
		teardown_wait(t, fd, POLLPRI, BRUMM_NO_LIMIT);
		progress(t, &last);
	}
	if (!teardown_over(t) || !populated(t))
		reached(t, STAGE_TASKS, cli_now());
	close(fd);
}

void stage_tasks(struct teardown *t)
{
	if (t->target.init)
		wait_namespace(t);
	else
		wait_group(t);
	progress_end(t);
}

/*
 * Windows of the dead are closed, and with them all that was derived from
 * them. What is left stands in windows of others.
 */
void stage_device(struct teardown *t)
{
	int group = t->target.group, err;
	uint64_t left;

	if (t->locked < 0 || brumm_group_current(group, &left))
		return;
	t->reclaimed = left;
	if (left) {
		err = brumm_group_reclaim(group);
		if (err) {
			t->error = err;
			t->failed = "brumm.reclaim";
			return;
		}
		brumm_group_stat_get(group, "last_reclaim_measured_ns",
				     &t->reclaim_ns);
	}
	reached(t, STAGE_DEVICE, cli_now());
}

/* What only processes hold; page cache and the like may stay for ever. */
static uint64_t held_by_tasks(int group)
{
	static const char *const keys[] = { "anon", "kernel_stack", "pagetables",
					    "sec_pagetables" };
	uint64_t sum = 0, v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (!brumm_group_number(group, "memory.stat", keys[i], &v))
			sum += v;
	return sum;
}

/*
 * Memory comes back for a while after the last process is gone: RCU, work
 * queues. It is back when nothing is left that only processes hold; where the
 * statistics are behind (up to 2 s), when memory.current has come to rest.
 */
void stage_memory(struct teardown *t)
{
	uint64_t since = cli_now(), at = since, rest, low, cur, now;
	uint64_t nap = MS / 2;
	int group = t->target.group;

	if (brumm_group_number(group, "memory.current", NULL, &low))
		return;
	while (low && held_by_tasks(group)) {
		if (teardown_over(t))
			return;
		teardown_wait(t, -1, 0, nap);
		if (brumm_group_number(group, "memory.current", NULL, &cur))
			return;
		now = cli_now();
		rest = 20 * MS + (at - since) / 4;
		if (cur < low) {
			low = cur;
			at = now;
			nap = MS / 2;
		} else if (now - at > rest) {
			break;
		} else if (nap < 4 * MS) {
			nap *= 2;
		}
	}
	if (!held_by_tasks(group))
		at = cli_now();
	reached(t, STAGE_MEMORY, at);
}

static int remove_one(int parent, const char *name, int group, void *arg)
{
	(void)group;
	(void)arg;
	if (unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT)
		return -errno;
	return 0;
}

/* Not by its path: what is called like the mount may be two cgroups. */
static int remove_itself(const struct target *t)
{
	int up = openat(t->group, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (up < 0)
		return -errno;
	err = remove_one(up, strrchr(t->name, '/') + 1, t->group, NULL);
	close(up);
	return err;
}

static int remove_all(const struct teardown *t)
{
	int err = groups_walk(t->target.group, remove_one, NULL);

	if (!err)
		err = remove_itself(&t->target);
	/* Somebody else was faster. */
	return err == -ENOENT ? 0 : err;
}

void stage_remove(struct teardown *t)
{
	int fd = openat(t->target.group, "cgroup.events", O_RDONLY | O_CLOEXEC);
	int err;
	char c;

	/* Busy: somebody is in it again, and an event tells when he is not. */
	while (pread(fd, &c, 1, 0), (err = remove_all(t)) == -EBUSY) {
		if (teardown_over(t))
			break;
		if (populated(t))
			brumm_group_kill(t->target.group);
		teardown_wait(t, fd, POLLPRI, 10 * MS);
	}
	if (fd >= 0)
		close(fd);
	if (!err) {
		reached(t, STAGE_REMOVED, cli_now());
	} else if (err != -EBUSY) {
		t->error = err;
		t->failed = "rmdir";
	}
}
