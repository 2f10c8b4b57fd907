// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli.h"
#include "terms.h"
#include "weighted.h"

/* Reclaims of nothing, and UNMAPs of a base with one mapping. */
#define NOTHINGS	20u
#define SMALLS		50u
/* Batches of an UNMAP: more than those of the largest shape. */
#define BATCHES		256u
/* How long samples may take to arrive. */
#define ARRIVAL_MS	20
#define ARRIVALS	10u

const char *const terms_parts[TERMS_PARTS] = {
	[PART_LOOKUP] = "lookup",
	[PART_ZAP] = "zap",
	[PART_REMOVE] = "remove",
	[PART_REST] = "rest",
	[PART_FIXED] = "fixed",
	[PART_UNMAP] = "unmap",
};

/**
 * struct batch - nodes revoked together, net ns
 * @nodes, @pages: how many
 * @lookup, @zap, @remove: what they took
 */
struct batch {
	double nodes, pages;
	double lookup, zap, remove;
};

/**
 * struct unmap - one UNMAP, or reclaim
 * @batch: what it did
 * @nr: so many
 * @pairs: of events within
 * @last: the lookup that found nothing, net
 * @rest: what was in no part, net
 * @whole: net
 * @done: all of its samples have come
 */
struct unmap {
	struct batch batch[BATCHES];
	size_t nr;
	unsigned int pairs;
	double last, rest, whole;
	bool done;
};

/**
 * struct phase - under way
 * @p: the probe
 * @t: where it goes
 * @tid: this task, as the kernel calls it
 * @now: the UNMAP that samples come of
 * @nothing: whole reclaims of nothing
 * @nothing_ns, @fixed_ns: as far as they are known
 * @state: of the run that is under way
 * @ns: the same of the terms, by state
 * @term, @of_state, @part: samples
 */
struct phase {
	struct probe *p;
	struct terms *t;
	uint32_t tid;
	struct unmap now;
	struct weighted nothing;
	double nothing_ns, fixed_ns;
	enum measure_state state;
	double ns[MEASURE_STATES][FIT_TERMS];
	struct weighted term[FIT_TERMS];
	struct weighted of_state[MEASURE_STATES][FIT_TERMS];
	struct weighted part[TERMS_PARTS];
};

/* ---- samples ------------------------------------------------------------ */

static void on_lookup(struct unmap *u, const struct event_sample *s, double net)
{
	if (!s->nodes) {
		u->last += net;
		return;
	}
	if (u->nr < BATCHES)
		u->batch[u->nr++] = (struct batch){
			.nodes = (double)s->nodes, .pages = (double)s->pages,
			.lookup = net,
		};
}

static int on_sample(void *arg, const struct event_sample *s)
{
	struct phase *ph = arg;
	const struct probe_cost *c = &ph->t->cost;
	double net = (double)s->ns - c->inside.p50;
	struct unmap *u = &ph->now;
	struct batch *b = u->nr ? &u->batch[u->nr - 1] : NULL;

	if (s->op == EVENT_EMPTY)
		ph->tid = s->tid;
	if (s->tid != ph->tid)
		return 0;
	switch (s->op) {
	case EVENT_LOOKUP:
		u->pairs++;
		on_lookup(u, s, net);
		break;
	case EVENT_ZAP:
		u->pairs++;
		if (b)
			b->zap += net;
		break;
	case EVENT_REMOVE:
		u->pairs++;
		if (b)
			b->remove += net;
		break;
	case EVENT_RECLAIM:
		u->whole = net - u->pairs * c->pair;
		u->done = true;
		break;
	case EVENT_UNMAP:
		u->whole = net - u->pairs * c->pair;
		break;
	case EVENT_REST:
		u->rest = net - u->pairs * (c->pair - c->inside.p50);
		u->done = true;
		break;
	}
	return 0;
}

/* They come in order, soon after the fact. -ETIME: not all did. */
static int fetch(struct phase *ph)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRIVALS && !err && !ph->now.done; i++)
		err = probe_samples(ph->p, i ? ARRIVAL_MS : 0, on_sample, ph);
	return err ? err : ph->now.done ? 0 : -ETIME;
}

/* ---- UNMAPs ------------------------------------------------------------- */

static void watch(void *arg, bool begins)
{
	struct phase *ph = arg;

	if (begins)
		ph->now = (struct unmap){ 0 };
	probe_pause(ph->p, !begins);
}

static int reclaim_nothings(struct phase *ph, const struct measure_options *o)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < NOTHINGS && !err; i++) {
		measure_settle();
		watch(ph, true);
		err = brumm_group_reclaim(o->group);
		watch(ph, false);
		if (!err)
			err = fetch(ph);
		if (!err)
			err = weighted_add(&ph->nothing, ph->now.whole, 1);
	}
	return err;
}

static int unmap_smalls(struct phase *ph, const struct measure_options *o,
			const struct measure *m)
{
	const struct measure_cell cell = {
		.spec = { .kind = SHAPE_SINGLE_FRAME, .n = 1, .touch = true },
		.by = SHAPE_BY_UNMAP_SELF, .state = MEASURE_FRESH, .copies = 1,
	};
	struct fit_run run;
	unsigned int i;
	int err = 0;

	for (i = 0; i < SMALLS && !err; i++) {
		err = measure_once(o, m, &cell, i, &run);
		if (!err)
			err = fetch(ph);
		if (!err)
			err = weighted_add(&ph->part[PART_FIXED],
					   ph->now.rest + ph->now.last, 1);
	}
	return err;
}

static int add_parts(struct phase *ph, const struct unmap *u, double nodes)
{
	struct weighted *to = ph->part;
	int err = weighted_add(&to[PART_REST], u->rest, 1);
	size_t i;

	if (!err)
		err = weighted_add(&to[PART_UNMAP], u->whole / nodes, nodes);
	for (i = 0; i < u->nr && !err; i++) {
		const struct batch *b = &u->batch[i];

		err = weighted_add(&to[PART_LOOKUP], b->lookup / b->nodes,
				   b->nodes);
		if (!err)
			err = weighted_add(&to[PART_ZAP], b->zap / b->pages,
					   b->pages);
		if (!err)
			err = weighted_add(&to[PART_REMOVE],
					   b->remove / b->nodes, b->nodes);
	}
	return err;
}

static int add_term(struct phase *ph, enum fit_term term, double ns,
		    double weight)
{
	int err = weighted_add(&ph->term[term], ns, weight);

	return err ? err : weighted_add(&ph->of_state[ph->state][term], ns,
					weight);
}

/*
 * @rest: of the UNMAP, by node. A batch with more pages than nodes frees frames:
 * what it takes beyond its nodes is for its pages, once it is known of others what
 * a node takes.
 */
static int add_batch(struct phase *ph, const struct batch *b, double rest)
{
	double own = b->lookup + b->remove + rest * b->nodes;
	double zap = b->zap, map = ph->ns[ph->state][FIT_MAP];
	int err = 0;

	if (b->pages <= b->nodes)
		err = add_term(ph, FIT_MAP, own / b->nodes, b->nodes);
	else if (map > 0)
		zap += own - map * b->nodes;
	return err ? err : add_term(ph, FIT_PT, zap / b->pages, b->pages);
}

/* What is left of @ns beyond the other terms, for each of @term. */
static int add_beyond(struct phase *ph, const struct fit_run *run,
		      enum fit_term term, double ns)
{
	struct fit_run others = *run;

	others.count[FIT_SYSCALL] = others.count[term] = 0;
	ns -= fit_predict(ph->ns[ph->state], &others);
	return add_term(ph, term, ns / run->count[term], run->count[term]);
}

static int add_unmap(struct phase *ph, const struct fit_run *run)
{
	const struct unmap *u = &ph->now;
	double nodes = 0, rest;
	size_t i;
	int err;

	for (i = 0; i < u->nr; i++)
		nodes += u->batch[i].nodes;
	if (!nodes)
		return -ENODATA;
	if (run->count[FIT_LOOKUP] > 1)
		return add_beyond(ph, run, FIT_LOOKUP, u->whole - ph->nothing_ns);
	rest = u->rest + u->last - ph->fixed_ns;
	err = add_parts(ph, u, nodes);
	if (!err && run->count[FIT_DEEP] > 0)
		return add_beyond(ph, run, FIT_DEEP, u->whole - ph->fixed_ns);
	for (i = 0; i < u->nr && !err; i++)
		err = add_batch(ph, &u->batch[i], rest / nodes);
	return err;
}

/* In this order, so that what others need is known. */
enum stage { STAGE_FRAME, STAGE_FRAMES, STAGE_TREES, STAGE_BASES, STAGES };

static bool is_of_stage(const struct measure_cell *c, enum stage stage)
{
	static const enum shape_kind kinds[] = {
		[STAGE_FRAME] = SHAPE_SINGLE_FRAME,
		[STAGE_FRAMES] = SHAPE_MANY_FRAMES,
		[STAGE_TREES] = SHAPE_RANDOM_PAGES,
	};

	if (stage == STAGE_BASES)
		return c->copies > 1;
	return c->usual && c->by == SHAPE_BY_UNMAP_SELF &&
	       c->spec.kind == kinds[stage];
}

/* What is known by now. */
static void find_means(struct phase *ph)
{
	struct summary s;
	int state, t;

	for (state = 0; state < MEASURE_STATES; state++) {
		for (t = 0; t < FIT_TERMS; t++) {
			weighted_summarise(&ph->of_state[state][t], &s);
			ph->ns[state][t] = s.n ? s.mean : 0;
		}
	}
}

/* The first round finds everything cold. */
static int run_stage(struct phase *ph, const struct measure_options *o,
		     const struct measure *m, enum stage stage)
{
	unsigned int round;
	struct fit_run run;
	size_t i;
	int err = 0;

	for (round = 0; round <= o->repeat && !err; round++) {
		for (i = 0; i < m->nr && !err; i++) {
			if (!is_of_stage(&m->cells[i], stage))
				continue;
			if (cli_signal())
				return -EINTR;
			ph->state = m->cells[i].state;
			err = measure_once(o, m, &m->cells[i],
					   o->seed + round, &run);
			if (!err)
				err = fetch(ph);
			if (!err && round)
				err = add_unmap(ph, &run);
		}
	}
	find_means(ph);
	return err;
}

/* ---- the whole ---------------------------------------------------------- */

static int run_stages(struct phase *ph, const struct measure_options *o,
		      const struct measure *m)
{
	int err = reclaim_nothings(ph, o), stage;
	struct summary s;

	weighted_summarise(&ph->nothing, &s);
	ph->nothing_ns = s.p50;
	if (!err)
		err = unmap_smalls(ph, o, m);
	weighted_summarise(&ph->part[PART_FIXED], &s);
	ph->fixed_ns = s.p50;
	for (stage = 0; stage < STAGES && !err; stage++)
		err = run_stage(ph, o, m, stage);
	return err;
}

static void finish(struct phase *ph, const struct measure *m)
{
	struct terms *t = ph->t;
	int k, s;

	for (k = 0; k < FIT_TERMS; k++)
		t->far += weighted_summarise(&ph->term[k], &t->term[k]);
	for (s = 0; s < MEASURE_STATES; s++) {
		for (k = 0; k < FIT_TERMS; k++)
			weighted_summarise(&ph->of_state[s][k],
					   &t->state[s][k]);
		t->state[s][FIT_SYSCALL] = m->syscall;
		t->state[s][FIT_PT].sd = NAN;
	}
	for (k = 0; k < TERMS_PARTS; k++)
		weighted_summarise(&ph->part[k], &t->part[k]);
	/*
	 * Whether frames are freed is a matter of the shape: pages do not differ
	 * in that each for itself.
	 */
	t->term[FIT_PT].sd = t->part[PART_ZAP].sd;
	t->term[FIT_SYSCALL] = m->syscall;
}

static void phase_free(struct phase *ph)
{
	int k, s;

	weighted_free(&ph->nothing);
	for (k = 0; k < FIT_TERMS; k++) {
		weighted_free(&ph->term[k]);
		for (s = 0; s < MEASURE_STATES; s++)
			weighted_free(&ph->of_state[s][k]);
	}
	for (k = 0; k < TERMS_PARTS; k++)
		weighted_free(&ph->part[k]);
	free(ph);
}

static int read_losses(struct probe *p, struct terms *t)
{
	struct probe_result r;
	int err = probe_read(p, &r), k;

	if (err)
		return err;
	t->complete = r.complete;
	t->missed = r.missed;
	for (k = 0; k < EVENTS_NR; k++) {
		t->lost += r.op[k].lost;
		t->orphans += r.op[k].orphans;
	}
	return 0;
}

static int run_phase(struct phase *ph, const struct measure_options *o,
		     const struct measure *m)
{
	struct measure_options mine = *o;
	cpu_set_t old;
	int err = probe_cost(ph->p, &ph->t->cost);

	mine.watch = watch;
	mine.watch_arg = ph;
	/* The samples of what was made to learn the cost are of this task. */
	if (!err)
		err = probe_samples(ph->p, ARRIVAL_MS, on_sample, ph);
	if (!err)
		err = probe_reset(ph->p);
	probe_pause(ph->p, true);
	measure_pin(&old);
	if (!err)
		err = run_stages(ph, &mine, m);
	measure_unpin(&old);
	if (!err)
		err = read_losses(ph->p, ph->t);
	if (!err)
		finish(ph, m);
	return err;
}

/* Why there are no probes: to be read behind a colon. */
static int give_up(struct terms *t, int err, const char *why)
{
	const char *what = err == -EPERM ?
			   "not permitted (CAP_BPF, CAP_PERFMON; lockdown)" :
			   err == -ETIME ? "samples did not come" :
			   strerror(-err);

	if (asprintf(&t->why, "%s%s%s", what, why ? ": " : "",
		     why ? why : "") < 0) {
		t->why = NULL;
		return -ENOMEM;
	}
	return 0;
}

static const struct probe_options how = { .group = -1, .samples = true };

int terms_try(struct terms *t)
{
	struct probe *p;
	char *why = NULL;
	int err = probe_open(&how, &p, &why);

	*t = (struct terms){ 0 };
	if (!err)
		probe_close(p);
	else
		err = give_up(t, err, why);
	free(why);
	return err;
}

int terms_measure(const struct measure_options *o, const struct measure *m,
		  struct terms *t)
{
	struct phase *ph = calloc(1, sizeof(*ph));
	char *why = NULL;
	int err;

	*t = (struct terms){ 0 };
	if (!ph)
		return -ENOMEM;
	ph->t = t;
	err = probe_open(&how, &ph->p, &why);
	if (!err) {
		t->rung = probe_rung(ph->p);
		err = run_phase(ph, o, m);
		probe_close(ph->p);
	}
	phase_free(ph);
	if (err && err != -EINTR && err != -ENOMEM)
		err = give_up(t, err, why);
	free(why);
	return err;
}

void terms_free(struct terms *t)
{
	free(t->why);
	t->why = NULL;
}

bool terms_differ(const struct terms *t, enum fit_term term)
{
	const struct summary *fresh = &t->state[MEASURE_FRESH][term];
	const struct summary *idle = &t->state[MEASURE_IDLE][term];

	return term != FIT_SYSCALL && fresh->n && idle->n &&
	       fabs(fresh->mean - idle->mean) > fresh->error + idle->error;
}

void terms_means(const struct terms *t, double ns[FIT_TERMS])
{
	int k;

	for (k = 0; k < FIT_TERMS; k++)
		ns[k] = t->term[k].n ? t->term[k].mean : 0;
	ns[FIT_SYSCALL] = t->term[FIT_SYSCALL].p50;
}

/* Sums by Eq. 1 with @ns / @other, or / UNMAPs that nobody listened to. */
static double of_cell(const struct measure_cell *c, const double ns[FIT_TERMS],
		      const double *other)
{
	double *v = calloc(c->n, sizeof(*v));
	struct summary s = { .p50 = NAN };
	size_t k;

	for (k = 0; v && k < c->n; k++)
		v[k] = fit_predict(ns, &c->runs[k]) /
		       (other ? fit_predict(other, &c->runs[k]) :
				c->runs[k].ns);
	if (v)
		summarise(v, c->n, &s);
	free(v);
	return s.p50;
}

int terms_compare(struct terms *t, const struct measure *m,
		  const double fit[FIT_TERMS])
{
	double ns[FIT_TERMS], *to_fit = calloc(2 * m->nr + 1, sizeof(*to_fit));
	double *to_runs = to_fit ? to_fit + m->nr : NULL;
	size_t i, n = 0;

	if (!to_fit)
		return -ENOMEM;
	terms_means(t, ns);
	for (i = 0; i < m->nr; i++) {
		const struct measure_cell *c = &m->cells[i];

		if (!c->usual || c->by != SHAPE_BY_UNMAP_SELF || !c->n)
			continue;
		to_fit[n] = of_cell(c, ns, fit);
		to_runs[n++] = of_cell(c, ns, NULL);
	}
	summarise(to_fit, n, &t->by_fit);
	summarise(to_runs, n, &t->by_runs);
	free(to_fit);
	return 0;
}
