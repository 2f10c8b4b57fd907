/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to a server: bytes out, bytes in, and which copy each answer is for.
 * Never blocks. All of it belongs to one thread.
 */
#ifndef BRUMM_MC_CONN_H
#define BRUMM_MC_CONN_H

#include "proto.h"

/* What waits for an answer: on a stream, in this order. */
struct pending {
	struct plan *plan;
	uint32_t copy;
	uint64_t end;		/* of its bytes, in all that goes out */
};

struct buffer {
	char *data;
	size_t start, end, capacity;
};

enum conn_state {
	CONN_DOWN,
	CONN_CONNECTING,
	CONN_UP,
};

/* Port of this end since then; 0: not known, or none. */
struct conn_name {
	uint64_t since;
	uint16_t port;
};

/**
 * struct conn - one connection
 * @server: that it goes to
 * @fd: socket, -1: none
 * @state: can it be sent by?
 * @udp: packets, each with a number
 * @out, @in: bytes to be sent; received, and not taken apart
 * @queued, @accepted: bytes that went into @out, and that the kernel took
 * @ring: of the pending, from @head to @tail, a power of two; the next of which
 *	not all is sent is @unsent
 * @slot: of UDP: the pending by number, NULL where not UDP
 * @number: of the next packet
 * @part: packets of an answer in several that have come; of @part_number
 * @retry: when to connect again
 * @lost: how often it was lost
 * @name: its ports, @names of them, one for each time it came up
 * @want_out: waits until it can be written to
 */
struct conn {
	const struct server *server;
	int fd;
	enum conn_state state;
	bool udp, want_out;
	struct buffer out, in;
	uint64_t queued, accepted;
	struct pending *ring;
	uint32_t head, tail, unsent, size;
	struct pending *slot;
	uint16_t number, part_number, part;
	uint64_t retry;
	unsigned int lost;
	struct conn_name *name;
	size_t names;
};

/* Begins to connect; -errno. In CONN_CONNECTING, EPOLLOUT tells when to go on. */
int conn_open(struct conn *c);
/* Whether it came to be: CONN_UP, or -errno. */
int conn_opened(struct conn *c);
/* Closes the socket; what is pending stays. */
void conn_close(struct conn *c);
void conn_free(struct conn *c);

/* Port of this end, 0: none. */
unsigned int conn_port(const struct conn *c);
/* Of what was sent at @at, by the connection that there was then. */
unsigned int conn_port_at(const struct conn *c, uint64_t at);

/* Makes room at the end; NULL: no memory. */
char *buffer_room(struct buffer *b, size_t bytes);

/* Appends to the ring; -ENOMEM. */
int conn_push(struct conn *c, const struct pending *p);

static inline bool conn_idle(const struct conn *c)
{
	return c->head == c->tail;
}

static inline struct pending *conn_at(struct conn *c, uint32_t i)
{
	return &c->ring[i & (c->size - 1)];
}

#endif /* BRUMM_MC_CONN_H */
