// SPDX-License-Identifier: GPL-2.0
/* The model: what a query finds. */
#include "model.h"

static u64 count_below(const struct model *m, int w, u32 p, u32 end)
{
	marks mark = {};
	u32 q, last = 0;
	u64 n = 0;
	int v;

	for (q = p; q < end; q++)
		mark[w][q] = true;
	model_mark_below(m, mark);
	for (q = p; q < end; q++)
		mark[w][q] = false;
	for_each_page(m, v, q) {
		if (!mark[v][q])
			continue;
		n += m->page[v][q].node != last;
		last = m->page[v][q].node;
	}
	return n;
}

u64 model_query(const struct model *m, int w, u32 page, bool next, bool count,
		struct mapdb_info *info)
{
	const struct mpage *x;

	while (next && page < m->pages && !m->page[w][page].used)
		page++;
	if (page >= m->pages || !m->page[w][page].used)
		return ERR(ENOENT);
	x = &m->page[w][page];
	*info = (struct mapdb_info){
		.start = model_node_start(m, w, page),
		.rights = x->rights,
		.depth = x->depth,
		.root = x->root,
		.first = x->first,
		.sponsor = x->sponsor < 0 ? 0 : x->sponsor + 100,
	};
	info->pages = model_node_end(m, w, page) - info->start;
	if (count)
		info->descendants = count_below(m, w, info->start,
						model_node_end(m, w, page));
	return 0;
}
