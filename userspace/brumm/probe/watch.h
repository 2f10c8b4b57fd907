/* SPDX-License-Identifier: GPL-2.0 */
/* The time in which is measured. */
#ifndef BRUMM_PROBE_WATCH_H
#define BRUMM_PROBE_WATCH_H

/* How often the command is looked after, and samples are fetched. */
#define WATCH_ROUND_MS	100

/**
 * struct watch - until when, and what is done meanwhile
 * @command: to run, and its arguments; NULL: none
 * @seconds: how long; 0: until a signal, or the command ends
 * @round: called again and again, takes that many ms; NULL: nothing to do
 * @arg: for @round
 * @code: of the command, as a shell has it; -1: it has not ended
 */
struct watch {
	char **command;
	double seconds;
	int (*round)(void *arg, int ms);
	void *arg;
	int code;
};

/* Until the end. 0, or a negative errno: of fork(), or what @round returned. */
int watch(struct watch *w);

#endif /* BRUMM_PROBE_WATCH_H */
