/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log-linear histogram of times in ns, for both sides: below 2^HIST_BITS one slot
 * a value, above 2^HIST_BITS slots for each power of two. The middle of a slot is
 * within 1/64 of every value in it. Includers have the kernel's integer types.
 */
#ifndef BRUMM_HIST_H
#define BRUMM_HIST_H

#define HIST_BITS	5
#define HIST_PER_POWER	(1u << HIST_BITS)
/* What is longer than 2^40 ns, 18 minutes, is in the last slot. */
#define HIST_POWERS	40
#define HIST_SLOTS	((HIST_POWERS - HIST_BITS + 1) * HIST_PER_POWER)

/**
 * struct hist - times in figures that are exact, and in slots
 * @n: how many
 * @sum: of all
 * @squares_low: sum of the squares modulo 2^32
 * @squares_high: sum of the squares divided by 2^32
 * @not_min: complement of the least, so that all of it starts at 0
 * @max: the greatest
 * @slot: how many by slot
 *
 * Squares are those of times up to 2^32 - 1, longer ones count as that.
 */
struct hist {
	__u64 n;
	__u64 sum;
	__u64 squares_low;
	__u64 squares_high;
	__u64 not_min;
	__u64 max;
	__u64 slot[HIST_SLOTS];
};

/* Position of the highest bit; @v is not 0. */
static inline __attribute__((always_inline)) __u32 hist_log2(__u64 v)
{
	__u32 r = 0, s;

	s = (v > 0xffffffff) << 5;
	v >>= s;
	r |= s;
	s = (v > 0xffff) << 4;
	v >>= s;
	r |= s;
	s = (v > 0xff) << 3;
	v >>= s;
	r |= s;
	s = (v > 0xf) << 2;
	v >>= s;
	r |= s;
	s = (v > 0x3) << 1;
	v >>= s;
	r |= s;
	return r | (__u32)(v >> 1);
}

static inline __attribute__((always_inline)) __u32 hist_slot(__u64 v)
{
	__u32 shift;

	if (v >= 1ULL << HIST_POWERS)
		return HIST_SLOTS - 1;
	if (v < HIST_PER_POWER)
		return (__u32)v;
	shift = hist_log2(v) - HIST_BITS;
	return (shift << HIST_BITS) + (__u32)(v >> shift);
}

/* The least value of a slot. */
static inline __attribute__((always_inline)) __u64 hist_low(__u32 slot)
{
	__u32 shift = slot >> HIST_BITS;

	if (shift < 2)
		return slot;
	shift--;
	return (__u64)(slot - (shift << HIST_BITS)) << shift;
}

#endif /* BRUMM_HIST_H */
