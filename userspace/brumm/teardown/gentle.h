/* SPDX-License-Identifier: GPL-2.0 */
/* A kill that leaves the neighbours room. */
#ifndef BRUMM_TEARDOWN_GENTLE_H
#define BRUMM_TEARDOWN_GENTLE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct teardown;

/**
 * struct gentle - what was done, and what was seen
 * @least_weight: the cgroup had the least weight
 * @no_forks: its pids.max was 0
 * @frozen: it was frozen
 * @starved: this here got no CPU in the idle class, and has left it
 * @steps: how many steps were made
 * @largest: greatest number of processes in one
 * @killed: processes killed in steps
 * @zombies: killed before their init, who has not waited for them
 * @released: bytes that process_mrelease() freed
 * @held: one such call did not return in time, and was the last
 * @noise: worst delay of the probe before, ns; NO_LIMIT: no probe
 * @worst: the same meanwhile
 * @over: samples beyond the bound
 * @samples: of all
 */
struct gentle {
	bool least_weight;
	bool no_forks;
	bool frozen;
	bool starved;
	bool held;
	size_t steps;
	size_t largest;
	size_t killed;
	size_t zombies;
	uint64_t released;
	uint64_t noise;
	uint64_t worst;
	uint64_t over;
	uint64_t samples;
};

#define GENTLE_INIT							\
	{ .noise = BRUMM_NO_LIMIT, .worst = BRUMM_NO_LIMIT }

/* For a command that does nothing else: stands back from now on. */
void gentle_begin(struct teardown *t);
/* Confines the processes to the chosen CPUs, for a kill without steps. */
void gentle_place(struct teardown *t);
/* Least weight, no forks, kill in steps. What is left is killed at once then. */
void gentle_kill(struct teardown *t);
/* When it is over. */
void gentle_end(struct teardown *t);

#endif /* BRUMM_TEARDOWN_GENTLE_H */
