/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What brumm wants of MPI. It is in a file of its own, brumm-mpi.so, which is built
 * where MPI is and loaded when it is asked for: brumm itself needs no MPI. Nothing
 * here waits, so that a rank that is gone stops nobody.
 */
#ifndef BRUMM_MPI_PLUGIN_H
#define BRUMM_MPI_PLUGIN_H

#include <stddef.h>
#include <sys/types.h>

#define MPI_PLUGIN_FILE		"brumm-mpi.so"
#define MPI_PLUGIN_SYMBOL	"brumm_mpi_plugin"
#define MPI_PLUGIN_VERSION	1

/**
 * struct mpi_plugin - functions that are called by one thread only
 * @version: MPI_PLUGIN_VERSION
 * @start: joins the others; 0, or -1 if that is not possible
 * @end: waits for all, and leaves
 * @send: begins to send; @data stays until @sent says 1. NULL: not possible
 * @sent: 1: has it, and frees; 0: not yet
 * @waiting: size of a message with the tag that has come, -1: none
 * @receive: takes it; 0, or -1
 */
struct mpi_plugin {
	int version;
	int (*start)(unsigned int *rank, unsigned int *ranks);
	void (*end)(void);
	void *(*send)(unsigned int to, int tag, const void *data, size_t size);
	int (*sent)(void *handle);
	ssize_t (*waiting)(int tag, unsigned int *from);
	int (*receive)(unsigned int from, int tag, void *data, size_t size);
};

#endif /* BRUMM_MPI_PLUGIN_H */
