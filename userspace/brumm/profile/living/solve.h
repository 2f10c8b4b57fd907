/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prices of many kinds from what was measured.
 *
 * First a robust fit, non-negative, of relative residuals: what one of each
 * kind takes on average. Then prices that hold: a linear program as for the
 * device (cover.h), but near the fit, since there are as many kinds as shapes:
 *
 *	expected >= measured			for every shape,
 *	expected / measured			on average as small as it can be,
 *	least * fit <= price <= most * fit	for every kind, most being exceeded
 *						where no price would hold otherwise.
 */
#ifndef BRUMM_LIVING_SOLVE_H
#define BRUMM_LIVING_SOLVE_H

#include <stdbool.h>

#include "kinds.h"

/**
 * struct solve_row - one kill, or the median of several that are alike
 * @count: of each kind
 * @ns: what it took
 * @cover: the part of it that has to be expected
 */
struct solve_row {
	struct counts count;
	double ns, cover;
};

/**
 * struct solved - what was found
 * @used: the kind occurs; of others nothing is known
 * @mean: fitted
 * @error: half of the 95 % interval of it
 * @price: whole ns, 1 at least
 * @least, @most: expected / measured of the rows that the prices cover
 */
struct solved {
	bool used[KINDS_MOST];
	double mean[KINDS_MOST], error[KINDS_MOST];
	double price[KINDS_MOST];
	double least, most;
};

/*
 * @runs: single kills, for the fit; @cells: medians, for the prices; @kinds: how
 * many kinds there are. 0; -EINVAL: the runs do not tell the kinds apart;
 * -ENOMEM.
 */
int solve_prices(const struct solve_row *runs, size_t nr_runs,
		 const struct solve_row *cells, size_t nr_cells, size_t kinds,
		 struct solved *s);

#endif /* BRUMM_LIVING_SOLVE_H */
