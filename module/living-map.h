/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A map from addresses to words, for the length of one look: has this table, file
 * or namespace been met already, and with what?
 *
 * Memory comes beforehand, where one may sleep: so entries can be put with
 * spinlocks held. It is accounted, and has a limit: what a tenant has opened must
 * not use up memory that is nobody's.
 */
#ifndef BRUMM_LIVING_MAP_H
#define BRUMM_LIVING_MAP_H

#include <linux/types.h>

/**
 * struct living_entry - one of a map
 * @key: an address; NULL: there is none
 * @value: the user's; 0 at first
 */
struct living_entry {
	const void *key;
	unsigned long value;
};

/**
 * struct living_map - all zero: empty
 * @entry: hashed by key; a taken one is followed by the next free one
 * @bits: their number, as a power of two
 * @nr: how many are taken
 */
struct living_map {
	struct living_entry *entry;
	unsigned int bits;
	unsigned int nr;
};

bool living_map_room(struct living_map *m, unsigned int n);
struct living_entry *living_map_put(struct living_map *m, const void *key);
struct living_entry *living_map_next(const struct living_map *m,
				     struct living_entry *e);
void living_map_free(struct living_map *m);

#endif /* BRUMM_LIVING_MAP_H */
