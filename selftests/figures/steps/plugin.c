// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU's TCG: how many instructions of the guest were executed
 * where, between two marks that the guest makes (mark.c).
 *
 * Each translated block has a counter, which the translated code adds to. At a
 * mark all counters are looked at; what was added between two is written to the
 * file of the argument out=, for all up to a MARK_NEXT: a line with the number of
 * pairs of marks, one for each block, and an empty one.
 *
 *	address of the block, its instructions, how often it was executed
 *
 * Debian has no header of this interface: what is used of it is declared here,
 * for its version 1 (QEMU 4.2 to 8.2).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

#define EXPORT	__attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
	void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
	void *at, uint64_t add);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
	void (*cb)(unsigned int vcpu, void *arg), int flags, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
	size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = 1;

struct block {
	uint64_t addr;
	uint32_t insns;
	uint64_t count;		/* how often, ever */
	uint64_t before;	/* of which up to the mark */
	uint64_t between;	/* how often between marks */
	struct block *same;	/* of the same hash */
	struct block *next;
};

#define HASH	65536u

static struct block *by_hash[HASH], *blocks;
static FILE *out;
static bool on;
static unsigned long pairs;

static struct block *block_get(uint64_t addr, uint32_t insns)
{
	struct block **at = &by_hash[(addr ^ addr >> 16 ^ insns) % HASH], *b;

	for (b = *at; b; b = b->same)
		if (b->addr == addr && b->insns == insns)
			return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->addr = addr;
	b->insns = insns;
	b->same = *at;
	*at = b;
	b->next = blocks;
	blocks = b;
	return b;
}

static void at_begin(unsigned int vcpu, void *arg)
{
	struct block *b;

	(void)vcpu;
	(void)arg;
	for (b = blocks; b; b = b->next)
		b->before = b->count;
	on = true;
	pairs++;
}

static void at_end(unsigned int vcpu, void *arg)
{
	struct block *b;

	(void)vcpu;
	(void)arg;
	for (b = blocks; on && b; b = b->next)
		b->between += b->count - b->before;
	on = false;
}

static void at_next(unsigned int vcpu, void *arg)
{
	struct block *b;

	at_end(vcpu, arg);
	fprintf(out, "%lu\n", pairs);
	pairs = 0;
	for (b = blocks; b; b = b->next) {
		if (b->between)
			fprintf(out, "%" PRIx64 " %" PRIu32 " %" PRIu64 "\n",
				b->addr, b->insns, b->between);
		b->between = 0;
	}
	fputc('\n', out);
	fflush(out);
}

static const struct {
	const char *mark;
	void (*at)(unsigned int vcpu, void *arg);
} marks[] = {
	{ MARK_BEGIN, at_begin }, { MARK_END, at_end }, { MARK_NEXT, at_next },
};

static void look_for_marks(struct qemu_plugin_insn *insn)
{
	size_t i;

	if (qemu_plugin_insn_size(insn) != MARK_BYTES)
		return;
	for (i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (!memcmp(qemu_plugin_insn_data(insn), marks[i].mark,
			    MARK_BYTES))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marks[i].at,
							       0, NULL);
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	struct block *b = block_get(qemu_plugin_tb_vaddr(tb), (uint32_t)n);

	(void)id;
	qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_tb_get_insn(tb, 0), 0,
						   &b->count, 1);
	for (i = 0; i < n; i++)
		look_for_marks(qemu_plugin_tb_get_insn(tb, i));
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc,
			       char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	out = fopen(argv[0] + 4, "w");
	if (!out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
