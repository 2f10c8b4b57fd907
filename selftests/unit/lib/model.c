// SPDX-License-Identifier: GPL-2.0
#include "model.h"

/* What an operation adds to the charges of each group. */
struct delta {
	struct ledger_counts n[MODEL_GROUPS];
};


void model_init(struct model *m, const struct world_config *c)
{
	int i;

	memset(m, 0, sizeof(*m));
	SHIM_CHECK(c->windows <= MODEL_WINDOWS && c->groups <= MODEL_GROUPS &&
		   c->pages <= MODEL_PAGES, "world too large for the model");
	m->windows = c->windows;
	m->pages = c->pages;
	m->groups = c->groups;
	for (i = 0; i < c->windows; i++)
		m->window_group[i] = c->group[i];
	for (i = 0; i < c->groups; i++) {
		m->group[i].parent = c->parent[i];
		m->group[i].max = LEDGER_NO_LIMIT;
	}
	m->next_node = 1;
}

static void start_operation(struct model *m)
{
	memset(m->event_all, 0, sizeof(m->event_all));
	memset(m->event_rights, 0, sizeof(m->event_rights));
	m->pages_touched = 0;
	m->nodes_touched = 0;
}

/* Nodes */

/* Does @p go on with the node that the page before it belongs to? */
static bool continues(const struct model *m, int w, u32 p)
{
	const struct mpage *x = &m->page[w][p];

	return p && x->used && x[-1].used && x[-1].node == x->node;
}

/* Where the node of @p starts, and the page behind its end. */
u32 model_node_start(const struct model *m, int w, u32 p)
{
	while (continues(m, w, p))
		p--;
	return p;
}

u32 model_node_end(const struct model *m, int w, u32 p)
{
	do
		p++;
	while (p < m->pages && continues(m, w, p));
	return p;
}

/*
 * Where a row ends that is at @p: frames that follow each other, as pieces of one
 * node do. Who takes something back from all of it, does not cut what was
 * derived across the pieces at their borders.
 */
static u32 row_end(const struct model *m, int w, u32 p, u32 stop)
{
	const struct mpage *x = &m->page[w][p];
	u32 end = p + 1;

	for (; end < stop; end++, x++)
		if (!x[1].used || x[1].object != x->object ||
		    x[1].frame != x->frame + 1 || x[1].depth != x->depth ||
		    x[1].sponsor != x->sponsor)
			break;
	return end;
}

/* Pages @p and those behind it in their node become a node of their own. */
static void cut_before(struct model *m, int w, u32 p)
{
	u32 end, node = m->next_node++;

	if (!continues(m, w, p))
		return;
	for (end = model_node_end(m, w, p); p < end; p++)
		m->page[w][p].node = node;
}

/* A number that stands for two nodes, since its middle has gone, is split. */
static void renumber(struct model *m)
{
	int w;
	u32 p, q, node;

	for_each_page(m, w, p) {
		if (!m->page[w][p].used || continues(m, w, p))
			continue;
		node = m->page[w][p].node;
		for (q = 0; q < p; q++)
			if (m->page[w][q].used && m->page[w][q].node == node)
				break;
		if (q == p)
			continue;
		for (node = m->next_node++, q = model_node_end(m, w, p); q-- > p;)
			m->page[w][q].node = node;
	}
}

static bool free_range(const struct model *m, int w, u32 start, u32 pages)
{
	u32 p;

	for (p = start; p < start + pages; p++)
		if (m->page[w][p].used)
			return false;
	return true;
}

/* Charges */

const struct ledger_prices *model_prices(const struct model *m, int g)
{
	for (; g >= 0; g = m->group[g].parent)
		if (m->group[g].own_prices)
			return &m->group[g].prices;
	return &m->root_prices;
}

static bool below(const struct model *m, int g, int up)
{
	for (; g >= 0; g = m->group[g].parent)
		if (g == up)
			return true;
	return false;
}

void model_counts(const struct model *m, int group, struct ledger_counts *c)
{
	const struct mpage *x;
	int w;
	u32 p;

	*c = (struct ledger_counts){};
	for_each_page(m, w, p) {
		x = &m->page[w][p];
		if (!x->used || x->sponsor < 0 || !below(m, x->sponsor, group))
			continue;
		c->n[LEDGER_PT]++;
		if (continues(m, w, p))
			continue;
		c->n[LEDGER_MAP]++;
		c->n[LEDGER_LOOKUP] += x->first;
		c->n[LEDGER_DEEP] += x->depth > 1;
	}
}

static u64 cost(const struct ledger_prices *p, const struct ledger_counts *c)
{
	u64 ns = 0;
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		ns += p->ns[k] * c->n[k];
	return ns;
}

/* Why @d cannot be charged on top of what is charged now. */
static u64 admit(const struct model *m, const struct delta *d)
{
	struct ledger_counts now, add;
	u64 errors = 0;
	int up, g;

	for (up = 0; up < m->groups; up++) {
		add = (struct ledger_counts){};
		for (g = 0; g < m->groups; g++)
			if (below(m, g, up))
				ledger_counts_add(&add, &d->n[g]);
		if (ledger_counts_zero(&add))
			continue;
		model_counts(m, up, &now);
		ledger_counts_add(&now, &add);
		if (m->group[up].locked)
			errors |= ERR(EBUSY);
		if (cost(model_prices(m, up), &now) > m->group[up].max)
			errors |= ERR(EDQUOT);
	}
	return errors;
}

static void delta_node(struct delta *d, int g, bool first, u8 depth, u32 pages)
{
	if (g < 0)
		return;
	d->n[g].n[LEDGER_LOOKUP] += first;
	d->n[g].n[LEDGER_MAP] += 1;
	d->n[g].n[LEDGER_PT] += pages;
	d->n[g].n[LEDGER_DEEP] += depth > 1;
}

/* Alloc */

u64 model_alloc(struct model *m, int w, u32 start, u32 pages, u32 object)
{
	int group = m->window_group[w];
	struct delta d = {};
	u32 p, node;
	u64 errors;

	start_operation(m);
	delta_node(&d, group, group >= 0, 0, pages);
	errors = admit(m, &d);
	if (!free_range(m, w, start, pages))
		errors |= ERR(EEXIST);
	if (errors)
		return errors;
	node = m->next_node++;
	for (p = 0; p < pages; p++)
		m->page[w][start + p] = (struct mpage){
			.used = true, .root = true, .first = group >= 0,
			.rights = BRUMM_RIGHTS_ALL, .sponsor = group,
			.object = object, .frame = p, .node = node,
			.birth = m->next_birth++,
		};
	return 0;
}

/* Map */

static void derive(const struct model *m, const struct mreq *r, u32 i,
		   struct mpage *x)
{
	const struct mpage *from = &m->page[r->sw][r->from + i];

	*x = *from;
	x->root = false;
	x->pw = r->sw;
	x->pp = r->from + i;
	x->rights = r->rights;
	x->depth = from->depth + 1;
	if (r->flags & BRUMM_MAP_SPONSOR)
		x->sponsor = r->sponsor;
	else if (from->sponsor < 0)
		x->sponsor = m->window_group[r->tw];
	x->first = x->sponsor >= 0 && ((r->flags & BRUMM_MAP_SPONSOR) ||
				       from->sponsor < 0);
}

static u64 map_source_errors(const struct model *m, const struct mreq *r)
{
	u64 errors = 0;
	u32 i;

	for (i = 0; i < r->pages; i++) {
		const struct mpage *from = &m->page[r->sw][r->from + i];

		if (!from->used) {
			errors |= ERR(ENOENT);
			continue;
		}
		if (r->rights & ~from->rights)
			errors |= ERR(EACCES);
		if (!(from->rights & BRUMM_RIGHT_D))
			errors |= ERR(EPERM);
		if (from->depth >= MAPDB_MAX_DEPTH)
			errors |= ERR(ELOOP);
	}
	return errors;
}

static bool starts_node(const struct model *m, const struct mreq *r, u32 i)
{
	return !i || !continues(m, r->sw, r->from + i);
}

static void map_delta(const struct model *m, const struct mreq *r,
		      struct delta *d)
{
	struct mpage x;
	u32 i;

	for (i = 0; i < r->pages; i++) {
		derive(m, r, i, &x);
		if (x.sponsor < 0)
			continue;
		d->n[x.sponsor].n[LEDGER_PT]++;
		if (!starts_node(m, r, i))
			continue;
		d->n[x.sponsor].n[LEDGER_MAP]++;
		d->n[x.sponsor].n[LEDGER_LOOKUP] += x.first;
		d->n[x.sponsor].n[LEDGER_DEEP] += x.depth > 1;
	}
}

static u64 holes(const struct model *m, int w, u32 start, u32 pages, bool self,
		 struct delta *all);
static void revoke(struct model *m, int w, int actor, u32 start, u32 pages,
		   bool self);

static void map_pages(struct model *m, const struct mreq *r)
{
	struct mpage x[MODEL_PAGES];
	u32 i, node = 0;

	for (i = 0; i < r->pages; i++) {
		derive(m, r, i, &x[i]);
		if (starts_node(m, r, i))
			node = m->next_node++;
		x[i].node = node;
		x[i].birth = m->next_birth++;
	}
	memcpy(&m->page[r->tw][r->to], x, r->pages * sizeof(x[0]));
}

/*
 * With REPLACE: the charge for what is new comes first, on top of it that for
 * holes; then the target goes, and the source with it where it was derived
 * from the target.
 */
u64 model_map(struct model *m, const struct mreq *r)
{
	bool replace = r->flags & BRUMM_MAP_REPLACE;
	struct delta d = {};
	u64 errors;

	start_operation(m);
	errors = map_source_errors(m, r);
	if (errors)
		return errors;
	map_delta(m, r, &d);
	errors = admit(m, &d);
	if (!replace && !free_range(m, r->tw, r->to, r->pages))
		errors |= ERR(EEXIST);
	if (!errors && replace)
		errors = holes(m, r->tw, r->to, r->pages, true, &d);
	if (errors)
		return errors;
	if (replace)
		revoke(m, r->tw, r->sw, r->to, r->pages, true);
	errors = map_source_errors(m, r);
	if (!errors)
		map_pages(m, r);
	return errors;
}

/* Grant */

static bool loses_sponsor(const struct mpage *x, const struct mreq *r)
{
	return (r->flags & BRUMM_MAP_SPONSOR) && x->sponsor >= 0 &&
	       x->sponsor != r->sponsor;
}

static u64 grant_errors(const struct model *m, const struct mreq *r)
{
	u64 errors = map_source_errors(m, r);
	const struct mpage *x;
	int w;
	u32 p;

	/* What was derived from there keeps its rights and its sponsor. */
	for_each_page(m, w, p) {
		x = &m->page[w][p];
		if (x->used && !x->root && x->pw == r->sw && x->pp >= r->from &&
		    x->pp < r->from + r->pages &&
		    (m->page[x->pw][x->pp].rights != r->rights ||
		     loses_sponsor(&m->page[x->pw][x->pp], r)))
			errors |= ERR(EINVAL);
	}
	return errors;
}

/* Who pays for @x once it is moved; true: somebody new does. */
static bool grant_sponsor(const struct model *m, const struct mreq *r,
			  const struct mpage *x, int *sponsor)
{
	*sponsor = x->sponsor;
	if (r->flags & BRUMM_MAP_SPONSOR)
		*sponsor = r->sponsor;
	else if (x->sponsor < 0)
		*sponsor = m->window_group[r->tw];
	else
		return false;
	return *sponsor >= 0;
}

static void grant_delta(const struct model *m, const struct mreq *r,
			struct delta *d)
{
	const struct mpage *x;
	int sponsor;
	u32 p, end;

	for (p = r->from; p < r->from + r->pages; p = end) {
		x = &m->page[r->sw][p];
		end = min(model_node_end(m, r->sw, p), r->from + r->pages);
		if (continues(m, r->sw, p))
			delta_node(d, x->sponsor, x->first, x->depth, 0);
		if (model_node_end(m, r->sw, p) > end)
			delta_node(d, x->sponsor, x->first, x->depth, 0);
		if (grant_sponsor(m, r, x, &sponsor))
			delta_node(d, sponsor, true, x->depth, end - p);
	}
}

/* What was derived from a page follows it. */
static void grant_follow(struct model *m, const struct mreq *r)
{
	struct mpage *x;
	int w;
	u32 p;

	for_each_page(m, w, p) {
		x = &m->page[w][p];
		if (!x->used || x->root || x->pw != r->sw || x->pp < r->from ||
		    x->pp >= r->from + r->pages)
			continue;
		x->pw = r->tw;
		x->pp = r->to + (x->pp - r->from);
	}
}

static void grant_pages(struct model *m, const struct mreq *r)
{
	struct mpage *from = &m->page[r->sw][r->from];
	u32 i;

	cut_before(m, r->sw, r->from);
	if (r->from + r->pages < m->pages)
		cut_before(m, r->sw, r->from + r->pages);
	for (i = 0; i < r->pages; i++) {
		from[i].rights = r->rights;
		if (grant_sponsor(m, r, &from[i], &from[i].sponsor))
			from[i].first = true;
	}
	memcpy(&m->page[r->tw][r->to], from, r->pages * sizeof(*from));
	for (i = 0; i < r->pages; i++)
		from[i].used = false;
	grant_follow(m, r);
}

u64 model_grant(struct model *m, const struct mreq *r)
{
	bool replace = r->flags & BRUMM_MAP_REPLACE;
	struct delta d = {};
	u64 errors;

	start_operation(m);
	errors = grant_errors(m, r);
	if (errors & ERR(ENOENT))
		return errors;
	grant_delta(m, r, &d);
	errors |= admit(m, &d);
	if (!replace && !free_range(m, r->tw, r->to, r->pages))
		errors |= ERR(EEXIST);
	if (!errors && replace)
		errors = holes(m, r->tw, r->to, r->pages, true, &d);
	if (errors)
		return errors;
	if (replace)
		revoke(m, r->tw, r->sw, r->to, r->pages, true);
	errors = grant_errors(m, r);
	if (!errors)
		grant_pages(m, r);
	return errors;
}

/* Revoke */

/* Mark page @p of @w and all that was derived from it. */

void model_mark_below(const struct model *m, marks mark)
{
	const struct mpage *x;
	bool again;
	int w;
	u32 p;

	do {
		again = false;
		for_each_page(m, w, p) {
			x = &m->page[w][p];
			if (!x->used || x->root || mark[w][p] ||
			    !mark[x->pw][x->pp])
				continue;
			mark[w][p] = true;
			again = true;
		}
	} while (again);
}

static void revoke(struct model *m, int w, int actor, u32 start, u32 pages,
		   bool self)
{
	marks mark = {};
	u32 p, last = 0;
	int v;

	for (p = start; p < start + pages; p++)
		mark[w][p] = m->page[w][p].used;
	model_mark_below(m, mark);
	for (p = start; p < start + pages && !self; p++)
		mark[w][p] = false;
	/* What was derived from within the range into the range goes, too. */
	for (p = start; p < start + pages && !self; p++) {
		struct mpage *x = &m->page[w][p];

		while (x->used && !x->root && !mark[w][p]) {
			if (x->pw == w && x->pp >= start && x->pp < start + pages)
				mark[w][p] = true;
			x = &m->page[x->pw][x->pp];
		}
	}
	for_each_page(m, v, p) {
		struct mpage *x = &m->page[v][p];

		if (!mark[v][p])
			continue;
		m->pages_touched++;
		if (x->node != last)
			m->nodes_touched++;
		last = x->node;
		m->event_all[v][p] = v != actor;
	}
	for_each_page(m, v, p)
		if (mark[v][p])
			m->page[v][p].used = false;
	renumber(m);
}

/*
 * Who makes cuts from a node that @payer sponsors: why the limits that hold for
 * him do not allow @d, on top of the others in @all.
 */
static u64 admit_for(const struct model *m, const struct delta *all,
		     const struct delta *d, int payer)
{
	struct ledger_counts now, add;
	u64 errors = 0;
	int up, g;

	for (up = payer; up >= 0; up = m->group[up].parent) {
		add = (struct ledger_counts){};
		for (g = 0; g < m->groups; g++)
			if (below(m, g, up))
				ledger_counts_add(&add, &d->n[g]);
		if (ledger_counts_zero(&add))
			continue;
		model_counts(m, up, &now);
		for (g = 0; g < m->groups; g++)
			if (below(m, g, up))
				ledger_counts_add(&now, &all->n[g]);
		if (m->group[up].locked)
			errors |= ERR(EBUSY);
		if (cost(model_prices(m, up), &now) > m->group[up].max)
			errors |= ERR(EDQUOT);
	}
	return errors;
}

static void delta_add(struct delta *to, const struct delta *d)
{
	int g;

	for (g = 0; g < MODEL_GROUPS; g++)
		ledger_counts_add(&to->n[g], &d->n[g]);
}

/*
 * Holes that a revoke makes below page @p: in what contains it, what is before
 * it, and what is behind the range of @len pages.
 */
static void hole_chain(const struct model *m, int w, u32 p, u32 len,
		       struct delta *d)
{
	const struct mpage *x;
	int v;
	u32 q;

	for_each_page(m, v, q) {
		x = &m->page[v][q];
		if (!x->used || x->root || x->pw != w || x->pp != p)
			continue;
		if (!continues(m, v, q))
			continue;
		if (model_node_end(m, v, q) > q + len)
			delta_node(d, x->sponsor, x->first, x->depth, 0);
		hole_chain(m, v, q, len, d);
	}
}

/* Why the holes that a revoke makes are not allowed; @all grows by them. */
static u64 holes(const struct model *m, int w, u32 start, u32 pages, bool self,
		 struct delta *all)
{
	u64 errors = 0;
	u32 p, end;

	for (p = start; p < start + pages && !errors; p = end) {
		const struct mpage *x = &m->page[w][p];
		struct delta d = {};

		end = p + 1;
		if (!x->used)
			continue;
		end = row_end(m, w, p, start + pages);
		if (x->sponsor < 0)
			continue;
		if (self && continues(m, w, p) && model_node_end(m, w, p) > end)
			delta_node(&d, x->sponsor, x->first, x->depth, 0);
		hole_chain(m, w, p, end - p, &d);
		delta_add(all, &d);
		errors = admit_for(m, all, &d, x->sponsor);
	}
	return errors;
}

bool model_lose_source(struct model *m, const struct mreq *r)
{
	struct model after = *m;

	start_operation(&after);
	revoke(&after, r->tw, r->sw, r->to, r->pages, true);
	if (!(map_source_errors(&after, r) & ERR(ENOENT)))
		return false;
	*m = after;
	return true;
}

u64 model_unmap(struct model *m, int w, int actor, u32 start, u32 pages,
		bool self)
{
	struct delta d = {};
	u64 errors = 0;

	start_operation(m);
	errors = holes(m, w, start, pages, self, &d);
	if (!errors)
		revoke(m, w, actor, start, pages, self);
	return errors;
}

void model_release(struct model *m, int w)
{
	start_operation(m);
	revoke(m, w, w, 0, m->pages, true);
}

void model_reclaim(struct model *m, int group)
{
	marks mark = {};
	u32 p;
	int w;

	start_operation(m);
	for_each_page(m, w, p)
		mark[w][p] = m->page[w][p].used && m->page[w][p].first &&
			     m->page[w][p].sponsor == group;
	model_mark_below(m, mark);
	for_each_page(m, w, p) {
		if (!mark[w][p])
			continue;
		m->pages_touched++;
		m->event_all[w][p] = true;
	}
	m->nodes_touched = m->pages_touched ? 1 : 0;
	for_each_page(m, w, p)
		if (mark[w][p])
			m->page[w][p].used = false;
	renumber(m);
}

/* Rights */

/*
 * Take rights from pages @q..@end-1 of a node: if it has some of them, they
 * become a node of their own.
 */
static void reduce_part(struct model *m, int v, u32 q, u32 end, int actor,
			u32 rights)
{
	u32 gone = m->page[v][q].rights & rights;
	u32 i;

	if (!gone)
		return;
	cut_before(m, v, q);
	if (end < m->pages)
		cut_before(m, v, end);
	for (i = q; i < end; i++) {
		m->page[v][i].rights &= ~rights;
		m->pages_touched++;
		if (v != actor)
			m->event_rights[v][i] |= gone;
	}
	m->nodes_touched++;
}

/* Take rights from all that was derived from pages @p..@end-1, which are a row. */
static void reduce_below(struct model *m, int w, u32 p, u32 end, int actor,
			 u32 rights)
{
	marks mark = {};
	u32 q, stop;
	int v;

	for (q = p; q < end; q++)
		mark[w][q] = true;
	model_mark_below(m, mark);
	for (q = p; q < end; q++)
		mark[w][q] = false;
	for_each_page(m, v, q) {
		if (!mark[v][q])
			continue;
		for (stop = q; stop < model_node_end(m, v, q) && mark[v][stop]; stop++)
			mark[v][stop] = false;
		reduce_part(m, v, q, stop, actor, rights);
	}
}

/*
 * Cuts at the border before (@step < 0) or behind page @p, below it: of what
 * has some of the rights, and lies on both sides.
 */
static void cut_chain(const struct model *m, int w, u32 p, int step,
		      u32 rights, struct delta *d)
{
	const struct mpage *x;
	bool both;
	int v;
	u32 q;

	for_each_page(m, v, q) {
		x = &m->page[v][q];
		if (!x->used || x->root || x->pw != w || x->pp != p)
			continue;
		both = step < 0 ? continues(m, v, q) : model_node_end(m, v, q) > q + 1;
		if (both && (x->rights & rights))
			delta_node(d, x->sponsor, x->first, x->depth, 0);
		cut_chain(m, v, q, step, rights, d);
	}
}

static u64 cuts(const struct model *m, int w, u32 start, u32 pages, bool self,
		u32 rights)
{
	struct delta all = {};
	u64 errors = 0;
	u32 p, end;

	for (p = start; p < start + pages && !errors; p = end) {
		const struct mpage *x = &m->page[w][p];
		struct delta d = {};

		end = p + 1;
		if (!x->used)
			continue;
		end = row_end(m, w, p, start + pages);
		if (x->sponsor < 0)
			continue;
		if (self && (x->rights & rights) && continues(m, w, p))
			delta_node(&d, x->sponsor, x->first, x->depth, 0);
		x = &m->page[w][end - 1];
		if (self && (x->rights & rights) &&
		    model_node_end(m, w, end - 1) > end)
			delta_node(&d, x->sponsor, x->first, x->depth, 0);
		cut_chain(m, w, p, -1, rights, &d);
		cut_chain(m, w, end - 1, 1, rights, &d);
		delta_add(&all, &d);
		errors = admit_for(m, &all, &d, x->sponsor);
	}
	return errors;
}

u64 model_reduce(struct model *m, int w, u32 start, u32 pages, bool self,
		 u32 rights)
{
	u64 errors;
	u32 p, end, q, stop;

	start_operation(m);
	errors = cuts(m, w, start, pages, self, rights);
	if (errors)
		return errors;
	for (p = start; p < start + pages; p = end) {
		end = p + 1;
		if (!m->page[w][p].used)
			continue;
		end = row_end(m, w, p, start + pages);
		for (q = p; self && q < end; q = stop) {
			stop = min(model_node_end(m, w, q), end);
			reduce_part(m, w, q, stop, w, rights);
		}
		reduce_below(m, w, p, end, w, rights);
	}
	return 0;
}
