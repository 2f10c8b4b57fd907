/* SPDX-License-Identifier: GPL-2.0 */
/* Where and in which class the threads of some processes run. */
#ifndef BRUMM_TEARDOWN_PLACE_H
#define BRUMM_TEARDOWN_PLACE_H

#include <sched.h>

#include "tasks.h"

/* Whose scheduling class becomes the idle one. */
enum place {
	PLACE_CPUS,	/* nobody's */
	PLACE_REALTIME,	/* that of threads above the weights of cgroups */
	PLACE_ALL,
};

struct sched;	/* how a thread was scheduled */

/*
 * Changes all threads of @tasks; what they had is appended to @list, which is
 * allocated. @cpus: where they may run, NULL: leave that.
 */
void place_tasks(const struct tasks *tasks, const cpu_set_t *cpus,
		 enum place place, struct sched **list, size_t *n);
/* Puts it back for those that are still there; frees the list. */
void place_restore(struct sched *list, size_t n);

#endif /* BRUMM_TEARDOWN_PLACE_H */
