// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: what operations have in common: credit for what they
 * add, a stock of nodes, and the batch of nodes that they own.
 *
 * Contract: as in mapdb.c.
 */
#include "tree.h"

/* Tallies */

static struct mapdb_tally *tally_find(struct mapdb_tally *list,
				      const struct mapdb_sponsor *sp)
{
	while (list && list->sponsor != sp)
		list = list->next;
	return list;
}

int mapdb_tally_add(struct mapdb_tally **list, struct mapdb_sponsor *sp,
		    const struct ledger_counts *c)
{
	struct mapdb_tally *t = tally_find(*list, sp);

	if (!t) {
		t = kzalloc(sizeof(*t), MAPDB_GFP);
		if (!t)
			return -ENOMEM;
		t->sponsor = sp;
		t->next = *list;
		*list = t;
	}
	ledger_counts_add(&t->counts, c);
	return 0;
}

/* All of them or, with an error, none. */
int mapdb_tally_charge(struct mapdb_tally *list)
{
	struct mapdb_tally *t;
	int err;

	for (t = list; t; t = t->next) {
		err = mapdb_charge(t->sponsor, &t->counts);
		if (err) {
			mapdb_tally_uncharge(list, t);
			return err;
		}
	}
	return 0;
}

/* Those in front of @end. */
void mapdb_tally_uncharge(struct mapdb_tally *list, struct mapdb_tally *end)
{
	for (; list != end; list = list->next) {
		if (!ledger_counts_zero(&list->counts))
			ledger_uncharge(&list->sponsor->ledger, &list->counts);
	}
}

void mapdb_tally_free(struct mapdb_tally *list)
{
	while (list) {
		struct mapdb_tally *next = list->next;

		kfree(list);
		list = next;
	}
}

/* Operations */

void mapdb_op_init(struct mapdb_op *op, struct mapdb_space *actor)
{
	op->actor = actor;
	op->res = (struct mapdb_unmap_result){};
	op->spare = NULL;
	op->nr_spare = 0;
	op->starved = false;
	op->only = NULL;
	op->hasty = false;
	op->credit = NULL;
	op->spare_tally = NULL;
	op->told.nr = 0;
	op->nr = 0;
}

void mapdb_op_exit(struct mapdb_op *op)
{
	if (op->credit)
		mapdb_op_settle(op);
	kfree(op->spare_tally);
	mapdb_free_list(op->spare);
}

/*
 * Fill up the spare nodes. A cut must not fail for lack of memory, since
 * somebody who takes back what is his cannot be told that he may not. Over a
 * memory limit NORETRY has it charged all the same, instead of somebody killed.
 */
void mapdb_op_refill(struct mapdb_op *op)
{
	while (op->nr_spare < MAPDB_SPARE) {
		struct mapdb_node *n;

		n = mapdb_node_alloc(op->actor,
				     GFP_KERNEL_ACCOUNT | __GFP_NOFAIL |
				     __GFP_NORETRY);
		n->next = op->spare;
		op->spare = n;
		op->nr_spare++;
	}
	op->starved = false;
}

/*
 * Wait for a node that is another's, or get the spare nodes that were missing.
 * The tree is locked and pinned; afterwards it is neither.
 */
void mapdb_op_wait(struct mapdb_op *op, struct mapdb_frames *f)
{
	unsigned long change = f->change;

	mutex_unlock(&f->lock);
	mapdb_lookup_end(op);
	if (op->starved)
		mapdb_op_refill(op);
	else
		mapdb_frames_wait(f, change);
	mapdb_lookup_begin();
	mapdb_frames_put(f);
}

/**
 * mapdb_op_reserve() - charge for a node that a cut is going to add
 * @op: the operation; keeps it as credit
 * @sp: sponsor of the node that the operation started from, or NULL
 * @n: the node that will be cut
 *
 * Who cuts at his own expense must afford it, who takes back from others need
 * not: the limits that are kept are those which hold for @sp as well. Charged
 * at once, while @n keeps its sponsor from going; then the charge does. What
 * the operation started from may have gone since, so that only an SRCU read
 * section from before that on, see map.c, keeps @sp.
 *
 * Return: 0, -EDQUOT, -EBUSY.
 */
int mapdb_op_reserve(struct mapdb_op *op, struct mapdb_sponsor *sp,
		     const struct mapdb_node *n)
{
	struct ledger_counts c;
	struct mapdb_tally *t;
	int err;

	if (!sp || !n->pays_map)
		return 0;
	WARN_ON_ONCE(!srcu_read_lock_held(mapdb_charging));
	t = tally_find(op->credit, mapdb_payer(n));
	/* There is a spare one for the usual case of one sponsor. */
	if (!t && !op->spare_tally)
		op->spare_tally = kzalloc(sizeof(*t), GFP_NOWAIT);
	if (!t && !op->spare_tally)
		return 0;
	c = mapdb_counts_of(n->depth, 1, n->pays_lookup, 0);
	err = ledger_try_charge_from(&mapdb_payer(n)->ledger, &sp->ledger, &c);
	if (err)
		return err;
	if (!t) {
		t = op->spare_tally;
		op->spare_tally = NULL;
		t->sponsor = mapdb_payer(n);
		t->next = op->credit;
		op->credit = t;
	}
	ledger_counts_add(&t->counts, &c);
	return 0;
}

/* Before a lock under which mapdb_op_reserve() is called. */
void mapdb_op_prepare(struct mapdb_op *op)
{
	if (!op->spare_tally)
		op->spare_tally = kzalloc(sizeof(*op->spare_tally),
					  GFP_KERNEL | __GFP_NOFAIL);
}

/*
 * After a step of a walk that reserves: every MAPDB_BATCH steps let go of the
 * tree, which is locked before and after.
 */
void mapdb_op_breathe(struct mapdb_op *op, struct mapdb_frames *f,
		      unsigned int *steps)
{
	if (++*steps < MAPDB_BATCH)
		return;
	*steps = 0;
	mutex_unlock(&f->lock);
	mapdb_op_prepare(op);
	mapdb_frames_give_way(f);
	mapdb_frames_lock(f);
}

/* Charge what was reserved: all of it or, with an error, nothing. */
int mapdb_op_charge(struct mapdb_op *op)
{
	int err = mapdb_tally_charge(op->credit);

	if (err) {
		mapdb_tally_free(op->credit);
		op->credit = NULL;
	}
	return err;
}

/* Give back what was reserved and not used. */
void mapdb_op_settle(struct mapdb_op *op)
{
	mapdb_tally_uncharge(op->credit, NULL);
	mapdb_tally_free(op->credit);
	op->credit = NULL;
}

/*
 * Pay out of the credit or, where it does not suffice (somebody upstream cuts,
 * or another cut came first), in any case.
 */
void mapdb_op_pay(struct mapdb_op *op, struct mapdb_sponsor *sp,
		  const struct ledger_counts *c)
{
	struct mapdb_tally *t = tally_find(op->credit, sp);
	bool suffices = t;
	int k;

	for (k = 0; suffices && k < LEDGER_KINDS; k++)
		suffices = t->counts.n[k] >= c->n[k];
	if (!suffices) {
		ledger_charge(&sp->ledger, c);
		return;
	}
	for (k = 0; k < LEDGER_KINDS; k++)
		t->counts.n[k] -= c->n[k];
}

/* Batches */

static bool stands_before(const struct mapdb_node *a,
			  const struct mapdb_node *b)
{
	return a->space != b->space ? a->space < b->space : a->start < b->start;
}

/* Where @n belongs among the first @nr of the batch, which are in order. */
static unsigned int place_for(const struct mapdb_op *op,
			      const struct mapdb_node *n, unsigned int nr)
{
	unsigned int from = 0, mid;

	while (from < nr) {
		mid = (from + nr) / 2;
		if (stands_before(n, op->batch[mid]))
			nr = mid;
		else
			from = mid + 1;
	}
	return from;
}

/*
 * Neighbours together, so that they are zapped together and each space is
 * locked once. By insertion: most of a batch is in order, and it is small.
 * sort() would call a function for each comparison.
 */
void mapdb_batch_sort(struct mapdb_op *op)
{
	unsigned int i, at;

	for (i = 1; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		if (!stands_before(n, op->batch[i - 1]))
			continue;
		at = place_for(op, n, i - 1);
		memmove(&op->batch[at + 1], &op->batch[at],
			(i - at) * sizeof(n));
		op->batch[at] = n;
	}
}

/* Has a revoke passed @n on its way down, in the tree that is locked? */
static bool is_doomed(const struct mapdb_node *n, const struct mapdb_frames *f)
{
	return n->up && mapdb_node_frames(n) == f && n->dying;
}

/*
 * Is there next to nothing between @last and @n in their space? What a revoke
 * has passed on its way down is as good as nothing: it will be taken, and has a
 * fault more if it is used until then. *@looks: nodes that may still be looked at
 * under this hold of the tree's lock.
 */
static bool bridges(const struct mapdb_node *last, const struct mapdb_node *n,
		    unsigned int *looks)
{
	const struct mapdb_frames *f = mapdb_node_frames(n);
	unsigned int steps = MAPDB_ZAP_DOOMED;
	struct rb_node *at;

	if (n->start - mapdb_node_end(last) > MAPDB_ZAP_HOLE)
		return false;
	for (at = rb_next(&last->in_space); at != &n->in_space; at = rb_next(at)) {
		if (!steps-- || !*looks)
			return false;
		--*looks;
		if (!is_doomed(rb_entry(at, struct mapdb_node, in_space), f))
			return false;
	}
	return true;
}

/*
 * Take or give up the nodes of the batch, and take rights from them. Once the
 * rwsem was held for writing, no fault that saw them before is under way.
 */
void mapdb_batch_state(struct mapdb_op *op, enum mapdb_state state, u32 take)
{
	struct mapdb_space *s = NULL;
	unsigned int i, looks = MAPDB_BATCH;

	bitmap_zero(op->joined, MAPDB_BATCH);
	for (i = 0; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		lockdep_assert_held(&mapdb_node_frames(n)->lock);
		if (n->space != s) {
			if (s)
				up_write(&s->lock);
			s = n->space;
			down_write(&s->lock);
		} else if (n->start == mapdb_node_end(op->batch[i - 1]) ||
			   bridges(op->batch[i - 1], n, &looks)) {
			__set_bit(i, op->joined);
		}
		n->state = state;
		n->rights &= ~take;
	}
	if (s)
		up_write(&s->lock);
}

/* Remove the entries of the batch, one call for each run of neighbours. */
void mapdb_batch_zap(struct mapdb_op *op)
{
	unsigned int i, run;

	os_begin(zap, 0);
	for (i = 0; i < op->nr; i = run) {
		struct mapdb_node *n = op->batch[i];
		u32 end;

		run = find_next_zero_bit(op->joined, op->nr, i + 1);
		end = mapdb_node_end(op->batch[run - 1]);
		mapdb_zap(n->space, n->start, end - n->start);
	}
	mapdb_zap_end(op);
}

/* Free the batch, whose nodes are unlinked. */
void mapdb_batch_free(struct mapdb_op *op)
{
	if (op->nr)
		mapdb_node_free_bulk(op->nr, op->batch);
	op->nr = 0;
}
