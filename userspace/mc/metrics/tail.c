// SPDX-License-Identifier: GPL-2.0
/* Percentiles, and means beyond them, of a histogram's slots. */
#define _GNU_SOURCE
#include <math.h>

#include "metrics.h"

static const struct tail_value none = { NAN, { NAN, NAN } };

static double total(const struct tail_slot *s, size_t count)
{
	double n = 0;
	size_t i;

	for (i = 0; i < count; i++)
		n += (double)s[i].n;
	return n;
}

/*
 * How many are not beyond the percentile. The rank is a whole number, so that
 * p99 of 100 values is the 99th; what floating point makes of 0.99 * 100 must
 * not shift that.
 */
static double rank_of(double percent, double n)
{
	double rank = percent / 100 * n, near = round(rank);

	return fabs(rank - near) < 1e-9 * fmax(n, 1) ? near : ceil(rank);
}

struct tail_value metric_percentile(const struct tail_slot *s, size_t count,
				    double percent)
{
	double n = total(s, count), rank, seen = 0;
	size_t i;

	if (n < 1 || !(percent >= 0 && percent <= 100))
		return none;
	rank = fmax(rank_of(percent, n), 1);
	for (i = 0; i < count; i++) {
		if (s[i].n && seen + (double)s[i].n >= rank)
			break;
		seen += (double)s[i].n;
	}
	return (struct tail_value){
		s[i].low + (s[i].high - s[i].low) * (rank - seen - 0.5) /
			   (double)s[i].n,
		{ s[i].low, s[i].high },
	};
}

struct tail_value metric_tail_mean(const struct tail_slot *s, size_t count,
				   double percent)
{
	double n = total(s, count), beyond, left, take, low = 0, high = 0;
	size_t i;

	if (n < 1 || !(percent >= 0 && percent < 100))
		return none;
	beyond = n - rank_of(percent, n);
	if (beyond < 1)
		return none;
	for (i = count, left = beyond; i-- && left > 0; left -= take) {
		take = fmin(left, (double)s[i].n);
		low += take * s[i].low;
		high += take * s[i].high;
	}
	low /= beyond;
	high /= beyond;
	return (struct tail_value){ (low + high) / 2, { low, high } };
}

double metric_share_below(const struct tail_slot *s, size_t count, size_t slot)
{
	double n = total(s, count);

	return n > 0 ? total(s, slot + 1 < count ? slot + 1 : count) / n : NAN;
}
