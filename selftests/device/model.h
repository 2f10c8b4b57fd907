/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reference model of the derivation tree: one cell a page, no ranges, brute
 * force. It predicts what every QUERY and every count of brumm.stat must say,
 * and which errors a command may give.
 */
#ifndef BRUMM_TEST_MODEL_H
#define BRUMM_TEST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "cg.h"
#include "dev.h"

#define MODEL_PAYERS	8

/**
 * struct model_cell - a page of a window
 * @id: of the node it belongs to, 0: nothing here
 * @parent: index of the cell it was derived from, -1: root
 * @frame: number of the frame, unique
 */
struct model_cell {
	uint32_t id;
	int32_t parent;
	uint32_t frame;
	uint8_t rights;
	uint8_t depth;
	uint8_t sponsor;
	bool first;
};

/**
 * struct model - windows of equal size
 * @nr: number of windows
 * @pages: pages of each that are used
 * @win: descriptors
 * @mem: their memory; NULL: not looked at
 * @group: payer of what is mapped there first, 0: none
 * @payer: cgroups by number, from 1 on; @payer_id: their ids
 */
struct model {
	uint32_t nr, pages, next_id, next_frame;
	const int *win;
	uint32_t **mem;
	const uint8_t *group;
	int payer[MODEL_PAYERS];
	uint64_t payer_id[MODEL_PAYERS];
	uint32_t nr_payers;
	struct model_cell *cell;
};

void model_init(struct model *m, uint32_t nr, uint32_t pages, const int *win,
		const uint8_t *group);
/* Number of a cgroup as a payer. */
uint8_t model_payer(struct model *m, int cgroup);

static inline struct model_cell *model_at(struct model *m, uint32_t w,
					  uint32_t page)
{
	return &m->cell[w * m->pages + page];
}

/*
 * Do it in the model and with the device; the results must agree. Return what
 * the device said.
 */
int model_alloc(struct model *m, uint32_t w, uint32_t page, uint32_t n);
int model_map(struct model *m, uint32_t w, uint32_t from, uint32_t n,
	      uint32_t to_w, uint32_t to, uint32_t rights, uint32_t flags);
int model_unmap(struct model *m, uint32_t w, uint32_t page, uint32_t n,
		bool self);
int model_reduce(struct model *m, uint32_t w, uint32_t page, uint32_t n,
		 bool self, uint32_t rights);
/* A window is closed and another opened in its place. */
void model_reset_window(struct model *m, uint32_t w);

/* Compare everything with the device. */
void model_check(struct model *m);
/* Only what is charged. */
void model_check_counts(struct model *m);
uint32_t model_nodes(struct model *m, uint32_t w);

#endif /* BRUMM_TEST_MODEL_H */
