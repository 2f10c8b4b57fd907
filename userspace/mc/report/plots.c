// SPDX-License-Identifier: GPL-2.0
/*
 * What is drawn. A figure has panels, a panel series; which axes of the study
 * become the panels and which the series follows from which ones vary.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { MAX_SERIES = 16, MAX_PANELS = 8 };

#define SHOWN_NS	1000000		/* op(1 ms), where one has to do */

static const bool no_axis[AXES];

/* The range of what is to be drawn; @least: above 0. */
struct range {
	double low, high, least;
};

#define RANGE_INIT { INFINITY, -INFINITY, INFINITY }

static void widen(struct range *r, double v)
{
	if (!isfinite(v))
		return;
	r->low = fmin(r->low, v);
	r->high = fmax(r->high, v);
	if (v > 0)
		r->least = fmin(r->least, v);
}

static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static double end(const json_t *j, const char *key, size_t i)
{
	const json_t *v = json_array_get(json_object_get(j, key), i);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* ---- panels --------------------------------------------------------------- */

/**
 * struct panels - of one figure while it is made
 * @list: the panels
 * @split: the axis that becomes panels; AXES: none
 * @left_out: series for which there was no room
 */
struct panels {
	json_t *list;
	int split;
	size_t left_out;
	struct range x, y;
};

/* Few values, and of a kind that one compares side by side. */
static int choose_split(const bool varied[AXES], const bool but[AXES])
{
	static const int order[] = { AXIS_NEIGHBOUR, AXIS_ISOLATION, AXIS_LANE,
				     AXIS_SCHEDULER, AXIS_MEMORY, AXIS_RATE,
				     AXIS_INSTANCES };
	size_t i;
	int a, n = 0, first = AXES;

	for (a = 0; a < AXES; a++)
		n += varied[a] && !but[a];
	for (i = 0; i < sizeof(order) / sizeof(*order) && first == AXES; i++) {
		if (varied[order[i]] && !but[order[i]])
			first = order[i];
	}
	/* With one axis the series are enough. */
	return n > 1 ? first : AXES;
}

static json_t *panel_for(struct panels *p, const struct group *g)
{
	bool only[AXES] = { false };
	char title[64] = "";
	json_t *panel;
	size_t i;

	if (p->split < AXES) {
		only[p->split] = true;
		group_label(g, only, NULL, title, sizeof(title));
	}
	json_array_foreach(p->list, i, panel) {
		if (!strcmp(json_string_value(json_object_get(panel, "title")), title))
			return panel;
	}
	if (json_array_size(p->list) == MAX_PANELS)
		return NULL;
	panel = json_pack("{s:s, s:[], s:[]}", "title", title, "series", "marks");
	json_array_append_new(p->list, panel);
	return panel;
}

/* The series of that label, made if there is room. */
static json_t *series_for(struct panels *p, json_t *panel, const char *label,
			  const char *style)
{
	json_t *list = json_object_get(panel, "series"), *s;
	size_t i;

	json_array_foreach(list, i, s) {
		if (!strcmp(json_string_value(json_object_get(s, "label")), label))
			return json_object_get(s, "points");
	}
	if (json_array_size(list) == MAX_SERIES) {
		p->left_out++;
		return NULL;
	}
	s = json_pack("{s:s, s:s, s:[]}", "label", label, "style", style, "points");
	json_array_append_new(list, s);
	return json_object_get(s, "points");
}

static json_t *points_for(struct panels *p, const struct group *g,
			  const bool varied[AXES], const bool but[AXES],
			  const char *style)
{
	bool more[AXES];
	char label[128];
	json_t *panel = panel_for(p, g);

	memcpy(more, but, sizeof(more));
	if (p->split < AXES)
		more[p->split] = true;
	group_label(g, varied, more, label, sizeof(label));
	if (panel)
		return series_for(p, panel, label, style);
	p->left_out++;
	return NULL;
}

/* [x, y, low, high], what is NaN as null. */
static void add_point(struct panels *p, json_t *points, double x, double y,
		      double low, double high)
{
	if (!points || !isfinite(y))
		return;
	json_array_append_new(points, json_pack("[f, f, o, o]", x, y,
						figure_json(low), figure_json(high)));
	widen(&p->x, x);
	widen(&p->y, y);
	widen(&p->y, low);
	widen(&p->y, high);
}

/* A proportion from 0 to 1 in percent. */
static void add_percent(struct panels *p, json_t *points, double x,
			const json_t *from, const char *key, const char *interval)
{
	add_point(p, points, x, 100 * number(from, key),
		  100 * end(from, interval, 0), 100 * end(from, interval, 1));
}

/* ---- figures -------------------------------------------------------------- */

static json_t *make_figure(struct panels *p, const char *id, const char *title,
			   const char *what, json_t *x, json_t *y)
{
	json_t *panel;
	size_t i;

	json_array_foreach(p->list, i, panel) {
		json_object_set(panel, "x", x);
		json_object_set(panel, "y", y);
	}
	json_decref(x);
	json_decref(y);
	return json_pack("{s:s, s:s, s:s, s:I, s:o}", "id", id, "title", title,
			 "what", what, "left_out", (json_int_t)p->left_out,
			 "panels", p->list);
}

/* Nothing to see: no figure. */
static json_t *give_up(struct panels *p)
{
	json_decref(p->list);
	return NULL;
}

/* Several decades want a logarithmic axis. */
static json_t *percent_axis(const struct range *y, const char *label)
{
	double least = y->least;

	if (!isfinite(least))
		return axis_linear(label, 0, 1);
	if (y->high / least < 20)
		return axis_linear(label, 0, y->high);
	return axis_log(label, fmax(least, 1e-4), fmin(y->high, 100));
}

static json_t *threshold_figure(const struct study_results *r, const json_t *cells,
				const bool varied[AXES])
{
	struct panels p = { json_array(), choose_split(varied, no_axis), 0,
			    RANGE_INIT, RANGE_INIT };
	size_t i, k;
	json_t *t;

	for (i = 0; i < r->groups; i++) {
		const json_t *cell = json_array_get(cells, i);
		json_t *points;

		if (!r->group[i].runs)
			continue;
		points = points_for(&p, r->group + i, varied, no_axis, "lines");
		json_array_foreach(json_object_get(json_object_get(cell, "figures"),
						   "thresholds"), k, t)
			add_percent(&p, points, number(t, "t_ns") / 1e3, t, "op",
				    "op_interval");
	}
	if (!isfinite(p.y.high))
		return give_up(&p);
	return make_figure(&p, "threshold", "Outlier proportion against the threshold",
		"Share of the requests that took longer than t from their intended time; "
		"bars are the interval. What is 0 stands at the end of a logarithmic axis.",
		p.x.high / p.x.low > 20 ? axis_log("t (us)", p.x.low, p.x.high) :
			axis_linear("t (us)", 0, p.x.high),
		percent_axis(&p.y, "op(t) (%)"));
}

/* The threshold nearest to 1 ms, and the least. */
static void two_thresholds(const struct study_results *r, size_t which[2])
{
	const struct group *g = r->group;
	size_t i;

	which[0] = which[1] = 0;
	while (g < r->group + r->groups && !g->runs)
		g++;
	if (g == r->group + r->groups)
		return;
	for (i = 0; i < g->run->thresholds; i++) {
		if (g->run->threshold[i].all.t_ns <= SHOWN_NS)
			which[1] = i;
	}
}

static const json_t *threshold_of(const json_t *cell, size_t t)
{
	return json_array_get(json_object_get(json_object_get(cell, "figures"),
					      "thresholds"), t);
}

enum against { OP, VALID, REDUCTION };

static void add_against(struct panels *p, json_t *points, double x,
			const json_t *t, enum against what)
{
	const json_t *rate = json_object_get(t, "throughput");
	const json_t *target = json_array_get(json_object_get(
		json_object_get(t, "service"), "targets"), 0);

	switch (what) {
	case OP:
		add_percent(p, points, x, t, "op", "op_interval");
		break;
	case VALID:
		add_point(p, points, x, number(rate, "valid_per_s"),
			  end(rate, "valid_per_s_interval", 0),
			  end(rate, "valid_per_s_interval", 1));
		break;
	case REDUCTION:
		add_point(p, points, x, number(target, "reduction"),
			  end(target, "reduction_interval", 0),
			  end(target, "reduction_interval", 1));
		break;
	}
}

/* Against an axis that is a number: instances (cores), or the rate. */
static json_t *against_figure(const struct study_results *r, const json_t *cells,
			      const bool varied[AXES], enum axis axis, size_t t,
			      enum against what)
{
	static const char *const ids[] = { "op", "valid", "reduction" };
	static const char *const titles[] = {
		"Outlier proportion", "Valid throughput", "Reduction that is needed"
	};
	bool but[AXES] = { false };
	struct panels p;
	char id[64], title[128], about[256];
	uint64_t t_ns = 0;
	json_t *y;
	size_t i;

	but[axis] = true;
	p = (struct panels){ json_array(), choose_split(varied, but), 0,
			     RANGE_INIT, RANGE_INIT };
	for (i = 0; i < r->groups; i++) {
		const struct group *g = r->group + i;

		if (!g->runs)
			continue;
		t_ns = g->run->threshold[t].all.t_ns;
		add_against(&p, points_for(&p, g, varied, but, "linespoints"),
			    (double)json_integer_value(json_object_get(
				g->axes, axis_names[axis])),
			    threshold_of(json_array_get(cells, i), t), what);
	}
	if (!isfinite(p.y.high))
		return give_up(&p);
	snprintf(id, sizeof(id), "%s-%s-%g", ids[what], axis_names[axis],
		 (double)t_ns / 1e3);
	snprintf(title, sizeof(title), "%s against %s, t = %g us", titles[what],
		 axis == AXIS_RATE ? "the load" : "cores", (double)t_ns / 1e3);
	snprintf(about, sizeof(about), what == REDUCTION ?
		 "By which factor op has to fall so that a service over %.0f servers misses the threshold for no more than %g %% of its requests, if servers are independent." :
		 what == VALID ? "Requests a second that took no longer than the threshold." :
		 "Bars are the interval.",
		 metric_exponent(&r->opts.scale), 100 * r->opts.target[0]);
	y = what == OP ? percent_axis(&p.y, "op(t) (%)") :
	    what == VALID ? axis_linear("valid requests a second", 0, p.y.high) :
	    isfinite(p.y.least) && p.y.high / p.y.least > 20 ?
		axis_log("factor", p.y.least, p.y.high) :
		axis_linear("factor", 0, p.y.high);
	return make_figure(&p, id, title, about,
		axis == AXIS_RATE ?
			axis_linear("requests a second, each server", 0, p.x.high) :
			axis_whole("instances, one a core", p.x.high), y);
}

/* Of the latencies themselves, with the thresholds as marks. */
static json_t *cdf_figure(const struct study_results *r, const bool varied[AXES])
{
	struct panels p = { json_array(), choose_split(varied, no_axis), 0,
			    RANGE_INIT, RANGE_INIT };
	struct tail_slot *slot;
	size_t i, k, slots;
	json_t *panel;

	for (i = 0; i < r->groups; i++) {
		const struct group *g = r->group + i;
		double n = 0, seen = 0, shown = -1;
		json_t *points;

		if (!g->runs)
			continue;
		points = points_for(&p, g, varied, no_axis, "steps");
		slot = load_merge_slots(g->run, g->runs, &slots);
		for (k = 0; slot && k < slots; k++)
			n += (double)slot[k].n;
		for (k = 0; slot && k < slots; k++) {
			seen += (double)slot[k].n;
			/* Beyond what can be seen, all; else a step a thousandth. */
			if (seen / n - shown < 0.001 && seen / n < 0.999 && k)
				continue;
			shown = seen / n;
			add_point(&p, points, slot[k].high / 1e3, 100 * shown, NAN, NAN);
		}
		free(slot);
	}
	if (!isfinite(p.y.high))
		return give_up(&p);
	for (i = 0; i < r->groups && !r->group[i].runs; i++)
		;
	json_array_foreach(p.list, k, panel) {
		const struct load *l = r->group[i].run;
		size_t t;

		for (t = 0; t < l->thresholds; t++)
			json_array_append_new(json_object_get(panel, "marks"),
				json_pack("{s:f, s:s}", "x",
					  (double)l->threshold[t].all.t_ns / 1e3,
					  "label", ""));
	}
	return make_figure(&p, "cdf", "Latencies",
		"Share of the answered requests that took no longer, from the intended "
		"time. Upright lines are the thresholds.",
		axis_log("latency (us)", p.x.least, p.x.high),
		axis_linear("requests (%)", 0, 100));
}

static json_t *time_figure(const struct study_results *r, const bool varied[AXES],
			   size_t t)
{
	struct panels p = { json_array(), AXES, 0, RANGE_INIT, RANGE_INIT };
	char title[128], label[128];
	uint64_t t_ns = 0;
	size_t i, k;

	for (i = 0; i < r->groups; i++) {
		const struct group *g = r->group + i;
		json_t *points, *marks, *one;

		if (!g->runs || !json_is_object(json_object_get(g->cell[0], "neighbour")))
			continue;
		if (json_array_size(p.list) == MAX_PANELS) {
			p.left_out++;
			continue;
		}
		t_ns = g->run->threshold[t].all.t_ns;
		group_label(g, varied, NULL, label, sizeof(label));
		points = timeline_json(g, t, &marks);
		json_array_foreach(points, k, one) {
			widen(&p.x, json_number_value(json_array_get(one, 0)));
			widen(&p.y, json_number_value(json_array_get(one, 1)));
		}
		json_array_append_new(p.list, json_pack("{s:s, s:[{s:s, s:s, s:o}], s:o}",
			"title", label, "series", "label", "", "style", "impulses",
			"points", points, "marks", marks));
	}
	if (!json_array_size(p.list) || !isfinite(p.y.high))
		return give_up(&p);
	snprintf(title, sizeof(title), "Outliers over time, t = %g us",
		 (double)t_ns / 1e3);
	return make_figure(&p, "time", title,
		"Share of the requests in each slice of time that took longer than t, in "
		"the first run; the lines are when the neighbour began to act and when it "
		"was over.",
		axis_linear("time from the start of the window (s)", 0, p.x.high),
		axis_linear("op(t) (%)", 0, p.y.high));
}

/*
 * Before, during, after, for all neighbours, one below the other: their names are
 * long. Points of style "across" are [place, x, low, high].
 */
static json_t *phase_figure(const struct study_results *r, const json_t *cells,
			    const bool varied[AXES], size_t t)
{
	static const char *const names[] = { "before", "during", "after" };
	struct panels p = { json_array(), AXES, 0, RANGE_INIT, RANGE_INIT };
	json_t *panel, *y;
	char title[128], label[128];
	uint64_t t_ns = 0;
	size_t i, k, n = 0;

	panel = json_pack("{s:s, s:[], s:[]}", "title", "", "series", "marks");
	json_array_append_new(p.list, panel);
	y = json_pack("{s:s, s:[]}", "label", "", "names");
	for (i = 0; i < r->groups; i++) {
		const json_t *all = json_object_get(json_array_get(cells, i), "phases");
		const json_t *one = json_object_get(json_array_get(all, t), "phases");

		if (!json_array_size(one))
			continue;
		t_ns = r->group[i].run->threshold[t].all.t_ns;
		group_label(r->group + i, varied, NULL, label, sizeof(label));
		json_array_append_new(json_object_get(y, "names"), json_string(label));
		for (k = 0; k < 3; k++)
			add_percent(&p, series_for(&p, panel, names[k], "across"),
				    (double)n + ((double)k - 1) * 0.2,
				    json_array_get(one, k), "op", "op_interval");
		n++;
	}
	if (!n || !isfinite(p.y.high)) {
		json_decref(y);
		return give_up(&p);
	}
	snprintf(title, sizeof(title), "Before, during and after, t = %g us",
		 (double)t_ns / 1e3);
	return make_figure(&p, t_ns > SHOWN_NS ? "phases-long" : "phases", title,
		"op in the slices of time before the neighbour acted, from when it began "
		"until it was over, and after; all runs together, with the interval. What is 0 "
		"stands at the end of a logarithmic axis.",
		percent_axis(&p.y, "op(t) (%)"), y);
}

/* ---- attribution ---------------------------------------------------------- */

/* Adds the parts of one run, weighted by its requests: name to ns in all. */
static void add_parts(json_t *sums, const json_t *side)
{
	double n = number(side, "n");
	const json_t *part;
	size_t i;

	json_array_foreach(json_object_get(side, "parts"), i, part) {
		const char *name = json_string_value(json_object_get(part, "name"));
		double ns = number(part, "ns"), had;

		if (!name || !isfinite(ns) || !isfinite(n))
			continue;
		had = number(sums, name);
		json_object_set_new(sums, name, json_real(
			(isfinite(had) ? had : 0) + n * ns));
	}
}

/*
 * One bar: mean of each part, each series from the end of the one before. A
 * series of style "stack" has [place, from, to].
 */
static void stack(struct panels *p, json_t *panel, const json_t *cell,
		  const char *side, size_t place)
{
	const json_t *runs = json_object_get(cell, "attribution"), *run;
	json_t *sums = json_object(), *sum;
	double n = 0, from = 0, to;
	const char *name;
	size_t i;

	json_array_foreach(runs, i, run) {
		const json_t *one = json_object_get(run, side);

		add_parts(sums, one);
		n += isfinite(number(one, "n")) ? number(one, "n") : 0;
	}
	json_object_foreach(sums, name, sum) {
		json_t *points = series_for(p, panel, name, "stack");

		to = from + json_number_value(sum) / n / 1e3;
		if (points && n > 0) {
			json_array_append_new(points, json_pack("[f, f, f]",
				(double)place, from, to));
			widen(&p->x, to);
		}
		from = to;
	}
	json_decref(sums);
}

static bool is_attributed(const json_t *cell)
{
	const json_t *run;
	size_t i;

	json_array_foreach(json_object_get(cell, "attribution"), i, run)
		if (json_object_get(run, "outliers"))
			return true;
	return false;
}

/* Where the time of slow requests went, beside that of normal ones. */
static json_t *attribution_figure(const struct study_results *r,
				  const json_t *cells, const bool varied[AXES])
{
	struct panels p = { json_array(), AXES, 0, RANGE_INIT, RANGE_INIT };
	json_t *panel, *y;
	char label[128], name[160];
	size_t i, n = 0;

	panel = json_pack("{s:s, s:[], s:[]}", "title", "", "series", "marks");
	json_array_append_new(p.list, panel);
	y = json_pack("{s:s, s:[]}", "label", "", "names");
	for (i = 0; i < r->groups; i++) {
		const json_t *cell = json_array_get(cells, i);

		if (!is_attributed(cell))
			continue;
		group_label(r->group + i, varied, NULL, label, sizeof(label));
		snprintf(name, sizeof(name), "%s: outliers", label);
		json_array_append_new(json_object_get(y, "names"), json_string(name));
		stack(&p, panel, cell, "outliers", n++);
		json_array_append_new(json_object_get(y, "names"), json_string("normal"));
		stack(&p, panel, cell, "normals", n++);
	}
	if (!n || !isfinite(p.x.high)) {
		json_decref(y);
		return give_up(&p);
	}
	return make_figure(&p, "attribution", "Where the time of slow requests went",
		"Mean time of each part of a request, outliers above and normal requests of the "
		"same runs below; the parts do not overlap, and add up to the whole.",
		axis_linear("time (us)", 0, p.x.high), y);
}

static void add(json_t *list, json_t *figure)
{
	if (figure)
		json_array_append_new(list, figure);
}

json_t *plots_json(const struct study_results *r, const json_t *cells)
{
	json_t *list = json_array();
	bool varied[AXES];
	size_t which[2], last = 0, i;

	collect_varied(r, varied);
	two_thresholds(r, which);
	for (i = 0; i < r->groups; i++) {
		if (r->group[i].runs)
			last = r->group[i].run->thresholds - 1;
	}
	add(list, phase_figure(r, cells, varied, which[1]));
	if (last != which[1])
		add(list, phase_figure(r, cells, varied, last));
	add(list, time_figure(r, varied, which[1]));
	add(list, attribution_figure(r, cells, varied));
	add(list, threshold_figure(r, cells, varied));
	if (varied[AXIS_INSTANCES]) {
		add(list, against_figure(r, cells, varied, AXIS_INSTANCES, which[0], OP));
		if (which[1] != which[0])
			add(list, against_figure(r, cells, varied, AXIS_INSTANCES,
						 which[1], OP));
		add(list, against_figure(r, cells, varied, AXIS_INSTANCES, which[0], VALID));
		add(list, against_figure(r, cells, varied, AXIS_INSTANCES, which[0],
					 REDUCTION));
	}
	if (varied[AXIS_RATE]) {
		add(list, against_figure(r, cells, varied, AXIS_RATE, which[1], OP));
		add(list, against_figure(r, cells, varied, AXIS_RATE, which[1], VALID));
	}
	add(list, cdf_figure(r, varied));
	return list;
}
