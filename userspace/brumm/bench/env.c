// SPDX-License-Identifier: GPL-2.0
/* Where the benchmarks run: cgroup, prices, CPUs, noise floors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../profile/prices.h"
#include "bench.h"

#define OWN_GROUP	"brumm-bench"
/* What is behind the dash is how many nodes a slab has. */
#define SLAB_SIZE	"/sys/kernel/slab/brumm_nodes-*/object_size"
#define NOISE_ROUNDS	2000u
/* Enough for all of it; what it is for is that the budget is looked at. */
#define BUDGET_NS	(1000 * 1000000000ull)

static FILE *open_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* Somebody else's run in there would be in our counts. */
static bool populated(int group)
{
	FILE *f = open_at(group, "cgroup.procs");
	bool some = f && fgetc(f) != EOF;

	if (f)
		fclose(f);
	return some;
}

static int open_own_group(struct bench_env *env)
{
	int err = brumm_group_create(OWN_GROUP);

	if (err) {
		cli_fail(err, "cannot make the cgroup %s; going on in that of this program (--cgroup names another)",
			 OWN_GROUP);
		return 0;
	}
	env->group = brumm_group_open(OWN_GROUP);
	if (env->group < 0)
		return env->group;
	if (populated(env->group)) {
		cli_error("another run is going on in the cgroup %s; wait for it, or name another one by --cgroup",
			  OWN_GROUP);
		return -EBUSY;
	}
	env->made = true;
	/* Fails without knobs; then there is no budget to look at. */
	brumm_group_set_max(env->group, BUDGET_NS);
	return 0;
}

static int enter(struct bench_env *env, const char *group)
{
	int err;

	if (group)
		env->group = cli_open_group(group);
	else if ((err = open_own_group(env)))
		return err;
	if (group && env->group < 0)
		return -ENOENT;
	if (env->group < 0) {
		env->group = env->home < 0 ? -1 : dup(env->home);
		return 0;
	}
	err = cli_enter_group(env->group);
	if (err)
		cli_fail(err, "cannot enter the cgroup");
	return err;
}

static int look_at_module(struct bench_env *env)
{
	struct brumm_info info;
	int fd = brumm_open(0), err;

	if (fd < 0) {
		if (fd == -ENOENT)
			cli_error("there is no " BRUMM_DEVICE ": the module is not loaded; modprobe brumm");
		else
			cli_fail(fd, BRUMM_DEVICE);
		return fd;
	}
	err = brumm_info(fd, &info);
	close(fd);
	if (err) {
		cli_fail(err, BRUMM_DEVICE " does not answer");
		return err;
	}
	if (info.cgroup)
		env->config = BENCH_USED;
	else if (info.features & BRUMM_FEATURE_CGROUP)
		env->config = BENCH_AVAILABLE;
	else
		env->config = BENCH_DISABLED;
	return 0;
}

static int take_price(const char *kind, uint64_t ns, void *arg)
{
	struct bench_prices *p = arg;

	p->known = true;
	if (!strcmp(kind, "lookup"))
		p->lookup = ns;
	else if (!strcmp(kind, "map"))
		p->map = ns;
	else if (!strcmp(kind, "pt"))
		p->pt = ns;
	else if (!strcmp(kind, "deep"))
		p->deep = ns;
	return 0;
}

static void look_at_cpus(struct bench_env *env)
{
	cpu_set_t set;
	unsigned int i;

	if (!sched_getaffinity(0, sizeof(set), &set))
		for (i = 0; i < CPU_SETSIZE &&
		     env->nr_cpus < ARRAY_SIZE(env->cpus); i++)
			if (CPU_ISSET(i, &set))
				env->cpus[env->nr_cpus++] = i;
	if (!env->nr_cpus)
		env->nr_cpus = 1;
	bench_pin(env->cpus[0]);
}

static uint64_t slab_share(const char *path)
{
	unsigned long bytes, nodes = strtoul(strrchr(path, '-') + 1, NULL, 10);
	FILE *f = nodes ? fopen(path, "re") : NULL;

	if (!f || fscanf(f, "%lu", &bytes) != 1)
		bytes = 0;
	if (f)
		fclose(f);
	return nodes ? bytes / nodes : 0;
}

/* A node's share of its slab. */
static uint64_t node_bytes(void)
{
	uint64_t bytes = 0;
	glob_t found;

	if (glob(SLAB_SIZE, 0, NULL, &found))
		return 0;
	if (found.gl_pathc)
		bytes = slab_share(found.gl_pathv[0]);
	globfree(&found);
	return bytes;
}

int bench_env_open(struct bench_env *env, const char *group)
{
	struct shape_counts c;
	int err;

	memset(env, 0, sizeof(*env));
	env->group = -1;
	env->home = brumm_group_open_pid(0);
	err = enter(env, group);
	if (!err)
		err = look_at_module(env);
	if (err)
		return err;
	if (env->group >= 0) {
		brumm_group_id(env->group, &env->id);
		brumm_group_name(env->group, env->name, sizeof(env->name));
		brumm_group_price(env->group, take_price, &env->prices);
		env->knobs = bench_stat(env, &c);
	}
	env->node_bytes = node_bytes();
	look_at_cpus(env);
	return 0;
}

void bench_env_close(struct bench_env *env)
{
	if (env->home >= 0) {
		cli_enter_group(env->home);
		close(env->home);
	}
	if (env->group >= 0)
		close(env->group);
	if (env->made)
		brumm_group_remove(OWN_GROUP);
}

void bench_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Programs that are started, and children, are as all others again. */
int bench_fifo(void)
{
	struct sched_param p = { .sched_priority = 1 };

	return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p) ?
	       -errno : 0;
}

/* For what the scheduler may place: another program that takes part. */
void bench_unpin(const struct bench_env *env)
{
	cpu_set_t set;
	unsigned int i;

	CPU_ZERO(&set);
	for (i = 0; i < env->nr_cpus; i++)
		CPU_SET(env->cpus[i], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Time from one read of the clock to the next, with an ioctl between or not. */
static json_t *floor_of(int window, double *ns)
{
	struct brumm_info info;
	unsigned int i;
	uint64_t start;

	for (i = 0; i < NOISE_ROUNDS; i++) {
		start = cli_now();
		if (window >= 0 && brumm_info(window, &info))
			return NULL;
		ns[i] = (double)(cli_now() - start);
	}
	return bench_distribution(ns, NOISE_ROUNDS);
}

json_t *bench_noise(struct bench_env *env)
{
	double *ns = calloc(NOISE_ROUNDS, sizeof(*ns));
	int window = brumm_open(0);
	json_t *clock, *ioctl = NULL;

	if (!ns || window < 0) {
		free(ns);
		return NULL;
	}
	clock = floor_of(-1, ns);
	ioctl = floor_of(window, ns);
	close(window);
	free(ns);
	if (!env->prices.read)
		env->prices.syscall = (uint64_t)json_number_value(
					json_object_get(ioctl, "median"));
	return json_pack("{s:o, s:o}", "clock_ns", clock, "ioctl_ns", ioctl);
}

static int take_terms(struct bench_prices *p, const json_t *doc)
{
	const json_t *terms = json_object_get(doc, "terms"), *p99;
	double ns[FIT_TERMS];
	int t, err = prices_get(doc, PRICES_USUAL, ns);

	if (err)
		return err;
	p->known = true;
	p->syscall = (uint64_t)ns[FIT_SYSCALL];
	p->lookup = (uint64_t)ns[FIT_LOOKUP];
	p->map = (uint64_t)ns[FIT_MAP];
	p->pt = (uint64_t)ns[FIT_PT];
	p->deep = (uint64_t)ns[FIT_DEEP];
	p->tail = true;
	for (t = 0; t < FIT_TERMS; t++) {
		p99 = json_object_get(json_object_get(terms, fit_names[t]),
				      "p99");
		p->tail &= json_is_number(p99);
		p->p99[t] = json_number_value(p99);
	}
	return 0;
}

int bench_prices_read(struct bench_env *env, const char *path)
{
	json_t *doc;
	int err = prices_read(path, &doc);

	if (!err) {
		err = take_terms(&env->prices, doc);
		json_decref(doc);
	}
	if (err == -EBADMSG)
		cli_error("%s: not a prices file; brumm profile makes one", path);
	else if (err)
		cli_fail(err, "%s", path);
	env->prices.read = !err;
	return err;
}

json_t *bench_prices_json(const struct bench_env *env)
{
	const struct bench_prices *p = &env->prices;

	if (!p->known)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}",
			 "lookup", cli_json_time(p->lookup),
			 "map", cli_json_time(p->map),
			 "pt", cli_json_time(p->pt),
			 "deep", cli_json_time(p->deep),
			 "syscall", cli_json_time(p->syscall));
}

/*
 * memory.stat is behind by what CPUs have not handed on yet. A read of cpu.stat
 * hands it on, where the controllers share one tree of statistics (6.1 and 6.12,
 * not 7.3). What a CPU keeps in stock, up to a page, it does not tell.
 */
static void flush_stat(const struct bench_env *env)
{
	char text[4096];
	FILE *f = open_at(env->group, "cpu.stat");

	while (f && fgets(text, sizeof(text), f))
		;
	if (f)
		fclose(f);
}

int64_t bench_kernel_bytes(const struct bench_env *env)
{
	unsigned long long value;
	int64_t sum = -1;
	char key[64];
	FILE *f;

	/* The root's would be that of the whole machine. */
	if (env->group < 0 || !strcmp(env->name, "/"))
		return -1;
	flush_stat(env);
	f = open_at(env->group, "memory.stat");
	while (f && fscanf(f, "%63s %llu", key, &value) == 2)
		if (!strcmp(key, "slab") || !strcmp(key, "percpu") ||
		    !strcmp(key, "pagetables"))
			sum = (sum < 0 ? 0 : sum) + (int64_t)value;
	if (f)
		fclose(f);
	return sum;
}

int bench_put_nodes(const struct bench_env *env, json_t *result, uint64_t nodes)
{
	bool known = env->node_bytes;

	return json_object_set_new(result, "kernel_bytes", known ?
			json_integer((json_int_t)(nodes * env->node_bytes)) :
			json_null()) ||
	       json_object_set_new(result, "kernel_by", known ?
			json_string("nodes") : json_null()) ? -ENOMEM : 0;
}

static int take_count(const char *key, uint64_t value, void *arg)
{
	struct shape_counts *c = arg;

	if (!strcmp(key, "lookup_count"))
		c->lookup = value;
	else if (!strcmp(key, "map_count"))
		c->map = value;
	else if (!strcmp(key, "pt_count"))
		c->pt = value;
	else if (!strcmp(key, "deep_count"))
		c->deep = value;
	return 0;
}

bool bench_stat(const struct bench_env *env, struct shape_counts *c)
{
	*c = (struct shape_counts){ 0 };
	return env->group >= 0 && !brumm_group_stat(env->group, take_count, c);
}

static uint64_t predict(const struct bench_prices *p,
			const struct shape_counts *c, uint64_t calls)
{
	return calls * p->syscall + c->lookup * p->lookup + c->map * p->map +
	       c->pt * p->pt + c->deep * p->deep;
}

static double predict_tail(const struct bench_prices *p,
			   const struct shape_counts *c, uint64_t calls)
{
	return (double)calls * p->p99[FIT_SYSCALL] +
	       (double)c->lookup * p->p99[FIT_LOOKUP] +
	       (double)c->map * p->p99[FIT_MAP] +
	       (double)c->pt * p->p99[FIT_PT] +
	       (double)c->deep * p->p99[FIT_DEEP];
}

int bench_put_prediction(const struct bench_env *env, json_t *r,
			 const struct shape_counts *c, uint64_t calls)
{
	const struct bench_prices *p = &env->prices;
	json_t *ns = p->known ? cli_json_time(predict(p, c, calls)) :
				json_null();

	if (bench_put_counts(r, "counts", c) ||
	    json_object_set_new(r, "predicted_ns", ns))
		return -ENOMEM;
	if (!p->tail)
		return 0;
	return bench_put(r, "predicted_p99_ns",
			 (uint64_t)predict_tail(p, c, calls));
}

void bench_prices_from(struct bench_env *env, const json_t *prices)
{
	struct bench_prices *p = &env->prices;

	p->known = json_is_object(prices);
	p->lookup = (uint64_t)json_integer_value(json_object_get(prices, "lookup"));
	p->map = (uint64_t)json_integer_value(json_object_get(prices, "map"));
	p->pt = (uint64_t)json_integer_value(json_object_get(prices, "pt"));
	p->deep = (uint64_t)json_integer_value(json_object_get(prices, "deep"));
	p->syscall = (uint64_t)json_integer_value(json_object_get(prices,
								  "syscall"));
}
