/* SPDX-License-Identifier: GPL-2.0 */
/* Where the time of one request went, by what was recorded. */
#ifndef BRUMM_MC_EXPLAIN_H
#define BRUMM_MC_EXPLAIN_H

#include "events.h"

/**
 * struct leg - a request, by the leg and copy that decided it
 * @intended: when it was due, ns
 * @first: when the first copy was sent, if this one is another; 0: it is the first
 * @sent: when it was sent; 0: never
 * @received: when it was answered, or given up on
 * @ports: of its connection, as ATTR_PORTS(); 0: not by TCP
 * @answered: it was
 */
struct leg {
	uint64_t intended, first, sent, received;
	uint32_t ports;
	bool answered;
};

/* How far the records told. */
enum known {
	KNOWN_ALL,
	KNOWN_UNSENT,		/* it was not sent */
	KNOWN_LOST,		/* records are missing */
	KNOWN_NOT,		/* nobody was seen to get it, or to read it */
	KNOWNS,
};

/**
 * struct finding - about one request
 * @known: see there
 * @tid: of the server's thread, 0: not known
 * @cpu: where that got the request, NO_CPU: not known
 * @arrived: when the server's socket got it; 0, as with the others: not seen
 * @read: when the server had read it
 * @answered: when the client's socket got the answer
 */
struct finding {
	enum known known;
	uint32_t tid;
	uint16_t cpu;
	uint64_t arrived, read, answered;
};

/* Paints @c from the intended time to the end. */
void explain(const struct events *e, const struct leg *l, struct canvas *c,
	     struct finding *f);

#endif /* BRUMM_MC_EXPLAIN_H */
