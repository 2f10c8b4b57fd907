// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gates.h"

#define LEAST_WINDOW	1e9	/* ns */
#define LEAST_REQUESTS	1000
#define RATE_ERROR	0.01
#define LATE_SHARE	0.01
#define START_ERROR	1e6	/* ns */
/* Quantile 0.999 of A^2 where the distribution is known: 6.000. */
#define ARRIVALS_LIMIT	6.0
#define LEAST_GAPS	50
#define BUSY_SHARE	0.8
#define RUN_DELAY_SHARE	0.05
#define TIMER_LATE	1e6	/* ns */
#define CLOCK_DRIFT	1e-3
#define CLOCK_STEP	1e3	/* ns */
#define MISS_SHARE	0.01
#define STEAL_SHARE	0.01
#define LITTLE_ERROR	0.02

static enum verdict at_most(double value, double limit)
{
	if (isnan(value))
		return GATE_UNKNOWN;
	return value <= limit ? GATE_PASS : GATE_FAIL;
}

static enum verdict at_least(double value, double limit)
{
	return at_most(-value, -limit);
}

static struct gate most(const char *name, double value, double limit,
			const char *unit, const char *text)
{
	return (struct gate){ name, unit, text, at_most(value, limit), value,
			      limit };
}

static struct gate window_gate(const struct facts *f)
{
	struct gate g = { "window", "s", "too short to say anything of rare events",
			  at_least(f->window, LEAST_WINDOW), f->window / 1e9,
			  LEAST_WINDOW / 1e9 };

	if (g.verdict == GATE_PASS && f->requests < LEAST_REQUESTS) {
		g = (struct gate){ "window", "requests",
				   "too few to say anything of rare events",
				   GATE_FAIL, f->requests, LEAST_REQUESTS };
	}
	return g;
}

/* The greater of two errors: schedule against rate, sent against schedule. */
static struct gate rate_gate(const struct facts *f)
{
	double wanted = f->rate * f->window / 1e9;
	double schedule = fabs(f->scheduled - wanted);
	double sent = fabs(f->sent - f->scheduled) / f->scheduled;

	/* A schedule cut short has as many as chance will have it. */
	schedule = schedule <= 4 * sqrt(wanted) + 1 && f->interrupted ?
		   0 : schedule / wanted;
	return most("rate", schedule > sent ? schedule : sent, RATE_ERROR, "",
		    "not as much was sent as was to be");
}

static struct gate little_gate(const struct facts *f)
{
	return most("little", f->latencies > 0 ?
		    fabs(f->in_flight / f->latencies - 1) : NAN, LITTLE_ERROR, "",
		    "what was in flight, and latencies, do not agree");
}

static struct gate clock_gate(const struct facts *f)
{
	if (f->backwards > 0)
		return most("clock", f->backwards, 0, "times",
			    "the clock went backwards");
	if (f->resolution > CLOCK_STEP)
		return most("clock", f->resolution, CLOCK_STEP, "ns",
			    "the clock is too coarse");
	return most("clock", fabs(f->drift), CLOCK_DRIFT, "",
		    "the clock does not go as fast as the hardware's");
}

static struct gate server_gate(const struct facts *f)
{
	if (f->restarts > 0)
		return most("server", f->restarts, 0, "restarts",
			    "a server was restarted");
	return most("server", f->evictions, 0, "evictions",
		    "a server threw items away; give it more memory, or use fewer keys");
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

void gates_judge(const struct facts *f, struct gate gate[GATES])
{
	struct gate list[GATES] = {
		most("complete", f->interrupted, 0, "", "it was cut short"),
		most("ranks", f->ranks - f->reported, 0, "missing",
		     "a rank did not report"),
		most("start", f->start_error, START_ERROR, "ns",
		     "ranks may not have started together"),
		window_gate(f),
		rate_gate(f),
		most("lag", share(f->late, f->requests), LATE_SHARE, "",
		     "the client sent late: use more threads or CPUs, or a lower rate"),
		most("arrivals", f->arrivals, ARRIVALS_LIMIT, "A^2",
		     "the gaps between requests are not those of the model"),
		most("busy", f->busy, BUSY_SHARE, "",
		     "the client is the bottleneck: use more threads or CPUs"),
		most("run-delay", f->run_delay, RUN_DELAY_SHARE, "",
		     "others ran on the client's CPU: see --cpus"),
		most("timer", f->timer, TIMER_LATE, "ns",
		     "sleeps end late: is it a virtual machine that is busy?"),
		clock_gate(f),
		most("connections", f->lost, 0, "lost", "connections were lost"),
		most("errors", f->errors, 0, "", "requests failed"),
		most("hits", share(f->misses, f->asked), MISS_SHARE, "",
		     "keys are missing that were stored before"),
		server_gate(f),
		most("steal", f->steal, STEAL_SHARE, "",
		     "the hypervisor gave the CPUs to others"),
		little_gate(f),
	};
	unsigned int i;

	for (i = 0; i < GATES; i++)
		gate[i] = list[i];
}

bool gates_failed(const struct gate gate[GATES])
{
	unsigned int i;

	for (i = 0; i < GATES; i++) {
		if (gate[i].verdict == GATE_FAIL)
			return true;
	}
	return false;
}

static json_t *number_or_null(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *gates_json(const struct gate gate[GATES])
{
	static const char *const verdicts[] = { "pass", "fail", "unknown" };
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; list && i < GATES; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:o, s:o, s:s, s:s}",
				  "name", gate[i].name,
				  "verdict", verdicts[gate[i].verdict],
				  "value", number_or_null(gate[i].value),
				  "limit", number_or_null(gate[i].limit),
				  "unit", gate[i].unit,
				  "text", gate[i].verdict == GATE_FAIL ?
					  gate[i].text : ""));
	return list;
}

void gate_reason(const struct gate *g, char *buf, size_t size)
{
	snprintf(buf, size, "gate %s: %.4g%s%s, limit %.4g: %s", g->name, g->value,
		 *g->unit ? " " : "", g->unit, g->limit, g->text);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double gates_anderson_darling(double *gap, size_t n, double mean)
{
	double sum = 0, low, high;
	size_t i;

	if (n < LEAST_GAPS)
		return NAN;
	qsort(gap, n, sizeof(*gap), by_value);
	for (i = 0; i < n; i++) {
		/* ln F(x_i), and ln(1 - F(x_{n-1-i})), of 1 - exp(-x / mean). */
		low = gap[i] > 0 ? log(-expm1(-gap[i] / mean)) : -700;
		high = -gap[n - 1 - i] / mean;
		sum += (2.0 * (double)i + 1) * (low + high);
	}
	return -(double)n - sum / (double)n;
}
