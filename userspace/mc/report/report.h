/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The report of a study: first the document, JSON with all figures and all
 * words that hold one, then what shows it. A page, a picture or a table takes
 * nothing that is not in the document.
 */
#ifndef BRUMM_MC_REPORT_H
#define BRUMM_MC_REPORT_H

#include "collect.h"

#define REPORT_SCHEMA "brumm-mc-report/1"

/* ---- phases.c ------------------------------------------------------------- */

/*
 * op before, while and after the neighbour acted, by threshold; NULL: nobody
 * did, or no memory.
 */
json_t *phases_json(const struct group *g, const struct figures_opts *o);

/*
 * Of the first run of @g: [s from the start, op] of threshold @t by slice; and
 * in *@marks when the neighbour acted, as { "x":, "label": }.
 */
json_t *timeline_json(const struct group *g, size_t t, json_t **marks);

/* ---- axes.c --------------------------------------------------------------- */

/* An axis with tics at round figures, from what is to be on it. */
json_t *axis_linear(const char *label, double low, double high);
/* From 0 on, of what is counted. */
json_t *axis_whole(const char *label, double high);
/* Whole decades; what is 0 or less is not on it. */
json_t *axis_log(const char *label, double low, double high);

/* ---- plots.c -------------------------------------------------------------- */

/* "figures" of the document: what is to be drawn. */
json_t *plots_json(const struct study_results *r, const json_t *cells);

/* ---- document.c ----------------------------------------------------------- */

/* The document; NULL: no memory. */
json_t *report_json(const struct study_results *r);

/* ---- draw.c --------------------------------------------------------------- */

/*
 * A picture of a figure as SVG to be put into a page, by gnuplot; NULL: what
 * went wrong is said, *@status is the exit code.
 */
char *draw_figure(const json_t *figure, int *status);

/* ---- page.c, tables.c ----------------------------------------------------- */

/* 0 or a negative errno. */
int page_write(const json_t *doc, char *const *svg, FILE *f);

/* op.csv: a row a cell and threshold. */
int table_write(const json_t *doc, FILE *f);

/* "HDR percentile" text of a group: what other tools plot. */
int percentiles_write(const struct group *g, FILE *f);

#endif /* BRUMM_MC_REPORT_H */
