/* SPDX-License-Identifier: GPL-2.0 */
/*
 * brumm mc load --attribute: records what happens on the servers' CPUs in the window,
 * and works out afterwards where the time of the outliers went, and of a sample of
 * the others. All take NULL for a load without it.
 */
#ifndef BRUMM_MC_ATTRIBUTION_H
#define BRUMM_MC_ATTRIBUTION_H

#include <jansson.h>
#include <stdio.h>

#include "../load/tally.h"
#include "../load/worker.h"

struct attribution;

/*
 * Attaches, if the options ask for it; *@a NULL: they do not. What cannot be had here
 * is said, and in the result: the load goes on. -errno: no memory, or no list by the
 * name asked for, which it says.
 */
int attribution_open(const struct config *c, struct attribution **a);
void attribution_start(struct attribution *a);
void attribution_stop(struct attribution *a);
void attribution_close(struct attribution *a);

/*
 * Of all requests, when it was stopped; a signal ends it. What is wrong it says, here
 * and by the status: what the load measured is not touched by it.
 */
void attribution_explain(struct attribution *a, const struct worker *w,
			 const struct window *window);

/*
 * EXIT_FINE; EXIT_MISSED: not complete; EXIT_UNSUPPORTED: not to be had here;
 * EXIT_ERROR: the list could not be written.
 */
int attribution_status(const struct attribution *a);
/* null for NULL. */
json_t *attribution_json(const struct attribution *a);
void attribution_print(const struct attribution *a, FILE *f);

#endif /* BRUMM_MC_ATTRIBUTION_H */
