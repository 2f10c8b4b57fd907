/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Free and used extents of the memory service's pool.
 *
 * An extent is one malloc'ed node for as long as it exists, whether free or
 * handed out: to give pages back needs no memory and cannot fail. What comes
 * back is dirty, and is cleaned before somebody else gets it: in small steps
 * when there is nothing else to do, or at once when it is needed.
 */
#ifndef LIBBRUMM_POOL_H
#define LIBBRUMM_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct extent {
	struct extent *next;
	uint64_t start;		/* page */
	uint64_t pages;
	uint64_t cleaned;	/* pages of a dirty one that are clean again */
	bool dirty;
};

struct pool {
	struct extent *free;	/* by start */
	uint64_t pages;		/* altogether */
	uint64_t nr_free;
	/* Zero pages: 0, or an error: they are lost to the pool. */
	int (*zero)(void *arg, uint64_t start, uint64_t pages);
	void *arg;
};

int pool_init(struct pool *p, uint64_t pages);
void pool_destroy(struct pool *p);
/* Takes clean pages in at most @max pieces, by start; all or nothing. */
int pool_take(struct pool *p, uint64_t pages, unsigned int max,
	      struct extent **list);
/* Gives a list of extents back. */
void pool_give(struct pool *p, struct extent *list);
/* Cleans at most @pages; returns whether something is left to be cleaned. */
bool pool_clean(struct pool *p, uint64_t pages);

#endif /* LIBBRUMM_POOL_H */
