// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: whatever processes do with each other's windows, each cgroup is
 * charged for exactly what it sponsors and what those below it do, and for
 * nothing in the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

#define PROCESSES	8
#define PAGES		64	/* of each window that are used */

static const struct {
	const char *name;
	int up;
	int leaf;		/* only there may be processes */
} tree[] = {
	{ "t", -1, 0 },		{ "t/a", 0, 0 },	{ "t/b", 0, 0 },
	{ "t/a/1", 1, 1 },	{ "t/a/2", 1, 1 },	{ "t/b/1", 2, 0 },
	{ "t/b/1/x", 5, 1 },	{ "t/c", 0, 1 },
};

#define GROUPS		ARRAY_SIZE(tree)
#define WINDOWS		16

struct world {
	int cg[GROUPS];
	int win[WINDOWS];
	uint64_t seed;
	uint64_t ops;
	uint32_t results[200];
};

static void tally(struct world *w, int ret)
{
	unsigned int err = ret < 0 ? -ret : 0;

	add(&w->results[err < ARRAY_SIZE(w->results) ? err : 1], 1);
}

static void one_op(struct world *w, struct rng *r)
{
	int from = w->win[rng_below(r, WINDOWS)];
	int to = w->win[rng_below(r, WINDOWS)];
	uint64_t page = rng_below(r, PAGES), there = rng_below(r, PAGES);
	uint64_t pages = 1 + rng_below(r, PAGES - (page > there ? page : there));
	struct brumm_unmap out;

	switch (rng_below(r, 11)) {
	case 0:
	case 1:
		tally(w, dev_alloc(from, page, pages));
		break;
	case 2:
	case 3:
	case 4:
		tally(w, dev_map(from, page, 1 + rng_below(r, 3), to, there,
				 rng_once_in(r, 4) ? R : ALL));
		break;
	case 5:
		tally(w, dev_map_flags(from, page, pages, to, there, ALL,
				       BRUMM_MAP_REPLACE));
		break;
	case 10:
		tally(w, dev_map_for(from, page, pages, to, there, ALL,
				     w->cg[rng_below(r, GROUPS)]));
		break;
	case 6:
		tally(w, dev_grant(from, page, pages, to, there, ALL));
		break;
	case 7:
		tally(w, dev_unmap(from, page, pages));
		break;
	case 8:
		tally(w, dev_unmap_self(from, page, pages));
		break;
	case 9:
		tally(w, dev_unmap_flags(from, page, pages, BRUMM_UNMAP_RIGHTS,
					 BRUMM_RIGHT_W, &out));
		break;
	}
}

struct worker {
	struct world *world;
	uint64_t seed;
};

static void work(void *arg)
{
	struct worker *me = arg;
	struct rng r = { me->seed };
	uint64_t i;

	for (i = 0; i < me->world->ops / PROCESSES; i++)
		one_op(me->world, &r);
}

/* What the windows show, by sponsor. */
static void count_nodes(struct world *w, struct cg_counts own[GROUPS])
{
	uint64_t id[GROUPS];
	struct brumm_query q;
	uint64_t page;
	unsigned int i, g;

	memset(own, 0, GROUPS * sizeof(*own));
	for (g = 0; g < GROUPS; g++)
		id[g] = cg_id(w->cg[g]);
	for (i = 0; i < WINDOWS; i++) {
		for (page = 0; !dev_query(w->win[i], page, BRUMM_QUERY_NEXT, &q);
		     page = (q.offset + q.length) / PAGE) {
			for (g = 0; g < GROUPS && id[g] != q.sponsor; g++)
				;
			REQUIRE(g < GROUPS);
			own[g].lookup += !!(q.state & BRUMM_NODE_FIRST);
			own[g].map++;
			own[g].pt += q.length / PAGE;
		}
	}
}

static void check_sums(struct world *w)
{
	struct cg_counts sum[GROUPS];
	unsigned int g;

	count_nodes(w, sum);
	for (g = GROUPS; g--;) {
		CHECK_COUNTS(w->cg[g], sum[g].lookup, sum[g].map, sum[g].pt);
		CHECK_EQ(knob_usage_ns(w->cg[g]),
			 COST(sum[g].lookup, sum[g].map, sum[g].pt));
		if (tree[g].up < 0)
			continue;
		sum[tree[g].up].lookup += sum[g].lookup;
		sum[tree[g].up].map += sum[g].map;
		sum[tree[g].up].pt += sum[g].pt;
	}
}

static void run_workers(struct world *w)
{
	struct worker me[PROCESSES];
	pid_t pid[PROCESSES];
	unsigned int i;

	for (i = 0; i < PROCESSES; i++) {
		me[i] = (struct worker){ w, w->seed++ };
		pid[i] = spawn(work, &me[i]);
	}
	for (i = 0; i < PROCESSES; i++)
		reap(pid[i]);
}

static struct world *world_make(uint64_t ops)
{
	struct world *w = shared(sizeof(*w));
	unsigned int i, g = 0;

	w->seed = tap_seed();
	w->ops = ops;
	for (i = 0; i < GROUPS; i++)
		w->cg[i] = cg_make(tree[i].name);
	REQUIRE_OK(cg_write(w->cg[0], "brumm.price", PRICES));
	for (i = 0; i < WINDOWS; i++) {
		while (!tree[g % GROUPS].leaf)
			g++;
		w->win[i] = win_open_in(w->cg[g++ % GROUPS]);
	}
	return w;
}

static void world_end(struct world *w)
{
	unsigned int i;

	tap_diag("%u done, %u ENOENT, %u EEXIST, %u EDQUOT",
		 w->results[0], w->results[ENOENT], w->results[EEXIST],
		 w->results[EDQUOT]);
	for (i = 0; i < WINDOWS; i++)
		close(w->win[i]);
	for (i = 0; i < GROUPS; i++) {
		CHECK_COUNTS(w->cg[i], 0, 0, 0);
		CHECK_EQ(knob_usage_ns(w->cg[i]), 0);
	}
}

static void sums_hold(void)
{
	struct world *w = world_make(amount(100000) / 4);
	int round;

	for (round = 0; round < 4; round++) {
		run_workers(w);
		check_sums(w);
	}
	CHECK(w->results[0] > 0);
	world_end(w);
}

/* Refusals all along, at all levels. */
static void sums_hold_at_the_limit(void)
{
	struct world *w = world_make(amount(40000));
	char text[40];
	unsigned int g;

	for (g = 0; g < GROUPS; g++) {
		snprintf(text, sizeof(text), "%lluns",
			 COST(10, 20, 100) * (g ? 1 : 4));
		REQUIRE_OK(cg_write(w->cg[g], "brumm.max", text));
	}
	run_workers(w);
	check_sums(w);
	CHECK(w->results[EDQUOT] > 0);
	CHECK(cg_key(w->cg[0], "brumm.events", "max") >= w->results[EDQUOT]);
	world_end(w);
}

/* Prices, limits, locks and reclaims meanwhile. */
static void turn_knobs(void *arg)
{
	static const char *const writes[][2] = {
		{ "brumm.price", "map 5 pt 7" }, { "brumm.price", "default" },
		{ "brumm.max", "1s" },		 { "brumm.max", "0" },
		{ "brumm.max", "max" },		 { "brumm.high", "10" },
		{ "brumm.lock", "1" },		 { "brumm.lock", "0" },
		{ "brumm.reclaim", "1" },	 { "brumm.peak", "1" },
	};
	struct world *w = arg;
	struct rng r = { w->seed };
	unsigned int i;

	for (;;) {
		i = rng_below(&r, ARRAY_SIZE(writes));
		CHECK_OK(cg_write(w->cg[1 + rng_below(&r, GROUPS - 1)],
				  writes[i][0], writes[i][1]));
		sleep_us(1000);
	}
}

static void sums_hold_under_knobs(void)
{
	struct world *w = world_make(amount(40000));
	pid_t pid = spawn(turn_knobs, w);
	unsigned int g;

	run_workers(w);
	kill_and_reap(pid);
	for (g = 1; g < GROUPS; g++)
		REQUIRE_OK(cg_write(w->cg[g], "brumm.price", "default"));
	check_sums(w);
	world_end(w);
}

static const struct tap_case cases[] = {
	{ "sums hold after random operations", sums_hold, 300 },
	{ "sums hold at the limit", sums_hold_at_the_limit, 300 },
	{ "sums hold while knobs are turned", sums_hold_under_knobs, 300 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
