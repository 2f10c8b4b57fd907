/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What probe.bpf.c keeps and sends, for both sides. Includers have the kernel's
 * integer types.
 */
#ifndef BRUMM_EVENTS_H
#define BRUMM_EVENTS_H

#include "hist.h"

/*
 * Sub-operations, Documentation/abi/tracepoints.md: X(name, NAME). The name is
 * that of the pair of tracepoints.
 */
#define EVENTS_TRACED(X)						\
	X(unmap, UNMAP)							\
	X(reduce, REDUCE)						\
	X(lookup, LOOKUP)						\
	X(zap, ZAP)							\
	X(remove, REMOVE)						\
	X(map, MAP)							\
	X(charge, CHARGE)						\
	X(fault, FAULT)							\
	X(release, RELEASE)						\
	X(reclaim, RECLAIM)						\
	X(empty, EMPTY)

enum event_op {
#define EVENT_OP(name, NAME) EVENT_##NAME,
	EVENTS_TRACED(EVENT_OP)
#undef EVENT_OP
	EVENTS_TRACED_NR,
	/* An unmap without its parts. */
	EVENT_REST = EVENTS_TRACED_NR,
	EVENTS_NR,
};

/* As cgroup: several sponsors. */
#define EVENT_SEVERAL	(~0ULL)

/**
 * struct event_stats - of one sub-operation, on one CPU
 * @time: how long
 * @in_unmap: time of those within an unmap
 * @in_unmap_nr: and how many pairs of events that were
 * @nodes: what the events say
 * @pages: the same
 * @errors: how many failed
 * @twice: begins without an end: another begin of the task came first
 * @orphans: ends without a begin
 * @several: left out by the filter, since it cannot be said for whom it was
 * @lost: samples that found the ring full
 * @no_room: begins that could not be kept
 */
struct event_stats {
	struct hist time;
	__u64 in_unmap;
	__u64 in_unmap_nr;
	__u64 nodes;
	__u64 pages;
	__u64 errors;
	__u64 twice;
	__u64 orphans;
	__u64 several;
	__u64 lost;
	__u64 no_room;
};

/**
 * struct event_task - what a task has begun
 * @start: when, by sub-operation; 0: not
 * @parts: time of the parts of the unmap that it is in
 * @left_ns: of a batch with several sponsors: time not given to one yet
 * @left: and its nodes
 * @left_op: which part that is
 */
struct event_task {
	__u64 start[EVENTS_TRACED_NR];
	__u64 parts;
	__u64 left_ns;
	__u64 left;
	__u64 left_op;
};

/**
 * struct event_sample - one sub-operation, through the ring
 * @end: CLOCK_MONOTONIC, ns
 * @ns: how long
 * @cgroup: id of the sponsor's cgroup; 0: nobody; EVENT_SEVERAL
 * @nodes: what the event says
 * @pages: the same
 * @tid: who did it
 * @op: enum event_op
 * @err: 0 or a negative errno
 */
struct event_sample {
	__u64 end;
	__u64 ns;
	__u64 cgroup;
	__u64 nodes;
	__u64 pages;
	__u32 tid;
	__u32 op;
	__s32 err;
	__u32 pad;
};

#endif /* BRUMM_EVENTS_H */
