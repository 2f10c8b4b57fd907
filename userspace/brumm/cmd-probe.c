// SPDX-License-Identifier: GPL-2.0
/* brumm probe: where the time goes, measured in the kernel. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd-probe.h"

#define RING_MAX	(1u << 30)

enum {
	OPT_SECONDS = 's', OPT_RAW = 'r', OPT_JSON = 'j', OPT_ATTACH = 'a',
	OPT_TEARDOWN = 't', OPT_RING = 256, OPT_NO_COST, OPT_HOOK,
};

static const struct argp_option options[] = {
	{ "seconds", OPT_SECONDS, "N", 0, "how long (until interrupted)", 1 },
	{ "teardown", OPT_TEARDOWN, NULL, 0, "the phases of exits instead, of all tasks or those in the cgroup", 1 },
	{ "raw", OPT_RAW, NULL, 0, "print each one, too", 1 },
	{ "ring", OPT_RING, "SIZE", 0, "with --raw: room for those not fetched yet, a power of two (16M)", 1 },
	{ "attach", OPT_ATTACH, "WAY", 0, "tp_btf, raw_tp or tracepoint; of --teardown fentry+tp_btf, fentry+raw_tp or kprobe+raw_tp (the first that works)", 1 },
	{ "hook", OPT_HOOK, "PHASE=FUNCTION", 0, "with --teardown: the function of this kernel that a phase is the time of", 1 },
	{ "no-cost", OPT_NO_COST, NULL, 0, "do not measure what the probe itself costs", 1 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 2 },
	{ 0 },
};

static uint32_t ring_size(struct argp_state *state, const char *arg)
{
	uint64_t v;

	if (brumm_parse_size(arg, &v) || v < 4096 || v > RING_MAX || v & (v - 1))
		argp_error(state, "'%s' is not a power of two from 4K to 1G", arg);
	return (uint32_t)v;
}

static const char *rung(struct argp_state *state, const struct args *a)
{
	const char *const *name = a->teardown ? exits_rungs : probe_rungs;

	while (*name && strcmp(*name, a->attach))
		name++;
	if (!*name)
		argp_error(state, "'%s' is not a way to attach", a->attach);
	return *name;
}

static void hook(struct argp_state *state, struct args *a, const char *arg)
{
	const char *is = strchr(arg, '=');
	int i = is ? exits_hook_by_name(arg, (size_t)(is - arg)) : -1;

	if (i < 0 || !is[1])
		argp_error(state, "'%s' is not PHASE=FUNCTION, such as zap=unmap_vmas", arg);
	a->x.function[i] = is + 1;
}

/* What stands or falls with other options. */
static void check(struct argp_state *state, struct args *a)
{
	unsigned int i;

	if (a->watch.command && a->watch.seconds)
		argp_error(state, "a command or --seconds, not both");
	for (i = 0; i < HOOKS_NR && !a->teardown; i++)
		if (a->x.function[i])
			argp_error(state, "--hook is for --teardown");
	if (!a->attach)
		return;
	a->o.rung = rung(state, a);
	a->x.rung = a->o.rung;
}

static double seconds(struct argp_state *state, const char *arg)
{
	char *end;
	double v = strtod(arg, &end);

	if (*end || end == arg || !(v > 0) || v > 1e9)
		argp_error(state, "'%s' is not a number of seconds", arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_SECONDS:
		a->watch.seconds = seconds(state, arg);
		return 0;
	case OPT_RAW:
		a->o.samples = true;
		return 0;
	case OPT_RING:
		a->o.ring = ring_size(state, arg);
		return 0;
	case OPT_ATTACH:
		a->attach = arg;
		return 0;
	case OPT_TEARDOWN:
		a->teardown = true;
		return 0;
	case OPT_HOOK:
		hook(state, a, arg);
		return 0;
	case OPT_NO_COST:
		a->no_cost = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->group)
			argp_error(state, "one cgroup only; a command comes after --");
		a->group = arg;
		return 0;
	case ARGP_KEY_END:
		check(state, a);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[CGROUP] [-- COMMAND...]",
	.doc = "Measure, in the kernel, how long each sub-operation of the module "
	       "takes: everything, or what a cgroup and those below it pay for. With "
	       "--teardown, how long each phase of the exit of their tasks takes, "
	       "without the module, too."
	       "\vAn unmap is lookup, zap, remove and a rest. Needs root. Exit code "
	       "2: some events were lost, or belong to nothing that was seen, so "
	       "the figures are not complete.",
};

/* Samples */

static int print_sample(const struct event_sample *s)
{
	char who[24] = "several";

	if (s->cgroup != EVENT_SEVERAL)
		snprintf(who, sizeof(who), "%llu", s->cgroup);
	printf("%llu %s %llu %s %llu %llu %u %d\n", s->end, probe_op_name(s->op),
	       s->ns, who, s->nodes, s->pages, s->tid, s->err);
	return ferror(stdout) ? -EIO : 0;
}

static int on_sample(void *arg, const struct event_sample *s)
{
	struct args *a = arg;

	if (!a->json)
		return print_sample(s);
	return json_array_append_new(a->samples,
		json_pack("{s:I, s:s, s:I, s:o, s:I, s:I, s:I, s:i}",
			  "end_ns", (json_int_t)s->end,
			  "op", probe_op_name(s->op),
			  "ns", (json_int_t)s->ns,
			  "cgroup", s->cgroup == EVENT_SEVERAL ? json_null() :
					json_integer((json_int_t)s->cgroup),
			  "nodes", (json_int_t)s->nodes,
			  "pages", (json_int_t)s->pages,
			  "tid", (json_int_t)s->tid,
			  "err", s->err)) ? -ENOMEM : 0;
}

/* Results */

static double net_of(const struct probe_result *r, const struct probe_cost *c,
		     unsigned int op)
{
	return c ? probe_net(r, c, op) : NAN;
}

static json_t *op_json(const struct probe_op *op, double net)
{
	json_t *j = summary_json(&op->time, "probe");

	if (j)
		json_object_update_new(j, json_pack(
			"{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			"net", isfinite(net) ? json_real(net) : json_null(),
			"sum", (json_int_t)op->sum,
			"in_unmap", (json_int_t)op->in_unmap,
			"in_unmap_n", (json_int_t)op->in_unmap_nr,
			"nodes", (json_int_t)op->nodes,
			"pages", (json_int_t)op->pages,
			"errors", (json_int_t)op->errors,
			"orphans", (json_int_t)op->orphans,
			"open", (json_int_t)op->open,
			"several", (json_int_t)op->several,
			"lost", (json_int_t)op->lost));
	return j;
}

static json_t *cost_json(const struct probe_cost *c)
{
	if (!c)
		return json_null();
	return json_pack("{s:o, s:f, s:f}", "inside",
			 summary_json(&c->inside, "probe"), "pair", c->pair,
			 "pair_error", c->pair_error);
}

static int report_json(const struct args *a, const struct probe_result *r,
		       const struct probe_cost *c)
{
	int code = a->watch.code;
	json_t *ops = json_object();
	unsigned int i;

	for (i = 0; i < EVENTS_NR; i++)
		json_object_set_new(ops, r->op[i].name, op_json(&r->op[i], net_of(r, c, i)));
	return cli_print_json(json_pack(
		"{s:s, s:s, s:s?, s:b, s:I, s:o, s:o, s:O?, s:o}",
		"schema", "brumm-probe/1", "attached", r->rung,
		"cgroup", a->group, "complete", r->complete,
		"missed", (json_int_t)r->missed, "ops", ops,
		"probe_ns", cost_json(c), "samples", a->samples,
		"exit", code < 0 ? json_null() : json_integer(code)));
}

static void print_op(const struct probe_op *op, double net)
{
	const struct summary *s = &op->time;
	const double v[] = { s->mean, net, s->min, s->p50, s->p99, s->max,
			     (double)op->sum };
	char t[16];
	size_t i;

	printf("%-8s %8zu", op->name, s->n);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		printf(" %9s", isfinite(v[i]) ?
		       brumm_format_time((uint64_t)(v[i] + 0.5), t, sizeof(t)) :
		       "-");
	printf(" %8" PRIu64 " %8" PRIu64 "\n", op->nodes, op->pages);
}

static void print_parts(const struct probe_result *r)
{
	double all = (double)r->op[EVENT_UNMAP].sum;

	if (!all)
		return;
	printf("unmap = lookup %.1f %% + zap %.1f %% + remove %.1f %% + rest %.1f %%\n",
	       100 * (double)r->op[EVENT_LOOKUP].in_unmap / all,
	       100 * (double)r->op[EVENT_ZAP].in_unmap / all,
	       100 * (double)r->op[EVENT_REMOVE].in_unmap / all,
	       100 * (double)r->op[EVENT_REST].sum / all);
}

static void report(const struct probe_result *r, const struct probe_cost *c)
{
	uint64_t lost = 0, orphans = 0, several = 0, open = 0;
	unsigned int i;

	printf("%-8s %8s %9s %9s %9s %9s %9s %9s %9s %8s %8s\n", "", "n",
	       "mean", "net", "min", "p50", "p99", "max", "sum", "nodes",
	       "pages");
	for (i = 0; i < EVENTS_NR; i++) {
		lost += r->op[i].lost;
		orphans += r->op[i].orphans;
		several += r->op[i].several;
		open += r->op[i].open;
		if (i != EVENT_EMPTY && r->op[i].time.n)
			print_op(&r->op[i], net_of(r, c, i));
	}
	print_parts(r);
	printf("attached by %s; missed %" PRIu64 ", orphaned %" PRIu64
	       ", of several sponsors %" PRIu64 ", not ended %" PRIu64
	       ", samples lost %" PRIu64 "\n",
	       r->rung, r->missed, orphans, several, open, lost);
	if (c)
		printf("net: without the probe, which is %.0f ns in each time; a pair of events costs the task %.0f ns (+/- %.0f)\n",
		       c->inside.p50, c->pair, c->pair_error);
}

int probe_status(const struct args *a, bool complete)
{
	int code = a->watch.code;

	/* Without a command, a signal is how it ends. */
	if (a->watch.command && cli_signal())
		return 128 + cli_signal();
	if (code > 0)
		cli_error("the command ended with %d", code);
	if (!complete)
		cli_error("not complete: see lost, missed and orphaned above; with --raw a larger --ring may help");
	return code > 0 ? EXIT_ERROR : complete ? EXIT_FINE : EXIT_MISSED;
}

int probe_cannot(const struct args *a, int err, const char *why)
{
	if (err == -ENOENT)
		cli_error("the module is not loaded; modprobe brumm");
	else if (err == -EPERM)
		cli_error("not permitted: run it as root (CAP_BPF and CAP_PERFMON)%s%s",
			  why ? "; " : "", why ? why : "");
	else if (err == -EOPNOTSUPP)
		cli_error("cannot attach here%s%s; see brumm info",
			  why ? ": " : "", why ? why : "");
	else
		cli_fail(err, "cannot attach%s", a->group ? " for the cgroup" : "");
	return err == -EOPNOTSUPP || err == -ENOENT ? EXIT_UNSUPPORTED :
						     EXIT_ERROR;
}

void probe_announce(const struct args *a, const char *way)
{
	if (!a->watch.command)
		cli_error("measuring, attached by %s%s", way,
			  a->watch.seconds ? "" : "; ends with ^C");
}

/**
 * struct fetch - for wait_a_round()
 * @a: what is asked for
 * @p: the probe
 */
struct fetch {
	struct args *a;
	struct probe *p;
};

static int fetch(void *arg, int ms)
{
	struct fetch *f = arg;

	return probe_samples(f->p, ms, on_sample, f->a);
}

/* Until the end. */
static int look_on(struct args *a, struct probe *p)
{
	struct fetch f = { a, p };
	int err;

	a->watch.round = a->o.samples ? fetch : NULL;
	a->watch.arg = &f;
	err = watch(&a->watch);
	probe_pause(p, true);
	if (!err && a->o.samples)
		err = fetch(&f, 0);
	return err;
}

/* From the beginning to the figures; the exit code. */
static int run(struct args *a, struct probe *p)
{
	struct probe_cost cost;
	struct probe_result r;
	int err = 0, ret;

	if (!a->no_cost) {
		err = probe_cost(p, &cost);
		if (!err)
			err = probe_reset(p);
	}
	probe_announce(a, probe_rung(p));
	if (!a->json && a->o.samples)
		puts("# end_ns op ns cgroup nodes pages tid err");
	if (!err)
		err = look_on(a, p);
	if (!err)
		err = probe_read(p, &r);
	if (err) {
		cli_fail(err, "cannot measure");
		return EXIT_ERROR;
	}
	if (a->json) {
		ret = report_json(a, &r, a->no_cost ? NULL : &cost);
	} else {
		report(&r, a->no_cost ? NULL : &cost);
		ret = cli_flush();
	}
	return ret ? ret : probe_status(a, r.complete);
}

static int probe_module(struct args *a)
{
	char *why = NULL;
	struct probe *p;
	int err, ret;

	err = probe_open(&a->o, &p, &why);
	if (err) {
		ret = probe_cannot(a, err, why);
	} else {
		ret = run(a, p);
		probe_close(p);
	}
	free(why);
	return ret;
}

/*
 * What stands behind --, or NULL: argp would move what stands before it there,
 * too.
 */
static char **cut_command(int *argc, char **argv)
{
	int i;

	for (i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		*argc = i;
		argv[i] = NULL;
		return argv[i + 1] ? &argv[i + 1] : NULL;
	}
	return NULL;
}

int cmd_probe(int argc, char **argv)
{
	struct args a = { .o = PROBE_OPTIONS_INIT, .x = EXITS_OPTIONS_INIT };
	int ret;

	a.watch.command = cut_command(&argc, argv);
	cli_parse(&argp, argc, argv, &a);
	cli_catch_signals();
	if (a.group) {
		a.o.group = cli_open_group(a.group);
		if (a.o.group < 0)
			return EXIT_ERROR;
	}
	if (a.json && a.o.samples)
		a.samples = json_array();
	ret = a.teardown ? probe_teardown(&a) : probe_module(&a);
	json_decref(a.samples);
	if (a.o.group >= 0)
		close(a.o.group);
	return ret;
}
