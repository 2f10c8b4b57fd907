// SPDX-License-Identifier: GPL-2.0
/* brumm run: a command in a cgroup of its own, and nothing of it afterwards. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/run.h"

enum { OPT_MAX = 'm', OPT_HIGH = 'h', OPT_NAME = 'n', OPT_PIDNS = 'p',
       OPT_NS = 'N', OPT_KEEP = 'k', OPT_JSON = 'j', OPT_QUIET = 'q' };

static const struct argp_option options[] = {
	{ "max", OPT_MAX, "TIME", 0, "budget of expected clean-up time (5ms)", 0 },
	{ "high", OPT_HIGH, "TIME", 0, "from where on there are events", 0 },
	{ "name", OPT_NAME, "CGROUP", 0, "the cgroup (brumm-run-PID)", 0 },
	{ "pidns", OPT_PIDNS, NULL, 0, "in a PID namespace, with an init and a /proc of its own", 0 },
	{ "ns", OPT_NS, "LIST", 0, "in own namespaces: of mnt,ipc,uts,net,cgroup,user", 0 },
	{ "keep", OPT_KEEP, NULL, 0, "leave the cgroup afterwards", 0 },
	{ "json", OPT_JSON, "FILE", OPTION_ARG_OPTIONAL, "report as JSON, to FILE or stderr", 0 },
	{ "quiet", OPT_QUIET, NULL, 0, "no report", 0 },
	{ 0 },
};

static const struct argp_child children[] = { { &teardown_argp, 0, NULL, 0 }, { 0 } };

static void get_time(struct argp_state *state, const char *arg, uint64_t *ns)
{
	if (brumm_parse_time(arg, ns))
		argp_error(state, "'%s' is not a time, such as 5ms or max", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *r = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &r->opts;
		return 0;
	case OPT_MAX:
		get_time(state, arg, &r->max);
		r->has_max = true;
		return 0;
	case OPT_HIGH:
		get_time(state, arg, &r->high);
		r->has_high = true;
		return 0;
	case OPT_NAME:
		r->name = arg;
		return 0;
	case OPT_PIDNS:
		r->pidns = true;
		return 0;
	case OPT_NS:
		if (parse_namespaces(arg, &r->ns))
			argp_error(state, "'%s' is not a list of mnt,ipc,uts,net,cgroup,user",
				   arg);
		return 0;
	case OPT_KEEP:
		r->opts.keep = true;
		return 0;
	case OPT_JSON:
		r->json = arg ? arg : "-";
		r->opts.json = true;
		return 0;
	case OPT_QUIET:
		r->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		/* From here on all belongs to the command. */
		r->argv = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!r->argv)
			argp_error(state, "which command?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "COMMAND [ARG...]",
	.doc = "Run a command in a cgroup with a budget. When it ends, kill what it left "
	       "behind, remove the cgroup, and report as brumm reap does, to stderr."
	       "\vThe exit code is that of the command, 128+N if signal N ended it; 125: "
	       "brumm run itself failed, 126: the command cannot be executed, 127: not "
	       "found; 2: the command returned 0 and --limit was missed. Signals (INT, "
	       "TERM, HUP, QUIT, USR1, USR2, WINCH, TSTP, CONT) are passed on to the command.",
};

static json_t *strings(char **argv)
{
	json_t *list = json_array();

	for (; *argv; argv++)
		json_array_append_new(list, json_string(*argv) ?: json_null());
	return list;
}

static json_t *report_json(const struct run *r, const struct teardown *t,
			   int status, uint64_t ran, uint64_t peak)
{
	bool signalled = status >= 0 && WIFSIGNALED(status);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "command", strings(r->argv),
			 "exit_code", status >= 0 && !signalled ?
			 json_integer(WEXITSTATUS(status)) : json_null(),
			 "signal", signalled ? json_integer(WTERMSIG(status)) :
			 json_null(),
			 "ran_ns", cli_json_time(ran),
			 "max_ns", r->has_max ? cli_json_time(r->max) : json_null(),
			 "peak_ns", cli_json_time(peak),
			 "teardown", teardown_json(t));
}

static int write_json(const char *path, json_t *j)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stderr;
	int err = !f || !j || json_dumpf(j, f, JSON_INDENT(2)) ||
		  fputc('\n', f) == EOF;

	if (f && f != stderr)
		err |= fclose(f) != 0;
	if (err)
		cli_fail(j ? errno : ENOMEM, "%s", path);
	json_decref(j);
	return err;
}

/* Waits for what has ended. The number of a guard that has is another's soon. */
static void wait_for_ended(pid_t *guard)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		if (pid == *guard)
			*guard = 0;
}

/*
 * Ends what the command left, and tells. Clears @done if something is left, or
 * may be.
 */
static int finish(struct run *r, int code, int status, uint64_t ran,
		  pid_t *guard, bool *done)
{
	struct teardown t = { .opts = &r->opts };
	uint64_t peak = BRUMM_NO_LIMIT;
	int ended;

	if (faccessat(r->group, "cgroup.procs", F_OK, 0)) {
		/* Somebody else has torn it down: nothing to do, or to tell. */
		cli_error("%s is gone already", r->name);
		return code;
	}
	brumm_group_peak(r->group, &peak);
	if (target_open_group(r->group, &t.target) || teardown_look(&t)) {
		*done = false;
		return code ? code : RUN_OWN_ERROR;
	}
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
	cli_catch_signals();
	teardown_do(&t);
	wait_for_ended(guard);
	ended = teardown_status(&t);
	*done = !t.sig;
	if (r->json && write_json(r->json, report_json(r, &t, status, ran, peak)))
		ended = EXIT_ERROR;
	else if (!r->json && ((!r->quiet && status >= 0) || ended == EXIT_ERROR))
		teardown_print(&t, stderr);
	if (!code && ended)
		code = ended == EXIT_MISSED ? EXIT_MISSED : RUN_OWN_ERROR;
	teardown_free(&t);
	return code;
}

int cmd_run(int argc, char **argv)
{
	struct run r = { .opts = TEARDOWN_OPTS_INIT, .group = -1 };
	char name[32];
	int code, status;
	uint64_t start;
	bool done = true;
	sigset_t set;
	pid_t guard;

	cli_parse_as(&argp, argc, argv, ARGP_IN_ORDER, RUN_OWN_ERROR, &r);
	snprintf(name, sizeof(name), "brumm-run-%d", (int)getpid());
	if (!r.name)
		r.name = name;
	if (r.pidns)
		r.ns |= CLONE_NEWNS;
	r.self = pidfd_open(getpid(), 0);
	if (r.self < 0) {
		cli_fail(errno, "pidfd_open");
		return RUN_OWN_ERROR;
	}
	if (run_make_group(&r))
		return RUN_OWN_ERROR;
	/* Before anybody is forked, who would die of them. */
	run_signals(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &r.mask);
	guard = guard_start(&r);
	if (guard < 0)
		cli_fail(guard, "fork");
	start = cli_now();
	code = guard < 0 ? RUN_OWN_ERROR : supervise(&r, &status);
	code = finish(&r, code, guard < 0 ? -1 : status, cli_now() - start,
		      &guard, &done);
	/* Who interrupts our waiting leaves that to the guard. */
	if (done)
		guard_end(guard);
	return code;
}
