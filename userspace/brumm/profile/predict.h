/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 99th percentile of a sum.
 *
 * It is not the sum of the 99th percentiles: what is slow once is not slow a
 * thousand times in a row. The terms vary in two ways:
 *
 *  - each for itself (a miss of a cache, a batch that ends early): variances
 *    add up, so that this part of the sum's deviation grows with the root of
 *    the number of terms;
 *  - all together (shape of the tree, state of the caches, clock of the CPU):
 *    this part grows with the sum. The spread of whole operations around the
 *    prediction, as the profile found it, is its deviation.
 *
 * p99 = mean * common + z * sqrt(sum of count * sd^2), z = 2.33, where common is
 * the 99th percentile of measured / predicted of the whole operations of the
 * profile, and not less than 1.
 */
#ifndef BRUMM_PREDICT_H
#define BRUMM_PREDICT_H

#include <jansson.h>
#include <stdbool.h>

#include "fit.h"

struct prediction {
	bool known;
	double p99;
	double worst;		/* wherever the mappings stand; 0: not known */
	double sd;		/* of what varies each for itself */
	double syscall;		/* one call, on average */
};

/**
 * struct flush - what it takes more that several CPUs have used the memory
 * @cpus: so many, as it was measured: the next number that was
 * @mean: ns, if mappings stand next to each other
 * @worst: ns, wherever they stand
 */
struct flush {
	unsigned int cpus;
	double mean, worst;
};

/*
 * For @maps mappings that @cpus CPUs have used. 0; -EBADMSG: the file does not say.
 */
int predict_flush(const json_t *doc, double maps, unsigned int cpus,
		  struct flush *f);

/* 0; -EBADMSG: what is needed is not in the file. */
int predict(const json_t *doc, const double count[FIT_TERMS],
	    const double price[FIT_TERMS], struct prediction *p);

#endif /* BRUMM_PREDICT_H */
