// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: steps on its trees. See mapdb.h for the structure and
 * the locking; map.c, grant.c, revoke.c and walk.c put the steps together.
 *
 * Contract: nothing here waits for another operation. What changes a tree is
 * called with its mutex held and takes the rwsem of the one space it touches.
 */
#include "tree.h"

/* Lineages: an interval tree by frame number */

#define NODE_FIRST(n)	((n)->frame)
#define NODE_LAST(n)	mapdb_node_last(n)
INTERVAL_TREE_DEFINE(struct mapdb_node, in_lineage, u32, last_below,
		     NODE_FIRST, NODE_LAST, static, it)

void mapdb_lineage_init(struct mapdb_lineage *l, struct mapdb_frames *f)
{
	l->children = RB_ROOT_CACHED;
	l->revokes = RB_ROOT_CACHED;
	l->frames = f;
	l->refs = 1;
}

void mapdb_lineage_get(struct mapdb_lineage *l)
{
	lockdep_assert_held(&l->frames->lock);
	l->refs++;
}

/* The last piece goes after its children; what is left then is empty. */
void mapdb_lineage_put(struct mapdb_lineage *l)
{
	lockdep_assert_held(&l->frames->lock);
	if (--l->refs)
		return;
	WARN_ON_ONCE(!RB_EMPTY_ROOT(&l->children.rb_root));
	mapdb_lineage_free(l);
}

struct mapdb_node *mapdb_lineage_first(struct mapdb_lineage *l, u32 lo, u32 hi)
{
	lockdep_assert_held(&l->frames->lock);
	return it_iter_first(&l->children, lo, hi);
}

struct mapdb_node *mapdb_lineage_next(struct mapdb_node *n, u32 lo, u32 hi)
{
	return it_iter_next(n, lo, hi);
}

/* The first that overlaps lo..hi and sorts behind (frame, id). */
struct mapdb_node *mapdb_lineage_after(struct mapdb_lineage *l, u32 frame,
				       u64 id, u32 lo, u32 hi)
{
	struct rb_node *rb = l->children.rb_root.rb_node;
	struct mapdb_node *after = NULL;

	lockdep_assert_held(&l->frames->lock);
	while (rb) {
		struct mapdb_node *n = rb_entry(rb, struct mapdb_node,
						in_lineage);

		if (n->frame > frame || (n->frame == frame && n->id > id)) {
			after = n;
			rb = rb->rb_left;
		} else {
			rb = rb->rb_right;
		}
	}
	if (!after || after->frame > hi)
		return NULL;
	if (mapdb_node_last(after) >= lo)
		return after;
	return it_iter_next(after, lo, hi);
}

/* Revokes below a lineage: an interval tree as well, for there may be many */

#define REVOKE_FIRST(r)	((r)->lo)
#define REVOKE_LAST(r)	((r)->hi)
INTERVAL_TREE_DEFINE(struct mapdb_revoke, in_lineage, u32, last_below,
		     REVOKE_FIRST, REVOKE_LAST, static __maybe_unused, revoke)

void mapdb_revoke_begin(struct mapdb_lineage *l, struct mapdb_revoke *r)
{
	lockdep_assert_held(&l->frames->lock);
	revoke_insert(r, &l->revokes);
}

/* Maps may be waiting for this. */
void mapdb_revoke_end(struct mapdb_lineage *l, struct mapdb_revoke *r)
{
	revoke_remove(r, &l->revokes);
	mapdb_frames_changed(l->frames);
}

/* Is somebody revoking what was derived from these frames? */
bool mapdb_being_revoked(struct mapdb_lineage *l, u32 lo, u32 hi)
{
	lockdep_assert_held(&l->frames->lock);
	return revoke_iter_first(&l->revokes, lo, hi);
}

/* Frames */

/*
 * Who waits says so, and a revoke gives way to him between two batches: or else
 * it could have the mutex again and again before a waiter has woken up.
 */
void mapdb_frames_lock(struct mapdb_frames *f)
{
	if (mutex_trylock(&f->lock))
		return;
	atomic_inc(&f->waiting);
	mutex_lock(&f->lock);
	atomic_dec(&f->waiting);
}

/* Between two holds of the mutex. */
void mapdb_frames_give_way(struct mapdb_frames *f)
{
	if (atomic_read(&f->waiting))
		os_give_way();
	else
		cond_resched();
}

void mapdb_frames_put(struct mapdb_frames *f)
{
	if (!refcount_dec_and_test(&f->refs))
		return;
	mapdb_free_priv(f->priv);
	mutex_destroy(&f->lock);
	kfree(f);
}

/* Somebody may wait for what just changed. */
void mapdb_frames_changed(struct mapdb_frames *f)
{
	lockdep_assert_held(&f->lock);
	WRITE_ONCE(f->change, f->change + 1);
	if (wq_has_sleeper(&f->wait))
		wake_up_all(&f->wait);
}

/* @change was read with the mutex held, which was dropped since. */
void mapdb_frames_wait(struct mapdb_frames *f, unsigned long change)
{
	wait_event(f->wait, READ_ONCE(f->change) != change);
}

int mapdb_frames_wait_killable(struct mapdb_frames *f, unsigned long change)
{
	if (wait_event_killable(f->wait, READ_ONCE(f->change) != change))
		return -EINTR;
	return 0;
}

/* Spaces: a tree of ranges that do not overlap */

static struct mapdb_node *space_entry(struct rb_node *rb)
{
	return rb_entry(rb, struct mapdb_node, in_space);
}

/* The node at or next behind @page. */
struct mapdb_node *mapdb_find_from(struct mapdb_space *s, u32 page)
{
	struct rb_node *rb = s->nodes.rb_node;
	struct mapdb_node *found = NULL;

	lockdep_assert_held(&s->lock);
	while (rb) {
		struct mapdb_node *n = space_entry(rb);

		if (page < mapdb_node_end(n)) {
			found = n;
			if (page >= n->start)
				break;
			rb = rb->rb_left;
		} else {
			rb = rb->rb_right;
		}
	}
	return found;
}

/* The node at @page. */
struct mapdb_node *mapdb_find(struct mapdb_space *s, u32 page)
{
	struct mapdb_node *n = mapdb_find_from(s, page);

	return n && n->start <= page ? n : NULL;
}

/* False: something stands in the way. */
bool mapdb_space_insert(struct mapdb_space *s, struct mapdb_node *n)
{
	struct rb_node **link = &s->nodes.rb_node, *parent = NULL;

	lockdep_assert_held_write(&s->lock);
	while (*link) {
		struct mapdb_node *at = space_entry(*link);

		parent = *link;
		if (mapdb_node_end(n) <= at->start)
			link = &parent->rb_left;
		else if (n->start >= mapdb_node_end(at))
			link = &parent->rb_right;
		else
			return false;
	}
	rb_link_node(&n->in_space, parent, link);
	rb_insert_color(&n->in_space, &s->nodes);
	n->space = s;
	return true;
}

/* Is @next the piece of the same node that comes after @n in space and frames? */
static bool is_next_piece(const struct mapdb_node *n,
			  const struct mapdb_node *next)
{
	/* Of another tree, @up is all that may be looked at. */
	return next->up == n->up && mapdb_node_serves(next) &&
	       next->down == n->down && next->start == mapdb_node_end(n) &&
	       next->frame == mapdb_node_last(n) + 1 &&
	       mapdb_payer(next) == mapdb_payer(n);
}

/**
 * mapdb_row_last() - how far do pieces of one node stand in a row?
 * @n: the first one, its tree locked
 * @end: page behind what is of interest
 *
 * What was derived across the pieces hangs in the lineage that they share. To
 * who takes it back from all of them, they are one range: or else it would be
 * cut, and be gone through, once for each. Looks at MAPDB_BATCH pieces at most.
 *
 * Return: the last one.
 */
struct mapdb_node *mapdb_row_last(struct mapdb_node *n, u32 end)
{
	struct mapdb_space *s = n->space;
	unsigned int steps = MAPDB_BATCH;
	struct rb_node *rb;

	if (n->down && mapdb_node_end(n) < end) {
		down_read(&s->lock);
		while (--steps && mapdb_node_end(n) < end &&
		       (rb = rb_next(&n->in_space)) &&
		       is_next_piece(n, space_entry(rb)))
			n = space_entry(rb);
		up_read(&s->lock);
	}
	return n;
}

/*
 * The first node in *@page..@end-1 that is not PENDING. After many of those,
 * stop at one and move *@page there: let go of the lock and come again.
 */
static struct mapdb_node *find_settled(struct mapdb_space *s, u32 *page,
				       u32 end)
{
	struct mapdb_node *n = mapdb_find_from(s, *page);
	unsigned int steps = MAPDB_BATCH;

	while (n && n->start < end && n->state == MAPDB_PENDING && steps--) {
		*page = mapdb_node_end(n);
		n = mapdb_find_from(s, *page);
	}
	return n && n->start < end ? n : NULL;
}

/*
 * Find the first node in @page..@end-1 of @s and lock its tree. The space is
 * looked up by its own lock, the tree's comes first in the order: so try, and
 * where it has to be waited for, pin it, lock it, and look again. PENDING nodes
 * and reserved places are passed over: they will be there, if at all, only after
 * this.
 *
 * Return: the node, stable until mapdb_frames_unlock(); NULL: none.
 */
struct mapdb_node *mapdb_lock_at(struct mapdb_space *s, u32 page, u32 end)
{
	struct mapdb_frames *locked = NULL, *f;
	struct mapdb_node *n;

	for (;;) {
		down_read(&s->lock);
		n = find_settled(s, &page, end);
		f = n && n->state != MAPDB_PENDING ? mapdb_node_frames(n) : NULL;
		/* A linked node holds a reference, so there is one to add to. */
		if (f && f != locked)
			refcount_inc(&f->refs);
		if (f && !locked && mutex_trylock(&f->lock))
			locked = f;
		up_read(&s->lock);

		if (f && f == locked)
			return n;
		if (locked)
			mapdb_frames_unlock(locked);
		locked = f;
		if (!n)
			return NULL;
		if (f)
			mapdb_frames_lock(f);
		cond_resched();
	}
}

/* Undo mapdb_lock_at(): unlock and unpin. */
void mapdb_frames_unlock(struct mapdb_frames *f)
{
	mutex_unlock(&f->lock);
	mapdb_frames_put(f);
}

/* Linking */

void mapdb_link(struct mapdb_node *n, struct mapdb_lineage *up)
{
	struct mapdb_frames *f = up->frames;

	lockdep_assert_held(&f->lock);
	n->id = ++f->next_id;
	n->up = up;
	it_insert(n, &up->children);
	if (!f->nr_nodes++)
		refcount_inc(&f->refs);
}

/* Out of its lineage and its sponsor's list; the caller drops ->down. */
void mapdb_unlink(struct mapdb_node *n)
{
	struct mapdb_frames *f = mapdb_node_frames(n);

	lockdep_assert_held(&f->lock);
	if (mapdb_node_is_first(n))
		mapdb_first_del(n);
	it_remove(n, &n->up->children);
	/* Never the last reference: the caller pins what it has locked. */
	if (!--f->nr_nodes)
		refcount_dec(&f->refs);
}

/* Cuts */

/* Pay for a node that a cut has added. */
static void pay(struct mapdb_op *op, struct mapdb_node *n, bool map,
		bool lookup)
{
	struct ledger_counts c = mapdb_counts_of(n->depth, 1, lookup, 0);

	n->pays_map = map;
	n->pays_lookup = lookup;
	if (map)
		mapdb_op_pay(op, mapdb_payer(n), &c);
}

/* Cut @n in two at @frame. Return: the right piece, a spare node. */
static struct mapdb_node *split(struct mapdb_op *op, struct mapdb_node *n,
				u32 frame)
{
	struct mapdb_node *r = op->spare;
	u32 left = frame - n->frame;

	lockdep_assert_held_write(&n->space->lock);
	op->spare = r->next;
	op->nr_spare--;

	r->start = n->start + left;
	r->frame = frame;
	r->pages = n->pages - left;
	mapdb_set_payer(r, mapdb_payer(n));
	r->rights = n->rights;
	r->depth = n->depth;
	r->deep = n->deep;
	r->state = n->state;
	r->dying = n->dying;
	r->down = n->down;
	if (r->down)
		mapdb_lineage_get(r->down);

	n->pages = left;
	it_augment.propagate(&n->in_lineage, NULL);
	mapdb_link(r, n->up);
	mapdb_space_insert(n->space, r);

	if (mapdb_node_is_first(n))
		mapdb_first_split(r, n);
	return r;
}

/**
 * mapdb_cut() - make a node of the part of another within a range of frames
 * @op: supplies nodes and credit
 * @n: LIVE, overlaps @lo..@hi
 * @lo: first frame
 * @hi: last frame
 * @leave: the part is going to be removed: the rest keeps what @n pays, and
 *	only a second rest pays anew
 *
 * Context: n's tree is locked; takes the rwsem of its space.
 * Return: the part; NULL: not enough spare nodes, op->starved is set.
 */
struct mapdb_node *mapdb_cut(struct mapdb_op *op, struct mapdb_node *n, u32 lo,
			     u32 hi, bool leave)
{
	bool map = n->pays_map, lookup = n->pays_lookup;
	struct mapdb_node *part = n, *right = NULL;
	bool left = n->frame < lo, rest = mapdb_node_last(n) > hi;

	lockdep_assert_held(&mapdb_node_frames(n)->lock);
	if (!left && !rest)
		return n;
	if (op->nr_spare < left + rest) {
		op->starved = true;
		return NULL;
	}
	down_write(&n->space->lock);
	if (left)
		part = split(op, n, lo);
	if (rest)
		right = split(op, part, hi + 1);
	up_write(&n->space->lock);

	if (!leave) {
		if (left)
			pay(op, part, map, lookup);
		if (rest)
			pay(op, right, map, lookup);
		return part;
	}
	part->pays_map = 0;
	part->pays_lookup = 0;
	if (left && rest) {
		pay(op, right, map, lookup);
	} else if (rest) {
		right->pays_map = map;
		right->pays_lookup = lookup;
	}
	return part;
}
