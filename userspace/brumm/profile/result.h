/* SPDX-License-Identifier: GPL-2.0 */
/* What the profiling phase found, as a prices file. */
#ifndef BRUMM_RESULT_H
#define BRUMM_RESULT_H

#include <jansson.h>

#include "cover.h"
#include "measure.h"
#include "prices.h"
#include "terms.h"

/**
 * struct result - all that was found
 * @m: the runs
 * @all: the terms fitted to all runs
 * @fit: fitted to those of one state
 * @cover: prices
 * @states: bit by measure_state
 * @set: which prices are to be in force
 * @probed: @terms are there; else see its @why, if probes were wanted
 */
struct result {
	struct measure m;
	struct fit all;
	struct fit fit[MEASURE_STATES];
	struct cover cover;
	unsigned int states;
	enum prices_list set;
	bool probed;
	struct terms terms;
};

/* Fits and prices. 0; -EINVAL: the runs do not tell the terms apart; -ENOMEM. */
int result_fit(struct result *r);

/* So many runs were disturbed that the prices are good for little. */
bool result_busy(const struct result *r);
void result_free(struct result *r);

/* brumm-prices/1; NULL: no memory. */
json_t *result_json(const struct result *r);

#endif /* BRUMM_RESULT_H */
