// SPDX-License-Identifier: GPL-2.0
/* Figures as text: each is read from the JSON, so that the two are the same. */
#define _GNU_SOURCE
#include <math.h>

#include "../../brumm/cli.h"
#include "calc.h"

static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

enum { TEXT = 128 };

/* "0.00123 (0.0011 to 0.0014)", or "-". */
static const char *with_interval(double v, const json_t *interval, int digits,
				 const char *unit, char to[TEXT])
{
	if (isnan(v))
		snprintf(to, TEXT, "-");
	else if (json_array_size(interval) == 2)
		snprintf(to, TEXT, "%.*g%s (%.*g%s to %.*g%s)", digits, v, unit,
			 digits, json_number_value(json_array_get(interval, 0)),
			 unit, digits,
			 json_number_value(json_array_get(interval, 1)), unit);
	else
		snprintf(to, TEXT, "%.*g%s", digits, v, unit);
	return to;
}

static void print_service(const json_t *s, FILE *f)
{
	const json_t *t;
	char text[TEXT];
	size_t i;

	fprintf(f, "    service, SC %.0f x K %.0f: %s\n", number(s, "servers"),
		number(s, "each"),
		with_interval(number(s, "op"), json_object_get(s, "op_interval"),
			      4, "", text));
	json_array_foreach(json_object_get(s, "targets"), i, t)
		fprintf(f, "    for %g %%: op has to be %.5e, reduction %s\n",
			100 * number(t, "target"), number(t, "required_op"),
			with_interval(number(t, "reduction"),
				      json_object_get(t, "reduction_interval"),
				      4, "X", text));
}

void proportion_print(const json_t *j, FILE *f)
{
	char text[TEXT];

	if (json_object_get(j, "requests")) {
		fprintf(f, "%.0f of %.0f requests\n", number(j, "outliers"),
			number(j, "requests"));
		fprintf(f, "    op, Wilson: %s\n",
			with_interval(number(j, "op"), json_object_get(j, "wilson"),
				      5, "", text));
		fprintf(f, "    op, Clopper-Pearson: %s\n",
			with_interval(number(j, "op"),
				      json_object_get(j, "clopper_pearson"),
				      5, "", text));
	} else {
		fprintf(f, "op %.5g\n", number(j, "op"));
	}
	print_service(json_object_get(j, "service"), f);
}

static void print_threshold(const json_t *t, FILE *f)
{
	const json_t *rate = json_object_get(t, "throughput");
	const json_t *fan = json_object_get(t, "fanout");
	char text[TEXT];

	fprintf(f, "\nop(%g us): %s, %.0f to %.0f of %.0f\n",
		number(t, "t_ns") / 1e3,
		with_interval(number(t, "op"), json_object_get(t, "op_interval"),
			      4, "", text),
		number(t, "outliers"), number(t, "outliers_upper"),
		number(t, "requests"));
	if (!isnan(number(t, "design_effect")))
		fprintf(f, "    bursts: variance is %.3g times that of independent requests (blocks of %g ms)\n",
			number(t, "design_effect"), number(t, "block_ns") / 1e6);
	fprintf(f, "    valid throughput: %s of %.6g/s\n",
		with_interval(number(rate, "valid_per_s"),
			      json_object_get(rate, "valid_per_s_interval"),
			      6, "", text),
		number(rate, "offered_per_s"));
	if (json_is_object(fan))
		fprintf(f, "    slowest of %.0f: %.4g; if they were independent %.4g\n",
			number(fan, "k"), number(fan, "empirical_op"),
			number(fan, "independent_op"));
	print_service(json_object_get(t, "service"), f);
}

static void print_us(const json_t *value, FILE *f)
{
	double ns = number(value, "ns");

	if (isnan(ns))
		fprintf(f, " %14s", "-");
	else
		fprintf(f, " %14.1f", ns / 1e3);
}

void figures_print(const json_t *figures, FILE *f)
{
	const json_t *t;
	size_t i;

	fprintf(f, "%.0f requests in %.0f run%s of %.1f s together\n",
		number(figures, "requests"), number(figures, "runs"),
		number(figures, "runs") > 1 ? "s" : "",
		number(figures, "window_s"));
	json_array_foreach(json_object_get(figures, "thresholds"), i, t)
		print_threshold(t, f);
	fprintf(f, "\n%8s %14s %14s\n", "%", "percentile, us", "mean beyond");
	json_array_foreach(json_object_get(figures, "tail"), i, t) {
		fprintf(f, "%8g", number(t, "percent"));
		print_us(json_object_get(t, "percentile"), f);
		print_us(json_object_get(t, "mean_beyond"), f);
		fputc('\n', f);
	}
}
