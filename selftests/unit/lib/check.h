/* SPDX-License-Identifier: GPL-2.0 */
/* Is the real thing sound, and what the model says it is? */
#ifndef UNIT_CHECK_H
#define UNIT_CHECK_H

#include "model.h"

/*
 * All that must hold of the structures while no operation is under way,
 * whatever they contain: order, augmentation, counts, references, states.
 */
void check_structures(void);

/* The same nodes, parents, charges, frames as the model. */
void check_model(const struct model *m);

/*
 * Page tables: nothing is shown that @after does not allow; what was shown in
 * @ptes and has the same mapping in @before and @after still is.
 */
typedef u64 pte_copy[MODEL_WINDOWS][MODEL_PAGES];
void check_ptes_save(const struct model *m, pte_copy ptes);
void check_ptes(const struct model *before, const struct model *after,
		pte_copy ptes);

void check_events(const struct model *m);

#endif /* UNIT_CHECK_H */
