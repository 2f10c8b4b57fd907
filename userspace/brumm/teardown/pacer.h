/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many processes to kill in the next step, and how long to rest after it:
 * learned from the steps before. Arithmetic only.
 */
#ifndef BRUMM_TEARDOWN_PACER_H
#define BRUMM_TEARDOWN_PACER_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct pacer - state
 * @step: CPU time that a step may take, ns
 * @slo: bound of the neighbours' delay, ns; 0: none
 * @unit: CPU time of a unit so far (a moving mean), ns; 0: not known
 * @last: units of the last step
 * @rest: how long to rest after the last step, ns
 */
struct pacer {
	uint64_t step;
	uint64_t slo;
	uint64_t unit;
	uint64_t last;
	uint64_t rest;
};

void pacer_init(struct pacer *p, uint64_t step, uint64_t slo);
/* Units of the next step, at least 1. */
size_t pacer_next(const struct pacer *p);
/*
 * A step of @units took @work of CPU time (0: not accounted yet) and @wall
 * altogether; the worst delay
 * of a neighbour was @delay (0: not measured).
 */
void pacer_done(struct pacer *p, size_t units, uint64_t work, uint64_t wall,
		uint64_t delay);
/* Relative weight of a process with @rss bytes. */
size_t pacer_units(uint64_t rss);

#endif /* BRUMM_TEARDOWN_PACER_H */
