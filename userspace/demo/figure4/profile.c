// SPDX-License-Identifier: GPL-2.0
/*
 * The paper's profiling phase in small, and the comparison of what was
 * expected with what was measured. Every figure is the median of ROUNDS.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "demo.h"

#define ROUNDS	7
/* Loads: their difference shows the price of one. */
#define FEW	256u
#define MANY	2048u

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t median(uint64_t *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

/* Kernel's own measurement of taking all back that the tenant has. */
static int reclaim(struct scene *s, uint64_t *predicted, uint64_t *measured)
{
	int err = brumm_group_reclaim(s->g_tenant);

	if (!err)
		err = brumm_group_stat_get(s->g_tenant,
					   "last_reclaim_predicted_ns",
					   predicted);
	if (!err)
		err = brumm_group_stat_get(s->g_tenant,
					   "last_reclaim_measured_ns",
					   measured);
	return err;
}

static int load(struct scene *s, uint64_t pages, uint64_t self)
{
	struct report r;
	int err = actor_order(&s->tenant, TENANT_AGAIN, 0, &r);

	if (!err && !r.err)
		err = actor_order(&s->tenant, TENANT_ALLOC, pages, &r);
	if (!err && !r.err && self)
		err = actor_order(&s->tenant, TENANT_SELF, self, &r);
	return err ? err : r.err;
}

enum { FEW_PAGES, MANY_PAGES, FEW_NODES, MANY_NODES, LOADS };

/*
 * The loads in turn, so that what changes with time meets them all; the first
 * turn finds cold caches and does not count.
 */
static int measure(struct scene *s, uint64_t result[LOADS])
{
	static const struct {
		uint64_t pages, self;
	} loads[LOADS] = {
		[FEW_PAGES] = { FEW, 0 }, [MANY_PAGES] = { MANY, 0 },
		[FEW_NODES] = { 1, FEW }, [MANY_NODES] = { 1, MANY },
	};
	uint64_t v[LOADS][ROUNDS], predicted, ns;
	int i, k, err = 0;

	for (i = -1; i < ROUNDS && !err; i++) {
		for (k = 0; k < LOADS && !err; k++) {
			err = load(s, loads[k].pages, loads[k].self);
			if (!err)
				err = reclaim(s, &predicted, &ns);
			if (!err && i >= 0)
				v[k][i] = ns;
		}
	}
	for (k = 0; k < LOADS && !err; k++)
		result[k] = median(v[k]);
	return err;
}

static uint64_t at_least_1(int64_t v)
{
	return v < 1 ? 1 : (uint64_t)v;
}

static int64_t per_one(uint64_t few, uint64_t many)
{
	return ((int64_t)many - (int64_t)few) / (int64_t)(MANY - FEW);
}

bool profile(struct scene *s)
{
	uint64_t t[LOADS];
	int64_t pt, map;
	int err;

	story_step("The controller profiles this machine");
	err = tenant_start(s, false);
	if (!err)
		err = measure(s, t);
	actor_end(&s->tenant);
	if (!story_expect(!err, "a trial tenant ran and was taken back %d times%s%s",
			  LOADS * (ROUNDS + 1), err ? ": " : "",
			  err ? brumm_strerror(err) : ""))
		return false;
	pt = per_one(t[FEW_PAGES], t[MANY_PAGES]);
	map = per_one(t[FEW_NODES], t[MANY_NODES]) - pt;
	s->price_pt = at_least_1(pt);
	s->price_map = at_least_1(map);
	s->price_lookup = at_least_1((int64_t)t[FEW_PAGES] -
				     (int64_t)(s->price_pt * FEW + s->price_map));
	err = brumm_group_set_price(s->g_top, "lookup", s->price_lookup);
	if (!err)
		err = brumm_group_set_price(s->g_top, "map", s->price_map);
	if (!err)
		err = brumm_group_set_price(s->g_top, "pt", s->price_pt);
	story_say("to take back: a first mapping costs %s, each mapping %s, each page %s",
		  show_time(s->price_lookup), show_time(s->price_map),
		  show_time(s->price_pt));
	story_time("prices", "lookup_ns", s->price_lookup);
	story_time("prices", "map_ns", s->price_map);
	story_time("prices", "pt_ns", s->price_pt);
	story_note("prices", "rounds", json_integer(ROUNDS));
	return story_expect(!err, "these are now the prices (brumm.price)");
}

static int take_back(struct scene *s, uint64_t *expected, uint64_t *measured)
{
	struct brumm_taken t;
	uint64_t id;
	int err = brumm_group_id(s->g_tenant, &id);

	*expected = current_ns(s->g_tenant);
	if (!err)
		err = brumm_control_take_back(s->control, id, &t);
	*measured = t.ns;
	return err;
}

static bool compare_one(struct scene *s, const char *name, const char *text,
			int (*how)(struct scene *s, uint64_t *expected,
				   uint64_t *measured))
{
	uint64_t expected[ROUNDS], measured[ROUNDS], e, m;
	struct report r;
	int i, err = 0;

	for (i = 0; i < ROUNDS && !err; i++) {
		err = actor_order(&s->tenant, TENANT_AGAIN, 0, &r);
		if (!err)
			err = r.err;
		if (!err)
			err = tenant_load(s, &r);
		if (!err)
			err = how(s, &expected[i], &measured[i]);
		if (!err && current_ns(s->g_tenant))
			err = -1;
	}
	if (!story_expect(!err, "%s leaves nothing, %d of %d times", text, i,
			  ROUNDS))
		return false;
	e = median(expected);
	m = median(measured);
	story_say("expected %s, measured %s (%s to %s in %d rounds): expected / measured %.2f",
		  show_time(e), show_time(m), show_time(measured[0]),
		  show_time(measured[ROUNDS - 1]), ROUNDS,
		  (double)e / (double)m);
	story_time(name, "expected_ns", e);
	story_time(name, "measured_ns", m);
	story_time(name, "measured_min_ns", measured[0]);
	story_time(name, "measured_max_ns", measured[ROUNDS - 1]);
	story_note(name, "rounds", json_integer(ROUNDS));
	return true;
}

/* The same load, taken back in the two other ways, from a living tenant. */
bool compare(struct scene *s)
{
	bool ok;

	story_step("The same load again, taken back from a tenant that lives on");
	ok = story_expect(!tenant_start(s, false), "another tenant started");
	ok = ok && compare_one(s, "take_back",
			       "the memory service taking its pages back (brumm take-back)",
			       take_back);
	ok = ok && compare_one(s, "reclaim",
			       "the kernel taking all back (brumm.reclaim)",
			       reclaim);
	actor_end(&s->tenant);
	return ok;
}
