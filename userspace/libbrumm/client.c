// SPDX-License-Identifier: GPL-2.0
/* The memory service from outside: clients and controllers. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc.h"

struct brumm_client {
	struct rpc rpc;
};

struct brumm_control {
	struct rpc rpc;
};

static unsigned int at_most(unsigned int n)
{
	return n < PROTO_MAX_ENTRIES ? n : PROTO_MAX_ENTRIES;
}

PUBLIC int brumm_client_open(const char *path, int gate,
			     struct brumm_client **client)
{
	struct brumm_client *c;
	int err;

	if (gate < 0)
		return -EBADF;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->rpc.fd = unix_connect(path ? path : BRUMM_SERVICE_SOCKET);
	if (c->rpc.fd < 0) {
		err = c->rpc.fd;
		free(c);
		return err;
	}
	err = rpc_call(&c->rpc, PROTO_HELLO, NULL, gate, NULL, NULL, 0, 0);
	if (err < 0) {
		brumm_client_close(c);
		return err;
	}
	*client = c;
	return 0;
}

PUBLIC void brumm_client_close(struct brumm_client *client)
{
	if (!client)
		return;
	close(client->rpc.fd);
	free(client);
}

PUBLIC int brumm_client_fd(const struct brumm_client *client)
{
	return client->rpc.fd;
}

PUBLIC int brumm_client_alloc(struct brumm_client *client, uint64_t offset,
			      uint64_t length, uint32_t rights,
			      uint64_t *handle)
{
	uint64_t arg[4] = { offset, length, rights }, value[6];
	int err;

	err = rpc_call(&client->rpc, PROTO_ALLOC, arg, -1, value, NULL, 0, 0);
	if (err < 0)
		return err;
	*handle = value[0];
	return 0;
}

PUBLIC int brumm_client_free(struct brumm_client *client, uint64_t handle)
{
	uint64_t arg[4] = { handle };

	return rpc_call(&client->rpc, PROTO_FREE, arg, -1, NULL, NULL, 0, 0);
}

PUBLIC int brumm_client_list(struct brumm_client *client, uint64_t after,
			     struct brumm_allocation *list, unsigned int n)
{
	uint64_t arg[4] = { after, at_most(n) };

	return rpc_call(&client->rpc, PROTO_LIST, arg, -1, NULL, list,
			sizeof(*list), n);
}

PUBLIC int brumm_control_open(const char *path, struct brumm_control **control)
{
	struct brumm_control *c = calloc(1, sizeof(*c));
	struct brumm_service_status status;
	int err;

	if (!c)
		return -ENOMEM;
	c->rpc.fd = unix_connect(path ? path : BRUMM_CONTROL_SOCKET);
	if (c->rpc.fd < 0) {
		err = c->rpc.fd;
		free(c);
		return err;
	}
	err = brumm_control_status(c, &status);
	if (err) {
		brumm_control_close(c);
		return err;
	}
	*control = c;
	return 0;
}

PUBLIC void brumm_control_close(struct brumm_control *control)
{
	if (!control)
		return;
	close(control->rpc.fd);
	free(control);
}

PUBLIC int brumm_control_status(struct brumm_control *control,
				struct brumm_service_status *status)
{
	uint64_t v[6];
	int err;

	err = rpc_call(&control->rpc, PROTO_STATUS, NULL, -1, v, NULL, 0, 0);
	if (err < 0)
		return err;
	*status = (struct brumm_service_status){
		.pool = v[0],
		.free = v[1],
		.clients = v[2],
		.allocations = v[3],
		.refused = v[4],
		.dropped = v[5],
	};
	return 0;
}

PUBLIC int brumm_control_clients(struct brumm_control *control, uint64_t after,
				 struct brumm_service_client *list,
				 unsigned int n)
{
	uint64_t arg[4] = { after, at_most(n) };

	return rpc_call(&control->rpc, PROTO_CLIENTS, arg, -1, NULL, list,
			sizeof(*list), n);
}

PUBLIC int brumm_control_allocations(struct brumm_control *control,
				     uint64_t session, uint64_t after,
				     struct brumm_allocation *list,
				     unsigned int n)
{
	uint64_t arg[4] = { after, at_most(n), session };

	return rpc_call(&control->rpc, PROTO_ALLOCATIONS, arg, -1, NULL, list,
			sizeof(*list), n);
}

PUBLIC int brumm_control_nodes(struct brumm_control *control, uint64_t from,
			       uint32_t flags, struct brumm_query *list,
			       unsigned int n)
{
	uint64_t arg[4] = { from, at_most(n), flags };

	return rpc_call(&control->rpc, PROTO_NODES, arg, -1, NULL, list,
			sizeof(*list), n);
}

PUBLIC int brumm_control_take_back(struct brumm_control *control,
				   uint64_t cgroup, struct brumm_taken *taken)
{
	uint64_t arg[4] = { cgroup }, v[6];
	int err;

	err = rpc_call(&control->rpc, PROTO_TAKE_BACK, arg, -1, v, NULL, 0, 0);
	if (err < 0)
		return err;
	if (taken)
		*taken = (struct brumm_taken){
			.clients = v[0],
			.bytes = v[1],
			.nodes = v[2],
			.ns = v[3],
		};
	return 0;
}

PUBLIC int brumm_control_stop(struct brumm_control *control)
{
	return rpc_call(&control->rpc, PROTO_STOP, NULL, -1, NULL, NULL, 0, 0);
}
