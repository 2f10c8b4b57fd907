// SPDX-License-Identifier: GPL-2.0
#include "check.h"

/* Nodes and lineages that were met, sorted by address. */
struct set {
	void **item;
	size_t nr, max;
};

struct walk {
	struct set nodes;		/* of all spaces */
	struct set frames;
	struct set lineages;
	u64 nr_linked;			/* nodes found from lineages */
};

static void set_add(struct set *s, void *item)
{
	if (s->nr == s->max) {
		s->max = s->max ? 2 * s->max : 64;
		s->item = realloc(s->item, s->max * sizeof(*s->item));
		SHIM_CHECK(s->item, "out of memory");
	}
	s->item[s->nr++] = item;
}

static int by_address(const void *a, const void *b)
{
	const void *x = *(void *const *)a, *y = *(void *const *)b;

	return x < y ? -1 : x > y;
}

/* Sort, and drop what is in it twice. */
static void set_sort(struct set *s)
{
	size_t i, n = 0;

	if (!s->nr)
		return;
	qsort(s->item, s->nr, sizeof(*s->item), by_address);
	for (i = 0; i < s->nr; i++)
		if (!n || s->item[n - 1] != s->item[i])
			s->item[n++] = s->item[i];
	s->nr = n;
}

static bool set_has(const struct set *s, const void *item)
{
	return s->nr && bsearch(&item, s->item, s->nr, sizeof(*s->item),
				by_address);
}

/* Red-black: returns the black height. */
static int check_colors(const struct rb_node *rb, const struct rb_node *parent)
{
	int left, right;

	if (!rb)
		return 1;
	SHIM_CHECK(rb_parent(rb) == parent, "rbtree: wrong parent");
	SHIM_CHECK(rb_is_black(rb) || !parent || rb_is_black(parent),
		   "rbtree: red below red");
	left = check_colors(rb->rb_left, rb);
	right = check_colors(rb->rb_right, rb);
	SHIM_CHECK(left == right, "rbtree: out of balance");
	return left + rb_is_black(rb);
}

static void check_node(const struct mapdb_node *n, const struct window *w)
{
	const struct mapdb_frames *f;

	SHIM_CHECK(n->pages && n->start + n->pages <= w->pages,
		   "node %u+%u in a window of %u", n->start, n->pages, w->pages);
	SHIM_CHECK(n->space == &w->space, "node in a foreign space");
	SHIM_CHECK(n->up, "a reserved place is left");
	SHIM_CHECK(n->state == MAPDB_LIVE && !n->dying,
		   "node %d:%u is left in state %d, dying %d", w->index,
		   n->start, n->state, n->dying);
	f = mapdb_node_frames(n);
	SHIM_CHECK(n->frame + n->pages <= f->nr, "frames %u+%u of %u", n->frame,
		   n->pages, f->nr);
	SHIM_CHECK(n->depth <= MAPDB_MAX_DEPTH, "depth %u", n->depth);
	SHIM_CHECK(mapdb_node_is_root(n) == !n->depth, "a root of depth %u",
		   n->depth);
	SHIM_CHECK((n->rights & BRUMM_RIGHT_R) &&
		   !(n->rights & ~BRUMM_RIGHTS_ALL), "rights %#x", n->rights);
	SHIM_CHECK(n->pays_map == !!n->sponsor, "who pays for node %d:%u?",
		   w->index, n->start);
	SHIM_CHECK(n->pays_lookup == mapdb_node_is_first(n),
		   "node %d:%u: first and its lookup differ", w->index, n->start);
	SHIM_CHECK(!mapdb_node_is_first(n) || n->sponsor, "first of nobody");
}

static void check_space(struct window *w, struct walk *k)
{
	struct rb_node *rb;
	u32 end = 0;

	check_colors(w->space.nodes.rb_node, NULL);
	for (rb = rb_first(&w->space.nodes); rb; rb = rb_next(rb)) {
		struct mapdb_node *n = rb_entry(rb, struct mapdb_node, in_space);

		SHIM_CHECK(n->start >= end, "nodes of window %d overlap at %u",
			   w->index, n->start);
		end = mapdb_node_end(n);
		check_node(n, w);
		set_add(&k->nodes, n);
		set_add(&k->frames, mapdb_node_frames(n));
		if (n->down)
			set_add(&k->lineages, n->down);
	}
}

/* Returns the greatest last frame in the subtree. */
static u32 check_augment(const struct rb_node *rb)
{
	const struct mapdb_node *n;
	u32 last;

	if (!rb)
		return 0;
	n = rb_entry(rb, struct mapdb_node, in_lineage);
	last = max(mapdb_node_last(n), max(check_augment(rb->rb_left),
					   check_augment(rb->rb_right)));
	SHIM_CHECK(n->last_below == last, "last_below is %u, not %u",
		   n->last_below, last);
	return last;
}

static u64 check_lineage(struct mapdb_lineage *l, const struct walk *k)
{
	const struct mapdb_node *last = NULL;
	struct rb_node *rb;
	u64 nr = 0;

	check_colors(l->children.rb_root.rb_node, NULL);
	check_augment(l->children.rb_root.rb_node);
	SHIM_CHECK(l->children.rb_leftmost == rb_first(&l->children.rb_root),
		   "lineage: wrong leftmost");
	for (rb = rb_first(&l->children.rb_root); rb; rb = rb_next(rb)) {
		struct mapdb_node *n = rb_entry(rb, struct mapdb_node,
						in_lineage);

		SHIM_CHECK(n->up == l, "node in a foreign lineage");
		SHIM_CHECK(set_has(&k->nodes, n), "node in no space");
		SHIM_CHECK(!last || last->frame < n->frame ||
			   (last->frame == n->frame && last->id < n->id),
			   "lineage out of order");
		last = n;
		nr++;
	}
	return nr;
}

static void check_frames(struct mapdb_frames *f, struct walk *k)
{
	u64 nodes = 0;
	size_t i;

	k->nr_linked += check_lineage(&f->root, k);
	SHIM_CHECK(refcount_read(&f->refs) == 1, "frames with %u references",
		   refcount_read(&f->refs));
	SHIM_CHECK(!wq_has_sleeper(&f->wait), "a waiter is left");
	SHIM_CHECK(f->root.refs == 1, "root lineage with %u references",
		   f->root.refs);
	for (i = 0; i < k->nodes.nr; i++)
		nodes += mapdb_node_frames(k->nodes.item[i]) == f;
	SHIM_CHECK(f->nr_nodes == nodes, "nr_nodes is %lu, not %llu",
		   f->nr_nodes, nodes);
}

static void check_lineage_refs(struct mapdb_lineage *l, const struct walk *k)
{
	u64 refs = 0;
	size_t i;

	for (i = 0; i < k->nodes.nr; i++) {
		struct mapdb_node *n = k->nodes.item[i];

		if (n->down != l)
			continue;
		refs++;
		SHIM_CHECK(mapdb_node_frames(n) == l->frames,
			   "lineage of another tree");
	}
	SHIM_CHECK(RB_EMPTY_ROOT(&l->revokes.rb_root), "a revoke is left");
	SHIM_CHECK(l->refs == refs, "lineage with %u references, not %llu",
		   l->refs, refs);
}

static void check_sponsor(struct mapdb_sponsor *sp, const struct walk *k)
{
	struct ledger_counts sum = {}, c;
	struct ledger_state s;
	struct mapdb_node *n;
	u64 first = 0, listed = 0;
	size_t i;
	int g, kind;

	list_for_each_entry(n, &sp->first, first) {
		SHIM_CHECK(set_has(&k->nodes, n), "first node in no space");
		SHIM_CHECK(n->sponsor == sp, "first node of another");
		listed++;
	}
	for (i = 0; i < k->nodes.nr; i++) {
		n = k->nodes.item[i];
		first += n->sponsor == sp && mapdb_node_is_first(n);
		for (g = world_group_index(n->sponsor); g >= 0;
		     g = world->group[g].parent) {
			if (world_sponsor(g) != sp)
				continue;
			mapdb_node_counts(n, &c);
			ledger_counts_add(&sum, &c);
		}
	}
	SHIM_CHECK(listed == first, "%llu first nodes, %llu in the list", first,
		   listed);
	ledger_get_state(&sp->ledger, &s);
	for (kind = 0; kind < LEDGER_KINDS; kind++)
		SHIM_CHECK(s.count.n[kind] == sum.n[kind],
			   "group %d is charged %llu of kind %d, not %llu",
			   world_group_index(sp), s.count.n[kind], kind,
			   sum.n[kind]);
	SHIM_CHECK(s.usage == ledger_cost(&s.prices, &s.count), "wrong usage");
}

/*
 * Nothing is left, or lost. Slabs of nodes have one of them, or are kept for the
 * next: one a window, and one of those who act for none.
 */
static void check_memory(const struct walk *k)
{
	long slabs = shim_alloc_cached();
	long other = shim_alloc_live() - world->allocated - slabs;
	/* A lineage takes as much as a node. */
	long nodes = (long)(k->nodes.nr + k->lineages.nr);

#ifdef MAPDB_SLAB_NODES
	SHIM_CHECK(slabs * MAPDB_SLAB_NODES == nodes,
		   "%ld slabs for %ld nodes and lineages", slabs, nodes);
#else
	SHIM_CHECK(slabs <= nodes + world->nr_windows + 1,
		   "%ld slabs for %ld nodes and lineages", slabs, nodes);
#endif
	SHIM_CHECK(other == (long)k->frames.nr,
		   "%ld allocations for %zu frames", other, k->frames.nr);
}

void check_structures(void)
{
	struct walk k = {};
	size_t i;
	int j;

	for (j = 0; j < world->nr_windows; j++)
		check_space(&world->window[j], &k);
	set_sort(&k.nodes);
	set_sort(&k.frames);
	set_sort(&k.lineages);
	for (i = 0; i < k.frames.nr; i++)
		check_frames(k.frames.item[i], &k);
	for (i = 0; i < k.lineages.nr; i++) {
		k.nr_linked += check_lineage(k.lineages.item[i], &k);
		check_lineage_refs(k.lineages.item[i], &k);
	}
	SHIM_CHECK(k.nr_linked == k.nodes.nr,
		   "%llu nodes in lineages, %zu in spaces", k.nr_linked,
		   k.nodes.nr);
	for (j = 0; j < world->nr_groups; j++)
		check_sponsor(world_sponsor(j), &k);
	SHIM_CHECK(world->nr_objects == k.frames.nr,
		   "%u objects, %zu of them mapped", world->nr_objects,
		   k.frames.nr);
	check_memory(&k);
	free(k.nodes.item);
	free(k.frames.item);
	free(k.lineages.item);
}

/* Against the model */

static struct mapdb_node *real_node(int w, u32 p)
{
	struct mapdb_node *n;

	down_read(&world_space(w)->lock);
	n = mapdb_find(world_space(w), p);
	up_read(&world_space(w)->lock);
	return n;
}

static u32 node_object(const struct mapdb_node *n)
{
	return ((struct object *)mapdb_node_frames(n)->priv)->id;
}

static void check_parent(const struct model *m, const struct mpage *x,
			 const struct mapdb_node *n, int w, u32 p)
{
	const struct mapdb_node *up = real_node(x->pw, x->pp);

	SHIM_CHECK(m->page[x->pw][x->pp].used && up,
		   "model: %d:%u is an orphan", w, p);
	SHIM_CHECK(up->down == n->up, "%d:%u is not derived from %d:%u", w, p,
		   x->pw, x->pp);
	SHIM_CHECK(up->frame + (x->pp - up->start) == x->frame,
		   "%d:%u and %d:%u show different frames", w, p, x->pw, x->pp);
	SHIM_CHECK(!(n->rights & ~up->rights), "%d:%u has more rights than %d:%u",
		   w, p, x->pw, x->pp);
	SHIM_CHECK(n->depth == up->depth + 1, "%d:%u has depth %u below %u", w,
		   p, n->depth, up->depth);
}

static void check_page(const struct model *m, int w, u32 p)
{
	const struct mpage *x = &m->page[w][p];
	const struct mapdb_node *n = real_node(w, p);
	bool starts;

	SHIM_CHECK(x->used == !!n, "%d:%u is %smapped", w, p, n ? "" : "not ");
	if (!n)
		return;
	starts = !p || !x[-1].used || x[-1].node != x->node;
	SHIM_CHECK(starts == (n->start == p), "a node %s at %d:%u",
		   starts ? "should start" : "starts", w, p);
	SHIM_CHECK(x->object == node_object(n) &&
		   x->frame == n->frame + (p - n->start),
		   "%d:%u shows %u.%u, not %u.%u", w, p, node_object(n),
		   n->frame + (p - n->start), x->object, x->frame);
	SHIM_CHECK(x->rights == n->rights, "%d:%u has rights %#x, not %#x", w,
		   p, n->rights, x->rights);
	SHIM_CHECK(x->depth == n->depth, "%d:%u has depth %u, not %u", w, p,
		   n->depth, x->depth);
	SHIM_CHECK(x->root == mapdb_node_is_root(n), "%d:%u: root", w, p);
	SHIM_CHECK(x->sponsor == world_group_index(n->sponsor),
		   "%d:%u is paid by %d, not %d", w, p,
		   world_group_index(n->sponsor), x->sponsor);
	SHIM_CHECK(x->first == mapdb_node_is_first(n), "%d:%u: first is %d", w,
		   p, !x->first);
	if (!x->root)
		check_parent(m, x, n, w, p);
}

/* A frame is free from when nobody maps it; its object is gone with the last. */
static void check_objects(const struct model *m)
{
	struct {
		bool used;
		bool mapped[MODEL_PAGES];
	} object[2 * MODEL_WINDOWS * MODEL_PAGES] = {};
	u32 slots = ARRAY_SIZE(object), p, i;
	int w;

	for (w = 0; w < m->windows; w++) {
		for (p = 0; p < m->pages; p++) {
			const struct mpage *x = &m->page[w][p];

			if (!x->used)
				continue;
			object[x->object % slots].used = true;
			object[x->object % slots].mapped[x->frame] = true;
			SHIM_CHECK(world->object[x->object],
				   "object %u is gone", x->object);
			SHIM_CHECK(!world->object[x->object]->freed[x->frame],
				   "frame %u.%u is free", x->object, x->frame);
		}
	}
	/* Objects that share a slot are judged by the structures alone. */
	for (w = 0; w < m->windows; w++) {
		for (p = 0; p < m->pages; p++) {
			const struct mpage *x = &m->page[w][p];
			const struct object *o;

			if (!x->used)
				continue;
			o = world->object[x->object];
			for (i = 0; i < o->nr; i++)
				SHIM_CHECK(o->freed[i] ||
					   object[x->object % slots].mapped[i],
					   "frame %u.%u leaks", x->object, i);
		}
	}
}

static void check_group(const struct model *m, int g)
{
	struct ledger_counts c;
	struct ledger_state s;
	int k;

	model_counts(m, g, &c);
	ledger_get_state(&world_sponsor(g)->ledger, &s);
	for (k = 0; k < LEDGER_KINDS; k++) {
		SHIM_CHECK(s.count.n[k] == c.n[k],
			   "group %d is charged %llu of kind %d, not %llu", g,
			   s.count.n[k], k, c.n[k]);
		SHIM_CHECK(s.prices.ns[k] == model_prices(m, g)->ns[k],
			   "group %d has price %llu of kind %d, not %llu", g,
			   s.prices.ns[k], k, model_prices(m, g)->ns[k]);
	}
}

void check_model(const struct model *m)
{
	int i;
	u32 p;

	for (i = 0; i < m->windows; i++)
		for (p = 0; p < m->pages; p++)
			check_page(m, i, p);
	check_objects(m);
	for (i = 0; i < m->groups; i++)
		check_group(m, i);
}

/* Page tables and events */

void check_ptes_save(const struct model *m, pte_copy ptes)
{
	int w;

	for (w = 0; w < m->windows; w++)
		memcpy(ptes[w], world->window[w].pte, m->pages * sizeof(u64));
}

void check_ptes(const struct model *before, const struct model *after,
		pte_copy ptes)
{
	int w;
	u32 p;

	for (w = 0; w < after->windows; w++) {
		for (p = 0; p < after->pages; p++) {
			const struct mpage *x = &before->page[w][p];
			const struct mpage *y = &after->page[w][p];
			u64 pte = world->window[w].pte[p];

			if (pte)
				SHIM_CHECK(y->used &&
					   PTE_OBJECT(pte) == y->object &&
					   PTE_FRAME(pte) == y->frame &&
					   !(PTE_RIGHTS(pte) & ~y->rights),
					   "%d:%u still shows %u.%u with %#x", w,
					   p, PTE_OBJECT(pte), PTE_FRAME(pte),
					   PTE_RIGHTS(pte));
			if (ptes[w][p] && x->used && y->used &&
			    x->birth == y->birth && x->rights == y->rights)
				SHIM_CHECK(pte, "%d:%u has lost its entry", w, p);
		}
	}
}

void check_events(const struct model *m)
{
	int w;
	u32 p;

	for (w = 0; w < m->windows; w++) {
		const struct window *r = &world->window[w];

		for (p = 0; p < m->pages; p++) {
			SHIM_CHECK(r->event_all[p] == m->event_all[w][p],
				   "%d:%u: %u events that it went, not %u", w, p,
				   r->event_all[p], m->event_all[w][p]);
			SHIM_CHECK(r->event_rights[p] == m->event_rights[w][p],
				   "%d:%u: event that %#x went, not %#x", w, p,
				   r->event_rights[p], m->event_rights[w][p]);
		}
	}
}
