/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Standing aside: whoever wakes up runs at once, and not when this here has had its
 * share. But who gets no CPU at all in the idle class takes its own one back, or
 * else those that are to die could put it off for ever.
 */
#ifndef BRUMM_TEARDOWN_ASIDE_H
#define BRUMM_TEARDOWN_ASIDE_H

#include <stdbool.h>

struct aside;

/* The calling thread, from now on. NULL: no memory, or who may not take it back. */
struct aside *aside_begin(void);
/* Once more, after others were given less than before. */
void aside_again(struct aside *a);
/* Has it taken its class back? */
bool aside_starved(const struct aside *a);
/* Back to where it was; NULL is fine. */
void aside_end(struct aside *a);

#endif /* BRUMM_TEARDOWN_ASIDE_H */
