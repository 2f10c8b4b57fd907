/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Killing a shape, and what that takes.
 *
 * Serial work is CPU time, wherever it is spent: that of the dying in their own
 * context (cpu.stat of their cgroup), that of who kills and reaps them, and what
 * is left to kernel threads (sum of their run time, less what they run in that
 * time anyway). What runs in an interrupt, or in a softirq on a CPU that is
 * idle, nobody is charged for: it is not in it. Waiting is in none of these; the
 * time on the clock is told apart.
 */
#ifndef BRUMM_LIVING_KILL_H
#define BRUMM_LIVING_KILL_H

#include "shape.h"

/**
 * struct kill_took - one kill; ns
 * @tasks: CPU time of the tasks of the cgroup
 * @reaper: of who killed and reaped them
 * @deferred: of kernel threads afterwards
 * @work: all three
 * @wall: from the kill until the last was reaped
 */
struct kill_took {
	double tasks, reaper, deferred, work, wall;
};

/**
 * struct killer - where shapes are killed
 * @group: descriptor of the trial cgroup, in which nobody else is
 * @kinds: that are counted
 * @rate: CPU time of kernel threads in one ns of rest; < 0: it cannot be told
 * @guard: who kills them if this process dies
 */
struct killer {
	int group;
	const struct kinds *kinds;
	double rate;
	pid_t guard;
	int guard_pipe;
};

/* Begins: becomes the reaper of orphans. 0 or an error. */
int killer_open(struct killer *k, int group, const struct kinds *kinds);
void killer_close(struct killer *k);

/**
 * kill_once() - make a shape, and kill it
 * @k: where
 * @s: the shape
 * @n: its size
 * @idle: after the machine did something else
 * @cpus: how many CPUs it may use, 0: all
 * @counts: out, or NULL: what there was to be killed
 * @t: out: what it took
 *
 * Returns 0; -EOPNOTSUPP: not possible here; -EINTR; another error. In any case
 * nothing of it is left.
 */
int kill_once(struct killer *k, const struct living_shape *s, unsigned int n,
	      bool idle, unsigned int cpus, struct counts *counts,
	      struct kill_took *t);

#endif /* BRUMM_LIVING_KILL_H */
