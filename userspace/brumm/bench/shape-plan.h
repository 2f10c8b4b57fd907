/* SPDX-License-Identifier: GPL-2.0 */
/* The inside of a shape, for its two halves. */
#ifndef BRUMM_SHAPE_PLAN_H
#define BRUMM_SHAPE_PLAN_H

#include "shape.h"

/* A mapping; node 0 is the base, all others come behind their parent. */
struct shape_node {
	uint32_t parent;
	uint32_t window;
	uint32_t start;		/* page in its window */
	uint32_t from;		/* page in its parent's range */
	uint32_t pages;
	uint32_t depth;
};

struct shape_view {
	int fd;
	uint64_t group;		/* id of the cgroup it belongs to */
	uint64_t pages;
	char *addr;		/* NULL: not mapped */
};

struct shape {
	struct shape_spec spec;	/* with the defaults filled in */
	uint64_t nr;		/* nodes, the base included */
	uint64_t room;
	struct shape_node *nodes;
	struct shape_view *views;
	struct shape_cost cost;
	uint64_t *sponsors;	/* of each node, once the windows are open */
	bool *first;
};

#endif /* BRUMM_SHAPE_PLAN_H */
