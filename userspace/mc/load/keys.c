// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"

/* Values of different keys begin at different places of a pattern. */
#define PATTERN_PERIOD	61

static unsigned int digits(uint32_t n)
{
	unsigned int d = 1;

	while (n >>= 4)
		d++;
	return d;
}

static void make_pattern(char *pattern)
{
	size_t i;

	for (i = 0; i < MODEL_MAX_VALUE + PATTERN_PERIOD; i++) {
		size_t j = i % PATTERN_PERIOD;

		pattern[i] = (char)(j < 26 ? 'a' + j : j < 52 ? 'A' + j - 26 :
							       '0' + j - 52);
	}
}

int keys_make(struct keys *k, const struct config *c)
{
	uint32_t i, need = digits(c->keys - 1), size;
	gsl_rng *rng;

	*k = (struct keys){ .n = c->keys };
	if (c->key_size.kind == SIZE_RANGE && c->key_size.high < need)
		return -ERANGE;
	k->key = calloc(c->keys, sizeof(*k->key));
	k->pattern = malloc(MODEL_MAX_VALUE + PATTERN_PERIOD);
	rng = gsl_rng_alloc(gsl_rng_taus2);
	if (!k->key || !k->pattern || !rng) {
		keys_free(k);
		return -ENOMEM;
	}
	gsl_rng_set(rng, c->seed);
	for (i = 0; i < c->keys; i++) {
		size = model_key_size(&c->key_size, rng);
		k->key[i].size = (uint8_t)(size < need ? need : size);
		k->key[i].value = model_value_size(&c->value_size, rng);
	}
	gsl_rng_free(rng);
	make_pattern(k->pattern);
	return 0;
}

void keys_free(struct keys *k)
{
	free(k->key);
	free(k->pattern);
	*k = (struct keys){ 0 };
}

size_t keys_text(const struct keys *k, uint32_t i, char *to)
{
	size_t size = k->key[i].size, at;
	uint32_t rest = i;

	for (at = size; at; at--) {
		to[at - 1] = "0123456789abcdef"[rest & 15];
		rest >>= 4;
	}
	return size;
}

const char *keys_value(const struct keys *k, uint32_t i)
{
	return k->pattern + i % PATTERN_PERIOD;
}

bool keys_match(const struct keys *k, uint32_t i, const char *data, size_t size)
{
	return size == k->key[i].value && !memcmp(data, keys_value(k, i), size);
}
