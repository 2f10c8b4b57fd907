// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>

#include "stats.h"

void summarise(double *v, size_t n, struct summary *s)
{
	*s = (struct summary){ .n = n };
	if (!n)
		return;
	gsl_sort(v, 1, n);
	s->mean = gsl_stats_mean(v, 1, n);
	s->min = v[0];
	s->p50 = gsl_stats_median_from_sorted_data(v, 1, n);
	s->p99 = gsl_stats_quantile_from_sorted_data(v, 1, n, 0.99);
	s->max = v[n - 1];
	if (n < 2)
		return;
	s->sd = gsl_stats_sd(v, 1, n);
	s->error = gsl_cdf_tdist_Pinv(0.975, (double)n - 1) * s->sd /
		   sqrt((double)n);
}

/* null where there is no figure. */
static json_t *figure(double v, size_t n, size_t least)
{
	return n < least || !isfinite(v) ? json_null() : json_real(v);
}

json_t *summary_json(const struct summary *s, const char *how)
{
	size_t n = s->n;

	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}",
			 "n", (json_int_t)n,
			 "mean", figure(s->mean, n, 1),
			 "mean_low", figure(s->mean - s->error, n, 2),
			 "mean_high", figure(s->mean + s->error, n, 2),
			 "sd", figure(s->sd, n, 2),
			 "min", figure(s->min, n, 1),
			 "p50", figure(s->p50, n, 1),
			 "p99", figure(s->p99, n, 1),
			 "max", figure(s->max, n, 1),
			 "how", how);
}

/* NaN for null. */
static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

int summary_parse(const json_t *j, struct summary *s)
{
	const json_t *n = json_object_get(j, "n");

	*s = (struct summary){ 0 };
	if (!json_is_integer(n) || json_integer_value(n) < 0)
		return -EINVAL;
	s->n = (size_t)json_integer_value(n);
	s->mean = number(j, "mean");
	s->sd = number(j, "sd");
	s->error = number(j, "mean_high") - s->mean;
	s->min = number(j, "min");
	s->p50 = number(j, "p50");
	s->p99 = number(j, "p99");
	s->max = number(j, "max");
	return s->n && isnan(s->mean) ? -EINVAL : 0;
}
