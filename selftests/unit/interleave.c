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
	fiber_run(fiber, nr, seed, 1 + (int)rnd(&r, 12));
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

static const struct tap_case cases[] = {
	{ "operations in any order leave sound structures", any_order, 3600 },
	{ "operations in any order, with new seeds", any_order_new_seeds, 3600 },
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
