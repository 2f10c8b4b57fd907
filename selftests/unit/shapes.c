// SPDX-License-Identifier: GPL-2.0
/* Trees of known shapes: large, wide, deep, and every small one. */
#include "both.h"
#include <tap.h>

#define GIB_PAGES	262144u

static const int no_parent[] = { -1, 0, -1 };
static const int no_groups[MAX_WINDOWS] = { [0 ... MAX_WINDOWS - 1] = -1 };
static const int all_one[MAX_WINDOWS];

static u32 count_nodes(int w)
{
	struct rb_node *rb;
	u32 n = 0;

	for (rb = rb_first(&world_space(w)->nodes); rb; rb = rb_next(rb))
		n++;
	return n;
}

static void expect_counts(int g, u64 lookup, u64 map, u64 pt)
{
	struct ledger_state s;

	ledger_get_state(&world_sponsor(g)->ledger, &s);
	CHECK_EQ(s.count.n[LEDGER_LOOKUP], lookup);
	CHECK_EQ(s.count.n[LEDGER_MAP], map);
	CHECK_EQ(s.count.n[LEDGER_PT], pt);
}

static void one_group(int windows, u32 pages)
{
	struct world_config c = {
		.windows = windows, .pages = pages, .groups = 1,
		.parent = no_parent, .group = all_one,
	};

	world_init(&c);
}

/* 1 GiB, shared once and cut into single pages. */
static void gib(void)
{
	struct mapdb_unmap_result res;
	u32 p;

	one_group(2, GIB_PAGES);
	REQUIRE_OK(world_alloc(0, 0, GIB_PAGES, NULL));
	REQUIRE_OK(world_map(0, 0, 1, 0, GIB_PAGES, BRUMM_RIGHTS_ALL, 0));
	CHECK_EQ(count_nodes(1), 1);
	expect_counts(0, 1, 2, 2 * GIB_PAGES);

	REQUIRE(world_fault(1, GIB_PAGES - 1));
	for (p = 0; p < GIB_PAGES; p += 2)
		REQUIRE_OK(world_unmap(1, p, 1, true, &res));
	CHECK_EQ(count_nodes(1), GIB_PAGES / 2);
	expect_counts(0, 1, 1 + GIB_PAGES / 2, GIB_PAGES + GIB_PAGES / 2);
	CHECK_EQ(world_count_ptes(1), 1);
	check_structures();

	REQUIRE_OK(world_unmap(0, 0, GIB_PAGES, false, &res));
	CHECK_EQ(res.nodes, GIB_PAGES / 2);
	CHECK_EQ(res.pages, GIB_PAGES / 2);
	CHECK_EQ(world_count_ptes(1), 0);
	expect_counts(0, 1, 1, GIB_PAGES);
	world_exit();
}

/* Revoked whole, it is one node and one zap, however large. */
static void gib_at_once(void)
{
	struct mapdb_unmap_result res;
	unsigned long zaps;

	one_group(2, GIB_PAGES);
	REQUIRE_OK(world_alloc(0, 0, GIB_PAGES, NULL));
	REQUIRE_OK(world_map(0, 0, 1, 0, GIB_PAGES, BRUMM_RIGHTS_ALL, 0));
	zaps = world->zaps;
	REQUIRE_OK(world_unmap(0, 0, GIB_PAGES, false, &res));
	CHECK_EQ(res.nodes, 1);
	CHECK_EQ(world->zaps - zaps, 1);
	world_exit();
}

/* A frame mapped @nr times, revoked at once: greatest work under each lock. */
static void wide(u32 nr, bool scattered, unsigned long work[SHIM_RANKS])
{
	struct mapdb_unmap_result res;
	u32 i, step = scattered ? 2 : 1;
	int rank;

	one_group(2, nr * step);
	REQUIRE_OK(world_alloc(0, 0, 1, NULL));
	for (i = 0; i < nr; i++)
		REQUIRE_OK(world_map(0, 0, 1, i * step, 1, BRUMM_RIGHTS_ALL, 0));
	world_fault(1, (nr - 1) * step);
	expect_counts(0, 1, 1 + nr, 1 + nr);
	check_structures();
	shim_work_reset();
	REQUIRE_OK(world_unmap(0, 0, 1, false, &res));
	for (rank = 0; rank < SHIM_RANKS; rank++)
		work[rank] = shim_work_max(rank);
	CHECK_EQ(res.nodes, nr);
	CHECK_EQ(count_nodes(1), 0);
	CHECK_EQ(world_count_ptes(1), 0);
	expect_counts(0, 1, 1, 1);
	if (!scattered)
		CHECK(world->zaps <= nr / 16 + 1);
	world_exit();
}

/*
 * What is done under one hold of a lock may grow with the height of a tree, but
 * not with its size.
 */
static void wide_bounded(void)
{
	u32 many = (u32)tap_pick(100000, 1000000);
	unsigned long few_work[SHIM_RANKS], many_work[SHIM_RANKS];
	static const char *const name[] = { "outer", "mutex", "rwsem", "spin" };
	int rank;

	wide(1000, true, few_work);
	wide(many, true, many_work);
	for (rank = SHIM_MUTEX; rank < SHIM_RANKS; rank++) {
		tap_diag("%s: %lu basic blocks at most with 1000 mappings, %lu with %u",
			 name[rank], few_work[rank], many_work[rank], many);
		CHECK(many_work[rank] <= 3 * few_work[rank]);
	}
}

static void wide_contiguous(void)
{
	unsigned long work[SHIM_RANKS];

	wide((u32)tap_pick(100000, 1000000), false, work);
}

/* Bounded as well where nothing is removed: query and rights. */
static void wide_walks(void)
{
	u32 i, nr = (u32)tap_pick(50000, 500000);
	struct mapdb_unmap_result res;
	struct mapdb_info info;

	one_group(2, nr);
	REQUIRE_OK(world_alloc(0, 0, 1, NULL));
	for (i = 0; i < nr; i++)
		REQUIRE_OK(world_map(0, 0, 1, i, 1, BRUMM_RIGHTS_ALL, 0));
	shim_work_reset();
	REQUIRE_OK(mapdb_query(world_space(0), 0, false, true, &info));
	CHECK_EQ(info.descendants, nr);
	REQUIRE_OK(mapdb_reduce(world_space(0), 0, 1, false, BRUMM_RIGHT_W, &res));
	CHECK_EQ(res.nodes, nr);
	tap_diag("mutex: %lu, rwsem: %lu basic blocks at most",
		 shim_work_max(SHIM_MUTEX), shim_work_max(SHIM_RWSEM));
	CHECK(shim_work_max(SHIM_MUTEX) < 20000);
	CHECK(shim_work_max(SHIM_RWSEM) < 10000);
	check_structures();
	world_exit();
}

/* Greatest work under the tree's lock of a map beside @nr revokes below it. */
static unsigned long beside_revokes(u32 nr)
{
	struct mapdb_revoke *r = calloc(nr, sizeof(*r));
	struct mapdb_frames *f;
	struct mapdb_node *n;
	unsigned long work;
	u32 i;

	one_group(2, nr + 2);
	REQUIRE_OK(world_alloc(0, 0, nr + 2, NULL));
	REQUIRE_OK(world_map(0, nr, 1, 0, 1, BRUMM_RIGHTS_ALL, 0));
	n = mapdb_lock_at(world_space(0), 0, 1);
	f = mapdb_node_frames(n);
	for (i = 0; i < nr; i++) {
		r[i].lo = i;
		r[i].hi = i;
		mapdb_revoke_begin(n->down, &r[i]);
	}
	CHECK(mapdb_being_revoked(n->down, nr - 1, nr));
	CHECK(!mapdb_being_revoked(n->down, nr, nr + 1));
	mutex_unlock(&f->lock);

	shim_work_reset();
	REQUIRE_OK(world_map(0, nr, 1, 1, 2, BRUMM_RIGHTS_ALL, 0));
	work = shim_work_max(SHIM_MUTEX);

	mapdb_frames_lock(f);
	for (i = 0; i < nr; i++)
		mapdb_revoke_end(n->down, &r[i]);
	mapdb_frames_unlock(f);
	check_structures();
	world_exit();
	free(r);
	return work;
}

/* Who unmaps in many threads at once delays nobody else's maps by that. */
static void many_revokes(void)
{
	unsigned long few = beside_revokes(10), many = beside_revokes(100000);

	tap_diag("%lu basic blocks beside 10 revokes, %lu beside 100000", few,
		 many);
	CHECK(many <= 3 * few);
}

enum taker { BY_UNMAP, BY_RECLAIM, BY_RIGHTS, TAKERS };

/*
 * A node that grants of single pages have cut into @k pieces, and @k children
 * that span them all: the work to take it all back from the pieces on.
 */
static unsigned long spanned_pieces(u32 k, enum taker how)
{
	struct mapdb_unmap_result res = {};
	unsigned long work;
	u32 i;

	one_group(4, k * k);
	REQUIRE_OK(world_alloc(0, 0, k, NULL));
	REQUIRE_OK(world_map(0, 0, 1, 0, k, BRUMM_RIGHTS_ALL, 0));
	for (i = 0; i < k; i++)
		REQUIRE_OK(world_map(1, 0, 2, i * k, k, BRUMM_RIGHTS_ALL, 0));
	for (i = 0; i < k; i++)
		REQUIRE_OK(world_map(1, i, 3, i, 1, BRUMM_RIGHTS_ALL,
				     BRUMM_MAP_GRANT));
	CHECK_EQ(count_nodes(3), k);
	CHECK_EQ(count_nodes(2), k);
	work = shim_work();
	if (how == BY_UNMAP)
		REQUIRE_OK(world_unmap(3, 0, k, true, &res));
	else if (how == BY_RECLAIM)
		REQUIRE_OK(mapdb_reclaim(world_sponsor(0), &res));
	else
		REQUIRE_OK(mapdb_reduce(world_space(3), 0, k, true,
					BRUMM_RIGHT_W, &res));
	work = shim_work() - work;
	/* None was cut in addition. */
	CHECK_EQ(res.nodes, how == BY_RECLAIM ? 2 * k + 1 : 2 * k);
	if (how == BY_RIGHTS)
		CHECK_EQ(count_nodes(2), k);
	check_structures();
	world_exit();
	return work;
}

/* Work as the number of nodes, which are paid for, and not as its square. */
static void spanned(void)
{
	static const char *const name[] = { "unmap", "reclaim", "rights" };
	unsigned long few, many;
	enum taker how;

	for (how = 0; how < TAKERS; how++) {
		few = spanned_pieces(8, how);
		many = spanned_pieces(64, how);
		tap_diag("%s: %lu basic blocks for 8 pieces and children, %lu for 64",
			 name[how], few, many);
		CHECK(many < 8 * 2 * few);
	}
}

/* From each depth to the next, within one window. */
static void deep(void)
{
	struct mapdb_unmap_result res;
	struct mapdb_info info;
	u32 d;

	one_group(1, MAPDB_MAX_DEPTH + 2);
	REQUIRE_OK(world_alloc(0, 0, 1, NULL));
	for (d = 0; d < MAPDB_MAX_DEPTH; d++)
		REQUIRE_OK(world_map(0, d, 0, d + 1, 1, BRUMM_RIGHTS_ALL, 0));
	CHECK_RET(world_map(0, d, 0, d + 1, 1, BRUMM_RIGHTS_ALL, 0), -ELOOP);
	/* To move it makes nothing deeper. */
	CHECK_OK(world_map(0, d, 0, d + 1, 1, BRUMM_RIGHTS_ALL,
			   BRUMM_MAP_GRANT));
	world_fault_all();
	REQUIRE_OK(mapdb_query(world_space(0), 0, false, true, &info));
	CHECK_EQ(info.descendants, MAPDB_MAX_DEPTH);
	check_structures();
	REQUIRE_OK(mapdb_reduce(world_space(0), 0, 1, true, BRUMM_RIGHT_W, &res));
	CHECK_EQ(res.nodes, MAPDB_MAX_DEPTH + 1);
	REQUIRE_OK(world_unmap(0, 0, 1, false, &res));
	CHECK_EQ(res.nodes, MAPDB_MAX_DEPTH);
	CHECK_EQ(world_count_ptes(0), 0);
	world_exit();
}

/* A full tree of several pages a node: each level cut in halves. */
static void deep_and_cut(void)
{
	struct mapdb_unmap_result res;
	u32 d, pages = MAPDB_MAX_DEPTH + 2;

	one_group(MAX_WINDOWS, 2 * pages);
	REQUIRE_OK(world_alloc(0, 0, pages, NULL));
	for (d = 0; d + 1 < MAX_WINDOWS; d++)
		REQUIRE_OK(world_map((int)d, 0, (int)d + 1, 0, pages,
				     BRUMM_RIGHTS_ALL, 0));
	REQUIRE_OK(world_unmap(0, 10, 1, false, &res));
	CHECK_EQ(res.pages, MAX_WINDOWS - 1);
	for (d = 1; d < MAX_WINDOWS; d++)
		CHECK_EQ(count_nodes((int)d), 2);
	check_structures();
	REQUIRE_OK(world_unmap(1, 0, pages, true, &res));
	CHECK_EQ(res.pages, (pages - 1) * (MAX_WINDOWS - 1));
	world_exit();
}

/*
 * Two children of a root and one grandchild, of all ranges there are, and all
 * ways to take a range of the root or of a child back.
 */
struct range {
	u32 start;
	u32 pages;
};

static struct range range_nr(u32 i, u32 n)
{
	struct range r = { 0, 0 };

	for (r.start = 0; i >= n - r.start; r.start++)
		i -= n - r.start;
	r.pages = i + 1;
	return r;
}

static void derive(struct model *m, int sw, int tw, struct range r)
{
	struct mreq q = { .sw = sw, .tw = tw, .from = r.start, .to = r.start,
			  .pages = r.pages, .rights = BRUMM_RIGHTS_ALL };

	/* What a grandchild is to be derived from need not be there. */
	both_map(m, &q);
}

static void take(struct model *m, struct range r, u32 how)
{
	struct both_before before;
	int w = how & 1 ? 1 : 0;

	both_before(m, &before);
	if (how < 4)
		both_unmap(m, w, r.start, r.pages, how & 2);
	else
		both_reduce(m, w, r.start, r.pages, how & 2, BRUMM_RIGHT_W);
	both_check(m, &before);
}

static void shape(struct model *m, const u32 index[4], u32 n, u32 how)
{
	int w;

	both_alloc(m, 0, 0, n);
	derive(m, 0, 1, range_nr(index[0], n));
	derive(m, 0, 2, range_nr(index[1], n));
	derive(m, 1, 3, range_nr(index[2], n));
	world_fault_all();
	take(m, range_nr(index[3], n), how);
	for (w = 0; w < 4; w++)
		both_release(m, w);
}

static void every_shape(void)
{
	u32 n = (u32)tap_pick(4, 5), ranges = n * (n + 1) / 2;
	struct world_config c = {
		.windows = 4, .pages = n, .groups = 2, .parent = no_parent,
		.group = all_one,
	};
	u32 index[4], i, all = ranges * ranges * ranges * ranges, how;
	struct model m;

	both_init(&m, &c);
	for (i = 0; i < all; i++) {
		index[0] = i % ranges;
		index[1] = i / ranges % ranges;
		index[2] = i / ranges / ranges % ranges;
		index[3] = i / ranges / ranges / ranges;
		for (how = 0; how < 8; how++)
			shape(&m, index, n, how);
	}
	tap_diag("%u shapes", all * 8);
	world_exit();
}

/* Who pays, with the figures written out. */
static void sponsors(void)
{
	static const int group[] = { -1, 0, 2 };
	struct world_config c = {
		.windows = 3, .pages = 64, .groups = 3, .parent = no_parent,
		.group = group,
	};

	world_init(&c);
	/* A service of the root cgroup allocates: nobody pays. */
	REQUIRE_OK(world_alloc(0, 0, 32, NULL));
	expect_counts(0, 0, 0, 0);
	/* To a client: he does, and for what he passes on, too. */
	REQUIRE_OK(world_map(0, 0, 1, 0, 16, BRUMM_RIGHTS_ALL, 0));
	expect_counts(0, 1, 1, 16);
	REQUIRE_OK(world_map(1, 0, 2, 0, 8, BRUMM_RIGHTS_ALL, 0));
	expect_counts(0, 1, 2, 24);
	expect_counts(2, 0, 0, 0);
	/* A hole in the first node is a second first node. */
	REQUIRE_OK(world_unmap(1, 10, 1, true, NULL));
	expect_counts(0, 2, 3, 23);
	/* What is his own, he pays from the root of the tree on. */
	REQUIRE_OK(world_alloc(2, 32, 4, NULL));
	expect_counts(2, 1, 1, 4);
	world_exit();
}

/* Holes: refused to who pays for them himself, "over" when taken from above. */
static void holes(void)
{
	static const int group[] = { -1, 0 };
	struct world_config c = {
		.windows = 2, .pages = 64, .groups = 1, .parent = no_parent,
		.group = group,
	};
	struct mapdb_unmap_result res;
	struct ledger_state s;
	struct ledger *l;

	world_init(&c);
	l = &world_sponsor(0)->ledger;
	REQUIRE_OK(world_alloc(0, 0, 16, NULL));
	REQUIRE_OK(world_map(0, 0, 1, 0, 16, BRUMM_RIGHTS_ALL, 0));
	ledger_set_max(l, ledger_usage(l));
	CHECK_RET(world_unmap(1, 8, 1, true, &res), -EDQUOT);
	expect_counts(0, 1, 1, 16);
	ledger_set_locked(l, true);
	CHECK_RET(world_unmap(1, 8, 1, true, &res), -EBUSY);
	/* Trimming adds nothing. */
	CHECK_OK(world_unmap(1, 15, 1, true, &res));
	expect_counts(0, 1, 1, 15);
	ledger_set_max(l, ledger_usage(l));
	/* The holder of the source cannot be refused. */
	CHECK_OK(world_unmap(0, 8, 1, false, &res));
	expect_counts(0, 2, 2, 14);
	ledger_get_state(l, &s);
	CHECK_EQ(s.event[LEDGER_EV_OVER], 1);
	CHECK_EQ(s.event[LEDGER_EV_MAX], 1);
	CHECK_EQ(s.event[LEDGER_EV_LOCKED], 1);
	world_exit();
}

/*
 * A reclaim leaves nothing charged, also where a grant has taken the first node
 * of a subtree to another sponsor and the rest has stayed with the old one.
 */
static void reclaim_all(void)
{
	static const int group[] = { -1, 0, 0 };
	struct world_config c = {
		.windows = 3, .pages = 64, .groups = 3, .parent = no_parent,
		.group = group,
	};
	struct mapdb_map_args a = {
		.from = 0, .to = 32, .pages = 8, .rights = BRUMM_RIGHTS_ALL,
		.flags = BRUMM_MAP_GRANT | BRUMM_MAP_SPONSOR,
	};
	struct mapdb_unmap_result res = {};

	world_init(&c);
	REQUIRE_OK(world_alloc(0, 0, 8, NULL));
	REQUIRE_OK(world_map(0, 0, 1, 0, 8, BRUMM_RIGHTS_ALL, 0));
	REQUIRE_OK(world_map(1, 0, 2, 0, 8, BRUMM_RIGHTS_ALL, 0));
	a.source = world_space(1);
	a.target = world_space(1);
	a.sponsor = world_sponsor(2);
	/* What was derived would stay at a sponsor without a first node. */
	CHECK_RET(mapdb_grant(&a), -EINVAL);
	REQUIRE_OK(mapdb_reclaim(world_sponsor(0), &res));
	expect_counts(0, 0, 0, 0);
	check_structures();
	world_exit();
}

/* A map over several nodes makes one for each; all or nothing. */
static void crossing(void)
{
	struct world_config c = {
		.windows = 3, .pages = 64, .groups = 0, .parent = no_parent,
		.group = no_groups,
	};
	u32 p;

	world_init(&c);
	for (p = 0; p < 8; p++)
		REQUIRE_OK(world_alloc(0, 4 * p, 4, NULL));
	REQUIRE_OK(world_map(0, 2, 1, 2, 28, BRUMM_RIGHTS_ALL, 0));
	CHECK_EQ(count_nodes(1), 8);
	REQUIRE_OK(world_unmap(0, 20, 1, true, NULL));
	CHECK_RET(world_map(0, 2, 2, 2, 28, BRUMM_RIGHTS_ALL, 0), -ENOENT);
	CHECK_EQ(count_nodes(2), 0);
	CHECK_RET(world_map(0, 2, 1, 10, 10, BRUMM_RIGHTS_ALL, 0), -EEXIST);
	REQUIRE_OK(world_map(0, 2, 1, 10, 10, BRUMM_RIGHTS_ALL,
			     BRUMM_MAP_REPLACE));
	check_structures();
	world_exit();
}

static const struct tap_case cases[] = {
	{ "1 GiB is one node; every second page of it can go", gib, 600 },
	{ "1 GiB is revoked by one zap", gib_at_once },
	{ "a wide tree: bounded work under each lock", wide_bounded, 1200 },
	{ "a wide tree: neighbours are zapped together", wide_contiguous, 1200 },
	{ "a wide tree: query and rights are bounded, too", wide_walks, 1200 },
	{ "a map beside many revokes is bounded", many_revokes },
	{ "pieces in a row are taken back as one", spanned },
	{ "a deep tree: up to the greatest depth, then ELOOP", deep },
	{ "a page goes from all levels of a tree", deep_and_cut },
	{ "every shape of two levels", every_shape, 3600 },
	{ "sponsors pay what they should", sponsors },
	{ "holes are refused below, and over above", holes },
	{ "a reclaim leaves nothing charged", reclaim_all },
	{ "maps over several nodes", crossing },
};

TAP_MAIN(cases)
