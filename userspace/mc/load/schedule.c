// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "schedule.h"

/* No closed loop of one thread is faster. */
#define MOST_PER_SECOND	500000

/* Address space only: what is not written takes no memory. */
static int plan_alloc(struct plan *p, uint64_t n, unsigned int legs,
		      unsigned int copies)
{
	uint64_t all = n * legs * copies;
	void *a, *b;

	if (all >= UINT32_MAX)
		return -E2BIG;
	*p = (struct plan){ .capacity = (uint32_t)n, .legs = (uint8_t)legs,
			    .copies = (uint8_t)copies };
	a = mmap(NULL, (n + 1) * sizeof(*p->request), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	b = mmap(NULL, (all + 1) * sizeof(*p->copy), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a != MAP_FAILED)
		p->request = a;
	if (b != MAP_FAILED)
		p->copy = b;
	return p->request && p->copy ? 0 : -ENOMEM;
}

void plan_free(struct plan *p)
{
	uint64_t all = (uint64_t)p->capacity * p->legs * p->copies;

	if (p->request)
		munmap(p->request, (p->capacity + 1ull) * sizeof(*p->request));
	if (p->copy)
		munmap(p->copy, (all + 1) * sizeof(*p->copy));
	*p = (struct plan){ 0 };
}

static unsigned int copies_of(const struct config *c)
{
	return c->hedge_text ? 2 : 1;
}

void schedule_draw(struct request *r, const struct config *c, gsl_rng *rng)
{
	r->key = (uint32_t)gsl_rng_uniform_int(rng, c->keys);
	r->op = gsl_rng_uniform(rng) < c->get_ratio ? OP_GET : OP_SET;
}

/* Two streams, so that the gaps can be had twice: for their sum, and one by one. */
struct draw {
	gsl_rng *gaps, *rest;
	uint64_t seed;
};

static int draw_open(struct draw *d, uint64_t seed)
{
	d->gaps = gsl_rng_alloc(gsl_rng_taus2);
	d->rest = gsl_rng_alloc(gsl_rng_taus2);
	d->seed = seed;
	return d->gaps && d->rest ? 0 : -ENOMEM;
}

static void draw_close(struct draw *d)
{
	if (d->gaps)
		gsl_rng_free(d->gaps);
	if (d->rest)
		gsl_rng_free(d->rest);
}

static void draw_rewind(struct draw *d)
{
	gsl_rng_set(d->gaps, (unsigned long)(2 * d->seed + 1));
	gsl_rng_set(d->rest, (unsigned long)(2 * d->seed + 2));
}

/* One more gap than requests: none is due at the end by construction. */
static double sum_of_gaps(struct draw *d, const struct config *c, uint64_t n)
{
	double sum = 0;
	uint64_t i;

	draw_rewind(d);
	for (i = 0; i <= n; i++)
		sum += model_gap(c->arrivals, d->gaps);
	return sum;
}

static void draw_one(struct draw *d, const struct config *c,
		     const struct share *share, struct request *r)
{
	r->flow = (uint32_t)gsl_rng_uniform_int(d->rest,
			(unsigned long)c->connections * share->ranks);
	schedule_draw(r, c, d->rest);
}

/* The thread of this rank whose request it is, or NULL; its flow is then that of it. */
static struct plan *owner(struct plan *plan, const struct config *c,
			  const struct share *share, struct request *r)
{
	struct plan *p;

	if (r->flow % share->ranks != share->rank)
		return NULL;
	r->flow /= share->ranks;
	p = &plan[r->flow % c->threads];
	r->flow /= c->threads;
	return p;
}

static int count_all(struct plan *plan, const struct config *c,
		     const struct share *share, struct draw *d, uint64_t total)
{
	uint64_t i, n[MAX_THREADS] = { 0 };
	struct plan *p;
	struct request r;
	unsigned int t;
	int err = 0;

	draw_rewind(d);
	for (i = 0; i < total; i++) {
		draw_one(d, c, share, &r);
		p = owner(plan, c, share, &r);
		if (p)
			n[p - plan]++;
	}
	for (t = 0; t < c->threads && !err; t++)
		err = plan_alloc(&plan[t], n[t], c->fanout, copies_of(c));
	return err;
}

int schedule_make(struct plan *plan, const struct config *c,
		  const struct share *share, uint64_t seed, uint64_t duration)
{
	uint64_t i, total = (uint64_t)llround(c->rate * (double)duration / 1e9);
	struct draw d = { 0 };
	struct request r = { 0 };
	struct plan *p;
	double at, scale, phase;
	int err;

	err = draw_open(&d, seed);
	if (!err)
		err = count_all(plan, c, share, &d, total);
	if (err)
		goto out;
	scale = sum_of_gaps(&d, c, total);
	/* Equal gaps: the first and the last are halves of one. */
	phase = c->arrivals == GAP_FIXED ? -0.5 : 0;
	if (phase < 0)
		scale -= 1;
	draw_rewind(&d);
	for (i = 0, at = phase; i < total; i++) {
		at += model_gap(c->arrivals, d.gaps);
		draw_one(&d, c, share, &r);
		p = owner(plan, c, share, &r);
		if (!p)
			continue;
		r.number = i;
		r.intended = (uint64_t)(at / scale * (double)duration);
		r.next = UINT32_MAX;
		p->request[p->n++] = r;
	}
	/* No page fault is to be taken when it is sent. */
	for (i = 0; i < c->threads; i++)
		memset(plan[i].copy, 0, (uint64_t)plan[i].n * plan[i].legs *
					plan[i].copies * sizeof(*plan[i].copy));
out:
	draw_close(&d);
	return err;
}

int schedule_fill(struct plan *plan, const struct config *c,
		  const struct share *share)
{
	/* Where any server can be asked for a key, all have it. */
	unsigned int t, legs = c->fanout > 1 || c->hedge_text ? c->servers : 1;
	struct plan *p;
	uint32_t key, n = 0;
	int err = 0;

	for (t = 0; t < c->threads && !err; t++)
		err = plan_alloc(&plan[t], c->keys / (share->ranks * c->threads) + 1,
				 legs, 1);
	if (err)
		return err;
	for (key = share->rank; key < c->keys; key += share->ranks, n++) {
		p = &plan[n % c->threads];
		p->request[p->n++] = (struct request){
			.number = key, .key = key, .op = OP_SET,
			.next = UINT32_MAX,
		};
	}
	return 0;
}

int schedule_open_end(struct plan *plan, const struct config *c,
		      uint64_t duration)
{
	uint64_t most = MOST_PER_SECOND * (duration / NSEC + 1);
	unsigned int t;
	int err = 0;

	for (t = 0; t < c->threads && !err; t++)
		err = plan_alloc(&plan[t], most, c->fanout, copies_of(c));
	return err;
}
