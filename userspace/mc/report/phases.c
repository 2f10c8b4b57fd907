// SPDX-License-Identifier: GPL-2.0
/*
 * Before, while and after a neighbour acted. A slice of time of which a part was
 * while it acted counts as that; requests are in the slice of their intended
 * time, so that one which the neighbour delayed counts where it was sent.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "report.h"

static const char *const names[] = { "before", "during", "after" };

/* Slices [edge[k], edge[k + 1]) are those of phase k. */
struct phases {
	size_t edge[4];
	uint64_t slice_ns;
};

static uint64_t time_of(const json_t *j, const char *in, const char *key)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(j, in), key));
}

static bool find_phases(const struct group *g, size_t run, struct phases *p)
{
	const struct load *l = g->run + run;
	uint64_t start = time_of(l->doc, "time", "start_ns");
	uint64_t from = time_of(g->cell[run], "neighbour", "from_ns");
	uint64_t until = time_of(g->cell[run], "neighbour", "until_ns");
	size_t first, last;

	if (!from || from < start || until < from || !l->slice_ns)
		return false;
	first = (from - start) / l->slice_ns;
	last = (until - start) / l->slice_ns + 1;
	*p = (struct phases){
		.edge = { 0, first < l->slices ? first : l->slices,
			  last < l->slices ? last : l->slices, l->slices },
		.slice_ns = l->slice_ns,
	};
	return true;
}

static struct slice sum_of(const struct run_slices *run, size_t runs)
{
	struct slice sum = { 0 };
	size_t r, i;

	for (r = 0; r < runs; r++) {
		for (i = 0; i < run[r].count; i++) {
			sum.m += run[r].slice[i].m;
			sum.n += run[r].slice[i].n;
		}
	}
	return sum;
}

/* @low and @high: the slices of one phase, by run. */
static json_t *phase_json(const char *name, const struct run_slices *low,
			  const struct run_slices *high, size_t runs,
			  double seconds, const struct figures_opts *o)
{
	struct slice a = sum_of(low, runs), b = sum_of(high, runs);
	struct interval at;
	struct bootstrap boot;

	at = metric_hull(metric_clopper_pearson(a.m, a.n, o->confidence),
			 metric_clopper_pearson(b.m, b.n, o->confidence));
	metric_bootstrap(low, runs, 0, o->confidence, o->seed, &boot);
	at = metric_hull(at, boot.interval);
	metric_bootstrap(high, runs, 0, o->confidence, o->seed, &boot);
	at = metric_hull(at, boot.interval);
	return json_pack("{s:s, s:I, s:I, s:I, s:f, s:o, s:o}",
		"phase", name, "requests", (json_int_t)a.n,
		"outliers", (json_int_t)a.m, "outliers_upper", (json_int_t)b.m,
		"seconds", seconds,
		"op", figure_json(metric_op(a.m, a.n)),
		"op_interval", interval_json(at));
}

static json_t *threshold_json(const struct group *g, const struct phases *p,
			      const size_t *run, size_t runs, size_t t,
			      const struct figures_opts *o)
{
	struct run_slices *low = calloc(2 * runs, sizeof(*low)), *high = low + runs;
	json_t *list = json_array();
	double seconds;
	size_t i, k;

	for (k = 0; low && k < 3; k++) {
		for (i = 0, seconds = 0; i < runs; i++) {
			const struct load_threshold *at =
				g->run[run[i]].threshold + t;
			size_t from = p[i].edge[k], n = p[i].edge[k + 1] - from;

			low[i] = (struct run_slices){ at->low + from, n };
			high[i] = (struct run_slices){ at->high + from, n };
			seconds += (double)n * (double)p[i].slice_ns / 1e9;
		}
		json_array_append_new(list, phase_json(names[k], low, high, runs,
						       seconds, o));
	}
	free(low);
	return json_pack("{s:I, s:o}", "t_ns",
			 (json_int_t)g->run->threshold[t].all.t_ns,
			 "phases", list);
}

json_t *phases_json(const struct group *g, const struct figures_opts *o)
{
	struct phases *p = calloc(g->runs + 1, sizeof(*p));
	size_t *run = calloc(g->runs + 1, sizeof(*run)), i, n = 0;
	json_t *list = NULL;

	for (i = 0; p && run && i < g->runs; i++) {
		if (find_phases(g, i, p + n))
			run[n++] = i;
	}
	if (n) {
		list = json_array();
		for (i = 0; i < g->run->thresholds; i++)
			json_array_append_new(list,
					      threshold_json(g, p, run, n, i, o));
	}
	free(p);
	free(run);
	return list;
}

static void add_mark(json_t *marks, double at, const char *label)
{
	json_array_append_new(marks, json_pack("{s:f, s:s}", "x", at,
					       "label", label));
}

json_t *timeline_json(const struct group *g, size_t t, json_t **marks)
{
	const struct load *l = g->run;
	uint64_t start = time_of(l->doc, "time", "start_ns");
	uint64_t from = time_of(g->cell[0], "neighbour", "from_ns");
	uint64_t until = time_of(g->cell[0], "neighbour", "until_ns");
	json_t *points = json_array();
	size_t i;

	for (i = 0; i < l->slices; i++) {
		const struct slice *s = l->threshold[t].low + i;

		if (s->n)
			json_array_append_new(points, json_pack("[f, f]",
				((double)i + 0.5) * (double)l->slice_ns / 1e9,
				100 * metric_op(s->m, s->n)));
	}
	*marks = json_array();
	if (from >= start && from) {
		add_mark(*marks, (double)(from - start) / 1e9, "begins");
		add_mark(*marks, (double)(until - start) / 1e9, "over");
	}
	return points;
}
