// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "cover.h"

/* Runs of a shape beyond so many standard deviations are not its usual ones. */
#define USUAL	3.0
/* Of a normal distribution: standard deviation / median absolute deviation. */
#define SD_PER_MAD	1.4826

/* Median and robust deviation of measured / expected of some runs. */
struct ratio {
	double p50, sd;
};

static int ratio_of(const struct fit_run *runs, size_t n,
		    const double ns[FIT_TERMS], struct ratio *r)
{
	double *v = calloc(2 * n, sizeof(*v));
	size_t i;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		v[i] = runs[i].ns / fit_predict(ns, &runs[i]);
	gsl_sort(v, 1, n);
	r->p50 = gsl_stats_median_from_sorted_data(v, 1, n);
	r->sd = SD_PER_MAD * gsl_stats_mad0(v, 1, n, v + n);
	free(v);
	return 0;
}

/* Over all runs of all cells. */
static int judge_all(const struct measure *m, struct cover *c)
{
	struct fit_run *runs;
	double *v;
	size_t n, i, above = 0;

	runs = measure_runs(m, MEASURE_STATES, &n);
	v = calloc(2 * n + 1, sizeof(*v));
	if (!runs || !v) {
		free(runs);
		free(v);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		v[i] = runs[i].ns / fit_predict(c->price, &runs[i]);
		above += v[i] > 1;
	}
	gsl_sort(v, 1, n);
	c->p99 = gsl_stats_quantile_from_sorted_data(v, 1, n, 0.99);
	c->spread = SD_PER_MAD * gsl_stats_mad0(v, 1, n, v + n);
	c->above = (double)above / (double)n;
	free(runs);
	free(v);
	return 0;
}

int cover_judge(const struct measure *m, const double price[FIT_TERMS],
		struct cover *c)
{
	struct ratio r;
	size_t i;
	int t, err = 0;

	*c = (struct cover){ .factor = 1, .least = INFINITY };
	for (t = 0; t < FIT_TERMS; t++)
		c->price[t] = price[t];
	for (i = 0; i < m->nr && !err; i++) {
		const struct measure_cell *cell = &m->cells[i];

		if (!cell->n)
			continue;
		err = ratio_of(cell->runs, cell->n, price, &r);
		if (1 / r.p50 < c->least) {
			c->least = 1 / r.p50;
			c->dearest = cell;
		}
		if (1 / r.p50 > c->most) {
			c->most = 1 / r.p50;
			c->cheapest = cell;
		}
	}
	if (!err && !c->dearest)
		err = -EINVAL;
	return err ? err : judge_all(m, c);
}

int cover(const struct measure *m, const double ns[FIT_TERMS],
	  struct cover *c)
{
	double factor = 0, price[FIT_TERMS];
	struct ratio r;
	size_t i;
	int t, err = 0;

	for (i = 0; i < m->nr && !err; i++) {
		const struct measure_cell *cell = &m->cells[i];

		if (!cell->n)
			continue;
		err = ratio_of(cell->runs, cell->n, ns, &r);
		factor = fmax(factor, r.p50 + USUAL * r.sd);
	}
	if (err)
		return err;
	for (t = 0; t < FIT_TERMS; t++)
		price[t] = ceil(factor * ns[t]);
	/* Kinds that cost next to nothing still cost something. */
	for (t = 0; t < FIT_TERMS; t++)
		price[t] = fmax(price[t], 1);
	err = cover_judge(m, price, c);
	c->factor = factor;
	return err;
}
