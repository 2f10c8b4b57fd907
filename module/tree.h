/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the mapping database share among themselves: steps on the
 * trees under their locks, and the state of an operation under way.
 */
#ifndef BRUMM_TREE_H
#define BRUMM_TREE_H

#include "mapdb.h"

/* Nodes kept at hand for cuts, so that none is needed under a lock. */
#define MAPDB_SPARE		16

/*
 * A position in a walk over descendants, parents before children. It holds on
 * to lineages only, so that the mutex may be dropped between two steps and any
 * node removed.
 */
struct mapdb_walk {
	struct mapdb_frames *frames;
	int level;			/* -1: at the end */
	struct mapdb_walk_level {
		struct mapdb_lineage *lineage;
		u64 id;			/* with frame: the last node taken */
		u32 frame;
		u32 lo;			/* frames of interest */
		u32 hi;
	} at[MAPDB_MAX_DEPTH + 1];
};

/* One step of the way down to the leaf that a revoke takes next. */
struct mapdb_path {
	struct mapdb_node *node;
	struct mapdb_lineage *lineage;
	u32 lo;
	u32 hi;
	bool blocked;
};

/* Reserved at a sponsor for nodes that cuts are going to add. */
struct mapdb_credit {
	struct mapdb_sponsor *sponsor;
	struct ledger_counts counts;
};

/* Sponsors with credit at most; cuts at further ones are charged as they come. */
#define MAPDB_CREDITS		4

/**
 * struct mapdb_op - a revoke, a reduction of rights, a query or a grant
 * @actor: who does it; what happens in this space is no event to it
 * @res: what it did so far
 * @spare: free nodes for cuts, linked by ->next
 * @nr_spare: how many
 * @starved: stopped since @spare was used up
 * @credit: reserved
 * @nr_credits: at how many sponsors
 * @nr: nodes in @batch
 * @batch: nodes that are owned
 * @path: way down, valid under one hold of the mutex
 * @walk: position that survives it
 */
struct mapdb_op {
	struct mapdb_space *actor;
	struct mapdb_unmap_result res;
	struct mapdb_node *spare;
	unsigned int nr_spare;
	bool starved;
	unsigned int nr_credits;
	struct mapdb_credit credit[MAPDB_CREDITS];
	unsigned int nr;
	struct mapdb_node *batch[MAPDB_BATCH];
	union {
		struct mapdb_path path[MAPDB_MAX_DEPTH + 1];
		struct mapdb_walk walk;
	};
};

/* Below a node that stays: nobody may derive from this range meanwhile. */
struct mapdb_revoke {
	struct list_head link;
	struct mapdb_lineage *lineage;
	u32 lo;
	u32 hi;
};

/*
 * Read side: from the charge for a node to its linking. Who reclaims waits for
 * those, so that nothing charged before a lock shows up behind it.
 */
extern struct srcu_struct *const mapdb_charging;

/* nodes and lineages */
struct mapdb_node *mapdb_node_alloc(gfp_t gfp);
void mapdb_node_free(struct mapdb_node *n);
void mapdb_free_list(struct mapdb_node *n);
struct mapdb_lineage *mapdb_lineage_alloc(void);
void mapdb_lineage_init(struct mapdb_lineage *l, struct mapdb_frames *f);
void mapdb_lineage_get(struct mapdb_lineage *l);
void mapdb_lineage_put(struct mapdb_lineage *l);
struct mapdb_node *mapdb_lineage_first(struct mapdb_lineage *l, u32 lo, u32 hi);
struct mapdb_node *mapdb_lineage_next(struct mapdb_node *n, u32 lo, u32 hi);
struct mapdb_node *mapdb_lineage_after(struct mapdb_lineage *l, u32 frame,
				       u64 id, u32 lo, u32 hi);

/* frames */
void mapdb_frames_put(struct mapdb_frames *f);
struct mapdb_node *mapdb_lock_at(struct mapdb_space *s, u32 page, u32 end);
void mapdb_frames_unlock(struct mapdb_frames *f);
void mapdb_frames_changed(struct mapdb_frames *f);
void mapdb_frames_wait(struct mapdb_frames *f, unsigned long change);
int mapdb_frames_wait_killable(struct mapdb_frames *f, unsigned long change);

/* linking */
bool mapdb_space_insert(struct mapdb_space *s, struct mapdb_node *n);
void mapdb_link(struct mapdb_node *n, struct mapdb_lineage *up);
void mapdb_unlink(struct mapdb_node *n);
void mapdb_first_add(struct mapdb_node *n);
void mapdb_first_del(struct mapdb_node *n);

/* charges */
void mapdb_node_counts(const struct mapdb_node *n, struct ledger_counts *c);

/* operations */
struct mapdb_op *mapdb_op_alloc(struct mapdb_space *actor, gfp_t gfp);
void mapdb_op_free(struct mapdb_op *op);
void mapdb_op_refill(struct mapdb_op *op);
void mapdb_op_spare(struct mapdb_op *op, struct mapdb_node *n);
struct ledger_counts *mapdb_op_credit(struct mapdb_op *op,
				      struct mapdb_sponsor *sp, bool make);
int mapdb_op_charge(struct mapdb_op *op);
void mapdb_op_settle(struct mapdb_op *op);
struct mapdb_node *mapdb_cut(struct mapdb_op *op, struct mapdb_node *n, u32 lo,
			     u32 hi, bool leave);
void mapdb_batch_sort(struct mapdb_op *op);
void mapdb_batch_state(struct mapdb_op *op, enum mapdb_state state, u32 take);
void mapdb_batch_zap(struct mapdb_op *op);

/* walk.c */
void mapdb_walk_start(struct mapdb_walk *w, struct mapdb_lineage *l, u32 lo,
		      u32 hi);
struct mapdb_node *mapdb_walk_next(struct mapdb_walk *w);
void mapdb_walk_back(struct mapdb_walk *w, struct mapdb_node *n);
void mapdb_walk_enter(struct mapdb_walk *w, struct mapdb_node *n);
void mapdb_walk_stop(struct mapdb_walk *w);

#endif /* BRUMM_TREE_H */
