// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: allocate and derive.
 *
 * Contract: all or nothing, and a charge that does not fit is refused before
 * anything is touched.
 *
 * The usual map has a source of one piece: it is charged and linked in one go,
 * with the source's tree locked. Otherwise it goes through the range piece by
 * piece:
 *
 *	scan	make a node for each piece that the range crosses, unlinked
 *	charge	all of them, once per sponsor
 *	link	each into the tree of its piece and into the target, PENDING
 *	commit	set them LIVE
 *
 * Between scan and link anything may have happened to the source: each piece
 * is looked at again under its lock. Until the commit the nodes are owned, so
 * nobody else can have removed one, and undoing is just unlinking them.
 *
 * All that is one SRCU read section. mapdb_reclaim() waits for those, so that
 * what was charged before a lock cannot show up behind it; and a group is freed
 * only after them, so that the sponsors seen in the scan stay. Within it the
 * map waits for owned nodes at most (REPLACE), never for a whole revoke.
 */
#include "tree.h"

/**
 * struct map_op - a map under way
 * @a: what is asked for
 * @nodes: the new nodes in order of the target, linked by ->next
 * @tail: where the next one goes
 * @tallies: what they cost, by sponsor
 * @busy: tree whose change is to be waited for, pinned
 * @change: count of changes that was seen there
 */
struct map_op {
	const struct mapdb_map_args *a;
	struct mapdb_node *nodes;
	struct mapdb_node **tail;
	struct mapdb_tally *tallies;
	struct mapdb_frames *busy;
	unsigned long change;
};

/* Allocate */

static struct mapdb_frames *frames_alloc(u32 pages, void *priv)
{
	struct mapdb_frames *f = kzalloc(sizeof(*f), MAPDB_GFP);

	if (!f)
		return NULL;
	mutex_init(&f->lock);
	refcount_set(&f->refs, 1);
	mapdb_lineage_init(&f->root, f);
	init_waitqueue_head(&f->wait);
	f->nr = pages;
	f->priv = priv;
	return f;
}

static void node_first(struct mapdb_node *n, struct mapdb_sponsor *sp)
{
	mapdb_set_payer(n, sp);
	n->pays_map = !!sp;
	n->pays_lookup = !!sp;
}

/**
 * mapdb_alloc() - put a root node into a space
 * @s: the space; its group pays
 * @start: first page
 * @pages: how many
 * @priv: the frames; ours from success on
 *
 * Return: 0, -EEXIST, -EDQUOT, -EBUSY, -ENOMEM.
 */
int mapdb_alloc(struct mapdb_space *s, u32 start, u32 pages, void *priv)
{
	struct mapdb_frames *f = frames_alloc(pages, priv);
	struct mapdb_node *n = mapdb_node_alloc(s, MAPDB_GFP);
	struct ledger_counts c;
	int err = -ENOMEM, srcu;

	if (!f || !n)
		goto free;
	n->start = start;
	n->pages = pages;
	n->rights = BRUMM_RIGHTS_ALL;
	node_first(n, s->group);

	srcu = mapdb_charge_begin();
	if (mapdb_payer(n)) {
		mapdb_node_counts(n, &c);
		err = mapdb_charge(mapdb_payer(n), &c);
		if (err)
			goto unlock;
	}
	mapdb_frames_lock(f);
	mapdb_link(n, &f->root);
	down_write(&s->lock);
	err = mapdb_space_insert(s, n) ? 0 : -EEXIST;
	up_write(&s->lock);
	if (err)
		mapdb_unlink(n);
	else if (mapdb_payer(n))
		mapdb_first_add(n);
	mutex_unlock(&f->lock);
	if (err && mapdb_payer(n))
		ledger_uncharge(&mapdb_payer(n)->ledger, &c);
unlock:
	mapdb_charge_end(srcu);
free:
	if (err && n)
		mapdb_node_free(n);
	if (err && f)
		f->priv = NULL;
	if (f)
		mapdb_frames_put(f);
	return err;
}

/* Scan */

bool mapdb_piece_usable(const struct mapdb_node *n)
{
	return n && n->up && mapdb_node_serves(n) && !n->dying;
}

int mapdb_piece_at(struct mapdb_space *s, u32 from, u32 pages,
		   struct mapdb_piece *p)
{
	struct mapdb_node *n = mapdb_lock_at(s, from, from + 1);
	int err = -ENOENT;

	if (!n)
		return err;
	if (mapdb_piece_usable(n)) {
		mapdb_piece_get(n, from, pages, p);
		err = 0;
	}
	mapdb_frames_unlock(mapdb_node_frames(n));
	return err;
}

int mapdb_piece_check(const struct mapdb_map_args *a,
		      const struct mapdb_piece *p)
{
	if (a->rights & ~(u32)p->rights)
		return -EACCES;
	if (!(p->rights & BRUMM_RIGHT_D))
		return -EPERM;
	if (p->depth >= MAPDB_MAX_DEPTH && !(a->flags & BRUMM_MAP_GRANT))
		return -ELOOP;
	return 0;
}

/* Who pays for what comes of the piece; does a subtree of his start here? */
struct mapdb_sponsor *mapdb_sponsor_of(const struct mapdb_map_args *a,
				       const struct mapdb_piece *p,
				       bool *first)
{
	*first = BRUMM_QUOTA;
	if (!BRUMM_QUOTA)
		return NULL;
	if (a->flags & BRUMM_MAP_SPONSOR)
		return a->sponsor;
	if (!p->sponsor)
		return a->target->group;
	*first = false;
	return p->sponsor;
}

static void node_derive(struct mapdb_node *n, const struct mapdb_map_args *a,
			u32 to, const struct mapdb_piece *p)
{
	bool first;

	n->start = to;
	n->frame = p->frame;
	n->pages = p->pages;
	n->rights = a->rights;
	n->depth = p->depth + 1;
	n->deep = mapdb_is_deep(n->depth);
	mapdb_set_payer(n, mapdb_sponsor_of(a, p, &first));
	n->pays_map = !!mapdb_payer(n);
	n->pays_lookup = mapdb_payer(n) && first;
	mapdb_payers_node(a, n);
}

static int tally_add(struct map_op *op, const struct mapdb_node *n)
{
	struct ledger_counts c;

	if (!mapdb_payer(n))
		return 0;
	mapdb_node_counts(n, &c);
	return mapdb_tally_add(&op->tallies, mapdb_payer(n), &c);
}

/*
 * Make the node for a piece, with a lineage for its parent if that has none.
 * What a REPLACE needs must be there before anything is revoked for it.
 */
static struct mapdb_node *node_for(struct map_op *op, u32 to,
				   const struct mapdb_piece *p)
{
	struct mapdb_node *n = mapdb_node_alloc(op->a->source, MAPDB_GFP);

	if (!n)
		return NULL;
	if (!p->down || (op->a->flags & BRUMM_MAP_REPLACE)) {
		n->for_parent = mapdb_lineage_alloc(op->a->source);
		if (!n->for_parent) {
			mapdb_node_free(n);
			return NULL;
		}
	}
	node_derive(n, op->a, to, p);
	n->state = MAPDB_PENDING;
	return n;
}

static int scan(struct map_op *op)
{
	const struct mapdb_map_args *a = op->a;
	u32 done = 0;

	while (done < a->pages) {
		struct mapdb_node *n;
		struct mapdb_piece p;
		int err;

		err = mapdb_piece_at(a->source, a->from + done,
				     a->pages - done, &p);
		if (!err)
			err = mapdb_piece_check(a, &p);
		if (err)
			return err;
		n = node_for(op, a->to + done, &p);
		if (!n)
			return -ENOMEM;
		*op->tail = n;
		op->tail = &n->next;
		err = tally_add(op, n);
		if (err)
			return err;
		done += p.pages;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Link */

/*
 * Does @source still say what it said when @n was made of it? If not, start
 * all over (-EAGAIN).
 */
static int verify(struct map_op *op, const struct mapdb_node *source,
		  const struct mapdb_node *n, u32 from)
{
	const struct mapdb_map_args *a = op->a;
	struct mapdb_piece p;
	bool first;
	int err;

	if (!source || source->start > from)
		return -ENOENT;
	if (source->dying || !mapdb_node_serves(source))
		return -ENOENT;
	mapdb_piece_get(source, from, n->pages, &p);
	err = mapdb_piece_check(a, &p);
	if (err)
		return err;
	if (p.frame != n->frame || p.pages != n->pages ||
	    p.depth + 1 != n->depth ||
	    mapdb_sponsor_of(a, &p, &first) != mapdb_payer(n))
		return -EAGAIN;
	if (mapdb_payer(n) && first != n->pays_lookup)
		return -EAGAIN;
	return 0;
}

static int insert(struct mapdb_space *s, struct mapdb_node *n)
{
	bool fits;

	down_write(&s->lock);
	fits = mapdb_space_insert(s, n);
	up_write(&s->lock);
	return fits ? 0 : -EEXIST;
}

/*
 * Give @source a lineage, if it has none. The hint in the scan may have been
 * wrong, or another node stands there now: then scan again.
 */
static int lineage_for(struct mapdb_node *source, struct mapdb_node *n)
{
	struct mapdb_lineage *l = n->for_parent;

	n->for_parent = NULL;
	if (source->down) {
		mapdb_lineage_free(l);
		return 0;
	}
	if (!l)
		return -EAGAIN;
	mapdb_lineage_init(l, mapdb_node_frames(source));
	source->down = l;
	return 0;
}

/* Link @n below @source, in both trees. -EAGAIN: after mapdb_wait_busy(). */
static int link_below(struct map_op *op, struct mapdb_node *source,
		      struct mapdb_node *n)
{
	struct mapdb_frames *f = mapdb_node_frames(source);
	int err;

	if (source->down && mapdb_being_revoked(source->down, n->frame,
						mapdb_node_last(n))) {
		refcount_inc(&f->refs);
		op->busy = f;
		op->change = f->change;
		return -EAGAIN;
	}
	err = lineage_for(source, n);
	if (err)
		return err;
	mapdb_link(n, source->down);
	err = insert(op->a->target, n);
	if (err) {
		mapdb_unlink(n);
		n->up = NULL;
		n->for_parent = NULL;
	} else if (n->pays_lookup) {
		mapdb_first_add(n);
	}
	return err;
}

static int link_one(struct map_op *op, struct mapdb_node *n)
{
	const struct mapdb_map_args *a = op->a;
	u32 from = a->from + (n->start - a->to);
	struct mapdb_node *source;
	struct mapdb_frames *f;
	int err;

	source = mapdb_lock_at(a->source, from, from + 1);
	if (!source)
		return -ENOENT;
	f = mapdb_node_frames(source);
	err = verify(op, source, n, from);
	if (!err)
		err = link_below(op, source, n);
	mapdb_frames_unlock(f);
	return err;
}

/* Undo link_one(): nobody can have touched the PENDING node. */
static void unlink_one(struct map_op *op, struct mapdb_node *n)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	struct mapdb_space *s = op->a->target;

	refcount_inc(&f->refs);
	mapdb_frames_lock(f);
	down_write(&s->lock);
	rb_erase(&n->in_space, &s->nodes);
	up_write(&s->lock);
	mapdb_unlink(n);
	n->up = NULL;
	n->for_parent = NULL;
	mapdb_frames_changed(f);
	mapdb_frames_unlock(f);
}

static int link_all(struct map_op *op)
{
	struct mapdb_node *n, *undo;
	int err;

	for (n = op->nodes; n; n = n->next) {
		err = link_one(op, n);
		if (err)
			goto undo;
		cond_resched();
	}
	return 0;
undo:
	for (undo = op->nodes; undo != n; undo = undo->next) {
		unlink_one(op, undo);
		cond_resched();
	}
	return err;
}

/* Commit */

/* Set LIVE a run of nodes of one tree. Return: where it ends. */
static struct mapdb_node *commit_run(struct map_op *op, struct mapdb_node *n)
{
	struct mapdb_frames *f = mapdb_node_frames(n);
	struct mapdb_space *s = op->a->target;
	unsigned int i;

	refcount_inc(&f->refs);
	mapdb_frames_lock(f);
	down_write(&s->lock);
	for (i = 0; i < MAPDB_BATCH && n; i++) {
		struct mapdb_node *next = n->next;

		if (mapdb_node_frames(n) != f)
			break;
		n->down = NULL;
		n->state = MAPDB_LIVE;
		n = next;
	}
	up_write(&s->lock);
	mapdb_frames_changed(f);
	mapdb_frames_unlock(f);
	return n;
}

static void commit(struct map_op *op)
{
	struct mapdb_node *n = op->nodes;

	while (n) {
		n = commit_run(op, n);
		cond_resched();
	}
	op->nodes = NULL;
}

/*
 * Link the nodes in the place of what stands in the target range. The loop ends
 * unless somebody else fills the range again and again.
 */
static int replace_all(struct map_op *op)
{
	const struct mapdb_map_args *a = op->a;
	struct mapdb_unmap_result res;
	int err;

	do {
		err = mapdb_unmap(a->target, a->source, a->to, a->pages, true,
				  &res);
		if (!err)
			err = link_all(op);
		/* Who took the place may be waiting for this CPU. */
		if (err == -EEXIST)
			os_give_way();
	} while (err == -EEXIST && !fatal_signal_pending(current));
	return err;
}

/* One try, piece by piece: to the end, or undone. */
static int map_pieces(struct map_op *op)
{
	int err;

	err = scan(op);
	if (!err)
		err = mapdb_tally_charge(op->tallies);
	if (err)
		return err;
	if (op->a->flags & BRUMM_MAP_REPLACE)
		err = replace_all(op);
	else
		err = link_all(op);
	if (err)
		mapdb_tally_uncharge(op->tallies, NULL);
	else
		commit(op);
	return err;
}

/* Is the source one piece, to be mapped where nothing is? */
static bool is_simple(const struct mapdb_map_args *a,
		      const struct mapdb_node *source)
{
	return source->start <= a->from &&
	       mapdb_node_end(source) >= a->from + a->pages &&
	       mapdb_piece_usable(source) && !(a->flags & BRUMM_MAP_REPLACE);
}

static int map_simple_locked(struct map_op *op, struct mapdb_node *source,
			     struct mapdb_node *n)
{
	const struct mapdb_map_args *a = op->a;
	struct ledger_counts c;
	struct mapdb_piece p;
	int err;

	mapdb_piece_get(source, a->from, a->pages, &p);
	err = mapdb_piece_check(a, &p);
	if (err)
		return err;
	node_derive(n, a, a->to, &p);
	if (mapdb_payer(n)) {
		mapdb_node_counts(n, &c);
		err = mapdb_charge(mapdb_payer(n), &c);
		if (err)
			return err;
	}
	err = link_below(op, source, n);
	if (err && mapdb_payer(n))
		ledger_uncharge(&mapdb_payer(n)->ledger, &c);
	return err;
}

/*
 * The usual case. -EXDEV: it is not, -ENOMSG: it is the first from its source,
 * for which a lineage is missing.
 */
static int map_simple(struct map_op *op, struct mapdb_node *n)
{
	const struct mapdb_map_args *a = op->a;
	struct mapdb_node *source;
	struct mapdb_frames *f;
	int err;

	source = mapdb_lock_at(a->source, a->from, a->from + 1);
	if (!source)
		return -EXDEV;
	f = mapdb_node_frames(source);
	if (!is_simple(a, source))
		err = -EXDEV;
	else if (!source->down && !n->for_parent)
		err = -ENOMSG;
	else
		err = map_simple_locked(op, source, n);
	/* From here on it may be gone, if it was linked. */
	mapdb_frames_unlock(f);
	return err;
}

static int map_one(struct map_op *op)
{
	struct mapdb_node *n = mapdb_node_alloc(op->a->source, MAPDB_GFP);
	int err;

	if (!n)
		return -ENOMEM;
	err = map_simple(op, n);
	if (err == -ENOMSG) {
		n->for_parent = mapdb_lineage_alloc(op->a->source);
		err = n->for_parent ? map_simple(op, n) : -ENOMEM;
	}
	if (err) {
		mapdb_lineage_free(n->for_parent);
		mapdb_node_free(n);
	}
	return err;
}

/* One try: to the end, or undone. */
static int map_try(struct map_op *op)
{
	int srcu = mapdb_charge_begin();
	int err = map_one(op);

	if (err == -EXDEV)
		err = map_pieces(op);
	mapdb_charge_end(srcu);
	return err;
}

static void map_op_init(struct map_op *op, const struct mapdb_map_args *a)
{
	*op = (struct map_op){ .a = a };
	op->tail = &op->nodes;
	mapdb_payers_start(a);
}

static void map_op_exit(struct map_op *op)
{
	struct mapdb_node *n;

	for (n = op->nodes; n; n = n->next)
		mapdb_lineage_free(n->for_parent);
	mapdb_free_list(op->nodes);
	mapdb_tally_free(op->tallies);
}

/**
 * mapdb_wait_busy() - between two tries of a map or grant
 * @busy: pinned tree in which something stood in the way; unpinned. NULL:
 *	something had changed, try again at once
 * @change: count of changes that was seen there
 *
 * Return: 0, -EINTR on a fatal signal.
 */
int mapdb_wait_busy(struct mapdb_frames *busy, unsigned long change)
{
	int err = 0;

	if (busy) {
		err = mapdb_frames_wait_killable(busy, change);
		mapdb_frames_put(busy);
	}
	if (!err && fatal_signal_pending(current))
		err = -EINTR;
	cond_resched();
	return err;
}

/**
 * mapdb_map() - derive a range
 * @a: what, from where, to where; ranges lie within their spaces
 *
 * Context: process; may wait for a revoke of the source range. No locks held.
 * Return: 0, or an error of BRUMM_IOC_MAP.
 */
int mapdb_map(const struct mapdb_map_args *a)
{
	struct map_op op;
	int err;

	do {
		map_op_init(&op, a);
		err = map_try(&op);
		map_op_exit(&op);
		if (err == -EAGAIN && mapdb_wait_busy(op.busy, op.change))
			return -EINTR;
	} while (err == -EAGAIN);
	return err;
}
