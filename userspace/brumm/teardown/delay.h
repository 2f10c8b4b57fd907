/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a neighbour feels: a thread on each of some CPUs that wants to run every
 * millisecond, and notes by how much later it does.
 */
#ifndef BRUMM_TEARDOWN_DELAY_H
#define BRUMM_TEARDOWN_DELAY_H

#include <sched.h>
#include <stdint.h>

struct delay;

/* NULL: not possible. Delays above @bound are counted. */
struct delay *delay_start(const cpu_set_t *cpus, uint64_t bound);
/* The worst since the last call, ns. */
uint64_t delay_take(struct delay *d);
/* All so far: how many samples, how many above the bound; NULL: none. */
void delay_count(const struct delay *d, uint64_t *samples, uint64_t *over);
void delay_stop(struct delay *d);

#endif /* BRUMM_TEARDOWN_DELAY_H */
