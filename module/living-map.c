// SPDX-License-Identifier: GPL-2.0
/* See living-map.h. */
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "living-map.h"

#define MAP_GFP		(GFP_KERNEL_ACCOUNT | __GFP_ZERO |		\
			 __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
#define MAP_FIRST	8
/* 64 MiB, for three million files. */
#define MAP_MOST	22
/* Entries that are moved before others may go on. */
#define MAP_STEP	4096

/* Three quarters: so what is looked for is near where it belongs. */
static unsigned int map_holds(const struct living_map *m)
{
	return m->entry ? 3U << (m->bits - 2) : 0;
}

static bool map_grow(struct living_map *m)
{
	struct living_map old = *m;
	struct living_entry *e;
	unsigned int i;

	m->bits = old.entry ? old.bits + 1 : MAP_FIRST;
	m->entry = NULL;
	if (m->bits <= MAP_MOST)
		m->entry = kvmalloc(sizeof(*m->entry) << m->bits, MAP_GFP);
	if (!m->entry) {
		*m = old;
		return false;
	}
	m->nr = 0;
	for (i = 0; old.entry && i < 1U << old.bits; i++) {
		e = &old.entry[i];
		if (e->key)
			living_map_put(m, e->key)->value = e->value;
		if (i % MAP_STEP == 0)
			cond_resched();
	}
	kvfree(old.entry);
	return true;
}

/**
 * living_map_room() - make sure that entries can be put
 * @m: the map
 * @n: how many
 *
 * Context: may sleep; does not kill anybody for the memory.
 * Return: true; false: there is no memory.
 */
bool living_map_room(struct living_map *m, unsigned int n)
{
	while (map_holds(m) - m->nr < n) {
		if (!map_grow(m))
			return false;
	}
	return true;
}

/**
 * living_map_put() - the entry of an address, new if there is none
 * @m: the map, with room for it
 * @key: the address
 *
 * Context: any.
 * Return: the entry, until the next living_map_room().
 */
struct living_entry *living_map_put(struct living_map *m, const void *key)
{
	unsigned int mask = (1U << m->bits) - 1;
	unsigned int i = hash_ptr(key, m->bits);

	while (m->entry[i].key && m->entry[i].key != key)
		i = (i + 1) & mask;
	if (!m->entry[i].key) {
		m->entry[i].key = key;
		m->nr++;
	}
	return &m->entry[i];
}

/* The one after @e, NULL: from the first on. NULL: there is no other. */
struct living_entry *living_map_next(const struct living_map *m,
				     struct living_entry *e)
{
	if (!m->entry)
		return NULL;
	for (e = e ? e + 1 : m->entry; e < m->entry + (1U << m->bits); e++) {
		if (e->key)
			return e;
	}
	return NULL;
}

void living_map_free(struct living_map *m)
{
	kvfree(m->entry);
	*m = (struct living_map) {};
}
