/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that the study starts, and surely ends. */
#ifndef BRUMM_MC_CHILD_H
#define BRUMM_MC_CHILD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct child_opts - how to start one
 * @argv: found along PATH
 * @cpus: pinned there; NULL: anywhere
 * @policy, @priority: of the scheduler
 * @group: cgroup to be in, a descriptor; -1: ours
 * @err: its stderr; -1: ours
 * @out: its stdout is a pipe, else it is our stderr
 */
struct child_opts {
	char **argv;
	const cpu_set_t *cpus;
	int policy, priority;
	int group, err;
	bool out;
};

#define CHILD_OPTS_INIT { .policy = SCHED_OTHER, .group = -1, .err = -1 }

/* @pid: 0 when there is none; @out: -1 without a pipe. */
struct child {
	pid_t pid;
	int out;
};

/*
 * Return: 0 when it runs; else a negative errno, and *@step says what failed.
 * It dies with us.
 */
int child_start(struct child *c, const struct child_opts *o, const char **step);

/* Has it ended? Then *@status is as of waitpid(). */
bool child_ended(struct child *c, int *status);

/* SIGTERM, and SIGKILL after @ns. */
void child_end(struct child *c, uint64_t ns);

/*
 * All that it prints until it ends, to be freed; NULL: no memory. Ends it when
 * we get a signal. *@status as of waitpid().
 */
char *child_read_all(struct child *c, int *status);

/* Reads a line within @ns; 0, -ETIMEDOUT, -EPIPE, -EINTR. */
int child_read_line(struct child *c, char *line, size_t size, uint64_t ns);

/* Sleeps; -EINTR if we got a signal. */
int pause_for(uint64_t ns);

/* "A B  C" into an argv, NULL at its end, to be freed in one piece. */
char **split_words(const char *text);

#endif /* BRUMM_MC_CHILD_H */
