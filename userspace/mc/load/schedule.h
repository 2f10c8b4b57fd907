/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is to be sent and when, made before anything is sent. The schedule of all
 * ranks is one: each makes it from the same seed and keeps the requests that fall
 * to its own connections, so that the ranks' requests together are those of one
 * client with as many connections. It has rate times duration requests, exactly:
 * exponential gaps scaled so are a Poisson process, given that number.
 */
#ifndef BRUMM_MC_SCHEDULE_H
#define BRUMM_MC_SCHEDULE_H

#include "config.h"

enum op {
	OP_GET,
	OP_SET,
};

/**
 * struct request - one request
 * @intended: when it is to be sent: in a schedule ns since the start, in a run
 *	on the clock
 * @number: in the schedule of all ranks
 * @key: its key, the first of a multi-get
 * @next: the next request that waits for the same connection
 * @flow: connections of this number, one to each server, are those it goes by
 * @op: what it is
 * @open: legs that are not decided
 * @issued: it was handed to its connections, and does not wait for them
 */
struct request {
	uint64_t intended;
	uint64_t number;
	uint32_t key;
	uint32_t next;
	uint32_t flow;
	uint8_t op;
	uint8_t open;
	bool issued;
};

/**
 * struct copy - what of a request went over one connection
 * @sent: clock before the call that passed its last byte on; 0: not yet
 * @received: clock after the call that brought the last byte of the answer, or
 *	when it was given up on
 * @connection: number of the connection, in the thread
 * @keys: answers that are missing: more than one of a multi-get
 * @hits: keys that were there
 * @status: enum status
 */
struct copy {
	uint64_t sent;
	uint64_t received;
	uint16_t connection;
	uint8_t keys;
	uint8_t hits;
	uint8_t status;
};

/* As in the log; those up to COPY_STORED are answers. */
enum status {
	COPY_HIT,
	COPY_MISS,
	COPY_STORED,
	COPY_REFUSED,
	COPY_LOST,
	COPY_PROTOCOL,
	COPY_UNSENT,
	COPY_TIMED_OUT,
	COPY_IN_FLIGHT,
	COPY_LATE,
	COPY_NONE,		/* not used: no second copy was sent */
};

/**
 * struct plan - the requests of one thread
 * @request: in the order of their intended times
 * @copy: of a request, of a leg of it
 * @n: requests
 * @capacity: room for so many
 * @legs: of a request
 * @copies: of a leg, that can be
 * @id: of the first copy on the wire, the others follow
 */
struct plan {
	struct request *request;
	struct copy *copy;
	uint32_t n, capacity;
	uint8_t legs, copies;
	uint64_t id;
};

/* The first copy of a leg. */
static inline uint32_t plan_copy(const struct plan *p, uint32_t request,
				 unsigned int leg)
{
	return (request * p->legs + leg) * p->copies;
}

/* Who am I, of how many. */
struct share {
	unsigned int rank, ranks;
};

/**
 * schedule_make() - the requests of all threads of this rank
 * @plan: one for each thread; empty, freed by plan_free()
 * @seed: of this schedule
 * @duration: its length, ns
 *
 * Returns 0; -ENOMEM; -E2BIG: more than 2^32 copies a thread.
 */
int schedule_make(struct plan *plan, const struct config *c,
		  const struct share *share, uint64_t seed, uint64_t duration);

/* Sets of all keys that fall to this rank, to be sent as fast as it goes. */
int schedule_fill(struct plan *plan, const struct config *c,
		  const struct share *share);

/*
 * Of a closed loop without a rate: room for as many as there can be, the requests
 * are made by schedule_draw() as they are sent. @number is the first one's.
 */
int schedule_open_end(struct plan *plan, const struct config *c,
		      uint64_t duration);
void schedule_draw(struct request *r, const struct config *c, gsl_rng *rng);

void plan_free(struct plan *plan);

#endif /* BRUMM_MC_SCHEDULE_H */
