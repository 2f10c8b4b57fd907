/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread of the client: it sends what its plan says, when that says so, and notes
 * when answers come. While it runs it only writes timestamps down; all counting is
 * done afterwards from the plan (tally.h), so that it costs no latency.
 */
#ifndef BRUMM_MC_WORKER_H
#define BRUMM_MC_WORKER_H

#include <pthread.h>
#include <sys/types.h>

#include "conn.h"

/* The most of answers that are waited for before the window. */
#define DRAIN		(5 * NSEC)

/**
 * struct phase - filling, warming up, or the window: the same for all threads
 * @start: when it begins, ns on the clock
 * @end: when no more is sent; UINT64_MAX: when all is
 * @grace: how long answers are awaited from then
 * @timeout: no answer is awaited for longer
 * @hedge: when a second copy is sent, after the intended time, UINT64_MAX: never
 * @spin: polls so long before a request is due
 * @closed: requests wait until their connection has fewer than @depth under way
 * @unpaced: intended is when that is so
 * @drawn: requests are made as they are sent
 */
struct phase {
	uint64_t start, end, grace, timeout, hedge, spin;
	unsigned int depth;
	bool closed, unpaced, drawn;
};

/* What a thread uses up; of two times, the difference is of what is between. */
struct usage {
	uint64_t cpu, run_delay, switches;
	bool has_run_delay;
};

/**
 * struct effort - of the last phase of a thread
 * @used: by it
 * @idle: ns in which it slept, or polled and found nothing
 * @length: of the phase, ns
 * @in_flight: sum over time of what is in flight, in ns: by Little's law the sum of
 *	latencies
 * @max_in_flight: most copies at a time
 * @backwards: how often the clock was less than before
 * @late: answers that nobody waited for any more
 * @cut: when it was cut short, 0: it was not
 * @exhausted: there was no room for more requests
 * @began: requests of the plan that were begun
 */
struct effort {
	struct usage used;
	uint64_t idle, length;
	double in_flight;
	uint32_t max_in_flight, backwards;
	uint64_t late, cut;
	bool exhausted;
	uint32_t began;
};

struct flow {
	uint32_t under_way;
	uint32_t first, last;	/* requests that wait; UINT32_MAX: none */
};

struct worker {
	const struct config *config;
	const struct keys *keys;
	struct share share;
	unsigned int index;
	int cpu;		/* -1: not pinned */
	pid_t tid;
	pthread_t thread;
	pthread_barrier_t *barrier;
	const struct phase *phase;	/* NULL: end */
	struct plan *plan;
	int err;		/* it cannot go on */

	struct conn *conn;	/* flow, server */
	struct flow *flow;
	unsigned int flows;
	int epoll;
	gsl_rng *rng;

	/* of the phase that runs */
	struct effort effort;
	uint64_t now;
	uint64_t look;		/* when to look after lost connections */
	uint32_t next, timeout_next, hedge_next;
	uint32_t open;		/* requests begun and not decided */
	uint32_t in_flight;
	uint64_t in_flight_since;
};

/* Connects, and starts the thread; says what is wrong, -errno. */
int worker_start(struct worker *w);
/* After its thread has ended. */
void worker_free(struct worker *w);

/* Index of a connection among those of the rank. */
static inline unsigned int worker_connection(const struct worker *w,
					     unsigned int conn)
{
	unsigned int servers = w->config->servers;

	return (conn / servers * w->config->threads + w->index) * servers +
	       conn % servers;
}

/* ---- between the files of the worker ------------------------------------ */

/* Sends what is due; true if there was something. */
bool send_due(struct worker *w);
/* The same for second copies, and for what has waited too long. */
bool hedge_due(struct worker *w);
bool time_out_due(struct worker *w);
/* Sends what is in a connection's buffer. */
void send_flush(struct worker *w, struct conn *c);
/* A copy is decided at @at. */
void copy_done(struct worker *w, struct plan *p, uint32_t copy,
	       enum status status, uint64_t at);
/* What is read from a connection. */
void receive(struct worker *w, struct conn *c);
/* A connection is gone. */
void conn_lost(struct worker *w, struct conn *c);
/* Keeps the sum over time of what is in flight. */
void in_flight_change(struct worker *w, int change, uint64_t at);
/* Changes what epoll tells of a connection. */
int watch_conn(struct worker *w, struct conn *c, int op);

#endif /* BRUMM_MC_WORKER_H */
