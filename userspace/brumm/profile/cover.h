/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From terms to prices. A mean is exceeded half of the time, and there are more
 * shapes than terms: a page of a range costs less than a page that is a mapping
 * of its own. So the prices are not the terms, but the solution of a linear
 * program:
 *
 *	expected >= measured			for every run of every shape,
 *	expected <= t * measured		for every run of a usual shape,
 *	expected <= u * measured		for every other run,
 *	t as small as it can be, and then u.
 *
 * The counts do not tell how the mappings stand: where each stands by itself, it
 * takes a zap and a flush of its own, and up to three times as long. Prices that
 * hold for those, too, are the solution of another one, in which they are the
 * only ones that t is for.
 *
 * Runs that are far from the others of their shape, size, way and state do not
 * count: something else ran meanwhile. How many that are tells how busy the
 * machine was.
 */
#ifndef BRUMM_COVER_H
#define BRUMM_COVER_H

#include "measure.h"

/**
 * struct cover - prices that hold
 * @price: by term, whole ns
 * @worst: the same, wherever the mappings stand
 * @worst_least, @worst_most: @least and @most of @worst and what stands apart
 * @least, @most: expected / measured, of all shapes, each where most of its runs
 *	agree
 * @dearest, @cheapest: the shapes they are of
 * @usual_most: the same as @most, of the usual shapes only
 * @spread: standard deviation of measured / expected of the usual shapes
 * @p99: 99th percentile of that
 * @noise: share of runs far from the others that are alike; of cover() only
 * @above: share of all runs that took longer than expected
 */
struct cover {
	double price[FIT_TERMS];
	double worst[FIT_TERMS];
	double worst_least, worst_most;
	double least, most;
	const struct measure_cell *dearest, *cheapest;
	double usual_most;
	double spread;
	double p99;
	double above;
	double noise;
};

/* With so much of it the prices are good for little. */
#define COVER_NOISE_MOST	0.25

/*
 * Prices from the runs of @by, judged by those of @m, which may be the same.
 * @ns: the fitted terms, by which runs are found to be far from the others; of
 * the caller's side they are the price. 0, -ENOMEM; -EINVAL: there are no runs.
 */
int cover(const struct measure *m, const struct measure *by,
	  const double ns[FIT_TERMS], struct cover *c);
/* The same with prices that are given: judges them by what is not apart. */
int cover_judge(const struct measure *m, const double price[FIT_TERMS],
		struct cover *c);

#endif /* BRUMM_COVER_H */
