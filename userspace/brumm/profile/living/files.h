/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Open files of processes, each counted once however many descriptors and
 * processes have it: its last close is what takes time.
 */
#ifndef BRUMM_LIVING_FILES_H
#define BRUMM_LIVING_FILES_H

#include <sys/types.h>

#include "kinds.h"

/* One descriptor. */
struct file {
	pid_t pid;
	int fd;
	const char *type;	/* a kind */
	dev_t dev;
	ino_t ino;
};

struct files {
	struct file *list;
	size_t n, room;
};

/* Used slots of the descriptor table of @pid; 0 also if it cannot be seen. */
size_t files_slots(pid_t pid);

/* Appends the descriptors of @pid, which may be a thread. 0, -ESRCH, -EACCES, -ENOMEM. */
int files_of(pid_t pid, struct files *f);

/*
 * Sorts the list, and leaves each file once in it. Descriptors are of one file if
 * kcmp(2) says so; where that is not allowed each is taken for a file.
 */
void files_unique(struct files *f);
/* Does that, and adds each by type. */
void files_count(const struct kinds *k, struct files *f, struct counts *c);
void files_free(struct files *f);

#endif /* BRUMM_LIVING_FILES_H */
