/* SPDX-License-Identifier: GPL-2.0 */
/* The profiling phase: whole operations, timed from outside, without probes. */
#ifndef BRUMM_MEASURE_H
#define BRUMM_MEASURE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "../bench/shape.h"
#include "../stats.h"
#include "fit.h"

/* In what state the machine is when the clean-up begins. */
enum measure_state {
	MEASURE_FRESH,		/* caches warm from preparing it */
	MEASURE_IDLE,		/* caches lost, after a while of sleep */
	MEASURE_STATES,
};

extern const char *const measure_states[MEASURE_STATES];

/**
 * struct measure_options - how much to do
 * @states: bit by measure_state
 * @repeat: runs of each shape, way and state that count; one more warms up
 * @quick: small shapes only
 * @seed: of the random shapes and the order of runs
 * @group: descriptor of a trial cgroup; nothing else happens in it
 * @root: descriptor of the root cgroup
 * @progress: called now and then, or NULL
 * @watch: told right before and after a shape is taken back, or NULL
 */
struct measure_options {
	unsigned int states;
	unsigned int repeat;
	bool quick;
	uint64_t seed;
	int group;
	int root;
	void (*progress)(size_t done, size_t of);
	void (*watch)(void *arg, bool begins);
	void *watch_arg;
};

/**
 * struct measure_cell - runs that are alike but for the seed
 * @name: of the shape
 * @spec: the shape
 * @by: how it is taken back
 * @state: when
 * @copies: so many of it at once, each in a window of its own
 * @usual: prices should be near what it takes
 * @apart: no mapping stands next to another: each has to be zapped by itself,
 *	which its counts do not tell
 * @runs: the runs, the fixed cost of the way taken out or counted
 * @n: how many
 */
struct measure_cell {
	const char *name;
	struct shape_spec spec;
	enum shape_by by;
	enum measure_state state;
	unsigned int copies;
	bool usual;
	bool apart;
	struct fit_run *runs;
	size_t n;
};

/* Mappings of one page that are revoked together. */
#define MEASURE_TOGETHER	256u

/**
 * struct measure_flush - revoking what some CPUs have in their TLBs
 * @cpus: how many have
 * @ns: one mapping of one page, by itself
 * @together: one of MEASURE_TOGETHER that stand next to each other
 */
struct measure_flush {
	unsigned int cpus;
	struct summary ns;
	struct summary together;
};

struct measure {
	struct measure_cell *cells;
	size_t nr;
	struct summary syscall;	/* an UNMAP of nothing */
	struct summary reclaim;	/* a write to brumm.reclaim, of nothing */
	struct measure_flush *flush;
	size_t nr_flush;
	unsigned int turn;
};

/* 0, -EINTR on a signal, or another error; free it in any case. */
int measure(const struct measure_options *o, struct measure *m);
/* As many runs again, of the cells; the same. */
int measure_more(const struct measure_options *o, struct measure *m);
void measure_free(struct measure *m);

/*
 * Of each cell the quickest quarter, and at least two: whatever disturbs a run
 * makes it longer. 0 or -ENOMEM; free it in any case.
 */
int measure_quickest(const struct measure *m, struct measure *quickest);

/* One more run of a cell of @m, or of one that is like those. */
int measure_once(const struct measure_options *o, const struct measure *m,
		 const struct measure_cell *c, uint64_t seed,
		 struct fit_run *run);

/* A reclaim soon after another waits for what that has left behind: not so then. */
void measure_settle(void);
/* The machine does something else, and then nothing, for a while. 0, -ENOMEM. */
int measure_idle_away(bool quick);

/*
 * Stays on the CPU where it is, so that no other has to flush its TLB for us: what
 * that takes is measured apart. @old: for measure_unpin().
 */
void measure_pin(cpu_set_t *old);
void measure_unpin(const cpu_set_t *old);

/* By number of CPUs; called by measure(). */
int measure_flushes(struct measure *m, unsigned int repeat);

/* The shape that tells what a first mapping costs that has a tree of its own. */
#define MEASURE_BASES	"bases"

/*
 * All runs of @m in @state, or of all states with MEASURE_STATES: those of bases,
 * or all others that are not apart; allocated.
 */
struct fit_run *measure_runs(const struct measure *m, enum measure_state state,
			     bool bases, size_t *n);

#endif /* BRUMM_MEASURE_H */
