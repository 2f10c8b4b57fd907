// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

#define FIRST_SPANS	1024
#define FIRST_WHOS	64

/* ---- what spans are sorted by --------------------------------------------- */

enum key { KEY_NONE, KEY_CPU, KEY_TID, KEY_WHAT };

static const enum key key_of_type[ATTR_TYPES] = {
	[ATTR_SLICE] = KEY_CPU,
	[ATTR_IRQ] = KEY_CPU,
	[ATTR_IPI] = KEY_CPU,
	[ATTR_TLB] = KEY_CPU,
	[ATTR_SOFTIRQ] = KEY_CPU,
	[ATTR_GAP] = KEY_CPU,
	[ATTR_LOST] = KEY_NONE,
	[ATTR_FAULT] = KEY_TID,
	[ATTR_MMAP_LOCK] = KEY_TID,
	[ATTR_LOCK] = KEY_TID,
	[ATTR_BRUMM] = KEY_TID,
	[ATTR_WAKE] = KEY_TID,
	[ATTR_ARRIVE] = KEY_WHAT,
	[ATTR_RECV] = KEY_WHAT,
	[ATTR_SEND] = KEY_WHAT,
	[ATTR_REPLY] = KEY_WHAT,
};

static uint64_t key_of(const struct span *s, enum key key)
{
	switch (key) {
	case KEY_CPU:
		return s->cpu;
	case KEY_TID:
		return s->tid;
	case KEY_WHAT:
		return s->what;
	default:
		return 0;
	}
}

static int compare(const struct span *a, const struct span *b, enum key key)
{
	uint64_t x = key_of(a, key), y = key_of(b, key);

	if (x != y)
		return x < y ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static int by_cpu(const void *a, const void *b)
{
	return compare(a, b, KEY_CPU);
}

static int by_tid(const void *a, const void *b)
{
	return compare(a, b, KEY_TID);
}

static int by_what(const void *a, const void *b)
{
	return compare(a, b, KEY_WHAT);
}

static int by_start(const void *a, const void *b)
{
	return compare(a, b, KEY_NONE);
}

static void sort(struct spans *s, enum key key)
{
	static int (*const how[])(const void *, const void *) = {
		[KEY_NONE] = by_start, [KEY_CPU] = by_cpu,
		[KEY_TID] = by_tid, [KEY_WHAT] = by_what,
	};

	s->key = (int)key;
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), how[key]);
}

/* ---- who ------------------------------------------------------------------ */

static size_t hash_of(const struct who *w)
{
	size_t h = w->cgroup * 0x9e3779b97f4a7c15ull, i;

	for (i = 0; i < sizeof(w->comm); i++)
		h = (h ^ (unsigned char)w->comm[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static bool is_who(const struct who *a, const struct who *b)
{
	return a->cgroup == b->cgroup && !memcmp(a->comm, b->comm, sizeof(a->comm));
}

static void hash_in(struct events *e, uint32_t index)
{
	size_t i = hash_of(&e->who[index]);

	while (e->hash[i & (e->hash_size - 1)])
		i++;
	e->hash[i & (e->hash_size - 1)] = index;
}

/* Room for one more. */
static bool who_room(struct events *e)
{
	size_t size = e->who_size ? 2 * e->who_size : FIRST_WHOS;
	struct who *more;
	uint32_t *hash, i;

	if (e->whos < e->who_size)
		return true;
	more = reallocarray(e->who, size, sizeof(*more));
	if (!more)
		return false;
	e->who = more;
	hash = calloc(2 * size, sizeof(*hash));
	if (!hash)
		return false;
	free(e->hash);
	e->hash = hash;
	e->hash_size = 2 * size;
	e->who_size = size;
	if (!e->whos)
		e->who[e->whos++] = (struct who){ "nobody", 0 };
	for (i = 1; i < e->whos; i++)
		hash_in(e, i);
	return true;
}

static uint32_t who_of(struct events *e, const struct attr_slice *s)
{
	struct who w = { .cgroup = s->r.what };
	size_t i, at;

	/* What is behind its end is anything. */
	snprintf(w.comm, sizeof(w.comm), "%.15s", s->comm);
	if (!who_room(e))
		return 0;
	for (i = hash_of(&w);; i++) {
		at = i & (e->hash_size - 1);
		if (!e->hash[at])
			break;
		if (is_who(&e->who[e->hash[at]], &w))
			return e->hash[at];
	}
	e->who[e->whos] = w;
	hash_in(e, (uint32_t)e->whos);
	return (uint32_t)e->whos++;
}

/* ---- records -------------------------------------------------------------- */

static bool push(struct spans *s, const struct span *one)
{
	size_t size = s->size ? 2 * s->size : FIRST_SPANS;
	struct span *more;

	if (s->n == s->size) {
		more = reallocarray(s->v, size, sizeof(*more));
		if (!more)
			return false;
		s->v = more;
		s->size = size;
	}
	s->v[s->n++] = *one;
	return true;
}

static bool is_mark(unsigned int type)
{
	return type == ATTR_RECV || type == ATTR_SEND;
}

/* For one of them there is always room. */
static void refuse(struct events *e, const struct span *s)
{
	struct spans *lost = &e->of[ATTR_LOST];

	e->refused++;
	if (e->refused == 1) {
		push(lost, s);
		e->refusal = lost->n - 1;
	} else if (lost->n > e->refusal) {
		if (s->start < lost->v[e->refusal].start)
			lost->v[e->refusal].start = s->start;
		if (s->end > lost->v[e->refusal].end)
			lost->v[e->refusal].end = s->end;
	}
}

void events_add(struct events *e, const struct attr_record *r, size_t size)
{
	struct span s = { r->start, r->end, r->tid, r->cpu, r->type, r->flags,
			  r->what };
	uint64_t exits = 0;
	bool fine;

	if (size < sizeof(*r) || r->type >= ATTR_TYPES || r->end < r->start)
		return;
	if (r->type == ATTR_SLICE) {
		const struct attr_slice *slice = (const struct attr_slice *)r;

		if (size < sizeof(*slice))
			return;
		exits = slice->exits;
		s.what = who_of(e, slice);
	}
	if (e->nr >= e->most) {
		refuse(e, &s);
		return;
	}
	e->nr++;
	fine = push(&e->of[r->type], &s);
	if (r->type == ATTR_SLICE && r->flags & ATTR_SERVER)
		fine = fine && push(&e->runs, &s);
	if (is_mark(r->type))
		fine = fine && push(&e->marks, &s);
	if (exits && exits < s.end && !(r->flags & ATTR_SERVER)) {
		s.start = exits > s.start ? exits : s.start;
		fine = fine && push(&e->exits, &s);
	}
	if (!fine)
		refuse(e, &s);
}

/* Those of several CPUs become one where they overlap. */
static void unite(struct spans *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->n; i++) {
		if (n && s->v[i].start <= s->v[n - 1].end) {
			if (s->v[i].end > s->v[n - 1].end)
				s->v[n - 1].end = s->v[i].end;
		} else {
			s->v[n++] = s->v[i];
		}
	}
	s->n = n;
}

void events_sort(struct events *e)
{
	unsigned int i;

	for (i = 0; i < ATTR_TYPES; i++)
		sort(&e->of[i], key_of_type[i]);
	unite(&e->of[ATTR_LOST]);
	sort(&e->exits, KEY_CPU);
	sort(&e->runs, KEY_TID);
	sort(&e->marks, KEY_TID);
}

void events_free(struct events *e)
{
	unsigned int i;

	for (i = 0; i < ATTR_TYPES; i++)
		free(e->of[i].v);
	free(e->exits.v);
	free(e->runs.v);
	free(e->marks.v);
	free(e->who);
	free(e->hash);
	*e = (struct events){ 0 };
}

/* ---- looking for ---------------------------------------------------------- */

/* The first of @key, or after it, that starts at @time or later. */
static size_t find(const struct spans *s, uint64_t key, uint64_t time)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		uint64_t k = key_of(&s->v[middle], (enum key)s->key);

		if (k < key || (k == key && s->v[middle].start < time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_key(const struct spans *s, size_t i, uint64_t key)
{
	return i < s->n && key_of(&s->v[i], (enum key)s->key) == key;
}

const struct span *spans_in(const struct spans *s, uint64_t key, uint64_t start,
			    uint64_t end, size_t *n)
{
	size_t from = find(s, key, start), to = find(s, key, end);

	while (from && has_key(s, from - 1, key) && s->v[from - 1].end > start)
		from--;
	*n = to > from ? to - from : 0;
	return s->v + from;
}

const struct span *spans_first(const struct spans *s, uint64_t key, uint64_t from,
			       uint64_t to)
{
	size_t i = find(s, key, from);

	return has_key(s, i, key) && s->v[i].start < to ? &s->v[i] : NULL;
}

const struct span *spans_last(const struct spans *s, uint64_t key, uint64_t from,
			      uint64_t to)
{
	size_t i = find(s, key, to);

	return i && has_key(s, i - 1, key) && s->v[i - 1].start >= from ?
	       &s->v[i - 1] : NULL;
}
