// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../cli.h"
#include "aside.h"
#include "tasks.h"

#define PERIOD	20000000u	/* ns, between two looks */
#define PATIENCE 10		/* looks in a row at which it wants the CPU in vain */
#define LEAST	(PERIOD / 8)	/* ns that it needs in a period */

struct aside {
	pid_t tid;
	int policy;
	struct sched_param param;
	pthread_t watcher;
	pthread_mutex_t lock;	/* of what follows, but for starved */
	pthread_cond_t changed;
	bool stop;
	unsigned int in_vain;	/* looks in a row */
	atomic_bool starved;
};

/* Has it run, or wanted nothing? */
static bool is_served(pid_t tid, uint64_t *ran)
{
	uint64_t before = *ran;
	char path[64];
	struct task t;
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	f = fopen(path, "re");
	if (!f)
		return true;
	n = fscanf(f, "%" SCNu64, ran);
	fclose(f);
	return n != 1 || *ran - before >= LEAST || task_read(tid, &t) ||
	       t.state != 'R';
}

static void take_back(struct aside *a)
{
	sched_setscheduler(a->tid, a->policy, &a->param);
}

static void *watch(void *arg)
{
	struct aside *a = arg;
	struct timespec at;
	uint64_t ran = 0, next;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		next = cli_now() + PERIOD;
		at.tv_sec = (time_t)(next / 1000000000u);
		at.tv_nsec = (long)(next % 1000000000u);
		pthread_cond_timedwait(&a->changed, &a->lock, &at);
		if (is_served(a->tid, &ran))
			a->in_vain = 0;
		else if (++a->in_vain == PATIENCE) {
			take_back(a);
			atomic_store(&a->starved, true);
		}
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* In the class that the caller has, before he leaves it. */
static bool start_watcher(struct aside *a)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_mutex_init(&a->lock, NULL);
	return !pthread_create(&a->watcher, NULL, watch, a);
}

void aside_again(struct aside *a)
{
	static const struct sched_param none;

	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->in_vain = 0;
	sched_setscheduler(a->tid, SCHED_IDLE, &none);
	pthread_mutex_unlock(&a->lock);
}

struct aside *aside_begin(void)
{
	struct aside *a;

	/* Others may leave the idle class by RLIMIT_NICE only. */
	if (geteuid())
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->tid = gettid();
	a->policy = sched_getscheduler(0);
	if (a->policy < 0 || sched_getparam(0, &a->param) ||
	    !start_watcher(a)) {
		free(a);
		return NULL;
	}
	aside_again(a);
	return a;
}

bool aside_starved(const struct aside *a)
{
	return a && atomic_load(&a->starved);
}

void aside_end(struct aside *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->watcher, NULL);
	take_back(a);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
