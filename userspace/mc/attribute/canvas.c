// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdlib.h>

#include "canvas.h"

#define FIRST_PIECES	64

const char *const attr_part_names[PARTS] = {
#define NAME(PART, name) [PART_##PART] = name,
	ATTR_PARTS(NAME)
#undef NAME
};

static bool is_same(const struct piece *a, const struct piece *b)
{
	return a->part == b->part && a->cpu == b->cpu && a->tid == b->tid &&
	       a->who == b->who;
}

/* Adds to the spare pieces [start, end) of @p. */
static void put(struct canvas *c, size_t *n, const struct piece *p, uint64_t start,
		uint64_t end)
{
	struct piece *last = *n ? &c->spare[*n - 1] : NULL, *more;
	size_t size;

	if (start >= end || c->failed)
		return;
	if (last && last->end == start && is_same(last, p)) {
		last->end = end;
		return;
	}
	if (*n == c->spare_size) {
		size = c->spare_size ? 2 * c->spare_size : FIRST_PIECES;
		more = reallocarray(c->spare, size, sizeof(*more));
		if (!more) {
			c->failed = true;
			return;
		}
		c->spare = more;
		c->spare_size = size;
	}
	c->spare[*n] = *p;
	c->spare[*n].start = start;
	c->spare[*n].end = end;
	(*n)++;
}

static void flip(struct canvas *c)
{
	struct piece *piece = c->piece;
	size_t size = c->size;

	c->piece = c->spare;
	c->size = c->spare_size;
	c->spare = piece;
	c->spare_size = size;
}

/* The spare pieces become those that count. */
static void turn(struct canvas *c, size_t n)
{
	if (c->failed)
		return;
	flip(c);
	c->n = n;
}

void canvas_begin(struct canvas *c, uint64_t start, uint64_t end, enum part part)
{
	struct piece all = { .part = part, .cpu = NO_CPU };
	size_t n = 0;

	c->failed = false;
	put(c, &n, &all, start, end);
	turn(c, n);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The last piece is cut, and all that is after @start is put behind it. */
static void set_tail(struct canvas *c, const struct piece *new)
{
	struct piece last = c->piece[c->n - 1];
	size_t n = c->n - 1;

	flip(c);
	put(c, &n, &last, last.start, least(last.end, new->start));
	put(c, &n, new, new->start, least(last.end, new->end));
	put(c, &n, &last, most(new->start, new->end), last.end);
	flip(c);
	if (!c->failed)
		c->n = n;
}

void canvas_set(struct canvas *c, const struct piece *new)
{
	size_t i, n = 0;

	/* In the order of time it is always the last one: all others stay. */
	if (c->n && c->piece[c->n - 1].start <= new->start) {
		set_tail(c, new);
		return;
	}
	for (i = 0; i < c->n; i++) {
		const struct piece *p = &c->piece[i];

		put(c, &n, p, p->start, least(p->end, new->start));
		put(c, &n, new, most(p->start, new->start), least(p->end, new->end));
		put(c, &n, p, most(p->start, new->end), p->end);
	}
	turn(c, n);
}

static bool is_under(const struct layer *l, const struct piece *p,
		     const struct span *s)
{
	return l->over & (1u << p->part) && (!l->by_cpu || p->cpu == s->cpu) &&
	       (!l->by_tid || p->tid == s->tid) &&
	       (!l->matches || l->matches(p, s));
}

/* Of piece @p, what is under spans from the i-th on; the first that may go on. */
static size_t paint(struct canvas *c, size_t *n, const struct layer *l,
		    const struct piece *p, const struct span *s, size_t nr, size_t i)
{
	uint64_t at = p->start;
	struct piece new;
	size_t k;

	while (i < nr && s[i].end <= p->start)
		i++;
	for (k = i; k < nr && s[k].start < p->end; k++) {
		uint64_t from = most(at, s[k].start), to = least(p->end, s[k].end);

		if (from >= to || !is_under(l, p, &s[k]))
			continue;
		put(c, n, p, at, from);
		new = *p;
		new.part = l->part;
		if (l->paints)
			l->paints(&new, &s[k]);
		put(c, n, &new, from, to);
		at = to;
	}
	put(c, n, p, at, p->end);
	return i;
}

void canvas_layer(struct canvas *c, const struct layer *l, const struct span *s,
		  size_t nr)
{
	size_t i, at = 0, n = 0;

	for (i = 0; i < c->n; i++)
		at = paint(c, &n, l, &c->piece[i], s, nr, at);
	turn(c, n);
}

void canvas_layer_found(struct canvas *c, const struct layer *l, canvas_find *find,
			const void *arg)
{
	size_t i, n = 0;

	for (i = 0; i < c->n; i++) {
		const struct piece *p = &c->piece[i];
		const struct span *s = NULL;
		size_t nr = 0;

		if (l->over & 1u << p->part)
			s = find(arg, p, &nr);
		paint(c, &n, l, p, s, nr, 0);
	}
	turn(c, n);
}

void canvas_free(struct canvas *c)
{
	free(c->piece);
	free(c->spare);
	*c = (struct canvas){ 0 };
}
