/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups: what the module keeps of a cgroup. One is made when somebody needs
 * it (a window is opened, a knob is written) together with those above it, and
 * goes away when the cgroup is gone and nothing is charged any more. A group
 * holds no reference to its cgroup, so that it never keeps one dying.
 *
 * Only cgroups of the v2 hierarchy that have the memory controller are groups:
 * these are the ones that have brumm.* files. A task in another one belongs to
 * the nearest ancestor that is a group. The root is not one: it sponsors
 * nothing and is NULL wherever a sponsor is meant.
 */
#ifndef BRUMM_GROUP_H
#define BRUMM_GROUP_H

#include "mapdb.h"

struct cgroup;

int group_init(void);
void group_exit(void);
int knobs_init(void);
void knobs_exit(void);

/*
 * References keep a group whose cgroup is gone. What is charged keeps it too,
 * so nodes need none.
 */
struct mapdb_sponsor *group_get_current(void);
struct mapdb_sponsor *group_get_fd(int fd);
void group_put(struct mapdb_sponsor *sp);

/* Is @up the same as @sp or above it? */
bool group_is_above(struct mapdb_sponsor *up, struct mapdb_sponsor *sp);

#endif /* BRUMM_GROUP_H */
