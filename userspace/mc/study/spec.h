/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A study file: what is to be varied, and what is not. All of it is checked when
 * it is read; what this machine cannot do shows later, cell by cell.
 */
#ifndef BRUMM_MC_SPEC_H
#define BRUMM_MC_SPEC_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../results/figures.h"

/* What a cell is made of, in the order of its name. */
enum axis {
	AXIS_LANE,
	AXIS_INSTANCES,
	AXIS_RATE,
	AXIS_SCHEDULER,
	AXIS_ISOLATION,
	AXIS_NEIGHBOUR,
	AXIS_MEMORY,
	AXES
};

extern const char *const axis_names[AXES];

/* The lane that is this kernel. */
#define LANE_HERE "here"

struct list {
	char **item;
	size_t count;
};

/**
 * struct spec - a study file
 * @axis: values of each
 * @repeats: of each cell
 * @seed: of the order, and with the repeat added that of the load
 * @cpus: of servers, one an instance in turn
 * @port: the first server's
 * @containers: how many, of the isolations that have several
 * @server: command that starts memcached, to which -p and -l are added
 * @vm: command that starts a virtual machine with a server; NULL: none
 * @load: options of brumm mc load
 * @loader: command that runs it; NULL: brumm itself
 * @lanes: "NAME COMMAND", the command that runs another one on a lane
 * @processes, @memory, @mappings, @threads: of the neighbour
 * @at: how long after the start of the window it acts, ns
 * @lasts: how long a storm lasts, ns
 * @budget, @pace: of its teardown, as brumm run and reap take them
 * @place: CPUs of the neighbour; NULL: any
 */
struct spec {
	char *title, *what;
	struct list axis[AXES];
	uint64_t repeats, seed, port, containers;
	cpu_set_t cpus;
	char *server, *vm, *loader;
	struct list load, lanes;
	uint64_t processes, memory, mappings, threads, at, lasts, settle;
	char *budget, *pace, *place;
	struct figures_opts figures;
};

/* 0, or -1 when the reason is said. */
int spec_read(struct spec *s, const char *path);
void spec_free(struct spec *s);

/* The command of a lane; NULL: none. */
const char *spec_lane(const struct spec *s, const char *lane);

/* All that a result depends on but for the axes; for the resume and the page. */
json_t *spec_json(const struct spec *s);

#endif /* BRUMM_MC_SPEC_H */
