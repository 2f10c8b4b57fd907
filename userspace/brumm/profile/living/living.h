/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The profiling phase of the living: shapes are made and killed, and prices
 * of their kinds found. Documentation/design/measuring.md.
 */
#ifndef BRUMM_LIVING_H
#define BRUMM_LIVING_H

#include <jansson.h>

#include "../measure.h"
#include "kill.h"
#include "solve.h"

/**
 * struct living_options - how much to do
 * @states: bit by measure_state
 * @repeat: kills of each shape, size and state that count
 * @quick: the smaller size only
 * @group: descriptor of the trial cgroup
 * @root: descriptor of the root cgroup, whose prices have the kinds
 * @progress: called now and then, or NULL
 */
struct living_options {
	unsigned int states;
	unsigned int repeat;
	bool quick;
	int group;
	int root;
	void (*progress)(size_t done, size_t of);
};

/**
 * struct living_cell - kills that are alike
 * @shape: of what
 * @n: its size
 * @state: when
 * @counts: what there was each time
 * @took: each kill
 * @nr: how many
 * @work: their median serial work, ns
 * @left_out: not possible here, -errno
 */
struct living_cell {
	const struct living_shape *shape;
	unsigned int n;
	enum measure_state state;
	struct counts counts;
	struct kill_took *took;
	size_t nr;
	double work;
	int left_out;
};

/* The mix on so many CPUs: medians, ns. */
struct living_wall {
	unsigned int cpus;
	double wall, work;
};

#define LIVING_WALLS	16

/**
 * struct living_result - all that was found
 * @price: by kind, as it is for the kernel, which sees fewer kinds
 * @deferred: by kind, the part of the price that kernel threads do later
 * @reap: killing and reaping a process, in who does that
 * @rate: CPU time of kernel threads at rest in one ns, < 0: not known
 */
struct living_result {
	struct kinds kinds;
	struct living_cell *cells;
	size_t nr;
	struct solved solved;
	double price[KINDS_MOST];
	double deferred[KINDS_MOST];
	double reap;
	double rate;
	struct living_wall walls[LIVING_WALLS];
	size_t nr_walls;
	unsigned int states, repeat;
};

/*
 * Measures and finds prices. 0; -EOPNOTSUPP: the module has no such kinds;
 * -EINTR; -EINVAL: the kills do not tell the kinds apart; another error.
 */
int living_measure(const struct living_options *o, struct living_result *r);
void living_free(struct living_result *r);

/* The key "living" of a prices file; NULL: no memory. */
json_t *living_json(const struct living_result *r);
void living_print(const struct living_result *r);

/* Makes the prices of @living, as living_json() made it, those of @root. */
int living_set(const json_t *living, int root);

#endif /* BRUMM_LIVING_H */
