// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "../cli.h"
#include "measure.h"

#define PAGE		4096ull
#define CALLS		1000u
#define RECLAIMS	50u
#define GAP		600u
/* Some ticks. */
#define SETTLE_NS	12000000

const char *const measure_states[MEASURE_STATES] = {
	[MEASURE_FRESH] = "fresh",
	[MEASURE_IDLE] = "idle",
};

/*
 * The shapes: all that a budget has to hold for, in such proportions that the
 * terms of Eq. 1 can be told apart. @n and @copies are multiplied by the size.
 * @first: the base is the root cgroup's, so that nobody pays for it and each
 * mapping from it is the first of the trial's. @usual: mappings of a page, as in
 * the paper. @gap: more pages than a table of them has, so that the mappings
 * are apart.
 */
static const struct kind {
	const char *name;
	enum shape_kind kind;
	double n, frames;
	double copies;
	bool first, usual;
	unsigned int gap;
} kinds[] = {
	{ "single_frame", SHAPE_SINGLE_FRAME, 1, 0, 0, false, true, 0 },
	{ "many_frames", SHAPE_MANY_FRAMES, 1, 0, 0, false, true, 0 },
	{ "random_pages", SHAPE_RANDOM_PAGES, 1, 0, 0, false, true, 0 },
	{ "random_ranges", SHAPE_RANDOM_RANGES, 0.25, 0, 0, false, false, 0 },
	{ "range", SHAPE_RANGE, 1.0 / 64, 16, 0, false, false, 0 },
	{ "first_pages", SHAPE_MANY_FRAMES, 0.5, 0, 0, true, false, 0 },
	{ MEASURE_BASES, SHAPE_SINGLE_FRAME, 0, 0, 1.0 / 16, false, false, 0 },
	{ "apart_frame", SHAPE_SINGLE_FRAME, 0.25, 0, 0, false, false, GAP },
	{ "apart_trees", SHAPE_RANDOM_PAGES, 0.25, 0, 0, false, false, GAP },
};

static const unsigned int sizes[] = { 256, 1024, 4096 };
static const unsigned int quick_sizes[] = { 128, 512 };

static const enum shape_by ways[] = { SHAPE_BY_UNMAP_SELF, SHAPE_BY_RECLAIM };

static void add_cell(struct measure *m, const struct kind *k, unsigned int size,
		     enum shape_by by, enum measure_state state)
{
	struct measure_cell *c = &m->cells[m->nr++];

	*c = (struct measure_cell){ .name = k->name, .by = by, .state = state };
	c->usual = k->usual;
	c->apart = k->gap;
	c->spec.gap = k->gap;
	c->spec.kind = k->kind;
	c->spec.touch = true;
	c->spec.n = k->n > 0 ? (uint64_t)(k->n * size) : 1;
	c->copies = k->copies > 0 ? (unsigned int)(k->copies * size) : 1;
	if (k->frames > 0)
		c->spec.frames = (uint64_t)k->frames;
	if (k->first)
		c->spec.windows = 2;
}

/* Not all shapes are taken back in all ways. */
static bool has_way(const struct kind *k, enum shape_by by)
{
	if (k->first || k->copies > 0)
		return by == SHAPE_BY_RECLAIM;
	return !k->gap || by == SHAPE_BY_UNMAP_SELF;
}

static int plan(const struct measure_options *o, struct measure *m)
{
	const unsigned int *list = o->quick ? quick_sizes : sizes;
	size_t nr = o->quick ? ARRAY_SIZE(quick_sizes) : ARRAY_SIZE(sizes);
	size_t k, i, w;
	int s;

	m->cells = calloc(ARRAY_SIZE(kinds) * nr * ARRAY_SIZE(ways) *
			  MEASURE_STATES, sizeof(*m->cells));
	if (!m->cells)
		return -ENOMEM;
	for (k = 0; k < ARRAY_SIZE(kinds); k++)
		for (i = 0; i < nr; i++)
			for (w = 0; w < ARRAY_SIZE(ways); w++)
				for (s = 0; s < MEASURE_STATES; s++)
					if (o->states & 1u << s &&
					    has_way(&kinds[k], ways[w]))
						add_cell(m, &kinds[k], list[i],
							 ways[w], s);
	return 0;
}

void measure_free(struct measure *m)
{
	size_t i;

	for (i = 0; m->cells && i < m->nr; i++)
		free(m->cells[i].runs);
	free(m->cells);
	free(m->flush);
	*m = (struct measure){ 0 };
}

/* The largest cache, or what is one on a machine that does not tell. */
static size_t cache_bytes(void)
{
	long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
	long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	long most = l3 > l2 ? l3 : l2;

	return most > 0 ? (size_t)most : 8u << 20;
}

void measure_settle(void)
{
	const struct timespec nap = { .tv_nsec = SETTLE_NS };

	nanosleep(&nap, NULL);
}

void measure_pin(cpu_set_t *old)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	if (sched_getaffinity(0, sizeof(*old), old))
		CPU_ZERO(old);
	else
		sched_setaffinity(0, sizeof(here), &here);
}

void measure_unpin(const cpu_set_t *old)
{
	if (CPU_COUNT(old))
		sched_setaffinity(0, sizeof(*old), old);
}

int measure_idle_away(bool quick)
{
	struct timespec nap = { .tv_nsec = quick ? 5000000 : 30000000 };
	size_t bytes = quick ? 1u << 20 : 2 * cache_bytes(), i;
	volatile char *other = malloc(bytes);

	if (!other)
		return -ENOMEM;
	for (i = 0; i < bytes; i += 64)
		other[i]++;
	free((void *)other);
	nanosleep(&nap, NULL);
	return 0;
}

static void count_in(struct fit_run *run, const struct shape_counts *c)
{
	run->count[FIT_LOOKUP] += (double)c->lookup;
	run->count[FIT_MAP] += (double)c->map;
	run->count[FIT_PT] += (double)c->pt;
	run->count[FIT_DEEP] += (double)c->deep;
}

/* Makes one copy, and adds to what @id is charged. */
static int make_copy(const struct measure_options *o,
		     const struct measure_cell *c, uint64_t seed, uint64_t id,
		     struct shape **s, struct fit_run *run)
{
	const int groups[] = { c->spec.windows > 1 ? o->root : o->group, o->group };
	struct shape_spec spec = c->spec;
	struct shape_counts counts;
	int err;

	spec.seed = seed;
	spec.groups = groups;
	spec.nr_groups = ARRAY_SIZE(groups);
	err = shape_plan(&spec, s);
	if (!err)
		err = shape_make(*s);
	if (!err) {
		shape_charged(*s, id, &counts);
		count_in(run, &counts);
	}
	return err;
}

static void tell_watch(const struct measure_options *o, bool begins)
{
	if (o->watch)
		o->watch(o->watch_arg, begins);
}

/* Who has several copies reclaims them all by the first. */
int measure_once(const struct measure_options *o, const struct measure *m,
		 const struct measure_cell *c, uint64_t seed,
		 struct fit_run *run)
{
	struct shape **s = calloc(c->copies, sizeof(struct shape *));
	struct shape_took took;
	unsigned int i;
	uint64_t id;
	int err = s ? brumm_group_id(o->group, &id) : -ENOMEM;

	*run = (struct fit_run){ 0 };
	if (c->by == SHAPE_BY_RECLAIM)
		measure_settle();
	for (i = 0; i < c->copies && !err; i++)
		err = make_copy(o, c, seed + i, id, &s[i], run);
	if (!err && c->state == MEASURE_IDLE)
		err = measure_idle_away(o->quick);
	if (!err) {
		tell_watch(o, true);
		err = shape_reclaim(s[0], c->by, o->group, &took);
		tell_watch(o, false);
	}
	if (!err) {
		run->ns = (double)took.wall_ns;
		if (c->by == SHAPE_BY_RECLAIM)
			run->ns -= m->reclaim.p50;
		else
			run->count[FIT_SYSCALL] = 1;
	}
	for (i = 0; s && i < c->copies; i++)
		shape_free(s[i]);
	free(s);
	return err;
}

/* All cells once, in an order of its own, so that no drift meets only some. */
static int run_round(const struct measure_options *o, struct measure *m,
		     gsl_rng *rng, unsigned int round)
{
	size_t *order = malloc(m->nr * sizeof(*order)), i;
	struct fit_run run;
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (i = 0; i < m->nr; i++)
		order[i] = i;
	gsl_ran_shuffle(rng, order, m->nr, sizeof(*order));
	for (i = 0; i < m->nr && !err; i++) {
		struct measure_cell *c = &m->cells[order[i]];

		if (cli_signal()) {
			err = -EINTR;
			break;
		}
		if (o->progress)
			o->progress(round * m->nr + i, (o->repeat + 1) * m->nr);
		err = measure_once(o, m, c, gsl_rng_get(rng), &run);
		/* The first round finds everything cold. */
		if (!err && round && run.ns > 0)
			c->runs[c->n++] = run;
	}
	free(order);
	return err;
}

static int measure_call(struct summary *s)
{
	double *v = calloc(CALLS, sizeof(*v));
	int w = brumm_open(0), err = w < 0 ? w : 0;
	unsigned int i;

	if (!v)
		err = -ENOMEM;
	for (i = 0; i < CALLS && !err; i++) {
		uint64_t start = cli_now();

		err = brumm_unmap(w, 0, PAGE, BRUMM_UNMAP_SELF, NULL);
		v[i] = (double)(cli_now() - start);
	}
	if (!err)
		summarise(v, CALLS, s);
	if (w >= 0)
		close(w);
	free(v);
	return err;
}

static int measure_empty_reclaim(int group, struct summary *s)
{
	double v[RECLAIMS];
	unsigned int i;
	int err = 0;

	for (i = 0; i < RECLAIMS && !err; i++) {
		uint64_t start;

		measure_settle();
		start = cli_now();
		err = brumm_group_reclaim(group);
		v[i] = (double)(cli_now() - start);
	}
	if (!err)
		summarise(v, RECLAIMS, s);
	return err;
}

/* The room for more runs of each cell. */
static int more_room(struct measure *m, unsigned int more)
{
	size_t i;

	for (i = 0; i < m->nr; i++) {
		struct measure_cell *c = &m->cells[i];
		void *runs = reallocarray(c->runs, c->n + more, sizeof(*c->runs));

		if (!runs)
			return -ENOMEM;
		c->runs = runs;
	}
	return 0;
}

int measure_more(const struct measure_options *o, struct measure *m)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	unsigned int round;
	int err = rng ? more_room(m, o->repeat) : -ENOMEM;
	cpu_set_t old;

	/* Other seeds than the last time. */
	if (!err)
		gsl_rng_set(rng, (unsigned long)(o->seed * 2 + 1 +
						 ((uint64_t)m->turn++ << 24)));
	measure_pin(&old);
	for (round = 0; round <= o->repeat && !err; round++)
		err = run_round(o, m, rng, round);
	measure_unpin(&old);
	if (rng)
		gsl_rng_free(rng);
	return err;
}

int measure(const struct measure_options *o, struct measure *m)
{
	int err;

	*m = (struct measure){ 0 };
	err = plan(o, m);
	if (!err)
		err = measure_call(&m->syscall);
	if (!err)
		err = measure_empty_reclaim(o->group, &m->reclaim);
	if (!err)
		err = measure_more(o, m);
	return err ? err : measure_flushes(m, o->quick ? 20 : 200);
}

/* Runs of one cell differ in the seed, and so a little in what there is to do. */
static int by_node(const void *a, const void *b)
{
	const struct fit_run *x = a, *y = b;
	double dx = x->ns * y->count[FIT_MAP], dy = y->ns * x->count[FIT_MAP];

	return (dx > dy) - (dx < dy);
}

int measure_quickest(const struct measure *m, struct measure *quickest)
{
	size_t i;

	*quickest = (struct measure){ .syscall = m->syscall, .reclaim = m->reclaim };
	quickest->cells = calloc(m->nr, sizeof(*m->cells));
	if (!quickest->cells)
		return -ENOMEM;
	for (i = 0; i < m->nr; i++) {
		struct measure_cell *c = &quickest->cells[quickest->nr++];

		*c = m->cells[i];
		c->runs = malloc((c->n + 1) * sizeof(*c->runs));
		if (!c->runs)
			return -ENOMEM;
		memcpy(c->runs, m->cells[i].runs, c->n * sizeof(*c->runs));
		qsort(c->runs, c->n, sizeof(*c->runs), by_node);
		c->n = c->n > 8 ? c->n / 4 : c->n < 2 ? c->n : 2;
	}
	return 0;
}

struct fit_run *measure_runs(const struct measure *m, enum measure_state state,
			     bool bases, size_t *n)
{
	struct fit_run *runs;
	size_t i, sum = 0;

	for (i = 0; i < m->nr; i++)
		sum += m->cells[i].n;
	runs = calloc(sum + 1, sizeof(*runs));
	*n = 0;
	for (i = 0; runs && i < m->nr; i++) {
		const struct measure_cell *c = &m->cells[i];

		if ((state != MEASURE_STATES && c->state != state) ||
		    c->apart || !strcmp(c->name, MEASURE_BASES) != bases)
			continue;
		memcpy(runs + *n, c->runs, c->n * sizeof(*runs));
		*n += c->n;
	}
	return runs;
}
