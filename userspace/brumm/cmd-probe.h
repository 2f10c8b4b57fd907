/* SPDX-License-Identifier: GPL-2.0 */
/* What the two kinds of brumm probe share. */
#ifndef BRUMM_CMD_PROBE_H
#define BRUMM_CMD_PROBE_H

#include "cli.h"
#include "exits/exits.h"
#include "probe/probe.h"
#include "probe/watch.h"

/**
 * struct args - what is asked for
 * @o: for probe_open()
 * @x: for exits_open()
 * @teardown: the exits, not the module
 * @group: name of the cgroup, or NULL
 * @attach: the way to attach, or NULL
 * @watch: how long, and the command
 * @json: print JSON
 * @no_cost: do not measure the probe's own cost
 * @samples: of JSON, or NULL
 */
struct args {
	struct probe_options o;
	struct exits_options x;
	bool teardown;
	const char *group, *attach;
	struct watch watch;
	bool json, no_cost;
	json_t *samples;
};

/* brumm probe --teardown; the exit code. */
int probe_teardown(struct args *a);
/* Says why it could not be attached; the exit code. */
int probe_cannot(const struct args *a, int err, const char *why);
/* The exit code, given whether the figures are @complete. */
int probe_status(const struct args *a, bool complete);
/* Says that it measures, unless a command's output says so. */
void probe_announce(const struct args *a, const char *rung);

#endif /* BRUMM_CMD_PROBE_H */
