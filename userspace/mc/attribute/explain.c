// SPDX-License-Identifier: GPL-2.0
/*
 * First what the server's thread did while the request was there: it ran, waited for a
 * CPU, or slept. Then, layer by layer, who or what had the CPU instead: each layer
 * takes from those before it, the innermost comes last.
 */
#define _GNU_SOURCE
#include <string.h>

#include "explain.h"

#define SOFTIRQ_NET_TX	2
#define SOFTIRQ_NET_RX	3

/* Time in which the server's thread is on a CPU, for this request or another one. */
#define RUNS	(PART_BIT(QUEUE) | PART_BIT(SERVER) | PART_BIT(SEND))
#define WAITS	(PART_BIT(WAKE_UP) | PART_BIT(RUN_QUEUE))
#define ITS_OWN	(RUNS | PART_BIT(BLOCKED))
#define OTHERS	(PART_BIT(RUN_QUEUE) | PART_BIT(TEARDOWN) | PART_BIT(BRUMM))

static void set(struct canvas *c, uint64_t start, uint64_t end, enum part part,
		uint16_t cpu, uint32_t tid)
{
	struct piece p = { start, end, part, cpu, tid, 0 };

	if (start < end)
		canvas_set(c, &p);
}

/* What of the thread's own work is not for this request, or to send the answer. */
static void set_phase(struct canvas *c, uint64_t start, uint64_t end, enum part part)
{
	struct layer l = { .part = part, .over = PART_BIT(SERVER) };
	struct span s = { .start = start, .end = end };

	canvas_layer(c, &l, &s, 1);
}

/* ---- the request's way ---------------------------------------------------- */

/* When it arrived, was read and answered; and which thread it was. */
static bool find_marks(const struct events *e, const struct leg *l,
		       struct finding *f, uint64_t *sent_back)
{
	uint64_t end = l->received + 1;
	const struct span *arrived, *read, *s;

	arrived = spans_first(&e->of[ATTR_ARRIVE], l->ports, l->sent, end);
	if (!arrived)
		return false;
	f->arrived = arrived->start;
	f->answered = l->received;
	s = l->answered ? spans_last(&e->of[ATTR_REPLY], l->ports, f->arrived, end) :
			  NULL;
	if (s)
		f->answered = s->start;
	read = spans_first(&e->of[ATTR_RECV], l->ports, f->arrived, f->answered);
	f->read = read ? read->start : 0;
	/* Not read yet: whoever read from it before, or will. */
	if (!read)
		read = spans_last(&e->of[ATTR_RECV], l->ports, 0, f->arrived);
	if (!read)
		read = spans_first(&e->of[ATTR_RECV], l->ports, f->arrived, UINT64_MAX);
	if (!read)
		return false;
	f->tid = read->tid;
	s = f->read ? spans_last(&e->of[ATTR_SEND], l->ports, f->read,
				 f->answered + 1) : NULL;
	*sent_back = s ? s->start : f->answered;
	return true;
}

/* ---- the server's thread -------------------------------------------------- */

/*
 * Since when it works on no other connection's request. That begins when it is read,
 * maybe before ours came, where ours never was.
 */
static uint64_t queue_end(const struct events *e, const struct leg *l,
			  const struct finding *f)
{
	uint64_t end = f->read ?: f->answered, to = end;
	uint64_t from = f->read ? f->arrived : 0;
	const struct span *s;

	for (; (s = spans_last(&e->marks, f->tid, from, to)); to = s->start) {
		if (s->what == l->ports)
			continue;
		if (s->type == ATTR_RECV)
			return end;
		return s->start > f->arrived ? s->start : f->arrived;
	}
	return f->arrived;
}

/* Was it at a request when it stopped to run at @at? */
static bool was_serving(const struct events *e, uint32_t tid, uint64_t at)
{
	const struct span *s = spans_last(&e->marks, tid, 0, at + 1);

	return s && s->type == ATTR_RECV;
}

/*
 * Off its CPU in [start, end), since the slice @last (NULL: not known), until it gets
 * on @cpu (NO_CPU: it does not).
 */
static void set_off(struct canvas *c, const struct events *e,
		    const struct finding *f, const struct span *last,
		    uint64_t start, uint64_t end, uint16_t cpu)
{
	unsigned int state = last ? last->flags & ATTR_STATE : ATTR_SLEEPS;
	uint64_t since = last ? last->end : start, ready = start;
	const struct span *wake = spans_first(&e->of[ATTR_WAKE], f->tid, since,
						end + 1);
	enum part part = PART_WAKE_UP;

	if (state == ATTR_STOPPED)
		part = PART_STOPPED;
	else if (was_serving(e, f->tid, since))
		part = PART_BLOCKED;
	/* Not woken, though it runs again: it did not sleep. */
	if (state != ATTR_RUNNABLE && wake)
		ready = wake->start > start ? wake->start : start;
	else if (state != ATTR_RUNNABLE && cpu == NO_CPU)
		ready = end;
	if (cpu == NO_CPU && last)
		cpu = last->cpu;
	set(c, start, ready, part, NO_CPU, 0);
	set(c, ready, end, PART_WAKE_UP, cpu, 0);
}

/* What the thread did from when the request arrived until it was answered. */
static void set_thread(struct canvas *c, const struct events *e,
		       struct finding *f)
{
	uint64_t at = f->arrived;
	size_t n, i;
	const struct span *run = spans_in(&e->runs, f->tid, at, f->answered, &n);
	const struct span *last = spans_last(&e->runs, f->tid, 0, at);

	for (i = 0; i < n; i++) {
		uint64_t end = run[i].end < f->answered ? run[i].end : f->answered;

		if (run[i].start > at) {
			set_off(c, e, f, last, at, run[i].start, run[i].cpu);
			at = run[i].start;
		}
		set(c, at, end, PART_SERVER, run[i].cpu, f->tid);
		if (f->cpu == NO_CPU || run[i].start <= f->read)
			f->cpu = run[i].cpu;
		last = &run[i];
		at = end;
	}
	if (at < f->answered) {
		run = spans_first(&e->runs, f->tid, at, UINT64_MAX);
		set_off(c, e, f, last, at, f->answered, run ? run->cpu : NO_CPU);
	}
}

/* ---- layers --------------------------------------------------------------- */

static void set_who(struct piece *p, const struct span *s)
{
	p->tid = s->tid;
	p->who = (uint32_t)s->what;
}

/* An answer is received in a softirq of whoever sends it. */
static bool is_not_sending(const struct piece *p, const struct span *s)
{
	return p->part != PART_SEND ||
	       (s->what != SOFTIRQ_NET_RX && s->what != SOFTIRQ_NET_TX);
}

/* Asleep, if not on a CPU or waiting for one. */
static bool is_not_ready(const struct piece *p, const struct span *s)
{
	(void)s;
	return p->part != PART_WAKE_UP || p->cpu == NO_CPU;
}

/* All CPUs that the thread was on, or waited for, and all who were there. */
static void paint(struct canvas *c, const struct spans *s, const struct layer *l,
		  uint64_t start, uint64_t end)
{
	size_t dones = 0, i, k, n;
	const struct span *v;
	uint16_t done[64];

	for (i = 0; i < c->n; i++) {
		uint16_t cpu = c->piece[i].cpu;

		for (k = 0; k < dones && done[k] != cpu; k++)
			;
		if (cpu == NO_CPU || k < dones || dones == 64)
			continue;
		done[dones++] = cpu;
		v = spans_in(s, cpu, start, end, &n);
		canvas_layer(c, l, v, n);
		i = (size_t)-1;
	}
}

static const struct span *find_operations(const void *arg, const struct piece *p,
					  size_t *n)
{
	const struct events *e = arg;

	return p->tid ? spans_in(&e->of[ATTR_BRUMM], p->tid, p->start, p->end, n) : NULL;
}

/* Those who ran instead: by thread, since what they did is sorted so. */
static void paint_others(struct canvas *c, const struct events *e)
{
	static const struct layer brumm = {
		.part = PART_BRUMM, .over = PART_BIT(RUN_QUEUE) | PART_BIT(TEARDOWN),
		.by_tid = true,
	};

	if (e->of[ATTR_BRUMM].n)
		canvas_layer_found(c, &brumm, find_operations, e);
}

/* What is within the thread's own work, or what it sleeps for. */
static void paint_own(struct canvas *c, const struct events *e,
		      const struct finding *f)
{
	static const struct { unsigned int type; enum part part; } own[] = {
		{ ATTR_FAULT, PART_PAGE_FAULT }, { ATTR_BRUMM, PART_BRUMM },
		{ ATTR_LOCK, PART_BLOCKED }, { ATTR_MMAP_LOCK, PART_MMAP_LOCK },
	};
	size_t i, n;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct layer l = {
			.part = own[i].part, .matches = is_not_ready,
			.over = ITS_OWN | PART_BIT(WAKE_UP) | PART_BIT(PAGE_FAULT),
		};
		const struct span *v = spans_in(&e->of[own[i].type], f->tid,
						f->arrived, f->answered, &n);

		canvas_layer(c, &l, v, n);
	}
}

/* What has the CPU, whoever runs. */
static void paint_interrupts(struct canvas *c, const struct events *e,
			     const struct finding *f)
{
	static const unsigned int busy = ITS_OWN | WAITS | OTHERS |
		PART_BIT(PAGE_FAULT) | PART_BIT(MMAP_LOCK);
	static const struct layer gap = {
		.part = PART_GAP, .over = busy, .by_cpu = true,
	};
	static const struct layer softirq = {
		.part = PART_SOFTIRQ, .over = busy | PART_BIT(GAP), .by_cpu = true,
		.by_tid = true, .matches = is_not_sending,
	};
	static const struct { unsigned int type; enum part part; } irqs[] = {
		{ ATTR_IRQ, PART_IRQ }, { ATTR_IPI, PART_IPI }, { ATTR_TLB, PART_TLB },
	};
	size_t i;

	paint(c, &e->of[ATTR_GAP], &gap, f->arrived, f->answered);
	paint(c, &e->of[ATTR_SOFTIRQ], &softirq, f->arrived, f->answered);
	for (i = 0; i < sizeof(irqs) / sizeof(irqs[0]); i++) {
		struct layer irq = {
			.part = irqs[i].part, .by_cpu = true,
			.over = busy | PART_BIT(GAP) | PART_BIT(SOFTIRQ),
		};

		paint(c, &e->of[irqs[i].type], &irq, f->arrived, f->answered);
	}
}

void explain(const struct events *e, const struct leg *l, struct canvas *c,
	     struct finding *f)
{
	static const struct layer others = {
		.part = PART_RUN_QUEUE, .over = PART_BIT(WAKE_UP), .by_cpu = true,
		.paints = set_who,
	};
	static const struct layer exits = {
		.part = PART_TEARDOWN, .over = PART_BIT(RUN_QUEUE), .by_cpu = true,
		.by_tid = true,
	};
	uint64_t first, sent_back, queued;
	size_t lost;

	*f = (struct finding){ .cpu = NO_CPU };
	canvas_begin(c, l->intended, l->received, PART_UNATTRIBUTED);
	if (!l->sent) {
		f->known = KNOWN_UNSENT;
		set(c, l->intended, l->received, PART_CLIENT_LAG, NO_CPU, 0);
		return;
	}
	first = l->first && l->first < l->sent ? l->first : l->sent;
	set(c, l->intended, first, PART_CLIENT_LAG, NO_CPU, 0);
	set(c, first, l->sent, PART_HEDGE, NO_CPU, 0);
	spans_in(&e->of[ATTR_LOST], 0, l->sent, l->received, &lost);
	if (lost) {
		f->known = KNOWN_LOST;
		return;
	}
	if (!l->ports || !find_marks(e, l, f, &sent_back)) {
		f->known = KNOWN_NOT;
		return;
	}
	set(c, l->sent, f->arrived, PART_NETWORK, NO_CPU, 0);
	/* In the order of time, so that each is set at once. */
	set_thread(c, e, f);
	set(c, f->answered, l->received, PART_CLIENT_RECEIVE, NO_CPU, 0);
	queued = queue_end(e, l, f);
	set_phase(c, f->arrived, queued, PART_QUEUE);
	if (f->read)
		set_phase(c, sent_back, f->answered, PART_SEND);
	paint(c, &e->of[ATTR_SLICE], &others, f->arrived, f->answered);
	paint(c, &e->exits, &exits, f->arrived, f->answered);
	paint_others(c, e);
	paint_own(c, e, f);
	paint_interrupts(c, e, f);
}
