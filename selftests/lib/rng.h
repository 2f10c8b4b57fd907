/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers that a seed repeats (splitmix64). */
#ifndef BRUMM_RNG_H
#define BRUMM_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

/* true once in n calls */
static inline int rng_once_in(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

#endif /* BRUMM_RNG_H */
