// SPDX-License-Identifier: GPL-2.0
/*
 * guest-predict PRICES [RUNS]: is what the prices predict what a revoke takes?
 * RUNS random maps, a tenth as many of Single Frame and Many Frames each, and a
 * twentieth each of shapes that no profile has seen, which the prices for the worst
 * have to hold for; where the clock counts instructions. The usual prices of the
 * file have to be in force. Prints TAP, and as diagnostics how predicted / measured
 * is distributed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../userspace/brumm/bench/shape.h"
#include "../../userspace/brumm/profile/predict.h"
#include "../../userspace/brumm/profile/prices.h"
#include "../../userspace/brumm/stats.h"
#include "../lib/rng.h"

#define GROUP	"brumm-predict"
#define LEAST	1.00
#define MOST	1.15
#define TAIL	1.60

/* Mappings of a run. */
#define SMALL	768u
#define LARGE	3072u
#define PROGRESS 100u

/* One run in so many is of that kind. @bars: they hold for it. */
static const struct kind {
	const char *name;
	struct shape_spec spec;
	double size;
	unsigned int part;
	bool bars;
} kinds[] = {
	{ "random map", { .kind = SHAPE_RANDOM_PAGES }, 1, 1, true },
	{ "single frame", { .kind = SHAPE_SINGLE_FRAME }, 1, 10, true },
	{ "many frames", { .kind = SHAPE_MANY_FRAMES }, 1, 10, true },
	/* Otherwise derived, */
	{ "wide trees", { .kind = SHAPE_RANDOM_PAGES, .width = 40, .depth = 3 }, 1, 20, false },
	{ "narrow trees", { .kind = SHAPE_RANDOM_PAGES, .width = 1, .depth = 15 }, 1, 20, false },
	{ "one tree", { .kind = SHAPE_RANDOM_PAGES, .frames = 1 }, 1, 20, false },
	{ "chain", { .kind = SHAPE_CHAIN, .frames = 128 }, 1.0 / 256, 20, false },
	{ "ranges", { .kind = SHAPE_RANGE, .frames = 64 }, 1.0 / 32, 20, false },
	{ "random ranges", { .kind = SHAPE_RANDOM_RANGES, .frames = 64 }, 0.25, 20, false },
	/* in other places, */
	{ "trees in 16 windows", { .kind = SHAPE_RANDOM_PAGES, .windows = 17 }, 1, 20, false },
	{ "frames in 16 windows", { .kind = SHAPE_MANY_FRAMES, .windows = 17 }, 1, 20, false },
	{ "near trees", { .kind = SHAPE_RANDOM_PAGES, .gap = 8 }, 1, 20, false },
	{ "near frames", { .kind = SHAPE_MANY_FRAMES, .gap = 8 }, 1, 20, false },
	{ "scattered trees", { .kind = SHAPE_RANDOM_PAGES, .gap = 600 }, 1, 20, false },
	{ "scattered frames", { .kind = SHAPE_MANY_FRAMES, .gap = 600 }, 1, 20, false },
	{ "scattered frame", { .kind = SHAPE_SINGLE_FRAME, .gap = 600 }, 1, 20, false },
	{ "scattered ranges", { .kind = SHAPE_RANDOM_RANGES, .frames = 64, .gap = 600 }, 0.25, 20, false },
};

/* What is seen of the runs of one kind. */
struct seen {
	double *ratio, *worst, tail;
	unsigned int n, above, exceeded, beyond;
};

static int group;
static json_t *prices;
static int number, failed;

static void result(int ok, const char *kind, const char *what)
{
	printf("%sok %d - %s: %s\n", ok ? "" : "not ", ++number, kind, what);
	failed |= !ok;
}

static int die(const char *what, int err)
{
	printf("Bail out! %s: %s\n", what, brumm_strerror(err));
	exit(1);
}

static int one_count(const char *key, uint64_t value, void *arg)
{
	double *count = arg;
	char name[32];
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		snprintf(name, sizeof(name), "%s_count", fit_names[t]);
		if (!strcmp(key, name))
			count[t] = (double)value;
	}
	return 0;
}

/* @usage: what the kernel expects, which is the budget. */
static void note(struct seen *s, const struct prediction *p, double usage,
		 double measured)
{
	double ratio = (usage + p->syscall) / measured;

	s->ratio[s->n] = ratio;
	s->worst[s->n++] = (p->worst + p->syscall) / measured;
	s->tail = fmax(s->tail, (p->p99 + p->syscall) / measured);
	s->above += ratio > MOST;
	s->exceeded += measured > usage;
	s->beyond += measured > p->worst;
}

/* One run: what the kernel expects is also made the budget. */
static int run(const struct shape_spec *spec, const double price[FIT_TERMS],
	       struct seen *seen)
{
	double count[FIT_TERMS] = { 0 };
	struct shape_took took;
	struct shape *s = NULL;
	struct prediction p;
	uint64_t usage;
	int err = shape_plan(spec, &s);

	if (!err)
		err = shape_make(s);
	if (!err)
		err = brumm_group_stat_get(group, "usage_ns", &usage);
	if (!err)
		err = brumm_group_stat(group, one_count, count);
	if (!err)
		err = predict(prices, count, price, &p);
	if (!err)
		err = brumm_group_set_max(group, usage);
	if (!err)
		err = shape_reclaim(s, SHAPE_BY_UNMAP_SELF, -1, &took);
	if (!err)
		note(seen, &p, (double)usage, (double)took.wall_ns);
	shape_free(s);
	brumm_group_set_max(group, BRUMM_NO_LIMIT);
	return err;
}

static void tell_ratio(const char *of, double *v, unsigned int n,
		       struct summary *r)
{
	summarise(v, n, r);
	printf("#   %s / measured: min %.3f, median %.3f, p99 %.3f, max %.3f\n",
	       of, r->min, r->p50, r->p99, r->max);
}

static void tell(const struct kind *k, const struct seen *s)
{
	struct summary r, worst;

	printf("# %s, %u runs: %u above %.2f, %u exceeded the budget; p99 / measured up to %.2f\n",
	       k->name, s->n, s->above, MOST, s->exceeded, s->tail);
	tell_ratio("predicted", s->ratio, s->n, &r);
	tell_ratio("worst", s->worst, s->n, &worst);
	result(!s->beyond, k->name, "no run takes longer than the prices for the worst say");
	if (!k->bars)
		return;
	result(r.min >= LEAST, k->name, "no run takes longer than predicted");
	result(r.max <= MOST, k->name, "no prediction is 15 % too high");
	result(s->tail <= TAIL, k->name, "the 99th percentile is no more than 1.6 times as high");
	result(!s->exceeded, k->name, "no run exceeds a budget of what is predicted");
}

/* So that whoever waits sees that it goes on. */
static void tell_progress(const struct kind *k, unsigned int i, unsigned int runs)
{
	if (i && !(i % PROGRESS)) {
		printf("# %s: %u of %u runs\n", k->name, i, runs);
		fflush(stdout);
	}
}

static void run_all(const struct kind *k, unsigned int runs,
		    const double price[FIT_TERMS], struct rng *rng)
{
	struct shape_spec spec = k->spec;
	struct seen s = {
		.ratio = calloc(runs, sizeof(double)),
		.worst = calloc(runs, sizeof(double)),
	};
	unsigned int i;
	int err = s.ratio && s.worst ? 0 : -ENOMEM;

	spec.touch = true;
	spec.groups = &group;
	spec.nr_groups = 1;
	for (i = 0; i < runs && !err; i++) {
		spec.seed = rng_next(rng);
		spec.n = (uint64_t)(k->size * (SMALL + rng_below(rng, LARGE - SMALL)));
		tell_progress(k, i, runs);
		err = run(&spec, price, &s);
	}
	if (err)
		die(k->name, err);
	tell(k, &s);
	free(s.ratio);
	free(s.worst);
}

int main(int argc, char **argv)
{
	unsigned int runs = argc > 2 ? (unsigned int)atoi(argv[2]) : 40, n;
	double price[FIT_TERMS];
	struct rng rng = { 1 };
	size_t i;
	int err;

	if (argc < 2)
		die("PRICES [RUNS]", -EINVAL);
	err = prices_read(argv[1], &prices);
	if (!err)
		err = prices_get(prices, PRICES_USUAL, price);
	if (err)
		die(argv[1], err);
	err = brumm_group_create(GROUP);
	group = err ? err : brumm_group_open(GROUP);
	if (group < 0)
		die(GROUP, group);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		n = runs / kinds[i].part;
		run_all(&kinds[i], n ? n : 1, price, &rng);
	}
	close(group);
	brumm_group_remove(GROUP);
	json_decref(prices);
	printf("1..%d\n", number);
	return failed;
}
