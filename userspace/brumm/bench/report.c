// SPDX-License-Identifier: GPL-2.0
#include <errno.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "bench.h"

int bench_put(json_t *result, const char *key, uint64_t value)
{
	return json_object_set_new(result, key, cli_json_time(value)) ?
	       -ENOMEM : 0;
}

int bench_put_counts(json_t *result, const char *key,
		     const struct shape_counts *c)
{
	json_t *j = json_pack("{s:I, s:I, s:I, s:I}", "lookup", (json_int_t)c->lookup,
			      "map", (json_int_t)c->map,
			      "pt", (json_int_t)c->pt,
			      "deep", (json_int_t)c->deep);

	return json_object_set_new(result, key, j) ? -ENOMEM : 0;
}

json_t *bench_distribution(double *ns, uint64_t n)
{
	if (!n)
		return json_null();
	gsl_sort(ns, 1, n);
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
			 "n", (json_int_t)n, "min", ns[0],
			 "p25", gsl_stats_quantile_from_sorted_data(ns, 1, n, .25),
			 "median", gsl_stats_quantile_from_sorted_data(ns, 1, n, .5),
			 "p75", gsl_stats_quantile_from_sorted_data(ns, 1, n, .75),
			 "p99", gsl_stats_quantile_from_sorted_data(ns, 1, n, .99),
			 "max", ns[n - 1], "mean", gsl_stats_mean(ns, 1, n));
}
