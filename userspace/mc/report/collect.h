/* SPDX-License-Identifier: GPL-2.0 */
/* Results of a study, read again: cells with the same axes are one group. */
#ifndef BRUMM_MC_COLLECT_H
#define BRUMM_MC_COLLECT_H

#include "../results/figures.h"
#include "../study/plan.h"

/**
 * struct group - the repeats of a cell
 * @axes: what they have in common
 * @run, @cell: the repeats that are done, and their files
 * @runs: how many
 * @left: those that are not, as { cell, status, reason }
 */
struct group {
	json_t *axes;
	struct load *run;
	json_t **cell;
	size_t runs;
	json_t *left;
};

/**
 * struct study_results - a folder
 * @study: study.json
 * @machines: by lane
 * @group: in the order of the axes
 */
struct study_results {
	json_t *study, *machines;
	struct group *group;
	size_t groups;
	struct figures_opts opts;
};

/*
 * Reads the folder of a study; or one result of brumm mc load, as a study of one
 * cell. 0, or -1 when the reason is said.
 */
int collect(struct study_results *r, const char *path);
void collect_free(struct study_results *r);

/* The text of an axis; never NULL. */
const char *group_axis(const struct group *g, enum axis axis, char *buf,
		       size_t size);

/* Which of the axes have several values among groups with results? */
void collect_varied(const struct study_results *r, bool varied[AXES]);

/* Names a group by the varied axes but those of @but (NULL: none). */
void group_label(const struct group *g, const bool varied[AXES],
		 const bool but[AXES], char *to, size_t size);

#endif /* BRUMM_MC_COLLECT_H */
