/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Protocol of the memory service, on a Unix socket of type SOCK_SEQPACKET:
 * one message a packet, native byte order, as both sides are on one machine.
 *
 * A client sends requests of a fixed size and gets one reply to each, in
 * order. The first one is HELLO and carries the gate; no other message carries
 * a descriptor. The service never sends anything unasked: that pages were
 * taken back is an event of the client's window. A service that does not want
 * a connection sends a reply with @op 0 and the error, and hangs up.
 */
#ifndef LIBBRUMM_PROTO_H
#define LIBBRUMM_PROTO_H

#include <stdint.h>

#define PROTO_MAGIC	0x6d757262u	/* "brum" */
#define PROTO_VERSION	1

enum proto_op {
	PROTO_REFUSED,
	/* clients */
	PROTO_HELLO,		/* +gate; out: session, cgroup, max_bytes, page */
	PROTO_ALLOC,		/* offset, length, rights; out: handle */
	PROTO_FREE,		/* handle; out: nodes, pages */
	PROTO_LIST,		/* after; out: brumm_allocation[] */
	/* controllers */
	PROTO_STATUS = 32,	/* out: brumm_service_status */
	PROTO_CLIENTS,		/* after; out: brumm_service_client[] */
	PROTO_ALLOCATIONS,	/* session, after; out: brumm_allocation[] */
	PROTO_NODES,		/* from, flags; out: brumm_query[] */
	PROTO_TAKE_BACK,	/* cgroup; out: brumm_taken */
	PROTO_STOP,
};

struct proto_request {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	uint32_t tag;		/* comes back in the reply */
	uint32_t reserved;	/* 0 */
	uint64_t arg[4];	/* those that an op does not have are 0 */
};

struct proto_reply {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	uint32_t tag;
	int32_t error;		/* 0 or -errno */
	uint64_t value[6];
	uint32_t count;		/* entries that follow */
	uint32_t entry;		/* bytes of one */
};

#define PROTO_MAX_ENTRIES	128
#define PROTO_MAX_ENTRY		64
#define PROTO_MAX_REPLY		(sizeof(struct proto_reply) + \
				 PROTO_MAX_ENTRIES * PROTO_MAX_ENTRY)

/* Seconds: a client waits so long for a reply, a service for a HELLO. */
#define PROTO_REPLY_S		30
#define PROTO_HELLO_S		5

#endif /* LIBBRUMM_PROTO_H */
