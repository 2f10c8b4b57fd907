// SPDX-License-Identifier: GPL-2.0
/*
 * The paper says by which factor the outlier proportion of a server has to fall
 * for 10 %, and for 5 %, of the requests of a service over 1,000 servers. The
 * ratio of the two does not depend on that proportion. So of each factor we say
 * which proportions are printed so, and of each pair whether there is one that
 * both are; nothing is fitted.
 */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "calc.h"

#define SERVERS 1000

static const struct {
	const char *system;
	unsigned int each;	/* containers or virtual machines a server */
	double factor[2];
} published[] = {
	{ "Linux", 1, { 871, 1790 } },
	{ "LXC, Xen", 4, { 2372, 4721 } },
	{ "LXC, Xen, if the merged request was counted", 1, { 2372, 4721 } },
};

static const double targets[2] = { 0.10, 0.05 };

static bool overlap(struct interval a, struct interval b)
{
	return a.low <= b.high && b.low <= a.high;
}

/* What the published factor for 10 % makes of that for 5 %. */
static struct interval follows(struct interval op, double exponent)
{
	return metric_reduction_interval(op, targets[1], exponent);
}

static json_t *factor_json(double factor, double target, double exponent)
{
	struct interval op = metric_op_of_factor(factor, target, exponent, false);

	return json_pack("{s:f, s:f, s:o, s:o}",
		"target", target, "published", factor,
		"required_op", figure_json(metric_required_op(target, exponent)),
		"op", interval_json(op));
}

/* An op from the middle of what gives the first factor, and what it gives. */
static json_t *reproduced_json(double op, double exponent)
{
	return json_pack("{s:f, s:f, s:f}", "op", op,
		"for_10_percent", round(metric_reduction(op, targets[0], exponent)),
		"for_5_percent", round(metric_reduction(op, targets[1], exponent)));
}

static json_t *system_json(size_t i)
{
	struct scale scale = { SERVERS, published[i].each };
	double exponent = metric_exponent(&scale), op;
	struct interval at[2], both;
	int k;

	for (k = 0; k < 2; k++)
		at[k] = metric_op_of_factor(published[i].factor[k], targets[k],
					    exponent, false);
	both = (struct interval){ fmax(at[0].low, at[1].low),
				  fmin(at[0].high, at[1].high) };
	if (!overlap(at[0], at[1]))
		both = at[0];
	op = (both.low + both.high) / 2;
	return json_pack("{s:s, s:I, s:I, s:f, s:[o, o], s:b, s:o, s:o}",
		"system", published[i].system,
		"servers", (json_int_t)scale.servers,
		"each", (json_int_t)scale.each,
		"exponent", exponent,
		"factors",
		factor_json(published[i].factor[0], targets[0], exponent),
		factor_json(published[i].factor[1], targets[1], exponent),
		"one_op_gives_both", overlap(at[0], at[1]),
		"reproduced", reproduced_json(op, exponent),
		"for_5_percent_of_first", interval_json(follows(at[0], exponent)));
}

json_t *paper_json(void)
{
	struct scale bing = { 10000, 1 };
	json_t *systems = json_array();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(published); i++)
		json_array_append_new(systems, system_json(i));
	return json_pack("{s:s, s:s, s:o, s:{s:I, s:f, s:f}}",
		"schema", "brumm-mc-paper/1",
		"source", "10-millisecond computing, section III and figure 3b",
		"systems", systems,
		"bing", "servers", (json_int_t)bing.servers, "target", targets[0],
		"required_op", metric_required_op(targets[0],
						  metric_exponent(&bing)));
}

/* ---- as text -------------------------------------------------------------- */

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static double end(const json_t *j, const char *key, size_t i)
{
	return json_number_value(json_array_get(json_object_get(j, key), i));
}

static void print_system(const json_t *s, FILE *f)
{
	const json_t *both = json_object_get(s, "reproduced"), *factor;
	size_t i;

	fprintf(f, "\n%s: 1 - (1 - op)^%.0f\n",
		json_string_value(json_object_get(s, "system")),
		number(s, "exponent"));
	json_array_foreach(json_object_get(s, "factors"), i, factor)
		fprintf(f, "  %4.0fX for %2.0f %%: required %.5e, so op is %.4f to %.4f %%\n",
			number(factor, "published"), 100 * number(factor, "target"),
			number(factor, "required_op"),
			100 * end(factor, "op", 0), 100 * end(factor, "op", 1));
	if (json_is_true(json_object_get(s, "one_op_gives_both")))
		fprintf(f, "  one op gives both: %.4f %% gives %.0fX and %.0fX\n",
			100 * number(both, "op"), number(both, "for_10_percent"),
			number(both, "for_5_percent"));
	else
		fprintf(f, "  no op gives both: %.4f %% gives %.0fX, and %.0fX (%.0f to %.0f)\n",
			100 * number(both, "op"), number(both, "for_10_percent"),
			number(both, "for_5_percent"),
			end(s, "for_5_percent_of_first", 0),
			end(s, "for_5_percent_of_first", 1));
}

void paper_print(const json_t *paper, FILE *f)
{
	const json_t *s, *bing = json_object_get(paper, "bing");
	size_t i;

	fprintf(f, "%s\nA factor is that by which op, the outlier proportion of one server, has to\n"
		"fall; beside it the ops that are rounded to it.\n",
		json_string_value(json_object_get(paper, "source")));
	json_array_foreach(json_object_get(paper, "systems"), i, s)
		print_system(s, f);
	fprintf(f, "\n%.0f servers, %.0f %%: op has to be %.6f %%\n",
		number(bing, "servers"), 100 * number(bing, "target"),
		100 * number(bing, "required_op"));
}
