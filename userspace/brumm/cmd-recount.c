// SPDX-License-Identifier: GPL-2.0
/* brumm recount: does brumm.stat say what /proc says? */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "cli.h"
#include "recount/recount.h"

#define MS		1000000ULL
#define FREEZE_WAIT	(5000 * MS)

enum { OPT_LIVE = 256 };

struct args {
	struct cli_group group;
	bool live;
};

static const struct argp_child children[] = { { &cli_group_argp, 0, NULL, 0 }, { 0 } };

static const struct argp_option options[] = {
	{ "live", OPT_LIVE, NULL, 0, "do not freeze the cgroup; what changes meanwhile is a difference", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->group;
		return 0;
	case OPT_LIVE:
		a->live = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP",
	.doc = "Count what the tasks of a cgroup and those below it own from /proc, "
	       "and compare it with brumm.stat."
	       "\vThe cgroup is frozen meanwhile, and thawed if it was not frozen "
	       "before. brumm.mode must not be off. Exit code 2: there is a "
	       "difference.",
};

/* 0: frozen; 1: it was before. */
static int freeze(int group)
{
	uint64_t v = 0, until = cli_now() + FREEZE_WAIT;
	int err;

	err = brumm_group_number(group, "cgroup.freeze", NULL, &v);
	if (!err && v)
		return 1;
	if (!err)
		err = brumm_group_write(group, "cgroup.freeze", "1");
	while (!err && !(err = brumm_group_number(group, "cgroup.events", "frozen", &v)) && !v) {
		if (cli_now() > until || cli_signal())
			err = cli_signal() ? -EINTR : -ETIMEDOUT;
		usleep(1000);
	}
	if (err)
		brumm_group_write(group, "cgroup.freeze", "0");
	return err;
}

static int read_stat(int group, struct recount *c)
{
	char key[32];
	int k, err = 0;

	for (k = 0; !err && k < RECOUNT_KINDS; k++) {
		snprintf(key, sizeof(key), "%s_count", recount_names[k]);
		err = brumm_group_stat_get(group, key, &c->n[k]);
	}
	return err;
}

static bool differs(const struct recount *stat, const struct recount *proc)
{
	int k;

	for (k = 0; k < RECOUNT_KINDS; k++)
		if (recount_knows(proc, k) && stat->n[k] != proc->n[k])
			return true;
	return false;
}

static void print_kind(int k, const struct recount *stat, const struct recount *proc)
{
	printf("%-10s %12" PRIu64, recount_names[k], stat->n[k]);
	if (recount_knows(proc, k))
		printf(" %12" PRIu64 " %12" PRId64 "\n", proc->n[k],
		       (int64_t)(stat->n[k] - proc->n[k]));
	else
		printf(" %12s\n", "no kcmp here");
}

static int report(const struct args *a, const struct recount *stat,
		  const struct recount *proc)
{
	int k, status = differs(stat, proc) ? EXIT_MISSED : EXIT_FINE;

	if (a->group.json) {
		json_t *kinds = json_object();
		int ret;

		for (k = 0; k < RECOUNT_KINDS; k++)
			json_object_set_new(kinds, recount_names[k],
				json_pack("{s:I, s:o}",
					  "stat", (json_int_t)stat->n[k],
					  "proc", recount_knows(proc, k) ?
						  json_integer((json_int_t)proc->n[k]) :
						  json_null()));
		ret = cli_print_json(json_pack("{s:s, s:b, s:b, s:o}",
			"cgroup", a->group.name, "frozen", !a->live,
			"agrees", status == EXIT_FINE, "kinds", kinds));
		return ret ? ret : status;
	}
	printf("%-10s %12s %12s %12s\n", "kind", "brumm.stat", "/proc", "difference");
	for (k = 0; k < RECOUNT_KINDS; k++)
		print_kind(k, stat, proc);
	return cli_flush() ? EXIT_ERROR : status;
}

/* @group holds still, as far as anybody can make it. */
static int compare(const struct args *a, int group, const char *name)
{
	struct recount stat, proc;
	int err, tries = 5;

	do {
		/* Who was reaped a moment ago is on his way out. */
		err = recount_group(name, &proc);
		if (!err)
			err = read_stat(group, &stat);
	} while (!err && differs(&stat, &proc) && --tries && !usleep(50000));
	if (err) {
		cli_fail(err, "cannot count what is in '%s'", a->group.name);
		return EXIT_ERROR;
	}
	return report(a, &stat, &proc);
}

int cmd_recount(int argc, char **argv)
{
	struct args a = { .live = false };
	char name[PATH_MAX];
	int group, err, ret, frozen = 1;

	cli_parse(&argp, argc, argv, &a);
	group = cli_open_group(a.group.name);
	if (group < 0)
		return EXIT_ERROR;
	cli_catch_signals();
	err = brumm_group_name(group, name, sizeof(name));
	if (err < 0) {
		cli_fail(err, "cannot tell where '%s' is", a.group.name);
		close(group);
		return EXIT_ERROR;
	}
	if (!a.live)
		frozen = freeze(group);
	if (frozen < 0) {
		cli_fail(frozen, "cannot freeze '%s'", a.group.name);
		close(group);
		return EXIT_ERROR;
	}
	ret = compare(&a, group, name);
	if (!frozen)
		brumm_group_write(group, "cgroup.freeze", "0");
	close(group);
	return ret;
}
