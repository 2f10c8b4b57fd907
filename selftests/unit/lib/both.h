/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One operation on the real thing and on the model. Each returns what the real
 * one has returned, once it is clear that the model agrees: the same result or
 * an error that applies. With -ENOMEM the model has not moved, except where the
 * interface allows a target to be left empty.
 */
#ifndef UNIT_BOTH_H
#define UNIT_BOTH_H

#include "check.h"

void both_init(struct model *m, const struct world_config *c);

int both_alloc(struct model *m, int w, u32 start, u32 pages);
int both_map(struct model *m, const struct mreq *r);
int both_unmap(struct model *m, int w, u32 start, u32 pages, bool self);
int both_reduce(struct model *m, int w, u32 start, u32 pages, bool self,
		u32 rights);
int both_query(struct model *m, int w, u32 page, bool next, bool count);
void both_release(struct model *m, int w);
void both_reclaim(struct model *m, int g);
void both_limit(struct model *m, int g, u64 max);
void both_lock(struct model *m, int g, bool locked);
/* Of group @g, -1: the root; NULL: inherit. */
void both_prices(struct model *m, int g, const struct ledger_prices *p);
void both_touch(struct model *m, int w);

/* Around an operation: all that must hold before and after. */
struct both_before {
	struct model model;
	pte_copy ptes;
};

void both_before(struct model *m, struct both_before *b);
void both_check(struct model *m, struct both_before *b);

#endif /* UNIT_BOTH_H */
