/* SPDX-License-Identifier: GPL-2.0 */
/* Figures of things that are measured many at once. */
#ifndef BRUMM_WEIGHTED_H
#define BRUMM_WEIGHTED_H

#include <stddef.h>

#include "../stats.h"

/**
 * struct weighted - samples, each the mean of several things
 * @v: sample, and how many things
 * @n: samples
 * @room: for so many
 */
struct weighted {
	struct weighted_sample {
		double mean, weight;
	} *v;
	size_t n, room;
};

/* 0 or -ENOMEM; what weighs nothing is left out. */
int weighted_add(struct weighted *w, double mean, double weight);
void weighted_free(struct weighted *w);

/*
 * The mean is that of the things, and so are the percentiles. sd is such that the
 * sum of k of the things, measured so many at once, has the variance k * sd^2.
 * What took so many times the median was interrupted: mean and sd are without it,
 * p99 and max are with it. Returns how many that were; sorts.
 */
#define WEIGHTED_FAR	10
size_t weighted_summarise(struct weighted *w, struct summary *s);

#endif /* BRUMM_WEIGHTED_H */
