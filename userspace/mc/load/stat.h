/* SPDX-License-Identifier: GPL-2.0 */
/* What a server says of itself (stats), and this machine of its clock and CPUs. */
#ifndef BRUMM_MC_STAT_H
#define BRUMM_MC_STAT_H

#include "config.h"

/* Numbers are -1 where it does not say. */
struct server_stats {
	bool known;
	int64_t pid, uptime, evictions, items, threads, expanding, rusage_us;
	char version[64];
};

/* By a connection of its own; @s->known is false if there is no answer in 2 s. */
void server_stats(const struct server *server, struct server_stats *s);
/* null if it is not known. */
json_t *server_stats_json(const struct server_stats *s);

/* CPU time of all CPUs, and what of it the hypervisor gave to others, ticks. */
struct cpu_time {
	uint64_t all, steal;
};

/* -errno */
int cpu_time(struct cpu_time *t);

/* How late sleeps end here: median and 99th percentile, ns. Takes 20 ms. */
void timer_overshoot(uint64_t *p50, uint64_t *p99);

/* CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW at one moment, ns. */
void clock_pair(uint64_t *mono, uint64_t *raw);

#endif /* BRUMM_MC_STAT_H */
