/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prices at load, in ns: what cleaning up one of a kind is expected to take
 * until somebody writes brumm.price of the root.
 *
 * They are set on the safe side of what a slow x86-64 server needs, not
 * measured on this machine: `brumm profile` does that and writes the result.
 */
#ifndef BRUMM_PRICES_H
#define BRUMM_PRICES_H

/* Finding the first mapping of a sponsor and starting to revoke there. */
#define BRUMM_PRICE_LOOKUP_NS	1000
/* Unlinking, zapping, uncharging and freeing a node. */
#define BRUMM_PRICE_MAP_NS	400
/* One page of it: page-table entry, TLB entry, frame. */
#define BRUMM_PRICE_PT_NS	100
/* Of what is not derived from the base itself: the way down to it and back. */
#define BRUMM_PRICE_DEEP_NS	400

/*
 * The living. From kills of 10^3 to 10^5 of a kind at a time, measured once, on
 * two virtual CPUs, rounded up to one digit; where none was measured, that of
 * the kind it resembles most.
 */
/* Signal, wake-up, exit, release and reaping of a process without memory. */
#define BRUMM_PRICE_PROCESS_NS		300000
#define BRUMM_PRICE_THREAD_NS		30000
/* An address space without mappings: its top level, maple tree, counters. */
#define BRUMM_PRICE_MM_NS		100000
#define BRUMM_PRICE_VMA_NS		800
#define BRUMM_PRICE_ANON_NS		500
#define BRUMM_PRICE_FILE_NS		500
#define BRUMM_PRICE_SHMEM_NS		500
#define BRUMM_PRICE_HUGE_NS		7000
#define BRUMM_PRICE_TABLE_NS		20000
#define BRUMM_PRICE_SWAP_NS		1000
/* A slot; what its last close takes is the file's. */
#define BRUMM_PRICE_FD_NS		100
#define BRUMM_PRICE_PLAIN_NS		1000
#define BRUMM_PRICE_EVENTFD_NS		2000
#define BRUMM_PRICE_PIPE_NS		2000
#define BRUMM_PRICE_UNIX_NS		6000
#define BRUMM_PRICE_TCP_NS		7000
#define BRUMM_PRICE_SOCKET_NS		7000
#define BRUMM_PRICE_URING_NS		100000
#define BRUMM_PRICE_EPOLL_NS		3000
#define BRUMM_PRICE_OTHERFILE_NS	3000
/* Without what is deferred, most of which runs later in a kernel thread. */
#define BRUMM_PRICE_NETNS_NS		10000000
#define BRUMM_PRICE_MNTNS_NS		1000000
#define BRUMM_PRICE_IPCNS_NS		1000000
#define BRUMM_PRICE_PIDNS_NS		4000000
#define BRUMM_PRICE_NS_NS		100000

#endif /* BRUMM_PRICES_H */
