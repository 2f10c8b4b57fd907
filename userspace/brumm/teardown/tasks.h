/* SPDX-License-Identifier: GPL-2.0 */
/* Processes of a cgroup and those below it, or of a PID namespace. */
#ifndef BRUMM_TEARDOWN_TASKS_H
#define BRUMM_TEARDOWN_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct task - a process
 * @pid: its number here
 * @ppid: of its parent
 * @state: as in /proc/PID/stat
 * @depth: how many of its ancestors are in the list, see tasks_order()
 * @init: how many PID namespaces see it, if it is the init of the innermost, see
 *	tasks_find_inits(); 0: it is none
 * @late: 0, or it comes behind all those with 0, or with more; the same
 * @born: start time; with @pid it tells a process from a later one
 * @threads: how many it has
 * @policy: SCHED_* of the first
 * @rss: bytes present
 * @comm: name
 */
struct task {
	pid_t pid;
	pid_t ppid;
	char state;
	unsigned int depth;
	unsigned int init;
	unsigned int late;
	int threads;
	int policy;
	uint64_t born;
	uint64_t rss;
	char comm[64];
};

struct tasks {
	struct task *list;
	size_t n;
	size_t room;
};

void tasks_free(struct tasks *t);

/* Reads the text of /proc/PID/stat; false: it is something else. */
bool task_parse(const char *text, struct task *t);
/* 0, -ESRCH, or why it cannot be opened. */
int task_read(pid_t pid, struct task *t);
/*
 * A pidfd of the very process that @t describes, or -ESRCH: its number may
 * have been given to another one meanwhile.
 */
int task_open(const struct task *t);

/* Called for each cgroup below one, the lower ones first; not 0 ends it. */
typedef int (*groups_fn)(int parent, const char *name, int group, void *arg);
int groups_walk(int group, groups_fn fn, void *arg);
/* How many there are below. */
size_t groups_count(int group);

/* Appends those of @group and below; zombies are not among them. */
int tasks_of_group(int group, struct tasks *t);
/* Appends those of a PID namespace, by its inode, and of those within it. */
int tasks_of_ns(ino_t ns, struct tasks *t);

/* Inode of the PID namespace of @pid, 0: no such process, or not permitted. */
ino_t task_ns(pid_t pid);
/* Number of @pid in its innermost PID namespace; 0: no such process. */
pid_t task_inner_pid(pid_t pid);
/* How many PID namespaces see it: 1 if it is in that of /proc. */
unsigned int task_levels(pid_t pid);
/* Is @pid in @ns or in one within it? */
bool task_in_ns(pid_t pid, ino_t ns);

/* Takes out those that are in @known, too. */
void tasks_subtract(struct tasks *t, const struct tasks *known);
/* Moves all of @more to the end of @t, as far as there is memory. */
void tasks_append(struct tasks *t, struct tasks *more);
/* Notes which of them are inits of PID namespaces. */
void tasks_find_inits(struct tasks *t);
/*
 * Sorts: each process stands before its parent; an init behind all that are in its
 * namespace or in one within, and behind whoever has nothing to do with inits.
 */
void tasks_order(struct tasks *t);

#endif /* BRUMM_TEARDOWN_TASKS_H */
