/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does a run say what it seems to say? Each gate looks at something that its figures
 * take for granted. What is not known fails nothing. All of it is a function of
 * facts, so that every gate can be shown to fail.
 */
#ifndef BRUMM_MC_GATES_H
#define BRUMM_MC_GATES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Numbers that are not known are NAN. */
struct facts {
	bool interrupted;	/* by a signal, or there was no room for more */
	unsigned int ranks, reported;
	double start_error;	/* ns between ranks, at most */
	double window;		/* ns */
	double requests;	/* in it */
	double scheduled;	/* that were to be in a window of @window; NAN: a closed loop */
	double sent;		/* requests that were sent in it */
	double rate;		/* asked for; NAN: as fast as it goes */
	double late;		/* requests sent later than the least threshold */
	double arrivals;	/* Anderson-Darling's A^2 of the worst thread */
	double busy;		/* share of the window, of the busiest thread */
	double run_delay;	/* share of the window, of the most delayed thread */
	double timer;		/* ns that half of the sleeps are late, or more */
	double backwards;	/* times that the clock went */
	double drift;		/* relative, against CLOCK_MONOTONIC_RAW */
	double resolution;	/* ns, of the clock */
	double lost;		/* connections, times */
	double errors;		/* failed, but not by a lost connection */
	double misses, asked;	/* keys of gets; asked 0: none; NAN: not stored before */
	double restarts, evictions;	/* of the servers */
	double steal;		/* share of the machine's CPU time */
	double in_flight;	/* sum over time, ns */
	double latencies;	/* sum of those of copies, ns */
};

enum verdict {
	GATE_PASS,
	GATE_FAIL,
	GATE_UNKNOWN,
};

struct gate {
	const char *name, *unit, *text;
	enum verdict verdict;
	double value, limit;	/* NAN: not known */
};

#define GATES 17

void gates_judge(const struct facts *f, struct gate gate[GATES]);
/* Has one failed? */
bool gates_failed(const struct gate gate[GATES]);
json_t *gates_json(const struct gate gate[GATES]);
/* "gate rate: 0.93, limit 0.99: ...", of a buffer. */
void gate_reason(const struct gate *g, char *buf, size_t size);

/**
 * gates_anderson_darling() - are these from an exponential distribution?
 * @gap: sorted by this; n of them
 * @mean: of the distribution
 *
 * Returns A^2, which is above 6.0 once in a thousand if they are. NAN: n < 50.
 */
double gates_anderson_darling(double *gap, size_t n, double mean);

#endif /* BRUMM_MC_GATES_H */
