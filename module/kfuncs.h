/* SPDX-License-Identifier: GPL-2.0 */
/* See kfuncs.c. */
#ifndef BRUMM_KFUNCS_H
#define BRUMM_KFUNCS_H

#include "ledger.h"

#if BRUMM_QUOTA
void kfuncs_init(void);

/* Called by BPF programs only. */
int brumm_guard_fork(u64 flags);
int brumm_guard_exec(void);
int brumm_guard_mmap(u64 flags, u64 bytes);
int brumm_guard_area(void);
int brumm_guard_split(u64 start, u64 end);
#else
static inline void kfuncs_init(void)
{
}
#endif

#endif /* BRUMM_KFUNCS_H */
