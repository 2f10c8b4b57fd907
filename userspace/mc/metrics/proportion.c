// SPDX-License-Identifier: GPL-2.0
/* M of N, and how well that is known if requests were independent. */
#define _GNU_SOURCE
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "metrics.h"

static const struct interval none = { NAN, NAN };

static bool sensible(uint64_t m, uint64_t n, double confidence)
{
	return n && m <= n && confidence > 0 && confidence < 1;
}

double metric_op(uint64_t m, uint64_t n)
{
	return n && m <= n ? (double)m / (double)n : NAN;
}

struct interval metric_wilson(uint64_t m, uint64_t n, double confidence)
{
	double z, p, size = (double)n, middle, half, scale;

	if (!sensible(m, n, confidence))
		return none;
	z = gsl_cdf_ugaussian_Pinv(0.5 + confidence / 2);
	p = (double)m / size;
	scale = 1 / (1 + z * z / size);
	middle = (p + z * z / (2 * size)) * scale;
	half = z * scale * sqrt(p * (1 - p) / size + z * z / (4 * size * size));
	/* At the ends the formula is exact but for rounding. */
	return (struct interval){ m ? fmax(middle - half, 0) : 0,
				  m < n ? fmin(middle + half, 1) : 1 };
}

/*
 * Where the beta distribution's tail on that side is @tail. By halving: GSL's own
 * inverse gives up on many arguments, and ends the program. NaN: GSL cannot
 * tell the tail either.
 */
static double beta_quantile(double tail, bool upper, double a, double b)
{
	double low = 0, high = 1, x, p;
	int i;

	for (i = 0; i < 100; i++) {
		x = (low + high) / 2;
		p = upper ? gsl_cdf_beta_Q(x, a, b) : gsl_cdf_beta_P(x, a, b);
		if (isnan(p))
			return NAN;
		if (upper ? p > tail : p < tail)
			low = x;
		else
			high = x;
	}
	return (low + high) / 2;
}

struct interval metric_clopper_pearson(uint64_t m, uint64_t n,
				       double confidence)
{
	double tail = (1 - confidence) / 2;
	double hits = (double)m, rest = (double)(n - m);

	struct interval at;

	if (!sensible(m, n, confidence))
		return none;
	at.low = m ? beta_quantile(tail, false, hits, rest + 1) : 0;
	at.high = m < n ? beta_quantile(tail, true, hits + 1, rest) : 1;
	/* With millions of both kinds the two are the same for six digits. */
	return isnan(at.low) || isnan(at.high) ? metric_wilson(m, n, confidence) : at;
}

struct interval metric_difference(uint64_t ma, uint64_t na, uint64_t mb,
				  uint64_t nb, double confidence)
{
	struct interval a = metric_wilson(ma, na, confidence);
	struct interval b = metric_wilson(mb, nb, confidence);
	double pa = metric_op(ma, na), pb = metric_op(mb, nb);

	return (struct interval){
		pa - pb - hypot(pa - a.low, b.high - pb),
		pa - pb + hypot(a.high - pa, pb - b.low),
	};
}

struct interval metric_hull(struct interval a, struct interval b)
{
	/* fmin() and fmax() leave NaN out. */
	return (struct interval){ fmin(a.low, b.low), fmax(a.high, b.high) };
}
