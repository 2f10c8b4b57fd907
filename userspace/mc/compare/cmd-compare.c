// SPDX-License-Identifier: GPL-2.0
/*
 * brumm mc compare: is B another thing than A, or is it noise? Each cell that
 * both have is compared at each threshold. With so many comparisons some seem
 * to differ by chance, so each is held to a confidence such that all together
 * have the one that was asked for (Bonferroni).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../brumm/machine.h"
#include "../calc/calc.h"
#include "../mc.h"
#include "../report/collect.h"

struct args {
	const char *what[2];
	double confidence;
	bool json;
};

enum { OPT_CONFIDENCE = 'c', OPT_JSON = 'j' };

static const struct argp_option options[] = {
	{ "confidence", OPT_CONFIDENCE, "P", 0, "of all comparisons together (95%)", 0 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_CONFIDENCE:
		if (parse_proportion(arg, &a->confidence) || a->confidence <= 0 ||
		    a->confidence >= 1)
			argp_error(state, "'%s' is not a confidence such as 95%%", arg);
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->what[1])
			argp_error(state, "two studies only");
		a->what[a->what[0] != NULL] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->what[1])
			argp_error(state, "which two?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "A B",
	.doc = "Compare two studies, or two results of brumm mc load: what of their "
	       "machines and settings differs, and where B has more outliers than A, or "
	       "fewer, by more than noise."
	       "\vNoise is what a block bootstrap over time, and over runs where there are "
	       "several, says, and no less than what independent requests would vary by. "
	       "With one run each, how runs differ is not known, and it is said. Exit "
	       "code 2: B has more outliers somewhere.",
};

/* ---- one comparison ------------------------------------------------------- */

static struct run_slices *slices_of(const struct group *g, size_t t)
{
	struct run_slices *r = calloc(g->runs, sizeof(*r));
	size_t i;

	for (i = 0; r && i < g->runs; i++)
		r[i] = (struct run_slices){ g->run[i].threshold[t].low,
					    g->run[i].slices };
	return r;
}

static struct slice total(const struct group *g, size_t t)
{
	struct slice s = { 0 };
	size_t i;

	for (i = 0; i < g->runs; i++) {
		s.m += g->run[i].threshold[t].all.low;
		s.n += g->run[i].requests;
	}
	return s;
}

/*
 * How many standard deviations of the bootstrap: its own quantiles do not reach
 * as far out as many comparisons ask for. That of few runs varies, and is too
 * small, by (R - 1)/R, as any that takes R values for the whole world.
 */
static double reach(const struct group *a, const struct group *b,
		    double confidence)
{
	double na = (double)a->runs, nb = (double)b->runs, few = fmin(na, nb);

	if (few < 2)
		return gsl_cdf_ugaussian_Pinv(0.5 + confidence / 2);
	return gsl_cdf_tdist_Pinv(0.5 + confidence / 2, na + nb - 2) *
	       sqrt(few / (few - 1));
}

/* Of op_b - op_a. */
static struct interval difference(const struct group *a, const struct group *b,
				  size_t t, double confidence)
{
	struct slice sa = total(a, t), sb = total(b, t);
	struct run_slices *ra = slices_of(a, t), *rb = slices_of(b, t);
	double z = reach(a, b, confidence), d;
	struct interval at = metric_difference(sb.m, sb.n, sa.m, sa.n, confidence);
	struct bootstrap boot = { .sd = NAN };

	if (ra && rb)
		metric_bootstrap_difference(rb, b->runs, ra, a->runs, confidence, 1,
					    &boot);
	free(ra);
	free(rb);
	d = metric_op(sb.m, sb.n) - metric_op(sa.m, sa.n);
	return metric_hull(at, (struct interval){ d - z * boot.sd, d + z * boot.sd });
}

static const char *verdict(struct interval d)
{
	return d.low > 0 ? "more" : d.high < 0 ? "fewer" : "noise";
}

static json_t *threshold_json(const struct group *a, const struct group *b,
			      size_t t, double confidence)
{
	struct slice sa = total(a, t), sb = total(b, t);
	struct interval d = difference(a, b, t, confidence);
	double pa = metric_op(sa.m, sa.n), pb = metric_op(sb.m, sb.n);

	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:s}",
		"t_ns", (json_int_t)a->run->threshold[t].all.t_ns,
		"op_a", figure_json(pa), "op_b", figure_json(pb),
		"difference", figure_json(pb - pa),
		"difference_interval", interval_json(d),
		"ratio", figure_json(pb / pa),
		"outliers", verdict(d));
}

/* ---- all of them ---------------------------------------------------------- */

static const struct group *partner(const struct study_results *r,
				   const struct group *g)
{
	size_t i;

	for (i = 0; i < r->groups; i++) {
		if (r->group[i].runs && json_equal(r->group[i].axes, g->axes))
			return r->group + i;
	}
	/* Two results alone are compared whatever their rate. */
	return r->groups == 1 && r->group->runs ? r->group : NULL;
}

/* Cells of @a that @b has too, and how many comparisons that makes. */
static size_t comparisons(const struct study_results *a,
			  const struct study_results *b)
{
	size_t i, n = 0;

	for (i = 0; i < a->groups; i++) {
		if (a->group[i].runs && partner(b, a->group + i))
			n += a->group[i].run->thresholds;
	}
	return n;
}

static json_t *cell_json(const struct group *a, const struct group *b,
			 const char *label, double confidence)
{
	const char *differ = figures_differ(a->run, b->run);
	json_t *list = json_array();
	size_t t;

	for (t = 0; !differ && t < a->run->thresholds; t++)
		json_array_append_new(list, threshold_json(a, b, t, confidence));
	return json_pack("{s:s, s:O, s:I, s:I, s:s?, s:o}",
		"label", label, "axes", a->axes,
		"runs_a", (json_int_t)a->runs, "runs_b", (json_int_t)b->runs,
		"not_comparable", differ, "thresholds", list);
}

static json_t *only_in(const struct study_results *a, const struct study_results *b)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < a->groups; i++) {
		if (a->group[i].runs && !partner(b, a->group + i))
			json_array_append(list, a->group[i].axes);
	}
	return list;
}

static json_t *machines_json(const struct study_results *a,
			     const struct study_results *b)
{
	json_t *j = json_object(), *m, *other;
	const char *lane;

	json_object_foreach(a->machines, lane, m) {
		other = json_object_get(b->machines, lane);
		if (json_is_object(m) && json_is_object(other))
			json_object_set_new(j, lane, machine_differences(m, other));
	}
	return j;
}

static json_t *settings_json(const struct study_results *a,
			     const struct study_results *b)
{
	const json_t *x = json_object_get(a->study, "spec");
	const json_t *y = json_object_get(b->study, "spec");

	return json_is_object(x) && json_is_object(y) ? machine_differences(x, y) :
		json_array();
}

static json_t *compare(const struct args *a, const struct study_results r[2])
{
	size_t n = comparisons(r, r + 1), i;
	double each = n ? 1 - (1 - a->confidence) / (double)n : a->confidence;
	json_t *cells = json_array();
	bool varied[AXES];
	char label[160];

	collect_varied(r, varied);
	for (i = 0; i < r->groups; i++) {
		const struct group *g = r->group + i, *other = partner(r + 1, g);

		if (!g->runs || !other)
			continue;
		group_label(g, varied, NULL, label, sizeof(label));
		json_array_append_new(cells, cell_json(g, other, label, each));
	}
	return json_pack("{s:s, s:s, s:s, s:f, s:I, s:f, s:o, s:o, s:o, s:o, s:o}",
		"schema", "brumm-mc-compare/1",
		"a", a->what[0], "b", a->what[1],
		"confidence", a->confidence,
		"comparisons", (json_int_t)n, "confidence_each", each,
		"machines_differ", machines_json(r, r + 1),
		"settings_differ", settings_json(r, r + 1),
		"cells", cells,
		"only_a", only_in(r, r + 1), "only_b", only_in(r + 1, r));
}

/* ---- telling -------------------------------------------------------------- */

static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void print_list(const char *what, const json_t *list)
{
	const json_t *one;
	size_t i;

	if (!json_array_size(list))
		return;
	printf("%s:", what);
	json_array_foreach(list, i, one)
		printf("%s %s", i ? "," : "", json_string_value(one));
	putchar('\n');
}

static void print_threshold(const json_t *t)
{
	const json_t *d = json_object_get(t, "difference_interval");
	const char *verdict = json_string_value(json_object_get(t, "outliers"));

	printf("  %8g us  %9.4f %%  %9.4f %%  %+9.4f (%+.4f to %+.4f)  %s\n",
	       number(t, "t_ns") / 1e3, 100 * number(t, "op_a"),
	       100 * number(t, "op_b"), 100 * number(t, "difference"),
	       100 * json_number_value(json_array_get(d, 0)),
	       100 * json_number_value(json_array_get(d, 1)),
	       strcmp(verdict, "noise") ? verdict : "-");
}

static void print(const json_t *j)
{
	const json_t *c, *t;
	const char *lane, *differ;
	json_t *m;
	size_t i, k;

	json_object_foreach(json_object_get(j, "machines_differ"), lane, m) {
		printf("lane %s: ", lane);
		print_list("the machines differ in", m);
		if (!json_array_size(m))
			puts("the same machine");
	}
	print_list("the studies differ in", json_object_get(j, "settings_differ"));
	json_array_foreach(json_object_get(j, "cells"), i, c) {
		printf("\n%s, %.0f and %.0f runs\n",
		       json_string_value(json_object_get(c, "label")),
		       number(c, "runs_a"), number(c, "runs_b"));
		differ = json_string_value(json_object_get(c, "not_comparable"));
		if (differ)
			printf("  cannot be compared: %s\n", differ);
		if (number(c, "runs_a") < 2 || number(c, "runs_b") < 2)
			puts("  how much runs differ is not known: one run only");
		json_array_foreach(json_object_get(c, "thresholds"), k, t)
			print_threshold(t);
	}
	printf("\n%.0f comparisons, each at %.4g %%, together %g %%; cells that only one has: %zu, %zu\n",
	       number(j, "comparisons"), 100 * number(j, "confidence_each"),
	       100 * number(j, "confidence"),
	       json_array_size(json_object_get(j, "only_a")),
	       json_array_size(json_object_get(j, "only_b")));
}

/* Has B more anywhere? */
static bool is_worse(const json_t *j)
{
	const json_t *c, *t;
	size_t i, k;

	json_array_foreach(json_object_get(j, "cells"), i, c)
		json_array_foreach(json_object_get(c, "thresholds"), k, t)
			if (!strcmp(json_string_value(
					json_object_get(t, "outliers")), "more"))
				return true;
	return false;
}

static int tell(const struct args *a, json_t *j)
{
	int status = is_worse(j) ? EXIT_MISSED : EXIT_FINE, ret;

	if (!json_array_size(json_object_get(j, "cells"))) {
		cli_error("they have no cell in common");
		json_decref(j);
		return EXIT_ERROR;
	}
	if (a->json) {
		ret = cli_print_json(j);
	} else {
		print(j);
		json_decref(j);
		ret = cli_flush();
	}
	return ret ? ret : status;
}

int mc_compare(int argc, char **argv)
{
	struct args a = { .confidence = 0.95 };
	struct study_results r[2];
	int status = EXIT_ERROR;
	json_t *j;

	cli_parse(&argp, argc, argv, &a);
	if (collect(r, a.what[0]))
		return EXIT_ERROR;
	if (!collect(r + 1, a.what[1])) {
		j = compare(&a, r);
		if (j)
			status = tell(&a, j);
		else
			cli_fail(ENOMEM, "cannot compare");
		collect_free(r + 1);
	}
	collect_free(r);
	return status;
}
