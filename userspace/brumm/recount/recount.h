/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tasks of a cgroup own, counted from /proc: no code and no source of
 * the module's but the names of the kinds.
 */
#ifndef BRUMM_RECOUNT_H
#define BRUMM_RECOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum recount_kind {
	RECOUNT_PROCESS, RECOUNT_THREAD, RECOUNT_MM, RECOUNT_VMA, RECOUNT_ANON,
	RECOUNT_FILE, RECOUNT_SHMEM, RECOUNT_HUGE, RECOUNT_TABLE, RECOUNT_SWAP,
	RECOUNT_FD, RECOUNT_PLAIN, RECOUNT_EVENTFD, RECOUNT_PIPE, RECOUNT_UNIX,
	RECOUNT_TCP, RECOUNT_SOCKET, RECOUNT_URING, RECOUNT_EPOLL,
	RECOUNT_OTHERFILE, RECOUNT_NETNS, RECOUNT_MNTNS, RECOUNT_IPCNS,
	RECOUNT_PIDNS, RECOUNT_NS,
	RECOUNT_KINDS,
};

extern const char *const recount_names[RECOUNT_KINDS];

/**
 * struct recount - counts
 * @n: by kind
 * @unknown: bit per kind: this kernel does not tell (no kcmp: whether two have a
 *	table or a file in common)
 */
struct recount {
	uint64_t n[RECOUNT_KINDS];
	uint64_t unknown;
};

static inline bool recount_knows(const struct recount *c, int kind)
{
	return !(c->unknown >> kind & 1);
}

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

/* Namespaces, and whether somebody else uses them. */
struct spaces {
	struct space {
		ino_t ino;
		enum recount_kind kind;
		bool others;
	} *one;
	size_t nr, room;
};

/* Those of the threads of @pid, one of @ours or not, are met. 0 or -ENOMEM. */
int spaces_meet(struct spaces *s, pid_t pid, bool ours);
/* Adds those that nobody else uses. */
void spaces_add(const struct spaces *s, struct recount *c);
void spaces_free(struct spaces *s);

#endif /* BRUMM_RECOUNT_H */
