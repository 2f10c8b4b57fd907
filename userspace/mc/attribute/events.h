/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What was recorded, kept by type and sorted, so that what concerns a CPU, a thread or
 * a connection in some time is found at once.
 */
#ifndef BRUMM_MC_EVENTS_H
#define BRUMM_MC_EVENTS_H

#include <linux/types.h>

#include "../../../bpf/mcattr.h"
#include "canvas.h"

/* Somebody who ran on a server's CPU. */
struct who {
	char comm[16];
	uint64_t cgroup;
};

struct spans {
	struct span *v;
	size_t n, size;
	int key;		/* what they are sorted by */
};

/**
 * struct events - all records
 * @of: by type; slices by CPU
 * @exits: what of slices is an exit of another, by CPU
 * @runs: slices of the servers' threads, by thread
 * @marks: what was received and sent, by thread
 * @who: by index; the first is nobody
 * @most: how many spans there may be
 * @nr: how many there are
 * @refused: records for which there was no room here
 * @refusal: index of when, among those that are lost
 */
struct events {
	struct spans of[ATTR_TYPES], exits, runs, marks;
	struct who *who;
	size_t whos, who_size;
	uint32_t *hash;		/* of @who, a power of two */
	size_t hash_size;
	uint64_t most, nr, refused;
	size_t refusal;
};

/* Takes a record, of @size bytes; what there is no room for is counted as lost. */
void events_add(struct events *e, const struct attr_record *r, size_t size);
/* Before anything is looked for. */
void events_sort(struct events *e);
void events_free(struct events *e);

/*
 * Those of @key (a CPU, thread, or connection, whatever the spans are sorted by)
 * that overlap [start, end), as many as *@n.
 */
const struct span *spans_in(const struct spans *s, uint64_t key, uint64_t start,
			    uint64_t end, size_t *n);
/* Of points: the first at @from or later, and the last before @to; NULL: none. */
const struct span *spans_first(const struct spans *s, uint64_t key, uint64_t from,
			       uint64_t to);
const struct span *spans_last(const struct spans *s, uint64_t key, uint64_t from,
			      uint64_t to);

#endif /* BRUMM_MC_EVENTS_H */
