/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adding to figures, for programs. Some kernels preempt them, hence atomic
 * additions even though the figures are kept by CPU.
 */
#ifndef BRUMM_RECORD_BPF_H
#define BRUMM_RECORD_BPF_H

#include "hist.h"

static void add(u64 *to, u64 v)
{
	__sync_fetch_and_add(to, v);
}

static __attribute__((unused)) void hist_add(struct hist *h, u64 ns)
{
	u64 square = ns > 0xffffffff ? 0xffffffff : ns;
	u32 slot = hist_slot(ns);

	square *= square;
	add(&h->n, 1);
	add(&h->sum, ns);
	add(&h->squares_low, square & 0xffffffff);
	add(&h->squares_high, square >> 32);
	if (~ns > h->not_min)
		h->not_min = ~ns;
	if (ns > h->max)
		h->max = ns;
	if (slot < HIST_SLOTS)
		add(&h->slot[slot], 1);
}

#endif /* BRUMM_RECORD_BPF_H */
