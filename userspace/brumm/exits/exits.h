/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times of the phases of exits, taken in the kernel by BPF; see
 * Documentation/design/teardown.md for what each is. For brumm probe --teardown
 * and brumm reap --probes.
 */
#ifndef BRUMM_EXITS_H_USER
#define BRUMM_EXITS_H_USER

#include <jansson.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../../bpf/exits.h"
#include "../stats.h"

struct exits;

/**
 * struct exits_options - what to look at, and how
 * @group: only exits of tasks in this cgroup, or one below it; -1: all
 * @samples: keep each one for exits_samples(), not just figures
 * @ring: room for samples, bytes; 0: 16 MiB
 * @rung: the way to attach, a name of exits_rungs; NULL: the first that works
 * @function: by enum exit_hook: the function to attach to; NULL: the usual one
 */
struct exits_options {
	int group;
	bool samples;
	uint32_t ring;
	const char *rung;
	const char *function[HOOKS_NR];
};

#define EXITS_OPTIONS_INIT	{ .group = -1 }

/* Functions by, and tracepoints by; in the order they are tried; NULL ends. */
extern const char *const exits_rungs[];

/**
 * struct exits_hook - a function of the kernel
 * @name: of the hook
 * @function: what it is attached to, or NULL
 * @why_not: why it is not in use, and its time in what is around it; NULL: it is
 */
struct exits_hook {
	const char *name;
	const char *function;
	const char *why_not;
};

/**
 * struct exits_phase - one phase
 * @name: of enum exit_phase, or "whole", "signalled", "subthreads", "parent", "rcu"
 * @kind: as brumm.price has it, or NULL
 * @time: CPU time of each within exits, ns; of a delay how long it was
 * @sums: by enum exit_where
 * @net: CPU time without the probe's, by enum exit_where; NaN: not measured
 * @misplaced: how often it was not where it ought to be
 * @orphans: begins or ends without the other
 * @lost: samples lost since the ring was full; @time has them
 */
struct exits_phase {
	const char *name, *kind;
	struct summary time;
	struct exit_sums sums[WHERES_NR];
	double net[WHERES_NR];
	uint64_t misplaced, orphans, lost;
};

/**
 * struct exits_cost - what the probe itself costs, ns
 * @inside: what is too much in each phase
 * @around: what each phase adds to the one around it
 * @pair: all that a phase costs the task: both, and what the probe takes out itself
 * @pair_error: half of its 95 % interval
 */
struct exits_cost {
	double inside, around, pair, pair_error;
};

/**
 * struct exits_result - all of them
 * @rung: the way it is attached
 * @hook: by enum exit_hook
 * @phase: by enum exit_phase and what comes after it
 * @cost: of the probe
 * @probe: time that the programs took of the exits, and took out, ns
 * @missed: events that the kernel did not deliver
 * @no_room: exits and cgroups that found no room
 * @deep: phases within too many others
 * @open: exits that have not ended
 * @zombies: dead, and not reaped
 * @nets: network namespaces that are still to be cleaned up
 * @complete: nothing was missed, lost or misplaced: the figures are all
 */
struct exits_result {
	const char *rung;
	struct exits_hook hook[HOOKS_NR];
	struct exits_phase phase[EXIT_STATS_NR];
	struct exits_cost cost;
	uint64_t probe;
	uint64_t missed, no_room, deep, open, zombies, nets;
	bool complete;
};

/*
 * Attaches, checks on children of its own whether each hook is where it ought to
 * be, measures what it costs, and starts. 0 or a negative errno: -EOPNOTSUPP: no
 * way works here; -EPERM: not allowed. *@why, which the caller frees, then tells
 * what was tried.
 */
int exits_open(const struct exits_options *o, struct exits **x, char **why);
void exits_close(struct exits *x);
/* The way it is attached. */
const char *exits_rung(const struct exits *x);

/* Begin no more exits; those that have begun are followed. */
void exits_stop(struct exits *x);
/*
 * Waits until what has begun is over, the deferred part too, for @ns at most; with
 * @removed also until cgroups that were removed are, as far as they go away.
 */
void exits_settle(struct exits *x, uint64_t ns, bool removed);
/* What was measured up to now. */
int exits_read(struct exits *x, struct exits_result *r);
/*
 * Hands the samples to @fn that there are, waiting @timeout_ms for the first;
 * not 0 from @fn ends that and is returned.
 */
int exits_samples(struct exits *x, int timeout_ms,
		  int (*fn)(void *arg, const struct exit_sample *s), void *arg);

const char *exits_phase_name(uint32_t phase);
/* "exit", "others", "deferred", "machine". */
const char *exits_where_name(uint32_t where);
/* enum exit_hook, or -1. */
int exits_hook_by_name(const char *name, size_t len);

/* report.c. JSON: schema brumm-exits/1; NULL: no memory. */
json_t *exits_json(const struct exits_result *r);
void exits_print(const struct exits_result *r, FILE *f);
/* Measured by kind: {kind: {...}}, and for people. */
json_t *exits_kinds_json(const struct exits_result *r);
void exits_print_kinds(const struct exits_result *r, FILE *f);

#endif /* BRUMM_EXITS_H_USER */
