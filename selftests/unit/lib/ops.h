/* SPDX-License-Identifier: GPL-2.0 */
/* Random operations, run on the real thing and on the model. */
#ifndef UNIT_OPS_H
#define UNIT_OPS_H

#include "both.h"

enum op_type {
	OP_ALLOC,
	OP_MAP,
	OP_GRANT,
	OP_UNMAP,
	OP_REDUCE,
	OP_QUERY,
	OP_RELEASE,
	OP_RECLAIM,
	OP_LIMIT,
	OP_LOCK,
	OP_PRICE,
	OP_TOUCH,
	OP_TYPES,
};

/*
 * An operation before it meets a state: only dice. Which pages it concerns is
 * decided when it runs, from what is mapped then, so that a list of operations
 * stays a sensible one when some are taken out of it.
 */
struct op {
	enum op_type type;
	u32 dice[8];
};

/* Enlarges what each type gets of the random operations. */
extern const unsigned int op_weights[OP_TYPES];

void op_random(struct op *op, struct rnd *r);

/*
 * Run @op on both, and check everything. With @fail_at the n-th allocation
 * fails. Returns whether one has failed.
 */
bool op_run(struct model *m, const struct op *op, unsigned long fail_at);
/* Of each type, how many have failed for lack of memory. */
extern unsigned long op_failures[OP_TYPES];

/* The last operations, in words: for shim_on_fail(). */
void op_print_last(void);
void op_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *op_rights(u32 rights);
/* Print each operation as it runs. */
extern bool op_verbose;

/* Worlds that the tests use; @variant picks one. */
const struct world_config *op_world(u32 variant);
#define OP_WORLDS	4

/* Operations that run one after the other on a new world. */
struct op_list {
	u64 seed;
	u32 variant;
	struct op *op;
	size_t nr;
};

void op_list_make(struct op_list *l, u64 seed, size_t nr);
/* @fail_every: let each allocation of every n-th operation fail in turn. */
void op_list_run(const struct op_list *l, unsigned int fail_every);
/* Take out what is not needed for the list to fail; runs it in children. */
void op_list_shrink(struct op_list *l, unsigned int fail_every);

#endif /* UNIT_OPS_H */
