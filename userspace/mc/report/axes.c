// SPDX-License-Identifier: GPL-2.0
/* Axes: their range, and tics at round figures, as text. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>

#include "report.h"

enum { TICS = 6 };

static double round_step(double span)
{
	static const double factors[] = { 1, 2, 5, 10 };
	double base = pow(10, floor(log10(span / TICS)));
	size_t i;

	for (i = 0; i < 3; i++) {
		if (span / (base * factors[i]) <= TICS)
			break;
	}
	return base * factors[i];
}

static void add_tic(json_t *axis, double at, const char *text)
{
	json_array_append_new(json_object_get(axis, "at"), json_real(at));
	json_array_append_new(json_object_get(axis, "tics"), json_string(text));
}

static json_t *make(const char *label, double min, double max, bool log)
{
	return json_pack("{s:s, s:f, s:f, s:b, s:[], s:[]}", "label", label,
			 "min", min, "max", max, "log", log, "at", "tics");
}

static json_t *linear(const char *label, double low, double high, double step)
{
	char text[32];
	json_t *axis;
	double at;
	int digits;

	digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
	low = floor(low / step + 1e-9) * step;
	high = ceil(high / step - 1e-9) * step;
	axis = make(label, low, high, false);
	for (at = low; at < high + step / 2; at += step) {
		snprintf(text, sizeof(text), "%.*f", digits,
			 fabs(at) < step / 1e6 ? 0 : at);
		add_tic(axis, at, text);
	}
	return axis;
}

json_t *axis_linear(const char *label, double low, double high)
{
	if (!(high > low))
		high = low + (low > 0 ? low : 1);
	return linear(label, low, high, round_step(high - low));
}

json_t *axis_whole(const char *label, double high)
{
	high = fmax(high, 1);
	return linear(label, 0, high + 0.5, fmax(1, round_step(high)));
}

/* 0.001, 1, 1000, 100000. */
json_t *axis_log(const char *label, double low, double high)
{
	int first, last, power;
	char text[32];
	json_t *axis;

	first = (int)floor(log10(low) + 1e-9);
	last = (int)ceil(log10(high) - 1e-9);
	if (last <= first)
		last = first + 1;
	axis = make(label, pow(10, first), pow(10, last), true);
	for (power = first; power <= last; power++) {
		snprintf(text, sizeof(text), "%.*f", power < 0 ? -power : 0,
			 pow(10, power));
		add_tic(axis, pow(10, power), text);
	}
	return axis;
}
