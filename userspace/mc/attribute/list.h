/* SPDX-License-Identifier: GPL-2.0 */
/* The requests whose time was attributed, one by one, in a file. */
#ifndef BRUMM_MC_LIST_H
#define BRUMM_MC_LIST_H

#include "explain.h"

struct request_list;

/* @path NULL: no list; all others then do nothing. -errno. */
int list_open(struct request_list **l, const char *path, const struct events *e);
void list_add(struct request_list *l, bool outlier, uint64_t request,
	      const struct leg *leg, const struct finding *f, const struct canvas *c);
/* The file is there as a whole, or if not to be @kept, not at all; -errno. */
int list_close(struct request_list *l, bool kept);

#endif /* BRUMM_MC_LIST_H */
