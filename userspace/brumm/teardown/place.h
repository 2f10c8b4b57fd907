/* SPDX-License-Identifier: GPL-2.0 */
/* Where and in which class the threads of some processes run. */
#ifndef BRUMM_TEARDOWN_PLACE_H
#define BRUMM_TEARDOWN_PLACE_H

#include <jansson.h>
#include <sched.h>

#include "tasks.h"

/* Whose scheduling class becomes the idle one. */
enum place {
	PLACE_CPUS,	/* nobody's */
	PLACE_REALTIME,	/* that of threads above the weights of cgroups */
	PLACE_ALL,
};

/*
 * How the threads of @tasks are scheduled that are to be changed: an array for the
 * two others. @cpus: where they are to run, NULL: as before.
 */
json_t *place_look(const struct tasks *tasks, const cpu_set_t *cpus,
		   enum place place);
/* Changes them. */
void place_apply(const json_t *threads, const cpu_set_t *cpus);
/* Puts back what is still there, as it was set: 0, or why something is not. */
int place_restore(const json_t *threads);

#endif /* BRUMM_TEARDOWN_PLACE_H */
