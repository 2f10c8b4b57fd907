/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The mapping database: a derivation tree of ranges (the paper's section 2.1;
 * there one node per page and a linked list per frame).
 *
 *	window S                     window A                  window B
 *	+--------------------+       +----------+              +-----+
 *	| node 0..15, root   |  map  | node 4..9|  map         | 6..7|
 *	+--------------------+ ----> +----------+ -----------> +-----+
 *	     | down                      ^  | down                ^
 *	     v                           |  v                     |
 *	  lineage (interval tree) -------+ lineage ---------------+
 *
 * A node is a contiguous range of frames at a contiguous range of a space (the
 * offset space of a window). All frames of a tree belong to one frames object;
 * their numbers in it are the coordinates of the whole tree. What was derived
 * from a node hangs in its lineage, an interval tree keyed by frame number. A
 * node that is cut leaves pieces that share one lineage: children need not be
 * distributed, so a cut is O(log n) and a grant moves a node without touching
 * what was derived from it.
 *
 * States of a node
 *	LIVE
 *	PENDING	 of a running map; refuses faults and children
 *	ZAPPING	 of a revoke that will unlink it, or of a grant that will set
 *		 it LIVE elsewhere; refuses faults and children
 *	REDUCING of a revoke of rights: they are gone already, but page-table
 *		 entries may still have them; serves faults and children
 * All but LIVE are owned: only who set the state may change it. An owner waits
 * for nobody, so that everybody else may wait for him. Besides, a node whose
 * descendants are being revoked before itself is dying: it refuses children.
 *
 * Locks, outer to inner
 *	frames->lock	mutex: lineages and nodes of this tree: their place in
 *			the lineage, state, cut, number of nodes
 *	space->lock	rwsem: the space's tree of nodes; state, rights and
 *			extent of its nodes for those who fault (read)
 *	sponsor->lock	spinlock: list of first nodes
 *	ledger domain	raw spinlock
 *	store->lock	spinlock: memory of nodes
 * A node changes only with both its mutex and, for what a fault looks at, its
 * space's rwsem held for writing; either one makes it stable to look at. No
 * two spaces and no two frames objects are ever locked at once. Neither lock
 * is held for more than MAPDB_BATCH nodes or while memory is allocated, a page
 * table is zapped or user memory is touched.
 */
#ifndef BRUMM_MAPDB_H
#define BRUMM_MAPDB_H

#include "os.h"
#include "ledger.h"
#include "uapi/brumm.h"

/* Most nodes that are changed, or stepped over, under one hold of a lock. */
#define MAPDB_BATCH		64
#define MAPDB_MAX_DEPTH		BRUMM_MAX_DEPTH

enum mapdb_state {
	MAPDB_LIVE,
	MAPDB_PENDING,
	MAPDB_ZAPPING,
	MAPDB_REDUCING,
};

/**
 * struct mapdb_sponsor - who pays for a subtree
 * @ledger: the account
 * @lock: protects @first
 * @first: nodes at which a subtree of this sponsor starts, oldest first; what
 *	a cut makes stands next to its origin
 * @mark: in @first while a reclaim is under way: how far it goes
 * @reclaim: one reclaim at a time
 * @id: id of the cgroup, for BRUMM_IOC_QUERY
 */
struct mapdb_sponsor {
	struct ledger ledger;
	spinlock_t lock;	/* first, mark */
	struct list_head first;
	struct list_head mark;
	struct mutex reclaim;	/* one reclaim at a time */
	u64 id;
};

struct mapdb_slab;

/**
 * struct mapdb_store - memory for nodes, see nodes.c
 * @lock: protects the store, and the slabs that are of it
 * @open: slabs with free nodes
 * @spare: one that is empty, or NULL
 * @closed: keep none that is empty
 */
struct mapdb_store {
	spinlock_t lock;	/* this, and the slabs */
	struct list_head open;
	struct mapdb_slab *spare;
	bool closed;
};

/**
 * struct mapdb_space - the offset space of a window
 * @lock: see above
 * @nodes: tree of nodes by offset; they do not overlap
 * @group: sponsor that what is mapped here is charged to where nobody else
 *	is; NULL: the root cgroup
 * @store: nodes for what is mapped from here
 */
struct mapdb_space {
	struct rw_semaphore lock;
	struct rb_root nodes;
	struct mapdb_sponsor *group;
	struct mapdb_store store;
};

/**
 * struct mapdb_lineage - what was derived from a node and its pieces
 * @children: interval tree by frame number, ties by node id
 * @revokes: interval tree of the revokes under way below a node that stays: no
 *	new child there meanwhile
 * @frames: the tree it is part of
 * @refs: pieces that have it as their lineage, and walkers that pin it;
 *	protected by frames->lock
 */
struct mapdb_lineage {
	struct rb_root_cached children;
	struct rb_root_cached revokes;
	struct mapdb_frames *frames;
	unsigned int refs;
};

/**
 * struct mapdb_frames - the frames of one ALLOC and the tree upon them
 * @lock: see above; taken by mapdb_frames_lock()
 * @waiting: how many wait for @lock
 * @refs: one for all nodes together, one for each operation under way
 * @nr_nodes: nodes in the tree
 * @next_id: id of the next node
 * @root: lineage in which the root nodes hang
 * @change: counts how often an owned node was given up or a revoke ended
 * @wait: woken at each @change
 * @nr: number of frames
 * @priv: the user's: the pages
 */
struct mapdb_frames {
	struct mutex lock;	/* the tree: see above */
	atomic_t waiting;
	refcount_t refs;
	unsigned long nr_nodes;
	u64 next_id;
	struct mapdb_lineage root;
	unsigned long change;
	wait_queue_head_t wait;
	u32 nr;
	void *priv;
};

/**
 * struct mapdb_node - a mapping
 * @in_space: in space->nodes
 * @in_lineage: in up->children
 * @moving: of a place that a grant has reserved: the node that will come
 * @for_parent: before it is linked: lineage for a parent that has none
 * @last_below: greatest last frame in this subtree of the interval tree
 * @start: first page in the space
 * @frame: first frame
 * @pages: how many
 * @id: unique in the tree, in order of linking
 * @space: where it is mapped
 * @up: lineage it hangs in; NULL: only a reserved place (PENDING)
 * @down: lineage of its own, NULL as long as nothing was derived from it
 * @next: while PENDING, and in lists of free nodes
 * @sponsor: who pays, or NULL
 * @first: in sponsor->first, or empty
 * @slot: which one of its slab
 * @rights: BRUMM_RIGHT_*
 * @depth: 0: root
 * @state: enum mapdb_state
 * @dying: see above
 * @taken: in the batch that is being gathered
 * @pays: all of the following in one number, to count by
 * @pays_map, @pays_lookup: what is charged for it besides its pages: a part
 *	that was cut off to be removed leaves that with the rest
 * @deep: mapdb_is_deep(), for what @pays_map stands for
 */
struct mapdb_node {
	struct rb_node in_space;
	union {
		struct rb_node in_lineage;
		struct mapdb_node *moving;
		struct mapdb_lineage *for_parent;
	};
	u32 last_below;
	u32 start;
	u32 frame;
	u32 pages;
	u64 id;
	struct mapdb_space *space;
	struct mapdb_lineage *up;
	union {
		struct mapdb_lineage *down;
		struct mapdb_node *next;
	};
#if BRUMM_QUOTA
	struct mapdb_sponsor *sponsor;
	struct list_head first;
#endif
	u8 slot;
	u8 rights;
	u8 depth;
	u8 state;
	u8 dying : 1;
	u8 taken : 1;
	union {
		u8 pays;
		struct {
			u8 pays_map : 1;
			u8 pays_lookup : 1;
			u8 deep : 1;
		};
	};
};

/* Values of mapdb_node.pays. */
#define MAPDB_PAYS	8

static inline u32 mapdb_node_last(const struct mapdb_node *n)
{
	return n->frame + n->pages - 1;
}

static inline u32 mapdb_node_end(const struct mapdb_node *n)
{
	return n->start + n->pages;
}

/* The tree of a linked node. */
static inline struct mapdb_frames *mapdb_node_frames(const struct mapdb_node *n)
{
	return n->up->frames;
}

static inline bool mapdb_node_is_root(const struct mapdb_node *n)
{
	return !n->depth;
}

/*
 * Was what this depth belongs to derived from something derived? A revoke has
 * to go down a level for it, whose lineage goes with it.
 */
static inline bool mapdb_is_deep(unsigned int depth)
{
	return depth > 1;
}

/* Who pays, which is nobody where there is no accounting. */
#if BRUMM_QUOTA
static inline struct mapdb_sponsor *mapdb_payer(const struct mapdb_node *n)
{
	return n->sponsor;
}

static inline void mapdb_set_payer(struct mapdb_node *n,
				   struct mapdb_sponsor *sp)
{
	n->sponsor = sp;
}

static inline bool mapdb_node_is_first(const struct mapdb_node *n)
{
	return !list_empty(&n->first);
}
#else
static inline struct mapdb_sponsor *mapdb_payer(const struct mapdb_node *n)
{
	return NULL;
}

static inline void mapdb_set_payer(struct mapdb_node *n,
				   struct mapdb_sponsor *sp)
{
}

static inline bool mapdb_node_is_first(const struct mapdb_node *n)
{
	return false;
}
#endif

/* May a fault be served? Either lock is held. */
static inline bool mapdb_node_serves(const struct mapdb_node *n)
{
	return n->state == MAPDB_LIVE || n->state == MAPDB_REDUCING;
}

/* What stands at an offset, see BRUMM_IOC_QUERY; pages instead of bytes. */
struct mapdb_info {
	u32 start;
	u32 pages;
	u8 rights;
	u8 depth;
	bool root;
	bool first;
	u64 descendants;
	u64 sponsor;
};

/**
 * struct mapdb_payers - who pays for what an operation did, for its trace
 * @cgroup: id of the sponsor's cgroup, 0: nobody, MAPDB_SEVERAL: not one
 * @nodes: how many nodes were looked at
 */
struct mapdb_payers {
	u64 cgroup;
	u64 nodes;
};

#define MAPDB_SEVERAL		U64_MAX

struct mapdb_map_args {
	struct mapdb_space *source;
	struct mapdb_space *target;
	u32 from;
	u32 to;
	u32 pages;
	u32 rights;
	u32 flags;			/* BRUMM_MAP_* */
	struct mapdb_sponsor *sponsor;	/* with BRUMM_MAP_SPONSOR */
	struct mapdb_payers *payer;	/* out, if not NULL */
};

/* @payer is found out only where somebody listens to the tracepoints. */
struct mapdb_unmap_result {
	u64 nodes;
	u64 pages;
	struct mapdb_payers payer;
};

/* nodes.c: their memory */
int mapdb_init(void);
void mapdb_exit(void);
void mapdb_space_init(struct mapdb_space *s, struct mapdb_sponsor *group);
void mapdb_space_exit(struct mapdb_space *s);

/* mapdb.c: trees, nodes, frames */
struct mapdb_node *mapdb_find(struct mapdb_space *s, u32 page);
struct mapdb_node *mapdb_find_from(struct mapdb_space *s, u32 page);

/* map.c */
int mapdb_alloc(struct mapdb_space *s, u32 start, u32 pages, void *priv);
int mapdb_map(const struct mapdb_map_args *a);

/* grant.c */
int mapdb_grant(const struct mapdb_map_args *a);

/* revoke.c */
int mapdb_unmap(struct mapdb_space *s, struct mapdb_space *actor, u32 start,
		u32 pages, bool self, struct mapdb_unmap_result *res);
void mapdb_release(struct mapdb_space *s);

/* reclaim.c */
void mapdb_sponsor_init(struct mapdb_sponsor *sp, struct ledger *parent,
			u64 id);
int mapdb_reclaim(struct mapdb_sponsor *sp, struct mapdb_unmap_result *res);
void mapdb_settle(void);
int mapdb_reclaim_settled(struct mapdb_sponsor *sp,
			  struct mapdb_unmap_result *res);

/* walk.c */
int mapdb_reduce(struct mapdb_space *s, u32 start, u32 pages, bool self,
		 u32 rights, struct mapdb_unmap_result *res);
int mapdb_query(struct mapdb_space *s, u32 page, bool next, bool count,
		struct mapdb_info *info);

/*
 * Supplied by the user of the database.
 *
 * mapdb_zap: remove every page-table and TLB entry of the range. No lock is
 *	held; the nodes there are ZAPPING, or their rights were reduced, or there is
 *	nothing, or what goes soon; what is used there has to fault again.
 * mapdb_event: @rights of the range are gone (@all: the whole mapping). A
 *	mutex and an rwsem are held: must not sleep.
 * mapdb_free_frames: nobody maps these frames any more. No lock is held.
 * mapdb_free_priv: the last of the frames is gone; frees frames->priv.
 * mapdb_space_get, mapdb_space_put: keep the space in memory, whose owner may
 *	release it as soon as no node is in it. Locks may be held by get, a
 *	mutex by put.
 */
void mapdb_zap(struct mapdb_space *s, u32 start, u32 pages);
void mapdb_event(struct mapdb_space *s, u32 start, u32 pages, u32 rights,
		 bool all);
void mapdb_free_frames(void *priv, u32 frame, u32 pages);
void mapdb_free_priv(void *priv);
void mapdb_space_get(struct mapdb_space *s);
void mapdb_space_put(struct mapdb_space *s);

#endif /* BRUMM_MAPDB_H */
