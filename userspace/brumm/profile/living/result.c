// SPDX-License-Identifier: GPL-2.0
/* What is told of the prices of the living. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../../cli.h"
#include "living.h"

static json_t *whole(double ns)
{
	return json_integer((json_int_t)(ns + 0.5));
}

/* Of each kind that was seen, the first @n: @v. */
static json_t *by_kind(const struct living_result *r, size_t n,
		       const double *v)
{
	json_t *j = json_object();
	size_t k;

	for (k = 0; k < n; k++) {
		if (r->solved.used[k])
			json_object_set_new(j, r->kinds.name[k], whole(v[k]));
	}
	return j;
}

static json_t *terms_json(const struct living_result *r)
{
	json_t *j = json_object();
	size_t k;

	for (k = 0; k < r->kinds.n; k++) {
		if (r->solved.used[k])
			json_object_set_new(j, r->kinds.name[k],
				json_pack("{s:f, s:f}",
					  "mean", r->solved.mean[k],
					  "error", r->solved.error[k]));
	}
	return j;
}

/* Kinds that no shape had: their prices stay as they were. */
static json_t *unseen_json(const struct living_result *r)
{
	json_t *j = json_array();
	size_t k;

	for (k = 0; k < r->kinds.known; k++) {
		if (!r->solved.used[k])
			json_array_append_new(j, json_string(r->kinds.name[k]));
	}
	return j;
}

static json_t *counts_json(const struct living_result *r,
			   const struct counts *c)
{
	json_t *j = json_object();
	size_t k;

	for (k = 0; k < r->kinds.n; k++) {
		if (c->n[k] > 0)
			json_object_set_new(j, r->kinds.name[k], whole(c->n[k]));
	}
	return j;
}

/* The medians of one cell come from its kill in the middle by work. */
static const struct kill_took *middle(const struct living_cell *c)
{
	const struct kill_took *best = c->took;
	size_t i;

	for (i = 1; i < c->nr; i++) {
		if (fabs(c->took[i].work - c->work) < fabs(best->work - c->work))
			best = &c->took[i];
	}
	return best;
}

static json_t *cell_json(const struct living_result *r,
			 const struct living_cell *c)
{
	json_t *j = json_pack("{s:s, s:I, s:s, s:I}", "shape", c->shape->name,
			      "n", (json_int_t)c->n,
			      "state", measure_states[c->state],
			      "kills", (json_int_t)c->nr);
	const struct kill_took *t = middle(c);

	if (!c->nr) {
		json_object_set_new(j, "left_out",
				    json_string(brumm_strerror(c->left_out)));
		return j;
	}
	json_object_set_new(j, "counts", counts_json(r, &c->counts));
	json_object_set_new(j, "work_ns", whole(c->work));
	json_object_set_new(j, "tasks_ns", whole(t->tasks));
	json_object_set_new(j, "reaper_ns", whole(t->reaper));
	json_object_set_new(j, "deferred_ns", whole(t->deferred));
	json_object_set_new(j, "wall_ns", whole(t->wall));
	json_object_set_new(j, "ratio",
			    json_real(counts_cost(&r->kinds, r->solved.price,
						  &c->counts) / c->work));
	return j;
}

static json_t *cells_json(const struct living_result *r)
{
	json_t *j = json_array();
	size_t i;

	for (i = 0; i < r->nr; i++)
		json_array_append_new(j, cell_json(r, &r->cells[i]));
	return j;
}

static json_t *walls_json(const struct living_result *r)
{
	json_t *j = json_array();
	size_t i;

	for (i = 0; i < r->nr_walls; i++)
		json_array_append_new(j, json_pack("{s:I, s:o, s:o}",
			"cpus", (json_int_t)r->walls[i].cpus,
			"wall_ns", whole(r->walls[i].wall),
			"work_ns", whole(r->walls[i].work)));
	return j;
}

json_t *living_json(const struct living_result *r)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:f, s:f}, s:o, s:o}",
			 "repeat", (json_int_t)r->repeat,
			 "prices", by_kind(r, r->kinds.known, r->price),
			 "parts", by_kind(r, r->kinds.n, r->solved.price),
			 "terms", terms_json(r),
			 "deferred", by_kind(r, r->kinds.n, r->deferred),
			 "unseen", unseen_json(r),
			 "reap_ns", whole(r->reap),
			 "rest_share", r->rate < 0 ? json_null() : json_real(r->rate),
			 "cover", "least", r->solved.least,
			 "most", r->solved.most,
			 "wall", walls_json(r), "shapes", cells_json(r));
}

static const struct living_cell *extreme(const struct living_result *r,
					 double sign)
{
	const struct living_cell *best = NULL;
	double most = -INFINITY, v;
	size_t i;

	for (i = 0; i < r->nr; i++) {
		const struct living_cell *c = &r->cells[i];

		if (!c->nr)
			continue;
		v = sign * counts_cost(&r->kinds, r->solved.price, &c->counts) /
		    c->work;
		if (v > most) {
			most = v;
			best = c;
		}
	}
	return best;
}

void living_print(const struct living_result *r)
{
	const struct living_cell *low = extreme(r, -1), *high = extreme(r, 1);
	size_t k, i;

	printf("%-10s %12s %12s %12s %12s %12s\n", "KIND (ns)", "MEAN",
	       "95 % (+-)", "DEFERRED", "PART", "PRICE");
	for (k = 0; k < r->kinds.n; k++) {
		if (r->solved.used[k])
			printf("%-10s %12.1f %12.1f %12.0f %12.0f %12.0f\n",
			       r->kinds.name[k], r->solved.mean[k],
			       r->solved.error[k], r->deferred[k],
			       r->solved.price[k],
			       k < r->kinds.known ? r->price[k] : 0);
		else
			printf("%-10s %12s %12s %12s %12s %12.0f (as it was)\n",
			       r->kinds.name[k], "-", "-", "-", "-",
			       r->kinds.price[k]);
	}
	if (low && high)
		printf("expected / measured work: %.2f (%s, %u) to %.2f (%s, %u)\n",
		       r->solved.least, low->shape->name, low->n,
		       r->solved.most, high->shape->name, high->n);
	for (i = 0; i < r->nr_walls; i++)
		printf("the mix on %u CPU%s: work %.2f ms, over after %.2f ms\n",
		       r->walls[i].cpus, r->walls[i].cpus > 1 ? "s" : "",
		       r->walls[i].work / 1e6, r->walls[i].wall / 1e6);
}

int living_set(const json_t *living, int root)
{
	const json_t *prices = json_object_get(living, "prices");
	struct brumm_price list[KINDS_MOST];
	unsigned int n = 0;
	struct kinds k;
	int err = kinds_read(root, &k);
	const char *name;
	json_t *v;

	if (err)
		return err;
	json_object_foreach((json_t *)prices, name, v) {
		/* Of a kind that the module in force does not have. */
		if (n < KINDS_MOST && json_integer_value(v) > 0 &&
		    kinds_find(&k, name) >= 0)
			list[n++] = (struct brumm_price){
				.kind = name,
				.ns = (uint64_t)json_integer_value(v),
			};
	}
	return n ? brumm_group_set_prices(root, list, n) : 0;
}
