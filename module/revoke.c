// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: revoke.
 *
 * Contract: when a revoke returns, every mapping that was derived from the
 * range before it began is gone: refused to faults first, zapped second, freed
 * last. It cannot fail half-way, and cannot be escaped: a node is marked dying
 * before its descendants are looked for, and takes no more children; below a
 * node that stays, a struct mapdb_revoke keeps new ones out.
 *
 * The work is done leaf by leaf, in batches:
 *
 *	gather	with the tree locked, go down to leaves and back up, at most
 *		MAPDB_BATCH of them, and take them (ZAPPING)
 *	zap	without any lock
 *	finish	with the tree locked, unlink them
 *
 * No position is kept between two batches: what was done is no longer there,
 * so each batch starts at the top again. That is why several revokes of one
 * subtree need to know nothing of each other: each takes what the others have
 * not taken, and waits at the end for what they have.
 */
#include "tree.h"

/* Gather */

/**
 * struct mapdb_path - the way down to the leaf that is taken next
 * @lo: first frame of interest
 * @hi: last frame
 * @level: where it is at; 0: the lineage at the top
 * @edge: leaf that was taken last, until somebody looked beside it
 * @blocked: levels at which some children belong to another
 * @node: whose children are looked at, by level
 *
 * Good under one hold of the lock.
 */
struct mapdb_path {
	u32 lo;
	u32 hi;
	int level;
	struct mapdb_node *edge;
	DECLARE_BITMAP(blocked, MAPDB_MAX_DEPTH + 1);
	struct mapdb_node *node[MAPDB_MAX_DEPTH + 1];
};

/*
 * At the top, the sibling that stands behind the leaf that was taken last, in
 * its space: what was derived one after the other stands so, and is zapped by
 * one call then, whatever the frames. What is passed over is for another batch;
 * there is one, since something was taken. NULL: there is no such sibling.
 */
static struct mapdb_node *path_beside(struct mapdb_path *path,
				      const struct mapdb_lineage *top)
{
	struct mapdb_node *n = NULL;
	struct mapdb_space *s;
	struct rb_node *rb;

	if (path->level || !path->edge)
		return NULL;
	s = path->edge->space;
	down_read(&s->lock);
	rb = rb_next(&path->edge->in_space);
	path->edge = NULL;
	if (rb)
		n = rb_entry(rb, struct mapdb_node, in_space);
	/* Of another tree, this is all that may be looked at. */
	if (n && (n->up != top || n->state != MAPDB_LIVE || n->taken ||
		  n->frame < path->lo || mapdb_node_last(n) > path->hi))
		n = NULL;
	up_read(&s->lock);
	return n;
}

/* The sibling of @n that is next. */
static struct mapdb_node *path_next(struct mapdb_path *path,
				    struct mapdb_node *n)
{
	const struct mapdb_node *above = path->node[path->level];

	if (path->level)
		return mapdb_lineage_next(n, above->frame,
					  mapdb_node_last(above));
	return path_beside(path, n->up) ?:
	       mapdb_lineage_next(n, path->lo, path->hi);
}

static void path_take(struct mapdb_op *op, struct mapdb_node *n)
{
	n->taken = 1;
	op->batch[op->nr++] = n;
}

/* Below @n from now on. */
static void path_down(struct mapdb_path *path, struct mapdb_node *n)
{
	path->node[++path->level] = n;
	__clear_bit(path->level, path->blocked);
}

/*
 * All below the node that the path is at is taken: by us, and then it is a leaf
 * itself, or partly by others. Return: the node; the path is above it.
 */
static struct mapdb_node *path_up(struct mapdb_path *path, struct mapdb_op *op)
{
	int level = path->level--;

	if (test_bit(level, path->blocked))
		__set_bit(path->level, path->blocked);
	else
		path_take(op, path->node[level]);
	return path->node[level];
}

static struct mapdb_node *first_child(const struct mapdb_node *n)
{
	if (!n->down)
		return NULL;
	return mapdb_lineage_first(n->down, n->frame, mapdb_node_last(n));
}

/*
 * Look at one more node on the path.
 *
 * What begins before the range is cut, and its part in the range left for
 * later: it sorts behind @n and behind all that begin between the two. What
 * spans several pieces of its parent goes as a whole, with the first: the other
 * pieces in the range go, too.
 *
 * Return: whether to go on (false: stop gathering). *@part: the node if it is
 * to be removed now.
 */
static bool gather_node(struct mapdb_op *op, struct mapdb_path *path,
			struct mapdb_node *n, struct mapdb_node **part)
{
	bool later = n->frame < path->lo;

	*part = NULL;
	if (n->state != MAPDB_LIVE) {
		__set_bit(path->level, path->blocked);
		return true;
	}
	if (n->taken)
		return true;
	if (later || mapdb_node_last(n) > path->hi)
		n = mapdb_cut(op, n, path->lo, path->hi, true);
	if (!n)
		return false;
	if (!later) {
		n->dying = 1;
		*part = n;
	}
	return true;
}

/*
 * Take what follows the leaf @n in its space, as far as it is like @n: in
 * whatever order it was derived, it is zapped by one call with it then.
 */
static void gather_neighbours(struct mapdb_op *op, struct mapdb_path *path,
			      struct mapdb_node *n)
{
	const struct mapdb_node *above = path->node[path->level];
	struct mapdb_space *s = n->space;
	u32 lo = path->lo, hi = path->hi;
	struct rb_node *rb;

	path->edge = n;
	if (path->level) {
		lo = max(lo, above->frame);
		hi = min(hi, mapdb_node_last(above));
	}
	down_read(&s->lock);
	while (op->nr < MAPDB_BATCH && (rb = rb_next(&n->in_space))) {
		struct mapdb_lineage *up = n->up;

		n = rb_entry(rb, struct mapdb_node, in_space);
		/* Of another tree, this is all that may be looked at. */
		if (n->up != up)
			break;
		if (n->state != MAPDB_LIVE || n->taken || n->frame < lo ||
		    mapdb_node_last(n) > hi || first_child(n))
			break;
		n->dying = 1;
		path_take(op, n);
		path->edge = n;
	}
	up_read(&s->lock);
}

/**
 * gather() - collect leaves into op->batch
 * @op: the revoke
 * @l: lineage at the top
 * @lo: first frame
 * @hi: last frame
 *
 * A node whose children are all in the batch counts as a leaf; the batch holds
 * children before parents until it is sorted, which is fine since all of them
 * are unlinked before the first is freed.
 *
 * Return: whether something is left: what another owns, or more.
 */
static bool gather(struct mapdb_op *op, struct mapdb_lineage *l, u32 lo, u32 hi)
{
	struct mapdb_path path;
	unsigned int steps = 2 * MAPDB_BATCH;
	struct mapdb_node *n, *part, *child;

	path.lo = lo;
	path.hi = hi;
	path.level = 0;
	path.edge = NULL;
	__clear_bit(0, path.blocked);
	n = mapdb_lineage_first(l, lo, hi);
	while (op->nr < MAPDB_BATCH && steps--) {
		if (!n) {
			if (!path.level)
				return test_bit(0, path.blocked);
			n = path_up(&path, op);
			n = path_next(&path, n);
			continue;
		}
		if (!gather_node(op, &path, n, &part))
			return true;
		child = part ? first_child(part) : NULL;
		if (child) {
			path_down(&path, part);
			n = child;
			continue;
		}
		if (part) {
			path_take(op, part);
			gather_neighbours(op, &path, part);
			if (op->nr == MAPDB_BATCH)
				break;
		}
		n = path_next(&path, part ?: n);
	}
	return true;
}

/* Finish */

/*
 * Tell of the batch, once for each run of neighbours. Who revokes in his own
 * space knows.
 */
static void finish_events(struct mapdb_op *op)
{
	unsigned int i, run;

	for (i = 0; i < op->nr; i = run) {
		struct mapdb_node *n = op->batch[i];
		u32 end;

		run = i + 1;
		if (n->space == op->actor)
			continue;
		end = mapdb_node_end(n);
		for (; run < op->nr; run++) {
			struct mapdb_node *next = op->batch[run];

			if (next->space != n->space || next->start != end ||
			    next->rights != n->rights)
				break;
			end = mapdb_node_end(next);
		}
		mapdb_event(n->space, n->start, end - n->start, n->rights,
			    true);
	}
}

static void space_lock(struct mapdb_space *s)
{
	mapdb_space_get(s);
	down_write(&s->lock);
}

/*
 * The last node may have gone from it: whoever releases the space may be
 * through before up_write() is.
 */
static void space_unlock(struct mapdb_space *s)
{
	up_write(&s->lock);
	mapdb_space_put(s);
}

/* Take the batch out of the trees; its nodes stay in memory. */
static void finish_unlink(struct mapdb_op *op)
{
	struct mapdb_space *s = NULL;
	unsigned int i;

	for (i = 0; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		if (n->space != s) {
			if (s)
				space_unlock(s);
			s = n->space;
			space_lock(s);
		}
		rb_erase(&n->in_space, &s->nodes);
		mapdb_unlink(n);
	}
	if (s)
		space_unlock(s);
	for (i = 0; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		if (n->down)
			mapdb_lineage_put(n->down);
	}
}

/**
 * struct bill - what the batch is charged
 * @sponsor: who pays for the first node of it
 * @several: he does not pay for all
 * @pages: pages of all
 * @pay: how many pay what, by mapdb_node.pays
 */
struct bill {
	struct mapdb_sponsor *sponsor;
	bool several;
	u64 pages;
	u8 pay[MAPDB_PAYS];
};

/* Add up the batch; nobody maps the frames of a root that is in it any more. */
static void finish_sum(struct mapdb_op *op, struct mapdb_frames *f,
		       struct bill *b)
{
	unsigned int i;

	*b = (struct bill){ .sponsor = mapdb_payer(op->batch[0]) };
	for (i = 0; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		b->pages += n->pages;
		if (unlikely(mapdb_node_is_root(n)))
			mapdb_free_frames(f->priv, n->frame, n->pages);
		if (!BRUMM_QUOTA)
			continue;
		b->pay[n->pays]++;
		if (unlikely(mapdb_payer(n) != b->sponsor))
			b->several = true;
	}
	op->res.nodes += op->nr;
	op->res.pages += b->pages;
}

/* The same, in the terms of the ledger. */
static void bill_counts(const struct bill *b, struct ledger_counts *c)
{
	struct mapdb_node of = {};
	unsigned int pays;

	*c = (struct ledger_counts){ .n = { [LEDGER_PT] = b->pages } };
	for (pays = 0; pays < MAPDB_PAYS; pays++) {
		of.pays = pays;
		c->n[LEDGER_LOOKUP] += of.pays_lookup ? b->pay[pays] : 0;
		c->n[LEDGER_MAP] += of.pays_map ? b->pay[pays] : 0;
		c->n[LEDGER_DEEP] += of.pays_map && of.deep ? b->pay[pays] : 0;
	}
}

/* Uncharge the batch, once for each run of one sponsor. */
static void uncharge_runs(struct mapdb_op *op)
{
	unsigned int i = 0;

	while (i < op->nr) {
		struct mapdb_sponsor *sp = mapdb_payer(op->batch[i]);
		struct ledger_counts sum, c;

		mapdb_node_counts(op->batch[i], &sum);
		while (++i < op->nr && mapdb_payer(op->batch[i]) == sp) {
			mapdb_node_counts(op->batch[i], &c);
			ledger_counts_add(&sum, &c);
		}
		if (sp)
			ledger_uncharge(&sp->ledger, &sum);
	}
}

static void finish_uncharge(struct mapdb_op *op, const struct bill *b)
{
	struct ledger_counts c;

	if (!BRUMM_QUOTA)
		return;
	if (b->several || op->nr == 1) {
		uncharge_runs(op);
	} else if (b->sponsor) {
		bill_counts(b, &c);
		ledger_uncharge(&b->sponsor->ledger, &c);
	}
}

/*
 * Zap and free the batch, whose nodes are ZAPPING. No lock is held. Who waits
 * for them is woken when all is done, the uncharge included.
 */
static void finish(struct mapdb_op *op, struct mapdb_frames *f)
{
	struct bill b;

	mapdb_batch_zap(op);

	os_begin(remove, 0);
	finish_sum(op, f, &b);
	mapdb_frames_lock(f);
	/* The spaces may go once the nodes are unlinked: tell before. */
	finish_events(op);
	finish_unlink(op);
	finish_uncharge(op, &b);
	mapdb_frames_changed(f);
	mutex_unlock(&f->lock);
	mapdb_batch_free(op);
	mapdb_remove_end(op);
}

/* Take the batch. The tree is locked. */
static void take(struct mapdb_op *op)
{
	mapdb_batch_sort(op);
	mapdb_batch_state(op, MAPDB_ZAPPING, 0);
}

/*
 * Remove all in a part of a lineage, and all below. The tree is locked, before
 * and after, but not in between; the caller pins the lineage.
 */
static void revoke_lineage(struct mapdb_op *op, struct mapdb_lineage *l, u32 lo,
			   u32 hi)
{
	struct mapdb_frames *f = l->frames;
	unsigned long change;
	bool more;

	for (;;) {
		more = gather(op, l, lo, hi);
		if (!op->nr && !more)
			return;
		take(op);
		change = f->change;
		mutex_unlock(&f->lock);
		mapdb_lookup_end(op);

		if (op->nr)
			finish(op, f);
		else if (!op->starved)
			mapdb_frames_wait(f, change);
		if (op->starved)
			mapdb_op_refill(op);
		if (op->hasty)
			cond_resched();
		else
			mapdb_frames_give_way(f);
		mapdb_lookup_begin();
		mapdb_frames_lock(f);
	}
}

/*
 * Revoke what is below a node that stays, or a row of pieces that do so as yet:
 * one may even move away meanwhile, so new ones are kept out.
 */
static void revoke_below(struct mapdb_op *op, struct mapdb_node *n, u32 lo,
			 u32 hi)
{
	struct mapdb_lineage *l = n->down;
	struct mapdb_revoke r = { .lo = lo, .hi = hi };

	if (!l || !mapdb_lineage_first(l, lo, hi))
		return;
	mapdb_lineage_get(l);
	mapdb_revoke_begin(l, &r);
	revoke_lineage(op, l, lo, hi);
	mapdb_revoke_end(l, &r);
	mapdb_lineage_put(l);
}

/* Is @n a leaf that goes with its neighbour, if it ends in front of @end? */
static bool goes_along(const struct mapdb_op *op, const struct mapdb_node *n,
		       const struct mapdb_frames *f, u32 end)
{
	return n->state == MAPDB_LIVE && mapdb_node_frames(n) == f &&
	       mapdb_node_end(n) <= end && !first_child(n) &&
	       (!op->only || mapdb_payer(n) == op->only);
}

/*
 * Take a leaf, and those that follow it in front of page @end: who gives up a
 * window has many. Return: the page behind them.
 */
static u32 take_leaves(struct mapdb_op *op, struct mapdb_node *n, u32 end)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	struct mapdb_space *s = n->space;
	struct rb_node *rb;

	op->batch[op->nr++] = n;
	if (mapdb_node_end(n) < end) {
		down_read(&s->lock);
		while (op->nr < MAPDB_BATCH && (rb = rb_next(&n->in_space))) {
			struct mapdb_node *next =
				rb_entry(rb, struct mapdb_node, in_space);

			if (!goes_along(op, next, f, end))
				break;
			n = next;
			op->batch[op->nr++] = n;
		}
		up_read(&s->lock);
	}
	end = mapdb_node_end(n);
	take(op);
	return end;
}

/*
 * Bring the removal of what stands from page @start on, of @n and perhaps of
 * some after it up to page @end, one step further. *@to: the page behind what is
 * gone, if something is. The tree is locked before and after.
 */
enum mapdb_revoked mapdb_revoke_self(struct mapdb_op *op, struct mapdb_node *n,
				     u32 start, u32 end, u32 *to)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	u32 lo, hi;

	if (n->state != MAPDB_LIVE)
		return MAPDB_REVOKED_NOT;
	mapdb_overlap(n, start, end, &lo, &hi);
	n = mapdb_cut(op, n, lo, hi, true);
	if (!n)
		return MAPDB_REVOKED_NOT;
	n->dying = 1;
	if (first_child(n)) {
		mapdb_row_overlap(n, mapdb_row_last(n, end), start, end, &lo,
				  &hi);
		revoke_below(op, n, lo, hi);
		return MAPDB_REVOKED_BELOW;
	}
	*to = take_leaves(op, n, end);
	mutex_unlock(&f->lock);
	mapdb_lookup_end(op);
	finish(op, f);
	mapdb_lookup_begin();
	mapdb_frames_lock(f);
	return MAPDB_REVOKED;
}

/* Credit for the holes that a revoke is going to make */

static bool is_hole(const struct mapdb_node *n, u32 lo, u32 hi)
{
	return n->frame < lo && mapdb_node_last(n) > hi;
}

/* May there be holes below @n? Only a child that begins before @lo can be. */
static bool holes_below(const struct mapdb_node *n, u32 lo, u32 hi)
{
	struct mapdb_node *child;

	if (!n->down)
		return false;
	child = mapdb_lineage_first(n->down, lo, hi);
	return child && child->frame < lo;
}

/*
 * Reserve for the holes below @n: nodes that begin before and end behind the
 * range. What they were derived from begins before it, too. The tree is locked,
 * but not all the time: @n may be gone afterwards.
 */
static int reserve_below(struct mapdb_op *op, struct mapdb_walk *w,
			 struct mapdb_node *n, u32 lo, u32 hi)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	struct mapdb_sponsor *sp = mapdb_payer(n);
	unsigned int steps = 0;
	int err = 0;

	mapdb_walk_start(w, n->down, lo, hi);
	while (!err && (n = mapdb_walk_next(w))) {
		if (n->frame >= lo) {
			mapdb_walk_leave(w);
		} else if (n->state != MAPDB_PENDING) {
			if (is_hole(n, lo, hi))
				err = mapdb_op_reserve(op, sp, n);
			mapdb_walk_enter(w, n);
		}
		mapdb_op_breathe(op, f, &steps);
	}
	mapdb_walk_stop(w);
	return err;
}

/*
 * Reserve, before anything is touched, what the revoke adds to the sponsors of
 * the nodes it starts from: who makes holes in what his own budget pays for
 * must afford them.
 */
static int reserve_holes(struct mapdb_op *op, struct mapdb_space *s, u32 start,
			 u32 end, bool self)
{
	struct mapdb_walk *w = mapdb_walk_alloc(GFP_KERNEL | __GFP_NOFAIL);
	struct mapdb_node *n, *last;
	u32 lo, hi, at = start;
	int err = 0, srcu;

	srcu = mapdb_charge_begin();
	while (!err) {
		struct mapdb_frames *f;

		mapdb_op_prepare(op);
		n = at < end ? mapdb_lock_at(s, at, end) : NULL;
		if (!n)
			break;
		f = mapdb_node_frames(n);
		last = mapdb_row_last(n, end);
		mapdb_row_overlap(n, last, at, end, &lo, &hi);
		at = mapdb_node_end(last);
		if (self && is_hole(n, lo, hi))
			err = mapdb_op_reserve(op, mapdb_payer(n), n);
		if (!err && mapdb_payer(n) && holes_below(n, lo, hi))
			err = reserve_below(op, w, n, lo, hi);
		mapdb_frames_unlock(f);
		cond_resched();
	}
	mapdb_charge_end(srcu);
	mapdb_walk_free(w);
	return err;
}

/*
 * Is it certain at a glance that the revoke makes no holes? The usual case: the
 * range lies in one node, and nothing below sticks out of it on the left.
 */
static bool needs_no_credit(const struct mapdb_node *n, u32 start, u32 end,
			    bool self)
{
	u32 lo, hi;

	if (!BRUMM_QUOTA)
		return true;
	if (mapdb_node_end(n) < end)
		return false;
	mapdb_overlap(n, start, end, &lo, &hi);
	return !mapdb_payer(n) ||
	       (!(self && is_hole(n, lo, hi)) && !holes_below(n, lo, hi));
}

/**
 * revoke_range() - revoke one range of a space
 * @op: the revoke
 * @s: the space
 * @start: first page
 * @end: behind the last page
 * @self: also what stands there itself
 * @n: first node there, its tree locked, or NULL to look it up
 *
 * What is mapped into the range meanwhile is left alone: once the node at a
 * place was seen, only what is dying there is ours.
 */
static void revoke_range(struct mapdb_op *op, struct mapdb_space *s, u32 start,
			 u32 end, bool self, struct mapdb_node *n)
{
	u32 lo, hi, to, at = start, seen = start;
	struct mapdb_frames *f;
	struct mapdb_node *last;

	for (; at < end; n = NULL) {
		if (!n)
			n = mapdb_lock_at(s, at, end);
		if (!n)
			break;
		f = mapdb_node_frames(n);
		at = max(at, n->start);
		to = min(end, mapdb_node_end(n));
		if (at < seen && !n->dying) {
			at = to;
		} else if (!self) {
			last = mapdb_row_last(n, end);
			mapdb_row_overlap(n, last, at, end, &lo, &hi);
			at = mapdb_node_end(last);
			revoke_below(op, n, lo, hi);
		} else {
			switch (mapdb_revoke_self(op, n, at, end, &to)) {
			case MAPDB_REVOKED:
				at = to;
				break;
			case MAPDB_REVOKED_BELOW:
				seen = max(seen, to);
				break;
			case MAPDB_REVOKED_NOT:
				mapdb_op_wait(op, f);
				continue;
			}
		}
		mapdb_frames_unlock(f);
		cond_resched();
	}
}

/**
 * mapdb_unmap() - revoke what is derived from a range
 * @s: a space
 * @actor: who does it: what it revokes in there is no event to it
 * @start: first page
 * @pages: how many
 * @self: revoke the range itself too
 * @res: out: what was removed
 *
 * Context: process; may wait for other revokes. No locks held.
 * Return: 0; -EDQUOT, -EBUSY: a budget does not allow the nodes that a hole
 * adds, nothing was changed.
 */
int mapdb_unmap(struct mapdb_space *s, struct mapdb_space *actor, u32 start,
		u32 pages, bool self, struct mapdb_unmap_result *res)
{
	u32 end = start + pages;
	struct mapdb_node *n;
	struct mapdb_op op;
	int err = 0;

	mapdb_op_init(&op, actor);
	mapdb_lookup_begin();
	n = mapdb_lock_at(s, start, end);
	if (n && !needs_no_credit(n, start, end, self)) {
		mapdb_frames_unlock(mapdb_node_frames(n));
		n = NULL;
		err = reserve_holes(&op, s, start, end, self);
	}
	if (!err)
		revoke_range(&op, s, start, end, self, n);
	mapdb_lookup_end(&op);
	*res = op.res;
	mapdb_op_exit(&op);
	return err;
}

/**
 * mapdb_release() - revoke all there is in a space that nobody uses any more
 * @s: the space
 *
 * Context: process; may wait for other revokes.
 */
void mapdb_release(struct mapdb_space *s)
{
	struct mapdb_op op;

	os_begin(release, 0);
	mapdb_op_init(&op, s);
	op.hasty = true;
	mapdb_lookup_begin();
	revoke_range(&op, s, 0, U32_MAX, true, NULL);
	mapdb_lookup_end(&op);
	WARN_ON_ONCE(!RB_EMPTY_ROOT(&s->nodes));
	os_end(release, op.res.payer.cgroup, op.res.nodes, op.res.pages, 0, 0);
	mapdb_op_exit(&op);
}
