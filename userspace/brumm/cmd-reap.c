// SPDX-License-Identifier: GPL-2.0
/* brumm reap: end a group of processes, and be told when it is over. */
#define _GNU_SOURCE
#include <unistd.h>

#include "teardown/teardown.h"

struct args {
	struct teardown_opts opts;
	const char *what;
	bool dry_run;
};

enum { OPT_KEEP = 'k', OPT_DRY = 'n', OPT_JSON = 'j' };

static const struct argp_option options[] = {
	{ "keep", OPT_KEEP, NULL, 0, "leave the cgroups, as they were", 0 },
	{ "dry-run", OPT_DRY, NULL, 0, "say what would be done, and change nothing", 0 },
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
	case OPT_JSON:
		a->opts.json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->what)
			argp_error(state, "one cgroup or process only");
		a->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->what)
			argp_error(state, "which cgroup, or which PID namespace's init?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP|PID",
	.doc = "Kill all processes of a cgroup and of those below it, or of the PID "
	       "namespace whose init PID is; take back what they sponsor, and remove "
	       "the cgroups. Tells how long after the kill each stage was over."
	       "\vWith --pace or --slo the cgroup gets the least CPU weight, is "
	       "frozen, and is killed in steps. When that is interrupted, the rest "
	       "runs on as before. CGROUP can be /123 if it is called like a number.",
};

static int plan(const struct teardown *t)
{
	if (t->opts->json)
		return cli_print_json(teardown_plan_json(t));
	teardown_print_plan(t, stdout);
	return cli_flush();
}

static int reap(struct teardown *t)
{
	int status, ret;

	cli_catch_signals();
	teardown_do(t);
	status = teardown_status(t);
	if (t->opts->json) {
		ret = cli_print_json(teardown_json(t));
	} else {
		teardown_print(t, stdout);
		ret = cli_flush();
	}
	return ret ? ret : status;
}

int cmd_reap(int argc, char **argv)
{
	struct args a = { .opts = TEARDOWN_OPTS_INIT };
	struct teardown t = { .opts = &a.opts };
	int status;

	cli_parse(&argp, argc, argv, &a);
	status = target_open(a.what, &t.target);
	if (!status)
		status = teardown_look(&t);
	if (!status)
		status = a.dry_run ? plan(&t) : reap(&t);
	teardown_free(&t);
	return status;
}
