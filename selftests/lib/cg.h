/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cgroups for tests: all of them below one that cg_sweep() removes after each
 * case, where it checks that nothing is charged to any. A cgroup is known by a
 * descriptor of its folder.
 */
#ifndef BRUMM_TEST_CG_H
#define BRUMM_TEST_CG_H

#include <stdint.h>

#define CG_TOP		"/sys/fs/cgroup"
#define CG_TESTS	CG_TOP "/brumm-test"

/* Numbers of brumm.stat. */
struct cg_counts {
	uint64_t lookup, map, pt;
};

/* Makes @name ("a", "a/b") below CG_TESTS, with the memory controller. */
int cg_make(const char *name);
void cg_enter(int cgroup);
/* To the root cgroup. */
void cg_leave(void);
uint64_t cg_id(int cgroup);
void cg_remove(const char *name);

/* 0 or a negative errno. */
int cg_write(int cgroup, const char *file, const char *text);
/* Length or a negative errno; @text is terminated. */
int cg_read(int cgroup, const char *file, char *text, unsigned int room);
/* A number of a file with one, or of the line that begins with @key. */
int64_t cg_number(int cgroup, const char *file);
int64_t cg_key(int cgroup, const char *file, const char *key);

struct cg_counts cg_counts(int cgroup);

#define CHECK_COUNTS(cgroup, l, m, p)					\
	do {								\
		struct cg_counts c_ = cg_counts(cgroup);		\
		CHECK_EQ(c_.lookup, l);					\
		CHECK_EQ(c_.map, m);					\
		CHECK_EQ(c_.pt, p);					\
	} while (0)

void cg_sweep(void);

#endif /* BRUMM_TEST_CG_H */
