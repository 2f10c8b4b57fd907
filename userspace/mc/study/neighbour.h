/* SPDX-License-Identifier: GPL-2.0 */
/* Who disturbs the servers of a cell, when, and what became of it. */
#ifndef BRUMM_MC_NEIGHBOUR_H
#define BRUMM_MC_NEIGHBOUR_H

#include "child.h"
#include "plan.h"

/**
 * struct neighbour - of one cell
 * @child: brumm run, which has the tenant in its cgroup
 * @said: its messages: that a tenant was killed is none that we need
 * @group: that cgroup
 * @grown: what the tenant said of itself, or NULL
 * @reap: what brumm reap said, or NULL
 * @from, @until: while it disturbed, CLOCK_MONOTONIC ns; 0: it did not
 */
struct neighbour {
	const struct spec *s;
	const struct cell *c;
	struct child child;
	int said;
	char group[64];
	json_t *grown, *reap;
	uint64_t from, until;
};

/*
 * Lets a tenant grow, before the load starts; a storm waits. 0, or a negative
 * errno and a line in @why.
 */
int neighbour_start(struct neighbour *n, const struct spec *s,
		    const struct cell *c, char *why, size_t size);

/* Acts: kills the tenant, or storms and ends that. Returns when it is over. */
int neighbour_act(struct neighbour *n, char *why, size_t size);

void neighbour_stop(struct neighbour *n);

/* "neighbour" of the cell's result; null without one. */
json_t *neighbour_json(const struct neighbour *n);

#endif /* BRUMM_MC_NEIGHBOUR_H */
