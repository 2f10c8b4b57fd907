// SPDX-License-Identifier: GPL-2.0
/* Plans of shapes, and what follows from them: counts. No system call here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "shape-plan.h"

#define PAGE		4096u
#define WINDOW_PAGES	(BRUMM_WINDOW_BYTES / PAGE)

/* Draws 0 .. n - 1. */
static uint32_t below(gsl_rng *rng, uint64_t n)
{
	return (uint32_t)gsl_rng_uniform_int(rng, n);
}

static void fill_in(struct shape_spec *sp)
{
	if (!sp->windows)
		sp->windows = 1;
	if (!sp->width)
		sp->width = 4;
	if (!sp->depth)
		sp->depth = 12;
	if (sp->frames)
		return;
	switch (sp->kind) {
	case SHAPE_MANY_FRAMES:
		sp->frames = sp->n;
		break;
	case SHAPE_RANDOM_PAGES:
		sp->frames = sp->n / 64 ? sp->n / 64 : 1;
		break;
	case SHAPE_RANDOM_RANGES:
		sp->frames = sp->n / 64 > 16 ? sp->n / 64 : 16;
		break;
	default:
		sp->frames = 1;
	}
}

static int verify(const struct shape_spec *sp)
{
	if (!sp->n || sp->kind > SHAPE_CHAIN || sp->depth >= BRUMM_MAX_DEPTH ||
	    (sp->nr_groups && !sp->groups))
		return -EINVAL;
	if (sp->n >= WINDOW_PAGES || sp->frames >= WINDOW_PAGES ||
	    sp->windows > 4096)
		return -ERANGE;
	if (sp->kind == SHAPE_CHAIN && sp->n >= BRUMM_MAX_DEPTH)
		return -ERANGE;
	if (sp->kind == SHAPE_MANY_FRAMES && sp->frames < sp->n)
		return -EINVAL;
	return 0;
}

/* Which window the next target is in. */
static uint32_t window_for(const struct shape *s, gsl_rng *rng)
{
	uint32_t others = s->spec.windows - 1;

	if (!others)
		return 0;
	if (s->spec.kind == SHAPE_RANDOM_PAGES ||
	    s->spec.kind == SHAPE_RANDOM_RANGES)
		return 1 + below(rng, others);
	/* A chain comes back to the first window, others spare it. */
	if (s->spec.kind == SHAPE_CHAIN)
		return (uint32_t)(s->nr % s->spec.windows);
	return 1 + (uint32_t)((s->nr - 1) % others);
}

static uint32_t add(struct shape *s, gsl_rng *rng, uint32_t parent,
		    uint32_t from, uint32_t pages)
{
	struct shape_node *n = &s->nodes[s->nr];

	n->parent = parent;
	n->from = from;
	n->pages = pages;
	n->window = window_for(s, rng);
	n->depth = s->nodes[parent].depth + 1;
	return (uint32_t)s->nr++;
}

/* A child of @parent; of the base: of its page @page. */
static uint32_t add_random(struct shape *s, gsl_rng *rng, uint32_t parent,
			   uint32_t page)
{
	uint32_t pages = s->nodes[parent].pages, length;

	if (s->spec.kind == SHAPE_RANDOM_PAGES)
		return add(s, rng, parent, parent ? 0 : page, 1);
	length = 1 + below(rng, pages);
	return add(s, rng, parent, below(rng, pages - length + 1), length);
}

/* Half of the children have children. */
static void grow(struct shape *s, gsl_rng *rng, uint32_t parent, uint32_t page,
		 unsigned int left)
{
	unsigned int width = 1 + below(rng, s->spec.width);
	uint32_t child;

	while (width-- && s->nr <= s->spec.n) {
		child = add_random(s, rng, parent, page);
		if (left > 1 && below(rng, 2))
			grow(s, rng, child, 0, left - 1);
	}
}

static void derive(struct shape *s, gsl_rng *rng)
{
	uint32_t frames = (uint32_t)s->spec.frames, page = 0, last = 0;

	while (s->nr <= s->spec.n) {
		switch (s->spec.kind) {
		case SHAPE_SINGLE_FRAME:
			add(s, rng, 0, 0, 1);
			break;
		case SHAPE_MANY_FRAMES:
			add(s, rng, 0, page++, 1);
			break;
		case SHAPE_RANDOM_PAGES:
		case SHAPE_RANDOM_RANGES:
			grow(s, rng, 0, page++ % frames,
			     1 + below(rng, s->spec.depth));
			break;
		case SHAPE_RANGE:
			add(s, rng, 0, 0, frames);
			break;
		case SHAPE_CHAIN:
			last = add(s, rng, last, 0, frames);
			break;
		}
	}
}

/* Gives every node a place; the base has one. */
static int place(struct shape *s, gsl_rng *rng)
{
	uint32_t *order = malloc(s->nr * sizeof(*order));
	uint64_t i;
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (i = 0; i < s->nr; i++)
		order[i] = (uint32_t)i;
	if (s->spec.gap)
		gsl_ran_shuffle(rng, order + 1, s->nr - 1, sizeof(*order));
	s->views[0].pages = s->spec.frames;
	for (i = 1; i < s->nr && !err; i++) {
		struct shape_node *n = &s->nodes[order[i]];
		struct shape_view *v = &s->views[n->window];

		if (s->spec.gap)
			v->pages += 1 + below(rng, s->spec.gap);
		n->start = (uint32_t)v->pages;
		v->pages += n->pages;
		if (v->pages > WINDOW_PAGES)
			err = -ERANGE;
	}
	free(order);
	return err;
}

static void sum_up(struct shape *s)
{
	uint64_t i;

	s->cost.nodes = s->nr;
	s->cost.frames = s->spec.frames;
	for (i = 0; i < s->nr; i++)
		s->cost.pages += s->nodes[i].pages;
}

static struct shape *allocate(const struct shape_spec *sp)
{
	struct shape *s = calloc(1, sizeof(*s));
	unsigned int i;

	if (!s)
		return NULL;
	s->spec = *sp;
	s->nodes = calloc(sp->n + 1, sizeof(*s->nodes));
	s->views = calloc(sp->windows, sizeof(*s->views));
	s->sponsors = calloc(sp->n + 1, sizeof(*s->sponsors));
	s->first = calloc(sp->n + 1, sizeof(*s->first));
	for (i = 0; s->views && i < sp->windows; i++)
		s->views[i].fd = -1;
	if (s->nodes && s->views && s->sponsors && s->first)
		return s;
	shape_free(s);
	return NULL;
}

int shape_plan(const struct shape_spec *spec, struct shape **shape)
{
	struct shape_spec sp = *spec;
	struct shape *s;
	gsl_rng *rng;
	int err;

	fill_in(&sp);
	err = verify(&sp);
	if (err)
		return err;
	s = allocate(&sp);
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	if (!s || !rng) {
		gsl_rng_free(rng);
		shape_free(s);
		return -ENOMEM;
	}
	/* 32 bits are what this generator takes; 0 would be its default. */
	gsl_rng_set(rng, (unsigned long)((sp.seed ^ sp.seed >> 32) * 2 + 1));
	s->nodes[0].pages = (uint32_t)sp.frames;
	s->nr = 1;
	derive(s, rng);
	err = place(s, rng);
	gsl_rng_free(rng);
	if (err) {
		shape_free(s);
		return err;
	}
	sum_up(s);
	*shape = s;
	return 0;
}

uint64_t shape_mappings(const struct shape *s)
{
	return s->nr - 1;
}

void shape_cost(const struct shape *s, struct shape_cost *cost)
{
	*cost = s->cost;
}

static void count(const struct shape *s, uint64_t i, struct shape_counts *c)
{
	c->lookup += s->first[i];
	c->map++;
	c->pt += s->nodes[i].pages;
	c->deep += s->nodes[i].depth > 1;
}

void shape_charged(const struct shape *s, uint64_t group,
		   struct shape_counts *c)
{
	uint64_t i;

	*c = (struct shape_counts){ 0 };
	for (i = 0; group && i < s->nr; i++)
		if (s->sponsors[i] == group)
			count(s, i, c);
}

void shape_revoked(const struct shape *s, enum shape_by by, uint64_t group,
		   struct shape_counts *c)
{
	uint64_t i;

	*c = (struct shape_counts){ 0 };
	if (by == SHAPE_BY_RECLAIM) {
		shape_charged(s, group, c);
		return;
	}
	if (by == SHAPE_BY_MUNMAP) {
		c->pt = s->cost.pages;
		return;
	}
	/* A close finds what has its base here; all is derived from it. */
	for (i = by == SHAPE_BY_UNMAP ? 1 : 0; i < s->nr; i++)
		count(s, i, c);
	c->lookup += by == SHAPE_BY_UNMAP || !s->first[0];
}
