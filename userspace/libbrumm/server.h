/* SPDX-License-Identifier: GPL-2.0 */
/* The memory service inside. */
#ifndef LIBBRUMM_SERVER_H
#define LIBBRUMM_SERVER_H

#include "internal.h"
#include "pool.h"
#include "proto.h"

/*
 * What the service does to its window; tests put something else there. All
 * return 0 or -errno.
 */
struct backend {
	int (*map)(void *arg, const struct brumm_map *map);
	int (*unmap)(void *arg, uint64_t offset, uint64_t length,
		     struct brumm_unmap *done);
	int (*zero)(void *arg, uint64_t offset, uint64_t length);
	int (*query)(void *arg, uint64_t offset, uint32_t flags,
		     struct brumm_query *query);
	void (*close)(void *arg);
	void *arg;
};

/* Default size of the pool. */
#define SERVER_POOL (64ull << 20)

/* Cgroups above a client that are known to the service. */
#define PEER_DEPTH 64

/**
 * struct peer - who is at the other end
 * @pid: who connected
 * @uid: as whom
 * @payer: descriptor of the cgroup that pays for him: that which he was in
 *	then, or the nearest above it that has a budget; -1: none
 * @payer_id: its id
 * @ids: ids of the one that he was in and of all above it
 * @nr_ids: how many
 */
struct peer {
	pid_t pid;
	uid_t uid;
	int payer;
	uint64_t payer_id;
	uint64_t ids[PEER_DEPTH];
	unsigned int nr_ids;
};

int peer_identify(int sock, struct peer *p);
void peer_forget(struct peer *p);
bool peer_is_below(const struct peer *p, uint64_t cgroup);

/* An allocation of a client; @pieces say where in the pool it is. */
struct allocation {
	struct allocation *next;
	struct extent *pieces;
	struct brumm_allocation a;
};

struct session {
	struct session *next;
	int fd;
	int gate;
	bool control;
	bool dead;
	uint64_t id;
	uint64_t since;		/* of the connection, ns */
	struct peer peer;
	unsigned int bad;
	uint64_t bytes;
	uint64_t nr;
	uint64_t next_handle;
	struct allocation *allocations;	/* by handle, newest last */
	struct allocation **tail;
};

struct brumm_server {
	struct brumm_server_config config;
	struct backend backend;
	struct pool pool;
	uint64_t page;
	int epoll;
	int stop;		/* eventfd */
	int listener[2];	/* clients, controllers; -1: none */
	bool stopping;
	bool deaf;		/* not accepting for want of descriptors */
	struct session *sessions;	/* newest first */
	uint64_t next_session;
	uint64_t refused;
	uint64_t dropped;
};

/* server.c: as brumm_server_open(), with what stands for the window, which is
 * closed on failure too.
 */
int server_open(const struct brumm_server_config *config,
		const struct backend *backend, struct brumm_server **server);
void server_log(struct brumm_server *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * requests.c: answers @rq; entries go to @entries. Returns the error for the
 * reply. @fd was sent along; it is the caller's still unless it has become the
 * gate of the session.
 */
int serve_request(struct brumm_server *s, struct session *c,
		  const struct proto_request *rq, int fd,
		  struct proto_reply *re, void *entries);
/* Takes all of a client back. */
void serve_take_back(struct brumm_server *s, struct session *c,
		     struct brumm_taken *taken);

/* message.c */
enum message { MESSAGE_OK, MESSAGE_NONE, MESSAGE_BAD, MESSAGE_END };
enum message message_receive(int sock, struct proto_request *rq, int *fd);
int message_reply(int sock, struct proto_reply *re, const void *entries);
/* Close a descriptor of which nothing is known but that somebody sent it. */
void close_foreign(int fd);

#endif /* LIBBRUMM_SERVER_H */
