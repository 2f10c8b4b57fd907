// SPDX-License-Identifier: GPL-2.0
#include "actors.h"

static const int parent[] = { -1, 0, 0, -1 };
static const int group[] = { -1, 1, 3, -1, 2, 3, -1 };

void actors_world(struct world_config *c, int owners, u32 pages)
{
	SHIM_CHECK(SHARED_WINDOWS + owners <= (int)ARRAY_SIZE(group), "owners");
	*c = (struct world_config){
		.windows = SHARED_WINDOWS + owners, .pages = pages,
		.groups = 4, .parent = parent, .group = group,
	};
}

static void expect(int err, u64 allowed, const char *what)
{
	SHIM_CHECK(!err || (ERR(-err) & allowed), "%s: error %d (%s)", what,
		   err, strerror(-err));
}

#define MAP_ERRORS							\
	(ERR(ENOENT) | ERR(EACCES) | ERR(EPERM) | ERR(EEXIST) |		\
	 ERR(ELOOP) | ERR(EDQUOT) | ERR(EBUSY) | ERR(EINVAL) | ERR(EINTR) | \
	 ERR(ENOMEM))

static u32 window_pages(void)
{
	return world->window[0].pages;
}

static void random_range(struct actor *a, u32 *start, u32 *pages)
{
	*pages = 1 + rnd(&a->rnd, min(window_pages(), 6u));
	*start = rnd(&a->rnd, window_pages() - *pages + 1);
}

/* Mostly a part of a mapping, or more than that. */
static void likely_range(struct actor *a, int w, u32 *start, u32 *pages)
{
	struct mapdb_info info;
	u32 skip;

	random_range(a, start, pages);
	if (!rnd(&a->rnd, 4) ||
	    mapdb_query(world_space(w), *start, true, false, &info))
		return;
	skip = rnd(&a->rnd, 2) ? rnd(&a->rnd, info.pages) : 0;
	*start = info.start + skip;
	*pages = info.pages - skip;
	if (rnd(&a->rnd, 2))
		*pages = 1 + rnd(&a->rnd, *pages);
	else if (!rnd(&a->rnd, 3))
		*pages = min(*pages + rnd(&a->rnd, 3), window_pages() - *start);
}

static void random_map(struct actor *a, int sw, bool may_grant)
{
	static const u32 rights[] = {
		BRUMM_RIGHTS_ALL, BRUMM_RIGHTS_ALL, BRUMM_RIGHTS_ALL,
		BRUMM_RIGHT_R | BRUMM_RIGHT_D,
		BRUMM_RIGHT_R | BRUMM_RIGHT_W | BRUMM_RIGHT_D, BRUMM_RIGHT_R,
	};
	struct mapdb_map_args m = {
		.source = world_space(sw),
		.rights = rights[rnd(&a->rnd, ARRAY_SIZE(rights))],
	};
	int tw = (int)rnd(&a->rnd, SHARED_WINDOWS);
	bool grant = may_grant && !rnd(&a->rnd, 4);
	int err;

	m.target = world_space(tw);
	likely_range(a, sw, &m.from, &m.pages);
	m.to = rnd(&a->rnd, window_pages() - m.pages + 1);
	if (sw == tw && m.to < m.from + m.pages && m.from < m.to + m.pages)
		return;
	if (!rnd(&a->rnd, 3))
		m.flags |= BRUMM_MAP_REPLACE;
	if (!rnd(&a->rnd, 6)) {
		m.flags |= BRUMM_MAP_SPONSOR;
		m.sponsor = world_sponsor((int)rnd(&a->rnd, 4));
	}
	if (grant)
		m.flags |= BRUMM_MAP_GRANT;
	if (!a->quiet)
		op_log("%s: %s%s %d:%u+%u to %d:%u %s", shim_current->name,
		       grant ? "grant" : "map",
		       m.flags & BRUMM_MAP_REPLACE ? " replace" : "", sw,
		       m.from, m.pages, tw, m.to, op_rights(m.rights));
	err = grant ? mapdb_grant(&m) : mapdb_map(&m);
	expect(err, MAP_ERRORS, grant ? "grant" : "map");
	a->done += !err;
}

static void random_unmap(struct actor *a, int w)
{
	struct mapdb_unmap_result res;
	bool self = rnd(&a->rnd, 2);
	u32 start, pages;
	int err;

	likely_range(a, w, &start, &pages);
	if (!a->quiet)
		op_log("%s: unmap %d:%u+%u%s", shim_current->name, w, start,
		       pages, self ? " self" : "");
	err = world_unmap(w, start, pages, self, &res);
	expect(err, ERR(EDQUOT) | ERR(EBUSY), "unmap");
	a->done += !err;
}

static void random_reduce(struct actor *a, int w)
{
	struct mapdb_unmap_result res;
	bool self = rnd(&a->rnd, 2);
	u32 start, pages;
	int err;

	likely_range(a, w, &start, &pages);
	if (!a->quiet)
		op_log("%s: reduce %d:%u+%u%s", shim_current->name, w, start,
		       pages, self ? " self" : "");
	err = mapdb_reduce(world_space(w), start, pages, self, BRUMM_RIGHT_W,
			   &res);
	expect(err, ERR(EDQUOT) | ERR(EBUSY) | ERR(ENOMEM), "reduce");
	a->done += !err;
}

static void random_alloc(struct actor *a, int w)
{
	u32 start, pages;

	random_range(a, &start, &pages);
	if (!a->quiet)
		op_log("%s: alloc %d:%u+%u", shim_current->name, w, start,
		       pages);
	expect(world_alloc(w, start, pages, NULL), MAP_ERRORS, "alloc");
}

static void random_query(struct actor *a, int w)
{
	struct mapdb_info info;

	expect(mapdb_query(world_space(w), rnd(&a->rnd, window_pages()),
			   rnd(&a->rnd, 2), rnd(&a->rnd, 2), &info),
	       ERR(ENOENT) | ERR(ENOMEM) | ERR(EINTR), "query");
}

static void work(struct actor *a)
{
	int w = (int)rnd(&a->rnd, SHARED_WINDOWS);
	u32 dice = rnd(&a->rnd, 100);

	shim_current->killed = !rnd(&a->rnd, 50);
	if (dice < 10)
		random_alloc(a, w);
	else if (dice < 55)
		random_map(a, w, true);
	else if (dice < 80)
		random_unmap(a, w);
	else if (dice < 90)
		random_reduce(a, w);
	else
		random_query(a, w);
	shim_current->killed = false;
}

void actor_worker(void *arg)
{
	struct actor *a = arg;
	unsigned int i;

	for (i = 0; i < a->steps; i++)
		work(a);
}

void actor_toucher(void *arg)
{
	struct actor *a = arg;
	unsigned int i;

	for (i = 0; i < 10 * a->steps; i++)
		a->done += world_fault((int)rnd(&a->rnd, (u32)world->nr_windows),
				       rnd(&a->rnd, window_pages()));
}

/* Nothing shows @object outside of @except, with none of @rights. */
static void must_be_gone(u32 object, int except, u32 rights, const char *when)
{
	u32 page;
	int w;

	for (w = 0; w < world->nr_windows; w++) {
		for (page = 0; page < window_pages() && w != except; page++) {
			u64 pte = __atomic_load_n(&world->window[w].pte[page],
						  __ATOMIC_SEQ_CST);

			SHIM_CHECK(!pte || PTE_OBJECT(pte) != object ||
				   !(PTE_RIGHTS(pte) & rights),
				   "%s: %d:%u still shows %u.%u with %#x", when,
				   w, page, object, PTE_FRAME(pte),
				   PTE_RIGHTS(pte));
		}
	}
}

struct mapdb_sponsor *cgroup_make(void)
{
	struct mapdb_sponsor *sp = malloc(sizeof(*sp));

	SHIM_CHECK(sp, "out of memory");
	mapdb_sponsor_init(sp, &world_sponsor(0)->ledger, 999);
	return sp;
}

void cgroup_remove(struct mapdb_sponsor *sp)
{
	while (!ledger_is_zero(&sp->ledger))
		shim_preempt();
	synchronize_srcu(mapdb_charging);
	synchronize_rcu();
	SHIM_CHECK(ledger_is_zero(&sp->ledger) && list_empty(&sp->first),
		   "charged behind the end");
	memset(sp, 0x6b, sizeof(*sp));
	free(sp);
}

/*
 * The whole window holds one object, and nothing is granted away: so all of the
 * object can be judged.
 */
static void owner_revokes(struct actor *a, u32 object)
{
	struct mapdb_unmap_result res;
	u32 i, pages = window_pages();
	int err;

	for (i = 1 + rnd(&a->rnd, 4); i--;)
		random_map(a, a->owned, false);
	if (!rnd(&a->rnd, 3) &&
	    !mapdb_reduce(world_space(a->owned), 0, pages, false,
			  BRUMM_RIGHT_W, &res))
		must_be_gone(object, a->owned, BRUMM_RIGHT_W, "reduced");
	if (rnd(&a->rnd, 3))
		return;
	random_map(a, a->owned, false);
	err = world_unmap(a->owned, 0, pages, false, &res);
	expect(err, ERR(EDQUOT) | ERR(EBUSY), "unmap");
	if (!err)
		must_be_gone(object, a->owned, ~0U, "revoked");
}

static void owner_round(struct actor *a)
{
	struct mapdb_sponsor *old = world_space(a->owned)->group, *sp = NULL;
	u32 object;
	int err;

	if (rnd(&a->rnd, 2)) {
		sp = cgroup_make();
		world_space(a->owned)->group = sp;
	}
	err = world_alloc(a->owned, 0, window_pages(), &object);
	expect(err, MAP_ERRORS & ~ERR(EEXIST), "alloc");
	if (!err)
		owner_revokes(a, object);
	mapdb_release(world_space(a->owned));
	must_be_gone(object, -1, ~0U, "released");
	SHIM_CHECK(RB_EMPTY_ROOT(&world_space(a->owned)->nodes),
		   "released, but not empty");
	world_space(a->owned)->group = old;
	if (sp)
		cgroup_remove(sp);
	a->done += !err;
}

void actor_owner(void *arg)
{
	struct actor *a = arg;
	unsigned int i;

	for (i = 0; i < a->steps / 4; i++)
		owner_round(a);
}

static void control(struct actor *a)
{
	struct mapdb_sponsor *sp = world_sponsor((int)rnd(&a->rnd, 4));
	struct mapdb_unmap_result res = {};
	struct ledger_prices p = { .ns = { rnd(&a->rnd, 9), 1, 1 } };
	u32 dice = rnd(&a->rnd, 8);

	if (dice < 2) {
		shim_current->killed = !rnd(&a->rnd, 8);
		expect(mapdb_reclaim(sp, &res), ERR(EINTR), "reclaim");
		shim_current->killed = false;
	} else if (dice < 4) {
		ledger_set_max(&sp->ledger, ledger_usage(&sp->ledger) +
			       rnd(&a->rnd, 60));
	} else if (dice < 6) {
		ledger_set_max(&sp->ledger, LEDGER_NO_LIMIT);
	} else if (dice < 7) {
		ledger_set_prices(&sp->ledger, &p, rnd(&a->rnd, 8));
	} else {
		ledger_set_locked(&sp->ledger, !rnd(&a->rnd, 4));
	}
	if (!a->quiet)
		op_log("%s: control %u", shim_current->name, dice);
	a->done++;
}

void actor_controller(void *arg)
{
	struct actor *a = arg;
	unsigned int i;

	for (i = 0; i < a->steps; i++) {
		control(a);
		shim_preempt();
	}
	for (i = 0; i < 4; i++) {
		ledger_set_max(&world_sponsor((int)i)->ledger, LEDGER_NO_LIMIT);
		ledger_set_locked(&world_sponsor((int)i)->ledger, false);
	}
}

void actors_check(void)
{
	u32 page;
	int w;

	check_structures();
	for (w = 0; w < world->nr_windows; w++) {
		for (page = 0; page < window_pages(); page++) {
			u64 pte = world->window[w].pte[page];
			struct mapdb_node *n;

			if (!pte)
				continue;
			down_read(&world_space(w)->lock);
			n = mapdb_find(world_space(w), page);
			up_read(&world_space(w)->lock);
			SHIM_CHECK(n && n->frame + (page - n->start) ==
				   PTE_FRAME(pte) &&
				   !(PTE_RIGHTS(pte) & ~n->rights) &&
				   world->object[PTE_OBJECT(pte)] ==
				   mapdb_node_frames(n)->priv,
				   "%d:%u shows what is not mapped there", w,
				   page);
		}
	}
}
