/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is counted: the one list of kinds, their names in brumm.price and
 * brumm.stat, and the prices at load. The order is that of these files; user
 * space takes names from there and has no list of its own.
 *
 * The device's kinds follow from its own mappings (quota.md), those of the
 * living from what tasks own (living.md). A kind of the living is charged to the
 * group of whoever holds it:
 *
 *	process		thread groups, from fork until the last thread is released
 *	thread		their other threads
 *	mm		address spaces
 *	vma		mappings of an address space
 *	anon, file, shmem
 *			present 4 KiB pages by kind; each mapping counts for the
 *			mapper, whoever else maps the page
 *	huge		pages mapped by one entry of an upper level, in units of the
 *			PMD's size; not among the former three
 *	table		page-table pages of all levels but the top one
 *	swap		swap entries
 *	fd		used slots of a descriptor table
 *	plain ... otherfile
 *			struct file by type, once in each group that holds it,
 *			however many slots: regular file or folder, eventfd, end of
 *			a pipe, Unix socket, TCP socket, other socket, io_uring,
 *			epoll, anything else
 *	netns, mntns, ipcns, pidns, ns
 *			namespaces, to the lowest group that all their users are in or
 *			below; ns: other types
 */
#ifndef BRUMM_KINDS_H
#define BRUMM_KINDS_H

#include "prices.h"

/* X(NAME, "name"); the price at load is BRUMM_PRICE_NAME_NS. */
#define LEDGER_KINDS_LIST(X)						\
	X(LOOKUP, "lookup")						\
	X(MAP, "map")							\
	X(PT, "pt")							\
	X(DEEP, "deep")

#define LIVING_KINDS_LIST(X)						\
	X(PROCESS, "process")						\
	X(THREAD, "thread")						\
	X(MM, "mm")							\
	X(VMA, "vma")							\
	X(ANON, "anon")							\
	X(FILE, "file")							\
	X(SHMEM, "shmem")						\
	X(HUGE, "huge")							\
	X(TABLE, "table")						\
	X(SWAP, "swap")							\
	X(FD, "fd")							\
	X(PLAIN, "plain")						\
	X(EVENTFD, "eventfd")						\
	X(PIPE, "pipe")							\
	X(UNIX, "unix")							\
	X(TCP, "tcp")							\
	X(SOCKET, "socket")						\
	X(URING, "uring")						\
	X(EPOLL, "epoll")						\
	X(OTHERFILE, "otherfile")					\
	X(NETNS, "netns")						\
	X(MNTNS, "mntns")						\
	X(IPCNS, "ipcns")						\
	X(PIDNS, "pidns")						\
	X(NS, "ns")

#define LEDGER_KIND_ENUM(name, ...)	LEDGER_##name,
enum ledger_kind {
	LEDGER_KINDS_LIST(LEDGER_KIND_ENUM)
	LEDGER_KINDS,
};

#define LIVING_KIND_ENUM(name, ...)	LIVING_##name,
enum living_kind {
	LIVING_KINDS_LIST(LIVING_KIND_ENUM)
	LIVING_KINDS,
};

/* All of them in the order of the files: a bit each in a mask of kinds. */
#define LEDGER_ALL_KINDS	(LEDGER_KINDS + LIVING_KINDS)

#endif /* BRUMM_KINDS_H */
