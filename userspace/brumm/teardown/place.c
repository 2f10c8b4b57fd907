// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "place.h"

struct sched {
	pid_t tid;
	int policy;		/* -1: not changed */
	struct sched_param param;
	bool placed;
	cpu_set_t cpus;
	uint64_t born;
};

static bool to_idle(struct sched *s)
{
	static const struct sched_param none;

	s->policy = sched_getscheduler(s->tid);
	if (s->policy < 0 || sched_getparam(s->tid, &s->param))
		return false;
	return !sched_setscheduler(s->tid, SCHED_IDLE, &none);
}

/* Do weights not hold for it? Deadlines are bounded by themselves. */
static bool weightless(int policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool place_one(struct sched *s, const cpu_set_t *cpus, enum place place)
{
	struct task task;

	if (task_read(s->tid, &task))
		return false;
	s->born = task.born;
	s->policy = -1;
	s->placed = cpus && !sched_getaffinity(s->tid, sizeof(s->cpus), &s->cpus) &&
		    !sched_setaffinity(s->tid, sizeof(*cpus), cpus);
	if (place != PLACE_CPUS &&
	    (place == PLACE_ALL ||
	     weightless(sched_getscheduler(s->tid) & ~SCHED_RESET_ON_FORK)) && !to_idle(s))
		s->policy = -1;
	return s->placed || s->policy >= 0;
}

static void place_process(pid_t pid, const cpu_set_t *cpus, enum place place,
			  struct sched **list, size_t *n)
{
	struct sched s, *more;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		s = (struct sched){ .tid = atoi(e->d_name) };
		if (!place_one(&s, cpus, place))
			continue;
		more = reallocarray(*list, *n + 1, sizeof(s));
		if (!more)
			break;
		*list = more;
		more[(*n)++] = s;
	}
	if (d)
		closedir(d);
}

void place_tasks(const struct tasks *tasks, const cpu_set_t *cpus,
		 enum place place, struct sched **list, size_t *n)
{
	size_t i;

	for (i = 0; i < tasks->n; i++) {
		const struct task *t = &tasks->list[i];

		/* Each look into /proc is something to clean up later. */
		if (!cpus && place == PLACE_REALTIME && t->threads == 1 &&
		    !weightless(t->policy))
			continue;
		place_process(t->pid, cpus, place, list, n);
	}
}

void place_restore(struct sched *list, size_t n)
{
	struct task task;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct sched *s = &list[i];

		if (task_read(s->tid, &task) || task.born != s->born)
			continue;
		if (s->placed)
			sched_setaffinity(s->tid, sizeof(s->cpus), &s->cpus);
		if (s->policy >= 0)
			sched_setscheduler(s->tid, s->policy, &s->param);
	}
	free(list);
}
