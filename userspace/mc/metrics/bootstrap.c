// SPDX-License-Identifier: GPL-2.0
/*
 * Intervals by resampling blocks of time. A stall makes all requests of some
 * milliseconds slow at once, so requests are far from independent, and Wilson's
 * interval is too narrow; blocks that are longer than a burst are nearly so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

#include "metrics.h"

static const struct bootstrap none = { { NAN, NAN }, NAN, NAN, NAN };

/* ---- block length --------------------------------------------------------- */

static double covariance(const double *v, double mean, size_t count, size_t lag)
{
	double sum = 0;
	size_t i;

	for (i = lag; i < count; i++)
		sum += (v[i] - mean) * (v[i - lag] - mean);
	return sum / (double)count;
}

/* 1 up to a half, then down to 0 at 1. */
static double flat_top(double t)
{
	return t <= 0.5 ? 1 : t < 1 ? 2 * (1 - t) : 0;
}

/* The lag after which @quiet correlations in a row mean nothing. */
static size_t last_lag(const double *v, double mean, size_t count, double var)
{
	double n = (double)count, limit = 2 * sqrt(log10(n) / n);
	size_t quiet = (size_t)fmax(5, ceil(sqrt(log10(n)))), most, lag, run;
	size_t loud = 0;

	most = (size_t)ceil(sqrt(n)) + quiet;
	if (most > count - 1)
		most = count - 1;
	for (lag = 1, run = 0; lag <= most && run < quiet; lag++) {
		if (fabs(covariance(v, mean, count, lag) / var) < limit) {
			run++;
		} else {
			run = 0;
			loud = lag;
		}
	}
	return loud;
}

size_t metric_block_length(const double *v, size_t count)
{
	double mean, var, c, g = 0, d, n = (double)count, length;
	size_t m, lag, most = count / 3 ? count / 3 : 1;

	if (count < 3)
		return 1;
	mean = gsl_stats_mean(v, 1, count);
	var = covariance(v, mean, count, 0);
	if (!(var > 0))
		return 1;
	m = 2 * last_lag(v, mean, count, var);
	if (!m)
		return 1;
	if (m > count - 1)
		m = count - 1;
	d = var;
	for (lag = 1; lag <= m; lag++) {
		c = 2 * flat_top((double)lag / (double)m) *
		    covariance(v, mean, count, lag);
		g += (double)lag * c;
		d += c;
	}
	d = 4.0 / 3 * d * d;
	length = d > 0 ? ceil(cbrt(2 * g * g / d * n)) : n;
	return length > (double)most ? most : length < 1 ? 1 : (size_t)length;
}

/* ---- one side of a comparison --------------------------------------------- */

struct sample {
	const struct run_slices *run;
	size_t runs;
	size_t block;
};

static struct slice sum_of(const struct run_slices *run, size_t count)
{
	struct slice sum = { 0 };
	size_t r, i;

	for (r = 0; r < count; r++) {
		for (i = 0; i < run[r].count; i++) {
			sum.m += run[r].slice[i].m;
			sum.n += run[r].slice[i].n;
		}
	}
	return sum;
}

/*
 * Of the longest run: what decides is how m - op n, the part of the proportion
 * that varies, hangs together.
 */
static int choose_block(struct sample *s, double op)
{
	const struct run_slices *longest = s->run;
	double *v;
	size_t i;

	for (i = 1; i < s->runs; i++) {
		if (s->run[i].count > longest->count)
			longest = s->run + i;
	}
	v = calloc(longest->count, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < longest->count; i++)
		v[i] = (double)longest->slice[i].m -
		       op * (double)longest->slice[i].n;
	s->block = metric_block_length(v, longest->count);
	free(v);
	return 0;
}

static int sample_init(struct sample *s, const struct run_slices *run,
		       size_t runs, size_t block)
{
	struct slice sum = sum_of(run, runs);
	size_t i, longest = 0;

	*s = (struct sample){ .run = run, .runs = runs, .block = block };
	for (i = 0; i < runs; i++) {
		if (run[i].count > longest)
			longest = run[i].count;
	}
	if (longest < BOOTSTRAP_LEAST || !sum.n)
		return -ENODATA;
	return block ? 0 : choose_block(s, metric_op(sum.m, sum.n));
}

static void draw_run(const struct run_slices *run, size_t block, gsl_rng *rng,
		     struct slice *sum)
{
	size_t taken = 0, at, i;

	while (taken < run->count) {
		at = gsl_rng_uniform_int(rng, run->count);
		for (i = 0; i < block && taken < run->count; i++, taken++) {
			const struct slice *s =
				run->slice + (at + i) % run->count;

			sum->m += s->m;
			sum->n += s->n;
		}
	}
}

static double draw(const struct sample *s, gsl_rng *rng)
{
	struct slice sum = { 0 };
	size_t i, r;

	for (i = 0; i < s->runs; i++) {
		r = s->runs > 1 ? gsl_rng_uniform_int(rng, s->runs) : 0;
		if (s->run[r].count)
			draw_run(s->run + r, s->block, rng, &sum);
	}
	return sum.n ? (double)sum.m / (double)sum.n : NAN;
}

/* ---- the interval --------------------------------------------------------- */

static int resample(const struct sample *a, const struct sample *b,
		    double confidence, uint64_t seed, struct bootstrap *out,
		    double *variance)
{
	double *v = calloc(BOOTSTRAP_ROUNDS, sizeof(*v)), x;
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	double tail = (1 - confidence) / 2;
	size_t i, n = 0;

	if (!v || !rng) {
		free(v);
		if (rng)
			gsl_rng_free(rng);
		return -ENOMEM;
	}
	gsl_rng_set(rng, seed);
	for (i = 0; i < BOOTSTRAP_ROUNDS; i++) {
		x = draw(a, rng) - (b ? draw(b, rng) : 0);
		if (isfinite(x))
			v[n++] = x;
	}
	gsl_sort(v, 1, n);
	out->interval.low = gsl_stats_quantile_from_sorted_data(v, 1, n, tail);
	out->interval.high = gsl_stats_quantile_from_sorted_data(v, 1, n, 1 - tail);
	out->block = (double)(b && b->block > a->block ? b->block : a->block);
	*variance = n > 1 ? gsl_stats_variance(v, 1, n) : NAN;
	out->sd = sqrt(*variance);
	gsl_rng_free(rng);
	free(v);
	return n ? 0 : -ENODATA;
}

static double binomial_variance(const struct slice *s)
{
	double p = metric_op(s->m, s->n);

	return p * (1 - p) / (double)s->n;
}

int metric_bootstrap(const struct run_slices *runs, size_t count, size_t block,
		     double confidence, uint64_t seed, struct bootstrap *b)
{
	struct slice sum = sum_of(runs, count);
	struct sample s;
	double var;
	int err;

	*b = none;
	err = sample_init(&s, runs, count, block);
	if (!err)
		err = resample(&s, NULL, confidence, seed, b, &var);
	if (err)
		return err;
	/* Neither none nor all slow: else nothing varies. */
	if (sum.m && sum.m < sum.n)
		b->effect = var / binomial_variance(&sum);
	return 0;
}

int metric_bootstrap_difference(const struct run_slices *a, size_t na,
				const struct run_slices *b, size_t nb,
				double confidence, uint64_t seed,
				struct bootstrap *out)
{
	struct slice sa = sum_of(a, na), sb = sum_of(b, nb);
	struct sample one, other;
	double var, alone;
	int err;

	*out = none;
	err = sample_init(&one, a, na, 0);
	if (!err)
		err = sample_init(&other, b, nb, 0);
	if (!err)
		err = resample(&one, &other, confidence, seed, out, &var);
	if (err)
		return err;
	alone = binomial_variance(&sa) + binomial_variance(&sb);
	if (alone > 0)
		out->effect = var / alone;
	return 0;
}
