/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tasks of a cgroup own, counted from /proc: no code and no source of
 * the module's but the names of the kinds.
 */
#ifndef BRUMM_RECOUNT_H
#define BRUMM_RECOUNT_H

#include <stdint.h>
#include <sys/types.h>

enum recount_kind {
	RECOUNT_PROCESS, RECOUNT_THREAD, RECOUNT_MM, RECOUNT_VMA, RECOUNT_ANON,
	RECOUNT_FILE, RECOUNT_SHMEM, RECOUNT_HUGE, RECOUNT_TABLE, RECOUNT_SWAP,
	RECOUNT_FD, RECOUNT_PLAIN, RECOUNT_EVENTFD, RECOUNT_PIPE, RECOUNT_UNIX,
	RECOUNT_TCP, RECOUNT_SOCKET, RECOUNT_URING, RECOUNT_EPOLL,
	RECOUNT_OTHERFILE,
	RECOUNT_KINDS,
};

extern const char *const recount_names[RECOUNT_KINDS];

struct recount {
	uint64_t n[RECOUNT_KINDS];
};

/*
 * All processes in the cgroup @name (below the mount point) and those below it,
 * the dead ones that nobody has waited for, too. 0 or a negative errno.
 */
int recount_group(const char *name, struct recount *c);

/* Adds what the address space of @pid holds; -ESRCH: it is gone. */
int recount_mm(pid_t pid, struct recount *c);

/* Descriptor tables: a thread that uses it, and who is charged for it. */
struct tables {
	struct table {
		ino_t payer;
		pid_t tid;
	} *one;
	size_t nr, room;
};

/* Those of process @pid are met. 0 or -ENOMEM. */
int tables_meet(struct tables *t, pid_t pid, ino_t payer);
/*
 * Adds slots and files: each table and each file once for each who is charged for
 * it. 0 or a negative errno.
 */
int tables_count(struct tables *t, struct recount *c);
void tables_free(struct tables *t);

#endif /* BRUMM_RECOUNT_H */
