/* SPDX-License-Identifier: GPL-2.0 */
/* Knobs, as far as more than one program needs them. */
#ifndef BRUMM_TEST_KNOB_H
#define BRUMM_TEST_KNOB_H

#include <stdbool.h>
#include <stdint.h>

/* Checks that a file says exactly @want and a newline. */
bool knob_is(int cgroup, const char *file, const char *want, const char *at,
	     int line);
#define CHECK_KNOB(cgroup, file, want) \
	knob_is(cgroup, file, want, __FILE__, __LINE__)

/* Prices of the device's kinds in force, and whether they are the cgroup's own. */
bool prices_are(int cgroup, uint64_t lookup, uint64_t map, uint64_t pt,
		uint64_t deep, bool own, const char *at, int line);
#define CHECK_PRICES(cgroup, ...) \
	prices_are(cgroup, __VA_ARGS__, __FILE__, __LINE__)

/* write(2) of @len bytes, which may contain zeroes: 0 or a negative errno. */
int knob_write(int cgroup, const char *file, const char *text, unsigned int len);

/* Expected clean-up time, exact. */
uint64_t knob_usage_ns(int cgroup);

/* @n, or a part of it on a slow kernel: BRUMM_LESS is the divisor. */
unsigned int amount(unsigned int n);

/*
 * Prices that make sums easy to follow, and the usage of counts at them. What is
 * deep is free, and has a test of its own.
 */
#define PRICE_LOOKUP	1000000ULL
#define PRICE_MAP	10000ULL
#define PRICE_PT	100ULL
#define PRICES		"lookup 1000000 map 10000 pt 100 deep 0"
#define COST(l, m, p)	((l) * PRICE_LOOKUP + (m) * PRICE_MAP + (p) * PRICE_PT)

/* A cgroup as of cg_make(), with those prices of its own. */
int priced(const char *name);

#endif /* BRUMM_TEST_KNOB_H */
