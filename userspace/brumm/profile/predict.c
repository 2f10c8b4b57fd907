// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "../stats.h"
#include "predict.h"
#include "prices.h"

/* Variance of one of a term; a fit knows none. */
static double variance(const json_t *doc, int t)
{
	struct summary s;

	if (summary_parse(json_object_get(json_object_get(doc, "terms"),
					  fit_names[t]), &s) || isnan(s.sd))
		return 0;
	return s.sd * s.sd;
}

int predict(const json_t *doc, const double count[FIT_TERMS],
	    const double price[FIT_TERMS], struct prediction *p)
{
	const json_t *p99 = json_object_get(json_object_get(doc, "cover"), "p99");
	const json_t *call = json_object_get(json_object_get(doc, "prices"),
					     fit_names[FIT_SYSCALL]);
	double worst[FIT_TERMS], sum = 0, var = 0;
	bool has_worst = !prices_get(doc, PRICES_WORST, worst);
	int t;

	*p = (struct prediction){ 0 };
	if (!json_is_number(p99) || !json_is_number(call))
		return -EBADMSG;
	for (t = 0; t < FIT_TERMS; t++) {
		if (t == FIT_SYSCALL)
			continue;
		sum += count[t] * price[t];
		var += count[t] * variance(doc, t);
		if (has_worst)
			p->worst += count[t] * worst[t];
	}
	/* The prices in force may be higher. */
	if (has_worst)
		p->worst = fmax(p->worst, sum);
	p->sd = sqrt(var);
	p->p99 = sum * fmax(json_number_value(p99), 1) +
		 gsl_cdf_ugaussian_Pinv(0.99) * p->sd;
	p->syscall = json_number_value(call);
	p->known = true;
	return 0;
}

/* The medians of a row of "flush". */
static int read_flush(const json_t *row, double *one, double *together)
{
	const json_t *a = json_object_get(row, "p50");
	const json_t *b = json_object_get(json_object_get(row, "together"), "p50");

	if (!json_is_number(a) || !json_is_number(b))
		return -EBADMSG;
	*one = json_number_value(a);
	*together = json_number_value(b);
	return 0;
}

int predict_flush(const json_t *doc, double maps, unsigned int cpus,
		  struct flush *f)
{
	const json_t *rows = json_object_get(doc, "flush"), *row;
	double alone[2], used[2];
	size_t i;
	int err = read_flush(json_array_get(rows, 0), &alone[0], &alone[1]);

	*f = (struct flush){ 0 };
	for (i = 0; i < json_array_size(rows) && !err && f->cpus < cpus; i++) {
		row = json_array_get(rows, i);
		f->cpus = (unsigned int)json_integer_value(json_object_get(row, "cpus"));
		err = read_flush(row, &used[0], &used[1]);
	}
	if (err || !i)
		return -EBADMSG;
	f->worst = maps * fmax(0, used[0] - alone[0]);
	f->mean = fmin(f->worst, maps * fmax(0, used[1] - alone[1]));
	return 0;
}
