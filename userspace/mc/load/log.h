/* SPDX-License-Identifier: GPL-2.0 */
/* Every request of a run in a file; the format is in Documentation/abi/mc-json.md. */
#ifndef BRUMM_MC_LOG_H
#define BRUMM_MC_LOG_H

#include "tally.h"
#include "worker.h"

/**
 * log_write() - write what the threads have noted
 * @path: the file; with more than one rank it gets the number of the rank
 * @w: threads
 *
 * Says what is wrong; -errno. A file is there as a whole, or not at all.
 */
int log_write(const char *path, const struct config *c, const struct share *share,
	      const struct worker *w, const struct window *window);

#endif /* BRUMM_MC_LOG_H */
