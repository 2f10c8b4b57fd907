// SPDX-License-Identifier: GPL-2.0
/* From one server to a service that waits for many, and back. */
#define _GNU_SOURCE
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "metrics.h"

static bool proportion(double p)
{
	return p >= 0 && p <= 1;
}

double metric_exponent(const struct scale *s)
{
	return (double)s->servers * (double)s->each;
}

/* By log1p and expm1: 1 - (1 - 1e-9)^1000 has no digit left otherwise. */
double metric_service_op(double op, double exponent)
{
	if (!proportion(op) || !(exponent >= 1))
		return NAN;
	return -expm1(exponent * log1p(-op));
}

double metric_required_op(double op_sj, double exponent)
{
	if (!proportion(op_sj) || !(exponent >= 1))
		return NAN;
	return -expm1(log1p(-op_sj) / exponent);
}

double metric_reduction(double op, double op_sj, double exponent)
{
	double required = metric_required_op(op_sj, exponent);

	return proportion(op) && required > 0 ? op / required : NAN;
}

struct interval metric_service_interval(struct interval op, double exponent)
{
	return (struct interval){ metric_service_op(op.low, exponent),
				  metric_service_op(op.high, exponent) };
}

struct interval metric_reduction_interval(struct interval op, double op_sj,
					  double exponent)
{
	return (struct interval){ metric_reduction(op.low, op_sj, exponent),
				  metric_reduction(op.high, op_sj, exponent) };
}

struct interval metric_op_of_factor(double factor, double op_sj,
				    double exponent, bool cut)
{
	double required = metric_required_op(op_sj, exponent);
	double below = cut ? 0 : 0.5, above = cut ? 1 : 0.5;

	return (struct interval){ (factor - below) * required,
				  (factor + above) * required };
}

double metric_any_op(const double *op, size_t k)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < k; i++)
		sum += proportion(op[i]) ? log1p(-op[i]) : NAN;
	return k ? -expm1(sum) : NAN;
}

double metric_requests_to_show(double op, double confidence)
{
	if (!(op > 0 && op < 1 && confidence > 0 && confidence < 1))
		return NAN;
	return ceil(log1p(-confidence) / log1p(-op));
}

double metric_requests_to_know(double op, double width, double confidence)
{
	double z;

	if (!(op > 0 && op < 1 && width > 0 && confidence > 0 && confidence < 1))
		return NAN;
	z = gsl_cdf_ugaussian_Pinv(0.5 + confidence / 2);
	return ceil(z * z * (1 - op) / (op * width * width));
}
