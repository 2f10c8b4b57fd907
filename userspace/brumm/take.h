/* SPDX-License-Identifier: GPL-2.0 */
/* What the commands that take memory back from a cgroup have in common. */
#ifndef BRUMM_TAKE_H
#define BRUMM_TAKE_H

#include "cli.h"

/**
 * struct take_args - their arguments
 * @group: the cgroup, and whether to print JSON
 * @limit: how long it may take, ns; %BRUMM_NO_LIMIT: any time
 * @lock: lock its budget before
 */
struct take_args {
	struct cli_group group;
	uint64_t limit;
	bool lock;
};

#define TAKE_ARGS_INIT	{ .limit = BRUMM_NO_LIMIT }

/* An argp child; its input is a struct take_args. */
extern const struct argp take_argp;

/*
 * Opens the cgroup and locks it if it is to be. Return: a descriptor, or -1
 * with *@status the exit code, when all is said.
 */
int take_open(const struct take_args *a, int *status);

/* The exit code of what took @ns; on stderr, unless JSON says so already. */
int take_status(const struct take_args *a, uint64_t ns);

#endif /* BRUMM_TAKE_H */
