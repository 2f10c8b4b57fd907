/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Models of sizes and of gaps between requests. "etc" is that of Facebook's pool ETC
 * (Atikoglu et al., SIGMETRICS 2012): key sizes follow a generalised extreme value
 * distribution, value sizes a table below 15 bytes and a generalised Pareto
 * distribution from there, gaps a generalised Pareto distribution.
 */
#ifndef BRUMM_MC_MODEL_H
#define BRUMM_MC_MODEL_H

#include <gsl/gsl_rng.h>
#include <stdint.h>

#define MODEL_MAX_KEY	250	/* bytes, memcached's limit */
#define MODEL_MAX_VALUE	1000000	/* bytes; fits into memcached's pages of 1 MiB */

enum size_kind {
	SIZE_RANGE,	/* uniform from low to high */
	SIZE_ETC,
};

struct size_model {
	enum size_kind kind;
	uint32_t low, high;	/* of SIZE_RANGE */
};

enum gap_kind {
	GAP_EXPONENTIAL,
	GAP_FIXED,
	GAP_ETC,
};

/* "N", "A-B" or "etc"; -EINVAL, or -ERANGE where it is not in 1..@max. */
int size_model_parse(const char *text, uint32_t max, struct size_model *m);
/* "exponential", "fixed" or "etc"; -EINVAL. */
int gap_kind_parse(const char *text, enum gap_kind *kind);
const char *gap_kind_name(enum gap_kind kind);
/* Of a buffer of 32 bytes: what size_model_parse() takes. */
const char *size_model_name(const struct size_model *m, char *buf);

/* Bytes of a key, of a value; never 0, at most the limits above. */
uint32_t model_key_size(const struct size_model *m, gsl_rng *rng);
uint32_t model_value_size(const struct size_model *m, gsl_rng *rng);

/* A gap, in multiples of whatever: the schedule scales them to its rate. */
double model_gap(enum gap_kind kind, gsl_rng *rng);

#endif /* BRUMM_MC_MODEL_H */
