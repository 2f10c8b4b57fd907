/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device as the tests use it: raw ioctls, offsets and lengths in pages,
 * results 0 (or a descriptor) or a negative errno.
 */
#ifndef BRUMM_TEST_DEV_H
#define BRUMM_TEST_DEV_H

#include <stdint.h>

#include "../../module/uapi/brumm.h"

#define PAGE		4096ULL
#define WINDOW_PAGES	(BRUMM_WINDOW_BYTES / PAGE)

#define R	BRUMM_RIGHT_R
#define W	BRUMM_RIGHT_W
#define X	BRUMM_RIGHT_X
#define D	BRUMM_RIGHT_D
#define RW	(R | W)
#define RWD	(R | W | D)
#define ALL	BRUMM_RIGHTS_ALL

#define SELF	(-1)		/* as brumm_map.fd: the window itself */

/* Checks and hooks of a program that uses the device: call it first. */
void dev_program(void);

int dev_ioctl(int fd, unsigned long cmd, void *arg);
int dev_open(void);
/* REQUIREs that it works. */
int win_open(void);
int win_open_in(int cgroup);
/* A window with fresh frames at pages 0 .. @pages - 1. */
int win_with(uint64_t pages);

int dev_info(int w, struct brumm_info *info);
int dev_alloc(int w, uint64_t page, uint64_t pages);
int dev_gate(int w, uint64_t page, uint64_t pages, uint32_t flags);
int dev_map(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
	    uint32_t rights);
int dev_map_flags(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
		  uint32_t rights, uint32_t flags);
int dev_map_for(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
		uint32_t rights, int cgroup);
int dev_grant(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
	      uint32_t rights);
/* UNMAP: what was derived; with the range itself; only some rights. */
int dev_unmap(int w, uint64_t page, uint64_t pages);
int dev_unmap_self(int w, uint64_t page, uint64_t pages);
int dev_unmap_flags(int w, uint64_t page, uint64_t pages, uint32_t flags,
		    uint32_t rights, struct brumm_unmap *out);
int dev_query(int w, uint64_t page, uint32_t flags, struct brumm_query *q);
/* -ENOENT, or the rights, depth or number of descendants at a page. */
int64_t dev_rights(int w, uint64_t page);
int64_t dev_depth(int w, uint64_t page);
int64_t dev_count(int w, uint64_t page);
/* Number of mappings in the window. */
int64_t dev_nodes(int w);

/* The window's memory; REQUIREs that it works. */
void *win_mmap(int w, uint64_t pages, int prot);
void *win_mmap_at(int w, uint64_t page, uint64_t pages, int prot);
/* As the system call: NULL and errno. */
void *dev_mmap(int w, uint64_t page, uint64_t pages, int prot);

static inline uint32_t *cell(void *base, uint64_t page, unsigned int word)
{
	return (uint32_t *)((char *)base + page * PAGE) + word;
}

/*
 * Accesses that may fail: 0, or the signal they got (SIGBUS, SIGSEGV). They
 * work in any thread; the handlers stay installed.
 */
void guard_init(void);
int peek(const uint32_t *p, uint32_t *value);
int poke(uint32_t *p, uint32_t value);
/* Calls the code at @p. */
int call(const void *p);

#define CHECK_SIG(got, want) __extension__ ({				\
	int sig_ = (got), want_ = (want);				\
	if (sig_ != want_)						\
		tap_fail(__FILE__, __LINE__, "%s: signal %d, want %d",	\
			 #got, sig_, want_);				\
	sig_ == want_;							\
})

/* Everything that stands in some windows, for "nothing has changed". */
struct dump {
	uint32_t nr, room;
	struct dump_node {
		uint32_t window;
		struct brumm_query q;
	} *nodes;
};

void dump_take(struct dump *d, const int *windows, unsigned int nr);
/* true if they are the same; tells the first difference otherwise. */
int dump_same(const struct dump *a, const struct dump *b);
void dump_free(struct dump *d);

/* References to the module: open windows, gates, mappings. */
long module_refs(void);
/* Objects in slab caches of the module, -1: unknown. */
long module_objects(void);

#endif /* BRUMM_TEST_DEV_H */
