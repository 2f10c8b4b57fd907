/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The metrics of the outlier study, of counts and of nothing else: they touch no
 * file and no clock. Proportions are from 0 to 1. A function that has no answer
 * (no request, a proportion outside its range) returns NaN, which the JSON shows
 * as null; it never returns a figure that stands for "none".
 */
#ifndef BRUMM_MC_METRICS_H
#define BRUMM_MC_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An interval; both NaN: none. */
struct interval {
	double low, high;
};

/* ---- proportion.c: M of N ------------------------------------------------ */

/* op = M/N, the outlier proportion: requests that took longer than t, of all. */
double metric_op(uint64_t m, uint64_t n);

/*
 * Where the true proportion is with @confidence (0.95), if requests were
 * independent. Wilson's score interval; and Clopper and Pearson's, which is
 * never too narrow and stands also for M = 0 and M = N.
 */
struct interval metric_wilson(uint64_t m, uint64_t n, double confidence);
struct interval metric_clopper_pearson(uint64_t m, uint64_t n, double confidence);

/*
 * op_a - op_b, by Newcombe's hybrid of two Wilson intervals.
 */
struct interval metric_difference(uint64_t ma, uint64_t na, uint64_t mb,
				  uint64_t nb, double confidence);

/* From the lowest to the highest of two; one that is none is left out. */
struct interval metric_hull(struct interval a, struct interval b);

/* ---- service.c: of a service on many servers ------------------------------ */

/**
 * struct scale - how many sub-requests a request of the service waits for
 * @servers: SC
 * @each: K, containers or virtual machines a server, each asked
 */
struct scale {
	uint64_t servers, each;
};

/* The exponent SC K. */
double metric_exponent(const struct scale *s);
/* 1 - (1 - op)^(SC K): if servers are independent, as all three suppose. */
double metric_service_op(double op, double exponent);
/* The op of one at which the service has @op_sj: 1 - (1 - op_sj)^(1/(SC K)). */
double metric_required_op(double op_sj, double exponent);
/* By which factor @op has to fall for that. */
double metric_reduction(double op, double op_sj, double exponent);

/* The same at both ends: each grows with op. */
struct interval metric_service_interval(struct interval op, double exponent);
struct interval metric_reduction_interval(struct interval op, double op_sj,
					  double exponent);

/*
 * Which op a factor that was printed without decimals comes from: the interval
 * that is rounded to it, or (@cut) of which the decimals were cut off.
 */
struct interval metric_op_of_factor(double factor, double op_sj,
				    double exponent, bool cut);

/* 1 - prod(1 - op_k): the slowest of @k independent, unequal servers. */
double metric_any_op(const double *op, size_t k);

/*
 * How many independent requests, none of which may be an outlier, show with
 * @confidence that op is no more than @op; and how many it takes to know @op
 * within a share @width of it (0.2: 20 %).
 */
double metric_requests_to_show(double op, double confidence);
double metric_requests_to_know(double op, double width, double confidence);

/* ---- bootstrap.c: outliers come in bursts --------------------------------- */

/* What happened in one slice of time: @m outliers of @n requests. */
struct slice {
	uint64_t m, n;
};

/* The slices of one run. */
struct run_slices {
	const struct slice *slice;
	size_t count;
};

/**
 * struct bootstrap - an interval for what comes in bursts
 * @interval: of the proportion (or of a difference)
 * @block: slices a block has
 * @sd: standard deviation of what the interval is of
 * @effect: variance, divided by that of as many independent requests: with
 *	8, N requests tell as much as N/8 independent ones. NaN: no outlier
 */
struct bootstrap {
	struct interval interval;
	double block;
	double sd;
	double effect;
};

enum {
	BOOTSTRAP_ROUNDS = 2000,
	/* Fewer slices tell nothing of how outliers hang together. */
	BOOTSTRAP_LEAST = 10,
};

/*
 * Circular block bootstrap over @runs, blocks drawn within each run; with more
 * than one, runs are drawn before. @block 0: after Politis and White. The same
 * @seed gives the same interval. Return: 0; -ENODATA where no run has
 * BOOTSTRAP_LEAST slices, or -ENOMEM, and all is NaN.
 */
int metric_bootstrap(const struct run_slices *runs, size_t count, size_t block,
		     double confidence, uint64_t seed, struct bootstrap *b);

/* The same of op_a - op_b. */
int metric_bootstrap_difference(const struct run_slices *a, size_t na,
				const struct run_slices *b, size_t nb,
				double confidence, uint64_t seed,
				struct bootstrap *out);

/*
 * The block length for the circular bootstrap by Politis and White (2004), with
 * the correction by Patton, Politis and White (2009); 1 to count/3.
 */
size_t metric_block_length(const double *v, size_t count);

/* ---- tail.c: of a histogram ----------------------------------------------- */

/**
 * struct tail - slots of a histogram, in order of time
 * @low: the least value of the slot, ns
 * @high: the greatest
 * @n: how many
 */
struct tail_slot {
	double low, high;
	uint64_t n;
};

/**
 * struct tail_value - a figure from slots
 * @value: if values are evenly spread in their slot
 * @bound: where it is whatever their place
 */
struct tail_value {
	double value;
	struct interval bound;
};

/*
 * The @percent-th percentile (0 to 100): the value that a share of @percent is
 * not above; and "@percent % tail latency" of the paper: the MEAN of those
 * beyond, which is another thing.
 */
struct tail_value metric_percentile(const struct tail_slot *s, size_t count,
				    double percent);
struct tail_value metric_tail_mean(const struct tail_slot *s, size_t count,
				   double percent);
/* Share of all that is not above each slot's end, for a CDF. */
double metric_share_below(const struct tail_slot *s, size_t count, size_t slot);

#endif /* BRUMM_MC_METRICS_H */
