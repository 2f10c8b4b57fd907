// SPDX-License-Identifier: GPL-2.0
/* What a worker sends: requests when they are due, second copies, and their end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "worker.h"

/* So many are sent before answers are looked at again. */
#define BATCH		32
#define UDP_HEADER	8
#define UDP_NUMBERS	65536u

void in_flight_change(struct worker *w, int change, uint64_t at)
{
	struct effort *e = &w->effort;

	if (w->in_flight_since)
		e->in_flight += (double)w->in_flight *
				((double)at - (double)w->in_flight_since);
	w->in_flight_since = at;
	w->in_flight += (uint32_t)change;
	if (w->in_flight > e->max_in_flight)
		e->max_in_flight = w->in_flight;
}

/* ---- a connection -------------------------------------------------------- */

/* All before @c->accepted was passed on by a call that began at @at. */
static void mark_sent(struct worker *w, struct conn *c, uint64_t at)
{
	struct pending *p;
	struct copy *copy;

	while (c->unsent != c->tail) {
		p = conn_at(c, c->unsent);
		if (p->end > c->accepted)
			break;
		c->unsent++;
		copy = &p->plan->copy[p->copy];
		copy->sent = at;
		if (copy->status == COPY_IN_FLIGHT && p->plan == w->plan)
			in_flight_change(w, 1, at);
	}
}

void send_flush(struct worker *w, struct conn *c)
{
	struct buffer *b = &c->out;
	uint64_t at;
	ssize_t n;

	while (b->start < b->end) {
		at = cli_now();
		n = send(c->fd, b->data + b->start, b->end - b->start,
			 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		b->start += (size_t)n;
		c->accepted += (uint64_t)n;
		mark_sent(w, c, at);
	}
	if (b->start == b->end) {
		b->start = b->end = 0;
	} else if (errno != EAGAIN) {
		conn_lost(w, c);
		return;
	}
	if (c->want_out != (b->start < b->end)) {
		c->want_out = !c->want_out;
		watch_conn(w, c, EPOLL_CTL_MOD);
	}
}

/* One packet for one copy. Whether it went out. */
static bool send_packet(struct worker *w, struct conn *c, struct plan *p,
			uint32_t copy, size_t bytes, char *packet)
{
	struct pending *slot = &c->slot[c->number];
	uint64_t at = cli_now();

	/* 65,536 later, and it still waits: the number would mean two. */
	if (slot->plan && slot->plan->copy[slot->copy].status == COPY_IN_FLIGHT)
		return false;
	memset(packet, 0, UDP_HEADER);
	packet[0] = (char)(c->number >> 8);
	packet[1] = (char)c->number;
	packet[5] = 1;
	if (send(c->fd, packet, bytes + UDP_HEADER, MSG_NOSIGNAL) < 0)
		return false;
	*slot = (struct pending){ p, copy, 0 };
	c->number++;
	p->copy[copy].sent = at;
	in_flight_change(w, 1, at);
	return true;
}

/* Begins a copy on a connection. It is sent by send_flush(). */
static void begin_copy(struct worker *w, struct plan *p, struct request *r,
		       uint32_t index, struct conn *c)
{
	size_t head = c->udp ? UDP_HEADER : 0, bytes;
	struct copy *copy = &p->copy[index];
	struct pending pending = { p, index, 0 };
	char *to;

	*copy = (struct copy){
		.connection = (uint16_t)(c - w->conn),
		.keys = r->op == OP_GET ? (uint8_t)w->config->multiget : 1,
		.status = COPY_IN_FLIGHT,
	};
	to = c->state == CONN_UP ?
	     buffer_room(&c->out, head + proto_room(w->config, w->keys, r)) : NULL;
	if (!to || (!c->udp && conn_push(c, &pending))) {
		copy_done(w, p, index, COPY_UNSENT, w->now);
		return;
	}
	bytes = proto_write(w->config, w->keys, r, p->id + index, to + head);
	if (c->udp) {
		if (!send_packet(w, c, p, index, bytes, to))
			copy_done(w, p, index, COPY_UNSENT, w->now);
		return;
	}
	c->out.end += bytes;
	c->queued += bytes;
	conn_at(c, c->tail - 1)->end = c->queued;
}

/* ---- requests ------------------------------------------------------------ */

static unsigned int server_of(const struct worker *w, const struct request *r,
			      unsigned int leg)
{
	return (r->key + leg) % w->config->servers;
}

static struct conn *conn_of(struct worker *w, unsigned int flow,
			    unsigned int server)
{
	return &w->conn[flow * w->config->servers + server];
}

/* Hands all legs of a request to its connections. */
static void issue(struct worker *w, uint32_t i)
{
	struct plan *p = w->plan;
	struct request *r = &p->request[i];
	unsigned int leg, copy;
	struct conn *c;

	r->issued = true;
	w->flow[r->flow].under_way++;
	for (leg = 0; leg < p->legs; leg++) {
		for (copy = 1; copy < p->copies; copy++)
			p->copy[plan_copy(p, i, leg) + copy].status = COPY_NONE;
	}
	for (leg = 0; leg < p->legs; leg++) {
		c = conn_of(w, r->flow, server_of(w, r, leg));
		begin_copy(w, p, r, plan_copy(p, i, leg), c);
		if (!c->udp && c->state == CONN_UP && !c->want_out)
			send_flush(w, c);
	}
}

/* A request that waits has no copy on the wire, but is in flight. */
static void defer(struct worker *w, uint32_t i)
{
	struct plan *p = w->plan;
	struct flow *f = &w->flow[p->request[i].flow];
	unsigned int leg;

	for (leg = 0; leg < p->legs; leg++)
		p->copy[plan_copy(p, i, leg)] = (struct copy){
			.status = COPY_IN_FLIGHT,
			.connection = (uint16_t)(conn_of(w, p->request[i].flow,
				server_of(w, &p->request[i], leg)) - w->conn),
		};
	p->request[i].next = UINT32_MAX;
	if (f->first == UINT32_MAX)
		f->first = i;
	else
		p->request[f->last].next = i;
	f->last = i;
}

static void begin(struct worker *w, uint32_t i)
{
	struct request *r = &w->plan->request[i];

	r->open = w->plan->legs;
	w->open++;
	if (w->phase->closed &&
	    w->flow[r->flow].under_way >= w->phase->depth)
		defer(w, i);
	else
		issue(w, i);
}

/* The next request of a loop that takes them as fast as it goes. */
static bool take_next(struct worker *w, unsigned int flow)
{
	const struct phase *ph = w->phase;
	struct plan *p = w->plan;
	struct request *r = &p->request[w->next];

	if (ph->drawn && w->next == p->capacity)
		w->effort.exhausted = true;
	if (w->now >= ph->end || w->next == (ph->drawn ? p->capacity : p->n))
		return false;
	if (ph->drawn) {
		schedule_draw(r, w->config, w->rng);
		r->number = ((uint64_t)w->next * w->config->threads + w->index) *
			    w->share.ranks + w->share.rank;
		p->n++;
	}
	w->now = cli_now();
	r->flow = flow;
	r->intended = w->now;
	begin(w, w->next++);
	return true;
}

static bool all_up(struct worker *w, unsigned int flow)
{
	unsigned int s;

	for (s = 0; s < w->config->servers; s++) {
		if (conn_of(w, flow, s)->state != CONN_UP)
			return false;
	}
	return true;
}

/* A connection of a closed loop has room. */
static void go_on(struct worker *w, unsigned int flow)
{
	struct flow *f = &w->flow[flow];
	struct request *r;
	uint32_t i;

	/* Or what has no time would fail at once, and the next, without an end. */
	if (w->phase->unpaced && !all_up(w, flow))
		return;
	while (f->under_way < w->phase->depth) {
		if (w->phase->unpaced) {
			if (!take_next(w, flow) || !all_up(w, flow))
				return;
			continue;
		}
		i = f->first;
		if (i == UINT32_MAX)
			return;
		r = &w->plan->request[i];
		f->first = r->next;
		if (r->open)	/* or it has waited for too long */
			issue(w, i);
	}
}

static bool send_unpaced(struct worker *w)
{
	uint32_t before = w->next;
	unsigned int f;

	for (f = 0; f < w->flows; f++)
		go_on(w, f);
	return w->next != before;
}

bool send_due(struct worker *w)
{
	struct plan *p = w->plan;
	uint32_t before = w->next;
	unsigned int f;

	if (w->phase->unpaced)
		return send_unpaced(w);
	while (w->next < p->n && w->next - before < BATCH &&
	       p->request[w->next].intended <= w->now) {
		begin(w, w->next++);
		w->now = cli_now();
	}
	for (f = 0; w->phase->closed && f < w->flows; f++)
		go_on(w, f);
	return w->next != before;
}

/* ---- second copies, time-outs -------------------------------------------- */

/* Another server of the same flow, or another flow of the thread. */
static struct conn *other_conn(struct worker *w, const struct request *r,
			       unsigned int leg)
{
	unsigned int servers = w->config->servers, away = w->plan->legs;

	if (servers == 1)
		return conn_of(w, (r->flow + 1) % w->flows, 0);
	away = away < servers ? away : 1;
	return conn_of(w, r->flow, (server_of(w, r, leg) + away) % servers);
}

static void hedge(struct worker *w, uint32_t i)
{
	struct plan *p = w->plan;
	struct request *r = &p->request[i];
	unsigned int leg;
	struct conn *c;
	uint32_t copy;

	for (leg = 0; leg < p->legs && r->open; leg++) {
		copy = plan_copy(p, i, leg);
		if (p->copy[copy].status != COPY_IN_FLIGHT ||
		    p->copy[copy + 1].status != COPY_NONE)
			continue;
		c = other_conn(w, r, leg);
		begin_copy(w, p, r, copy + 1, c);
		if (!c->udp && c->state == CONN_UP && !c->want_out)
			send_flush(w, c);
	}
}

bool hedge_due(struct worker *w)
{
	uint32_t before = w->hedge_next;

	if (w->phase->hedge == UINT64_MAX)
		return false;
	while (w->hedge_next < w->next &&
	       w->plan->request[w->hedge_next].intended + w->phase->hedge <= w->now)
		hedge(w, w->hedge_next++);
	return w->hedge_next != before;
}

static void time_out(struct worker *w, uint32_t i)
{
	struct plan *p = w->plan;
	uint32_t first = plan_copy(p, i, 0), n = (uint32_t)p->legs * p->copies, j;

	for (j = first; j < first + n; j++) {
		if (p->copy[j].status == COPY_IN_FLIGHT)
			copy_done(w, p, j, COPY_TIMED_OUT, w->now);
	}
}

bool time_out_due(struct worker *w)
{
	const struct plan *p = w->plan;
	uint32_t before = w->timeout_next;

	while (w->timeout_next < w->next &&
	       p->request[w->timeout_next].intended + w->phase->timeout <= w->now) {
		if (p->request[w->timeout_next].open)
			time_out(w, w->timeout_next);
		w->timeout_next++;
	}
	return w->timeout_next != before;
}

/* ---- decided ------------------------------------------------------------- */

static void leg_done(struct worker *w, struct plan *p, uint32_t i)
{
	struct request *r = &p->request[i];

	if (--r->open)
		return;
	w->open--;
	if (r->issued)
		w->flow[r->flow].under_way--;
}

void copy_done(struct worker *w, struct plan *p, uint32_t index,
	       enum status status, uint64_t at)
{
	struct copy *copy = &p->copy[index], *other = NULL;
	bool answered = status <= COPY_STORED;

	if (p->copies == 2)
		other = &p->copy[index ^ 1];
	copy->status = (uint8_t)status;
	copy->received = at;
	if (copy->sent)
		in_flight_change(w, -1, at);
	if (other && other->status == COPY_IN_FLIGHT) {
		/* As long as one may still be answered, the leg is open. */
		if (!answered)
			return;
		other->status = COPY_LATE;
		other->received = at;
		if (other->sent)
			in_flight_change(w, -1, at);
	}
	leg_done(w, p, index / p->copies / p->legs);
}

void conn_lost(struct worker *w, struct conn *c)
{
	struct pending *p;

	c->lost++;
	if (c->udp)	/* an error message; packets are not bound to it */
		return;
	conn_close(c);	/* epoll forgets it */
	c->retry = w->now + NSEC / 10;
	while (!conn_idle(c)) {
		p = conn_at(c, c->head++);
		if (p->plan == w->plan &&
		    p->plan->copy[p->copy].status == COPY_IN_FLIGHT)
			copy_done(w, p->plan, p->copy, COPY_LOST, cli_now());
	}
	c->unsent = c->tail;
}
