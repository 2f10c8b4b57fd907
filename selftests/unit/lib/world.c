// SPDX-License-Identifier: GPL-2.0
#include "world.h"

struct world *world;

static const struct ledger_prices default_prices = {
	.ns = { [LEDGER_LOOKUP] = 7, [LEDGER_MAP] = 3, [LEDGER_PT] = 1,
		[LEDGER_DEEP] = 2 },
};

static void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	SHIM_CHECK(p, "out of memory");
	return p;
}

static void window_init(struct window *w, int index, u32 pages,
			struct mapdb_sponsor *group)
{
	w->index = index;
	w->refs = 1;
	w->pages = pages;
	w->pte = xcalloc(pages, sizeof(*w->pte));
	w->event_all = xcalloc(pages, 1);
	w->event_rights = xcalloc(pages, 1);
	mapdb_space_init(&w->space, group);
}

static u32 window_count_ptes(const struct window *w)
{
	u32 page, n = 0;

	for (page = 0; page < w->pages; page++)
		n += __atomic_load_n(&w->pte[page], __ATOMIC_SEQ_CST) != 0;
	return n;
}

static void window_exit(struct window *w)
{
	SHIM_CHECK(RB_EMPTY_ROOT(&w->space.nodes), "window %d is not empty",
		   w->index);
	SHIM_CHECK(!window_count_ptes(w), "window %d shows pages", w->index);
	SHIM_CHECK(w->refs <= 1, "window %d has %d references", w->index,
		   w->refs);
	shim_lock_destroy(&w->space.lock.l);
	free(w->pte);
	free(w->event_all);
	free(w->event_rights);
}

static void group_init(struct group *g, int index, int parent)
{
	struct ledger *up = &world->root;

	if (parent >= 0)
		up = &world->group[parent].sponsor.ledger;
	g->index = index;
	g->parent = parent;
	mapdb_sponsor_init(&g->sponsor, up, (u64)index + 100);
}

static void group_exit(struct group *g)
{
	SHIM_CHECK(ledger_is_zero(&g->sponsor.ledger),
		   "group %d is left with charges", g->index);
	SHIM_CHECK(list_empty(&g->sponsor.first),
		   "group %d is left with first nodes", g->index);
}

void world_init(const struct world_config *c)
{
	int i;

	world = xcalloc(1, sizeof(*world));
	SHIM_CHECK(!mapdb_init(), "mapdb_init");
	ledger_init_root(&world->root, &default_prices);
	world->nr_groups = c->groups;
	for (i = 0; i < c->groups; i++)
		group_init(&world->group[i], i, c->parent[i]);
	world->nr_windows = c->windows;
	for (i = 0; i < c->windows; i++)
		window_init(&world->window[i], i, c->pages,
			    world_sponsor(c->group ? c->group[i] : -1));
	world->allocated = shim_alloc_live();
}

void world_exit(void)
{
	int i;

	world->shut = true;
	for (i = 0; i < world->nr_windows; i++)
		mapdb_release(world_space(i));
	for (i = 0; i < world->nr_windows; i++)
		mapdb_space_exit(world_space(i));
	SHIM_CHECK(!world->nr_objects, "%u objects are left",
		   world->nr_objects);
	for (i = 0; i < world->nr_windows; i++)
		window_exit(&world->window[i]);
	for (i = world->nr_groups - 1; i >= 0; i--)
		group_exit(&world->group[i]);
	mapdb_exit();
	shim_check_idle();
	free(world);
	world = NULL;
	SHIM_CHECK(!shim_alloc_live(), "%ld allocations are left",
		   shim_alloc_live());
}

struct mapdb_space *world_space(int w)
{
	return &world->window[w].space;
}

struct mapdb_sponsor *world_sponsor(int g)
{
	return g < 0 ? NULL : &world->group[g].sponsor;
}

int world_group_index(const struct mapdb_sponsor *sp)
{
	return sp ? container_of(sp, struct group, sponsor)->index : -1;
}

/* Objects */

static struct object *object_new(u32 pages)
{
	struct object *o = xcalloc(1, sizeof(*o));
	u32 id;

	o->nr = pages;
	o->freed = xcalloc(pages, sizeof(*o->freed));
	o->mapped = xcalloc(pages, sizeof(*o->mapped));
	for (;;) {
		struct object *none = NULL;

		id = __atomic_add_fetch(&world->next_object, 1,
					__ATOMIC_RELAXED) % MAX_OBJECTS;
		if (id && __atomic_compare_exchange_n(&world->object[id], &none,
						      o, false,
						      __ATOMIC_SEQ_CST,
						      __ATOMIC_SEQ_CST))
			break;
	}
	o->id = id;
	__atomic_add_fetch(&world->nr_objects, 1, __ATOMIC_SEQ_CST);
	return o;
}

static void object_delete(struct object *o)
{
	__atomic_store_n(&world->object[o->id], NULL, __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&world->nr_objects, 1, __ATOMIC_SEQ_CST);
	free(o->freed);
	free(o->mapped);
	free(o);
}

int space_alloc(struct mapdb_space *s, u32 start, u32 pages, u32 *id)
{
	struct object *o = object_new(pages);
	u32 object = o->id;
	int err = mapdb_alloc(s, start, pages, o);

	if (err)
		object_delete(o);
	if (id)
		*id = object;
	return err;
}

int world_alloc(int w, u32 start, u32 pages, u32 *id)
{
	return space_alloc(world_space(w), start, pages, id);
}

int world_unmap(int w, u32 start, u32 pages, bool self,
		struct mapdb_unmap_result *res)
{
	struct mapdb_unmap_result unused;

	return mapdb_unmap(world_space(w), world_space(w), start, pages, self,
			   res ?: &unused);
}

int world_map(int sw, u32 from, int tw, u32 to, u32 pages, u32 rights,
	      u32 flags)
{
	struct mapdb_map_args a = {
		.source = world_space(sw),
		.target = world_space(tw),
		.from = from,
		.to = to,
		.pages = pages,
		.rights = rights,
		.flags = flags,
	};

	return flags & BRUMM_MAP_GRANT ? mapdb_grant(&a) : mapdb_map(&a);
}

/* Page tables */

static void pte_set(struct window *w, u32 page, u64 pte)
{
	u64 old = __atomic_exchange_n(&w->pte[page], pte, __ATOMIC_SEQ_CST);

	if (pte) {
		struct object *o = world->object[PTE_OBJECT(pte)];

		__atomic_add_fetch(&o->mapped[PTE_FRAME(pte)], 1,
				   __ATOMIC_SEQ_CST);
	}
	if (old) {
		struct object *o = world->object[PTE_OBJECT(old)];

		SHIM_CHECK(o, "an entry outlived its frames");
		__atomic_sub_fetch(&o->mapped[PTE_FRAME(old)], 1,
				   __ATOMIC_SEQ_CST);
	}
}

/* The space is locked. */
static bool fault_locked(struct window *w, u32 page)
{
	struct mapdb_node *n = mapdb_find(&w->space, page);
	struct object *o;
	u32 frame;

	if (!n || !mapdb_node_serves(n) || !(n->rights & BRUMM_RIGHT_R))
		return false;
	o = mapdb_node_frames(n)->priv;
	frame = n->frame + (page - n->start);
	SHIM_CHECK(o && frame < o->nr, "fault at %d:%u: no such frame",
		   w->index, page);
	SHIM_CHECK(!__atomic_load_n(&o->freed[frame], __ATOMIC_SEQ_CST),
		   "fault at %d:%u: frame %u.%u is free", w->index, page,
		   o->id, frame);
	pte_set(w, page, PTE_MAKE(o->id, frame, n->rights));
	return true;
}

bool world_fault(int i, u32 page)
{
	struct window *w = &world->window[i];
	bool shown;

	down_read(&w->space.lock);
	shown = fault_locked(w, page);
	up_read(&w->space.lock);
	return shown;
}

void world_try_fault(int i, u32 page)
{
	struct window *w = &world->window[i];

	if (!down_read_trylock(&w->space.lock))
		return;
	fault_locked(w, page);
	up_read(&w->space.lock);
}

void world_fault_all(void)
{
	u32 page;
	int i;

	for (i = 0; i < world->nr_windows; i++)
		for (page = 0; page < world->window[i].pages; page++)
			world_fault(i, page);
}

u32 world_count_ptes(int i)
{
	return window_count_ptes(&world->window[i]);
}

void world_clear_events(void)
{
	int i;

	for (i = 0; i < world->nr_windows; i++) {
		memset(world->window[i].event_all, 0, world->window[i].pages);
		memset(world->window[i].event_rights, 0,
		       world->window[i].pages);
	}
}

/* What the mapping database calls */

void mapdb_zap(struct mapdb_space *s, u32 start, u32 pages)
{
	struct window *w = space_window(s);
	u32 page;

	shim_no_locks("mapdb_zap");
	SHIM_CHECK(pages && start + pages > start && start + pages <= w->pages,
		   "zap of %u+%u in a window of %u", start, pages, w->pages);
	__atomic_add_fetch(&world->zaps, 1, __ATOMIC_RELAXED);
	shim_preempt();
	for (page = start; page < start + pages; page++)
		pte_set(w, page, 0);
	shim_preempt();
}

void mapdb_event(struct mapdb_space *s, u32 start, u32 pages, u32 rights,
		 bool all)
{
	struct window *w = space_window(s);
	u32 page;

	SHIM_CHECK(pages && start + pages <= w->pages, "event of %u+%u", start,
		   pages);
	SHIM_CHECK(rights && !(rights & ~BRUMM_RIGHTS_ALL), "event about %#x",
		   rights);
	for (page = start; page < start + pages && !world->shut; page++) {
		if (all)
			__atomic_add_fetch(&w->event_all[page], 1,
					   __ATOMIC_RELAXED);
		else
			__atomic_or_fetch(&w->event_rights[page], (u8)rights,
					  __ATOMIC_RELAXED);
	}
}

void mapdb_free_frames(void *priv, u32 frame, u32 pages)
{
	struct object *o = priv;
	u32 f;

	shim_no_locks("mapdb_free_frames");
	SHIM_CHECK(pages && frame + pages <= o->nr, "free of frames %u+%u of %u",
		   frame, pages, o->nr);
	for (f = frame; f < frame + pages; f++) {
		SHIM_CHECK(!__atomic_exchange_n(&o->freed[f], 1,
						__ATOMIC_SEQ_CST),
			   "frame %u.%u freed twice", o->id, f);
		SHIM_CHECK(!__atomic_load_n(&o->mapped[f], __ATOMIC_SEQ_CST),
			   "frame %u.%u freed while it is shown", o->id, f);
	}
	__atomic_add_fetch(&o->nr_freed, pages, __ATOMIC_SEQ_CST);
	shim_preempt();
}

void mapdb_free_priv(void *priv)
{
	struct object *o = priv;

	shim_no_locks("mapdb_free_priv");
	if (!o)
		return;
	SHIM_CHECK(o->nr_freed == o->nr, "object %u gone with %u of %u frames",
		   o->id, o->nr - o->nr_freed, o->nr);
	object_delete(o);
}

/* The windows of a world live as long as it does: only count. */
void mapdb_space_get(struct mapdb_space *s)
{
	SHIM_CHECK(__atomic_fetch_add(&space_window(s)->refs, 1,
				      __ATOMIC_SEQ_CST) > 0,
		   "a space that is gone is taken");
}

void mapdb_space_put(struct mapdb_space *s)
{
	struct window *w = space_window(s);
	int left = __atomic_sub_fetch(&w->refs, 1, __ATOMIC_SEQ_CST);

	SHIM_CHECK(left >= 0 && (left || w->index < 0),
		   "a space given back that nobody has");
	if (left)
		return;
	window_exit(w);
	memset(w, 0x6b, sizeof(*w));
	free(w);
}

struct window *window_new(u32 pages, struct mapdb_sponsor *group)
{
	struct window *w = xcalloc(1, sizeof(*w));

	window_init(w, -1, pages, group);
	return w;
}

void window_release(struct window *w)
{
	mapdb_release(&w->space);
	mapdb_space_exit(&w->space);
	mapdb_space_put(&w->space);
}

/* What the ledger calls */

void (*world_on_notify)(struct ledger *l, bool local);
void (*world_on_idle)(struct ledger *l);

static void check_called(struct ledger *l, const char *what)
{
	SHIM_CHECK(rcu_read_lock_held(), "%s outside of RCU", what);
	SHIM_CHECK(!lockdep_is_held(&l->domain->lock), "%s under a lock", what);
}

void ledger_notify(struct ledger *l, bool local)
{
	check_called(l, "ledger_notify");
	if (world_on_notify)
		world_on_notify(l, local);
}

void ledger_idle(struct ledger *l)
{
	check_called(l, "ledger_idle");
	if (world_on_idle)
		world_on_idle(l);
}
