// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: sponsors, and how all that one pays for is revoked.
 *
 * Contract: what was charged before the reclaim began is gone when it returns,
 * whoever's windows it was in. It finds that by the list of the sponsor's first
 * nodes, from each of which it revokes as everybody does; a mark at the end of
 * the list keeps it from following somebody who maps as fast as it revokes.
 */
#include "tree.h"

DEFINE_STATIC_SRCU(charging);
struct srcu_struct *const mapdb_charging = &charging;

void mapdb_sponsor_init(struct mapdb_sponsor *sp, struct ledger *parent, u64 id)
{
	ledger_init(&sp->ledger, parent);
	spin_lock_init(&sp->lock);
	INIT_LIST_HEAD(&sp->first);
	INIT_LIST_HEAD(&sp->mark);
	mutex_init(&sp->reclaim);
	sp->id = id;
}

/* First nodes */

void mapdb_first_add(struct mapdb_node *n)
{
	struct mapdb_sponsor *sp = mapdb_payer(n);

	spin_lock(&sp->lock);
	list_add_tail(&n->first, &sp->first);
	spin_unlock(&sp->lock);
}

void mapdb_first_del(struct mapdb_node *n)
{
	struct mapdb_sponsor *sp = mapdb_payer(n);

	spin_lock(&sp->lock);
	list_del_init(&n->first);
	spin_unlock(&sp->lock);
}

/* @r was cut off from @n. */
void mapdb_first_split(struct mapdb_node *r, struct mapdb_node *n)
{
	struct mapdb_sponsor *sp = mapdb_payer(n);

	spin_lock(&sp->lock);
	list_add(&r->first, &n->first);
	spin_unlock(&sp->lock);
}

/* Reclaim */

/* The oldest first node of a sponsor up to the mark; its tree is locked. */
static struct mapdb_node *lock_first(struct mapdb_sponsor *sp)
{
	struct mapdb_frames *locked = NULL, *f;
	struct mapdb_node *n;

	for (;;) {
		n = NULL;
		f = NULL;
		spin_lock(&sp->lock);
		if (sp->first.next != &sp->mark) {
			n = list_first_entry(&sp->first, struct mapdb_node,
					     first);
			f = mapdb_node_frames(n);
			/* What is in the list is linked, and pins its tree. */
			if (f != locked)
				refcount_inc(&f->refs);
		}
		spin_unlock(&sp->lock);

		if (f == locked)
			return n;
		if (locked)
			mapdb_frames_unlock(locked);
		if (!f)
			return NULL;
		mapdb_frames_lock(f);
		locked = f;
	}
}

static int reclaim_to_mark(struct mapdb_op *op, struct mapdb_sponsor *sp)
{
	struct mapdb_frames *f;
	struct mapdb_node *n;
	u32 to;

	op->only = sp;
	while ((n = lock_first(sp))) {
		f = mapdb_node_frames(n);
		/* What is dying is brought to its end. */
		if (!n->dying && fatal_signal_pending(current)) {
			mapdb_frames_unlock(f);
			return -EINTR;
		}
		if (mapdb_revoke_self(op, n, n->start, U32_MAX, &to))
			mapdb_frames_unlock(f);
		else
			mapdb_op_wait(op, f);
		cond_resched();
	}
	return 0;
}

/**
 * mapdb_settle() - wait for maps that may have charged and not linked yet
 *
 * Context: process; sleeps.
 */
void mapdb_settle(void)
{
	synchronize_srcu(mapdb_charging);
}

/* Is there anything to reclaim? */
static bool has_first(struct mapdb_sponsor *sp)
{
	bool some;

	spin_lock(&sp->lock);
	some = !list_empty(&sp->first);
	spin_unlock(&sp->lock);
	return some;
}

/**
 * mapdb_reclaim_settled() - revoke all that a sponsor pays for
 * @sp: the sponsor
 * @res: in and out: what was removed is added
 *
 * Covers all that was charged when mapdb_settle() was last called before. What
 * is charged meanwhile, where the group is not locked, may be left.
 *
 * Context: process; may wait for other revokes.
 * Return: 0; -EINTR: a fatal signal came, the rest still stands.
 */
int mapdb_reclaim_settled(struct mapdb_sponsor *sp,
			  struct mapdb_unmap_result *res)
{
	struct mapdb_op op;
	int err;

	if (!has_first(sp))
		return 0;
	if (mutex_lock_killable(&sp->reclaim))
		return -EINTR;
	mapdb_op_init(&op, NULL);
	op.hasty = true;

	spin_lock(&sp->lock);
	list_add_tail(&sp->mark, &sp->first);
	spin_unlock(&sp->lock);

	mapdb_lookup_begin();
	err = reclaim_to_mark(&op, sp);
	mapdb_lookup_end(&op);

	spin_lock(&sp->lock);
	list_del_init(&sp->mark);
	spin_unlock(&sp->lock);

	res->nodes += op.res.nodes;
	res->pages += op.res.pages;
	mapdb_op_exit(&op);
	mutex_unlock(&sp->reclaim);
	return err;
}

/* Both, for one sponsor. */
int mapdb_reclaim(struct mapdb_sponsor *sp, struct mapdb_unmap_result *res)
{
	mapdb_settle();
	return mapdb_reclaim_settled(sp, res);
}
