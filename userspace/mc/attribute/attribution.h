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
 * Attaches, if the options ask for it; NULL: they do not, or no memory, which it says.
 * What cannot be had here is said, and in the result: the load goes on.
 */
struct attribution *attribution_open(const struct config *c);
void attribution_start(struct attribution *a);
void attribution_stop(struct attribution *a);
void attribution_close(struct attribution *a);

/* Of all requests, when it was stopped; says what is wrong, -errno. */
int attribution_explain(struct attribution *a, const struct worker *w,
			const struct window *window);

/* EXIT_FINE; EXIT_MISSED: records were lost; EXIT_UNSUPPORTED: not to be had here. */
int attribution_status(const struct attribution *a);
/* null for NULL. */
json_t *attribution_json(const struct attribution *a);
void attribution_print(const struct attribution *a, FILE *f);

#endif /* BRUMM_MC_ATTRIBUTION_H */
