// SPDX-License-Identifier: GPL-2.0
/*
 * The metrics of the outlier study. What they have to be is from elsewhere:
 * published tables, formulae worked out by other programs, and simulation.
 */
#define _GNU_SOURCE
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "common.h"
#include "../../userspace/mc/metrics/metrics.h"

#define NEAR(got, want, error)						\
	do {								\
		double got_ = (got), want_ = (want);			\
		if (!(fabs(got_ - want_) <= (error)))			\
			fail_msg("%s is %.12g, not %.12g", #got, got_, want_); \
	} while (0)

/* Newcombe, Statistics in Medicine 17 (1998), 857: table I, methods 3 and 5. */
static void intervals_as_published(void **state)
{
	static const struct {
		uint64_t m, n;
		double wilson[2], exact[2];
	} table[] = {
		{ 81, 263, { 0.2553, 0.3662 }, { 0.2527, 0.3676 } },
		{ 15, 148, { 0.0624, 0.1605 }, { 0.0578, 0.1617 } },
		{ 0, 20, { 0.0000, 0.1611 }, { 0.0000, 0.1684 } },
		{ 1, 29, { 0.0061, 0.1718 }, { 0.0009, 0.1776 } },
	};
	struct interval w, e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		w = metric_wilson(table[i].m, table[i].n, 0.95);
		e = metric_clopper_pearson(table[i].m, table[i].n, 0.95);
		NEAR(w.low, table[i].wilson[0], 5e-5);
		NEAR(w.high, table[i].wilson[1], 5e-5);
		NEAR(e.low, table[i].exact[0], 5e-5);
		NEAR(e.high, table[i].exact[1], 5e-5);
	}
}

/* Newcombe, the same volume, 873: 56/70 - 48/80, method 10. */
static void a_difference_as_published(void **state)
{
	struct interval d = metric_difference(56, 70, 48, 80, 0.95);

	(void)state;
	NEAR(d.low, 0.0524, 5e-5);
	NEAR(d.high, 0.3339, 5e-5);
}

/* beta.ppf() of SciPy 1.10: where GSL's own inverse gives up. */
static void exact_intervals_of_large_counts(void **state)
{
	static const struct {
		uint64_t m, n;
		double low, high, error;
	} table[] = {
		{ 3, 10000, 6.187148574838713e-05, 0.0008764745225140007, 1e-12 },
		{ 96, 9600000, 8.100039378775443e-06, 1.2211698058015482e-05, 1e-16 },
		{ 1000000, 1000000000, 0.0009980419606758458, 0.001001960928819744, 1e-13 },
		{ 5000000, 10000000, 0.4996900525213711, 0.5003099474786289, 1e-7 },
	};
	struct interval e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		e = metric_clopper_pearson(table[i].m, table[i].n, 0.95);
		NEAR(e.low, table[i].low, table[i].error);
		NEAR(e.high, table[i].high, table[i].error);
	}
}

static void no_figure_of_nothing(void **state)
{
	struct bootstrap b;

	(void)state;
	assert_true(isnan(metric_op(0, 0)));
	assert_true(isnan(metric_op(2, 1)));
	assert_true(isnan(metric_wilson(0, 0, 0.95).low));
	assert_true(isnan(metric_clopper_pearson(0, 0, 0.95).high));
	assert_true(isnan(metric_service_op(-0.1, 1000)));
	assert_true(isnan(metric_service_op(0.1, 0)));
	assert_true(isnan(metric_required_op(1.1, 1000)));
	assert_true(isnan(metric_reduction(0.1, 0, 1000)));
	assert_true(isnan(metric_percentile(NULL, 0, 99).value));
	assert_true(isnan(metric_tail_mean(NULL, 0, 99).value));
	assert_int_equal(metric_bootstrap(NULL, 0, 0, 0.95, 1, &b), -ENODATA);
	assert_true(isnan(b.interval.low));
}

/* Worked out by bc: 1 - e(l(0.9)/1000) and so on. */
static void a_service_by_the_formula(void **state)
{
	struct scale scale = { 1000, 4 };
	double op[] = { 0.1, 0.2, 0.3 };

	(void)state;
	NEAR(metric_required_op(0.10, 1000), 1.0535496e-4, 1e-10);
	NEAR(metric_required_op(0.05, 1000), 5.1291979e-5, 1e-10);
	NEAR(metric_required_op(0.10, 4000), 2.6339782e-5, 1e-10);
	NEAR(metric_required_op(0.05, 4000), 1.2823241e-5, 1e-10);
	NEAR(metric_required_op(0.10, 10000), 1.0535996e-5, 1e-10);
	NEAR(metric_exponent(&scale), 4000, 0);
	/* A billionth of a thousand: 1 - (1 - x)^n in doubles has 8 digits of it. */
	NEAR(metric_service_op(1e-12, 1000) * 1e9, 1 - 4.995e-10, 1e-12);
	NEAR(metric_service_op(metric_required_op(0.1, 4000), 4000), 0.1, 1e-14);
	NEAR(metric_service_op(0, 1000), 0, 0);
	NEAR(metric_service_op(1, 1000), 1, 0);
	NEAR(metric_any_op(op, 3), 1 - 0.9 * 0.8 * 0.7, 1e-15);
	/* The rule of three: 3/1.05e-4. */
	NEAR(metric_requests_to_show(1.05355e-4, 0.95), 28434, 1);
	NEAR(metric_requests_to_know(1e-5, 0.2, 0.95), 9603551, 5);
}

/* Figure 3b: 871X and 1790X are one proportion; 2372X and 4721X are not. */
static void the_factors_of_the_paper(void **state)
{
	struct interval a = metric_op_of_factor(871, 0.10, 1000, false);
	struct interval b = metric_op_of_factor(1790, 0.05, 1000, false);
	double op = 0.0918;
	unsigned int e;

	(void)state;
	assert_true(a.low <= b.high && b.low <= a.high);
	NEAR(round(metric_reduction(op, 0.10, 1000)), 871, 0);
	NEAR(round(metric_reduction(op, 0.05, 1000)), 1790, 0);
	for (e = 1000; e <= 4000; e += 3000) {
		a = metric_op_of_factor(2372, 0.10, e, false);
		b = metric_op_of_factor(4721, 0.05, e, false);
		assert_true(b.high < a.low);
		op = (a.low + a.high) / 2;
		NEAR(round(metric_reduction(op, 0.10, e)), 2372, 0);
		NEAR(round(metric_reduction(op, 0.05, e)), 4872, 0);
		/* Not if decimals were cut off, either. */
		a = metric_op_of_factor(2372, 0.10, e, true);
		b = metric_op_of_factor(4721, 0.05, e, true);
		assert_true(b.high < a.low);
	}
}

/* By hand: 10 values of 1, 80 of 2 to 3, 9 of 100, one of 1000. */
static void percentile_and_mean_beyond_are_two_things(void **state)
{
	static const struct tail_slot s[] = {
		{ 1, 1, 10 }, { 2, 3, 80 }, { 100, 100, 9 }, { 1000, 1000, 1 },
	};
	struct tail_value v;

	(void)state;
	NEAR(metric_percentile(s, 4, 99).value, 100, 0);
	NEAR(metric_tail_mean(s, 4, 99).value, 1000, 0);
	NEAR(metric_percentile(s, 4, 90).value, 2.99, 0.01);
	NEAR(metric_tail_mean(s, 4, 90).value, (9 * 100 + 1000) / 10.0, 1e-9);
	v = metric_tail_mean(s, 4, 50);
	NEAR(v.bound.low, (40 * 2 + 1900) / 50.0, 1e-9);
	NEAR(v.bound.high, (40 * 3 + 1900) / 50.0, 1e-9);
	NEAR(metric_percentile(s, 4, 0).value, 1, 0);
	NEAR(metric_percentile(s, 4, 100).value, 1000, 0);
	assert_true(isnan(metric_tail_mean(s, 4, 100).value));
	NEAR(metric_share_below(s, 4, 1), 0.9, 1e-15);
}

/* ---- bursts --------------------------------------------------------------- */

enum { SLICES = 400, EACH = 100, WORLDS = 120 };

/*
 * Slices that are all slow for a while, or all fast: a stall begins with 1/50, and
 * ends with 1/@length. So the share of stalled time is length / (length + 50).
 */
static void simulate(struct slice *s, size_t n, double length, gsl_rng *rng)
{
	bool stalled = gsl_rng_uniform(rng) < length / (length + 50);
	size_t i;

	for (i = 0; i < n; i++) {
		stalled = stalled ? gsl_rng_uniform(rng) >= 1 / length :
				    gsl_rng_uniform(rng) < 1.0 / 50;
		s[i] = (struct slice){ stalled ? EACH / 2 : 0, EACH };
	}
}

/* How many of the intervals have the true value? */
static void cover(double length, double *boot, double *wilson)
{
	double truth = length / (length + 50) / 2;
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	struct slice *s = calloc(SLICES, sizeof(*s));
	struct run_slices run = { s, SLICES };
	struct bootstrap b;
	struct interval w;
	uint64_t m;
	int i, k;

	*boot = *wilson = 0;
	gsl_rng_set(rng, 7);
	for (i = 0; i < WORLDS; i++) {
		simulate(s, SLICES, length, rng);
		for (k = 0, m = 0; k < SLICES; k++)
			m += s[k].m;
		w = metric_wilson(m, SLICES * EACH, 0.95);
		assert_int_equal(metric_bootstrap(&run, 1, 0, 0.95, 3, &b), 0);
		*boot += b.interval.low <= truth && truth <= b.interval.high;
		*wilson += w.low <= truth && truth <= w.high;
	}
	*boot /= WORLDS;
	*wilson /= WORLDS;
	gsl_rng_free(rng);
	free(s);
}

/* Bursts of 5 slices in 400: 95 % is asked for, and a bootstrap gives a bit less. */
static void the_bootstrap_covers_where_wilson_does_not(void **state)
{
	double boot, wilson;

	(void)state;
	cover(5, &boot, &wilson);
	if (boot < 0.80 || wilson > 0.5)
		fail_msg("bootstrap %.2f, Wilson %.2f", boot, wilson);
}

static void blocks_are_as_long_as_bursts(void **state)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	double v[SLICES], noise = 0;
	size_t alone, hanging;
	int i;

	(void)state;
	gsl_rng_set(rng, 5);
	for (i = 0; i < SLICES; i++)
		v[i] = gsl_ran_ugaussian(rng);
	alone = metric_block_length(v, SLICES);
	for (i = 0; i < SLICES; i++)
		v[i] = noise = 0.9 * noise + gsl_ran_ugaussian(rng);
	hanging = metric_block_length(v, SLICES);
	gsl_rng_free(rng);
	assert_in_range(alone, 1, 4);
	assert_in_range(hanging, 8, SLICES / 3);
	for (i = 0; i < SLICES; i++)
		v[i] = 3;
	assert_int_equal(metric_block_length(v, SLICES), 1);
}

static void the_same_seed_gives_the_same_interval(void **state)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	struct slice s[2][SLICES];
	struct run_slices one = { s[0], SLICES }, other = { s[1], SLICES };
	struct bootstrap a, b;

	(void)state;
	simulate(s[0], SLICES, 5, rng);
	simulate(s[1], SLICES, 20, rng);
	gsl_rng_free(rng);
	metric_bootstrap(&one, 1, 0, 0.95, 1, &a);
	metric_bootstrap(&one, 1, 0, 0.95, 1, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	metric_bootstrap(&one, 1, 0, 0.95, 2, &b);
	assert_memory_not_equal(&a, &b, sizeof(a));
	assert_true(a.effect > 5);
	assert_int_equal(metric_bootstrap_difference(&other, 1, &one, 1, 0.95, 1, &b), 0);
	assert_true(b.interval.high > 0 && b.interval.low < b.interval.high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_as_published),
		cmocka_unit_test(a_difference_as_published),
		cmocka_unit_test(exact_intervals_of_large_counts),
		cmocka_unit_test(no_figure_of_nothing),
		cmocka_unit_test(a_service_by_the_formula),
		cmocka_unit_test(the_factors_of_the_paper),
		cmocka_unit_test(percentile_and_mean_beyond_are_two_things),
		cmocka_unit_test(the_bootstrap_covers_where_wilson_does_not),
		cmocka_unit_test(blocks_are_as_long_as_bursts),
		cmocka_unit_test(the_same_seed_gives_the_same_interval),
	};

	return RUN_TAP("mc-metrics", tests);
}
