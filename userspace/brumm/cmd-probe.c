// SPDX-License-Identifier: GPL-2.0
/* brumm probe: where the time goes, measured in the kernel. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "probe/probe.h"

/* How often samples are fetched, and the command looked after. */
#define ROUND_MS	100
#define RING_MAX	(1u << 30)

/**
 * struct args - what is asked for
 * @o: for probe_open()
 * @group: name of the cgroup, or NULL
 * @seconds: how long; 0: until a signal, or the command ends
 * @command: to run meanwhile, or NULL
 * @json: print JSON
 * @no_cost: do not measure the probe's own cost
 * @samples: of JSON, or NULL
 */
struct args {
	struct probe_options o;
	const char *group;
	double seconds;
	char **command;
	bool json, no_cost;
	json_t *samples;
};

enum {
	OPT_SECONDS = 's', OPT_RAW = 'r', OPT_JSON = 'j', OPT_ATTACH = 'a',
	OPT_RING = 256, OPT_NO_COST,
};

static const struct argp_option options[] = {
	{ "seconds", OPT_SECONDS, "N", 0, "how long (until interrupted)", 1 },
	{ "raw", OPT_RAW, NULL, 0, "print each one, too", 1 },
	{ "ring", OPT_RING, "SIZE", 0, "with --raw: room for those not fetched yet, a power of two (16M)", 1 },
	{ "attach", OPT_ATTACH, "WAY", 0, "tp_btf, raw_tp or tracepoint (the first that works)", 1 },
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

static const char *rung(struct argp_state *state, const char *arg)
{
	const char *const *name = probe_rungs;

	while (*name && strcmp(*name, arg))
		name++;
	if (!*name)
		argp_error(state, "'%s' is not a way to attach", arg);
	return *name;
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
		a->seconds = seconds(state, arg);
		return 0;
	case OPT_RAW:
		a->o.samples = true;
		return 0;
	case OPT_RING:
		a->o.ring = ring_size(state, arg);
		return 0;
	case OPT_ATTACH:
		a->o.rung = rung(state, arg);
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
		if (a->command && a->seconds)
			argp_error(state, "a command or --seconds, not both");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[CGROUP] [-- COMMAND...]",
	.doc = "Measure, in the kernel, how long each sub-operation of the module "
	       "takes: everything, or what a cgroup and those below it pay for."
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

/* The time in between */

/* Its pid, or -1. */
static pid_t start(char **command)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	execvp(*command, command);
	cli_error("cannot run %s: %s", *command, strerror(errno));
	_exit(127);
}

/* As a shell says it; -1: it runs. */
static int ended(pid_t pid, int flags)
{
	int status;

	if (waitpid(pid, &status, flags) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int wait_a_round(struct args *a, struct probe *p)
{
	if (a->o.samples)
		return probe_samples(p, ROUND_MS, on_sample, a);
	poll(NULL, 0, ROUND_MS);
	return 0;
}

/* Until the end. *@code: the command's exit code. */
static int look_on(struct args *a, struct probe *p, int *code)
{
	uint64_t until = cli_now() + (uint64_t)(a->seconds * 1e9);
	pid_t pid = -1;
	int err = 0;

	if (a->command) {
		pid = start(a->command);
		if (pid < 0)
			return -errno;
	}
	while (!err && !cli_signal()) {
		if (pid > 0) {
			*code = ended(pid, WNOHANG);
			if (*code >= 0)
				break;
		} else if (a->seconds && cli_now() >= until) {
			break;
		}
		err = wait_a_round(a, p);
	}
	/* A signal to us alone: what we started does not outlive us. */
	if (pid > 0 && *code < 0) {
		kill(pid, SIGTERM);
		*code = ended(pid, 0);
	}
	probe_pause(p, true);
	if (!err && a->o.samples)
		err = probe_samples(p, 0, on_sample, a);
	return err;
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
		       const struct probe_cost *c, int code)
{
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

static int status_of(const struct args *a, const struct probe_result *r,
		     int code)
{
	/* Without a command, a signal is how it ends. */
	if (a->command && cli_signal())
		return 128 + cli_signal();
	if (code > 0)
		cli_error("the command ended with %d", code);
	if (!r->complete)
		cli_error("not complete: see lost, missed and orphaned above; with --raw a larger --ring may help");
	return code > 0 ? EXIT_ERROR : r->complete ? EXIT_FINE : EXIT_MISSED;
}

/* Why probe_open() failed. */
static int cannot(const struct args *a, int err, const char *why)
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

/* From the beginning to the figures; the exit code. */
static int run(struct args *a, struct probe *p)
{
	struct probe_cost cost;
	struct probe_result r;
	int code = -1, err = 0, ret;

	if (!a->no_cost) {
		err = probe_cost(p, &cost);
		if (!err)
			err = probe_reset(p);
	}
	if (!a->command)
		cli_error("measuring, attached by %s%s", probe_rung(p),
			  a->seconds ? "" : "; ends with ^C");
	if (!a->json && a->o.samples)
		puts("# end_ns op ns cgroup nodes pages tid err");
	if (!err)
		err = look_on(a, p, &code);
	if (!err)
		err = probe_read(p, &r);
	if (err) {
		cli_fail(err, "cannot measure");
		return EXIT_ERROR;
	}
	if (a->json) {
		ret = report_json(a, &r, a->no_cost ? NULL : &cost, code);
	} else {
		report(&r, a->no_cost ? NULL : &cost);
		ret = cli_flush();
	}
	return ret ? ret : status_of(a, &r, code);
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
	struct args a = { .o = PROBE_OPTIONS_INIT };
	struct probe *p;
	char *why = NULL;
	int err, ret;

	a.command = cut_command(&argc, argv);
	cli_parse(&argp, argc, argv, &a);
	cli_catch_signals();
	if (a.group) {
		a.o.group = cli_open_group(a.group);
		if (a.o.group < 0)
			return EXIT_ERROR;
	}
	if (a.json && a.o.samples)
		a.samples = json_array();
	err = probe_open(&a.o, &p, &why);
	if (err) {
		ret = cannot(&a, err, why);
	} else {
		ret = run(&a, p);
		probe_close(p);
	}
	free(why);
	json_decref(a.samples);
	if (a.o.group >= 0)
		close(a.o.group);
	return ret;
}
