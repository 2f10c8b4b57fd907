/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shapes: derivation trees to be taken back, for brumm bench and brumm profile.
 *
 * A shape is planned from a seed and a size, without a system call; the same
 * spec gives the same plan everywhere. From the plan it knows what will be
 * charged and what a revoke will remove, without asking the kernel. Then it is
 * made (frames, mappings), touched or not, and taken back, each timed.
 *
 *	struct shape_spec spec = {
 *		.kind = SHAPE_RANDOM_PAGES, .n = 4096, .seed = 1, .touch = true,
 *	};
 *	err = shape_plan(&spec, &s);
 *	if (!err)
 *		err = shape_make(s);
 *	if (!err)
 *		err = shape_reclaim(s, SHAPE_BY_UNMAP, -1, &took);
 *	shape_free(s);
 *
 * Functions return 0 or a negative errno. Times are ns of CLOCK_MONOTONIC. A
 * shape is for one thread at a time, different shapes are independent, except
 * that shape_open() with groups moves the whole process for a moment.
 */
#ifndef BRUMM_SHAPE_H
#define BRUMM_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <brumm/brumm.h>

/* The base is at offset 0 of window 0; it is one ALLOC, and so one node. */
enum shape_kind {
	SHAPE_SINGLE_FRAME,	/* one frame, mapped n times */
	SHAPE_MANY_FRAMES,	/* n frames, each mapped once, page by page */
	SHAPE_RANDOM_PAGES,	/* n mappings of one page: random trees on a base */
	SHAPE_RANDOM_RANGES,	/* the same, each a random part of its parent */
	SHAPE_RANGE,		/* a range of frames, mapped n times as a whole */
	SHAPE_CHAIN,		/* the same, each mapping from the one before it */
};

/**
 * struct shape_spec - which shape
 * @kind: see above
 * @n: mappings to derive, at least 1; of SHAPE_CHAIN less than the max. depth
 * @frames: pages of the base, 0: 1 for SHAPE_SINGLE_FRAME, RANGE and CHAIN, n
 *	for MANY_FRAMES, n / 64 for the random ones, at least 1 for pages and 16
	for ranges
 * @seed: of the random choices
 * @width: of the random ones: most children of a mapping (0: 4)
 * @depth: of the random ones: most generations below the base (0: 12)
 * @gap: 0: targets stand next to each other in the order in which they are
 *	made; else each has 1..gap free pages before it, in random order
 * @touch: write to each page of each mapping, so that it has a page-table entry
 * @windows: how many, 0: 1. Targets go to the windows behind the first in turn
 *	(the random ones: at random), to the only one if there is one
 * @groups: descriptors of the cgroups that the windows belong to: window i to
 *	groups[i % nr_groups]; none: to the cgroup of the caller
 * @nr_groups: how many
 */
struct shape_spec {
	enum shape_kind kind;
	bool touch;
	uint64_t n;
	uint64_t frames;
	uint64_t seed;
	unsigned int width;
	unsigned int depth;
	unsigned int gap;
	unsigned int windows;
	const int *groups;
	unsigned int nr_groups;
};

/* As in brumm.stat. */
struct shape_counts {
	uint64_t lookup, map, pt, deep;
};

enum shape_by {
	SHAPE_BY_UNMAP,		/* UNMAP of the base, which itself stays */
	SHAPE_BY_UNMAP_SELF,	/* UNMAP of the base with SELF */
	SHAPE_BY_RECLAIM,	/* brumm.reclaim of a cgroup */
	SHAPE_BY_CLOSE,		/* munmap and close of window 0 */
	SHAPE_BY_MUNMAP,	/* only munmap all windows: the entries, no mapping */
};

/**
 * struct shape_cost - what making it took
 * @prepare_ns: ALLOC, and the MAPs that shape_make() made
 * @touch_ns: the page faults
 * @map_calls: those MAPs
 * @nodes: nodes of the tree, the base included
 * @pages: pages of them: as many page-table entries once it was touched
 * @frames: pages of memory
 */
struct shape_cost {
	uint64_t prepare_ns;
	uint64_t touch_ns;
	uint64_t map_calls;
	uint64_t nodes;
	uint64_t pages;
	uint64_t frames;
};

/**
 * struct shape_took - what taking it back took
 * @wall_ns: from before the system call until after it
 * @nodes: as UNMAP told, otherwise as planned
 * @pages: the same
 */
struct shape_took {
	uint64_t wall_ns;
	uint64_t nodes;
	uint64_t pages;
};

struct shape;

/* -EINVAL: no such shape; -ERANGE: it does not fit into a window. */
int shape_plan(const struct shape_spec *spec, struct shape **shape);
/* Closes what is open; NULL is fine. */
void shape_free(struct shape *s);

/*
 * In one go: shape_open(), shape_base(), shape_map() of all, and, if the spec
 * says so, shape_touch(). On an error the shape can only be freed.
 */
int shape_make(struct shape *s);

/* Step by step. */
int shape_open(struct shape *s);	/* windows and their views */
int shape_base(struct shape *s);	/* ALLOC */
/*
 * Derives mapping @i of 0..n-1; in order, as parents come before children.
 * Mappings from the base may be made in any order, and by several threads.
 */
int shape_map(struct shape *s, uint64_t i);
int shape_touch(struct shape *s);
/* Revokes mapping @i alone (SELF); a leaf if done from the last to the first. */
int shape_unmap(struct shape *s, uint64_t i);

uint64_t shape_mappings(const struct shape *s);
int shape_window(const struct shape *s, unsigned int i);
void shape_cost(const struct shape *s, struct shape_cost *cost);

/* Once it is open: what is charged to the cgroup with this id (0: to nobody). */
void shape_charged(const struct shape *s, uint64_t group,
		   struct shape_counts *c);
/*
 * What a revoke has to do, in the terms of Eq. 1 whoever pays: a lookup for
 * the base and for each other first mapping of a sponsor, a map for each node
 * that goes, a pt for each page of it, a deep for each that was derived
 * from a derived one. For SHAPE_BY_RECLAIM those of @group
 * (id). For SHAPE_BY_MUNMAP only pages.
 */
void shape_revoked(const struct shape *s, enum shape_by by, uint64_t group,
		   struct shape_counts *c);

/*
 * Takes it back and says how long that took. @group: descriptor of a cgroup,
 * for SHAPE_BY_RECLAIM. What stands afterwards goes with shape_free().
 */
int shape_reclaim(struct shape *s, enum shape_by by, int group,
		  struct shape_took *took);

#endif /* BRUMM_SHAPE_H */
