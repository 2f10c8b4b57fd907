/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the mapping database share among themselves: steps on the
 * trees under their locks, and the state of an operation under way.
 */
#ifndef BRUMM_TREE_H
#define BRUMM_TREE_H

#include "mapdb.h"

/*
 * For what an operation can do without: at the expense of who does it, and over
 * a limit it is refused (ENOMEM) rather than somebody killed.
 */
#define MAPDB_GFP		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | \
				 __GFP_NOWARN)

/*
 * Neighbours in a space with at most so many pages of nothing between them are
 * zapped by one call: to look at an empty page-table entry takes some 6
 * instructions, and a call 1,300.
 */
#define MAPDB_ZAP_HOLE		128
/* So many nodes at most are looked at in between. */
#define MAPDB_ZAP_DOOMED	16

/* Nodes kept at hand for cuts, so that none is needed under a lock. */
#define MAPDB_SPARE		16

/*
 * A position in a walk over descendants, parents before children. It holds on
 * to lineages only, so that the mutex may be dropped between two steps and any
 * node removed.
 */
struct mapdb_walk {
	int level;			/* -1: at the end */
	struct mapdb_walk_level {
		struct mapdb_lineage *lineage;
		u64 id;			/* with frame: the last node taken */
		u32 frame;
		u32 lo;			/* frames of interest */
		u32 hi;
	} at[MAPDB_MAX_DEPTH + 1];
};

/* What is charged, or to be charged, at one of several sponsors. */
struct mapdb_tally {
	struct mapdb_tally *next;
	struct mapdb_sponsor *sponsor;
	struct ledger_counts counts;
};

/* Sponsors of a batch that are told apart. */
#define MAPDB_TOLD		4

/**
 * struct mapdb_told - what there is to tell of a batch, by sponsor
 * @nr: sponsors in @of; those beyond MAPDB_TOLD are in the last one together
 * @nodes: in all
 * @of: id of the sponsor's cgroup, and how much is his
 */
struct mapdb_told {
	unsigned int nr;
	unsigned int nodes;
	struct mapdb_told_of {
		u64 cgroup;
		u64 pages;
		unsigned int nodes;
	} of[MAPDB_TOLD];
};

/**
 * struct mapdb_op - a revoke, a reduction of rights or a grant
 * @actor: who does it; what happens in this space is no event to it
 * @res: what it did so far
 * @spare: free nodes for cuts, linked by ->next
 * @nr_spare: how many
 * @starved: stopped since @spare was used up
 * @only: take along only what this one pays for; NULL: whoever pays
 * @hasty: do not give way to those who wait for the tree
 * @credit: reserved for what the operation adds
 * @spare_tally: for the next sponsor in @credit
 * @told: of the batch, where somebody listens
 * @nr: nodes in @batch
 * @joined: which are to be zapped together with the one before
 * @batch: nodes that are owned
 *
 * On the stack of whoever does it: some 750 bytes.
 */
struct mapdb_op {
	struct mapdb_space *actor;
	struct mapdb_unmap_result res;
	struct mapdb_node *spare;
	unsigned int nr_spare;
	bool starved;
	struct mapdb_sponsor *only;
	bool hasty;
	struct mapdb_tally *credit;
	struct mapdb_tally *spare_tally;
	struct mapdb_told told;
	unsigned int nr;
	DECLARE_BITMAP(joined, MAPDB_BATCH);
	struct mapdb_node *batch[MAPDB_BATCH];
};

/* Below a node that stays: nobody may derive from this range meanwhile. */
struct mapdb_revoke {
	struct rb_node in_lineage;
	u32 last_below;
	u32 lo;
	u32 hi;
};

/*
 * Read side: from the charge for a node to its linking. Who reclaims waits for
 * those, so that nothing charged before a lock shows up behind it.
 */
extern struct srcu_struct *const mapdb_charging;

static inline int mapdb_charge_begin(void)
	__acquires(mapdb_charging)
{
	return BRUMM_QUOTA ? srcu_read_lock(mapdb_charging) : 0;
}

static inline void mapdb_charge_end(int srcu)
	__releases(mapdb_charging)
{
	if (BRUMM_QUOTA)
		srcu_read_unlock(mapdb_charging, srcu);
}

/* nodes.c */
struct mapdb_node *mapdb_node_alloc(struct mapdb_space *s, gfp_t gfp);
void mapdb_node_free(struct mapdb_node *n);
void mapdb_node_free_bulk(unsigned int nr, struct mapdb_node **nodes);
void mapdb_free_list(struct mapdb_node *n);
struct mapdb_lineage *mapdb_lineage_alloc(struct mapdb_space *s);
void mapdb_lineage_free(struct mapdb_lineage *l);

/* lineages */
void mapdb_lineage_init(struct mapdb_lineage *l, struct mapdb_frames *f);
void mapdb_lineage_get(struct mapdb_lineage *l);
void mapdb_lineage_put(struct mapdb_lineage *l);
struct mapdb_node *mapdb_lineage_first(struct mapdb_lineage *l, u32 lo, u32 hi);
struct mapdb_node *mapdb_lineage_next(struct mapdb_node *n, u32 lo, u32 hi);
struct mapdb_node *mapdb_lineage_after(struct mapdb_lineage *l, u32 frame,
				       u64 id, u32 lo, u32 hi);
void mapdb_revoke_begin(struct mapdb_lineage *l, struct mapdb_revoke *r);
void mapdb_revoke_end(struct mapdb_lineage *l, struct mapdb_revoke *r);
bool mapdb_being_revoked(struct mapdb_lineage *l, u32 lo, u32 hi);

/* frames */
void mapdb_frames_lock(struct mapdb_frames *f);
void mapdb_frames_give_way(struct mapdb_frames *f);
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

/* What is charged for some nodes of a depth that pay, with so many pages. */
static inline struct ledger_counts
mapdb_counts_of(unsigned int depth, u64 nodes, bool lookup, u64 pages)
{
	return (struct ledger_counts){ .n = {
		[LEDGER_LOOKUP] = lookup ? nodes : 0,
		[LEDGER_MAP] = nodes,
		[LEDGER_PT] = pages,
		[LEDGER_DEEP] = mapdb_is_deep(depth) ? nodes : 0,
	} };
}

/* What is charged for a node now. */
static inline void mapdb_node_counts(const struct mapdb_node *n,
				     struct ledger_counts *c)
{
	c->n[LEDGER_LOOKUP] = n->pays_lookup;
	c->n[LEDGER_MAP] = n->pays_map;
	c->n[LEDGER_PT] = mapdb_payer(n) ? n->pages : 0;
	c->n[LEDGER_DEEP] = n->pays_map && n->deep;
}

struct mapdb_node *mapdb_cut(struct mapdb_op *op, struct mapdb_node *n, u32 lo,
			     u32 hi, bool leave);

struct mapdb_node *mapdb_row_last(struct mapdb_node *n, u32 end);

/* The part of a row of pieces that lies in a range of its space, in frames. */
static inline void mapdb_row_overlap(const struct mapdb_node *n,
				     const struct mapdb_node *last, u32 start,
				     u32 end, u32 *lo, u32 *hi)
{
	*lo = n->frame + (max(start, n->start) - n->start);
	*hi = last->frame + (min(end, mapdb_node_end(last)) - last->start) - 1;
}

/* The same of a single node. */
static inline void mapdb_overlap(const struct mapdb_node *n, u32 start, u32 end,
				 u32 *lo, u32 *hi)
{
	mapdb_row_overlap(n, n, start, end, lo, hi);
}

/* op.c: charges */
int mapdb_tally_add(struct mapdb_tally **list, struct mapdb_sponsor *sp,
		    const struct ledger_counts *c);
int mapdb_tally_charge(struct mapdb_tally *list);
void mapdb_tally_uncharge(struct mapdb_tally *list, struct mapdb_tally *end);
void mapdb_tally_free(struct mapdb_tally *list);

/*
 * What one piece of the source of a map or grant says, copied under the lock:
 * the part of a node that the range covers.
 */
struct mapdb_piece {
	u32 frame;
	u32 pages;
	u8 rights;
	u8 depth;
	u8 cuts;			/* nodes that taking it out adds */
	bool down;			/* something was derived before */
	bool pays_map;
	bool pays_lookup;
	struct mapdb_sponsor *sponsor;
};

/* The part of @n from page @from of the source on, @pages at most. */
static inline void mapdb_piece_get(const struct mapdb_node *n, u32 from,
				   u32 pages, struct mapdb_piece *p)
{
	u32 skip = from - n->start;

	p->frame = n->frame + skip;
	p->pages = min(n->pages - skip, pages);
	p->rights = n->rights;
	p->depth = n->depth;
	p->down = n->down;
	p->cuts = (skip > 0) + (skip + p->pages < n->pages);
	p->pays_map = n->pays_map;
	p->pays_lookup = n->pays_lookup;
	p->sponsor = mapdb_payer(n);
}

/* map.c */
bool mapdb_piece_usable(const struct mapdb_node *n);
int mapdb_piece_at(struct mapdb_space *s, u32 from, u32 pages,
		   struct mapdb_piece *p);
int mapdb_piece_check(const struct mapdb_map_args *a,
		      const struct mapdb_piece *p);
struct mapdb_sponsor *mapdb_sponsor_of(const struct mapdb_map_args *a,
				       const struct mapdb_piece *p,
				       bool *first);
int mapdb_wait_busy(struct mapdb_frames *busy, unsigned long change);

/* op.c */
void mapdb_op_init(struct mapdb_op *op, struct mapdb_space *actor);
void mapdb_op_exit(struct mapdb_op *op);
void mapdb_op_refill(struct mapdb_op *op);
void mapdb_op_wait(struct mapdb_op *op, struct mapdb_frames *f);
void mapdb_batch_free(struct mapdb_op *op);
void mapdb_op_prepare(struct mapdb_op *op);
void mapdb_op_breathe(struct mapdb_op *op, struct mapdb_frames *f,
		      unsigned int *steps);
int mapdb_op_reserve(struct mapdb_op *op, struct mapdb_sponsor *sp,
		     const struct mapdb_node *n);
int mapdb_op_charge(struct mapdb_op *op);
void mapdb_op_pay(struct mapdb_op *op, struct mapdb_sponsor *sp,
		  const struct ledger_counts *c);
void mapdb_op_settle(struct mapdb_op *op);
void mapdb_batch_sort(struct mapdb_op *op);
void mapdb_batch_state(struct mapdb_op *op, enum mapdb_state state, u32 take);
void mapdb_batch_zap(struct mapdb_op *op);

/* revoke.c */
enum mapdb_revoked {
	MAPDB_REVOKED_NOT,	/* another owns it, or spare nodes are missing */
	MAPDB_REVOKED_BELOW,	/* what was derived from it is gone */
	MAPDB_REVOKED,		/* it is gone itself */
};

enum mapdb_revoked mapdb_revoke_self(struct mapdb_op *op, struct mapdb_node *n,
				     u32 start, u32 end, u32 *to);

/* reclaim.c */
#if BRUMM_QUOTA
void mapdb_first_add(struct mapdb_node *n);
void mapdb_first_del(struct mapdb_node *n);
void mapdb_first_split(struct mapdb_node *r, struct mapdb_node *n);

static inline void mapdb_first_init(struct mapdb_node *n)
{
	INIT_LIST_HEAD(&n->first);
}
#else
static inline void mapdb_first_add(struct mapdb_node *n)
{
}

static inline void mapdb_first_del(struct mapdb_node *n)
{
}

static inline void mapdb_first_split(struct mapdb_node *r,
				     struct mapdb_node *n)
{
}

static inline void mapdb_first_init(struct mapdb_node *n)
{
}
#endif

/* told.c */
int mapdb_tell_charge(struct mapdb_sponsor *sp, const struct ledger_counts *c);
void mapdb_payers_add(struct mapdb_payers *p, const struct mapdb_sponsor *sp,
		      unsigned int nodes);
void mapdb_tell_lookup(struct mapdb_op *op);
void mapdb_tell_zap(struct mapdb_op *op);
void mapdb_tell_remove(struct mapdb_op *op);

/*
 * The parts of an operation: looking for the next batch, zapping and removing
 * it. Its sponsors have to be remembered before it is removed.
 */
static inline void mapdb_lookup_begin(void)
{
	os_begin(lookup, 0);
}

static inline void mapdb_lookup_end(struct mapdb_op *op)
{
	if (os_tracing())
		mapdb_tell_lookup(op);
}

static inline void mapdb_zap_end(struct mapdb_op *op)
{
	if (os_tracing())
		mapdb_tell_zap(op);
}

static inline void mapdb_remove_end(struct mapdb_op *op)
{
	if (os_tracing())
		mapdb_tell_remove(op);
}

/* ledger_try_charge(), told. */
static inline int mapdb_charge(struct mapdb_sponsor *sp,
			       const struct ledger_counts *c)
{
	if (os_tracing())
		return mapdb_tell_charge(sp, c);
	return ledger_try_charge(&sp->ledger, c);
}

/* At the start of a try of a map or grant, and for each node that it makes. */
static inline void mapdb_payers_start(const struct mapdb_map_args *a)
{
	if (os_tracing() && a->payer)
		*a->payer = (struct mapdb_payers){};
}

static inline void mapdb_payers_node(const struct mapdb_map_args *a,
				     const struct mapdb_node *n)
{
	if (os_tracing() && a->payer)
		mapdb_payers_add(a->payer, mapdb_payer(n), 1);
}

/* walk.c */
struct mapdb_walk *mapdb_walk_alloc(gfp_t gfp);
void mapdb_walk_free(struct mapdb_walk *w);
void mapdb_walk_start(struct mapdb_walk *w, struct mapdb_lineage *l, u32 lo,
		      u32 hi);
struct mapdb_node *mapdb_walk_next(struct mapdb_walk *w);
void mapdb_walk_leave(struct mapdb_walk *w);
void mapdb_walk_enter(struct mapdb_walk *w, struct mapdb_node *n);
void mapdb_walk_stop(struct mapdb_walk *w);

#endif /* BRUMM_TREE_H */
