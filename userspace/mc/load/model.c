// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "model.h"

/* ETC: location, scale and shape of each distribution. */
#define KEY_LOCATION	30.7984
#define KEY_SCALE	8.20449
#define KEY_SHAPE	0.078688
#define VALUE_LOCATION	15.0
#define VALUE_SCALE	214.476
#define VALUE_SHAPE	0.348238
#define GAP_SCALE	16.0292		/* us, at the rate of that pool */
#define GAP_SHAPE	0.154971

/* Share of values of 0, 1, ... 14 bytes. */
static const double small_values[] = {
	0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606,
	0.00023, 0.00837, 0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
};

static const char *const gap_names[] = {
	[GAP_EXPONENTIAL] = "exponential",
	[GAP_FIXED] = "fixed",
	[GAP_ETC] = "etc",
};

static int parse_range(const char *text, unsigned long *low, unsigned long *high)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*low = *high = strtoul(text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*high = strtoul(end + 1, &end, 10);
	if (errno)
		return -ERANGE;
	return *end || *high < *low ? -EINVAL : 0;
}

int size_model_parse(const char *text, uint32_t max, struct size_model *m)
{
	unsigned long low, high;
	int err;

	if (!strcmp(text, "etc")) {
		m->kind = SIZE_ETC;
		return 0;
	}
	err = parse_range(text, &low, &high);
	if (err)
		return err;
	if (!low || high > max)
		return -ERANGE;
	*m = (struct size_model){ SIZE_RANGE, (uint32_t)low, (uint32_t)high };
	return 0;
}

const char *size_model_name(const struct size_model *m, char *buf)
{
	if (m->kind == SIZE_ETC)
		strcpy(buf, "etc");
	else if (m->low == m->high)
		sprintf(buf, "%u", m->low);
	else
		sprintf(buf, "%u-%u", m->low, m->high);
	return buf;
}

int gap_kind_parse(const char *text, enum gap_kind *kind)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(gap_names); i++) {
		if (!strcmp(text, gap_names[i])) {
			*kind = (enum gap_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *gap_kind_name(enum gap_kind kind)
{
	return gap_names[kind];
}

/* Inverse of the distribution function of the generalised extreme value. */
static double gev(gsl_rng *rng, double location, double scale, double shape)
{
	double u = gsl_rng_uniform_pos(rng);

	return location + scale / shape * (pow(-log(u), -shape) - 1);
}

/* The same of the generalised Pareto distribution. */
static double pareto(gsl_rng *rng, double location, double scale, double shape)
{
	double u = gsl_rng_uniform_pos(rng);

	return location + scale / shape * (pow(u, -shape) - 1);
}

static uint32_t clamp(double v, uint32_t max)
{
	if (v < 1)
		return 1;
	return v > max ? max : (uint32_t)v;
}

static uint32_t range(const struct size_model *m, gsl_rng *rng)
{
	return m->low + (uint32_t)gsl_rng_uniform_int(rng, m->high - m->low + 1ul);
}

uint32_t model_key_size(const struct size_model *m, gsl_rng *rng)
{
	if (m->kind == SIZE_RANGE)
		return range(m, rng);
	return clamp(round(gev(rng, KEY_LOCATION, KEY_SCALE, KEY_SHAPE)),
		     MODEL_MAX_KEY);
}

uint32_t model_value_size(const struct size_model *m, gsl_rng *rng)
{
	double u;
	size_t i;

	if (m->kind == SIZE_RANGE)
		return range(m, rng);
	u = gsl_rng_uniform(rng);
	for (i = 0; i < ARRAY_SIZE(small_values); i++) {
		if (u < small_values[i])
			return clamp((double)i, MODEL_MAX_VALUE);
		u -= small_values[i];
	}
	return clamp(pareto(rng, VALUE_LOCATION, VALUE_SCALE, VALUE_SHAPE),
		     MODEL_MAX_VALUE);
}

double model_gap(enum gap_kind kind, gsl_rng *rng)
{
	switch (kind) {
	case GAP_FIXED:
		return 1;
	case GAP_ETC:
		return pareto(rng, 0, GAP_SCALE, GAP_SHAPE);
	case GAP_EXPONENTIAL:
		break;
	}
	return gsl_ran_exponential(rng, 1);
}
