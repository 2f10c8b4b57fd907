/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The user of the mapping database, simulated: windows with a page table each,
 * groups that pay, frames that are freed once.
 */
#ifndef UNIT_WORLD_H
#define UNIT_WORLD_H

#include "mapdb.h"
#include "tree.h"
#include "shim/control.h"

#define MAX_WINDOWS	16
#define MAX_GROUPS	8
#define MAX_OBJECTS	65536

/*
 * A page-table entry: present, rights, frame and object. What a fault has put
 * there stays until mapdb_zap().
 */
#define PTE_PRESENT	1ULL
#define PTE_RIGHTS(pte)	((u32)((pte) >> 1) & BRUMM_RIGHTS_ALL)
#define PTE_FRAME(pte)	((u32)((pte) >> 8))
#define PTE_OBJECT(pte)	((u32)((pte) >> 40))
#define PTE_MAKE(obj, frame, rights)					\
	((u64)(obj) << 40 | (u64)(frame) << 8 | (u64)(rights) << 1 | PTE_PRESENT)

struct window {
	struct mapdb_space space;
	int index;		/* -1: not one of the world's */
	int refs;
	u32 pages;
	u64 *pte;
	u8 *event_all;		/* how often the whole mapping went */
	u8 *event_rights;	/* rights that events said were gone */
};

/* What stands behind frames->priv. */
struct object {
	u32 id;
	u32 nr;
	u32 nr_freed;
	u8 *freed;
	u32 *mapped;		/* page-table entries that show the frame */
};

struct group {
	struct mapdb_sponsor sponsor;
	int index;
	int parent;		/* index, -1: below the root */
};

struct world {
	struct ledger root;
	int nr_windows;
	struct window window[MAX_WINDOWS];
	int nr_groups;
	struct group group[MAX_GROUPS];
	struct object *object[MAX_OBJECTS];
	u32 nr_objects;
	u32 next_object;
	unsigned long zaps;
	long allocated;		/* when nothing was mapped */
	bool shut;		/* events do not matter any more */
};

extern struct world *world;

struct world_config {
	int windows;
	u32 pages;
	int groups;
	const int *parent;	/* of each group, -1: the root */
	const int *group;	/* of each window, -1: none */
};

void world_init(const struct world_config *c);
/* Release what is left, check that nothing is, and forget the world. */
void world_exit(void);

struct mapdb_space *world_space(int w);
struct mapdb_sponsor *world_sponsor(int g);
int world_group_index(const struct mapdb_sponsor *sp);
static inline struct window *space_window(struct mapdb_space *s)
{
	return container_of(s, struct window, space);
}

/* A window besides those, that goes when it is released. */
struct window *window_new(u32 pages, struct mapdb_sponsor *group);
void window_release(struct window *w);

/* mapdb_alloc() with new frames behind it; @id: out, may be NULL. */
int world_alloc(int w, u32 start, u32 pages, u32 *id);
int space_alloc(struct mapdb_space *s, u32 start, u32 pages, u32 *id);
int world_unmap(int w, u32 start, u32 pages, bool self,
		struct mapdb_unmap_result *res);
int world_map(int sw, u32 from, int tw, u32 to, u32 pages, u32 rights,
	      u32 flags);

/* Touch a page, as the fault handler would: true if that shows something. */
bool world_fault(int w, u32 page);
void world_fault_all(void);
/* The same for whoever may not wait. */
void world_try_fault(int w, u32 page);
/* Entries that are present in a window. */
u32 world_count_ptes(int w);
/* Forget the events so far. */
void world_clear_events(void);

/* Told of what the ledger tells its user. */
extern void (*world_on_notify)(struct ledger *l, bool local);
extern void (*world_on_idle)(struct ledger *l);

/* Random numbers that a seed determines: xorshift64*. */
struct rnd {
	u64 state;
};

static inline void rnd_seed(struct rnd *r, u64 seed)
{
	r->state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	r->state ^= r->state >> 29;
	r->state |= !r->state;
}

static inline u32 rnd(struct rnd *r, u32 below)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return (u32)((r->state * 0x2545f4914f6cdd1dULL >> 33) % below);
}

#endif /* UNIT_WORLD_H */
