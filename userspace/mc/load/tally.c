// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

/* What is known of a request or a leg when all is over. */
struct event {
	enum outcome outcome;
	uint64_t intended, sent, received;	/* sent: 0: never */
	unsigned int leg;			/* that decided it */
};

int counts_alloc(struct counts *n, const struct config *c, uint64_t duration)
{
	*n = (struct counts){
		.thresholds = c->thresholds, .servers = c->servers,
		.interval = c->interval,
		.intervals = (duration + c->interval - 1) / c->interval,
	};
	n->tally = calloc(1 + n->servers, sizeof(*n->tally));
	n->line = calloc(n->intervals * counts_columns(n), sizeof(*n->line));
	return n->tally && n->line ? 0 : -ENOMEM;
}

void counts_free(struct counts *n)
{
	free(n->tally);
	free(n->line);
	*n = (struct counts){ 0 };
}

/* ---- what became of it --------------------------------------------------- */

static enum outcome outcome_of(const struct copy *copy)
{
	switch (copy->status) {
	case COPY_HIT:
	case COPY_MISS:
	case COPY_STORED:
		return OUTCOME_ANSWERED;
	case COPY_REFUSED:
		return OUTCOME_REFUSED;
	case COPY_LOST:
		return OUTCOME_LOST;
	case COPY_PROTOCOL:
		return OUTCOME_PROTOCOL;
	case COPY_UNSENT:
		return OUTCOME_UNSENT;
	case COPY_TIMED_OUT:
		return OUTCOME_TIMED_OUT;
	}
	return OUTCOME_IN_FLIGHT;
}

/* The copy that a leg is judged by: that which was answered, or else the first. */
static const struct copy *leg_copy(const struct plan *p, uint32_t request,
				   unsigned int leg)
{
	const struct copy *copy = &p->copy[plan_copy(p, request, leg)];

	if (p->copies == 2 && outcome_of(copy + 1) == OUTCOME_ANSWERED)
		return copy + 1;
	return copy;
}

/* When it was sent is when its first copy was: the second is part of the service. */
static struct event leg_event(const struct plan *p, uint32_t request,
			      unsigned int leg)
{
	const struct copy *copy = leg_copy(p, request, leg);

	return (struct event){
		.outcome = outcome_of(copy),
		.intended = p->request[request].intended,
		.sent = p->copy[plan_copy(p, request, leg)].sent,
		.received = copy->received,
		.leg = leg,
	};
}

/*
 * Worst leg counts, a failure more than a time-out more than what is in flight;
 * given up on is a request with its first leg.
 */
static struct event request_event(const struct plan *p, uint32_t request)
{
	struct event e = leg_event(p, request, 0), leg;
	unsigned int i;

	for (i = 1; i < p->legs; i++) {
		leg = leg_event(p, request, i);
		if (!leg.sent || !e.sent)
			e.sent = 0;
		else if (leg.sent > e.sent)
			e.sent = leg.sent;
		if (e.outcome == OUTCOME_ANSWERED) {
			if (leg.outcome != OUTCOME_ANSWERED ||
			    leg.received > e.received) {
				e.received = leg.received;
				e.leg = i;
			}
			e.outcome = leg.outcome;
		} else if (leg.outcome != OUTCOME_ANSWERED) {
			if (leg.received < e.received) {
				e.received = leg.received;
				e.leg = i;
			}
			if (leg.outcome < e.outcome)
				e.outcome = leg.outcome;
		}
	}
	return e;
}

struct decision request_decision(const struct plan *p, uint32_t request)
{
	struct event e = request_event(p, request);
	const struct copy *copy = leg_copy(p, request, e.leg);

	return (struct decision){
		.intended = e.intended,
		.first = p->copy[plan_copy(p, request, e.leg)].sent,
		.sent = copy->sent,
		.received = e.received, .connection = copy->connection,
		.answered = e.outcome == OUTCOME_ANSWERED,
	};
}

/* ---- counting ------------------------------------------------------------ */

static uint64_t since(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static void count_over(struct over *o, const struct event *e, uint64_t t)
{
	uint64_t took = since(e->intended, e->received);

	if (e->sent && since(e->intended, e->sent) > t)
		o->over_lag++;
	if (e->outcome != OUTCOME_ANSWERED) {
		if (took > t)
			o->censored_over++;
		else
			o->censored_under++;
		return;
	}
	if (took > t)
		o->over++;
	if (since(e->sent, e->received) > t)
		o->over_send++;
}

static void count_event(struct tally *t, const struct config *c,
			const struct event *e)
{
	unsigned int i;

	t->outcome[e->outcome]++;
	for (i = 0; i < c->thresholds; i++)
		count_over(&t->threshold[i], e, c->threshold[i]);
	if (e->sent)
		mc_hist_add(&t->lag, since(e->intended, e->sent));
	if (e->outcome != OUTCOME_ANSWERED)
		return;
	mc_hist_add(&t->intended, since(e->intended, e->received));
	mc_hist_add(&t->send, since(e->sent, e->received));
}

static void count_answer(struct tally *t, const struct config *c,
			 const struct copy *copy)
{
	if (copy->status == COPY_STORED) {
		t->stored++;
	} else if (copy->status <= COPY_MISS) {
		t->hits += copy->hits;
		t->misses += c->multiget - copy->hits;
	}
}

static void count_line(struct counts *n, const struct config *c,
		       const struct event *e, uint64_t start)
{
	uint64_t i = (e->intended - start) / n->interval;
	uint64_t took = since(e->intended, e->received);
	bool censored = e->outcome != OUTCOME_ANSWERED;
	unsigned int t;

	if (i >= n->intervals)
		return;
	counts_line(n, LINE_REQUESTS)[i]++;
	counts_line(n, LINE_CENSORED)[i] += censored;
	for (t = 0; t < n->thresholds; t++) {
		counts_line(n, LINE_OVER + 2 * t)[i] += took > c->threshold[t];
		counts_line(n, LINE_OVER + 2 * t + 1)[i] +=
			took > c->threshold[t] || censored;
	}
}

static void count_copies(struct counts *n, const struct plan *p, uint32_t request,
			 unsigned int leg)
{
	const struct copy *copy = &p->copy[plan_copy(p, request, leg)];

	n->sent += copy[0].sent != 0;
	if (p->copies < 2 || copy[1].status == COPY_NONE)
		return;
	n->sent += copy[1].sent != 0;
	n->hedged++;
	n->won += outcome_of(&copy[1]) == OUTCOME_ANSWERED;
}

static void count_request(struct counts *n, const struct config *c,
			  const struct plan *p, uint32_t i,
			  const struct window *window)
{
	struct event e = request_event(p, i), leg;
	const struct copy *copy;
	unsigned int l, server;

	count_event(&n->tally[0], c, &e);
	count_line(n, c, &e, window->start);
	n->sent_in_window += e.sent && e.sent < window->end;
	for (l = 0; l < p->legs; l++) {
		copy = leg_copy(p, i, l);
		leg = leg_event(p, i, l);
		server = p->copy[plan_copy(p, i, l)].connection % n->servers;
		count_event(&n->tally[1 + server], c, &leg);
		count_answer(&n->tally[1 + server], c, copy);
		count_answer(&n->tally[0], c, copy);
		count_copies(n, p, i, l);
	}
}

/* Due, but the thread did not come to it: all of it is in flight. */
static void count_late_start(struct counts *n, const struct config *c,
			     const struct plan *p, uint32_t i,
			     const struct window *window)
{
	struct event e = {
		.outcome = OUTCOME_IN_FLIGHT,
		.intended = p->request[i].intended,
		.received = window->close,
	};
	unsigned int l;

	count_event(&n->tally[0], c, &e);
	count_line(n, c, &e, window->start);
	for (l = 0; l < p->legs; l++)
		count_event(&n->tally[1 + (p->request[i].key + l) % n->servers],
			    c, &e);
}

void counts_add_plan(struct counts *n, const struct config *c,
		     const struct plan *p, uint32_t began,
		     const struct window *window)
{
	uint32_t i;

	for (i = 0; i < p->n && p->request[i].intended < window->end; i++) {
		if (i < began)
			count_request(n, c, p, i, window);
		else
			count_late_start(n, c, p, i, window);
	}
}

/* ---- adding -------------------------------------------------------------- */

static void add(uint64_t *to, const uint64_t *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] += from[i];
}

static void tally_merge(struct tally *to, const struct tally *from)
{
	size_t plain = offsetof(struct tally, intended) / sizeof(uint64_t);

	/* All before the histograms are sums of u64. */
	add((uint64_t *)to, (const uint64_t *)from, plain);
	mc_hist_merge(&to->intended, &from->intended);
	mc_hist_merge(&to->send, &from->send);
	mc_hist_merge(&to->lag, &from->lag);
}

void counts_merge(struct counts *to, const struct counts *from)
{
	unsigned int i;

	for (i = 0; i <= to->servers; i++)
		tally_merge(&to->tally[i], &from->tally[i]);
	add(to->line, from->line, to->intervals * counts_columns(to));
	to->sent += from->sent;
	to->sent_in_window += from->sent_in_window;
	to->hedged += from->hedged;
	to->won += from->won;
}

uint64_t tally_requests(const struct tally *t)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < OUTCOMES; i++)
		n += t->outcome[i];
	return n;
}

/* ---- telling ------------------------------------------------------------- */

static json_t *census_json(const struct tally *t)
{
	const uint64_t *o = t->outcome;

	return json_pack("{s:I, s:I, s:I, s:I, s:I}",
		"requests", (json_int_t)tally_requests(t),
		"answered", (json_int_t)o[OUTCOME_ANSWERED],
		"failed", (json_int_t)(o[OUTCOME_REFUSED] + o[OUTCOME_LOST] +
				       o[OUTCOME_PROTOCOL] + o[OUTCOME_UNSENT]),
		"timed_out", (json_int_t)o[OUTCOME_TIMED_OUT],
		"in_flight", (json_int_t)o[OUTCOME_IN_FLIGHT]);
}

static json_t *thresholds_json(const struct tally *t, const struct config *c)
{
	json_t *list = json_array();
	const struct over *o = t->threshold;
	unsigned int i;

	for (i = 0; list && i < c->thresholds; i++, o++)
		json_array_append_new(list,
			json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}",
				  "t_ns", (json_int_t)c->threshold[i],
				  "over", (json_int_t)o->over,
				  "over_send", (json_int_t)o->over_send,
				  "over_lag", (json_int_t)o->over_lag,
				  "censored_over", (json_int_t)o->censored_over,
				  "censored_under", (json_int_t)o->censored_under));
	return list;
}

json_t *tally_json(const struct tally *t, const struct config *c)
{
	const uint64_t *o = t->outcome;

	return json_pack("{s:o, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I}, s:o, s:o, s:o, s:o}",
		"census", census_json(t),
		"failed",
			"refused", (json_int_t)o[OUTCOME_REFUSED],
			"lost", (json_int_t)o[OUTCOME_LOST],
			"protocol", (json_int_t)o[OUTCOME_PROTOCOL],
			"unsent", (json_int_t)o[OUTCOME_UNSENT],
		"answers",
			"hits", (json_int_t)t->hits,
			"misses", (json_int_t)t->misses,
			"stored", (json_int_t)t->stored,
		"thresholds", thresholds_json(t, c),
		"intended", mc_hist_json(&t->intended),
		"send", mc_hist_json(&t->send),
		"lag", mc_hist_json(&t->lag));
}

static json_t *column_json(const struct counts *n, unsigned int column,
			   uint64_t used)
{
	const uint64_t *v = counts_line(n, column);
	json_t *list = json_array();
	uint64_t i;

	for (i = 0; list && i < used; i++)
		json_array_append_new(list, json_integer((json_int_t)v[i]));
	return list;
}

json_t *line_json(const struct counts *n, uint64_t length)
{
	uint64_t used = (length + n->interval - 1) / n->interval;
	json_t *lower = json_array(), *upper = json_array();
	unsigned int t;

	used = used < n->intervals ? used : n->intervals;
	for (t = 0; t < n->thresholds; t++) {
		json_array_append_new(lower,
			column_json(n, LINE_OVER + 2 * t, used));
		json_array_append_new(upper,
			column_json(n, LINE_OVER + 2 * t + 1, used));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o}",
			 "interval_ns", (json_int_t)n->interval,
			 "requests", column_json(n, LINE_REQUESTS, used),
			 "censored", column_json(n, LINE_CENSORED, used),
			 "over", lower, "over_upper", upper);
}
