/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Results of brumm mc load, as they are read: counts only, which can be added.
 * The format is Documentation/abi/mc-json.md.
 */
#ifndef BRUMM_MC_LOAD_H
#define BRUMM_MC_LOAD_H

#include <jansson.h>

#include "../metrics/metrics.h"

/* Longer than @t_ns: at least @low of the requests, at most @high. */
struct over {
	uint64_t t_ns;
	uint64_t low, high;
};

/**
 * struct load_threshold - all about one threshold
 * @all: of all requests
 * @leg: of the legs to each server, load.servers of them
 * @low, @high: over time, load.slices of them
 */
struct load_threshold {
	struct over all;
	struct over *leg;
	struct slice *low, *high;
};

/**
 * struct load - one run
 * @doc: what was read; the strings are of it
 * @status: "valid", "invalid" or "partial"
 * @requests: N
 * @answered: those in @slot and @beyond
 * @window_s: how long requests were sent, seconds
 * @fanout: legs of a request
 * @slice_ns: a slice of time
 * @leg_requests: legs to each server
 * @slot: latencies from the intended time, of answered requests
 * @beyond: answered, but too late for any slot
 */
struct load {
	json_t *doc;
	const char *status;
	uint64_t requests, answered;
	double window_s;
	size_t fanout;
	uint64_t slice_ns;
	size_t thresholds, servers, slices, slots;
	struct load_threshold *threshold;
	uint64_t *leg_requests;
	struct tail_slot *slot;
	uint64_t beyond;
};

/*
 * Takes a reference to @doc. Return: 0, -ENOMEM, or -EINVAL with a line in @why
 * of what is not as it has to be.
 */
int load_parse(struct load *l, json_t *doc, char *why, size_t size);
/* From a file; says on stderr why not. */
int load_read(struct load *l, const char *path);
void load_free(struct load *l);

/* Of @count slots one after the other: those of @runs runs added. */
struct tail_slot *load_merge_slots(const struct load *l, size_t runs,
				   size_t *count);

#endif /* BRUMM_MC_LOAD_H */
