// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "../cli.h"
#include "delay.h"

#define PERIOD		1000000u
#define MAX_THREADS	64

struct watcher {
	struct delay *d;
	pthread_t thread;
};

struct delay {
	uint64_t bound;
	atomic_ullong worst, samples, over;
	atomic_bool stop;
	int n;
	struct watcher w[MAX_THREADS];
};

static void note(struct delay *d, uint64_t late)
{
	unsigned long long worst = atomic_load(&d->worst);

	atomic_fetch_add(&d->samples, 1);
	if (late > d->bound)
		atomic_fetch_add(&d->over, 1);
	while (late > worst &&
	       !atomic_compare_exchange_weak(&d->worst, &worst, late))
		;
}

static void *watch(void *arg)
{
	struct delay *d = ((struct watcher *)arg)->d;
	uint64_t next = cli_now() + PERIOD, now;
	struct timespec ts;

	/* Or the kernel may wake it 50 us later than told. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	while (!atomic_load(&d->stop)) {
		ts.tv_sec = (time_t)(next / 1000000000u);
		ts.tv_nsec = (long)(next % 1000000000u);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		now = cli_now();
		note(d, now > next ? now - next : 0);
		/* What was missed meanwhile was as late as that, or less. */
		next += PERIOD;
		if (next < now)
			next = now - (now - next) % PERIOD + PERIOD;
	}
	return NULL;
}

struct delay *delay_start(const cpu_set_t *cpus, uint64_t bound)
{
	struct delay *d = calloc(1, sizeof(*d));
	pthread_attr_t attr;
	cpu_set_t one;
	int cpu;

	if (!d)
		return NULL;
	d->bound = bound;
	pthread_attr_init(&attr);
	/* As a neighbour, whatever class this here has. */
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	for (cpu = 0; cpu < CPU_SETSIZE && d->n < MAX_THREADS; cpu++) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
		d->w[d->n].d = d;
		if (!pthread_create(&d->w[d->n].thread, &attr, watch,
				    &d->w[d->n]))
			d->n++;
	}
	pthread_attr_destroy(&attr);
	if (d->n)
		return d;
	free(d);
	return NULL;
}

uint64_t delay_take(struct delay *d)
{
	return atomic_exchange(&d->worst, 0);
}

void delay_count(const struct delay *d, uint64_t *samples, uint64_t *over)
{
	*samples = d ? atomic_load(&d->samples) : 0;
	*over = d ? atomic_load(&d->over) : 0;
}

void delay_stop(struct delay *d)
{
	int i;

	atomic_store(&d->stop, true);
	for (i = 0; i < d->n; i++)
		pthread_join(d->w[i].thread, NULL);
	free(d);
}
