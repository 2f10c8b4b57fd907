/* SPDX-License-Identifier: GPL-2.0 */
/* What brumm.stat counts of tasks, and what /proc says. */
#ifndef BRUMM_TEST_LEDGER_H
#define BRUMM_TEST_LEDGER_H

#include <stdint.h>

/* Where tasks are; nobody follows those in the last. */
enum { HERE, DEEP, OUTSIDE, PLACES };

extern int place[PLACES];
/* Above the first two. */
extern int top;

/* Makes them, and has @top followed. */
void make_places(void);
int64_t count(int cg, const char *kind);
/* CHECKs that a recount of @top agrees; says what differs. */
void agrees(void);
/* CHECKs that nothing is counted in @top when the last task is gone. */
void nothing_is_left(void);

#endif /* BRUMM_TEST_LEDGER_H */
