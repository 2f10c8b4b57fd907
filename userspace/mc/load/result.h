/* SPDX-License-Identifier: GPL-2.0 */
/* What came out of a run: of one rank, then of all, then printed. */
#ifndef BRUMM_MC_RESULT_H
#define BRUMM_MC_RESULT_H

#include "../attribute/attribution.h"
#include "gates.h"
#include "ranks.h"
#include "stat.h"
#include "tally.h"
#include "worker.h"

/* Of one rank, or the sums and extremes of several; NAN: not known. */
struct client {
	uint64_t window;	/* ns that it lasted; of several the longest */
	uint64_t grace;		/* ns that answers were awaited then */
	uint64_t cut, exhausted;/* ranks that were cut short */
	uint64_t unlogged;	/* ranks that could not write their log */
	uint64_t late;		/* answers that nobody waited for any more */
	uint64_t lost;		/* connections */
	double timer_p50, timer_p99;
	double arrivals, busy, run_delay, backwards, drift, resolution, steal;
	double in_flight, latencies;
};

struct result {
	const struct config *config;
	const struct ranks *ranks;
	uint64_t start, start_realtime, hedge, spin;
	struct counts counts;
	struct client client;
	json_t *threads, *connections;	/* of all ranks */
	struct attribution *attribution;	/* NULL: not asked for */
	struct server_stats before[MAX_SERVERS], after[MAX_SERVERS];
	struct gate gate[GATES];
};

/* Clocks and CPU time at the start of the window, and at its end. */
struct mark {
	uint64_t mono, raw;
	struct cpu_time cpu;
	bool has_cpu;
};

void mark_now(struct mark *m);

/* Of this rank, when its threads are done; -ENOMEM. */
int load_result_count(struct result *r, const struct worker *w,
		 const struct window *window, const struct mark mark[2]);

/* As bytes for rank 0; NULL: no memory. */
void *load_result_pack(const struct result *r, size_t *size);
/* Adds them; false: they are not of the same run. An argument of ranks_collect(). */
bool load_result_add(unsigned int from, const void *data, size_t size, void *result);

/* Judges it; then it can be printed. */
void load_result_judge(struct result *r);
/* EXIT_FINE, or EXIT_MISSED. */
int load_result_status(const struct result *r);
bool load_result_partial(const struct result *r);

json_t *load_result_json(const struct result *r);
void load_result_print(const struct result *r, FILE *f);
void load_result_free(struct result *r);

#endif /* BRUMM_MC_RESULT_H */
