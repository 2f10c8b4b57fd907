// SPDX-License-Identifier: GPL-2.0
/* Which benchmarks there are, and in which order they run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "bench.h"

const char *const bench_by[] = {
	[SHAPE_BY_UNMAP] = "unmap",
	[SHAPE_BY_UNMAP_SELF] = "unmap-self",
	[SHAPE_BY_RECLAIM] = "reclaim",
	[SHAPE_BY_CLOSE] = "close",
	[SHAPE_BY_MUNMAP] = "munmap",
};

const unsigned int nr_bench_by = ARRAY_SIZE(bench_by);

const char *const bench_configs[] = {
	[BENCH_DISABLED] = "disabled",
	[BENCH_AVAILABLE] = "available",
	[BENCH_USED] = "used",
};

const struct bench benches[] = {
	{ "single_frame", "one frame, mapped n times", BENCH_EACH_SIZE, false, run_single_frame },
	{ "many_frames", "n frames, each mapped once, page by page", BENCH_EACH_SIZE, false, run_many_frames },
	{ "random_map", "random trees of n mappings of one page", BENCH_EACH_SIZE, false, run_random_map },
	{ "random_ranges", "random trees of n mappings of ranges", BENCH_EACH_SIZE, false, run_random_ranges },
	{ "scattered", "n frames, each mapped once, targets not adjacent", BENCH_EACH_SIZE, false, run_scattered },
	{ "range", "a large range (--range), mapped once as a whole", BENCH_ONCE, false, run_range },
	{ "chain", "a range of n pages, passed on through 8 windows", BENCH_EACH_SIZE, false, run_chain },
	{ "leaf_map", "each map call of random_map by itself", BENCH_EACH_SIZE, false, run_leaf_map },
	{ "leaf_unmap", "random_map, taken back leaf by leaf", BENCH_EACH_SIZE, false, run_leaf_unmap },
	{ "independent", "single_frame by 1..CPUs processes with a frame each", BENCH_EACH_CPUS, false, run_independent },
	{ "shared", "single_frame by 1..CPUs threads on one frame", BENCH_EACH_CPUS, false, run_shared },
	{ "service", "n pages from a memory service, taken back by a controller", BENCH_EACH_SIZE, false, run_service },
	{ "munmap_memfd", "munmap of n pages of a memfd, which stays", BENCH_EACH_SIZE, true, run_munmap_memfd },
	{ "free_memfd", "munmap and close of a memfd of n pages, which are freed", BENCH_EACH_SIZE, true, run_free_memfd },
	{ "punch_hole", "fallocate(PUNCH_HOLE) of n mapped pages of a memfd", BENCH_EACH_SIZE, true, run_punch_hole },
	{ "madvise_dontneed", "madvise(DONTNEED) of n anonymous pages", BENCH_EACH_SIZE, true, run_madvise },
	{ "kill_mapper", "SIGKILL of who maps n pages of a memfd, until it is gone", BENCH_EACH_SIZE, true, run_kill },
	{ "process_mrelease", "SIGKILL of who has n anonymous pages, and process_mrelease", BENCH_EACH_SIZE, true, run_mrelease },
	{ "bare_zap", "munmap of a window's n page-table entries", BENCH_EACH_SIZE, true, run_zap },
};

const unsigned int nr_benches = ARRAY_SIZE(benches);

const struct bench *bench_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < nr_benches; i++)
		if (!strcmp(benches[i].name, name))
			return &benches[i];
	return NULL;
}

static bool wanted(const struct bench_plan *plan, const struct bench *b)
{
	unsigned int i;

	for (i = 0; i < plan->nr_names; i++)
		if (!strcmp(plan->names[i], b->name))
			return true;
	return !plan->nr_names;
}

/* Into @to, or only counted. */
static unsigned int list(const struct bench_plan *plan, unsigned int repeat,
			 struct bench_task *to)
{
	unsigned int i, size, cpus, nr = 0;

	for (i = 0; i < nr_benches; i++) {
		const struct bench *b = &benches[i];
		unsigned int sizes = b->sweep == BENCH_ONCE ? 1 : plan->nr_sizes;
		unsigned int most = b->sweep == BENCH_EACH_CPUS ? plan->cpus : 1;

		if (!wanted(plan, b))
			continue;
		for (size = 0; size < sizes; size++)
			for (cpus = 1; cpus <= most; cpus++, nr++)
				if (to)
					to[nr] = (struct bench_task){
						.bench = b,
						.size = b->sweep == BENCH_ONCE ?
							plan->range :
							plan->sizes[size],
						.cpus = cpus,
						.repeat = repeat,
					};
	}
	return nr;
}

int bench_tasks(const struct bench_plan *plan, unsigned int repeat,
		struct bench_task **tasks, unsigned int *nr)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

	*nr = list(plan, repeat, NULL);
	*tasks = calloc(*nr ? *nr : 1, sizeof(**tasks));
	if (!*tasks || !rng) {
		gsl_rng_free(rng);
		free(*tasks);
		return -ENOMEM;
	}
	list(plan, repeat, *tasks);
	gsl_rng_set(rng, (unsigned long)(plan->seed * 1000003u + repeat) | 1u);
	gsl_ran_shuffle(rng, *tasks, *nr, sizeof(**tasks));
	gsl_rng_free(rng);
	return 0;
}

uint64_t bench_seed(const struct bench_plan *plan,
		    const struct bench_task *task)
{
	return plan->seed * 1000003u + task->repeat;
}
