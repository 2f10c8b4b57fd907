// SPDX-License-Identifier: GPL-2.0
/* brumm reap: end a group of processes, and be told when it is over. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exits/exits.h"
#include "teardown/teardown.h"

/* How long what comes after the last stage is waited for, ns. */
#define SETTLE	2000000000u

struct args {
	struct teardown_opts opts;
	const char *what;
	bool dry_run, probes, restore;
};

/**
 * struct measured - what the probes said
 * @x: attached, or NULL
 * @r: valid without @why_not
 * @why_not: why there is nothing, to be freed; NULL: there is
 */
struct measured {
	struct exits *x;
	struct exits_result r;
	char *why_not;
};

enum { OPT_KEEP = 'k', OPT_DRY = 'n', OPT_JSON = 'j', OPT_PROBES = 'p',
       OPT_RESTORE = 'r' };

static const struct argp_option options[] = {
	{ "keep", OPT_KEEP, NULL, 0, "leave the cgroups, as they were", 0 },
	{ "dry-run", OPT_DRY, NULL, 0, "say what would be done, and change nothing", 0 },
	{ "probes", OPT_PROBES, NULL, 0, "measure in the kernel where the time of the exits goes", 0 },
	{ "restore", OPT_RESTORE, NULL, 0, "only put back what was changed by those who were killed, here or everywhere", 0 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 0 },
	{ 0 },
};

static const struct argp_child children[] = { { &teardown_argp, 0, NULL, 0 }, { 0 } };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->opts;
		return 0;
	case OPT_KEEP:
		a->opts.keep = true;
		return 0;
	case OPT_DRY:
		a->dry_run = true;
		return 0;
	case OPT_PROBES:
		a->probes = true;
		return 0;
	case OPT_RESTORE:
		a->restore = true;
		return 0;
	case OPT_JSON:
		a->opts.json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->what)
			argp_error(state, "one cgroup or process only");
		a->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->what && !a->restore)
			argp_error(state, "which cgroup, or which PID namespace's init?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP|PID\n--restore [CGROUP|PID]",
	.doc = "Kill all processes of a cgroup and of those below it, or of the PID "
	       "namespace whose init PID is; take back what they sponsor, and remove "
	       "the cgroups. Tells how long after the kill each stage was over."
	       "\vWith --pace or --slo the cgroup gets the least CPU weight, "
	       "may not fork, and is killed in steps. When that is interrupted, the rest "
	       "runs on as before. If even SIGKILL does it, the next brumm reap, or "
	       "--restore, puts back what was changed. CGROUP can be /123 if it is "
	       "called like a number.",
};

static int plan(const struct teardown *t)
{
	if (t->opts->json)
		return cli_print_json(teardown_plan_json(t));
	teardown_print_plan(t, stdout);
	return cli_flush();
}

/* Of whom notes are, or may be. */
static int open_restored(const char *what, struct target *t)
{
	if (target_is_pid(what))
		return target_open(what, t);
	*t = (struct target){ .group = cli_open_group(what), .init_fd = -1 };
	return t->group < 0 ? EXIT_ERROR : EXIT_FINE;
}

static int print_restored(json_t *done, bool json)
{
	const char *name, *outcome;
	int status = EXIT_FINE;
	json_t *j;
	size_t i;

	json_array_foreach(done, i, j) {
		if (json_unpack(j, "{s:s, s:s}", "name", &name, "outcome", &outcome))
			continue;
		if (!strcmp(outcome, "failed"))
			status = EXIT_ERROR;
		if (!json)
			printf("%s: %s\n", name, outcome);
	}
	if (json)
		return cli_print_json(done) ?: status;
	if (!json_array_size(done))
		puts("nothing to put back");
	json_decref(done);
	return cli_flush() ?: status;
}

static int restore(const struct args *a)
{
	int status = EXIT_FINE, err;
	json_t *done = json_array();
	struct target t;

	if (a->what)
		status = open_restored(a->what, &t);
	if (!status) {
		err = keep_restore_left(a->what ? &t : NULL, done);
		if (a->what)
			target_close(&t);
		if (!err)
			return print_restored(done, a->opts.json);
		cli_fail(err, "cannot read the notes");
		status = EXIT_ERROR;
	}
	json_decref(done);
	return status;
}

/* Probes */

static void attach(const struct teardown *t, struct measured *m)
{
	struct exits_options o = EXITS_OPTIONS_INIT;
	int err;

	o.group = t->target.group;
	if (o.group < 0) {
		m->why_not = strdup("the processes have no cgroup of their own");
		return;
	}
	err = exits_open(&o, &m->x, &m->why_not);
	if (err && !m->why_not)
		m->why_not = strdup(strerror(-err));
}

/* What has begun is waited for, not what somebody interrupted. */
static void read_out(const struct teardown *t, struct measured *m)
{
	int err;

	if (!t->sig && !t->timed_out)
		exits_settle(m->x, SETTLE, t->at[STAGE_REMOVED] != BRUMM_NO_LIMIT);
	exits_stop(m->x);
	err = exits_read(m->x, &m->r);
	if (err)
		m->why_not = strdup(strerror(-err));
}

/* When the last of what is done later was, since the kill, ns. */
static uint64_t deferred_until(const struct teardown *t, const struct exits_result *r)
{
	uint64_t last = 0;
	unsigned int i;

	for (i = 0; i < PHASES_NR; i++)
		if (r->phase[i].sums[WHERE_DEFERRED].last > last)
			last = r->phase[i].sums[WHERE_DEFERRED].last;
	return last > t->start ? last - t->start : BRUMM_NO_LIMIT;
}

static json_t *measured_json(json_t *j, const struct teardown *t,
			     const struct measured *m)
{
	if (!j)
		return NULL;
	if (m->why_not) {
		json_object_set_new(j, "measured", json_null());
		json_object_set_new(j, "probes",
				    json_pack("{s:s}", "why_not", m->why_not));
		return j;
	}
	json_object_set_new(j, "measured", exits_kinds_json(&m->r));
	json_object_set_new(j, "deferred_ns", cli_json_time(deferred_until(t, &m->r)));
	json_object_set_new(j, "probes", exits_json(&m->r));
	return j;
}

static void print_measured(const struct teardown *t, const struct measured *m)
{
	uint64_t last;
	char x[16];

	if (m->why_not) {
		printf("  not measured by kind: %s\n", m->why_not);
		return;
	}
	last = deferred_until(t, &m->r);
	if (last != BRUMM_NO_LIMIT)
		printf("  %-22s%s\n", "deferred work done",
		       brumm_format_time(last, x, sizeof(x)));
	exits_print_kinds(&m->r, stdout);
	if (!m->r.complete)
		puts("  not complete: see brumm probe --teardown");
}

static int report(const struct args *a, const struct teardown *t,
		  const struct measured *m)
{
	json_t *j;

	if (!t->opts->json) {
		teardown_print(t, stdout);
		if (a->probes)
			print_measured(t, m);
		return cli_flush();
	}
	j = teardown_json(t);
	if (a->probes)
		j = measured_json(j, t, m);
	return cli_print_json(j);
}

static int reap(const struct args *a, struct teardown *t, struct measured *m)
{
	int status, ret;

	teardown_do(t);
	if (m->x)
		read_out(t, m);
	status = teardown_status(t);
	ret = report(a, t, m);
	return ret ? ret : status;
}

int cmd_reap(int argc, char **argv)
{
	struct args a = { .opts = TEARDOWN_OPTS_INIT };
	struct teardown t = { .opts = &a.opts };
	struct measured m = { .why_not = NULL };
	int status;

	cli_parse(&argp, argc, argv, &a);
	if (a.restore)
		return restore(&a);
	gentle_begin(&t);
	status = target_open(a.what, &t.target);
	if (!status && !a.dry_run) {
		cli_catch_signals();
		/* It takes a while: the processes are listed later. */
		if (a.probes)
			attach(&t, &m);
	}
	if (!status)
		status = teardown_look(&t);
	if (!status)
		status = a.dry_run ? plan(&t) : reap(&a, &t, &m);
	exits_close(m.x);
	free(m.why_not);
	teardown_free(&t);
	return status;
}
