/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From counts to figures: the one place where a number that is printed, drawn
 * or written is made.
 */
#ifndef BRUMM_MC_FIGURES_H
#define BRUMM_MC_FIGURES_H

#include "load.h"

enum { MAX_TARGETS = 8 };

/**
 * struct figures_opts - what the figures are for
 * @scale: servers, and containers each, of the service
 * @target: service level outlier proportions to reach
 * @confidence: of all intervals
 * @seed: of the bootstrap
 */
struct figures_opts {
	struct scale scale;
	double target[MAX_TARGETS];
	size_t targets;
	double confidence;
	uint64_t seed;
};

/* The paper's: 1,000 servers, 10 % and 5 %; 95 % confidence. */
#define FIGURES_OPTS_INIT {						\
	.scale = { 1000, 1 }, .target = { 0.1, 0.05 }, .targets = 2,	\
	.confidence = 0.95, .seed = 1,					\
}

/* A number; null for what is none. */
json_t *figure_json(double v);
json_t *interval_json(struct interval i);

/* What @op means for the service: the keys of "service" in figures_json(). */
json_t *service_json(double op, struct interval at,
		     const struct figures_opts *o);

/* One proportion alone: its intervals and its service. */
json_t *proportion_json(uint64_t m, uint64_t n, const struct figures_opts *o);

/*
 * Of runs of the same load, whose counts are added. All must have the same
 * thresholds and fan-out; NULL: no memory.
 */
json_t *figures_json(const struct load *l, size_t runs,
		     const struct figures_opts *o);

/* Why two runs cannot be added; NULL: they can. */
const char *figures_differ(const struct load *a, const struct load *b);

#endif /* BRUMM_MC_FIGURES_H */
