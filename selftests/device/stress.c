// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: many threads of several processes, all doing anything to the same
 * few windows, get documented errors only, come to an end, and leave nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

#define WINDOWS		4
#define THREADS		4
#define PROCESSES	2

/* Few pages, so that all get into each other's way. */
struct arena {
	int win[WINDOWS], gate[WINDOWS], cg[WINDOWS];
	uint32_t pages;
	uint32_t stop;
	uint64_t done, refused;
	uint64_t seed;
	bool knobs;
};

struct actor {
	struct arena *a;
	uint32_t number;
};

static void result(struct arena *a, const char *what, int ret)
{
	static const int fine[] = {
		0, -ENOENT, -EEXIST, -EACCES, -EPERM, -EINVAL, -ELOOP,
		-EDQUOT, -EBUSY,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fine); i++)
		if (ret == fine[i])
			break;
	if (i == ARRAY_SIZE(fine))
		tap_fail(__FILE__, __LINE__, "%s gives %s", what,
			 tap_result(ret));
	__atomic_add_fetch(ret ? &a->refused : &a->done, 1, __ATOMIC_RELAXED);
}

static void knob(struct arena *a, struct rng *g)
{
	int cg = a->cg[rng_below(g, WINDOWS)];
	char text[100];

	switch (rng_below(g, 8)) {
	case 0:
		cg_write(cg, "brumm.max", rng_once_in(g, 2) ? "max" : "20");
		break;
	case 1:
		cg_write(cg, "brumm.lock", "1");
		cg_write(cg, "brumm.lock", "0");
		break;
	case 2:
		cg_write(cg, "brumm.reclaim", "1");
		break;
	case 3:
		cg_write(cg, "brumm.price", rng_once_in(g, 2) ? "default" :
			 "map 100 pt 10");
		break;
	default:
		cg_read(cg, "brumm.current", text, sizeof(text));
	}
}

static void step(struct arena *a, struct rng *g, uint32_t *mem)
{
	int w = a->win[rng_below(g, WINDOWS)], to = a->win[rng_below(g, WINDOWS)];
	uint32_t n = 1 + rng_below(g, 4), page = rng_below(g, a->pages - n + 1);
	uint32_t at = rng_below(g, a->pages - n + 1);
	uint32_t rights = rng_once_in(g, 4) ? R | rng_below(g, 16) : ALL;
	struct brumm_query q;

	if (rng_once_in(g, 3))
		to = a->gate[rng_below(g, WINDOWS)];
	switch (rng_below(g, 20)) {
	case 0:
	case 1:
		result(a, "ALLOC", dev_alloc(w, page, n));
		break;
	case 2:
		result(a, "UNMAP", dev_unmap(w, page, n));
		break;
	case 3:
		result(a, "UNMAP SELF", dev_unmap_self(w, page, n));
		break;
	case 4:
		result(a, "UNMAP RIGHTS",
		       dev_unmap_flags(w, page, n, BRUMM_UNMAP_RIGHTS |
				       (rights & BRUMM_UNMAP_SELF),
				       (rights & (W | X | D)) ?: W, NULL));
		break;
	case 5:
		result(a, "GRANT", dev_grant(w, page, n, to, at, rights));
		break;
	case 6:
		result(a, "REPLACE",
		       dev_map_flags(w, page, n, to, at, rights,
				     BRUMM_MAP_REPLACE));
		break;
	case 7:
		result(a, "GRANT REPLACE",
		       dev_map_flags(w, page, n, to, at, rights,
				     BRUMM_MAP_REPLACE | BRUMM_MAP_GRANT));
		break;
	case 8:
		result(a, "QUERY", dev_query(w, page, rng_below(g, 4), &q));
		break;
	case 9:
		if (a->knobs)
			knob(a, g);
		break;
	case 10:
	case 11:
		peek(cell(mem, page, 0), NULL);
		poke(cell(mem, page, 0), 1);
		break;
	default:
		result(a, "MAP", dev_map(w, page, n, to, at, rights));
	}
}

static void *actor(void *arg)
{
	struct actor *me = arg;
	struct arena *a = me->a;
	struct rng g = { a->seed + me->number };
	uint32_t *mem = dev_mmap(a->win[me->number % WINDOWS], 0, a->pages,
				 PROT_READ | PROT_WRITE);

	/* Each window has one VMA, so not everybody gets one. */
	while (!get(&a->stop)) {
		if (mem)
			step(a, &g, mem);
		else
			step(a, &g, (uint32_t *)PAGE);
	}
	if (mem)
		munmap(mem, a->pages * PAGE);
	return NULL;
}

static void actors(void *arg)
{
	struct actor *first = arg;
	struct actor me[THREADS];
	pthread_t t[THREADS];
	uint32_t i;

	for (i = 0; i < THREADS; i++) {
		me[i] = (struct actor){ first->a, first->number + i };
		t[i] = start(actor, &me[i]);
	}
	for (i = 0; i < THREADS; i++)
		join(t[i]);
}

static void fight(uint32_t pages, bool knobs)
{
	struct arena *a = shared(sizeof(*a));
	unsigned long seconds = tap_pick(2, 60);
	struct actor first[PROCESSES];
	pid_t pid[PROCESSES];
	char name[20];
	uint32_t i;

	a->pages = pages;
	a->knobs = knobs;
	a->seed = tap_seed();
	for (i = 0; i < WINDOWS; i++) {
		snprintf(name, sizeof(name), "t/%c", 'a' + i);
		a->cg[i] = cg_make(name);
		a->win[i] = i ? win_open_in(a->cg[i]) : win_open();
		a->gate[i] = dev_gate(a->win[i], 0, pages, 0);
		REQUIRE(a->gate[i] >= 0);
	}
	for (i = 0; i < PROCESSES; i++) {
		first[i] = (struct actor){ a, i * THREADS };
		pid[i] = spawn(actors, &first[i]);
	}
	sleep_us(seconds * 1000000);
	put(&a->stop, 1);
	for (i = 0; i < PROCESSES; i++)
		reap(pid[i]);
	tap_diag("%llu done, %llu refused", (unsigned long long)a->done,
		 (unsigned long long)a->refused);
	CHECK(a->done > 0);
	/* A quiet tree can be taken down by hand, to exactly zero. */
	for (i = 0; i < WINDOWS; i++)
		REQUIRE_OK(dev_unmap_self(a->win[i], 0, pages));
	for (i = 0; i < WINDOWS; i++) {
		CHECK_EQ(dev_nodes(a->win[i]), 0);
		CHECK_COUNTS(a->cg[i], 0, 0, 0);
	}
}

static void few_pages(void)
{
	fight(8, false);
}

static void more_pages(void)
{
	fight(64, false);
}

static void with_knobs(void)
{
	fight(16, true);
}

static const struct tap_case cases[] = {
	{ "many at few pages", few_pages, 300 },
	{ "many at more pages", more_pages, 300 },
	{ "many, while somebody turns the knobs", with_knobs, 300 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
