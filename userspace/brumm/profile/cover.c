// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glpk.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "../cli.h"
#include "cover.h"

/* Runs beyond so many standard deviations from the others do not count, */
#define NEAR	4.0
/* nor do those that are off by such a share, if all are. */
#define NEAR_MOST	0.25
/*
 * Nor do those that took so many times what is fitted, even if most of a shape
 * did: a reclaim that comes soon after another waits for a tick or two.
 */
#define FAR	3.0
/* So many times what is fitted do mappings take that stand apart, at most. */
#define APART	4.0
/*
 * Runs that are yet to come are not the same, and some are interrupted: one of 1,200
 * of the usual shapes took 8 % more than those alike (6.1, instructions).
 */
#define MARGIN	1.08
/* Of a normal distribution: standard deviation / median absolute deviation. */
#define SD_PER_MAD	1.4826

/* Where runs are, as measured / expected, and how far from there they count. */
struct ratio {
	double mid, near;
};

/*
 * The median of the half of the runs that are closest together: who is
 * interrupted takes longer by some amount or other, who is not takes the same.
 */
static double densest(const double *v, size_t n)
{
	size_t half = n / 2 + 1, i, best = 0;

	for (i = 1; i + half <= n; i++) {
		if (v[i + half - 1] - v[i] < v[best + half - 1] - v[best])
			best = i;
	}
	return gsl_stats_median_from_sorted_data(v + best, 1, half);
}

static int ratio_of(const struct fit_run *runs, size_t n,
		    const double ns[FIT_TERMS], struct ratio *r)
{
	double *v = calloc(2 * n, sizeof(*v));
	size_t i;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		v[i] = runs[i].ns / fit_predict(ns, &runs[i]);
	gsl_sort(v, 1, n);
	r->mid = densest(v, n);
	for (i = 0; i < n; i++)
		v[n + i] = fabs(v[i] - r->mid);
	r->near = NEAR * SD_PER_MAD * gsl_stats_median(v + n, 1, n);
	r->near = fmin(r->near, NEAR_MOST * r->mid) + 0.001;
	free(v);
	return 0;
}

/* Over all runs; the spread only of the usual shapes. */
static int judge_all(const struct measure *m, struct cover *c)
{
	size_t n = 0, all = 0, above = 0, i, k;
	double *v;

	for (i = 0; i < m->nr; i++)
		all += m->cells[i].apart ? 0 : m->cells[i].n;
	v = calloc(2 * all + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < m->nr; i++) {
		const struct measure_cell *cell = &m->cells[i];

		for (k = 0; k < cell->n && !cell->apart; k++) {
			double r = cell->runs[k].ns /
				   fit_predict(c->price, &cell->runs[k]);

			above += r > 1;
			if (cell->usual)
				v[n++] = r;
		}
	}
	gsl_sort(v, 1, n);
	c->p99 = gsl_stats_quantile_from_sorted_data(v, 1, n, 0.99);
	c->spread = SD_PER_MAD * gsl_stats_mad0(v, 1, n, v + n);
	c->above = (double)above / (double)all;
	free(v);
	return 0;
}

int cover_judge(const struct measure *m, const double price[FIT_TERMS],
		struct cover *c)
{
	struct ratio r;
	size_t i;
	int err = 0;

	*c = (struct cover){ .least = INFINITY };
	memcpy(c->price, price, sizeof(c->price));
	for (i = 0; i < m->nr && !err; i++) {
		const struct measure_cell *cell = &m->cells[i];

		if (!cell->n || cell->apart)
			continue;
		err = ratio_of(cell->runs, cell->n, price, &r);
		if (1 / r.mid < c->least) {
			c->least = 1 / r.mid;
			c->dearest = cell;
		}
		if (1 / r.mid > c->most) {
			c->most = 1 / r.mid;
			c->cheapest = cell;
		}
		if (cell->usual)
			c->usual_most = fmax(c->usual_most, 1 / r.mid);
	}
	if (!err && !c->dearest)
		err = -EINVAL;
	return err ? err : judge_all(m, c);
}

/* ---- the linear program ------------------------------------------------- */

/* Columns: a price each of what the kernel counts, t and u behind them. */
enum { COLUMN_T = FIT_TERMS, COLUMN_U, COLUMNS = COLUMN_U };

/* So much less than t does u count. */
#define U_WEIGHT	0.001

/* Column of a term; those of the caller's side are no variables. */
static int column(int t)
{
	return t;	/* glpk counts from 1, and FIT_SYSCALL is 0 */
}

static void add_row(glp_prob *lp, const struct fit_run *run, double fixed,
		    double least, bool usual)
{
	int index[COLUMNS + 1], t, n = 0, row = glp_add_rows(lp, 2);
	double value[COLUMNS + 1];

	/* Relative to what was measured. */
	for (t = FIT_SYSCALL + 1; t < FIT_TERMS; t++) {
		index[++n] = column(t);
		value[n] = run->count[t] / run->ns;
	}
	glp_set_mat_row(lp, row, n, index, value);
	glp_set_row_bnds(lp, row, GLP_LO, least - fixed / run->ns, 0);
	index[++n] = usual ? COLUMN_T : COLUMN_U;
	value[n] = -1;
	glp_set_mat_row(lp, row + 1, n, index, value);
	glp_set_row_bnds(lp, row + 1, GLP_UP, 0, -fixed / run->ns);
}

/* All runs of a cell that are near its others; others are added to *@far. */
static int add_cell(glp_prob *lp, const struct measure_cell *c,
		    const double ns[FIT_TERMS], bool tight, size_t *far)
{
	double most = c->apart ? FAR * APART : FAR;
	struct ratio r;
	size_t i;
	int err;

	if (!c->n)
		return 0;
	err = ratio_of(c->runs, c->n, ns, &r);
	for (i = 0; i < c->n && !err; i++) {
		const struct fit_run *run = &c->runs[i];
		double expected = fit_predict(ns, run);

		if (fabs(run->ns / expected - r.mid) > r.near) {
			++*far;
			continue;
		}
		if (run->ns <= most * expected)
			add_row(lp, run, ns[FIT_SYSCALL] *
				run->count[FIT_SYSCALL], MARGIN, tight);
	}
	return err;
}

static glp_prob *program(const double ns[FIT_TERMS])
{
	glp_prob *lp = glp_create_prob();
	int t;

	glp_set_obj_dir(lp, GLP_MIN);
	glp_add_cols(lp, COLUMNS);
	for (t = FIT_SYSCALL + 1; t < FIT_TERMS; t++) {
		glp_set_col_bnds(lp, column(t), GLP_LO, 1, 0);
		/* Of solutions that are as good, the one with lower prices. */
		glp_set_obj_coef(lp, column(t), 1e-3 / fmax(ns[t], 1));
	}
	/* Few runs tell of it, and perhaps none does that was not disturbed. */
	glp_set_col_bnds(lp, column(FIT_LOOKUP), GLP_LO,
			 fmax(ns[FIT_LOOKUP], 1), 0);
	glp_set_col_bnds(lp, COLUMN_T, GLP_LO, 1, 0);
	glp_set_obj_coef(lp, COLUMN_T, 1);
	glp_set_col_bnds(lp, COLUMN_U, GLP_LO, 1, 0);
	glp_set_obj_coef(lp, COLUMN_U, U_WEIGHT);
	return lp;
}

/* What a mapping takes that stands apart is of the node, not of its pages. */
static void fix_pages(glp_prob *lp, const double usual[FIT_TERMS])
{
	static const int fixed[] = { FIT_PT, FIT_DEEP };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fixed); i++)
		glp_set_col_bnds(lp, column(fixed[i]), GLP_FX, usual[fixed[i]],
				 usual[fixed[i]]);
}

/*
 * Prices, from the runs that do not take far more than what is fitted. @usual: NULL,
 * or the usual prices, if those are wanted that hold for what stands apart, too,
 * and are near that.
 */
static int solve(const struct measure *m, const double ns[FIT_TERMS],
		 const double *usual, double price[FIT_TERMS], double *noise)
{
	glp_prob *lp = program(ns);
	size_t i, far = 0, all = 0;
	glp_smcp how;
	int t, err = 0;

	if (usual)
		fix_pages(lp, usual);
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	for (i = 0; i < m->nr && !err; i++) {
		const struct measure_cell *c = &m->cells[i];

		if (c->apart && !usual)
			continue;
		err = add_cell(lp, c, ns, usual ? c->apart : c->usual, &far);
		all += c->n;
	}
	if (!err && (!glp_get_num_rows(lp) || glp_simplex(lp, &how) ||
		     glp_get_status(lp) != GLP_OPT))
		err = -EINVAL;
	price[FIT_SYSCALL] = ceil(ns[FIT_SYSCALL]);
	for (t = FIT_SYSCALL + 1; t < FIT_TERMS && !err; t++)
		price[t] = ceil(glp_get_col_prim(lp, column(t)));
	glp_delete_prob(lp);
	*noise = all ? (double)far / (double)all : 0;
	return err;
}

/* What is apart, by the prices for that. */
static int judge_worst(const struct measure *m, struct cover *c)
{
	struct ratio r;
	size_t i;
	int err = 0;

	c->worst_least = INFINITY;
	for (i = 0; i < m->nr && !err; i++) {
		const struct measure_cell *cell = &m->cells[i];

		if (!cell->n || !cell->apart)
			continue;
		err = ratio_of(cell->runs, cell->n, c->worst, &r);
		c->worst_least = fmin(c->worst_least, 1 / r.mid);
		c->worst_most = fmax(c->worst_most, 1 / r.mid);
	}
	return err;
}

int cover(const struct measure *m, const struct measure *by,
	  const double ns[FIT_TERMS], struct cover *c)
{
	double price[FIT_TERMS], worst[FIT_TERMS], noise, ignored;
	int err = solve(by, ns, NULL, price, &noise);

	if (!err)
		err = solve(by, ns, price, worst, &ignored);
	if (!err)
		err = cover_judge(m, price, c);
	if (err)
		return err;
	c->noise = noise;
	memcpy(c->worst, worst, sizeof(worst));
	return judge_worst(m, c);
}
