// SPDX-License-Identifier: GPL-2.0
/* Benchmarks that take one shape back, at once or leaf by leaf. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"

#define CHAIN_WINDOWS	8u
#define SCATTER_GAP	32u

/* What is known before and after a shape is made. */
struct scene {
	const struct bench_env *env;
	struct shape *shape;
	struct shape_counts before;
	int64_t kernel;
};

static int plan_scene(const struct bench_env *env,
		      const struct shape_spec *spec, struct scene *sc)
{
	sc->env = env;
	sc->shape = NULL;
	bench_stat(env, &sc->before);
	sc->kernel = bench_kernel_bytes(env);
	return shape_plan(spec, &sc->shape);
}

/* Memory of the kernel; where no cgroup tells, what the nodes take. */
static int put_kernel_bytes(const struct scene *sc, uint64_t nodes, json_t *r)
{
	int64_t now = bench_kernel_bytes(sc->env);

	if (sc->kernel < 0 || now < 0)
		return bench_put_nodes(sc->env, r, nodes);
	if (bench_put(r, "kernel_bytes", now > sc->kernel ?
		      (uint64_t)(now - sc->kernel) : 0))
		return -ENOMEM;
	return json_object_set_new(r, "kernel_by", json_string("memory.stat")) ?
	       -ENOMEM : 0;
}

/* What brumm.stat says, since the scene was set. */
static int put_stat(const struct scene *sc, const char *key, json_t *r)
{
	struct shape_counts now;

	if (!bench_stat(sc->env, &now))
		return json_object_set_new(r, key, json_null()) ? -ENOMEM : 0;
	now.lookup -= sc->before.lookup;
	now.map -= sc->before.map;
	now.pt -= sc->before.pt;
	now.deep -= sc->before.deep;
	return bench_put_counts(r, key, &now);
}

/* All that is known once it stands. */
static int put_made(const struct scene *sc, json_t *r)
{
	struct shape_counts charged;
	struct shape_cost cost;
	int err;

	shape_cost(sc->shape, &cost);
	shape_charged(sc->shape, sc->env->config == BENCH_USED ?
		      sc->env->id : 0, &charged);
	err = bench_put(r, "prepare_ns", cost.prepare_ns);
	if (!err)
		err = bench_put(r, "touch_ns", cost.touch_ns);
	if (!err)
		err = bench_put(r, "map_calls", cost.map_calls);
	if (!err)
		err = bench_put(r, "nodes", cost.nodes);
	if (!err)
		err = bench_put(r, "user_bytes", cost.frames * BENCH_PAGE);
	if (!err)
		err = put_kernel_bytes(sc, cost.nodes, r);
	if (!err)
		err = bench_put(r, "node_bytes",
				cost.nodes * sc->env->node_bytes);
	if (!err)
		err = bench_put_counts(r, "charged", &charged);
	return err ? err : put_stat(sc, "stat", r);
}

/* What the kernel itself measured, where it does. */
static int put_kernel_time(const struct bench_env *env, enum shape_by by,
			   json_t *r)
{
	uint64_t ns;

	if (by != SHAPE_BY_RECLAIM ||
	    brumm_group_stat_get(env->group, "last_reclaim_measured_ns", &ns))
		return 0;
	return bench_put(r, "kernel_ns", ns);
}

/* How often the CPU was given to somebody else, of which the time knows. */
static uint64_t switches(void)
{
	struct rusage u = { 0 };

	getrusage(RUSAGE_THREAD, &u);
	return (uint64_t)u.ru_nivcsw + (uint64_t)u.ru_nvcsw;
}

static int take_back(const struct scene *sc, enum shape_by by, json_t *r)
{
	struct shape_counts revoked;
	struct shape_took took;
	uint64_t before;
	int err;

	shape_revoked(sc->shape, by, sc->env->id, &revoked);
	before = switches();
	err = shape_reclaim(sc->shape, by, sc->env->group, &took);
	if (!err)
		err = bench_put(r, "switches", switches() - before);
	if (!err)
		err = bench_put_prediction(sc->env, r, &revoked, 1);
	if (!err)
		err = bench_put(r, "reclaim_ns", took.wall_ns);
	if (!err)
		err = bench_put(r, "pages", took.pages);
	if (!err)
		err = put_kernel_time(sc->env, by, r);
	if (!err)
		err = json_object_set_new(r, "by", json_string(bench_by[by])) ?
		      -ENOMEM : 0;
	return err ? err : put_stat(sc, "stat_left", r);
}

static int run_shape(const struct bench_env *env, const struct bench_plan *plan,
		     const struct bench_task *task, struct shape_spec *spec,
		     json_t *r)
{
	enum shape_by by = plan->by;
	struct scene sc;
	int err;

	spec->seed = bench_seed(plan, task);
	spec->touch = plan->touch;
	/* Without a sponsor there is nothing that such a reclaim could find. */
	if (by == SHAPE_BY_RECLAIM && env->config != BENCH_USED)
		by = SHAPE_BY_UNMAP_SELF;
	err = plan_scene(env, spec, &sc);
	if (!err)
		err = shape_make(sc.shape);
	if (!err)
		err = put_made(&sc, r);
	if (!err)
		err = take_back(&sc, by, r);
	shape_free(sc.shape);
	return err;
}

BENCH_RUN(run_single_frame)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_SINGLE_FRAME, .n = task->size }, result);
}

BENCH_RUN(run_many_frames)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_MANY_FRAMES, .n = task->size }, result);
}

BENCH_RUN(run_random_map)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_RANDOM_PAGES, .n = task->size }, result);
}

BENCH_RUN(run_random_ranges)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_RANDOM_RANGES, .n = task->size }, result);
}

BENCH_RUN(run_scattered)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_MANY_FRAMES, .n = task->size,
		.gap = SCATTER_GAP }, result);
}

BENCH_RUN(run_range)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_RANGE, .n = 1, .frames = task->size }, result);
}

BENCH_RUN(run_chain)
{
	return run_shape(env, plan, task, &(struct shape_spec){
		.kind = SHAPE_CHAIN, .n = CHAIN_WINDOWS - 1,
		.frames = task->size, .windows = CHAIN_WINDOWS }, result);
}

/* One call after the other, from first to last or back; -EINTR if told to. */
static int each_leaf(struct shape *s, bool back, double *ns)
{
	uint64_t i, n = shape_mappings(s), start;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		start = cli_now();
		err = back ? shape_unmap(s, n - 1 - i) : shape_map(s, i);
		ns[i] = (double)(cli_now() - start);
		if (!err && cli_signal())
			err = -EINTR;
	}
	return err;
}

static uint64_t sum_of(const double *ns, uint64_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += (uint64_t)ns[n];
	return sum;
}

/* put_made(), for mappings that were made and timed one by one. */
static int put_made_each(const struct scene *sc, const double *ns, json_t *r)
{
	struct shape_cost cost;
	int err = put_made(sc, r);

	shape_cost(sc->shape, &cost);
	if (!err)
		err = bench_put(r, "map_calls", shape_mappings(sc->shape));
	return err ? err : bench_put(r, "prepare_ns", cost.prepare_ns +
				     sum_of(ns, shape_mappings(sc->shape)));
}

static int put_calls(json_t *r, double *ns, uint64_t n)
{
	return json_object_set_new(r, "each_ns", bench_distribution(ns, n)) ?
	       -ENOMEM : 0;
}

static int open_leaves(const struct bench_env *env,
		       const struct bench_plan *plan,
		       const struct bench_task *task, struct scene *sc)
{
	struct shape_spec spec = {
		.kind = SHAPE_RANDOM_PAGES, .n = task->size,
		.seed = bench_seed(plan, task), .touch = plan->touch,
	};
	int err = plan_scene(env, &spec, sc);

	if (!err)
		err = shape_open(sc->shape);
	return err ? err : shape_base(sc->shape);
}

BENCH_RUN(run_leaf_map)
{
	double *ns = calloc(task->size, sizeof(*ns));
	struct scene sc = { 0 };
	int err = ns ? open_leaves(env, plan, task, &sc) : -ENOMEM;

	if (!err)
		err = each_leaf(sc.shape, false, ns);
	if (!err)
		err = put_made_each(&sc, ns, result);
	if (!err)
		err = put_calls(result, ns, task->size);
	if (!err)
		err = json_object_set_new(result, "reclaim_ns", json_null());
	shape_free(sc.shape);
	free(ns);
	return err;
}

BENCH_RUN(run_leaf_unmap)
{
	double *ns = calloc(task->size, sizeof(*ns));
	/* Each call looks its node up. */
	struct shape_counts c = { task->size, task->size, task->size, 0 };
	struct scene sc = { 0 };
	int err = ns ? open_leaves(env, plan, task, &sc) : -ENOMEM;

	if (!err)
		err = each_leaf(sc.shape, false, ns);
	if (!err && plan->touch)
		err = shape_touch(sc.shape);
	if (!err)
		err = put_made_each(&sc, ns, result);
	if (!err)
		err = each_leaf(sc.shape, true, ns);
	if (!err)
		err = bench_put_prediction(env, result, &c, task->size);
	if (!err)
		err = bench_put(result, "reclaim_ns", sum_of(ns, task->size));
	if (!err)
		err = put_calls(result, ns, task->size);
	if (!err)
		err = bench_put(result, "pages", task->size);
	if (!err)
		err = json_object_set_new(result, "by", json_string("leaf-unmap"));
	shape_free(sc.shape);
	free(ns);
	return err;
}
