/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log-linear histogram of latencies in ns: below 2^(MC_HIST_BITS + 1) one slot a
 * value, above 2^MC_HIST_BITS slots for each power of two, so that the middle of a
 * slot is within 0.1 % of every value in it. Histograms are added slot by slot and
 * lose nothing by it; what is too long is counted apart. Zeroed memory is an empty
 * one. Nothing here is atomic: one histogram a thread, added when that is over.
 */
#ifndef BRUMM_MC_HIST_H
#define BRUMM_MC_HIST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define MC_HIST_BITS	9
#define MC_HIST_POWERS	36	/* 2^36 ns are 68 s */
#define MC_HIST_SLOTS	((MC_HIST_POWERS - MC_HIST_BITS + 1) << MC_HIST_BITS)

/**
 * struct mc_hist - latencies
 * @n: how many, those that are too long too
 * @sum: of all, ns
 * @min: the least, ns; meaningless where @n is 0
 * @max: the greatest
 * @over: how many of 2^MC_HIST_POWERS ns or more
 * @slot: how many of the others by slot
 */
struct mc_hist {
	uint64_t n, sum, min, max, over;
	uint64_t slot[MC_HIST_SLOTS];
};

/* The slot of a value below 2^MC_HIST_POWERS. */
static inline size_t mc_hist_slot(uint64_t ns)
{
	unsigned int shift;

	if (ns < 1u << MC_HIST_BITS)
		return (size_t)ns;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - MC_HIST_BITS;
	return ((size_t)shift << MC_HIST_BITS) + (size_t)(ns >> shift);
}

/* The least value of a slot, ns; of MC_HIST_SLOTS: what is too long. */
static inline uint64_t mc_hist_low(size_t slot)
{
	size_t shift = slot >> MC_HIST_BITS;

	if (shift < 2)
		return slot;
	shift--;
	return (uint64_t)(slot - (shift << MC_HIST_BITS)) << shift;
}

void mc_hist_add(struct mc_hist *h, uint64_t ns);
void mc_hist_merge(struct mc_hist *to, const struct mc_hist *from);

/**
 * mc_hist_quantile() - the value of rank ceil(q n)
 * @q: in (0, 1]
 *
 * Returns the low end of its slot, ns, @max if it is too long for one, 0 of an
 * empty histogram.
 */
uint64_t mc_hist_quantile(const struct mc_hist *h, double q);

/* As Documentation/abi/mc-json.md has it; NULL: no memory. */
json_t *mc_hist_json(const struct mc_hist *h);

/* What was printed so; -EINVAL if it was not. */
int mc_hist_parse(const json_t *j, struct mc_hist *h);

#endif /* BRUMM_MC_HIST_H */
