/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups of processes that are made to be killed: one kind of the living
 * dominates in each, some are mixes. A leader makes all that there is, then
 * everybody sleeps.
 */
#ifndef BRUMM_LIVING_SHAPE_H
#define BRUMM_LIVING_SHAPE_H

#include <stdbool.h>
#include <sys/types.h>

#include "kinds.h"

#define SHAPE_EXTRA	6

/**
 * struct shape_built - what a leader tells when all is there
 * @error: -errno; -EOPNOTSUPP: not possible on this machine
 * @sample: one of its processes that are all alike
 * @copies: how many of these there are
 * @shared: they share the leader's address space
 * @programs: they executed something, and share nothing with each other
 * @extra: what nobody sees by looking at the leader and the sample: open files
 *	and namespaces
 */
struct shape_built {
	int error;
	pid_t sample;
	unsigned int copies;
	bool shared, programs;
	struct shape_extra {
		char kind[16];
		double n;
	} extra[SHAPE_EXTRA];
};

struct shape_build;

/**
 * struct living_shape - one
 * @name: of the shape
 * @kind: that dominates it, "": a mix
 * @n: how many of it, at full size
 * @build: makes it, in the leader; 0 or -errno
 * @later: part of its clean-up comes so long after the last process, ms
 * @cover: what the prices have to expect of it, of what was measured; below 1
 *	where a kind has two costs, and nobody but an attacker has the greater one
 */
struct living_shape {
	const char *name;
	const char *kind;
	unsigned int n;
	int (*build)(struct shape_build *b);
	unsigned int later;
	double cover;
};

extern const struct living_shape living_shapes[];
extern const size_t living_shapes_nr;

/*
 * The leader: does not return. @group: descriptor of the cgroup it is to enter;
 * @cpus: how many of those allowed it may use, 0: all; @out: where to tell.
 */
void shape_lead(const struct living_shape *s, unsigned int n, int group,
		unsigned int cpus, int out) __attribute__((noreturn));

/* ---- for builders ------------------------------------------------------- */

/**
 * struct shape_build - one that is being made
 * @n: how many
 * @built: what is to be told of it
 * @ready: two ends of a pipe by which children say that they are
 * @out: by which the leader does
 */
struct shape_build {
	unsigned int n;
	struct shape_built built;
	int ready[2];
	int out;
};

/* A child that does @fn and sleeps; returns when it does. 0 or -errno. */
int shape_spawn(struct shape_build *b, unsigned int copies,
		int (*fn)(struct shape_build *b));
/* The same of children which leave the descriptors that they inherit open. */
int shape_spawn_open(struct shape_build *b, unsigned int copies,
		     int (*fn)(struct shape_build *b));
/* Notes @n of a kind that nobody sees. */
void shape_extra(struct shape_build *b, const char *kind, double n);

/* memory.c */
int shape_vma_anon(struct shape_build *b);
int shape_vma_file(struct shape_build *b);
int shape_vma_touched(struct shape_build *b);
int shape_anon(struct shape_build *b);
int shape_file(struct shape_build *b);
int shape_shmem(struct shape_build *b);
int shape_shmem_again(struct shape_build *b);
int shape_huge(struct shape_build *b);
int shape_tables(struct shape_build *b);
int shape_tables_deep(struct shape_build *b);
int shape_swap(struct shape_build *b);
/* descriptors.c */
int shape_plain(struct shape_build *b);
int shape_eventfd(struct shape_build *b);
int shape_pipe(struct shape_build *b);
int shape_unix(struct shape_build *b);
int shape_tcp(struct shape_build *b);
int shape_socket(struct shape_build *b);
int shape_uring(struct shape_build *b);
int shape_epoll(struct shape_build *b);
int shape_otherfile(struct shape_build *b);
int shape_dup(struct shape_build *b);
int shape_inherit(struct shape_build *b);

#endif /* BRUMM_LIVING_SHAPE_H */
