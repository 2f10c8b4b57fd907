// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: steps on its trees. See mapdb.h for the structure and
 * the locking; map.c, grant.c, revoke.c and walk.c put the steps together.
 *
 * Contract: nothing here waits for another operation. What changes a tree is
 * called with its mutex held and takes the rwsem of the one space it touches.
 */
#include "tree.h"

static struct kmem_cache *node_cache;

int mapdb_init(void)
{
	BUILD_BUG_ON(sizeof(struct mapdb_node) > 128);

	node_cache = kmem_cache_create("brumm_node", sizeof(struct mapdb_node),
				       0, SLAB_ACCOUNT, NULL);
	return node_cache ? 0 : -ENOMEM;
}

void mapdb_exit(void)
{
	kmem_cache_destroy(node_cache);
}

void mapdb_space_init(struct mapdb_space *s, struct mapdb_sponsor *group)
{
	init_rwsem(&s->lock);
	s->nodes = RB_ROOT;
	s->group = group;
}

/* Nodes */

struct mapdb_node *mapdb_node_alloc(gfp_t gfp)
{
	struct mapdb_node *n = kmem_cache_zalloc(node_cache, gfp);

	if (n)
		mapdb_first_init(n);
	return n;
}

void mapdb_node_free(struct mapdb_node *n)
{
	kmem_cache_free(node_cache, n);
}

/* Free what hangs together by ->next. */
void mapdb_free_list(struct mapdb_node *n)
{
	while (n) {
		struct mapdb_node *next = n->next;

		mapdb_node_free(n);
		n = next;
	}
}

/* Lineages: an interval tree by frame number */

#define NODE_FIRST(n)	((n)->frame)
#define NODE_LAST(n)	mapdb_node_last(n)
INTERVAL_TREE_DEFINE(struct mapdb_node, in_lineage, u32, last_below,
		     NODE_FIRST, NODE_LAST, static, it)

struct mapdb_lineage *mapdb_lineage_alloc(void)
{
	return kmalloc(sizeof(struct mapdb_lineage), MAPDB_GFP);
}

void mapdb_lineage_init(struct mapdb_lineage *l, struct mapdb_frames *f)
{
	l->children = RB_ROOT_CACHED;
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
	kfree(l);
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
 * looked up by its own lock, the tree's comes first in the order: so look, pin,
 * lock, and look again. PENDING nodes and reserved places are passed over: they
 * will be there, if at all, only after this.
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

/* What is charged for a node now. */
void mapdb_node_counts(const struct mapdb_node *n, struct ledger_counts *c)
{
	c->n[LEDGER_LOOKUP] = n->pays_lookup;
	c->n[LEDGER_MAP] = n->pays_map;
	c->n[LEDGER_PT] = mapdb_payer(n) ? n->pages : 0;
}

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
 * somebody who takes back what is his cannot be told that he may not.
 */
void mapdb_op_refill(struct mapdb_op *op)
{
	while (op->nr_spare < MAPDB_SPARE) {
		struct mapdb_node *n;

		n = mapdb_node_alloc(GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
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
 * at once, while @n keeps its sponsor from going; then the charge does.
 *
 * Return: 0, -EDQUOT, -EBUSY.
 */
int mapdb_op_reserve(struct mapdb_op *op, struct mapdb_sponsor *sp,
		     const struct mapdb_node *n)
{
	struct ledger_counts c = {};
	struct mapdb_tally *t;
	int err;

	if (!sp || !n->pays_map)
		return 0;
	t = tally_find(op->credit, mapdb_payer(n));
	/* There is a spare one for the usual case of one sponsor. */
	if (!t && !op->spare_tally)
		op->spare_tally = kzalloc(sizeof(*t), GFP_NOWAIT);
	if (!t && !op->spare_tally)
		return 0;
	c.n[LEDGER_MAP] = 1;
	c.n[LEDGER_LOOKUP] = n->pays_lookup;
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

/* Pay for a node that a cut has added. */
static void pay(struct mapdb_op *op, struct mapdb_node *n, bool map,
		bool lookup)
{
	struct ledger_counts c = {};

	n->pays_map = map;
	n->pays_lookup = lookup;
	c.n[LEDGER_MAP] = map;
	c.n[LEDGER_LOOKUP] = lookup;
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

/* Batches */

static int by_place(const void *a, const void *b)
{
	const struct mapdb_node *x = *(const struct mapdb_node **)a;
	const struct mapdb_node *y = *(const struct mapdb_node **)b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Neighbours together, so that they are zapped together and each space is
 * locked once. Most batches come in order as they are.
 */
void mapdb_batch_sort(struct mapdb_op *op)
{
	unsigned int i;

	for (i = 1; i < op->nr; i++) {
		if (by_place(&op->batch[i - 1], &op->batch[i]) > 0)
			break;
	}
	if (i < op->nr)
		sort(op->batch, op->nr, sizeof(op->batch[0]), by_place, NULL);
}

/*
 * Take or give up the nodes of the batch, and take rights from them. Once the
 * rwsem was held for writing, no fault that saw them before is under way.
 */
void mapdb_batch_state(struct mapdb_op *op, enum mapdb_state state, u32 take)
{
	struct mapdb_space *s = NULL;
	unsigned int i;

	for (i = 0; i < op->nr; i++) {
		struct mapdb_node *n = op->batch[i];

		lockdep_assert_held(&mapdb_node_frames(n)->lock);
		if (n->space != s) {
			if (s)
				up_write(&s->lock);
			s = n->space;
			down_write(&s->lock);
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
		u32 end = mapdb_node_end(n);

		for (run = i + 1; run < op->nr; run++) {
			if (op->batch[run]->space != n->space ||
			    op->batch[run]->start != end)
				break;
			end = mapdb_node_end(op->batch[run]);
		}
		mapdb_zap(n->space, n->start, end - n->start);
	}
	mapdb_zap_end(op);
}

/* Free the batch, whose nodes are unlinked. */
void mapdb_batch_free(struct mapdb_op *op)
{
	if (op->nr)
		kmem_cache_free_bulk(node_cache, op->nr, (void **)op->batch);
	op->nr = 0;
}
