/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The reference: what the mapping database should look like, page by page. Each
 * page of each window knows which page it was derived from; to revoke is to
 * search all pages for those that lead there. No trees, no ranges, no locks.
 *
 * A node is a number that its pages have in common. Neighbours are never
 * merged. Nothing is accounted for as it happens: charges are counted anew
 * from the pages, whenever they are asked for.
 */
#ifndef UNIT_MODEL_H
#define UNIT_MODEL_H

#include "world.h"

#define MODEL_WINDOWS	6
#define MODEL_PAGES	24
#define MODEL_GROUPS	6

struct mpage {
	bool used;
	bool root;
	bool first;
	u8 rights;
	u8 depth;
	int sponsor;		/* group, -1: none */
	u32 object;
	u32 frame;
	u32 node;
	u32 birth;		/* the same as long as the mapping stays */
	int pw;			/* what it was derived from, unless root */
	u32 pp;
};

struct mgroup {
	int parent;
	u64 max;
	bool locked;
	bool own_prices;
	struct ledger_prices prices;
};

struct model {
	int windows;
	u32 pages;
	int groups;
	int window_group[MODEL_WINDOWS];
	struct mgroup group[MODEL_GROUPS];
	struct ledger_prices root_prices;
	u32 next_node;
	u32 next_birth;
	struct mpage page[MODEL_WINDOWS][MODEL_PAGES];
	/* What the last operation did. */
	u8 event_all[MODEL_WINDOWS][MODEL_PAGES];
	u8 event_rights[MODEL_WINDOWS][MODEL_PAGES];
	u64 pages_touched;
	u64 nodes_touched;	/* at least: more where pieces are cut anew */
};

/* A set of errno values: where several apply, any of them is right. */
#define ERR(e)		(1ULL << ((e) == EDQUOT ? 63 : (e) % 63))

struct mreq {
	int sw;
	u32 from;
	int tw;
	u32 to;
	u32 pages;
	u32 rights;
	u32 flags;
	int sponsor;
};

void model_init(struct model *m, const struct world_config *c);

/*
 * Each returns the errors that apply; if there are none, the operation has
 * been done. @object is what the real one has called the new frames.
 */
u64 model_alloc(struct model *m, int w, u32 start, u32 pages, u32 object);
u64 model_map(struct model *m, const struct mreq *r);
u64 model_grant(struct model *m, const struct mreq *r);
/*
 * With REPLACE, where the source is lost with the target: revoke the target
 * only, which is what remains when the second look at the source fails. Returns
 * false, and does nothing, if the source would not be lost.
 */
bool model_lose_source(struct model *m, const struct mreq *r);
u64 model_unmap(struct model *m, int w, int actor, u32 start, u32 pages,
		bool self);
u64 model_reduce(struct model *m, int w, u32 start, u32 pages, bool self,
		 u32 rights);
void model_release(struct model *m, int w);
void model_reclaim(struct model *m, int group);
u64 model_query(const struct model *m, int w, u32 page, bool next, bool count,
		struct mapdb_info *info);

/* What is charged to a group and those below it. */
void model_counts(const struct model *m, int group, struct ledger_counts *c);
const struct ledger_prices *model_prices(const struct model *m, int group);

/* For the other parts of the model. */
typedef bool marks[MODEL_WINDOWS][MODEL_PAGES];

#define for_each_page(m, w, p)						\
	for ((w) = 0; (w) < (m)->windows; (w)++)			\
		for ((p) = 0; (p) < (m)->pages; (p)++)

u32 model_node_start(const struct model *m, int w, u32 p);
u32 model_node_end(const struct model *m, int w, u32 p);
void model_mark_below(const struct model *m, marks mark);

#endif /* UNIT_MODEL_H */
