/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many clients as one: each rank of an MPI program is one. They start by the clock of
 * rank 0, against which each knows its own, and at the end rank 0 adds up what all
 * have counted. Every wait has an end: a rank that is gone is missing, no more.
 */
#ifndef BRUMM_MC_RANKS_H
#define BRUMM_MC_RANKS_H

#include "schedule.h"

#define MAX_RANKS	4096

struct mpi_plugin;

/**
 * struct ranks - this one and the others
 * @share: its number, and how many there are
 * @offset: clock of this rank - that of rank 0, ns
 * @error: of that, at most; of rank 0: of any rank
 * @missing: of rank 0: those that are gone
 * @mpi: NULL where there is only this one
 */
struct ranks {
	struct share share;
	int64_t offset;
	uint64_t error;
	bool missing[MAX_RANKS];
	const struct mpi_plugin *mpi;
};

/* What rank 0 says before each phase. */
struct go {
	uint64_t start;		/* when it begins, on the clock of who reads it */
	uint64_t hedge;		/* rank 0's, for all */
	bool stop;		/* somebody cannot go on */
};

/* Joins the others, if there are; says what is wrong, an exit code. */
int ranks_open(struct ranks *r, const struct config *c);
/* Leaves. @whole: of rank 0: all will come here, as far as it knows. */
void ranks_close(struct ranks *r, bool whole);

/**
 * ranks_ready() - wait until all are where this one is
 * @failed: this one cannot go on; then none does
 * @lead: start so many ns later
 * @patience: ns that rank 0 waits for the others; they wait twice as long
 * @go: in: @hedge of rank 0; out: all of it
 *
 * -ETIMEDOUT: rank 0 is gone; -EINTR: a signal.
 */
int ranks_ready(struct ranks *r, bool failed, uint64_t lead, uint64_t patience,
		struct go *go);

/* Of a rank but 0: sends its result to rank 0; -ETIMEDOUT, -EINTR. */
int ranks_send(struct ranks *r, const void *data, size_t size);

/**
 * ranks_collect() - of rank 0: the results of the others, as they come
 * @patience: ns; a signal shortens it, but what is already under way can come
 * @take: is told of each; false: it is not usable
 *
 * Who sends none is @missing.
 */
void ranks_collect(struct ranks *r, uint64_t patience,
		   bool (*take)(unsigned int from, const void *data, size_t size,
				void *arg),
		   void *arg);

unsigned int ranks_missing(const struct ranks *r);
json_t *ranks_missing_json(const struct ranks *r);

#endif /* BRUMM_MC_RANKS_H */
