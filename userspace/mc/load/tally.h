/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts of a run, made from the timestamps when it is over. All are sums (and a few
 * extremes), so that what threads and ranks counted can be added without a loss.
 */
#ifndef BRUMM_MC_TALLY_H
#define BRUMM_MC_TALLY_H

#include "../hist.h"
#include "schedule.h"

/* What became of a request, or a leg of one. */
enum outcome {
	OUTCOME_ANSWERED,
	OUTCOME_REFUSED,
	OUTCOME_LOST,
	OUTCOME_PROTOCOL,
	OUTCOME_UNSENT,
	OUTCOME_TIMED_OUT,
	OUTCOME_IN_FLIGHT,
	OUTCOMES,
};

/* Of one threshold; see Documentation/abi/mc-json.md. */
struct over {
	uint64_t over, over_send, over_lag, censored_over, censored_under;
};

/* Plain memory, so that it can be sent to another rank as it is. */
struct tally {
	uint64_t outcome[OUTCOMES];
	uint64_t hits, misses, stored;
	struct over threshold[MAX_THRESHOLDS];
	struct mc_hist intended, send, lag;
};

/**
 * struct counts - all that is counted
 * @thresholds: how many of each tally are used
 * @servers: legs by server, after @total
 * @intervals: of the time line
 * @tally: @total of requests, then one for each server
 * @line: the time line, in columns: see counts_line()
 * @sent: copies on the wire
 * @sent_in_window: requests of which all was sent before the end of the window
 * @hedged: second copies
 * @won: legs that a second copy answered first
 */
struct counts {
	unsigned int thresholds, servers;
	uint64_t interval, intervals;
	struct tally *tally;
	uint64_t *line;
	uint64_t sent, sent_in_window, hedged, won;
};

/* The columns of the time line. */
enum { LINE_REQUESTS, LINE_CENSORED, LINE_OVER };

static inline uint64_t *counts_line(const struct counts *c, unsigned int column)
{
	return c->line + column * c->intervals;
}

/* Requests, censored, and two columns for each threshold: lower and upper. */
static inline unsigned int counts_columns(const struct counts *c)
{
	return LINE_OVER + 2 * c->thresholds;
}

/* Of a window of @duration; -ENOMEM. */
int counts_alloc(struct counts *n, const struct config *c, uint64_t duration);
void counts_free(struct counts *n);

/**
 * struct decision - of a request, by the leg and copy that decided when it was over
 * @first: when the first copy of that leg was sent; 0: never
 * @sent: that copy; 0: never
 * @received: when it was answered, or given up on
 * @connection: that it went by, of the thread
 * @answered: the request was
 */
struct decision {
	uint64_t intended, first, sent, received;
	uint16_t connection;
	bool answered;
};

/* Of a request that was begun. */
struct decision request_decision(const struct plan *p, uint32_t request);

/* From where to where on the clock, and when no answer was awaited any more. */
struct window {
	uint64_t start, end, close;
};

/**
 * counts_add_plan() - count what a thread has noted
 * @began: so many of its requests were begun
 */
void counts_add_plan(struct counts *n, const struct config *c,
		     const struct plan *p, uint32_t began,
		     const struct window *window);

/* Both are of the same configuration. */
void counts_merge(struct counts *to, const struct counts *from);

/* Requests of a tally. */
uint64_t tally_requests(const struct tally *t);

json_t *tally_json(const struct tally *t, const struct config *c);
/* The time line of a window that was @length ns long. */
json_t *line_json(const struct counts *n, uint64_t length);

#endif /* BRUMM_MC_TALLY_H */
