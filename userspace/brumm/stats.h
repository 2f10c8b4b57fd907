/* SPDX-License-Identifier: GPL-2.0 */
/* Samples in a few figures. */
#ifndef BRUMM_STATS_H
#define BRUMM_STATS_H

#include <jansson.h>
#include <stddef.h>

/**
 * struct summary - what is told of samples
 * @n: how many; with 0 all others mean nothing
 * @mean: their mean
 * @sd: standard deviation of one
 * @error: half of the 95 % interval of the mean
 * @min, @p50, @p99, @max: order statistics
 */
struct summary {
	size_t n;
	double mean, sd, error;
	double min, p50, p99, max;
};

/* Sorts @v. */
void summarise(double *v, size_t n, struct summary *s);

/*
 * n, mean, mean_low, mean_high, sd, min, p50, p99, max, and @how it was got;
 * null for what there is no sample of.
 */
json_t *summary_json(const struct summary *s, const char *how);

/* What was printed so; -EINVAL if it was not. */
int summary_parse(const json_t *j, struct summary *s);

#endif /* BRUMM_STATS_H */
