// SPDX-License-Identifier: GPL-2.0
#include "pacer.h"

#define MIN_STEP	100000u		/* ns */
#define MAX_REST	20000000u
#define MAX_UNITS	4096u

void pacer_init(struct pacer *p, uint64_t step, uint64_t slo)
{
	*p = (struct pacer){ .step = step, .slo = slo };
	if (!p->step)
		/* A neighbour may have to wait for all of a step. */
		p->step = slo / 4;
	if (p->step < MIN_STEP)
		p->step = MIN_STEP;
}

size_t pacer_next(const struct pacer *p)
{
	uint64_t n = p->unit ? p->step / p->unit : 1;

	/*
	 * CPU time shows up late, that of the first may seem to be next to
	 * nothing: grow step by step all the same.
	 */
	if (n > 2 * p->last)
		n = 2 * p->last;
	return n < 1 ? 1 : n > MAX_UNITS ? MAX_UNITS : (size_t)n;
}

static void adapt(struct pacer *p, uint64_t delay)
{
	/* A step shows only that delay which somebody happened to feel. */
	if (delay > p->slo / 2) {
		/* Less at a time, and longer until the next. */
		p->step = p->step / 2 > MIN_STEP ? p->step / 2 : MIN_STEP;
		p->rest = p->rest ? p->rest * 2 : p->slo;
		if (p->rest > MAX_REST)
			p->rest = MAX_REST;
		return;
	}
	p->rest /= 2;
	if (delay <= p->slo / 4)
		p->step += p->step / 4;
	/*
	 * What the dead leave to RCU comes later, and in one go: nobody has felt it
	 * when the next step is chosen.
	 */
	if (p->step > p->slo / 2)
		p->step = p->slo / 2;
}

void pacer_done(struct pacer *p, size_t units, uint64_t work, uint64_t wall,
		uint64_t delay)
{
	uint64_t unit = work / (units ? units : 1);

	p->last = units;
	if (!work)
		unit = wall / (units ? units : 1);
	if (unit < 1)
		unit = 1;
	p->unit = p->unit ? (p->unit * 3 + unit) / 4 : unit;
	if (p->slo)
		adapt(p, delay);
	else
		/* Half of the time belongs to the others. */
		p->rest = wall < MAX_REST ? wall : MAX_REST;
}

size_t pacer_units(uint64_t rss)
{
	uint64_t n = 1 + (rss >> 20);

	return n > MAX_UNITS ? MAX_UNITS : (size_t)n;
}
