/* SPDX-License-Identifier: GPL-2.0 */
/* Sums over requests of where their time went: of outliers, or of normal ones. */
#ifndef BRUMM_MC_SIDE_H
#define BRUMM_MC_SIDE_H

#include <jansson.h>
#include <stdio.h>

#include "explain.h"

/**
 * struct side - sums
 * @n: requests
 * @of: that they were drawn from
 * @total_ns: time of all
 * @ns: of it, by part; together that is @total_ns
 * @known: requests by how far the records told
 * @by: time by who had the CPU meanwhile: run_queue, teardown and brumm of each
 * @whos: how many
 */
struct side {
	uint64_t n, of, total_ns, ns[PARTS], known[KNOWNS];
	uint64_t (*by)[3];
	size_t whos;
};

/* -ENOMEM */
int side_init(struct side *s, const struct events *e);
void side_add(struct side *s, const struct canvas *c, const struct finding *f);
void side_free(struct side *s);

json_t *side_json(const struct side *s, const struct events *e);
/* A table of both: means. */
void sides_print(const struct side *outliers, const struct side *normals,
		 const struct events *e, FILE *f);

#endif /* BRUMM_MC_SIDE_H */
