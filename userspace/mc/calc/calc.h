/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRUMM_MC_CALC_H
#define BRUMM_MC_CALC_H

#include "../results/figures.h"

/* "10%" or "0.1": from 0 to 1; -EINVAL for what is none. */
int parse_proportion(const char *text, double *p);

/* "10%,5%": up to MAX_TARGETS, above 0 and below 1. */
int parse_targets(const char *text, struct figures_opts *o);

/*
 * The factors that the paper on 10-millisecond computing gives, which outlier
 * proportion each comes from, and whether two can come from one.
 */
json_t *paper_json(void);
void paper_print(const json_t *paper, FILE *f);

/* As text. */
void figures_print(const json_t *figures, FILE *f);
void proportion_print(const json_t *j, FILE *f);

#endif /* BRUMM_MC_CALC_H */
