/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who does what, when several do it at once: for the coroutines and for the
 * threads. There is no model then; what can be told is told of frames that only
 * one of them can have handed out.
 */
#ifndef UNIT_ACTORS_H
#define UNIT_ACTORS_H

#include "ops.h"

/* Windows that all share come first, then one for each owner. */
#define SHARED_WINDOWS	3
#define MAX_OWNERS	4

struct actor {
	struct rnd rnd;
	unsigned int steps;
	int owned;		/* window of its own, if it is an owner */
	bool quiet;		/* no log: threads would mix their lines */
	unsigned long done;
};

/* A world with the shared windows and one for each of @owners. */
void actors_world(struct world_config *c, int owners, u32 pages);

/* Any operation on the shared windows. */
void actor_worker(void *arg);
/* Touches pages. */
void actor_toucher(void *arg);
/*
 * Hands out frames from a window of its own and takes them back: then nobody
 * may see them any more, whoever has passed them on meanwhile.
 */
void actor_owner(void *arg);
/*
 * A cgroup that comes and goes. When it is removed it pays for nothing but what
 * operations under way have charged, which find out that what they meant to
 * derive from, or to cut, is gone.
 */
struct mapdb_sponsor *cgroup_make(void);
void cgroup_remove(struct mapdb_sponsor *sp);
/* Limits, locks, prices, reclaims. */
void actor_controller(void *arg);

/* When all have ended: structures and page tables must fit together. */
void actors_check(void);

#endif /* UNIT_ACTORS_H */
