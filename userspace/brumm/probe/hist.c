// SPDX-License-Identifier: GPL-2.0
/* Histograms of the BPF programs, in figures. */
#define _GNU_SOURCE
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>

#include "hist.h"

void hist_merge(struct hist *to, const struct hist *h)
{
	unsigned int i;

	to->n += h->n;
	to->sum += h->sum;
	to->squares_low += h->squares_low;
	to->squares_high += h->squares_high;
	if (h->not_min > to->not_min)
		to->not_min = h->not_min;
	if (h->max > to->max)
		to->max = h->max;
	for (i = 0; i < HIST_SLOTS; i++)
		to->slot[i] += h->slot[i];
}

/* The value at rank @share * (n - 1), as a quantile of a sorted list has it. */
static double hist_quantile(const struct hist *h, double share)
{
	uint64_t rank = (uint64_t)(share * (double)(h->n - 1) + 0.5), below = 0;
	double least = (double)~h->not_min, most = (double)h->max, v;
	uint32_t i;

	for (i = 0; i < HIST_SLOTS - 1; i++) {
		below += h->slot[i];
		if (below > rank)
			break;
	}
	v = ((double)hist_low(i) + (double)hist_low(i + 1) - 1) / 2;
	if (i == HIST_SLOTS - 1)
		v = most;
	return fmin(fmax(v, least), most);
}

void hist_summary(const struct hist *h, struct summary *s)
{
	double n = (double)h->n, squares;

	*s = (struct summary){ .n = h->n };
	if (!h->n)
		return;
	s->mean = (double)h->sum / n;
	s->min = (double)~h->not_min;
	s->max = (double)h->max;
	s->p50 = hist_quantile(h, 0.5);
	s->p99 = hist_quantile(h, 0.99);
	if (h->n < 2)
		return;
	squares = ldexp((double)h->squares_high, 32) + (double)h->squares_low;
	s->sd = sqrt(fmax(0, squares - n * s->mean * s->mean) / (n - 1));
	s->error = gsl_cdf_tdist_Pinv(0.975, n - 1) * s->sd / sqrt(n);
}
