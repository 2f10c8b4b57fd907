/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What processes hold, by kind, as /proc tells. It is the source of a prediction
 * where the module does not follow the tasks (brumm.mode is off), and of the
 * counts of the shapes that prices are made from, so that these do not depend on
 * what they are to be multiplied with.
 *
 * Running processes change while they are read: freeze them where that matters.
 * An address space or a descriptor table that several processes share (vfork,
 * CLONE_VM, CLONE_FILES) is counted for each of them.
 */
#ifndef BRUMM_COUNT_H
#define BRUMM_COUNT_H

#include <stdint.h>

#include "../../teardown/tasks.h"
#include "kinds.h"

/*
 * Adds what @pid holds but its open files, which may be others' too: process,
 * threads, memory, slots of the descriptor table; with @image the files that are
 * mapped. A page that several map is a part of one for each. 0, -ESRCH, -EACCES.
 */
int count_process(const struct kinds *k, pid_t pid, bool image,
		  struct counts *c);

/**
 * struct living - what a group of processes holds
 * @all: of all of them; an open file counts once, namespaces that nobody else
 *	is in are theirs
 * @longest: time of the process that takes longest, at the prices, without
 *	its other threads, which exit beside it
 * @processes: how many were read
 */
struct living {
	struct counts all;
	double longest;
	size_t processes;
};

/*
 * Reads them; those that end meanwhile do not count. @known: what they have
 * open, and the namespaces that are theirs, if somebody else has counted these, or NULL. @until: CLOCK_MONOTONIC, when
 * to give up. 0; -ETIME; -EACCES: may not look at one of them; -ENOMEM.
 */
int count_tasks(const struct kinds *k, const struct tasks *list,
		const struct counts *known, uint64_t until, struct living *l);

#endif /* BRUMM_COUNT_H */
