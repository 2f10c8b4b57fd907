/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The keys of a run and what is stored under them. Both follow from the seed and
 * the number of a key alone, so every rank and every answer can be checked against
 * them: nothing of a value is kept.
 */
#ifndef BRUMM_MC_KEYS_H
#define BRUMM_MC_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

struct key {
	uint32_t value;		/* bytes of its value */
	uint8_t size;		/* of the key itself */
};

struct keys {
	struct key *key;
	uint32_t n;
	char *pattern;		/* values are cut out of it */
};

/* -ENOMEM; -ERANGE: keys of that size cannot all differ. */
int keys_make(struct keys *k, const struct config *c);
void keys_free(struct keys *k);

/* Writes key @i, without an end; returns its size, at most MODEL_MAX_KEY. */
size_t keys_text(const struct keys *k, uint32_t i, char *to);
const char *keys_value(const struct keys *k, uint32_t i);
/* Are these the bytes that were stored under key @i? */
bool keys_match(const struct keys *k, uint32_t i, const char *data, size_t size);

#endif /* BRUMM_MC_KEYS_H */
