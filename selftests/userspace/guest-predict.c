// SPDX-License-Identifier: GPL-2.0
/*
 * guest-predict PRICES [RUNS]: is what the prices predict what a revoke takes?
 * RUNS random maps, and a tenth as many of Single Frame and Many Frames each,
 * of random size; where the clock counts instructions. The prices of the file
 * have to be in force. Prints TAP, and as diagnostics what was found.
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
#include "../lib/rng.h"

#define GROUP	"brumm-predict"
#define LEAST	1.00
#define MOST	1.15
#define TAIL	1.60

/* Mappings of a run. */
#define SMALL	768u
#define LARGE	3072u

static const struct kind {
	const char *name;
	enum shape_kind kind;
	unsigned int part;	/* of the runs */
} kinds[] = {
	{ "random map", SHAPE_RANDOM_PAGES, 1 },
	{ "single frame", SHAPE_SINGLE_FRAME, 10 },
	{ "many frames", SHAPE_MANY_FRAMES, 10 },
};

/* What is seen of the runs of one kind. */
struct seen {
	double least, most, sum, tail;
	unsigned int n, above, exceeded;
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

static void note(struct seen *s, double predicted, double p99, double measured,
		 double budget)
{
	double ratio = predicted / measured;

	s->least = s->n ? fmin(s->least, ratio) : ratio;
	s->most = fmax(s->most, ratio);
	s->tail = fmax(s->tail, p99 / measured);
	s->sum += ratio;
	s->above += ratio > MOST;
	s->exceeded += measured > budget;
	s->n++;
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
		note(seen, (double)usage + p.syscall, p.p99 + p.syscall,
		     (double)took.wall_ns, (double)usage);
	shape_free(s);
	brumm_group_set_max(group, BRUMM_NO_LIMIT);
	return err;
}

static void run_all(const struct kind *k, unsigned int runs,
		    const double price[FIT_TERMS], struct rng *rng)
{
	struct seen s = { 0 };
	unsigned int i;
	int err = 0;

	for (i = 0; i < runs && !err; i++)
		err = run(&(struct shape_spec){
			.kind = k->kind, .touch = true, .groups = &group,
			.nr_groups = 1, .seed = rng_next(rng),
			.n = SMALL + rng_below(rng, LARGE - SMALL),
		}, price, &s);
	if (err)
		die(k->name, err);
	printf("# %s, %u runs: predicted / measured %.3f to %.3f, mean %.3f; %u above %.2f; p99 / measured up to %.2f\n",
	       k->name, s.n, s.least, s.most, s.sum / s.n, s.above, MOST,
	       s.tail);
	result(s.least >= LEAST, k->name, "no run takes longer than predicted");
	result(s.most <= MOST, k->name, "no prediction is 15 % too high");
	result(s.tail <= TAIL, k->name, "the 99th percentile is no more than 1.6 times as high");
	result(!s.exceeded, k->name, "no run exceeds a budget of what is predicted");
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
		err = prices_get(prices, price);
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
