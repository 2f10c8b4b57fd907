// SPDX-License-Identifier: GPL-2.0
/* brumm bench: what taking memory back takes, here, and beside what Linux has. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli.h"
#include "machine.h"

struct args {
	struct bench_plan plan;
	const char *group;
	const char *output;
	const char *resume;
	const char *prices;
	bool json, list;
	bool planned;		/* an option said what to do */
};

enum {
	OPT_REPEAT = 'r', OPT_SIZE = 's', OPT_SEED = 'S', OPT_CPUS = 'c',
	OPT_JSON = 'j', OPT_OUTPUT = 'o', OPT_RESUME = 'R', OPT_LIST = 'l',
	OPT_BY = 'b', OPT_GROUP = 'g', OPT_RANGE = 256, OPT_UNTOUCHED, OPT_PRICES, OPT_FIFO,
};

static const struct argp_option options[] = {
	{ "list", OPT_LIST, NULL, 0, "say which benchmarks there are", 0 },
	{ "repeat", OPT_REPEAT, "N", 0, "times, after one more for warming up (5)", 1 },
	{ "size", OPT_SIZE, "N[,N...]", 0, "mappings or pages; K and M are powers of 1024 (4K)", 1 },
	{ "range", OPT_RANGE, "SIZE", 0, "bytes of the benchmark range (1G)", 1 },
	{ "cpus", OPT_CPUS, "N", 0, "most CPUs for independent and shared (all)", 1 },
	{ "seed", OPT_SEED, "N", 0, "of shapes and order (1)", 1 },
	{ "by", OPT_BY, "HOW", 0, "what takes shapes back: unmap, unmap-self, reclaim or close (unmap)", 1 },
	{ "untouched", OPT_UNTOUCHED, NULL, 0, "leave the pages without page-table entries", 1 },
	{ "fifo", OPT_FIFO, NULL, 0, "at a real-time priority: what others do on the CPU is not in the figures", 1 },
	{ "cgroup", OPT_GROUP, "CGROUP", 0, "run there; / is the root, where nobody is charged (one of its own)", 1 },
	{ "prices", OPT_PRICES, "FILE", 0, "predict by these, of brumm profile (by those in force)", 1 },
	{ "output", OPT_OUTPUT, "FILE", 0, "write the results there, as they come", 2 },
	{ "resume", OPT_RESUME, "FILE", 0, "go on with a run that was ended early", 2 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 2 },
	{ 0 },
};

/* What a plan may say, be it by options or by a file. */
#define MOST_REPEAT	1000000
#define MOST_SIZE	(1u << 26)
#define MOST_RANGE	(1ull << 42)
#define MOST_CPUS	1024

static uint64_t number(struct argp_state *state, const char *arg, uint64_t max)
{
	uint64_t v;

	if (brumm_parse_size(arg, &v) || !v || v > max)
		argp_error(state, "'%s' is not a number from 1 to %llu", arg,
			   (unsigned long long)max);
	return v;
}

static void sizes(struct argp_state *state, char *arg, struct bench_plan *p)
{
	char *word, *save;

	p->nr_sizes = 0;
	for (word = strtok_r(arg, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		if (p->nr_sizes == BENCH_SIZES)
			argp_error(state, "more than %u sizes", BENCH_SIZES);
		p->sizes[p->nr_sizes++] = number(state, word, MOST_SIZE);
	}
	if (!p->nr_sizes)
		argp_error(state, "no size");
}

/* False: @name takes nothing back. */
static bool find_by(const char *name, enum shape_by *by)
{
	unsigned int i;

	for (i = 0; i < nr_bench_by; i++) {
		if (i == SHAPE_BY_MUNMAP || strcmp(name, bench_by[i]))
			continue;
		*by = i;
		return true;
	}
	return false;
}

static enum shape_by by(struct argp_state *state, const char *arg)
{
	enum shape_by by = SHAPE_BY_UNMAP;

	if (!find_by(arg, &by))
		argp_error(state, "'%s' takes nothing back; use unmap, unmap-self, reclaim or close",
			   arg);
	return by;
}

static int add_name(struct bench_plan *p, const char *name)
{
	const char **names = reallocarray(p->names, p->nr_names + 1,
					  sizeof(*names));

	if (!names)
		return -ENOMEM;
	p->names = names;
	names[p->nr_names++] = name;
	return 0;
}

static error_t parse_plan(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	struct bench_plan *p = &a->plan;

	switch (key) {
	case OPT_REPEAT:
		p->repeat = (unsigned int)number(state, arg, MOST_REPEAT);
		break;
	case OPT_SIZE:
		sizes(state, arg, p);
		break;
	case OPT_RANGE:
		p->range = number(state, arg, MOST_RANGE);
		if (p->range % BENCH_PAGE)
			argp_error(state, "'%s' is not a size in whole pages", arg);
		p->range /= BENCH_PAGE;
		break;
	case OPT_CPUS:
		p->cpus = (unsigned int)number(state, arg, MOST_CPUS);
		break;
	case OPT_SEED:
		p->seed = number(state, arg, UINT32_MAX);
		break;
	case OPT_BY:
		p->by = by(state, arg);
		break;
	case OPT_PRICES:
		a->prices = arg;
		break;
	case OPT_UNTOUCHED:
		p->touch = false;
		break;
	case OPT_FIFO:
		p->fifo = true;
		break;
	case ARGP_KEY_ARG:
		if (!bench_find(arg))
			argp_error(state, "no benchmark '%s'; --list tells which there are",
				   arg);
		if (add_name(p, arg))
			argp_failure(state, EXIT_ERROR, ENOMEM, "benchmarks");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	a->planned = true;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_LIST:
		a->list = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_OUTPUT:
		a->output = arg;
		return 0;
	case OPT_RESUME:
		a->resume = arg;
		return 0;
	case OPT_GROUP:
		a->group = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->resume && (a->planned || a->output))
			argp_error(state, "--resume does what the file says; name only --cgroup and --json with it");
		return 0;
	}
	return parse_plan(key, arg, state);
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[BENCHMARK...]",
	.doc = "Measure how long it takes to take memory back: of many shapes, beside "
	       "the prediction of the prices in force, and beside what Linux offers for "
	       "the job (munmap, hole punching, killing, process_mrelease, madvise)."
	       "\vRuns in a cgroup of its own with a budget, unless --cgroup says "
	       "otherwise. Told to end (SIGINT, SIGTERM), it keeps what it has; after "
	       "kill -9 at most one result is missing; --resume goes on.",
};

static int print_list(void)
{
	unsigned int i;

	for (i = 0; i < nr_benches; i++)
		printf("%-17s%s%s\n", benches[i].name, benches[i].what,
		       benches[i].baseline ? " (base line)" : "");
	return cli_flush();
}

/* The plan as --resume needs it, and back. */
static json_t *plan_json(const struct bench_plan *p)
{
	json_t *names = json_array(), *list = json_array();
	unsigned int i;

	for (i = 0; i < p->nr_names; i++)
		json_array_append_new(names, json_string(p->names[i]));
	for (i = 0; i < p->nr_sizes; i++)
		json_array_append_new(list, cli_json_time(p->sizes[i]));
	return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:s, s:b, s:b}",
			 "benchmarks", names, "sizes", list,
			 "range_pages", cli_json_time(p->range),
			 "cpus", (int)p->cpus, "repeat", (int)p->repeat,
			 "seed", cli_json_time(p->seed),
			 "by", bench_by[p->by], "touch", (int)p->touch,
			 "fifo", (int)p->fifo);
}

static int plan_lists(struct bench_plan *p, const json_t *names,
		      const json_t *list)
{
	const json_t *j;
	size_t i;

	p->nr_names = p->nr_sizes = 0;
	json_array_foreach(names, i, j)
		if (!json_is_string(j) || !bench_find(json_string_value(j)) ||
		    add_name(p, json_string_value(j)))
			return -EINVAL;
	json_array_foreach(list, i, j) {
		if (json_integer_value(j) < 1 ||
		    json_integer_value(j) > MOST_SIZE || i == BENCH_SIZES)
			return -EINVAL;
		p->sizes[p->nr_sizes++] = (uint64_t)json_integer_value(j);
	}
	return p->nr_sizes ? 0 : -EINVAL;
}

/* Strings stay those of @all. */
static int plan_from(struct bench_plan *p, json_t *all)
{
	json_t *names, *list;
	json_int_t range, seed;
	const char *how;
	int cpus, repeat, touch, fifo = 0;

	if (json_unpack(json_object_get(all, "plan"),
			"{s:o, s:o, s:I, s:i, s:i, s:I, s:s, s:b, s?b}",
			"benchmarks", &names, "sizes", &list, "range_pages",
			&range, "cpus", &cpus, "repeat", &repeat, "seed", &seed,
			"by", &how, "touch", &touch, "fifo", &fifo) ||
	    range < 1 || range > (json_int_t)(MOST_RANGE / BENCH_PAGE) ||
	    cpus < 1 || repeat < 1 || repeat > MOST_REPEAT ||
	    !find_by(how, &p->by))
		return -EINVAL;
	p->range = (uint64_t)range;
	p->cpus = (unsigned int)cpus;
	p->repeat = (unsigned int)repeat;
	p->seed = (uint64_t)seed;
	p->touch = touch;
	p->fifo = fifo;
	return plan_lists(p, names, list);
}

static json_t *make_head(const struct bench_plan *p, struct bench_env *env)
{
	json_t *noise = bench_noise(env);

	return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:[]}",
			 "schema", "brumm-bench/1",
			 "machine", machine_describe(),
			 "config", bench_configs[env->config],
			 "cgroup", env->name,
			 "prices", bench_prices_json(env),
			 "noise", noise, "plan", plan_json(p), "left_out");
}

static json_t *make_result(const struct bench_plan *p,
			   const struct bench_task *t)
{
	return json_pack("{s:s, s:o, s:i, s:i, s:o, s:b}",
			 "bench", t->bench->name, "size", cli_json_time(t->size),
			 "cpus", (int)t->cpus, "repeat", (int)t->repeat,
			 "seed", cli_json_time(bench_seed(p, t)),
			 "touch", (int)p->touch);
}

static void progress(const struct bench_plan *p, const struct bench_task *t,
		     unsigned int done, unsigned int nr)
{
	char round[32] = "warming up";

	if (!cli_fancy(stderr))
		return;
	if (t && t->repeat)
		snprintf(round, sizeof(round), "round %u of %u", t->repeat,
			 p->repeat);
	if (t)
		fprintf(stderr, "\r\033[K%s, %u of %u: %s %llu", round, done + 1,
			nr, t->bench->name, (unsigned long long)t->size);
	else
		fputs("\r\033[K", stderr);
}

/* Not possible here is no reason to give up the others; said once for each. */
static bool tolerable(struct bench_store *store, const struct bench_task *t,
		      int err)
{
	json_t *all = bench_store_all(store), *list, *what;
	size_t i;

	if (err != -EOPNOTSUPP && err != -ENOMEM)
		return false;
	list = json_object_get(all, "left_out");
	json_array_foreach(list, i, what)
		if (!strcmp(json_string_value(json_object_get(what, "bench")) ?: "",
			    t->bench->name))
			return true;
	progress(NULL, NULL, 0, 0);
	cli_fail(err, "%s of %llu is left out", t->bench->name,
		 (unsigned long long)t->size);
	json_array_append_new(list, json_pack("{s:s, s:o, s:s}",
			      "bench", t->bench->name,
			      "size", cli_json_time(t->size),
			      "why", brumm_strerror(err)));
	return true;
}

static int run_task(struct bench_store *store, const struct bench_env *env,
		    const struct bench_plan *p, const struct bench_task *t)
{
	json_t *result = make_result(p, t);
	int err = result ? t->bench->run(env, p, t, result) : -ENOMEM;

	if (err || !t->repeat) {
		json_decref(result);
		if (!err || tolerable(store, t, err))
			return 0;
		if (!cli_signal()) {
			progress(NULL, NULL, 0, 0);
			cli_fail(err, "%s of %llu", t->bench->name,
				 (unsigned long long)t->size);
		}
		return err;
	}
	err = bench_store_add(store, t->bench->baseline, result);
	if (err)
		cli_fail(err, "cannot keep a result");
	return err;
}

static int run_round(struct bench_store *store, const struct bench_env *env,
		     const struct bench_plan *p, unsigned int repeat)
{
	struct bench_task *tasks;
	unsigned int i, nr;
	int err = bench_tasks(p, repeat, &tasks, &nr);

	if (err)
		return err;
	for (i = 0; i < nr && !err; i++) {
		if (cli_signal())
			err = -EINTR;
		else if (!bench_store_has(store, &tasks[i])) {
			progress(p, &tasks[i], i, nr);
			err = run_task(store, env, p, &tasks[i]);
		}
	}
	free(tasks);
	return err;
}

/* Is there something left to do in round @repeat? */
static bool missing(struct bench_store *store, const struct bench_plan *p,
		    unsigned int repeat)
{
	struct bench_task *tasks;
	unsigned int i, nr;
	bool some = false;

	if (bench_tasks(p, repeat, &tasks, &nr))
		return true;
	for (i = 0; i < nr && !some; i++)
		some = !bench_store_has(store, &tasks[i]);
	free(tasks);
	return some;
}

static int run_all(struct bench_store *store, const struct bench_env *env,
		   const struct bench_plan *p)
{
	unsigned int repeat;
	bool warm = false;
	int err = 0;

	for (repeat = 1; repeat <= p->repeat && !err; repeat++) {
		if (!missing(store, p, repeat))
			continue;
		if (!warm)
			err = run_round(store, env, p, 0);
		warm = true;
		if (!err)
			err = run_round(store, env, p, repeat);
	}
	progress(NULL, NULL, 0, 0);
	return err;
}

/* Figures of two machines or configurations do not belong into one table. */
static int check_resumed(const json_t *all, const struct bench_env *env)
{
	const char *config = json_string_value(json_object_get(all, "config"));
	json_t *now = machine_describe(), *differ;
	int err = 0;

	if (!config || strcmp(config, bench_configs[env->config])) {
		cli_error("the file was measured with accounting %s, and here it is %s; start anew with --output",
			  config ?: "unknown", bench_configs[env->config]);
		json_decref(now);
		return -EINVAL;
	}
	differ = machine_differences(json_object_get(all, "machine"), now);
	json_decref(now);
	if (json_array_size(differ)) {
		cli_error("the file was measured on another machine (the %s differs); start anew with --output",
			  json_string_value(json_array_get(differ, 0)));
		err = -EINVAL;
	}
	json_decref(differ);
	return err;
}

static int check_cpus(const struct bench_plan *p, const struct bench_env *env)
{
	if (p->cpus <= env->nr_cpus)
		return 0;
	cli_error("%u CPUs are more than the %u that this program may use",
		  p->cpus, env->nr_cpus);
	return -EINVAL;
}

static int start(const struct args *a, struct bench_plan *p,
		 struct bench_env *env, struct bench_store **store)
{
	int err;

	if (!p->cpus)
		p->cpus = env->nr_cpus;
	err = check_cpus(p, env);
	if (err)
		return err;
	err = a->prices ? bench_prices_read(env, a->prices) : 0;
	if (err)
		return err;
	err = bench_store_new(a->output, make_head(p, env), store);
	if (!err)
		err = bench_store_start(*store);
	if (err == -EEXIST)
		cli_error("%s.partial is what a run left that was killed; go on with it by --resume %s, or remove it",
			  a->output, a->output);
	else if (err)
		cli_fail(err, "cannot write %s", a->output ?: "the results");
	return err;
}

static int go_on(const struct args *a, struct bench_plan *p,
		 struct bench_env *env, struct bench_store **store)
{
	int err = bench_store_resume(a->resume, store);
	json_t *all;

	if (err == -EINVAL)
		cli_error("%s: not a file of brumm bench", a->resume);
	else if (err == -ENOENT)
		cli_error("%s: there is no such file; start anew with --output",
			  a->resume);
	else if (err)
		cli_fail(err, "%s", a->resume);
	if (err)
		return err;
	all = bench_store_all(*store);
	err = plan_from(p, all);
	if (err)
		cli_error("%s: does not say what was to be done", a->resume);
	if (!err)
		err = check_resumed(all, env);
	if (!err)
		err = check_cpus(p, env);
	/* All of a file is predicted by the same prices. */
	bench_prices_from(env, json_object_get(all, "prices"));
	if (err)
		return err;
	err = bench_store_start(*store);
	if (err)
		cli_fail(err, "cannot write %s", a->resume);
	return err;
}

static int finish(const struct args *a, struct bench_store *store, int err)
{
	int ret = EXIT_FINE, end = bench_store_end(store, !err);

	if (end)
		cli_fail(end, "cannot write the results");
	if (a->json) {
		ret = cli_print_json(json_incref(bench_store_all(store)));
	} else {
		bench_table(bench_store_all(store), stdout);
		ret = cli_flush();
	}
	if (cli_signal()) {
		if (a->output || a->resume)
			cli_error("ended early; go on with --resume %s",
				  a->output ?: a->resume);
		return 128 + cli_signal();
	}
	return err || end ? EXIT_ERROR : ret;
}

static int failed(int err)
{
	return err == -ENOENT && access(BRUMM_DEVICE, F_OK) ?
	       EXIT_UNSUPPORTED : EXIT_ERROR;
}

static int run(const struct args *a, struct bench_plan *p)
{
	struct bench_store *store = NULL;
	struct bench_env env;
	int err = bench_env_open(&env, a->group), ret;

	if (err) {
		bench_env_close(&env);
		return failed(err);
	}
	err = a->resume ? go_on(a, p, &env, &store) :
			  start(a, p, &env, &store);
	if (!err && p->fifo) {
		err = bench_fifo();
		if (err)
			cli_fail(err, "no real-time priority; run as root, or without --fifo");
	}
	if (err) {
		ret = EXIT_ERROR;
	} else {
		err = run_all(store, &env, p);
		ret = finish(a, store, err);
	}
	bench_store_free(store);
	bench_env_close(&env);
	return ret;
}

/*
 * Where a mapping begins decides how many page tables it has, which is 1 % of
 * an munmap: run with the same addresses each time.
 */
static void fix_addresses(int argc, char **argv)
{
	int now = personality(0xffffffff);
	char **again = calloc((size_t)argc + 2, sizeof(*again));

	if (again && now >= 0 && !(now & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0) {
		again[0] = "brumm";
		memcpy(again + 1, argv, (size_t)argc * sizeof(*again));
		again[1] = "bench";
		execv("/proc/self/exe", again);
	}
	/* Then they differ. */
	free(again);
}

int cmd_bench(int argc, char **argv)
{
	struct args a = {
		.plan = {
			.sizes = { 4096 }, .nr_sizes = 1,
			.range = (1u << 30) / BENCH_PAGE,
			.repeat = 5, .seed = 1, .by = SHAPE_BY_UNMAP,
			.touch = true,
		},
	};
	int ret;

	fix_addresses(argc, argv);
	cli_parse(&argp, argc, argv, &a);
	if (a.list)
		return print_list();
	cli_catch_signals();
	ret = run(&a, &a.plan);
	free(a.plan.names);
	return ret;
}
