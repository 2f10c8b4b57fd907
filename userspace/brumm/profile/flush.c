// SPDX-License-Identifier: GPL-2.0
/*
 * What a revoke takes when several CPUs have used the memory: they have to be
 * told to drop it from their TLBs, and answer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cli.h"
#include "measure.h"

#define PAGE	4096ull

/*
 * struct users - threads that use the pages, each on a CPU of its own
 * @page: what they read first
 * @pages: how many
 * @round: raised for each read; odd numbers are never reached
 * @done: how many have read it in this round
 * @stop: end
 *
 * They spin all the time: a CPU that sleeps is not told, but flushes when it
 * wakes up.
 */
struct users {
	volatile char *page;
	unsigned int pages;
	atomic_uint round;
	atomic_uint done;
	atomic_bool stop;
	atomic_int err;
};

struct user {
	struct users *all;
	pthread_t thread;
	int cpu;
};

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static void *use(void *arg)
{
	struct user *u = arg;
	struct users *all = u->all;
	unsigned int seen = 0, now, i;
	int err = pin(u->cpu);

	if (err)
		atomic_store(&all->err, err);
	while (!atomic_load(&all->stop)) {
		now = atomic_load(&all->round);
		if (now == seen)
			continue;
		seen = now;
		for (i = 0; i < all->pages; i++)
			(void)all->page[i * PAGE];
		atomic_fetch_add(&all->done, 1);
	}
	return NULL;
}

/*
 * Maps page 0 of @w to those from page 1 on, lets @others use them, and times their
 * revoke, by page.
 */
static int flush_once(int w, struct users *all, unsigned int others, double *ns)
{
	uint64_t start;
	unsigned int i;
	int err;

	for (i = 0; i < all->pages; i++) {
		err = brumm_map(w, &(struct brumm_map){
			.length = PAGE, .target = (1 + i) * PAGE, .fd = -1,
			.rights = BRUMM_RIGHT_R | BRUMM_RIGHT_W,
		});
		if (err)
			return err;
		all->page[i * PAGE] = 1;
	}
	atomic_store(&all->done, 0);
	atomic_fetch_add(&all->round, 1);
	while (atomic_load(&all->done) < others) {
		if (atomic_load(&all->err))
			return atomic_load(&all->err);
	}
	start = cli_now();
	err = brumm_unmap(w, PAGE, all->pages * PAGE, BRUMM_UNMAP_SELF, NULL);
	*ns = (double)(cli_now() - start) / all->pages;
	return err;
}

static int flush_with(int w, char *view, unsigned int pages, const int *cpus,
		      unsigned int n, double *v, unsigned int repeat)
{
	struct users all = { .page = view + PAGE, .pages = pages };
	struct user *users = calloc(n, sizeof(*users));
	unsigned int i, started = 1;
	int err = users ? pin(cpus[0]) : -ENOMEM;

	for (i = 1; i < n && !err; i++, started++) {
		users[i] = (struct user){ .all = &all, .cpu = cpus[i] };
		err = -pthread_create(&users[i].thread, NULL, use, &users[i]);
		if (err)
			break;
	}
	/* The first turn meets threads that are not where they belong yet. */
	if (!err)
		err = flush_once(w, &all, n - 1, v);
	for (i = 0; i < repeat && !err; i++)
		err = cli_signal() ? -EINTR : flush_once(w, &all, n - 1, &v[i]);
	atomic_store(&all.stop, true);
	for (i = 1; i < started; i++)
		pthread_join(users[i].thread, NULL);
	free(users);
	return err;
}

/* 1, 2, 4, ... and all. */
static unsigned int next_number(unsigned int n, unsigned int all)
{
	if (n == all)
		return all + 1;
	return 2 * n < all ? 2 * n : all;
}

static int flush_all(struct measure *m, int w, char *view, const int *cpus,
		     unsigned int nr, unsigned int repeat)
{
	double *v = calloc(repeat, sizeof(*v));
	unsigned int n;
	int err = 0;

	m->flush = calloc(nr, sizeof(*m->flush));
	if (!v || !m->flush)
		err = -ENOMEM;
	for (n = 1; n <= nr && !err; n = next_number(n, nr)) {
		struct measure_flush *f = &m->flush[m->nr_flush];

		err = flush_with(w, view, 1, cpus, n, v, repeat);
		if (err)
			break;
		f->cpus = n;
		summarise(v, repeat, &f->ns);
		err = flush_with(w, view, MEASURE_TOGETHER, cpus, n, v, repeat);
		if (err)
			break;
		summarise(v, repeat, &f->together);
		m->nr_flush++;
	}
	free(v);
	return err;
}

int measure_flushes(struct measure *m, unsigned int repeat)
{
	int w = brumm_open(0), cpus[CPU_SETSIZE], cpu, err;
	const size_t bytes = (1 + MEASURE_TOGETHER) * PAGE;
	unsigned int nr = 0;
	cpu_set_t set;
	void *view = NULL;

	if (w < 0)
		return w;
	err = sched_getaffinity(0, sizeof(set), &set) ? -errno : 0;
	for (cpu = 0; cpu < CPU_SETSIZE && !err; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpus[nr++] = cpu;
	}
	if (!err)
		err = brumm_mmap(w, bytes, PROT_READ | PROT_WRITE, &view);
	if (!err)
		err = brumm_alloc(w, 0, PAGE);
	if (!err)
		err = flush_all(m, w, view, cpus, nr, repeat);
	sched_setaffinity(0, sizeof(set), &set);
	if (view)
		brumm_munmap(view, bytes);
	close(w);
	return err;
}
