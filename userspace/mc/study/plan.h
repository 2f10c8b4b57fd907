/* SPDX-License-Identifier: GPL-2.0 */
/* The cells of a study, and their order. */
#ifndef BRUMM_MC_PLAN_H
#define BRUMM_MC_PLAN_H

#include "spec.h"

/**
 * struct cell - one combination, once
 * @value: of each axis; of the spec
 * @repeat: from 0 on
 * @name: unique among the files of the study
 */
struct cell {
	const char *value[AXES];
	uint64_t repeat;
	char name[192];
};

struct cells {
	struct cell *cell;
	size_t count;
};

/*
 * All combinations, once a repeat; within a repeat by lane, which takes a boot,
 * lanes and cells in an order that only the seed decides. So neither what warms
 * up nor what wears off meets one kind of cell more than another. 0 or -ENOMEM.
 */
int cells_make(struct cells *p, const struct spec *s);
void cells_free(struct cells *p);

/* "axes" of its result. */
json_t *cell_axes_json(const struct cell *c);
uint64_t cell_number(const struct cell *c, enum axis axis);

#endif /* BRUMM_MC_PLAN_H */
