// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fit.h"
#include "robust.h"

const char *const fit_names[FIT_TERMS] = {
	[FIT_SYSCALL] = "syscall",
	[FIT_LOOKUP] = "lookup",
	[FIT_MAP] = "map",
	[FIT_PT] = "pt",
	[FIT_DEEP] = "deep",
};

/* Of a normal distribution: standard deviation / median absolute deviation. */
#define SD_PER_MAD	1.4826
/* Half of the 95 % interval / standard error. */
#define Z95		1.96

double fit_predict(const double ns[FIT_TERMS], const struct fit_run *run)
{
	double sum = 0;
	int t;

	for (t = 0; t < FIT_TERMS; t++)
		sum += ns[t] * run->count[t];
	return sum;
}

/* The problem for the terms that are still to be found. */
struct problem {
	struct robust r;
	enum fit_term term[FIT_TERMS];
	double scale[FIT_TERMS];
};

/* Each row divided by the run's time, each column by its greatest value. */
static void problem_fill(struct problem *p, const struct fit_run *runs,
			 const double known[FIT_TERMS])
{
	size_t i, k;

	for (k = 0; k < p->r.terms; k++) {
		p->scale[k] = 0;
		for (i = 0; i < p->r.n; i++)
			p->scale[k] = fmax(p->scale[k],
					   runs[i].count[p->term[k]] /
					   runs[i].ns);
	}
	for (i = 0; i < p->r.n; i++) {
		gsl_vector_set(p->r.y, i, 1 - fit_predict(known, &runs[i]) /
					    runs[i].ns);
		for (k = 0; k < p->r.terms; k++)
			gsl_matrix_set(p->r.x, i, k, runs[i].count[p->term[k]] /
						   runs[i].ns / p->scale[k]);
	}
}

/* One fit of the terms in @p; *@worst: place of the most negative one, or -1. */
static int solve(struct problem *p, const struct fit_run *runs,
		 const double known[FIT_TERMS], struct fit *fit, int *worst)
{
	int err = robust_alloc(&p->r);
	size_t k;

	*worst = -1;
	if (err)
		goto out;
	problem_fill(p, runs, known);
	err = robust_solve(&p->r);
	if (err)
		goto out;
	for (k = 0; k < p->r.terms; k++) {
		double ns = gsl_vector_get(p->r.c, k) / p->scale[k];
		double var = gsl_matrix_get(p->r.cov, k, k);

		if (!isfinite(ns) || !isfinite(var)) {
			err = -EINVAL;
			break;
		}
		fit->ns[p->term[k]] = ns;
		fit->error[p->term[k]] = Z95 * sqrt(var) / p->scale[k];
		if (ns < 0 && (*worst < 0 ||
			       ns < fit->ns[p->term[*worst]]))
			*worst = (int)k;
	}
out:
	robust_free(&p->r);
	return err;
}

/* Are the columns of @runs for @p's terms independent of each other? */
static bool tells_apart(struct problem *p, const struct fit_run *runs)
{
	static const double nothing[FIT_TERMS];
	gsl_vector *s = gsl_vector_alloc(p->r.terms);
	gsl_vector *work = gsl_vector_alloc(p->r.terms);
	gsl_matrix *v = gsl_matrix_alloc(p->r.terms, p->r.terms);
	bool ok = false;

	if (!robust_alloc(&p->r) && s && work && v) {
		problem_fill(p, runs, nothing);
		ok = !gsl_linalg_SV_decomp(p->r.x, v, s, work) &&
		     gsl_vector_get(s, p->r.terms - 1) >
			     1e-4 * gsl_vector_get(s, 0);
	}
	gsl_vector_free(s);
	gsl_vector_free(work);
	gsl_matrix_free(v);
	robust_free(&p->r);
	return ok;
}

/* The quality of the fit: of measured / fitted over all runs. */
static int judge(const struct fit_run *runs, size_t n, struct fit *fit)
{
	double *ratio = calloc(n, sizeof(*ratio)), *work;
	size_t i;

	work = calloc(n, sizeof(*work));
	if (!ratio || !work) {
		free(ratio);
		free(work);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		ratio[i] = runs[i].ns / fit_predict(fit->ns, &runs[i]);
	gsl_stats_minmax(&fit->least, &fit->most, ratio, 1, n);
	fit->spread = SD_PER_MAD * gsl_stats_mad0(ratio, 1, n, work);
	free(ratio);
	free(work);
	return 0;
}

static bool occurs(const struct fit_run *runs, size_t n, enum fit_term t)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (runs[i].count[t] > 0)
			return true;
	}
	return false;
}

/*
 * Non-negative: what comes out below zero is set to zero and the others are
 * fitted again without it, which ends after as many turns as there are terms.
 */
int fit_terms(const struct fit_run *runs, size_t n,
	      const double fixed[FIT_TERMS], struct fit *fit)
{
	gsl_error_handler_t *handler = gsl_set_error_handler_off();
	struct problem p = { .r.n = n };
	double known[FIT_TERMS] = { 0 };
	int t, worst = -1, err = 0;

	*fit = (struct fit){ .n = n };
	for (t = 0; t < FIT_TERMS; t++) {
		if (fixed && !isnan(fixed[t]))
			fit->ns[t] = known[t] = fixed[t];
		else if (occurs(runs, n, t))
			p.term[p.r.terms++] = t;
	}
	if (n <= p.r.terms || !p.r.terms || !tells_apart(&p, runs))
		err = -EINVAL;
	while (!err && p.r.terms) {
		err = solve(&p, runs, known, fit, &worst);
		if (err || worst < 0)
			break;
		fit->ns[p.term[worst]] = fit->error[p.term[worst]] = 0;
		p.term[worst] = p.term[--p.r.terms];
	}
	gsl_set_error_handler(handler);
	return err ? err : judge(runs, n, fit);
}
