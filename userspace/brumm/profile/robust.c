// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_errno.h>

#include "robust.h"

int robust_alloc(struct robust *r)
{
	r->x = gsl_matrix_alloc(r->n, r->terms);
	r->cov = gsl_matrix_alloc(r->terms, r->terms);
	r->y = gsl_vector_alloc(r->n);
	r->c = gsl_vector_alloc(r->terms);
	r->w = gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, r->n,
					 r->terms);
	return r->x && r->cov && r->y && r->c && r->w ? 0 : -ENOMEM;
}

void robust_free(struct robust *r)
{
	gsl_matrix_free(r->x);
	gsl_matrix_free(r->cov);
	gsl_vector_free(r->y);
	gsl_vector_free(r->c);
	if (r->w)
		gsl_multifit_robust_free(r->w);
}

int robust_solve(struct robust *r)
{
	int status;

	gsl_multifit_robust_maxiter(1000, r->w);
	status = gsl_multifit_robust(r->x, r->y, r->c, r->cov, r->w);
	/* Without a residual left the weights never settle. */
	return status && status != GSL_EMAXITER ? -EINVAL : 0;
}
