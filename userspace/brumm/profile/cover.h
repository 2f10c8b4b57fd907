/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From terms to prices. A mean is exceeded half of the time, and the shapes that
 * Eq. 1 counts alike differ; a price has to hold for the dearest of them. So
 * the terms are raised, all by the same factor, until every shape and size that
 * was measured is expected to take at least what it takes.
 */
#ifndef BRUMM_COVER_H
#define BRUMM_COVER_H

#include "measure.h"

/**
 * struct cover - prices that hold
 * @factor: by which the terms were raised
 * @price: by term, whole ns
 * @least, @most: expected / measured, of the medians of the shapes
 * @dearest, @cheapest: the shapes they are of
 * @spread: standard deviation of measured / expected of all runs, robust
 * @p99: 99th percentile of measured / expected of all runs
 * @above: share of runs that took longer than expected
 */
struct cover {
	double factor;
	double price[FIT_TERMS];
	double least, most;
	const struct measure_cell *dearest, *cheapest;
	double spread;
	double p99;
	double above;
};

/* 0, -ENOMEM; -EINVAL: there are no runs. */
int cover(const struct measure *m, const double ns[FIT_TERMS],
	  struct cover *c);
/* The same with prices that are given: judges them. */
int cover_judge(const struct measure *m, const double price[FIT_TERMS],
		struct cover *c);

#endif /* BRUMM_COVER_H */
