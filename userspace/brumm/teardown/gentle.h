/* SPDX-License-Identifier: GPL-2.0 */
/* A kill that leaves the neighbours room, and the way back from it. */
#ifndef BRUMM_TEARDOWN_GENTLE_H
#define BRUMM_TEARDOWN_GENTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct teardown;

/**
 * struct gentle - what was changed, to restore it, and what was seen
 * @idle: cpu.idle of the cgroup before; -1: not touched
 * @weight: cpu.weight before, 0: not touched
 * @froze: the cgroup was frozen by us
 * @scheds: scheduling of threads that was changed, see gentle.c
 * @steps: how many steps were made
 * @largest: greatest number of processes in one
 * @killed: processes killed in steps
 * @released: bytes that process_mrelease() freed
 * @noise: worst delay of the probe before, ns; NO_LIMIT: no probe
 * @worst: the same meanwhile
 * @over: samples beyond the bound
 * @samples: of all
 */
struct gentle {
	int idle;
	uint64_t weight;
	bool froze;
	struct sched *scheds;
	size_t n_scheds;
	size_t steps;
	size_t largest;
	size_t killed;
	uint64_t released;
	uint64_t noise;
	uint64_t worst;
	uint64_t over;
	uint64_t samples;
};

#define GENTLE_INIT							\
	{ .idle = -1, .noise = BRUMM_NO_LIMIT, .worst = BRUMM_NO_LIMIT }

/* Confines the processes to the chosen CPUs, for a kill without steps. */
void gentle_place(struct teardown *t);
/* Least weight, freezer, kill in steps. What is left is killed at once then. */
void gentle_kill(struct teardown *t);
/* Puts back what was changed, as far as it still exists. */
void gentle_restore(struct teardown *t);

#endif /* BRUMM_TEARDOWN_GENTLE_H */
