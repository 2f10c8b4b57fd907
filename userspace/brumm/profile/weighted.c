// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "weighted.h"

int weighted_add(struct weighted *w, double mean, double weight)
{
	if (!(weight > 0))
		return 0;
	if (w->n == w->room) {
		size_t room = w->room ? 2 * w->room : 256;
		void *v = reallocarray(w->v, room, sizeof(*w->v));

		if (!v)
			return -ENOMEM;
		w->v = v;
		w->room = room;
	}
	w->v[w->n++] = (struct weighted_sample){ mean, weight };
	return 0;
}

void weighted_free(struct weighted *w)
{
	free(w->v);
	*w = (struct weighted){ 0 };
}

static int by_mean(const void *a, const void *b)
{
	const struct weighted_sample *x = a, *y = b;

	return (x->mean > y->mean) - (x->mean < y->mean);
}

/* The least sample that as much as @share of all weight does not exceed. */
static double quantile(const struct weighted *w, double all, double share)
{
	double sum = 0;
	size_t i;

	for (i = 0; i + 1 < w->n; i++) {
		sum += w->v[i].weight;
		if (sum >= share * all)
			break;
	}
	return w->v[i].mean;
}

/* So many of the samples, which are sorted, are the work itself. */
static size_t undisturbed(const struct weighted *w, double p50)
{
	size_t n = w->n;

	while (n && p50 > 0 && w->v[n - 1].mean > WEIGHTED_FAR * p50)
		n--;
	return n;
}

static void moments(const struct weighted *w, size_t n, struct summary *s)
{
	double all = 0, sum = 0, squares = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		all += w->v[i].weight;
		sum += w->v[i].weight * w->v[i].mean;
	}
	s->mean = sum / all;
	if (n < 2)
		return;
	for (i = 0; i < n; i++) {
		double off = w->v[i].weight * (w->v[i].mean - s->mean);

		squares += off * off;
	}
	squares *= (double)n / ((double)n - 1);
	s->sd = sqrt(squares / all);
	s->error = gsl_cdf_tdist_Pinv(0.975, (double)n - 1) * sqrt(squares) / all;
}

size_t weighted_summarise(struct weighted *w, struct summary *s)
{
	double all = 0;
	size_t i, n;

	*s = (struct summary){ .n = w->n };
	if (!w->n)
		return 0;
	qsort(w->v, w->n, sizeof(*w->v), by_mean);
	for (i = 0; i < w->n; i++)
		all += w->v[i].weight;
	s->min = w->v[0].mean;
	s->p50 = quantile(w, all, 0.5);
	s->p99 = quantile(w, all, 0.99);
	s->max = w->v[w->n - 1].mean;
	n = undisturbed(w, s->p50);
	moments(w, n, s);
	return w->n - n;
}
