/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memcached's protocols: requests are written, answers are taken apart. With meta
 * commands a request has an opaque token, which the answer has, too: an answer that
 * is not that of the request is noticed, and a probe in the server can tell which
 * request it sees. Nothing here knows of sockets.
 */
#ifndef BRUMM_MC_PROTO_H
#define BRUMM_MC_PROTO_H

#include "keys.h"
#include "schedule.h"

/* Bytes that a request takes at most, beyond its value. */
#define PROTO_HEAD	(MODEL_MAX_KEY + 64)

enum answer_kind {
	ANSWER_VALUE,	/* one key, there */
	ANSWER_MISS,	/* one key, not there */
	ANSWER_END,	/* text: no more keys */
	ANSWER_STORED,
	ANSWER_REFUSED,	/* an error */
};

/**
 * struct answer - one answer, or one part of that to a multi-get
 * @kind: what it says
 * @has_id: it has an opaque token
 * @id: that, as a number
 * @key: text only: the key, not terminated
 * @key_size: its size
 * @data: of ANSWER_VALUE
 * @size: of the value
 */
struct answer {
	enum answer_kind kind;
	bool has_id;
	uint64_t id;
	const char *key, *data;
	size_t key_size, size;
};

/* The @j-th key that a get asks for: all are of the same server. */
uint32_t proto_key(const struct config *c, uint32_t first, unsigned int j);

/* Bytes that writing the request may take. */
size_t proto_room(const struct config *c, const struct keys *k,
		  const struct request *r);
/* Writes it; returns its bytes. @id: the opaque token. */
size_t proto_write(const struct config *c, const struct keys *k,
		   const struct request *r, uint64_t id, char *to);

/**
 * proto_parse() - take the first answer off what was received
 * @data: not terminated
 * @size: of that
 * @a: out
 *
 * Returns how many bytes it has; 0: it is not complete; -EPROTO: this is no answer.
 */
ssize_t proto_parse(const char *data, size_t size, struct answer *a);

#endif /* BRUMM_MC_PROTO_H */
