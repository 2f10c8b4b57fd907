// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "report.h"

/* Requests whose time is not, or not all, attributed. */
static void warn_attribution(json_t *list, const json_t *a)
{
	const char *status = json_string_value(json_object_get(a, "status"));
	const char *reason = json_string_value(json_object_get(a, "reason"));

	if (!status || !strcmp(status, "complete"))
		return;
	if (!strcmp(status, "none"))
		json_array_append_new(list, json_sprintf("attribution: there is none: %s",
							 reason ?: "for no known reason"));
	else
		json_array_append_new(list, json_string(
			"attribution: incomplete, and what is missing is unattributed"));
}

/* Statuses of the loads: what is not valid is told beside its figures. */
static json_t *warnings_json(const struct group *g)
{
	json_t *list = json_array(), *reason;
	size_t i, k;

	for (i = 0; i < g->runs; i++) {
		warn_attribution(list, json_object_get(g->cell[i], "attribution"));
		if (!strcmp(g->run[i].status, "valid"))
			continue;
		json_array_foreach(json_object_get(g->run[i].doc, "reasons"), k, reason)
			json_array_append(list, reason);
	}
	return list;
}

static json_t *neighbours_json(const struct group *g)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < g->runs; i++) {
		json_t *n = json_object_get(g->cell[i], "neighbour");

		if (json_is_object(n))
			json_array_append(list, n);
	}
	return list;
}

/* What tools of attribution left in the cells, by part; null without. */
static json_t *attribution_json(const struct group *g)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < g->runs; i++) {
		json_t *a = json_object_get(g->cell[i], "attribution");

		if (json_is_object(a))
			json_array_append(list, a);
	}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return json_null();
}

static json_t *cell_json(const struct group *g, const struct figures_opts *o,
			 const bool varied[AXES])
{
	char label[160];

	group_label(g, varied, NULL, label, sizeof(label));
	return json_pack("{s:s, s:O, s:I, s:o, s:o, s:o, s:o, s:O, s:o}",
		"label", label, "axes", g->axes, "runs", (json_int_t)g->runs,
		"figures", g->runs ? figures_json(g->run, g->runs, o) : json_null(),
		"phases", (g->runs ? phases_json(g, o) : NULL) ?: json_null(),
		"warnings", warnings_json(g),
		"neighbours", neighbours_json(g),
		"left", g->left,
		"attribution", attribution_json(g));
}

/* Words of the page that hold numbers. */
static json_t *words_json(const struct figures_opts *o)
{
	char scale[128];

	snprintf(scale, sizeof(scale), "%.0f x %.0f servers, exponent %.0f",
		 (double)o->scale.servers, (double)o->scale.each,
		 metric_exponent(&o->scale));
	return json_pack("{s:s, s:s, s:s, s:s}", "scale", scale, "service",
		"A request of a service that waits for all servers is too late if one of "
		"them is: with independent servers, in 1 - (1 - op)^(SC K) of the cases. The "
		"factor is that by which op has to fall for the target. Servers on one "
		"machine are not independent: where a request went to several, both the "
		"slowest as it was measured and the formula are given.",
			 "percentile", "percentile 99, us",
			 "mean_beyond", "mean beyond it, us (the paper's 99 % tail latency)");
}

static json_t *made(void)
{
	time_t now = time(NULL);
	char text[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &tm);
	return json_string(text);
}

json_t *report_json(const struct study_results *r)
{
	json_t *cells = json_array(), *figures;
	bool varied[AXES];
	size_t i;

	collect_varied(r, varied);
	for (i = 0; i < r->groups; i++)
		json_array_append_new(cells, cell_json(r->group + i, &r->opts, varied));
	figures = plots_json(r, cells);
	return json_pack("{s:s, s:o, s:O?, s:O?, s:O?, s:O, s:O, s:f, s:s, s:o, s:o, s:o}",
		"schema", REPORT_SCHEMA,
		"made", made(),
		"title", json_object_get(r->study, "title"),
		"what", json_object_get(r->study, "what"),
		"status", json_object_get(r->study, "status"),
		"study", r->study,
		"machines", r->machines,
		"confidence", r->opts.confidence,
		"intervals", "Intervals are from the lowest to the highest of Clopper and "
			"Pearson's and of a block bootstrap over time and runs, at 95 % unless "
			"the study says otherwise. Requests that were given up on count: op is "
			"given by its lower bound, and the interval covers the upper one.",
		"words", words_json(&r->opts),
		"cells", cells,
		"figures", figures);
}
