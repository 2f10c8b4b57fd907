/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times of the sub-operations of the module, taken in the kernel by BPF; see
 * Documentation/abi/tracepoints.md for what each is. For brumm probe and brumm
 * profile.
 */
#ifndef BRUMM_PROBE_H
#define BRUMM_PROBE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../../bpf/events.h"
#include "../stats.h"

struct probe;

/**
 * struct probe_options - what to look at, and how
 * @group: only what this cgroup, or one below it, sponsors; -1: everything
 * @samples: keep each one for probe_samples(), not just figures
 * @ring: room for samples, bytes; 0: 16 MiB
 * @rung: the way to attach, a name of probe_rungs; NULL: the first that works
 */
struct probe_options {
	int group;
	bool samples;
	uint32_t ring;
	const char *rung;
};

#define PROBE_OPTIONS_INIT	{ .group = -1 }

/* "tp_btf", "raw_tp", "tracepoint", in the order they are tried; NULL ends. */
extern const char *const probe_rungs[];

/**
 * struct probe_op - one sub-operation
 * @name: of enum event_op, or "rest": an unmap without its parts
 * @time: ns; p50 and p99 within 2 %, all others exact
 * @sum: all of it, ns
 * @in_unmap: the share of it within an unmap, ns
 * @in_unmap_nr: how many that were
 * @nodes: nodes worked on
 * @pages: their pages
 * @errors: how many failed
 * @orphans: ends without a begin, and begins without an end
 * @open: begun and not ended yet
 * @several: left out by the filter, since there were several sponsors
 * @lost: samples lost since the ring was full; @time has them
 */
struct probe_op {
	const char *name;
	struct summary time;
	uint64_t sum, in_unmap, in_unmap_nr;
	uint64_t nodes, pages, errors;
	uint64_t orphans, open, several, lost;
};

/**
 * struct probe_result - all of them, by enum event_op
 * @rung: the way it is attached
 * @missed: events that the kernel did not deliver, or that found no room
 * @complete: nothing was lost, missed or orphaned: the figures are all
 * @op: see there
 */
struct probe_result {
	const char *rung;
	uint64_t missed;
	bool complete;
	struct probe_op op[EVENTS_NR];
};

/**
 * struct probe_cost - what the probe itself costs, ns
 * @inside: what is too much in each time: that of a pair of events around
 *	nothing
 * @pair: what a pair of events takes from the task
 * @pair_error: half of its 95 % interval
 */
struct probe_cost {
	struct summary inside;
	double pair;
	double pair_error;
};

/*
 * Attaches, and starts. 0 or a negative errno: -EOPNOTSUPP: no way works here;
 * -ENOENT: the module is not loaded; -EPERM: not allowed. *@why, which the caller
 * frees, then tells what was tried.
 */
int probe_open(const struct probe_options *o, struct probe **p, char **why);
void probe_close(struct probe *p);
/* The way it is attached. */
const char *probe_rung(const struct probe *p);

/* What was measured up to now. */
int probe_read(struct probe *p, struct probe_result *r);
/* Begin anew. Operations under way become orphans. */
int probe_reset(struct probe *p);
/* Stop taking times, and go on: attached all the time. */
void probe_pause(struct probe *p, bool pause);

/*
 * Hands the samples to @fn that there are, waiting @timeout_ms for the first;
 * not 0 from @fn ends that and is returned.
 */
int probe_samples(struct probe *p, int timeout_ms,
		  int (*fn)(void *arg, const struct event_sample *s),
		  void *arg);
const char *probe_op_name(uint32_t op);

/*
 * Measures what the probe costs, by system calls that do nothing, attached and
 * not attached by turns. Counts in "empty" only.
 */
int probe_cost(struct probe *p, struct probe_cost *c);

/*
 * The mean time of a sub-operation without the probe's share, ns: less what is
 * too much in each time and, for an unmap and its rest, what the pairs of events
 * within have cost. NaN without a sample.
 */
double probe_net(const struct probe_result *r, const struct probe_cost *c,
		 enum event_op op);

#endif /* BRUMM_PROBE_H */
