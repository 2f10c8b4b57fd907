// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <string.h>

#include "../robust.h"
#include "solve.h"

/* Half of the 95 % interval / standard error. */
#define Z95		1.96
/* Kills that are yet to come are not the same. */
#define MARGIN		1.05
/* How far a price may be from what is fitted. */
#define PRICE_LEAST	0.9
#define PRICE_MOST	1.6
/* What a price beyond that by the fit counts, against expected / measured. */
#define BEYOND_WEIGHT	0.02

/* ---- the fit ------------------------------------------------------------ */

/* The kinds that are still to be found. */
struct problem {
	const struct solve_row *rows;
	struct robust r;
	int term[KINDS_MOST];
	double scale[KINDS_MOST];
};

/* Each row divided by its time, each column by its greatest value. */
static void problem_fill(struct problem *p)
{
	size_t i, k;

	for (k = 0; k < p->r.terms; k++) {
		p->scale[k] = 0;
		for (i = 0; i < p->r.n; i++)
			p->scale[k] = fmax(p->scale[k],
					   p->rows[i].count.n[p->term[k]] /
					   p->rows[i].ns);
	}
	for (i = 0; i < p->r.n; i++) {
		gsl_vector_set(p->r.y, i, 1);
		for (k = 0; k < p->r.terms; k++)
			gsl_matrix_set(p->r.x, i, k,
				       p->rows[i].count.n[p->term[k]] /
				       p->rows[i].ns / p->scale[k]);
	}
}

/* One fit; *@worst: place of the most negative term, or -1. */
static int fit_once(struct problem *p, struct solved *s, int *worst)
{
	int err = robust_alloc(&p->r);
	double least = 0;
	size_t k;

	*worst = -1;
	if (err)
		goto out;
	problem_fill(p);
	err = robust_solve(&p->r);
	if (err)
		goto out;
	for (k = 0; k < p->r.terms; k++) {
		double v = gsl_vector_get(p->r.c, k);
		double var = gsl_matrix_get(p->r.cov, k, k);

		if (!isfinite(v)) {
			err = -EINVAL;
			break;
		}
		s->mean[p->term[k]] = v / p->scale[k];
		s->error[p->term[k]] = var > 0 ?
				       Z95 * sqrt(var) / p->scale[k] : 0;
		/* By its share of what it explains, not by its unit. */
		if (v < least) {
			least = v;
			*worst = (int)k;
		}
	}
out:
	robust_free(&p->r);
	return err;
}

/*
 * Non-negative: what comes out below zero is set to zero and the others are
 * fitted again without it.
 */
static int fit(const struct solve_row *runs, size_t n, size_t kinds,
	       struct solved *s)
{
	struct problem p = { .rows = runs, .r.n = n };
	int worst = 0, err = 0;
	size_t i, k;

	for (k = 0; k < kinds; k++) {
		for (i = 0; i < n && !s->used[k]; i++)
			s->used[k] = runs[i].count.n[k] > 0;
		if (s->used[k])
			p.term[p.r.terms++] = (int)k;
	}
	if (!p.r.terms || n <= p.r.terms)
		return -EINVAL;
	while (!err && p.r.terms) {
		err = fit_once(&p, s, &worst);
		if (err || worst < 0)
			break;
		s->mean[p.term[worst]] = s->error[p.term[worst]] = 0;
		p.term[worst] = p.term[--p.r.terms];
	}
	return err;
}

/* ---- prices ------------------------------------------------------------- */

/*
 * Columns: of each kind its price, and behind these by how much each exceeds
 * what it may, in parts of the fit. glpk counts from 1.
 */
struct columns {
	int n;
	int kind[KINDS_MOST];
	/* Of all cells: what one ns of the price adds to expected / measured. */
	double weight[KINDS_MOST];
};

static int price_column(int i)
{
	return 1 + i;
}

static int beyond_column(const struct columns *c, int i)
{
	return 1 + c->n + i;
}

static void add_columns(glp_prob *lp, const struct columns *c,
			const struct solved *s)
{
	int i, row, index[3];
	double value[3], mean, scale;

	glp_add_cols(lp, 2 * c->n);
	for (i = 0; i < c->n; i++) {
		mean = fmax(s->mean[c->kind[i]], 1);
		/* What the fit does not know well may be farther from it. */
		scale = fmax(mean, s->error[c->kind[i]]);
		glp_set_col_bnds(lp, price_column(i), GLP_LO,
				 fmax(PRICE_LEAST * mean, 1), 0);
		glp_set_obj_coef(lp, price_column(i), c->weight[i]);
		glp_set_col_bnds(lp, beyond_column(c, i), GLP_LO, 0, 0);
		glp_set_obj_coef(lp, beyond_column(c, i), BEYOND_WEIGHT);
		row = glp_add_rows(lp, 1);
		index[1] = price_column(i);
		value[1] = 1;
		index[2] = beyond_column(c, i);
		value[2] = -scale;
		glp_set_mat_row(lp, row, 2, index, value);
		glp_set_row_bnds(lp, row, GLP_UP, 0, PRICE_MOST * mean);
	}
}

static void add_cell(glp_prob *lp, const struct columns *c,
		     const struct solve_row *cell)
{
	int index[KINDS_MOST + 1], i, n = 0, row = glp_add_rows(lp, 1);
	double value[KINDS_MOST + 1], v;

	for (i = 0; i < c->n; i++) {
		v = cell->count.n[c->kind[i]] / cell->ns;
		if (v > 0) {
			index[++n] = price_column(i);
			value[n] = v;
		}
	}
	glp_set_mat_row(lp, row, n, index, value);
	glp_set_row_bnds(lp, row, GLP_LO, MARGIN * cell->cover, 0);
}

static int cover_cells(const struct solve_row *cells, size_t n, size_t kinds,
		       struct solved *s)
{
	glp_prob *lp = glp_create_prob();
	struct columns c = { 0 };
	glp_smcp how;
	size_t i, k;
	int err = 0;

	for (k = 0; k < kinds; k++) {
		if (!s->used[k])
			continue;
		for (i = 0; i < n; i++)
			c.weight[c.n] += cells[i].count.n[k] / cells[i].ns /
					 (double)n;
		c.kind[c.n++] = (int)k;
	}
	glp_set_obj_dir(lp, GLP_MIN);
	add_columns(lp, &c, s);
	for (i = 0; i < n; i++)
		add_cell(lp, &c, &cells[i]);
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	if (glp_simplex(lp, &how) || glp_get_status(lp) != GLP_OPT)
		err = -EINVAL;
	for (i = 0; i < (size_t)c.n && !err; i++)
		s->price[c.kind[i]] =
			ceil(glp_get_col_prim(lp, price_column((int)i)));
	glp_delete_prob(lp);
	return err;
}

static void judge(const struct solve_row *cells, size_t n, size_t kinds,
		  struct solved *s)
{
	double sum;
	size_t i, k;

	s->least = INFINITY;
	s->most = 0;
	for (i = 0; i < n; i++) {
		for (k = 0, sum = 0; k < kinds; k++)
			sum += s->price[k] * cells[i].count.n[k];
		s->least = fmin(s->least, sum / cells[i].ns);
		s->most = fmax(s->most, sum / cells[i].ns);
	}
}

int solve_prices(const struct solve_row *runs, size_t nr_runs,
		 const struct solve_row *cells, size_t nr_cells, size_t kinds,
		 struct solved *s)
{
	gsl_error_handler_t *handler = gsl_set_error_handler_off();
	int err;

	*s = (struct solved){ 0 };
	err = fit(runs, nr_runs, kinds, s);
	gsl_set_error_handler(handler);
	if (!err)
		err = cover_cells(cells, nr_cells, kinds, s);
	if (!err)
		judge(cells, nr_cells, kinds, s);
	return err;
}
