// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: what it tells of its work through tracepoints.
 *
 * Contract: off, this costs a static key a place. On, each event names the
 * sponsor: what a revoke does concerns him, not the one who does it.
 */
#include "tree.h"

/* Of the sponsor of a node that is linked or charged for. */
static u64 id_of(const struct mapdb_sponsor *sp)
{
	return sp ? sp->id : 0;
}

void mapdb_payers_add(struct mapdb_payers *p, const struct mapdb_sponsor *sp,
		      unsigned int nodes)
{
	u64 id = id_of(sp);

	if (!p->nodes)
		p->cgroup = id;
	else if (p->cgroup != id)
		p->cgroup = MAPDB_SEVERAL;
	p->nodes += nodes;
}

int mapdb_tell_charge(struct mapdb_sponsor *sp, const struct ledger_counts *c)
{
	int err;

	os_begin(charge, c->n[LEDGER_PT]);
	err = ledger_try_charge(&sp->ledger, c);
	os_end(charge, sp->id, c->n[LEDGER_MAP], c->n[LEDGER_PT], 0, err);
	return err;
}

/* Where the share of a sponsor is counted. */
static struct mapdb_told_of *told_of(struct mapdb_told *told, u64 id)
{
	struct mapdb_told_of *of;
	unsigned int i;

	for (i = 0; i < told->nr; i++) {
		if (told->of[i].cgroup == id)
			return &told->of[i];
	}
	if (told->nr == MAPDB_TOLD) {
		of = &told->of[MAPDB_TOLD - 1];
		of->cgroup = MAPDB_SEVERAL;
		return of;
	}
	of = &told->of[told->nr++];
	*of = (struct mapdb_told_of){ .cgroup = id };
	return of;
}

/*
 * Remember the batch, whose nodes are owned and charged still. Quickly, since it
 * counts as a part of the lookup.
 */
static void tell_batch(struct mapdb_op *op)
{
	unsigned int i, run;

	op->told.nr = 0;
	op->told.nodes = op->nr;
	for (i = 0; i < op->nr; i = run) {
		const struct mapdb_sponsor *sp = mapdb_payer(op->batch[i]);
		struct mapdb_told_of *of;
		u64 pages = 0;

		for (run = i; run < op->nr; run++) {
			if (mapdb_payer(op->batch[run]) != sp)
				break;
			pages += op->batch[run]->pages;
		}
		of = told_of(&op->told, id_of(sp));
		of->nodes += run - i;
		of->pages += pages;
		mapdb_payers_add(&op->res.payer, sp, run - i);
	}
}

/*
 * Once for each sponsor of the batch. A look for more that found nothing is told
 * for who paid for what was found before.
 */
#define TELL(op, part)							\
	do {								\
		const struct mapdb_told *told_ = &(op)->told;		\
		unsigned int i_;					\
									\
		if (!told_->nr)						\
			os_end(part, (op)->res.payer.cgroup, 0, 0, 0, 0); \
		for (i_ = 0; i_ < told_->nr; i_++)			\
			os_end(part, told_->of[i_].cgroup,		\
			       told_->of[i_].nodes, told_->of[i_].pages, \
			       told_->nodes, 0);			\
	} while (0)

void mapdb_tell_lookup(struct mapdb_op *op)
{
	tell_batch(op);
	TELL(op, lookup);
}

void mapdb_tell_zap(struct mapdb_op *op)
{
	TELL(op, zap);
}

void mapdb_tell_remove(struct mapdb_op *op)
{
	TELL(op, remove);
	op->told.nr = 0;
}
