// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "../../cli.h"
#include "living.h"

/* The smaller size is such a part of the larger. */
#define SMALLER	4

static void add_cells(struct living_result *r, const struct living_options *o,
		      const struct living_shape *s)
{
	const unsigned int sizes[] = { s->n / SMALLER, s->n };
	unsigned int i, state;

	for (i = 0; i < (o->quick ? 1 : ARRAY_SIZE(sizes)); i++) {
		if (!sizes[i] && s->n != 1)
			continue;
		for (state = 0; state < MEASURE_STATES; state++) {
			if (o->states & 1u << state)
				r->cells[r->nr++] = (struct living_cell){
					.shape = s, .state = state,
					.n = sizes[i] ? sizes[i] : 1,
				};
		}
		/* There is no part of one. */
		if (s->n == 1)
			break;
	}
}

static int plan(struct living_result *r, const struct living_options *o)
{
	size_t i;

	r->cells = calloc(living_shapes_nr * 2 * MEASURE_STATES,
			  sizeof(*r->cells));
	if (!r->cells)
		return -ENOMEM;
	for (i = 0; i < living_shapes_nr; i++)
		add_cells(r, o, &living_shapes[i]);
	for (i = 0; i < r->nr; i++) {
		r->cells[i].took = calloc(o->repeat, sizeof(struct kill_took));
		if (!r->cells[i].took)
			return -ENOMEM;
	}
	return 0;
}

void living_free(struct living_result *r)
{
	size_t i;

	for (i = 0; r->cells && i < r->nr; i++)
		free(r->cells[i].took);
	free(r->cells);
	r->cells = NULL;
	r->nr = 0;
}

/* ---- measuring ---------------------------------------------------------- */

/* The first round counts, and finds everything cold. */
static int run_cell(struct killer *k, struct living_cell *c, unsigned int round)
{
	struct kill_took took;
	int err;

	if (c->left_out)
		return 0;
	err = kill_once(k, c->shape, c->n, c->state == MEASURE_IDLE, 0,
			round ? NULL : &c->counts, &took);
	/* Not there, not permitted, too big: then its kinds keep their prices. */
	if (err && err != -EINTR && !round) {
		c->left_out = err;
		return 0;
	}
	if (!err && round && took.work > 0)
		c->took[c->nr++] = took;
	return err;
}

static int run_all(struct killer *k, const struct living_options *o,
		   struct living_result *r)
{
	unsigned int round;
	int err = 0;
	size_t i;

	for (round = 0; round <= o->repeat && !err; round++) {
		for (i = 0; i < r->nr && !err; i++) {
			if (o->progress)
				o->progress(round * r->nr + i,
					    (o->repeat + 1) * r->nr);
			err = cli_signal() ? -EINTR :
			      run_cell(k, &r->cells[i], round);
			if (err && err != -EINTR)
				cli_fail(err, "shape %s of %u",
					 r->cells[i].shape->name, r->cells[i].n);
		}
	}
	return err;
}

static double median(double *v, size_t n)
{
	gsl_sort(v, 1, n);
	return n ? gsl_stats_median_from_sorted_data(v, 1, n) : 0;
}

/* Of what @offset in a struct kill_took says. */
static double median_of(const struct kill_took *took, size_t n, size_t offset)
{
	double *v = calloc(n + 1, sizeof(*v)), m = NAN;
	size_t i;

	for (i = 0; v && i < n; i++)
		memcpy(&v[i], (const char *)&took[i] + offset, sizeof(*v));
	if (v)
		m = median(v, n);
	free(v);
	return m;
}

#define MEDIAN(took, n, member)						\
	median_of(took, n, offsetof(struct kill_took, member))

static const struct living_shape *shape_called(const char *name)
{
	size_t i = 0;

	while (i < living_shapes_nr && strcmp(living_shapes[i].name, name))
		i++;
	return i < living_shapes_nr ? &living_shapes[i] : NULL;
}

/* How much less time it takes on more CPUs. */
static int run_walls(struct killer *k, const struct living_options *o,
		     struct living_result *r)
{
	const struct living_shape *mix = shape_called("mix");
	long most = sysconf(_SC_NPROCESSORS_ONLN);
	struct kill_took *took = calloc(o->repeat, sizeof(*took));
	unsigned int cpus, i;
	int err = took ? 0 : -ENOMEM;

	for (cpus = 1; cpus <= (unsigned int)most && !err &&
	     r->nr_walls < LIVING_WALLS; cpus *= 2) {
		for (i = 0; i < o->repeat && !err; i++)
			err = cli_signal() ? -EINTR :
			      kill_once(k, mix, mix->n, false, cpus, NULL,
					&took[i]);
		if (!err)
			r->walls[r->nr_walls++] = (struct living_wall){
				.cpus = cpus,
				.wall = MEDIAN(took, o->repeat, wall),
				.work = MEDIAN(took, o->repeat, work),
			};
	}
	free(took);
	return err;
}

/* ---- prices ------------------------------------------------------------- */

static int solve(struct living_result *r)
{
	struct solve_row *runs, *cells;
	size_t i, k, nr = 0, all = 0;
	int err;

	for (i = 0; i < r->nr; i++)
		all += r->cells[i].nr;
	runs = calloc(all + 1, sizeof(*runs));
	cells = calloc(r->nr + 1, sizeof(*cells));
	all = 0;
	for (i = 0; runs && cells && i < r->nr; i++) {
		struct living_cell *c = &r->cells[i];

		if (!c->nr)
			continue;
		c->work = MEDIAN(c->took, c->nr, work);
		cells[nr].count = c->counts;
		cells[nr].cover = c->shape->cover;
		cells[nr++].ns = c->work;
		for (k = 0; k < c->nr; k++) {
			runs[all].count = c->counts;
			runs[all++].ns = c->took[k].work;
		}
	}
	err = runs && cells ? solve_prices(runs, all, cells, nr, r->kinds.n,
					   &r->solved) : -ENOMEM;
	free(runs);
	free(cells);
	return err;
}

/* What kernel threads do after a kill, on average of the shapes of @kind. */
static double deferred_of(const struct living_result *r, int kind, double process)
{
	double sum = 0, n = 0, rest;
	size_t i;

	for (i = 0; i < r->nr; i++) {
		const struct living_cell *c = &r->cells[i];

		if (!c->nr || c->counts.n[kind] <= 0 ||
		    strcmp(c->shape->kind, r->kinds.name[kind]))
			continue;
		rest = MEDIAN(c->took, c->nr, deferred) - process *
		       kinds_get(&r->kinds, &c->counts, "process");
		sum += fmax(rest, 0) / c->counts.n[kind];
		n++;
	}
	return n > 0 ? fmin(sum / n, r->solved.price[kind]) : 0;
}

/* Which part of what a kind takes is done by kernel threads. */
static void find_deferred(struct living_result *r)
{
	int p = kinds_find(&r->kinds, "process"), k;
	double process = p < 0 ? 0 : deferred_of(r, p, 0);

	for (k = 0; k < (int)r->kinds.n; k++)
		r->deferred[k] = k == p ? process : deferred_of(r, k, process);
}

/* Killing and reaping, of what has many processes and little else. */
static void find_reap(struct living_result *r)
{
	size_t i;

	for (i = 0; i < r->nr; i++) {
		const struct living_cell *c = &r->cells[i];
		double n = kinds_get(&r->kinds, &c->counts, "process");

		if (c->nr && n > 0 && !strcmp(c->shape->name, "sleepers"))
			r->reap = fmax(r->reap,
				       MEDIAN(c->took, c->nr, reaper) / n);
	}
}

/*
 * The kernel counts mappings, and has to be on the safe side: each may be the
 * only one of its page. A program is taken to be one of those that were measured.
 */
static void find_prices(struct living_result *r)
{
	static const struct {
		const char *kind, *with;
	} pairs[] = { { "anon", "anon_page" }, { "shmem", "shmem_page" } };
	int mm = kinds_find(&r->kinds, "mm");
	int image = kinds_find(&r->kinds, "image");
	const struct living_cell *c;
	double images;
	size_t i;
	int k, p;

	memcpy(r->price, r->solved.price, sizeof(r->price));
	for (i = 0; i < ARRAY_SIZE(pairs); i++) {
		k = kinds_find(&r->kinds, pairs[i].kind);
		p = kinds_find(&r->kinds, pairs[i].with);
		if (k >= 0 && p >= 0)
			r->price[k] += r->price[p];
	}
	for (i = 0; i < r->nr && mm >= 0 && image >= 0; i++) {
		c = &r->cells[i];
		if (!c->nr || strcmp(c->shape->name, "programs"))
			continue;
		images = c->counts.n[image] / c->counts.n[mm];
		r->price[mm] = ceil(r->solved.price[mm] +
				    images * r->solved.price[image]);
	}
}

int living_measure(const struct living_options *o, struct living_result *r)
{
	struct killer k;
	int err;

	*r = (struct living_result){ .states = o->states, .repeat = o->repeat };
	err = kinds_read(o->root, &r->kinds);
	if (!err && !r->kinds.n)
		err = -EOPNOTSUPP;
	kinds_extend(&r->kinds);
	if (!err)
		err = plan(r, o);
	if (err)
		return err;
	err = killer_open(&k, o->group, &r->kinds);
	r->rate = k.rate;
	if (!err)
		err = run_all(&k, o, r);
	if (!err)
		err = run_walls(&k, o, r);
	killer_close(&k);
	if (!err)
		err = solve(r);
	if (err)
		return err;
	find_prices(r);
	find_deferred(r);
	find_reap(r);
	return 0;
}
