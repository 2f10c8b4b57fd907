/* SPDX-License-Identifier: GPL-2.0 */
/* A kill that leaves the neighbours room. */
#ifndef BRUMM_TEARDOWN_GENTLE_H
#define BRUMM_TEARDOWN_GENTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct teardown;

/**
 * struct gentle - what was done, and what was seen
 * @least_weight: the cgroup had the least weight
 * @frozen: it was frozen
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
	bool least_weight;
	bool frozen;
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
	{ .noise = BRUMM_NO_LIMIT, .worst = BRUMM_NO_LIMIT }

/* Confines the processes to the chosen CPUs, for a kill without steps. */
void gentle_place(struct teardown *t);
/* Least weight, freezer, kill in steps. What is left is killed at once then. */
void gentle_kill(struct teardown *t);

#endif /* BRUMM_TEARDOWN_GENTLE_H */
