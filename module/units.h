/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times and small words as the knobs spell them. Portable.
 */
#ifndef BRUMM_UNITS_H
#define BRUMM_UNITS_H

#include "os.h"

/* The spelling of "no limit", and the value that stands for it. */
#define UNITS_MAX_WORD		"max"
#define UNITS_NO_LIMIT		U64_MAX

/* ns of a number without a suffix. */
#define UNITS_NS		1ULL
#define UNITS_US		1000ULL

/* Enough for any time, in us with three decimals, and the final zero. */
#define UNITS_TIME_BYTES	24

int units_parse_time(const char *s, size_t len, u64 unit, u64 *ns);
int units_parse_limit(const char *s, size_t len, u64 *ns);
int units_parse_bool(const char *s, size_t len, bool *on);
void units_print_limit(char buf[UNITS_TIME_BYTES], u64 ns);
u64 units_us_up(u64 ns);

bool units_next_word(const char **s, const char *end, const char **word,
		     size_t *len);
bool units_word_is(const char *word, size_t len, const char *what);

#endif /* BRUMM_UNITS_H */
