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

struct interval metric_clopper_pearson(uint64_t m, uint64_t n,
				       double confidence)
{
	double tail = (1 - confidence) / 2;
	double hits = (double)m, rest = (double)(n - m);

	if (!sensible(m, n, confidence))
		return none;
	return (struct interval){
		m ? gsl_cdf_beta_Pinv(tail, hits, rest + 1) : 0,
		m < n ? gsl_cdf_beta_Qinv(tail, hits + 1, rest) : 1,
	};
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
