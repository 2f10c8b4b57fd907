// SPDX-License-Identifier: GPL-2.0
/* What clients and controllers may ask a memory service for. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"

/* Most pieces of the pool that one allocation is made of. */
#define MAX_PIECES 64

/* Revokes pieces that are neighbours in the pool by one call. */
static int revoke_pieces(struct brumm_server *s, const struct extent *e,
			 struct brumm_unmap *sum)
{
	struct brumm_unmap done;
	uint64_t start, pages;
	int err;

	while (e) {
		start = e->start;
		pages = e->pages;
		while ((e = e->next) && e->start == start + pages)
			pages += e->pages;
		err = s->backend.unmap(s->backend.arg, start * s->page,
				       pages * s->page, &done);
		if (err)
			return err;
		sum->nodes += done.nodes;
		sum->pages += done.pages;
	}
	return 0;
}

/* Where it was not possible to revoke, nobody else may get the pages. */
static void give_back(struct brumm_server *s, struct allocation *a, int err)
{
	struct extent *e;

	if (!err) {
		pool_give(&s->pool, a->pieces);
	} else {
		server_log(s, "cannot revoke %llu bytes, they are lost: %s",
			   (unsigned long long)a->a.length, strerror(-err));
		while ((e = a->pieces)) {
			a->pieces = e->next;
			s->pool.pages -= e->pages;
			free(e);
		}
	}
	free(a);
}

/*
 * A gate is an anonymous file. Of all else this keeps us away: to call
 * something on a file of somebody else's file system may block for ever.
 */
static bool may_be_gate(int fd)
{
	static const char prefix[] = "anon_inode:";
	char link[32], name[sizeof(prefix) - 1];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, name, sizeof(name)) == sizeof(name) &&
	       !memcmp(name, prefix, sizeof(name));
}

static int hello(struct brumm_server *s, struct session *c, int gate,
		 struct proto_reply *re)
{
	if (c->gate >= 0)
		return -EALREADY;
	if (gate < 0 || !may_be_gate(gate))
		return -EBADF;
	if (c->peer.payer < 0 &&
	    !(s->config.flags & BRUMM_SERVER_ROOT_CLIENTS))
		return -EPERM;
	c->gate = gate;
	re->value[0] = c->id;
	re->value[1] = c->peer.payer_id;
	re->value[2] = s->config.max_bytes;
	re->value[3] = s->page;
	return 0;
}

/* Maps the pieces one behind the other; all or nothing. */
static int map_pieces(struct brumm_server *s, struct session *c,
		      const struct extent *list, uint64_t offset,
		      uint32_t rights)
{
	struct brumm_map m = {
		.fd = c->gate,
		.rights = rights,
		.target = offset,
	};
	struct brumm_unmap done;
	const struct extent *e, *undo;
	int err;

	if (c->peer.payer >= 0) {
		m.flags = BRUMM_MAP_SPONSOR;
		m.sponsor = c->peer.payer;
	}
	for (e = list; e; e = e->next) {
		m.source = e->start * s->page;
		m.length = e->pages * s->page;
		err = s->backend.map(s->backend.arg, &m);
		if (err)
			break;
		m.target += m.length;
	}
	if (!e)
		return 0;
	for (undo = list; undo != e; undo = undo->next)
		s->backend.unmap(s->backend.arg, undo->start * s->page,
				 undo->pages * s->page, &done);
	return err;
}

static int allocate(struct brumm_server *s, struct session *c,
		    const uint64_t *arg, struct proto_reply *re)
{
	uint64_t offset = arg[0], length = arg[1];
	struct allocation *a;
	int err;

	if (!length || length % s->page || offset % s->page ||
	    arg[2] > UINT32_MAX)
		return -EINVAL;
	if (offset > BRUMM_WINDOW_BYTES ||
	    length > BRUMM_WINDOW_BYTES - offset)
		return -EOVERFLOW;
	if (c->nr >= s->config.max_allocations ||
	    c->bytes > s->config.max_bytes ||
	    length > s->config.max_bytes - c->bytes)
		return -ENOSPC;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	err = pool_take(&s->pool, length / s->page, MAX_PIECES, &a->pieces);
	if (!err) {
		err = map_pieces(s, c, a->pieces, offset, (uint32_t)arg[2]);
		if (err)
			pool_give(&s->pool, a->pieces);
	}
	if (err) {
		free(a);
		return err;
	}
	a->a = (struct brumm_allocation){
		.handle = ++c->next_handle,
		.offset = offset,
		.length = length,
		.rights = (uint32_t)arg[2],
	};
	*c->tail = a;
	c->tail = &a->next;
	c->bytes += length;
	c->nr++;
	re->value[0] = a->a.handle;
	return 0;
}

static int release(struct brumm_server *s, struct session *c, uint64_t handle,
		   struct proto_reply *re)
{
	struct brumm_unmap sum = { 0 };
	struct allocation **at, *a;
	int err;

	for (at = &c->allocations; *at; at = &(*at)->next)
		if ((*at)->a.handle == handle)
			break;
	a = *at;
	if (!a)
		return -ENOENT;
	*at = a->next;
	if (c->tail == &a->next)
		c->tail = at;
	c->bytes -= a->a.length;
	c->nr--;
	err = revoke_pieces(s, a->pieces, &sum);
	give_back(s, a, err);
	re->value[0] = sum.nodes;
	re->value[1] = sum.pages;
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct extent *const *x = a, *const *y = b;

	return (*x)->start < (*y)->start ? -1 : (*x)->start > (*y)->start;
}

/* All pieces of a client by place, so that neighbours go in one call. */
static bool revoke_all(struct brumm_server *s, struct session *c,
		       struct brumm_unmap *sum)
{
	struct extent **all, *e, *list = NULL, *copy;
	struct allocation *a;
	size_t n = 0, i;
	int err;

	for (a = c->allocations; a; a = a->next)
		for (e = a->pieces; e; e = e->next)
			n++;
	all = malloc(n * sizeof(*all));
	copy = malloc(n * sizeof(*copy));
	if (!n || !all || !copy) {
		free(all);
		free(copy);
		return false;
	}
	i = 0;
	for (a = c->allocations; a; a = a->next)
		for (e = a->pieces; e; e = e->next)
			all[i++] = e;
	qsort(all, n, sizeof(*all), by_start);
	for (i = n; i-- > 0; list = &copy[i]) {
		copy[i] = *all[i];
		copy[i].next = list;
	}
	err = revoke_pieces(s, list, sum);
	free(all);
	free(copy);
	return !err;
}

void serve_take_back(struct brumm_server *s, struct session *c,
		     struct brumm_taken *taken)
{
	struct brumm_unmap sum = { 0 };
	struct allocation *a;
	uint64_t start;
	bool done;

	if (!c->allocations)
		return;
	start = now_ns();
	done = revoke_all(s, c, &sum);
	taken->clients++;
	taken->bytes += c->bytes;
	while ((a = c->allocations)) {
		c->allocations = a->next;
		give_back(s, a, done ? 0 : revoke_pieces(s, a->pieces, &sum));
	}
	taken->ns += now_ns() - start;
	taken->nodes += sum.nodes;
	c->tail = &c->allocations;
	c->bytes = 0;
	c->nr = 0;
}

static unsigned int room(uint64_t n)
{
	return n < PROTO_MAX_ENTRIES ? (unsigned int)n : PROTO_MAX_ENTRIES;
}

static int list(struct session *c, uint64_t after, unsigned int n,
		struct proto_reply *re, void *entries)
{
	struct brumm_allocation *to = entries;
	struct allocation *a;

	re->entry = sizeof(*to);
	for (a = c->allocations; a && re->count < n; a = a->next)
		if (a->a.handle > after)
			to[re->count++] = a->a;
	return 0;
}

static int status(struct brumm_server *s, struct proto_reply *re)
{
	struct session *c;

	re->value[0] = s->pool.pages * s->page;
	re->value[1] = s->pool.nr_free * s->page;
	for (c = s->sessions; c; c = c->next) {
		re->value[2] += !c->control && !c->dead;
		re->value[3] += c->nr;
	}
	re->value[4] = s->refused;
	re->value[5] = s->dropped;
	return 0;
}

/* The list of sessions has the newest first; this goes by number. */
static struct session *next_session(struct brumm_server *s, uint64_t after)
{
	struct session *c, *next = NULL;

	for (c = s->sessions; c && c->id > after; c = c->next)
		if (!c->control && !c->dead)
			next = c;
	return next;
}

static int clients(struct brumm_server *s, uint64_t after, unsigned int n,
		   struct proto_reply *re, void *entries)
{
	struct brumm_service_client *to = entries;
	struct session *c;

	re->entry = sizeof(*to);
	while (re->count < n && (c = next_session(s, after))) {
		to[re->count++] = (struct brumm_service_client){
			.session = c->id,
			.cgroup = c->peer.payer_id,
			.bytes = c->bytes,
			.allocations = c->nr,
			.pid = c->peer.pid,
			.uid = c->peer.uid,
		};
		after = c->id;
	}
	return 0;
}

static int allocations(struct brumm_server *s, const uint64_t *arg,
		       struct proto_reply *re, void *entries)
{
	struct session *c = arg[2] ? next_session(s, arg[2] - 1) : NULL;

	if (!c || c->id != arg[2])
		return -ENOENT;
	return list(c, arg[0], room(arg[1]), re, entries);
}

static int nodes(struct brumm_server *s, const uint64_t *arg,
		 struct proto_reply *re, void *entries)
{
	struct brumm_query *to = entries;
	unsigned int n = room(arg[1]);
	uint64_t from = arg[0];
	int err;

	re->entry = sizeof(*to);
	if (arg[2] & ~(uint64_t)BRUMM_QUERY_COUNT)
		return -EOPNOTSUPP;
	while (re->count < n && from < BRUMM_WINDOW_BYTES) {
		err = s->backend.query(s->backend.arg, from,
				       (uint32_t)arg[2] | BRUMM_QUERY_NEXT,
				       &to[re->count]);
		if (err)
			return err == -ENOENT ? 0 : err;
		from = to[re->count].offset + to[re->count].length;
		re->count++;
	}
	return 0;
}

static int take_back(struct brumm_server *s, uint64_t cgroup,
		     struct proto_reply *re)
{
	struct brumm_taken t = { 0 };
	struct session *c;

	for (c = s->sessions; c; c = c->next)
		if (!c->control && peer_is_below(&c->peer, cgroup))
			serve_take_back(s, c, &t);
	re->value[0] = t.clients;
	re->value[1] = t.bytes;
	re->value[2] = t.nodes;
	re->value[3] = t.ns;
	return 0;
}

static int client_request(struct brumm_server *s, struct session *c,
			  const struct proto_request *rq, int fd,
			  struct proto_reply *re, void *entries)
{
	if (rq->op == PROTO_HELLO)
		return hello(s, c, fd, re);
	if (c->gate < 0)
		return -EPROTO;
	switch (rq->op) {
	case PROTO_ALLOC:
		return allocate(s, c, rq->arg, re);
	case PROTO_FREE:
		return release(s, c, rq->arg[0], re);
	case PROTO_LIST:
		return list(c, rq->arg[0], room(rq->arg[1]), re, entries);
	}
	return -EOPNOTSUPP;
}

static int control_request(struct brumm_server *s,
			   const struct proto_request *rq,
			   struct proto_reply *re, void *entries)
{
	switch (rq->op) {
	case PROTO_STATUS:
		return status(s, re);
	case PROTO_CLIENTS:
		return clients(s, rq->arg[0], room(rq->arg[1]), re, entries);
	case PROTO_ALLOCATIONS:
		return allocations(s, rq->arg, re, entries);
	case PROTO_NODES:
		return nodes(s, rq->arg, re, entries);
	case PROTO_TAKE_BACK:
		return take_back(s, rq->arg[0], re);
	case PROTO_STOP:
		s->stopping = true;
		return 0;
	}
	return -EOPNOTSUPP;
}

int serve_request(struct brumm_server *s, struct session *c,
		  const struct proto_request *rq, int fd,
		  struct proto_reply *re, void *entries)
{
	int err;

	if (c->control)
		err = control_request(s, rq, re, entries);
	else
		err = client_request(s, c, rq, fd, re, entries);
	if (err) {
		re->count = 0;
		memset(re->value, 0, sizeof(re->value));
	}
	return err;
}
