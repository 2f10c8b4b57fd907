// SPDX-License-Identifier: GPL-2.0
/*
 * The mapping database: the memory of nodes, and of lineages.
 *
 * Contract: nodes are taken from slabs of a few, which belong to the store of the
 * space from which something is mapped. The memory controller charges a slab, when
 * it is made, to whoever needs it just then. To free an object of the memory
 * controller takes 250 instructions and more, which are shared by the nodes in it.
 *
 * A node may outlive the space: its slab holds on to it. An empty slab that is
 * kept for the next node does not, and goes with mapdb_space_exit() at last.
 *
 * Locks: store->lock, innermost; nothing but this file takes it.
 */
#include "tree.h"

/*
 * Few: of what is larger, the kernel takes eight pages at a time where memory is
 * fragmented, and compacts it while a revoke goes on. Half as much again was what
 * that took at times.
 *
 * Where memory is watched, a slab is a node: only what is given back at once is
 * known to be free.
 */
#ifndef MAPDB_SLAB_NODES
#ifdef CONFIG_KASAN
#define MAPDB_SLAB_NODES	1
#else
#define MAPDB_SLAB_NODES	3
#endif
#endif
#define MAPDB_SLAB_BYTES	(sizeof(struct mapdb_slab) + \
				 MAPDB_SLAB_NODES * sizeof(struct mapdb_node))

/**
 * struct mapdb_slab - memory for some nodes
 * @open: in store->open, while there is a free one
 * @store: whose
 * @space: where the store is, held as long as a node is used; NULL: the common
 *	store
 * @free: nodes that were used before, linked by ->next
 * @fresh: from this one on, none was
 * @used: nodes in use
 * @nodes: the nodes
 */
struct mapdb_slab {
	struct list_head open;
	struct mapdb_store *store;
	struct mapdb_space *space;
	struct mapdb_node *free;
	unsigned int fresh;
	unsigned int used;
	struct mapdb_node nodes[];
};

static struct kmem_cache *slab_cache;
/* Of those who act for no space: a reclaim. */
static struct mapdb_store common;

static void store_init(struct mapdb_store *store)
{
	spin_lock_init(&store->lock);
	INIT_LIST_HEAD(&store->open);
	store->spare = NULL;
	store->closed = false;
}

/* Keep no more slabs that are empty. */
static void store_close(struct mapdb_store *store)
{
	struct mapdb_slab *spare;

	spin_lock(&store->lock);
	spare = store->spare;
	store->spare = NULL;
	store->closed = true;
	spin_unlock(&store->lock);
	if (spare)
		kmem_cache_free(slab_cache, spare);
}

int mapdb_init(void)
{
	/* Its name tells how many nodes are in one. */
	static char name[24];

	BUILD_BUG_ON(sizeof(struct mapdb_node) > 128);
	BUILD_BUG_ON(MAPDB_SLAB_NODES - 1 > U8_MAX);

	snprintf(name, sizeof(name), "brumm_nodes-%u",
		 (unsigned int)MAPDB_SLAB_NODES);
	slab_cache = kmem_cache_create(name, MAPDB_SLAB_BYTES, 0, SLAB_ACCOUNT,
				       NULL);
	store_init(&common);
	/* What it kept would keep the cgroup that paid for it. */
	common.closed = true;
	return slab_cache ? 0 : -ENOMEM;
}

void mapdb_exit(void)
{
	kmem_cache_destroy(slab_cache);
}

void mapdb_space_init(struct mapdb_space *s, struct mapdb_sponsor *group)
{
	init_rwsem(&s->lock);
	s->nodes = RB_ROOT;
	s->group = group;
	store_init(&s->store);
}

/* Nobody maps from this space any more. It stays while its nodes do. */
void mapdb_space_exit(struct mapdb_space *s)
{
	store_close(&s->store);
}

/* Make */

static struct mapdb_slab *slab_alloc(struct mapdb_store *store,
				     struct mapdb_space *space, gfp_t gfp)
{
	struct mapdb_slab *slab = kmem_cache_alloc(slab_cache, gfp);

	if (!slab)
		return NULL;
	slab->store = store;
	slab->space = space;
	slab->free = NULL;
	slab->fresh = 0;
	slab->used = 0;
	return slab;
}

/* Have nodes taken from a slab that has none in use. */
static void slab_open(struct mapdb_slab *slab)
{
	lockdep_assert_held(&slab->store->lock);
	if (slab->space)
		mapdb_space_get(slab->space);
	list_add(&slab->open, &slab->store->open);
}

static struct mapdb_node *store_take(struct mapdb_store *store)
{
	struct mapdb_slab *slab;
	struct mapdb_node *n;

	lockdep_assert_held(&store->lock);
	if (list_empty(&store->open)) {
		if (!store->spare)
			return NULL;
		slab_open(store->spare);
		store->spare = NULL;
	}
	slab = list_first_entry(&store->open, struct mapdb_slab, open);
	n = slab->free;
	if (n) {
		slab->free = n->next;
	} else {
		n = &slab->nodes[slab->fresh];
		n->slot = slab->fresh++;
	}
	if (++slab->used == MAPDB_SLAB_NODES)
		list_del(&slab->open);
	return n;
}

/* One that nobody has to wait for, if there is. */
static struct mapdb_node *store_try(struct mapdb_store *store)
{
	struct mapdb_node *n;

	spin_lock(&store->lock);
	n = store_take(store);
	spin_unlock(&store->lock);
	return n;
}

static struct mapdb_node *store_grow(struct mapdb_store *store,
				     struct mapdb_space *space, gfp_t gfp)
{
	struct mapdb_slab *slab = slab_alloc(store, space, gfp);
	struct mapdb_node *n;

	if (!slab)
		return NULL;
	spin_lock(&store->lock);
	slab_open(slab);
	n = store_take(store);
	spin_unlock(&store->lock);
	return n;
}

static struct mapdb_node *place_alloc(struct mapdb_space *s, gfp_t gfp)
{
	struct mapdb_store *store = s ? &s->store : &common;
	struct mapdb_node *n = store_try(store);

	return n ?: store_grow(store, s, gfp);
}

/**
 * mapdb_node_alloc() - a node that is nowhere as yet
 * @s: space from whose store; NULL: the common one
 * @gfp: how, if more memory is needed
 *
 * Return: the node; NULL: no memory.
 */
struct mapdb_node *mapdb_node_alloc(struct mapdb_space *s, gfp_t gfp)
{
	struct mapdb_node *n = place_alloc(s, gfp);

	if (!n)
		return NULL;
	/* What else there is, is set by who makes a node of it. */
	n->for_parent = NULL;
	n->frame = 0;
	n->up = NULL;
	n->down = NULL;
	mapdb_set_payer(n, NULL);
	mapdb_first_init(n);
	memset_startat(n, 0, rights);
	return n;
}

/* A lineage takes the place of a node, whose slot it does not reach. */
struct mapdb_lineage *mapdb_lineage_alloc(struct mapdb_space *s)
{
	BUILD_BUG_ON(sizeof(struct mapdb_lineage) >
		     offsetof(struct mapdb_node, slot));

	return (struct mapdb_lineage *)place_alloc(s, MAPDB_GFP);
}

/* Free */

static struct mapdb_slab *slab_of(struct mapdb_node *n)
{
	return container_of(n - n->slot, struct mapdb_slab, nodes[0]);
}

/* The last node of @slab was given back. True: it is kept. */
static bool slab_retire(struct mapdb_slab *slab, struct list_head *empty)
{
	struct mapdb_store *store = slab->store;

	list_del(&slab->open);
	if (MAPDB_SLAB_NODES == 1 || store->spare || store->closed) {
		list_add(&slab->open, empty);
		return false;
	}
	slab->free = NULL;
	slab->fresh = 0;
	store->spare = slab;
	return true;
}

/* True: the slab is empty, and is kept. */
static bool slab_give_back(struct mapdb_slab *slab, struct mapdb_node *n,
			   struct list_head *empty)
{
	n->next = slab->free;
	slab->free = n;
	if (slab->used-- == MAPDB_SLAB_NODES)
		list_add(&slab->open, &slab->store->open);
	return unlikely(!slab->used) && slab_retire(slab, empty);
}

static void space_let_go(struct mapdb_space *space)
{
	if (space)
		mapdb_space_put(space);
}

/*
 * Free as many as are of one store. Who has freed the last node of a slab holds
 * on to the space for it until the lock is given up. Return: how many.
 */
static unsigned int free_run(struct mapdb_node **nodes, unsigned int nr)
{
	struct mapdb_slab *slab = slab_of(nodes[0]), *next;
	struct mapdb_store *store = slab->store;
	struct mapdb_space *space = slab->space;
	LIST_HEAD(empty);
	unsigned int i = 0;
	bool kept = false;

	spin_lock(&store->lock);
	do {
		kept |= slab_give_back(slab, nodes[i], &empty);
		if (++i == nr)
			break;
		slab = slab_of(nodes[i]);
	} while (slab->store == store);
	spin_unlock(&store->lock);

	if (kept)
		space_let_go(space);
	list_for_each_entry_safe(slab, next, &empty, open) {
		kmem_cache_free(slab_cache, slab);
		space_let_go(space);
	}
	return i;
}

void mapdb_node_free_bulk(unsigned int nr, struct mapdb_node **nodes)
{
	unsigned int i = 0;

	while (i < nr)
		i += free_run(nodes + i, nr - i);
}

void mapdb_node_free(struct mapdb_node *n)
{
	mapdb_node_free_bulk(1, &n);
}

void mapdb_lineage_free(struct mapdb_lineage *l)
{
	if (l)
		mapdb_node_free((struct mapdb_node *)l);
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
