// SPDX-License-Identifier: GPL-2.0
/* The same figures for other tools. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const char *const columns[] = {
	"t_ns", "requests", "outliers", "outliers_upper", "op", "op_upper",
};

static void put(FILE *f, const json_t *v)
{
	if (json_is_integer(v))
		fprintf(f, ",%lld", (long long)json_integer_value(v));
	else if (json_is_number(v))
		fprintf(f, ",%.9g", json_number_value(v));
	else
		fputc(',', f);
}

static void put_axis(FILE *f, const json_t *v, bool first)
{
	fputs(first ? "" : ",", f);
	if (json_is_integer(v))
		fprintf(f, "%lld", (long long)json_integer_value(v));
	else
		/* Names that a study file may have hold no comma and no quote. */
		fputs(json_string_value(v) ?: "", f);
}

static void row(const json_t *cell, const json_t *t, FILE *f)
{
	const json_t *axes = json_object_get(cell, "axes");
	const json_t *rate = json_object_get(t, "throughput");
	size_t i;

	for (i = 0; i < AXES; i++)
		put_axis(f, json_object_get(axes, axis_names[i]), !i);
	put(f, json_object_get(cell, "runs"));
	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		put(f, json_object_get(t, columns[i]));
	for (i = 0; i < 2; i++)
		put(f, json_array_get(json_object_get(t, "op_interval"), i));
	put(f, json_object_get(t, "design_effect"));
	put(f, json_object_get(rate, "offered_per_s"));
	put(f, json_object_get(rate, "valid_per_s"));
	fputc('\n', f);
}

int table_write(const json_t *doc, FILE *f)
{
	const json_t *cell, *t;
	size_t i, k;

	for (i = 0; i < AXES; i++)
		fprintf(f, "%s%s", i ? "," : "", axis_names[i]);
	fputs(",runs", f);
	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		fprintf(f, ",%s", columns[i]);
	fputs(",op_low,op_high,design_effect,offered_per_s,valid_per_s\n", f);
	json_array_foreach(json_object_get(doc, "cells"), i, cell)
		json_array_foreach(json_object_get(json_object_get(cell, "figures"),
						   "thresholds"), k, t)
			row(cell, t, f);
	return ferror(f) ? -EIO : 0;
}

/* One of the distribution that HdrHistogram's percentile text is of. */
static void line(FILE *f, double ns, double share, double count)
{
	fprintf(f, "%12.3f %2.12f %10.0f", ns / 1e3, share, count);
	if (share < 1)
		fprintf(f, " %14.2f", 1 / (1 - share));
	fputc('\n', f);
}

int percentiles_write(const struct group *g, FILE *f)
{
	double n = 0, seen = 0, sum = 0, squares = 0, mean, most = 0;
	struct tail_slot *slot;
	size_t i, slots;

	slot = load_merge_slots(g->run, g->runs, &slots);
	if (!slot)
		return -ENOMEM;
	for (i = 0; i < slots; i++) {
		double middle = (slot[i].low + slot[i].high) / 2, w = (double)slot[i].n;

		n += w;
		sum += w * middle;
		squares += w * middle * middle;
		most = slot[i].high;
	}
	fputs("       Value     Percentile TotalCount 1/(1-Percentile)\n\n", f);
	for (i = 0; i < slots; i++) {
		seen += (double)slot[i].n;
		line(f, slot[i].high, seen / n, seen);
	}
	mean = n > 0 ? sum / n : 0;
	fprintf(f, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n"
		"#[Max     = %12.3f, Total count    = %12.0f]\n"
		"#[Buckets = %12zu, SubBuckets     = %12d]\n",
		mean / 1e3, n > 0 ? sqrt(fmax(squares / n - mean * mean, 0)) / 1e3 : 0,
		most / 1e3, n, slots, 1);
	free(slot);
	return ferror(f) ? -EIO : 0;
}
