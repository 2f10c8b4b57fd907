// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: walks that leave nodes in place: revoke of rights, and
 * query.
 *
 * Contract: a walk visits parents before children and drops the lock after
 * MAPDB_BATCH nodes. It keeps its place by the key of the last node (frame, id)
 * and a reference to the lineage, so any node may go or come meanwhile. What
 * comes behind its back was derived from a node that it has already reduced,
 * and so has no more rights than that.
 *
 * A revoke of rights first takes the rights (under the locks that faults take),
 * then zaps the entries that may still have them. In between the nodes are
 * owned (REDUCING), so that their spaces stay, and serve faults, with the
 * rights that are left.
 */
#include "tree.h"

/* The walk */

static void walk_push(struct mapdb_walk *w, struct mapdb_lineage *l, u32 lo,
		      u32 hi)
{
	struct mapdb_walk_level *at = &w->at[++w->level];

	mapdb_lineage_get(l);
	at->lineage = l;
	at->lo = lo;
	at->hi = hi;
	at->frame = 0;
	at->id = 0;
}

struct mapdb_walk *mapdb_walk_alloc(gfp_t gfp)
{
	return kmalloc(sizeof(struct mapdb_walk), gfp);
}

void mapdb_walk_free(struct mapdb_walk *w)
{
	kfree(w);
}

/* Begin at a lineage, which may be NULL: an empty walk. The tree is locked. */
void mapdb_walk_start(struct mapdb_walk *w, struct mapdb_lineage *l, u32 lo,
		      u32 hi)
{
	w->level = -1;
	if (l)
		walk_push(w, l, lo, hi);
}

/* No more of this lineage. */
void mapdb_walk_leave(struct mapdb_walk *w)
{
	mapdb_lineage_put(w->at[w->level--].lineage);
}

/* The next node, or NULL at the end. The tree is locked. */
struct mapdb_node *mapdb_walk_next(struct mapdb_walk *w)
{
	while (w->level >= 0) {
		struct mapdb_walk_level *at = &w->at[w->level];
		struct mapdb_node *n;

		n = mapdb_lineage_after(at->lineage, at->frame, at->id, at->lo,
					at->hi);
		if (n) {
			at->frame = n->frame;
			at->id = n->id;
			return n;
		}
		mapdb_walk_leave(w);
	}
	return NULL;
}

/* Go on below @n, the node just returned, or the part of it that was cut. */
void mapdb_walk_enter(struct mapdb_walk *w, struct mapdb_node *n)
{
	struct mapdb_walk_level *at = &w->at[w->level];

	if (n->state == MAPDB_PENDING || !n->down)
		return;
	walk_push(w, n->down, max(at->lo, n->frame),
		  min(at->hi, mapdb_node_last(n)));
}

/* Let go of what the walk holds. The tree is locked. */
void mapdb_walk_stop(struct mapdb_walk *w)
{
	while (w->level >= 0)
		mapdb_walk_leave(w);
}

/* Revoke of rights */

/* Zap the batch, whose nodes are REDUCING, and give it up. No lock is held. */
static void reduce_finish(struct mapdb_op *op, struct mapdb_frames *f)
{
	mapdb_batch_zap(op);
	mapdb_frames_lock(f);
	mapdb_batch_state(op, MAPDB_LIVE, 0);
	mapdb_frames_changed(f);
	mutex_unlock(&f->lock);
	op->nr = 0;
}

/* Take rights from the batch and own it. The tree is locked. */
static void reduce_take(struct mapdb_op *op, u32 rights)
{
	unsigned int i;

	for (i = 0; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		n->taken = 0;
		op->res.nodes++;
		op->res.pages += n->pages;
		if (n->space != op->actor)
			mapdb_event(n->space, n->start, n->pages,
				    n->rights & rights, false);
	}
	mapdb_batch_sort(op);
	mapdb_batch_state(op, MAPDB_REDUCING, rights);
}

/*
 * Put @n into the batch, cut to lo..hi, if there is something to take from it.
 * Return: false: it is another's, or a spare node is missing.
 */
static bool reduce_add(struct mapdb_op *op, struct mapdb_node *n, u32 lo,
		       u32 hi, u32 rights)
{
	/* Who owns it may have taken the rights, and not zapped yet. */
	if (n->state != MAPDB_LIVE)
		return false;
	if (n->taken || !(n->rights & rights))
		return true;
	n = mapdb_cut(op, n, lo, hi, false);
	if (!n)
		return false;
	n->taken = 1;
	op->batch[op->nr++] = n;
	return true;
}

/*
 * Collect a batch. What begins before the range is only cut: its part in the
 * range sorts behind it, and is met later, as are those that begin between. What
 * spans several pieces of its parent is reduced as a whole, with the first; with
 * the others it is met again, and has nothing to lose any more.
 *
 * Return: false: stopped at a node that was not to be had.
 */
static bool reduce_gather(struct mapdb_op *op, struct mapdb_walk *w, u32 rights)
{
	unsigned int steps = MAPDB_BATCH;
	struct mapdb_walk_level *at;
	struct mapdb_node *n;

	while (steps-- && op->nr < MAPDB_BATCH && (n = mapdb_walk_next(w))) {
		u32 lo = w->at[0].lo, hi = w->at[0].hi;
		bool later;

		at = &w->at[w->level];
		later = n->frame < lo && (n->rights & rights) &&
			n->state == MAPDB_LIVE;
		if (later ? !mapdb_cut(op, n, lo, hi, false) :
			    !reduce_add(op, n, lo, hi, rights)) {
			/* Ids begin at 1: come back to this very node. */
			at->id--;
			return false;
		}
		if (!later)
			mapdb_walk_enter(w, n);
	}
	return true;
}

/* Reduce all below a lineage. The tree is locked before and after. */
static void reduce_lineage(struct mapdb_op *op, struct mapdb_walk *w,
			   struct mapdb_lineage *l, u32 lo, u32 hi, u32 rights)
{
	struct mapdb_frames *f = l->frames;
	unsigned long change;
	bool there;

	mapdb_walk_start(w, l, lo, hi);
	do {
		there = reduce_gather(op, w, rights);
		reduce_take(op, rights);
		change = f->change;
		mutex_unlock(&f->lock);
		mapdb_lookup_end(op);

		if (op->nr)
			reduce_finish(op, f);
		else if (!there && !op->starved)
			mapdb_frames_wait(f, change);
		if (op->starved)
			mapdb_op_refill(op);
		mapdb_frames_give_way(f);
		mapdb_lookup_begin();
		mapdb_frames_lock(f);
	} while (w->level >= 0);
}

/* Reduce a part of a node itself. As revoke_self() in revoke.c. */
static bool reduce_self(struct mapdb_op *op, struct mapdb_node *n, u32 lo,
			u32 hi, u32 rights)
{
	struct mapdb_frames *f = mapdb_node_frames(n);

	if (!reduce_add(op, n, lo, hi, rights))
		return false;
	reduce_take(op, rights);
	mutex_unlock(&f->lock);
	mapdb_lookup_end(op);
	reduce_finish(op, f);
	mapdb_lookup_begin();
	mapdb_frames_lock(f);
	return true;
}

/*
 * What was derived from pieces of one node that stand in a row: reduced at
 * once, when all of them are. Pinned, as is its tree; NULL: none as yet.
 */
struct reduce_row {
	struct mapdb_lineage *l;
	const struct mapdb_sponsor *payer;
	u32 end;
	u32 lo;
	u32 hi;
};

static bool row_goes_on(const struct reduce_row *row,
			const struct mapdb_node *n)
{
	return n->down == row->l && n->frame == row->hi + 1 &&
	       n->start == row->end && mapdb_payer(n) == row->payer;
}

/* Begin a row at @n. It is of no length as yet. */
static void row_begin(struct reduce_row *row, const struct mapdb_node *n,
		      u32 lo)
{
	row->l = n->down;
	if (!row->l)
		return;
	row->payer = mapdb_payer(n);
	row->lo = lo;
	mapdb_lineage_get(row->l);
	refcount_inc(&row->l->frames->refs);
}

/* The tree is locked, and pinned once more. */
static void row_drop(struct reduce_row *row)
{
	if (!row->l)
		return;
	refcount_dec(&row->l->frames->refs);
	mapdb_lineage_put(row->l);
	row->l = NULL;
}

static void row_reduce(struct mapdb_op *op, struct mapdb_walk *w,
		       struct reduce_row *row, u32 rights)
{
	struct mapdb_frames *f;

	if (!row->l)
		return;
	f = row->l->frames;
	mapdb_frames_lock(f);
	reduce_lineage(op, w, row->l, row->lo, row->hi, rights);
	mapdb_lineage_put(row->l);
	row->l = NULL;
	mapdb_frames_unlock(f);
}

static void reduce_range(struct mapdb_op *op, struct mapdb_walk *w,
			 struct mapdb_space *s, u32 start, u32 end, bool self,
			 u32 rights)
{
	struct reduce_row row = {};
	struct mapdb_node *n;
	u32 lo, hi, at = start;
	bool row_start;

	while (at < end && (n = mapdb_lock_at(s, at, end))) {
		struct mapdb_frames *f = mapdb_node_frames(n);
		u32 next = mapdb_node_end(n);

		if (row.l && !row_goes_on(&row, n)) {
			mapdb_frames_unlock(f);
			row_reduce(op, w, &row, rights);
			continue;
		}
		mapdb_overlap(n, at, end, &lo, &hi);
		/* Before @n may go, with the lock. */
		row_start = !row.l;
		if (row_start)
			row_begin(&row, n, lo);
		if (self && !reduce_self(op, n, lo, hi, rights)) {
			if (row_start)
				row_drop(&row);
			mapdb_op_wait(op, f);
			continue;
		}
		row.hi = hi;
		row.end = next;
		mapdb_frames_unlock(f);
		at = next;
		cond_resched();
	}
	row_reduce(op, w, &row, rights);
}

/* Will @n be cut between frames @x and @x + 1? */
static bool crosses(const struct mapdb_node *n, u32 x, u32 rights)
{
	return n->state != MAPDB_PENDING && (n->rights & rights) &&
	       n->frame <= x && mapdb_node_last(n) > x;
}

/*
 * Reserve for the nodes below a lineage that will be cut behind frame @x; what
 * they were derived from contains that frame. The tree is locked, but not all
 * the time.
 */
static int reserve_crossing(struct mapdb_op *op, struct mapdb_walk *w,
			    struct mapdb_lineage *l, u32 x,
			    struct mapdb_sponsor *sp, u32 rights)
{
	struct mapdb_frames *f = l->frames;
	unsigned int steps = 0;
	struct mapdb_node *n;
	int err = 0;

	mapdb_walk_start(w, l, x, x);
	while (!err && (n = mapdb_walk_next(w))) {
		if (crosses(n, x, rights))
			err = mapdb_op_reserve(op, sp, n);
		mapdb_walk_enter(w, n);
		mapdb_op_breathe(op, f, &steps);
	}
	mapdb_walk_stop(w);
	return err;
}

/* As reserve_holes() in revoke.c: what has fewer rights is a node of its own. */
static int reserve_cuts(struct mapdb_op *op, struct mapdb_walk *w,
			struct mapdb_space *s, u32 start, u32 end, bool self,
			u32 rights)
{
	struct mapdb_node *n, *last;
	u32 lo, hi, at = start;
	int err = 0, srcu;

	srcu = mapdb_charge_begin();
	while (!err) {
		struct mapdb_sponsor *sp;
		struct mapdb_lineage *l;
		struct mapdb_frames *f;

		mapdb_op_prepare(op);
		n = at < end ? mapdb_lock_at(s, at, end) : NULL;
		if (!n)
			break;
		f = mapdb_node_frames(n);
		sp = mapdb_payer(n);
		l = n->down;
		last = mapdb_row_last(n, end);
		mapdb_row_overlap(n, last, at, end, &lo, &hi);
		at = mapdb_node_end(last);
		if (self && lo && crosses(n, lo - 1, rights))
			err = mapdb_op_reserve(op, sp, n);
		if (!err && self && crosses(last, hi, rights))
			err = mapdb_op_reserve(op, sp, last);
		if (!err && l) {
			mapdb_lineage_get(l);
			/* The lock may be dropped from here on: @n may go. */
			if (lo)
				err = reserve_crossing(op, w, l, lo - 1, sp,
						       rights);
			if (!err)
				err = reserve_crossing(op, w, l, hi, sp,
						       rights);
			mapdb_lineage_put(l);
		}
		mapdb_frames_unlock(f);
		cond_resched();
	}
	mapdb_charge_end(srcu);
	return err;
}

/**
 * mapdb_reduce() - take rights from what is derived from a range
 * @s: a space; what it loses itself is no event to it
 * @start: first page
 * @pages: how many
 * @self: also from the range itself
 * @rights: of W, X and D
 * @res: out: what was reduced
 *
 * Context: process; may wait for other operations. No locks held.
 * Return: 0; -EDQUOT, -EBUSY: a budget does not allow the nodes that a cut
 * adds, -ENOMEM: nothing was changed.
 */
int mapdb_reduce(struct mapdb_space *s, u32 start, u32 pages, bool self,
		 u32 rights, struct mapdb_unmap_result *res)
{
	struct mapdb_walk *w = mapdb_walk_alloc(GFP_KERNEL);
	struct mapdb_op op;
	int err = 0;

	if (!w)
		return -ENOMEM;
	mapdb_op_init(&op, s);
	mapdb_lookup_begin();
	if (BRUMM_QUOTA)
		err = reserve_cuts(&op, w, s, start, start + pages, self,
				   rights);
	if (!err)
		reduce_range(&op, w, s, start, start + pages, self, rights);
	mapdb_lookup_end(&op);
	*res = op.res;
	mapdb_op_exit(&op);
	mapdb_walk_free(w);
	return err;
}

/* Query */

static void info_set(struct mapdb_info *info, const struct mapdb_node *n)
{
	struct mapdb_sponsor *sp = mapdb_payer(n);

	*info = (struct mapdb_info){
		.start = n->start,
		.pages = n->pages,
		.rights = n->rights,
		.depth = n->depth,
		.root = mapdb_node_is_root(n),
		.first = mapdb_node_is_first(n),
		.sponsor = sp ? sp->id : 0,
	};
}

/*
 * A node that spans several pieces of its parent is met once for each. Count it
 * with the one that has its first frame, as far as the walk is concerned.
 */
static bool met_first(const struct mapdb_walk *w, const struct mapdb_node *n)
{
	return max(n->frame, w->at[0].lo) >= w->at[w->level].lo;
}

/* Count what was derived from @n. Its tree is locked, but not all the time. */
static int count_below(struct mapdb_walk *w, struct mapdb_node *n, u64 *count)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	unsigned int steps = 0;
	int err = 0;

	mapdb_walk_start(w, n->down, n->frame, mapdb_node_last(n));
	while ((n = mapdb_walk_next(w))) {
		*count += n->state != MAPDB_PENDING && met_first(w, n);
		mapdb_walk_enter(w, n);
		if (++steps < MAPDB_BATCH)
			continue;
		steps = 0;
		mutex_unlock(&f->lock);
		cond_resched();
		if (fatal_signal_pending(current))
			err = -EINTR;
		mapdb_frames_lock(f);
		if (err)
			break;
	}
	mapdb_walk_stop(w);
	return err;
}

/**
 * mapdb_query() - what stands at a page
 * @s: the space
 * @page: the page
 * @next: or else the first mapping behind it
 * @count: count the descendants
 * @info: out
 *
 * Return: 0, -ENOENT, -ENOMEM, -EINTR.
 */
int mapdb_query(struct mapdb_space *s, u32 page, bool next, bool count,
		struct mapdb_info *info)
{
	struct mapdb_walk *w = count ? mapdb_walk_alloc(GFP_KERNEL) : NULL;
	struct mapdb_node *n;
	struct mapdb_frames *f;
	int err = -ENOENT;

	if (count && !w)
		return -ENOMEM;
	n = mapdb_lock_at(s, page, next ? U32_MAX : page + 1);
	if (n) {
		f = mapdb_node_frames(n);
		info_set(info, n);
		err = count ? count_below(w, n, &info->descendants) : 0;
		mapdb_frames_unlock(f);
	}
	mapdb_walk_free(w);
	return err;
}
