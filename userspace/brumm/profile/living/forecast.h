/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What ending a group of processes is expected to take. Three numbers that are
 * never added to each other: serial work, that is CPU time; time on the clock
 * with so many CPUs; and waiting for others, of which nothing can be foretold.
 */
#ifndef BRUMM_FORECAST_H
#define BRUMM_FORECAST_H

#include <stdio.h>

#include "count.h"

/* Counting of processes is given up after that; ns. */
#define FORECAST_MOST	1000000000u

/**
 * struct forecast - of one group; times in ns, NAN: not known
 * @kinds: the kinds and the prices in force
 * @counts: what there is
 * @source: where the counts are from: "proc", or "ledger" (brumm.stat); NULL:
 *	nowhere
 * @files: the same of files and namespaces
 * @why: why nothing is known of the processes, NULL: it is
 * @device: taking back what is mapped from the device
 * @part: the other parts of the work
 * @serial: the work, all parts and the device
 * @deferred: of it in kernel threads, after the last process is gone
 * @longest: the process that takes longest by itself
 * @reaping: what the init of the PID namespace does for all others, one by one
 * @ledger: what brumm.stat has for the processes
 * @cpus: on how many they may run
 * @wall: until the last process is gone, on these: the greatest of @longest,
 *	@reaping, and of the work that is not deferred / @cpus
 */
struct forecast {
	struct kinds kinds;
	struct counts counts;
	const char *source, *files, *why;
	double device, part[PARTS];
	double serial, deferred;
	double longest, reaping;
	double ledger;
	unsigned int cpus;
	double wall;
};

/**
 * forecast_make() - of processes
 * @group: descriptor of their cgroup, whose prices hold; < 0: there is none
 * @list: the processes
 * @ns: they are a PID namespace, with its init
 * @f: out
 */
void forecast_make(int group, const struct tasks *list, bool ns,
		   struct forecast *f);

/* Expected time of the device's part, %BRUMM_NO_LIMIT: not known. */
uint64_t forecast_device(int group);

/* Keys of a JSON object; NULL: no memory. */
json_t *forecast_json(const struct forecast *f);
/* A line of the parts, and one of the time on the clock. */
void forecast_print(const struct forecast *f, FILE *file);
/* A line for each kind that there is. */
void forecast_print_kinds(const struct forecast *f, FILE *file);

#endif /* BRUMM_FORECAST_H */
