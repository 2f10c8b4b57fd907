/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the exit probes share among themselves. */
#ifndef BRUMM_EXITS_INTERNAL_H
#define BRUMM_EXITS_INTERNAL_H

#include "../probe/hist.h"
#include "../probe/loader.h"
#include "exits.h"
#include "teardown.skel.h"

/* Tracepoints, and what follows new cgroups. */
#define EXITS_LINKS	8

/**
 * struct exits - what is attached
 * @skel: the object
 * @rung: the way it is attached
 * @links: of tracepoints
 * @nr_links: how many
 * @hook_links: of functions, begin and end
 * @hook: what they are attached to
 * @cost: of the probe
 * @ring: reader of samples, made when first used
 * @fn: who gets the samples
 * @arg: for @fn
 * @missed: missed by the kernel before the last reset
 */
struct exits {
	struct teardown_bpf *skel;
	const char *rung;
	struct bpf_link *links[EXITS_LINKS];
	unsigned int nr_links;
	struct bpf_link *hook_links[HOOKS_NR][2];
	struct exits_hook hook[HOOKS_NR];
	struct exits_cost cost;
	struct ring_buffer *ring;
	int (*fn)(void *arg, const struct exit_sample *s);
	void *arg;
	uint64_t missed;
};

/* Takes a hook out of use, since @why_not. */
void exits_drop(struct exits *x, enum exit_hook hook, const char *why_not);

/* read.c */
int exits_stats(struct exits *x, uint32_t phase, struct exit_stats *st);
int exits_reset(struct exits *x);

/* check.c */
/* Time of the call that the empty hook is at, ns. */
int exits_call_ns(double *ns, double *error);
/*
 * Drops what is not where it ought to be, and measures the cost, given what the
 * call takes where nobody listens.
 */
int exits_check(struct exits *x, double call_ns, double call_error);

#endif /* BRUMM_EXITS_INTERNAL_H */
