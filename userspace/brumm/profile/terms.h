/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The terms of Eq. 1 from the probes: the shapes of the profile are taken back
 * once more, and each sub-operation is timed in the kernel.
 *
 *	syscall	an UNMAP of nothing, from outside, without probes
 *	map	per node: lookup and remove of its batch, and its share of the
 *		rest of the UNMAP; of shapes without deep nodes
 *	pt	per page: zap of its batch, and freeing what the batch frees
 *	deep	what a node in a tree takes beyond a map
 *	lookup	what a reclaim of trees of their own takes beyond these, per tree
 *
 * All of the usual shapes, mappings of one page. A figure by batch stands for
 * as many nodes or pages as the batch had.
 */
#ifndef BRUMM_TERMS_H
#define BRUMM_TERMS_H

#include "../probe/probe.h"
#include "fit.h"
#include "measure.h"

enum terms_part {
	PART_LOOKUP,		/* per node */
	PART_ZAP,		/* per page */
	PART_REMOVE,		/* per node */
	PART_REST,		/* per UNMAP */
	PART_FIXED,		/* per UNMAP: whatever it finds; a part of the rest */
	PART_UNMAP,		/* per node */
	TERMS_PARTS,
};

/**
 * struct terms - what the probes say
 * @why: they were not used: the reason; NULL: they were
 * @rung: the way they were attached
 * @complete: nothing was lost, missed or orphaned
 * @missed, @lost, @orphans: how much was
 * @far: times that are not in a mean: so long that they were interrupted
 * @cost: the probes' own, which is taken out of all figures
 * @term: n counts batches or UNMAPs; sd is that of one node or page
 * @state: the same of the runs in one state; without the sd of a page
 * @part: the parts of an UNMAP, the same way
 * @by_fit: the sum of the terms / the same of fitted ones, of each usual shape
 * @by_runs: the same / UNMAPs timed without probes
 */
struct terms {
	char *why;
	const char *rung;
	bool complete;
	uint64_t missed, lost, orphans, far;
	struct probe_cost cost;
	struct summary term[FIT_TERMS];
	struct summary state[MEASURE_STATES][FIT_TERMS];
	struct summary part[TERMS_PARTS];
	struct summary by_fit, by_runs;
};

extern const char *const terms_parts[TERMS_PARTS];

/*
 * Is it worth to begin? 0: see @why; or -ENOMEM. Free it in any case.
 */
int terms_try(struct terms *t);

/*
 * Measures the shapes of @m, which are there. 0: see @why, too; -EINTR on a
 * signal, or another error. Free it in any case.
 */
int terms_measure(const struct measure_options *o, const struct measure *m,
		  struct terms *t);
void terms_free(struct terms *t);

/* Fills in @by_fit and @by_runs. 0 or -ENOMEM. */
int terms_compare(struct terms *t, const struct measure *m,
		  const double fit[FIT_TERMS]);

/* Are the two states' means of a term apart, by their 95 % intervals? */
bool terms_differ(const struct terms *t, enum fit_term term);

/* The means, by term. */
void terms_means(const struct terms *t, double ns[FIT_TERMS]);

#endif /* BRUMM_TERMS_H */
