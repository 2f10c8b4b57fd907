/* SPDX-License-Identifier: GPL-2.0 */
/* Processes in a cgroup that do what they are told to. */
#ifndef BRUMM_TEST_STEPS_H
#define BRUMM_TEST_STEPS_H

#include <errno.h>

#include "proc.h"

/* A process in the cgroup that does what it is told to, a step at a time. */
struct actor {
	uint32_t go, done;
	uint32_t quit;
	long (*act)(long arg);
	long arg, result;
	int error;
	pid_t pid;
};

static void play(void *arg)
{
	struct actor *a = arg;
	uint32_t step;

	for (step = 1;; step++) {
		while (get(&a->go) != step)
			sleep_us(500);
		errno = 0;
		a->result = a->act(a->arg);
		a->error = errno;
		put(&a->done, step);
	}
}

static struct actor *actor(int cg)
{
	struct actor *a = shared(sizeof(*a));

	a->pid = spawn_in(cg, play, a);
	return a;
}

static void tell(struct actor *a, long (*what)(long), long arg)
{
	a->act = what;
	a->arg = arg;
	put(&a->go, get(&a->go) + 1);
}

static long heed(struct actor *a)
{
	while (get(&a->done) != get(&a->go))
		sleep_us(500);
	return a->result;
}

static long act(struct actor *a, long (*what)(long), long arg)
{
	tell(a, what, arg);
	return heed(a);
}

#endif /* BRUMM_TEST_STEPS_H */
