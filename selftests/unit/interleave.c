// SPDX-License-Identifier: GPL-2.0
/*
 * Several operations at once, as coroutines: which one goes on at each lock,
 * allocation and callback is up to a seed, so that a race is found again.
 *
 *	interleave --seed S
 *
 * runs one seed again, and prints what it does.
 */
#include "actors.h"
#include <tap.h>

static u64 running;
static int low_memory;
static struct rnd memory_rnd;

static void on_fail(void)
{
	printf("# interleave --seed %llu\n", running);
	op_print_last();
}

/* Now and then an allocation fails. */
static void starve(void)
{
	if (low_memory && !rnd(&memory_rnd, 20))
		shim_alloc_fail_at(1 + rnd(&memory_rnd, 5));
}

static void make_actor(struct actor *a, u64 seed, unsigned int i)
{
	*a = (struct actor){ .steps = 24 };
	rnd_seed(&a->rnd, seed * 16 + i);
}

static void run_seed(u64 seed)
{
	static struct actor actor[8];
	struct fiber fiber[8];
	struct world_config c;
	struct rnd r;
	int workers, owners, i, nr = 0;

	running = seed;
	rnd_seed(&r, seed);
	rnd_seed(&memory_rnd, seed);
	workers = 1 + (int)rnd(&r, 3);
	owners = (int)rnd(&r, 3);
	low_memory = !rnd(&r, 3);
	actors_world(&c, owners, 6 + rnd(&r, 7));
	world_init(&c);
	shim_on_preempt(starve);
	for (i = 0; i < workers; i++)
		fiber[nr++] = (struct fiber){ "worker", actor_worker, NULL };
	for (i = 0; i < owners; i++)
		fiber[nr++] = (struct fiber){ "owner", actor_owner, NULL };
	if (rnd(&r, 2))
		fiber[nr++] = (struct fiber){ "control", actor_controller, NULL };
	fiber[nr++] = (struct fiber){ "toucher", actor_toucher, NULL };
	make_actor(&actor[7], seed, 7);
	actor_worker(&actor[7]);
	for (i = 0; i < nr; i++) {
		make_actor(&actor[i], seed, (unsigned int)i);
		actor[i].owned = SHARED_WINDOWS + i - workers;
		fiber[i].arg = &actor[i];
	}
	fiber_run(fiber, nr, seed, 1 << rnd(&r, 8));
	shim_on_preempt(NULL);
	shim_alloc_fail_at(0);
	actors_check();
	world_exit();
}

static void any_order(void)
{
	u64 seed, nr = tap_pick(6000, 60000);

	tap_diag("seeds 1 to %llu", nr);
	for (seed = 1; seed <= nr; seed++)
		run_seed(seed);
}

static void any_order_new_seeds(void)
{
	u64 first = tap_seed() % (1ULL << 40) + 1000000000, i;

	for (i = 0; i < tap_pick(1000, 20000); i++)
		run_seed(first + i);
}

/*
 * Who derives from a range while it is revoked, or from what was derived from it,
 * must not keep the revoke from coming to its end: he waits where the range
 * itself stays, and is told that it is gone otherwise.
 */
#define CHILDREN	300

/* The window that all is derived from: 0, or 3 with a mapping of that. */
static int source;
static bool revoke_self, revoked;
static u32 escaped;

static void revoker(void *arg)
{
	struct mapdb_unmap_result res;
	int err = world_unmap(0, 0, 1, revoke_self, &res);

	SHIM_CHECK(!err, "unmap: %d", err);
	revoked = true;
}

static void deriver(void *arg)
{
	u32 i = 0;

	while (!revoked) {
		bool began = world->zaps;
		int err = world_map(source, 0, 2, i, 1, BRUMM_RIGHTS_ALL, 0);

		SHIM_CHECK(!err || err == -ENOENT || err == -EEXIST, "map: %d",
			   err);
		escaped += !err && began &&
			   !RB_EMPTY_ROOT(&world_space(1)->nodes);
		i = (i + 1) % CHILDREN;
		shim_preempt();
	}
}

static void no_escape(u64 seed)
{
	static const int group[] = { -1, -1, -1, -1 };
	struct world_config c = {
		.windows = 4, .pages = CHILDREN, .group = group,
	};
	const struct fiber f[] = {
		{ "revoker", revoker, NULL }, { "deriver", deriver, NULL },
	};
	u32 i;

	running = seed;
	world_init(&c);
	SHIM_CHECK(!world_alloc(0, 0, 1, NULL), "alloc");
	source = seed / 2 % 2 ? 3 : 0;
	if (source)
		SHIM_CHECK(!world_map(0, 0, source, 0, 1, BRUMM_RIGHTS_ALL, 0),
			   "map");
	for (i = 0; i < CHILDREN; i++)
		SHIM_CHECK(!world_map(source, 0, 1, i, 1, BRUMM_RIGHTS_ALL, 0),
			   "map");
	revoke_self = seed % 2;
	revoked = false;
	escaped = 0;
	fiber_run(f, 2, seed, 1 << seed / 2 % 6);
	SHIM_CHECK(!escaped, "%u derived meanwhile", escaped);
	world_exit();
}

static void no_escapes(void)
{
	u64 seed;

	for (seed = 0; seed < tap_pick(100, 2000); seed++)
		no_escape(seed);
}

/*
 * A window goes, and the sponsor of what was in it, while others are about to
 * charge it or to remove the last of it.
 */
static bool passed;

static void pass(void)
{
	struct mapdb_sponsor *sp = cgroup_make();
	struct window *w = window_new(8, sp);
	struct mapdb_map_args a = {
		.pages = 8, .rights = BRUMM_RIGHTS_ALL,
		.flags = BRUMM_MAP_REPLACE,
	};
	int i;

	a.source = running % 2 ? &w->space : world_space(0);
	a.target = running % 2 ? world_space(0) : &w->space;
	SHIM_CHECK(!space_alloc(a.source, 0, 8, NULL), "alloc");
	/* Others may have taken a part of the source. */
	mapdb_map(&a);
	for (i = 0; i < 20; i++)
		shim_preempt();
	window_release(w);
	cgroup_remove(sp);
}

static void passing(void *arg)
{
	int i;

	for (i = 0; i < 4; i++) {
		pass();
		world_unmap(0, 0, 8, true, NULL);
		world_unmap(2, 0, 8, true, NULL);
	}
	passed = true;
}

static void charger(void *arg)
{
	struct mapdb_unmap_result res;
	u32 i;

	for (i = 0; !passed; i++) {
		/* All the time the same, or one after the other. */
		u64 how = running / 2 % 6 < 5 ? running / 2 % 6 : i % 5;

		if (how == 0)
			world_unmap(0, 2, 1, true, &res);
		else if (how == 1)
			mapdb_reduce(world_space(0), 2, 1, true, BRUMM_RIGHT_W,
				     &res);
		else if (how == 2)
			world_map(0, 1, 2, 0, 4, BRUMM_RIGHT_R, BRUMM_MAP_REPLACE);
		else if (how == 3)
			world_map(0, 1, 2, 0, 4, BRUMM_RIGHTS_ALL,
				  BRUMM_MAP_REPLACE | BRUMM_MAP_GRANT);
		else
			world_unmap(0, 0, 8, i % 2, &res);
		shim_preempt();
	}
}

static void things_go(u64 seed)
{
	static const int group[] = { -1, -1, -1 }, no_parent[] = { -1 };
	struct world_config c = {
		.windows = 3, .pages = 8, .groups = 1, .parent = no_parent,
		.group = group,
	};
	const struct fiber f[] = {
		{ "passing", passing, NULL }, { "charger", charger, NULL },
		{ "charger", charger, NULL },
	};

	running = seed;
	passed = false;
	world_init(&c);
	fiber_run(f, 3, seed, 1 << seed / 12 % 8);
	world_exit();
}

static void things_go_away(void)
{
	u64 seed;

	for (seed = 0; seed < tap_pick(2000, 50000); seed++)
		things_go(seed);
}

static const struct tap_case cases[] = {
	{ "operations in any order leave sound structures", any_order, 3600 },
	{ "operations in any order, with new seeds", any_order_new_seeds, 3600 },
	{ "a window and its sponsor go while others use them", things_go_away,
	  3600 },
	{ "a revoke comes to its end while others derive", no_escapes, 3600 },
};

int main(int argc, char **argv)
{
	shim_on_fail(on_fail);
	if (argc == 3 && !strcmp(argv[1], "--seed")) {
		op_verbose = true;
		run_seed(strtoull(argv[2], NULL, 0));
		return 0;
	}
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
