// SPDX-License-Identifier: GPL-2.0
/* The table for people: medians over the repeats, with their intervals. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "bench.h"

/* One line: results of one benchmark with the same parameters. */
struct row {
	const json_t *list;
	const json_t *first;	/* the first of them */
	unsigned int n;
	double *ns;
};

static int same(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "bench", "size", "cpus", "by" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const json_t *x = json_object_get(a, keys[i]);
		const json_t *y = json_object_get(b, keys[i]);

		if (x != y && !json_equal(x, y))
			return 0;
	}
	return 1;
}

/* A number, or the median of a distribution. */
static const json_t *number_of(const json_t *result, const char *key)
{
	const json_t *value = json_object_get(result, key);

	return json_is_object(value) ? json_object_get(value, "median") : value;
}

/* Values of @key, sorted; their number. */
static unsigned int collect(const struct row *row, const char *key)
{
	const json_t *result, *value;
	unsigned int n = 0;
	size_t i;

	json_array_foreach(row->list, i, result) {
		value = number_of(result, key);
		if (same(result, row->first) && json_is_number(value))
			row->ns[n++] = json_number_value(value);
	}
	gsl_sort(row->ns, 1, n);
	return n;
}

static double median_of(const struct row *row, const char *key, bool *known)
{
	unsigned int n = collect(row, key);

	*known = n;
	return n ? gsl_stats_median_from_sorted_data(row->ns, 1, n) : 0;
}

static void print_time(FILE *f, int width, double ns, bool known)
{
	char text[16];

	fprintf(f, " %*s", width, !known ? "-" :
		brumm_format_time((uint64_t)(ns + .5), text, sizeof(text)));
}

static void print_bytes(FILE *f, double bytes, bool known)
{
	if (!known)
		fprintf(f, " %8s", "-");
	else if (bytes < 10240)
		fprintf(f, " %6.0f B", bytes);
	else if (bytes < 10240 * 1024.)
		fprintf(f, " %6.0f K", bytes / 1024);
	else
		fprintf(f, " %6.0f M", bytes / 1048576);
}

/*
 * Between which of the sorted values the true median lies, with a probability
 * of at least 95 %; fewer than 6 cannot say that: all of them.
 */
static void print_interval(FILE *f, const struct row *row, unsigned int n)
{
	char low[16], high[16], text[40];
	unsigned int k = 0;

	if (!n) {
		fprintf(f, " %21s", "-");
		return;
	}
	while (gsl_cdf_binomial_P(k, .5, n) <= .025)
		k++;
	k -= k > 0;
	snprintf(text, sizeof(text), "%s..%s",
		 brumm_format_time((uint64_t)row->ns[k], low, sizeof(low)),
		 brumm_format_time((uint64_t)row->ns[n - 1 - k], high,
				   sizeof(high)));
	fprintf(f, " %21s", text);
}

/* For a page; where each call was timed, the median of those. */
static void print_each(FILE *f, const struct row *row, double ns, bool known)
{
	bool each, paged;
	double median = median_of(row, "each_ns", &each);
	double pages = median_of(row, "pages", &paged);

	if (each)
		fprintf(f, " %8.1f", median);
	else if (known && paged && pages > 0)
		fprintf(f, " %8.1f", ns / pages);
	else
		fprintf(f, " %8s", "-");
}

static void print_row(FILE *f, const struct row *row)
{
	static const char *const memory[] = { "kernel_bytes", "user_bytes" };
	const json_t *r = row->first;
	double ns, predicted;
	bool known, priced;
	unsigned int n;
	size_t i;

	fprintf(f, "%-16s %8lld %4lld %6u",
		json_string_value(json_object_get(r, "bench")),
		(long long)json_integer_value(json_object_get(r, "size")),
		(long long)json_integer_value(json_object_get(r, "cpus")),
		row->n);
	ns = median_of(row, "prepare_ns", &known);
	print_time(f, 8, ns, known);
	for (i = 0; i < ARRAY_SIZE(memory); i++) {
		ns = median_of(row, memory[i], &known);
		print_bytes(f, ns, known);
	}
	predicted = median_of(row, "predicted_ns", &priced);
	print_time(f, 9, predicted, priced);
	n = collect(row, "reclaim_ns");
	ns = n ? gsl_stats_median_from_sorted_data(row->ns, 1, n) : 0;
	print_time(f, 8, ns, n);
	print_interval(f, row, n);
	print_each(f, row, ns, n);
	if (priced && n && ns > 0)
		fprintf(f, " %6.2f\n", predicted / ns);
	else
		fprintf(f, " %6s\n", "-");
}

static unsigned int count(struct row *row)
{
	const json_t *result;
	unsigned int n = 0;
	size_t i;

	json_array_foreach(row->list, i, result)
		n += same(result, row->first);
	return n;
}

/* Is it the first with its parameters? */
static bool leads(const json_t *list, size_t at)
{
	const json_t *result;
	size_t i;

	json_array_foreach(list, i, result) {
		if (i == at)
			return true;
		if (same(result, json_array_get(list, at)))
			return false;
	}
	return true;
}

static int by_place(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a;
	const json_t *y = *(const json_t *const *)b;
	static const char *const keys[] = { "size", "cpus" };
	const struct bench *bx, *by;
	json_int_t d;
	size_t i;

	bx = bench_find(json_string_value(json_object_get(x, "bench")) ?: "");
	by = bench_find(json_string_value(json_object_get(y, "bench")) ?: "");
	if (bx != by)
		return bx < by ? -1 : 1;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		d = json_integer_value(json_object_get(x, keys[i])) -
		    json_integer_value(json_object_get(y, keys[i]));
		if (d)
			return d < 0 ? -1 : 1;
	}
	return 0;
}

static void print_list(FILE *f, const json_t *list)
{
	size_t i, nr = 0, n = json_array_size(list);
	const json_t **first = calloc(n + 1, sizeof(*first));
	struct row row = { .list = list, .ns = calloc(n + 1, sizeof(double)) };
	const json_t *result;

	if (first && row.ns) {
		json_array_foreach(list, i, result)
			if (leads(list, i))
				first[nr++] = result;
		qsort(first, nr, sizeof(*first), by_place);
		for (i = 0; i < nr; i++) {
			row.first = first[i];
			row.n = count(&row);
			print_row(f, &row);
		}
	}
	free(first);
	free(row.ns);
}

static const char *text(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key)) ?: "?";
}

void bench_table(const json_t *all, FILE *f)
{
	const json_t *machine = json_object_get(all, "machine");
	const json_t *noise = json_object_get(all, "noise");
	const json_t *clock = json_object_get(noise, "clock_ns");
	const json_t *call = json_object_get(noise, "ioctl_ns");

	fprintf(f, "kernel %s, accounting %s; clock %.0f ns, empty ioctl %.0f ns\n\n",
		text(machine, "release"), text(all, "config"),
		json_number_value(json_object_get(clock, "median")),
		json_number_value(json_object_get(call, "median")));
	fprintf(f, "%-16s %8s %4s %6s %8s %8s %8s %9s %8s %21s %8s %6s\n",
		"benchmark", "size", "cpus", "n", "prepare", "kernel", "user",
		"predicted", "reclaim", "interval", "ns/page", "p/r");
	print_list(f, json_object_get(all, "results"));
	print_list(f, json_object_get(all, "baselines"));
}
