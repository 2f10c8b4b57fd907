/* SPDX-License-Identifier: GPL-2.0 */
/* The prices file, brumm-prices/1: see Documentation/design/measuring.md. */
#ifndef BRUMM_PRICES_FILE_H
#define BRUMM_PRICES_FILE_H

#include <jansson.h>

#include "fit.h"

#define PRICES_SCHEMA	"brumm-prices/1"
#define PRICES_FILE	"/var/lib/brumm/prices.json"

/*
 * Reads and verifies one. 0; -ENOENT; -EBADMSG: it is not a prices file, or
 * a damaged one; another error of reading.
 */
int prices_read(const char *path, json_t **doc);

/*
 * Replaces the file in one step: whoever is killed in between, or whose disk is
 * full, leaves the old one. Makes the folder it is to be in, not those above.
 */
int prices_write(const char *path, const json_t *doc);

/* Can prices_write() open the folder? So that it is known before measuring. */
int prices_prepare(const char *path);

/*
 * Two lists: one near what the usual shapes take, in which mappings stand next to
 * each other, and one that holds wherever they stand.
 */
enum prices_list { PRICES_USUAL, PRICES_WORST, PRICES_LISTS };

/* As in the file: "prices" and "worst". */
extern const char *const prices_lists[PRICES_LISTS];

/*
 * The prices of @doc by term, the caller's side (syscall) included. 0; -EBADMSG:
 * it has no such list.
 */
int prices_get(const json_t *doc, enum prices_list list, double ns[FIT_TERMS]);

/* Makes them the prices of the root cgroup @root, all or none. */
int prices_set(const json_t *doc, enum prices_list list, int root);

#endif /* BRUMM_PRICES_FILE_H */
