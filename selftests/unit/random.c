// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations against the reference model.
 *
 *	random --seed S [--steps N] [--fail-every N] [--verbose] [--shrink]
 *
 * runs one seed again; --shrink looks for a short list of operations that still
 * fails. A failing test prints such a line.
 */
#include "ops.h"
#include <getopt.h>
#include <tap.h>

static u64 steps = 18000;
static unsigned int fail_every;
static u64 running;

static void on_fail(void)
{
	printf("# random --seed %llu --steps %llu --fail-every %u --shrink\n",
	       running, steps, fail_every);
	op_print_last();
}

static void run_seed(u64 seed)
{
	struct op_list l;

	running = seed;
	op_list_make(&l, seed, steps);
	op_list_run(&l, fail_every);
	free(l.op);
}

static void run_seeds(u64 first, u64 nr)
{
	u64 seed;

	tap_diag("seeds %llu to %llu, %llu operations each", first,
		 first + nr - 1, steps);
	for (seed = first; seed < first + nr; seed++)
		run_seed(seed);
}

static void model(void)
{
	run_seeds(1, tap_pick(60, 400));
}

/* Seeds that nobody has tried before. */
static void model_new_seeds(void)
{
	steps = 5000;
	run_seeds(tap_seed() % (1ULL << 40) + 10000000, tap_pick(5, 50));
}

static void no_memory(void)
{
	fail_every = 2;
	steps = 1000;
	run_seeds(1000000, tap_pick(60, 300));
}

static const struct tap_case cases[] = {
	{ "random operations do what the model does", model, 3600 },
	{ "random operations with new seeds", model_new_seeds, 3600 },
	{ "whatever cannot be allocated, nothing has changed", no_memory, 3600 },
};

static int again(u64 seed, bool shrink)
{
	struct op_list l;

	running = seed;
	op_list_make(&l, seed, steps);
	if (shrink) {
		op_list_shrink(&l, fail_every);
		op_verbose = true;
	}
	op_list_run(&l, fail_every);
	free(l.op);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'l' },
		{ "fail-every", required_argument, NULL, 'f' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "shrink", no_argument, NULL, 'k' },
		{},
	};
	bool shrink = false, single = false;
	u64 seed = 0;
	int c;

	shim_on_fail(on_fail);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's') {
			seed = strtoull(optarg, NULL, 0);
			single = true;
		} else if (c == 'l') {
			steps = strtoull(optarg, NULL, 0);
		} else if (c == 'f') {
			fail_every = (unsigned int)strtoul(optarg, NULL, 0);
		} else if (c == 'v') {
			op_verbose = true;
		} else if (c == 'k') {
			shrink = true;
		} else {
			return 2;
		}
	}
	if (single)
		return again(seed, shrink);
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
