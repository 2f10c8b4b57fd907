/* SPDX-License-Identifier: GPL-2.0 */
/* Recording what happens on the servers' CPUs, by BPF. */
#ifndef BRUMM_MC_RECORD_H
#define BRUMM_MC_RECORD_H

#include <jansson.h>

#include "events.h"

/* "tp_btf+fentry" and so on, in the order they are tried; NULL ends. */
extern const char *const recorder_ways[];

/**
 * struct recorder_options - what to record, and how
 * @port: of the servers, @ports of them
 * @ring: room for what was not fetched yet, bytes, a power of two; 0: 16 MiB
 * @way: of recorder_ways; NULL: the first that works
 * @most: records to be kept; 0: 4 Mi
 */
struct recorder_options {
	const uint16_t *port;
	size_t ports;
	uint32_t ring;
	const char *way;
	uint64_t most;
};

/**
 * struct recorder_losses - what makes the records incomplete
 * @ring: found no room in the ring
 * @memory: were more than are kept
 * @missed: events that the kernel left out
 * @orphans: ends without a begin
 * @threads: threads of servers there was no room for
 */
struct recorder_losses {
	uint64_t ring, memory, missed, orphans, threads;
};

struct recorder;

/*
 * Attaches; finds out which threads are the servers' from now on. 0 or -errno: -EPERM:
 * not allowed; -EOPNOTSUPP: no way works here. *@why, to be freed, then tells what was
 * tried.
 */
int recorder_open(const struct recorder_options *o, struct recorder **r, char **why);
/* From now on all is recorded; -errno. */
int recorder_start(struct recorder *r);
/* No more; then the records can be looked at. */
void recorder_stop(struct recorder *r);
void recorder_close(struct recorder *r);

/* Sorted. */
const struct events *recorder_events(const struct recorder *r);
struct recorder_losses recorder_losses(const struct recorder *r);
const char *recorder_way(const struct recorder *r);
/* Names of parts that cannot be told here. */
json_t *recorder_missing(const struct recorder *r);

#endif /* BRUMM_MC_RECORD_H */
