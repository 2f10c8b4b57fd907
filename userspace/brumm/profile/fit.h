/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Terms of Eq. 1 from whole operations.
 *
 * An operation takes
 *
 *	ns = sum over terms of count[term] * ns[term]
 *
 * The mean of each term is a robust, non-negative fit of that to operations of
 * many shapes and sizes. Residuals count relative to the operation, since it
 * is the ratio of expected to measured that a budget is judged by.
 */
#ifndef BRUMM_FIT_H
#define BRUMM_FIT_H

#include <stddef.h>

enum fit_term {
	FIT_SYSCALL,		/* the caller's side: calls made */
	FIT_LOOKUP,
	FIT_MAP,
	FIT_PT,
	FIT_DEEP,
	FIT_TERMS,
};

/* Names as in brumm.price, and "syscall". */
extern const char *const fit_names[FIT_TERMS];

/* One operation, or the mean of several that are alike. */
struct fit_run {
	double count[FIT_TERMS];
	double ns;
};

/**
 * struct fit - what fit_terms() finds
 * @n: runs
 * @ns: mean of each term
 * @error: half of the 95 % interval of it
 * @spread: standard deviation of measured / fitted, robust
 * @least, @most: of measured / fitted
 */
struct fit {
	size_t n;
	double ns[FIT_TERMS];
	double error[FIT_TERMS];
	double spread;
	double least, most;
};

/**
 * fit_terms() - fit the terms to runs
 * @runs: the runs; shapes must differ in the proportions of their counts
 * @n: how many
 * @fixed: terms that are known from elsewhere, or NaN; NULL: none is
 * @fit: out
 *
 * Returns 0; -EINVAL: there are too few runs, or they do not tell the terms
 * apart; -ENOMEM.
 */
int fit_terms(const struct fit_run *runs, size_t n,
	      const double fixed[FIT_TERMS], struct fit *fit);

/* What @ns predict for a run. */
double fit_predict(const double ns[FIT_TERMS], const struct fit_run *run);

#endif /* BRUMM_FIT_H */
