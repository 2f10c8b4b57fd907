/* SPDX-License-Identifier: GPL-2.0 */
/* Histograms of the BPF programs, in figures. */
#ifndef BRUMM_PROBE_HIST_H
#define BRUMM_PROBE_HIST_H

#include <linux/types.h>

#include "../../../bpf/hist.h"
#include "../stats.h"

/* Adds @h, of another CPU for one. */
void hist_merge(struct hist *to, const struct hist *h);
/* p50 and p99 within 2 %, all others exact. */
void hist_summary(const struct hist *h, struct summary *s);

#endif /* BRUMM_PROBE_HIST_H */
