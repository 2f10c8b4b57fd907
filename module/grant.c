// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: grant, the move of a mapping to another place.
 *
 * Contract: all or nothing. The node itself moves: it stays where it is in the
 * derivation tree, with its depth, its sponsor and all that was derived from
 * it. Where the range ends within a node, it is cut out, and the rest stays.
 *
 *	scan	make a place for each piece that the range crosses
 *	charge	for the nodes that cuts add, and at a new sponsor
 *	place	reserve the places in the target
 *	take	cut out the nodes and own them (ZAPPING)
 *	zap	the source range
 *	commit	put each node in its place, LIVE
 *
 * As a map, it is one SRCU read section, see map.c.
 */
#include "tree.h"

/**
 * struct grant - a grant under way
 * @a: what is asked for
 * @op: spare nodes, and the credit
 * @places: reserved places in order of the target, linked by ->next. A place
 *	says in ->sponsor and ->pays_lookup who is to pay, and whether that is
 *	somebody new.
 * @busy: tree whose change is to be waited for, pinned
 * @change: count of changes that was seen there
 */
struct grant {
	const struct mapdb_map_args *a;
	struct mapdb_op *op;
	struct mapdb_node *places;
	struct mapdb_frames *busy;
	unsigned long change;
};

/* Scan */

static struct mapdb_node *place_for(const struct mapdb_map_args *a, u32 to,
				    const struct mapdb_piece *p)
{
	struct mapdb_node *place = mapdb_node_alloc(a->source, MAPDB_GFP);
	bool first;

	if (!place)
		return NULL;
	place->start = to;
	place->frame = p->frame;
	place->pages = p->pages;
	place->rights = a->rights;
	place->depth = p->depth;
	place->state = MAPDB_PENDING;
	mapdb_set_payer(place, mapdb_sponsor_of(a, p, &first));
	place->pays_lookup = first && (mapdb_payer(place) || p->sponsor);
	mapdb_payers_node(a, place);
	return place;
}

/* What a new sponsor is charged for the node that comes to @place. */
static struct ledger_counts place_counts(const struct mapdb_node *place)
{
	return mapdb_counts_of(place->depth, 1, true, place->pages);
}

static int place_tally(struct grant *g, const struct mapdb_node *place,
		       const struct mapdb_piece *p)
{
	struct ledger_counts c;
	int err = 0;

	if (p->cuts && p->pays_map) {
		c = mapdb_counts_of(p->depth, p->cuts, p->pays_lookup, 0);
		err = mapdb_tally_add(&g->op->credit, p->sponsor, &c);
	}
	if (!err && place->pays_lookup && mapdb_payer(place)) {
		c = place_counts(place);
		err = mapdb_tally_add(&g->op->credit, mapdb_payer(place), &c);
	}
	return err;
}

/*
 * What was derived from the node follows it unchanged. So it must not be left
 * with more rights than its parent, nor at a sponsor whose first node is gone
 * to another: a reclaim would not find it.
 */
static int children_check(const struct mapdb_map_args *a,
			  const struct mapdb_node *n,
			  const struct mapdb_piece *p)
{
	bool first;

	if (!n->down)
		return 0;
	if (a->rights == n->rights &&
	    (!mapdb_payer(n) ||
	     mapdb_sponsor_of(a, p, &first) == mapdb_payer(n)))
		return 0;
	if (mapdb_lineage_first(n->down, p->frame, p->frame + p->pages - 1))
		return -EINVAL;
	return 0;
}

/* As mapdb_piece_at(), and with the tree locked all checks at once. */
static int piece_check_at(const struct mapdb_map_args *a, u32 done,
			  struct mapdb_piece *p)
{
	u32 from = a->from + done;
	struct mapdb_node *n = mapdb_lock_at(a->source, from, from + 1);
	int err = -ENOENT;

	if (!n)
		return err;
	if (mapdb_piece_usable(n)) {
		mapdb_piece_get(n, from, a->pages - done, p);
		err = mapdb_piece_check(a, p);
		if (!err)
			err = children_check(a, n, p);
	}
	mapdb_frames_unlock(mapdb_node_frames(n));
	return err;
}

static int scan(struct grant *g)
{
	const struct mapdb_map_args *a = g->a;
	struct mapdb_node **tail = &g->places;
	u32 done = 0;

	while (done < a->pages) {
		struct mapdb_node *place;
		struct mapdb_piece p;
		int err;

		err = piece_check_at(a, done, &p);
		if (err)
			return err;
		place = place_for(a, a->to + done, &p);
		if (!place)
			return -ENOMEM;
		*tail = place;
		tail = &place->next;
		err = place_tally(g, place, &p);
		if (err)
			return err;
		done += p.pages;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Place */

static void unplace(struct grant *g, struct mapdb_node *end)
{
	struct mapdb_space *s = g->a->target;
	struct mapdb_node *place;

	for (place = g->places; place != end; place = place->next) {
		down_write(&s->lock);
		rb_erase(&place->in_space, &s->nodes);
		up_write(&s->lock);
		cond_resched();
	}
}

static int place_all(struct grant *g)
{
	struct mapdb_space *s = g->a->target;
	struct mapdb_node *place;
	bool fits;

	for (place = g->places; place; place = place->next) {
		down_write(&s->lock);
		fits = mapdb_space_insert(s, place);
		up_write(&s->lock);
		if (!fits) {
			unplace(g, place);
			return -EEXIST;
		}
		cond_resched();
	}
	return 0;
}

/* As replace_all() in map.c. */
static int place_or_replace(struct grant *g)
{
	const struct mapdb_map_args *a = g->a;
	struct mapdb_unmap_result res;
	int err;

	if (!(a->flags & BRUMM_MAP_REPLACE))
		return place_all(g);
	do {
		err = mapdb_unmap(a->target, a->source, a->to, a->pages, true,
				  &res);
		if (!err)
			err = place_all(g);
		/* Who took the place may be waiting for this CPU. */
		if (err == -EEXIST)
			os_give_way();
	} while (err == -EEXIST && !fatal_signal_pending(current));
	return err;
}

/* Take */

/* As verify() in map.c: does @n still say what it said? */
static int verify(struct grant *g, const struct mapdb_node *n,
		  const struct mapdb_node *place, u32 from)
{
	const struct mapdb_map_args *a = g->a;
	struct mapdb_piece p;
	bool first;
	int err;

	if (n->start > from || n->dying || n->state == MAPDB_ZAPPING)
		return -ENOENT;
	mapdb_piece_get(n, from, place->pages, &p);
	err = mapdb_piece_check(a, &p);
	if (err)
		return err;
	if (p.frame != place->frame || p.pages != place->pages ||
	    p.depth != place->depth ||
	    mapdb_sponsor_of(a, &p, &first) != mapdb_payer(place) ||
	    (first && (mapdb_payer(place) || p.sponsor)) != place->pays_lookup)
		return -EAGAIN;
	return children_check(a, n, &p);
}

static int take_locked(struct grant *g, struct mapdb_node *n,
		       struct mapdb_node *place, u32 from)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	int err = verify(g, n, place, from);

	if (err)
		return err;
	if (n->state != MAPDB_LIVE) {
		refcount_inc(&f->refs);
		g->busy = f;
		g->change = f->change;
		return -EAGAIN;
	}
	n = mapdb_cut(g->op, n, place->frame, mapdb_node_last(place), false);
	if (!n)
		return -EAGAIN;
	down_write(&n->space->lock);
	n->state = MAPDB_ZAPPING;
	up_write(&n->space->lock);
	place->moving = n;
	return 0;
}

/* With @look, only see whether it could be taken. */
static int take_one(struct grant *g, struct mapdb_node *place, bool look)
{
	u32 from = g->a->from + (place->start - g->a->to);
	struct mapdb_frames *f;
	struct mapdb_node *n;
	int err;

	if (g->op->nr_spare < 2)
		mapdb_op_refill(g->op);
	n = mapdb_lock_at(g->a->source, from, from + 1);
	if (!n)
		return -ENOENT;
	f = mapdb_node_frames(n);
	if (look)
		err = verify(g, n, place, from);
	else
		err = take_locked(g, n, place, from);
	mapdb_frames_unlock(f);
	return err;
}

/* Give back what take_one() has taken. */
static void untake(struct mapdb_node *place)
{
	struct mapdb_node *n = place->moving;
	struct mapdb_frames *f = mapdb_node_frames(n);

	refcount_inc(&f->refs);
	mapdb_frames_lock(f);
	down_write(&n->space->lock);
	n->state = MAPDB_LIVE;
	up_write(&n->space->lock);
	mapdb_frames_changed(f);
	mapdb_frames_unlock(f);
}

/*
 * What REPLACE has revoked may have been a part of the source: find out before
 * the first node is cut. Cuts stay, if another takes away a part later on.
 */
static int look_at_all(struct grant *g)
{
	struct mapdb_node *place;
	int err = 0;

	for (place = g->places; place && !err; place = place->next) {
		err = take_one(g, place, true);
		cond_resched();
	}
	return err;
}

static int take_all(struct grant *g)
{
	struct mapdb_node *place, *undo;
	int err;

	if (g->a->flags & BRUMM_MAP_REPLACE) {
		err = look_at_all(g);
		if (err)
			return err;
	}
	for (place = g->places; place; place = place->next) {
		err = take_one(g, place, false);
		if (err)
			goto undo;
		cond_resched();
	}
	return 0;
undo:
	for (undo = g->places; undo != place; undo = undo->next) {
		untake(undo);
		cond_resched();
	}
	return err;
}

/* Commit */

/* Somebody else pays for @n from now on. */
static void change_sponsor(struct grant *g, struct mapdb_node *n,
			   const struct mapdb_node *place)
{
	struct mapdb_sponsor *old = mapdb_payer(n);
	struct ledger_counts was, c;

	mapdb_node_counts(n, &was);
	if (mapdb_node_is_first(n))
		mapdb_first_del(n);
	mapdb_set_payer(n, mapdb_payer(place));
	n->pays_map = !!mapdb_payer(n);
	n->pays_lookup = !!mapdb_payer(n);
	if (mapdb_payer(n)) {
		c = place_counts(place);
		mapdb_op_pay(g->op, mapdb_payer(n), &c);
		mapdb_first_add(n);
	}
	if (old)
		ledger_uncharge(&old->ledger, &was);
}

static void commit_one(struct grant *g, struct mapdb_node *place)
{
	struct mapdb_space *from = g->a->source, *to = g->a->target;
	struct mapdb_node *n = place->moving;
	struct mapdb_frames *f = mapdb_node_frames(n);

	refcount_inc(&f->refs);
	mapdb_frames_lock(f);
	down_write(&from->lock);
	rb_erase(&n->in_space, &from->nodes);
	up_write(&from->lock);

	n->start = place->start;
	n->space = to;
	n->rights = place->rights;
	if (place->pays_lookup)
		change_sponsor(g, n, place);

	down_write(&to->lock);
	rb_replace_node(&place->in_space, &n->in_space, &to->nodes);
	n->state = MAPDB_LIVE;
	up_write(&to->lock);
	mapdb_frames_changed(f);
	mapdb_frames_unlock(f);
}

static void commit(struct grant *g)
{
	struct mapdb_node *place;

	mapdb_zap(g->a->source, g->a->from, g->a->pages);
	for (place = g->places; place; place = place->next) {
		commit_one(g, place);
		cond_resched();
	}
}

/* One try: to the end, or undone. */
static int grant_try(struct grant *g)
{
	int err, srcu;

	srcu = mapdb_charge_begin();
	err = scan(g);
	if (err) {
		mapdb_tally_free(g->op->credit);
		g->op->credit = NULL;
	} else {
		err = mapdb_op_charge(g->op);
	}
	if (!err) {
		err = place_or_replace(g);
		if (!err) {
			err = take_all(g);
			if (err)
				unplace(g, NULL);
			else
				commit(g);
		}
		mapdb_op_settle(g->op);
	}
	mapdb_charge_end(srcu);
	return err;
}

/**
 * mapdb_grant() - move a range
 * @a: what, from where, to where; ranges lie within their spaces
 *
 * Context: process; may wait for other operations. No locks held.
 * Return: 0, or an error of BRUMM_IOC_MAP.
 */
int mapdb_grant(const struct mapdb_map_args *a)
{
	struct mapdb_op *op = kmalloc(sizeof(*op), GFP_KERNEL);
	struct grant g;
	int err;

	if (!op)
		return -ENOMEM;
	mapdb_op_init(op, a->source);
	do {
		g = (struct grant){ .a = a, .op = op };
		mapdb_payers_start(a);
		err = grant_try(&g);
		mapdb_free_list(g.places);
		if (err == -EAGAIN && mapdb_wait_busy(g.busy, g.change))
			err = -EINTR;
	} while (err == -EAGAIN);
	mapdb_op_exit(op);
	kfree(op);
	return err;
}
