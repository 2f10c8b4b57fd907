/* SPDX-License-Identifier: GPL-2.0 */
/* One cell of a study, from its servers to its result. */
#ifndef BRUMM_MC_CELL_H
#define BRUMM_MC_CELL_H

#include "plan.h"

#define CELL_SCHEMA "brumm-mc-cell/1"

/*
 * Runs it. The result, "brumm-mc-cell/1" of Documentation/abi/mc-study.md, has
 * status done, skipped, misplaced, failed or interrupted, and the reason. NULL:
 * no memory. Nothing of it is left running.
 */
json_t *cell_run(const struct spec *s, const struct cell *c);

/* Its result, if it was skipped: else NULL. Nothing is started. */
json_t *cell_skip(const struct spec *s, const struct cell *c);

/* Is @result one of this very cell that need not be run again? */
bool cell_is_done(const struct spec *s, const struct cell *c,
		  const json_t *result);

#endif /* BRUMM_MC_CELL_H */
