// SPDX-License-Identifier: GPL-2.0
#include "both.h"

void both_init(struct model *m, const struct world_config *c)
{
	world_init(c);
	model_init(m, c);
	m->root_prices = world->root.own_domain.prices;
}

/* The real one returned @err; the model says @errors apply, if any. */
static int agree(int err, u64 errors)
{
	if (!err)
		SHIM_CHECK(!errors, "succeeded instead of failing with one of %#llx",
			   errors);
	else
		SHIM_CHECK(errors & ERR(-err), "error %d (%s), expected: set %#llx",
			   err, strerror(-err), errors);
	return err;
}

static void result(const struct model *m, const struct mapdb_unmap_result *res)
{
	SHIM_CHECK(res->pages == m->pages_touched, "%llu pages, not %llu",
		   res->pages, m->pages_touched);
	SHIM_CHECK(res->nodes >= m->nodes_touched && res->nodes <= res->pages,
		   "%llu nodes, not at least %llu", res->nodes,
		   m->nodes_touched);
}

int both_alloc(struct model *m, int w, u32 start, u32 pages)
{
	u32 object;
	int err = world_alloc(w, start, pages, &object);

	if (err == -ENOMEM)
		return err;
	return agree(err, model_alloc(m, w, start, pages, object));
}

/* Is the target empty, where it was not? */
static bool replaced(const struct model *m, const struct mreq *r)
{
	struct mapdb_info info;
	u32 p;

	for (p = r->to; p < r->to + r->pages; p++)
		if (m->page[r->tw][p].used)
			return mapdb_query(world_space(r->tw), p, false, false,
					   &info) == -ENOENT;
	return false;
}

int both_map(struct model *m, const struct mreq *r)
{
	struct mapdb_map_args a = {
		.source = world_space(r->sw), .target = world_space(r->tw),
		.from = r->from, .to = r->to, .pages = r->pages,
		.rights = r->rights, .flags = r->flags,
	};
	bool grant = r->flags & BRUMM_MAP_GRANT;
	int err;

	if (r->flags & BRUMM_MAP_SPONSOR)
		a.sponsor = world_sponsor(r->sponsor);
	err = grant ? mapdb_grant(&a) : mapdb_map(&a);
	if (err == -ENOMEM) {
		if (replaced(m, r))
			model_lose_source(m, r);
		return err;
	}
	return agree(err, grant ? model_grant(m, r) : model_map(m, r));
}

int both_unmap(struct model *m, int w, u32 start, u32 pages, bool self)
{
	struct mapdb_unmap_result res;
	int err = world_unmap(w, start, pages, self, &res);

	agree(err, model_unmap(m, w, w, start, pages, self));
	if (!err)
		result(m, &res);
	return err;
}

int both_reduce(struct model *m, int w, u32 start, u32 pages, bool self,
		u32 rights)
{
	struct mapdb_unmap_result res;
	int err = mapdb_reduce(world_space(w), start, pages, self, rights, &res);

	if (err == -ENOMEM)
		return err;
	agree(err, model_reduce(m, w, start, pages, self, rights));
	if (!err)
		result(m, &res);
	return err;
}

int both_query(struct model *m, int w, u32 page, bool next, bool count)
{
	struct mapdb_info real = {}, want = {};
	int err = mapdb_query(world_space(w), page, next, count, &real);

	if (err == -ENOMEM)
		return err;
	if (agree(err, model_query(m, w, page, next, count, &want)))
		return err;
	SHIM_CHECK(real.start == want.start && real.pages == want.pages,
		   "query: %u+%u, not %u+%u", real.start, real.pages,
		   want.start, want.pages);
	SHIM_CHECK(real.rights == want.rights && real.depth == want.depth &&
		   real.root == want.root && real.first == want.first &&
		   real.sponsor == want.sponsor, "query: wrong attributes");
	SHIM_CHECK(real.descendants == want.descendants,
		   "query: %llu descendants, not %llu", real.descendants,
		   want.descendants);
	return 0;
}

void both_release(struct model *m, int w)
{
	mapdb_release(world_space(w));
	model_release(m, w);
}

void both_reclaim(struct model *m, int g)
{
	struct mapdb_unmap_result res = {};
	int err = mapdb_reclaim(world_sponsor(g), &res);

	SHIM_CHECK(!err, "reclaim: %d", err);
	model_reclaim(m, g);
	result(m, &res);
}

void both_limit(struct model *m, int g, u64 max)
{
	ledger_set_max(&world_sponsor(g)->ledger, max);
	m->group[g].max = max;
}

void both_lock(struct model *m, int g, bool locked)
{
	ledger_set_locked(&world_sponsor(g)->ledger, locked);
	m->group[g].locked = locked;
}

void both_prices(struct model *m, int g, const struct ledger_prices *p)
{
	struct ledger *l = g < 0 ? &world->root : &world_sponsor(g)->ledger;

	if (!p)
		ledger_inherit_prices(l);
	else
		ledger_set_prices(l, p, ~0U);
	if (g < 0) {
		m->root_prices = *p;
		return;
	}
	m->group[g].own_prices = p;
	if (p)
		m->group[g].prices = *p;
}

void both_touch(struct model *m, int w)
{
	u32 p;

	for (p = 0; p < m->pages; p++)
		SHIM_CHECK(world_fault(w, p) == m->page[w][p].used,
			   "%d:%u: %s", w, p, m->page[w][p].used ?
			   "cannot be touched" : "can be touched");
}

void both_before(struct model *m, struct both_before *b)
{
	world_clear_events();
	memset(m->event_all, 0, sizeof(m->event_all));
	memset(m->event_rights, 0, sizeof(m->event_rights));
	b->model = *m;
	check_ptes_save(m, b->ptes);
}

void both_check(struct model *m, struct both_before *b)
{
	check_structures();
	check_model(m);
	check_ptes(&b->model, m, b->ptes);
	check_events(m);
}
