/* SPDX-License-Identifier: GPL-2.0 */
/* Namespaces that go with a group of processes. */
#ifndef BRUMM_LIVING_SPACES_H
#define BRUMM_LIVING_SPACES_H

#include "../../teardown/tasks.h"
#include "kinds.h"

/*
 * Adds the namespaces that some of @list are in and nobody else is. 0,
 * -ENOMEM; who may not look at others' takes those for the group's own.
 */
int spaces_count(const struct kinds *k, const struct tasks *list,
		 struct counts *c);

#endif /* BRUMM_LIVING_SPACES_H */
