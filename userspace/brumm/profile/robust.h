/* SPDX-License-Identifier: GPL-2.0 */
/* A linear problem that some wrong measurements do not spoil. */
#ifndef BRUMM_ROBUST_H
#define BRUMM_ROBUST_H

#include <gsl/gsl_multifit.h>

/**
 * struct robust - find @c so that @x * @c is near @y
 * @n: rows
 * @terms: columns
 * @x: what is known of each row, to be filled in
 * @cov: covariances of @c
 * @y: what was measured, to be filled in
 * @c: what is looked for
 * @w: GSL's
 */
struct robust {
	size_t n, terms;
	gsl_matrix *x, *cov;
	gsl_vector *y, *c;
	gsl_multifit_robust_workspace *w;
};

/* Memory for @n and @terms, which are set. robust_free() after a failure, too. */
int robust_alloc(struct robust *r);
void robust_free(struct robust *r);

/* By bisquare weights. 0, or -EINVAL: there is no answer. */
int robust_solve(struct robust *r);

#endif /* BRUMM_ROBUST_H */
