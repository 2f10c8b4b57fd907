/* SPDX-License-Identifier: GPL-2.0 */
/* Requests and replies as the asking side sees them. */
#ifndef LIBBRUMM_RPC_H
#define LIBBRUMM_RPC_H

#include "internal.h"
#include "proto.h"

struct rpc {
	int fd;
	uint32_t tag;
};

/**
 * rpc_call() - ask and wait for the reply
 * @rpc: connection
 * @op: what
 * @arg: 4 arguments or NULL
 * @fd: to be sent along, -1: none
 * @value: out: 6 values, or NULL
 * @entries: out, or NULL
 * @entry: size of an entry
 * @n: room
 *
 * Returns the number of entries or an error. A connection on which something
 * did not fit together is shut down.
 */
int rpc_call(struct rpc *rpc, uint16_t op, const uint64_t *arg, int fd,
	     uint64_t *value, void *entries, size_t entry, unsigned int n);

#endif /* LIBBRUMM_RPC_H */
