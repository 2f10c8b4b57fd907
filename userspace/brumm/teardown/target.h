/* SPDX-License-Identifier: GPL-2.0 */
/* What is to be torn down: a cgroup, or a PID namespace named by its init. */
#ifndef BRUMM_TEARDOWN_TARGET_H
#define BRUMM_TEARDOWN_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tasks.h"

/**
 * struct target - a group of processes
 * @group: descriptor of the cgroup, -1: a namespace without one of its own
 * @name: of the cgroup, below the mount point
 * @init: init of the PID namespace that is meant, 0: the cgroup is meant
 * @init_fd: its pidfd, or -1
 * @ns: inode of that namespace
 */
struct target {
	int group;
	char name[PATH_MAX];
	pid_t init;
	int init_fd;
	ino_t ns;
};

/* Is it a number? Else it is the name of a cgroup. */
bool target_is_pid(const char *arg);
/* EXIT_FINE; or another exit code, when all is said. */
int target_open(const char *arg, struct target *t);
int target_open_group(int group, struct target *t);
void target_close(struct target *t);

/* Appends its processes. */
int target_tasks(const struct target *t, struct tasks *list);

#endif /* BRUMM_TEARDOWN_TARGET_H */
