// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "pool.h"

static bool joinable(const struct extent *a, const struct extent *b)
{
	return a->start + a->pages == b->start && a->dirty == b->dirty &&
	       !a->cleaned && !b->cleaned;
}

static void join_next(struct extent *e)
{
	struct extent *n = e->next;

	if (!n || !joinable(e, n))
		return;
	e->pages += n->pages;
	e->next = n->next;
	free(n);
}

static void insert(struct pool *p, struct extent *e)
{
	struct extent **at = &p->free, *before = NULL;

	while (*at && (*at)->start < e->start) {
		before = *at;
		at = &before->next;
	}
	e->next = *at;
	*at = e;
	join_next(e);
	if (before)
		join_next(before);
}

int pool_init(struct pool *p, uint64_t pages)
{
	struct extent *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->pages = pages;
	p->free = e;
	p->pages = pages;
	p->nr_free = pages;
	return 0;
}

void pool_destroy(struct pool *p)
{
	struct extent *e;

	while ((e = p->free)) {
		p->free = e->next;
		free(e);
	}
}

/* Cleans at most @pages of the extent at @at; false: it is lost and gone. */
static bool clean(struct pool *p, struct extent **at, uint64_t pages)
{
	struct extent *e = *at;

	if (pages > e->pages - e->cleaned)
		pages = e->pages - e->cleaned;
	if (p->zero(p->arg, e->start + e->cleaned, pages)) {
		p->pages -= e->pages;
		p->nr_free -= e->pages;
		*at = e->next;
		free(e);
		return false;
	}
	e->cleaned += pages;
	if (e->cleaned == e->pages) {
		e->dirty = false;
		e->cleaned = 0;
	}
	return true;
}

bool pool_clean(struct pool *p, uint64_t pages)
{
	struct extent **at = &p->free, *e;

	while (*at && !(*at)->dirty)
		at = &(*at)->next;
	if (!*at)
		return false;
	e = *at;
	if (clean(p, at, pages) && !e->dirty) {
		*at = e->next;
		insert(p, e);
	}
	return true;
}

/* Where to take from next: what fits as a whole, the cleaner the better. */
static struct extent **choose(struct pool *p, uint64_t pages)
{
	struct extent **at, **best = NULL;
	int score, best_score = -1;

	for (at = &p->free; *at; at = &(*at)->next) {
		score = 2 * ((*at)->pages >= pages) + !(*at)->dirty;
		if (score < best_score ||
		    (score == best_score && (score >= 2 ||
					     (*at)->pages <= (*best)->pages)))
			continue;
		best = at;
		best_score = score;
	}
	return best;
}

/* Cuts the first @pages off, which become an extent of their own. */
static struct extent *cut(struct extent **at, uint64_t pages)
{
	struct extent *e = *at, *rest;

	if (e->pages == pages) {
		*at = e->next;
		return e;
	}
	rest = calloc(1, sizeof(*rest));
	if (!rest)
		return NULL;
	*rest = (struct extent){
		.next = e->next,
		.start = e->start + pages,
		.pages = e->pages - pages,
		.cleaned = e->cleaned > pages ? e->cleaned - pages : 0,
		.dirty = e->dirty,
	};
	*at = rest;
	join_next(rest);
	e->pages = pages;
	if (e->cleaned >= pages) {
		e->cleaned = 0;
		e->dirty = false;
	}
	return e;
}

int pool_take(struct pool *p, uint64_t pages, unsigned int max,
	      struct extent **list)
{
	struct extent **at, **tail = list, *e;
	uint64_t n;

	*list = NULL;
	if (pages > p->nr_free)
		return -ENOMEM;
	while (pages && max) {
		at = choose(p, pages);
		if (!at)
			break;
		n = (*at)->pages < pages ? (*at)->pages : pages;
		e = cut(at, n);
		if (!e)
			break;
		/* Only what is needed, so that nobody waits for more. */
		if (e->dirty && !clean(p, &e, UINT64_MAX))
			continue;
		e->next = NULL;
		*tail = e;
		tail = &e->next;
		p->nr_free -= n;
		pages -= n;
		max--;
	}
	if (!pages)
		return 0;
	/* They are as clean as they were. */
	while ((e = *list)) {
		*list = e->next;
		p->nr_free += e->pages;
		insert(p, e);
	}
	return -ENOMEM;
}

void pool_give(struct pool *p, struct extent *list)
{
	struct extent *e;

	while ((e = list)) {
		list = e->next;
		e->dirty = true;
		e->cleaned = 0;
		p->nr_free += e->pages;
		insert(p, e);
	}
}
