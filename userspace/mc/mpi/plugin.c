// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "plugin.h"

static int start(unsigned int *rank, unsigned int *ranks)
{
	int level, me, all;

	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) ||
	    level < MPI_THREAD_FUNNELED)
		return -1;
	/* A rank that is gone is an error of one call, not the end of all. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (MPI_Comm_rank(MPI_COMM_WORLD, &me) ||
	    MPI_Comm_size(MPI_COMM_WORLD, &all))
		return -1;
	*rank = (unsigned int)me;
	*ranks = (unsigned int)all;
	return 0;
}

static void end(void)
{
	MPI_Finalize();
}

static void *begin_send(unsigned int to, int tag, const void *data, size_t size)
{
	MPI_Request *r = malloc(sizeof(*r));

	if (r && size <= INT_MAX &&
	    !MPI_Isend(data, (int)size, MPI_BYTE, (int)to, tag, MPI_COMM_WORLD, r))
		return r;
	free(r);
	return NULL;
}

static int sent(void *handle)
{
	int done = 0;

	if (MPI_Test(handle, &done, MPI_STATUS_IGNORE) || !done)
		return 0;
	free(handle);
	return 1;
}

static ssize_t waiting(int tag, unsigned int *from)
{
	MPI_Status status;
	int there = 0, n;

	if (MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status) ||
	    !there || MPI_Get_count(&status, MPI_BYTE, &n))
		return -1;
	*from = (unsigned int)status.MPI_SOURCE;
	return n;
}

static int receive(unsigned int from, int tag, void *data, size_t size)
{
	return MPI_Recv(data, (int)size, MPI_BYTE, (int)from, tag, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE) ? -1 : 0;
}

extern const struct mpi_plugin brumm_mpi_plugin;
__attribute__((visibility("default")))
const struct mpi_plugin brumm_mpi_plugin = {
	.version = MPI_PLUGIN_VERSION,
	.start = start,
	.end = end,
	.send = begin_send,
	.sent = sent,
	.waiting = waiting,
	.receive = receive,
};
