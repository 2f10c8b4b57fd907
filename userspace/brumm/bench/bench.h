/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The benchmarks, and what they share.
 *
 * A plan says which benchmarks run, how large and how often; it makes a list
 * of tasks. Each task is run once and gives one result, an object of the file
 * "brumm-bench/1" (Documentation/design/measuring.md), which the store keeps.
 */
#ifndef BRUMM_BENCH_H
#define BRUMM_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../cli.h"
#include "../profile/fit.h"
#include "shape.h"

#define BENCH_PAGE	4096ull
#define BENCH_SIZES	32

/**
 * struct bench_plan - what is to be done; kept in the file, for --resume
 * @names: of the benchmarks, NULL: those that run by default
 * @nr_names: how many
 * @sizes: mappings, or pages of a base line
 * @nr_sizes: how many
 * @range: pages of the benchmark range
 * @cpus: most CPUs of the parallel ones
 * @repeat: times
 * @seed: of the shapes and of the order
 * @by: how Single Frame, Many Frames, Random Map and so on are taken back
 * @touch: pages have page-table entries
 * @fifo: at a real-time priority, so that nobody else gets the CPU
 */
struct bench_plan {
	const char **names;
	unsigned int nr_names;
	uint64_t sizes[BENCH_SIZES];
	unsigned int nr_sizes;
	uint64_t range;
	unsigned int cpus;
	unsigned int repeat;
	uint64_t seed;
	enum shape_by by;
	bool touch;
	bool fifo;
};

enum bench_config { BENCH_DISABLED, BENCH_AVAILABLE, BENCH_USED };

/* @read: from a file of brumm profile; @tail: which has the 99th percentiles. */
struct bench_prices {
	bool known, read, tail;
	uint64_t lookup, map, pt, deep, syscall;
	double p99[FIT_TERMS];
};

/**
 * struct bench_env - where it is done
 * @config: which of the three configurations this is
 * @group: descriptor of the cgroup that the windows belong to
 * @name: its name
 * @id: its id
 * @made: it was made for this run, and is removed at the end
 * @home: descriptor of the cgroup that the program was started in
 * @knobs: it has brumm.* files
 * @prices: those in force
 * @node_bytes: size of a node, 0: unknown
 * @cpus: those that may be used
 * @nr_cpus: how many
 */
struct bench_env {
	enum bench_config config;
	int group;
	char name[256];
	uint64_t id;
	bool made;
	int home;
	bool knobs;
	struct bench_prices prices;
	uint64_t node_bytes;
	unsigned int cpus[1024];
	unsigned int nr_cpus;
};

struct bench_task {
	const struct bench *bench;
	uint64_t size;
	unsigned int cpus;
	unsigned int repeat;	/* 0: warm-up, whose result is not kept */
};

/* What a benchmark is run for. */
enum bench_sweep { BENCH_ONCE, BENCH_EACH_SIZE, BENCH_EACH_CPUS };

/**
 * struct bench - one of them
 * @name: as in --list and in the file
 * @what: for --list
 * @sweep: see above
 * @baseline: what Linux itself offers
 * @run: does it and adds to @result. Returns 0 or a negative errno; -ENOTSUP
 *	and -ENOMEM: not possible here, which is said, and the others go on
 */
struct bench {
	const char *name;
	const char *what;
	enum bench_sweep sweep;
	bool baseline;
	int (*run)(const struct bench_env *env, const struct bench_plan *plan,
		   const struct bench_task *task, json_t *result);
};

/* list.c */
extern const struct bench benches[];
extern const unsigned int nr_benches;
const struct bench *bench_find(const char *name);
/* Tasks of one repeat, in an order drawn from the seed; free() them. */
int bench_tasks(const struct bench_plan *plan, unsigned int repeat,
		struct bench_task **tasks, unsigned int *nr);
/* Seed of the shapes of a repeat: the same in all configurations. */
uint64_t bench_seed(const struct bench_plan *plan,
		    const struct bench_task *task);
extern const char *const bench_by[];
extern const unsigned int nr_bench_by;
extern const char *const bench_configs[];

/* env.c */
int bench_env_open(struct bench_env *env, const char *group);
void bench_env_close(struct bench_env *env);
void bench_pin(unsigned int cpu);
int bench_fifo(void);
void bench_unpin(const struct bench_env *env);
/* Floors of the clock and of a system call; the latter becomes a price. */
json_t *bench_noise(struct bench_env *env);
json_t *bench_prices_json(const struct bench_env *env);
/* Those of a file instead of those in force; says what is wrong with it. */
int bench_prices_read(struct bench_env *env, const char *path);
/* Those of bench_prices_json(). */
void bench_prices_from(struct bench_env *env, const json_t *prices);
/* Kernel memory of the cgroup (slab, per-CPU, page tables); or -1. */
int64_t bench_kernel_bytes(const struct bench_env *env);
/* kernel_bytes as what so many nodes take. */
int bench_put_nodes(const struct bench_env *env, json_t *result, uint64_t nodes);
bool bench_stat(const struct bench_env *env, struct shape_counts *c);
/* Counts, and Eq. 1 with the prices: predicted_ns, predicted_p99_ns. */
int bench_put_prediction(const struct bench_env *env, json_t *result,
			 const struct shape_counts *c, uint64_t calls);

/* report.c: parts of results. -ENOMEM, or 0. */
int bench_put(json_t *result, const char *key, uint64_t value);
int bench_put_counts(json_t *result, const char *key,
		     const struct shape_counts *c);
/* n, min, p25, median, p75, p99, max, mean; sorts @ns. */
json_t *bench_distribution(double *ns, uint64_t n);

/* shapes.c, parallel.c, service.c, baselines.c */
#define BENCH_RUN(name)							\
	int name(const struct bench_env *env, const struct bench_plan *plan, \
		 const struct bench_task *task, json_t *result)
BENCH_RUN(run_single_frame);
BENCH_RUN(run_many_frames);
BENCH_RUN(run_random_map);
BENCH_RUN(run_random_ranges);
BENCH_RUN(run_scattered);
BENCH_RUN(run_range);
BENCH_RUN(run_chain);
BENCH_RUN(run_leaf_map);
BENCH_RUN(run_leaf_unmap);
BENCH_RUN(run_independent);
BENCH_RUN(run_shared);
BENCH_RUN(run_service);
BENCH_RUN(run_munmap_memfd);
BENCH_RUN(run_free_memfd);
BENCH_RUN(run_punch_hole);
BENCH_RUN(run_madvise);
BENCH_RUN(run_kill);
BENCH_RUN(run_mrelease);
BENCH_RUN(run_zap);

/* store.c: see there. */
struct bench_store;
int bench_store_new(const char *path, json_t *head, struct bench_store **store);
int bench_store_resume(const char *path, struct bench_store **store);
int bench_store_start(struct bench_store *store);
bool bench_store_has(const struct bench_store *store,
		     const struct bench_task *task);
int bench_store_add(struct bench_store *store, bool baseline, json_t *result);
/* The whole object, borrowed; what is added to it before a result is kept. */
json_t *bench_store_all(const struct bench_store *store);
int bench_store_end(struct bench_store *store, bool complete);
void bench_store_free(struct bench_store *store);

/* table.c */
void bench_table(const json_t *all, FILE *f);

#endif /* BRUMM_BENCH_H */
