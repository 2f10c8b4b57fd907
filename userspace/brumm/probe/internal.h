/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the probe share among themselves. */
#ifndef BRUMM_PROBE_INTERNAL_H
#define BRUMM_PROBE_INTERNAL_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "hist.h"
#include "loader.h"
#include "probe.h"
#include "probe.skel.h"

/* A pair each, and the one that follows new cgroups. */
#define PROBE_LINKS	(2 * EVENTS_TRACED_NR + 1)

/**
 * struct probe - what is attached
 * @skel: the object
 * @rung: the way it is attached
 * @links: the attachments
 * @nr_links: how many
 * @ring: reader of samples, made when first used
 * @fn: who gets the samples
 * @arg: for @fn
 * @missed: missed by the kernel before the last reset
 */
struct probe {
	struct probe_bpf *skel;
	const char *rung;
	struct bpf_link *links[PROBE_LINKS];
	unsigned int nr_links;
	struct ring_buffer *ring;
	int (*fn)(void *arg, const struct event_sample *s);
	void *arg;
	uint64_t missed;
};

int probe_attach(struct probe *p);
void probe_detach(struct probe *p);

#endif /* BRUMM_PROBE_INTERNAL_H */
