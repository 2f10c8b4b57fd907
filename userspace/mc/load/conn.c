// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "conn.h"

#define FIRST_RING	64
#define FIRST_BUFFER	16384

/* It can be sent by from now on; what was sent is looked up by when that was. */
static void up(struct conn *c)
{
	struct conn_name *more;

	c->state = CONN_UP;
	more = reallocarray(c->name, c->names + 1, sizeof(*more));
	/* Or no name at all may be believed. */
	if (!more) {
		c->names = 0;
		return;
	}
	c->name = more;
	c->name[c->names++] = (struct conn_name){ cli_now(), (uint16_t)conn_port(c) };
}

int conn_open(struct conn *c)
{
	const struct server *s = c->server;
	int one = 1, type = c->udp ? SOCK_DGRAM : SOCK_STREAM;

	c->fd = socket(s->addr.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	if (s->transport == TRANSPORT_TCP)
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->state = CONN_CONNECTING;
	if (connect(c->fd, (const struct sockaddr *)&s->addr, s->len)) {
		/* EAGAIN: the backlog of a Unix socket is full. */
		if (errno == EINPROGRESS)
			return 0;
		one = -errno;
		conn_close(c);
		return one;
	}
	up(c);
	return 0;
}

int conn_opened(struct conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		return -err;
	up(c);
	return 0;
}

void conn_close(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->state = CONN_DOWN;
	c->want_out = false;
	c->out.start = c->out.end = 0;
	c->in.start = c->in.end = 0;
	c->queued = c->accepted = 0;
}

void conn_free(struct conn *c)
{
	conn_close(c);
	free(c->out.data);
	free(c->in.data);
	free(c->ring);
	free(c->slot);
	free(c->name);
}

unsigned int conn_port(const struct conn *c)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	if (c->fd < 0 || getsockname(c->fd, (struct sockaddr *)&a, &len))
		return 0;
	if (a.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&a)->sin_port);
	if (a.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
	return 0;
}

unsigned int conn_port_at(const struct conn *c, uint64_t at)
{
	size_t i = c->names;

	while (i && c->name[i - 1].since > at)
		i--;
	return i ? c->name[i - 1].port : 0;
}

char *buffer_room(struct buffer *b, size_t bytes)
{
	size_t used = b->end - b->start, capacity = b->capacity;
	char *data;

	if (b->capacity - b->end >= bytes)
		return b->data + b->end;
	if (b->start) {
		memmove(b->data, b->data + b->start, used);
		b->start = 0;
		b->end = used;
	}
	while (capacity - used < bytes)
		capacity = capacity ? 2 * capacity : FIRST_BUFFER;
	if (capacity != b->capacity) {
		data = realloc(b->data, capacity);
		if (!data)
			return NULL;
		b->data = data;
		b->capacity = capacity;
	}
	return b->data + b->end;
}

static int grow(struct conn *c)
{
	uint32_t i, size = c->size ? 2 * c->size : FIRST_RING;
	struct pending *ring = malloc(size * sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (i = c->head; i != c->tail; i++)
		ring[i & (size - 1)] = *conn_at(c, i);
	free(c->ring);
	c->ring = ring;
	c->size = size;
	return 0;
}

int conn_push(struct conn *c, const struct pending *p)
{
	if (c->tail - c->head == c->size && grow(c))
		return -ENOMEM;
	*conn_at(c, c->tail) = *p;
	c->tail++;
	return 0;
}
