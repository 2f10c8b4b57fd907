// SPDX-License-Identifier: GPL-2.0
/* What a worker receives: bytes into answers, answers to the copies they are of. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "../../brumm/cli.h"
#include "worker.h"

#define READ_SIZE	65536
#define UDP_HEADER	8

static const struct request *request_of(const struct pending *p)
{
	return &p->plan->request[p->copy / p->plan->copies / p->plan->legs];
}

/* The number of a key, which is what its text is; -1: it is none. */
static int64_t key_number(const struct answer *a)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < a->key_size; i++) {
		const char *digits = "0123456789abcdef", *at;

		at = memchr(digits, a->key[i], 16);
		if (!at || n >> 40)
			return -1;
		n = n << 4 | (at - digits);
	}
	return n;
}

/*
 * A value: is it of a key that was asked for? By meta commands that of the next;
 * by text of the next that is there, those before are missing.
 */
static bool take_value(struct worker *w, const struct pending *p,
		       struct copy *copy, const struct answer *a)
{
	const struct request *r = request_of(p);
	unsigned int asked = w->config->multiget;
	int64_t said = w->config->text ? key_number(a) : -1;
	uint32_t key;

	while (copy->keys) {
		key = proto_key(w->config, r->key, asked - copy->keys);
		copy->keys--;
		if (said >= 0 && said != key)
			continue;
		copy->hits++;
		return keys_match(w->keys, key, a->data, a->size);
	}
	return false;
}

/*
 * Takes what an answer says into its copy. False: it cannot be its answer, and
 * nothing that comes on this connection can be trusted any more.
 */
static bool take(struct worker *w, const struct pending *p,
		 const struct answer *a, bool *complete, enum status *status)
{
	struct copy *copy = &p->plan->copy[p->copy];
	const struct request *r = request_of(p);
	bool get = r->op == OP_GET;

	if (a->has_id && a->id != p->plan->id + p->copy)
		return false;
	*complete = true;
	switch (a->kind) {
	case ANSWER_REFUSED:
		*status = COPY_REFUSED;
		return true;
	case ANSWER_STORED:
		*status = COPY_STORED;
		return !get;
	case ANSWER_VALUE:
		if (!get || !take_value(w, p, copy, a))
			return false;
		*complete = !w->config->text && !copy->keys;
		break;
	case ANSWER_MISS:
		if (!get || w->config->text || !copy->keys)
			return false;
		*complete = !--copy->keys;
		break;
	case ANSWER_END:
		if (!get || !w->config->text)
			return false;
		break;
	}
	*status = copy->hits == w->config->multiget ? COPY_HIT : COPY_MISS;
	return true;
}

/* The last byte of an answer was there at @at. */
static void answered(struct worker *w, const struct pending *p,
		     enum status status, uint64_t at)
{
	struct copy *copy = &p->plan->copy[p->copy];

	if (p->plan == w->plan && copy->status == COPY_IN_FLIGHT) {
		copy_done(w, p->plan, p->copy, status, at);
		return;
	}
	w->effort.late++;
	if (copy->status == COPY_LATE)
		copy->received = at;
}

/* No more can be made of what comes on this connection. */
static void nonsense(struct worker *w, struct conn *c, const struct pending *p,
		     uint64_t at)
{
	if (p && p->plan == w->plan &&
	    p->plan->copy[p->copy].status == COPY_IN_FLIGHT)
		copy_done(w, p->plan, p->copy, COPY_PROTOCOL, at);
	if (!c->udp)
		conn_lost(w, c);
}

/* ---- streams ------------------------------------------------------------- */

/* All answers that are complete; false: the connection is lost. */
static bool take_answers(struct worker *w, struct conn *c, uint64_t at)
{
	struct buffer *b = &c->in;
	enum status status = COPY_MISS;
	struct pending *p;
	struct answer a;
	bool complete;
	ssize_t n;

	while (b->start < b->end) {
		n = proto_parse(b->data + b->start, b->end - b->start, &a);
		if (!n)
			return true;
		/* Nothing was asked of it: memcached says why it hangs up. */
		p = c->head != c->unsent ? conn_at(c, c->head) : NULL;
		if (n < 0 || !p || !take(w, p, &a, &complete, &status)) {
			nonsense(w, c, p, at);
			return false;
		}
		b->start += (size_t)n;
		if (!complete)
			continue;
		c->head++;
		answered(w, p, status, at);
	}
	b->start = b->end = 0;
	return true;
}

static void receive_stream(struct worker *w, struct conn *c)
{
	char *to = buffer_room(&c->in, READ_SIZE);
	ssize_t n;

	if (!to) {
		conn_lost(w, c);
		return;
	}
	n = recv(c->fd, to, READ_SIZE, 0);
	w->now = cli_now();
	if (n > 0) {
		c->in.end += (size_t)n;
		take_answers(w, c, w->now);
	} else if (!n || (errno != EAGAIN && errno != EINTR)) {
		conn_lost(w, c);
	}
}

/* ---- packets ------------------------------------------------------------- */

/* A whole answer is in the buffer. */
static void take_packet(struct worker *w, struct conn *c, uint64_t at)
{
	struct pending *p = &c->slot[c->part_number], was = *p;
	enum status status = COPY_MISS;
	struct buffer *b = &c->in;
	bool complete = false;
	struct answer a;
	ssize_t n;

	if (!p->plan)
		return;		/* the same packet twice */
	while (b->start < b->end && !complete) {
		n = proto_parse(b->data + b->start, b->end - b->start, &a);
		if (n <= 0 || !take(w, p, &a, &complete, &status)) {
			p->plan = NULL;
			nonsense(w, c, &was, at);
			return;
		}
		b->start += (size_t)n;
	}
	/* memcached sends each value of several in a packet of its own. */
	if (!complete)
		return;
	p->plan = NULL;
	answered(w, &was, status, at);
}

/*
 * An answer can take several packets, which come one after the other. If they do
 * not, one is lost, and the answer with it: its request will time out.
 */
static void receive_packet(struct worker *w, struct conn *c)
{
	char *data = buffer_room(&c->in, READ_SIZE);
	unsigned int number, part, parts;
	ssize_t n;

	if (!data)
		return;
	n = recv(c->fd, data, READ_SIZE, 0);
	w->now = cli_now();
	if (n < 0 && errno == ECONNREFUSED)
		conn_lost(w, c);
	if (n < UDP_HEADER)
		return;
	number = (unsigned int)(unsigned char)data[0] << 8 | (unsigned char)data[1];
	part = (unsigned int)(unsigned char)data[2] << 8 | (unsigned char)data[3];
	parts = (unsigned int)(unsigned char)data[4] << 8 | (unsigned char)data[5];
	if (!part) {
		c->in.start = c->in.end = 0;
		c->part_number = (uint16_t)number;
		c->part = 0;
	}
	if (part != c->part || number != c->part_number)
		return;
	memmove(c->in.data + c->in.end, data + UDP_HEADER, (size_t)n - UDP_HEADER);
	c->in.end += (size_t)n - UDP_HEADER;
	if (++c->part == parts)
		take_packet(w, c, w->now);
}

void receive(struct worker *w, struct conn *c)
{
	if (c->udp)
		receive_packet(w, c);
	else
		receive_stream(w, c);
}
