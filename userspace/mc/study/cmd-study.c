// SPDX-License-Identifier: GPL-2.0
/*
 * brumm mc study: runs the cells of a study file. Every result is a file of its
 * own, which appears whole or not at all, so that whatever ends the study, what
 * it has is right, and it can go on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../brumm/whole.h"
#include "../mc.h"
#include "cell.h"
#include "child.h"
#include "manifest.h"

struct args {
	const char *file, *output, *lane;
	uint64_t repeat;
	bool resume, dry_run, json, has_repeat;
};

/* How the cells ended. */
struct tally {
	size_t done, skipped, wrong, had;
};

struct study {
	const struct args *a;
	struct spec spec;
	struct cells plan;
	struct tally tally;
	char dir[PATH_MAX - 512];
};

enum { OPT_OUTPUT = 'o', OPT_RESUME = 'r', OPT_DRY = 'n', OPT_JSON = 'j',
       OPT_LANE = 'l', OPT_REPEAT = 'R' };

static const struct argp_option options[] = {
	{ "output", OPT_OUTPUT, "DIR", 0, "where the results go (FILE without .ini)", 0 },
	{ "resume", OPT_RESUME, NULL, 0, "keep what is done there, and do the rest", 0 },
	{ "dry-run", OPT_DRY, NULL, 0, "list the cells, and why which are skipped", 0 },
	{ "lane", OPT_LANE, "LANE", 0, "only the cells of this lane, here: what the command of a lane runs", 1 },
	{ "repeat", OPT_REPEAT, "N", 0, "only this repeat, from 0 on", 1 },
	{ "json", OPT_JSON, NULL, 0, "print how the cells ended as JSON", 2 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	char *end;

	switch (key) {
	case OPT_OUTPUT:
		a->output = arg;
		return 0;
	case OPT_RESUME:
		a->resume = true;
		return 0;
	case OPT_DRY:
		a->dry_run = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_LANE:
		a->lane = arg;
		return 0;
	case OPT_REPEAT:
		a->repeat = strtoull(arg, &end, 10);
		a->has_repeat = true;
		if (*arg < '0' || *arg > '9' || *end)
			argp_error(state, "'%s' is not the number of a repeat", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_error(state, "one study file only");
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which study file?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE",
	.doc = "Run a study of memcached's outliers: each combination of what FILE varies, "
	       "in random order, several times. Cells that do not fit this machine are "
	       "marked so, with the reason; every placement is verified."
	       "\vResults: DIR/study.json, machine-LANE.json, and a file a cell in DIR/cells. "
	       "brumm mc report DIR makes a page of them. Exit code 2: a cell failed, or "
	       "a server was not where it was to be.",
};

/* ---- files ---------------------------------------------------------------- */

static int store(const char *path, json_t *j)
{
	int err = whole_json(path, j, JSON_INDENT(1));

	json_decref(j);
	if (err)
		cli_fail(err, "%s", path);
	return err;
}

static void cell_path(const struct study *t, const struct cell *c, char *path)
{
	snprintf(path, PATH_MAX, "%s/cells/%s.json", t->dir, c->name);
}

static int make_folder(const char *path)
{
	if (!mkdir(path, 0755) || errno == EEXIST)
		return 0;
	cli_fail(errno, "%s", path);
	return -errno;
}

static int prepare(struct study *t)
{
	const struct args *a = t->a;
	char path[PATH_MAX];
	size_t len = strlen(a->file);
	int n;

	if (a->output)
		n = snprintf(t->dir, sizeof(t->dir), "%s", a->output);
	else if (len > 4 && !strcmp(a->file + len - 4, ".ini"))
		n = snprintf(t->dir, sizeof(t->dir), "%.*s", (int)len - 4, a->file);
	else
		n = snprintf(t->dir, sizeof(t->dir), "%s.results", a->file);
	if (n >= (int)sizeof(t->dir)) {
		cli_error("the name of the folder is too long");
		return -ENAMETOOLONG;
	}
	if (a->dry_run)
		return 0;
	snprintf(path, sizeof(path), "%s/study.json", t->dir);
	if (!a->resume && !access(path, F_OK)) {
		cli_error("%s has a study already; --resume goes on with it, or name another by --output",
			  t->dir);
		return -EEXIST;
	}
	if (make_folder(t->dir))
		return -1;
	snprintf(path, sizeof(path), "%s/cells", t->dir);
	return make_folder(path);
}

static json_t *names(const char *const *name, size_t n)
{
	json_t *j = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(j, json_string(name[i]));
	return j;
}

static json_t *study_json(const struct study *t, const char *status)
{
	const struct figures_opts *f = &t->spec.figures;
	json_t *axes = json_object(), *order = json_array(), *targets = json_array();
	size_t i;

	for (i = 0; i < AXES; i++)
		json_object_set_new(axes, axis_names[i],
			names((const char *const *)t->spec.axis[i].item,
			      t->spec.axis[i].count));
	for (i = 0; i < t->plan.count; i++)
		json_array_append_new(order, json_string(t->plan.cell[i].name));
	for (i = 0; i < f->targets; i++)
		json_array_append_new(targets, json_real(f->target[i]));
	return json_pack("{s:s, s:s, s:s?, s:s, s:I, s:o, s:o, s:o, s:{s:I, s:I, s:o, s:f}}",
		"schema", "brumm-mc-study/1",
		"title", t->spec.title,
		"what", t->spec.what,
		"status", status,
		"repeats", (json_int_t)t->spec.repeats,
		"axes", axes,
		"spec", spec_json(&t->spec),
		"order", order,
		"service",
		"servers", (json_int_t)f->scale.servers,
		"each", (json_int_t)f->scale.each,
		"targets", targets,
		"confidence", f->confidence);
}

static int store_study(const struct study *t, const char *status)
{
	char path[PATH_MAX];

	if (t->a->lane)
		return 0;	/* who runs us does */
	snprintf(path, sizeof(path), "%s/study.json", t->dir);
	return store(path, study_json(t, status));
}

static int store_machine(const struct study *t, const char *lane)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/machine-%s.json", t->dir, lane);
	if (t->a->resume && !access(path, F_OK))
		return 0;
	return store(path, manifest_json(t->spec.server));
}

/* ---- cells ---------------------------------------------------------------- */

static void count(struct study *t, size_t i, const json_t *result)
{
	const char *status = json_string_value(json_object_get(result, "status"));
	const char *why = json_string_value(json_object_get(result, "reason"));

	status = status ?: "failed";
	if (!strcmp(status, "done"))
		t->tally.done++;
	else if (!strcmp(status, "skipped"))
		t->tally.skipped++;
	else
		t->tally.wrong++;
	fprintf(stderr, "[%zu/%zu] %s: %s%s%s\n", i + 1, t->plan.count,
		t->plan.cell[i].name, status, why ? ": " : "", why ?: "");
}

static json_t *old_result(const struct study *t, const struct cell *c)
{
	char path[PATH_MAX];

	cell_path(t, c, path);
	return json_load_file(path, 0, NULL);
}

static int run_here(struct study *t, size_t i)
{
	const struct cell *c = t->plan.cell + i;
	char path[PATH_MAX];
	json_t *j = t->a->resume ? old_result(t, c) : NULL;

	if (j && cell_is_done(&t->spec, c, j)) {
		t->tally.had++;
		t->tally.done++;
		json_decref(j);
		return 0;
	}
	json_decref(j);
	j = cell_run(&t->spec, c);
	count(t, i, j);
	cell_path(t, c, path);
	return store(path, j);
}

static void mark(struct study *t, size_t i, const char *status, const char *why)
{
	char path[PATH_MAX];
	json_t *j = json_pack("{s:s, s:s, s:o, s:I, s:s, s:s, s:o}",
		"schema", CELL_SCHEMA,
		"cell", t->plan.cell[i].name,
		"axes", cell_axes_json(t->plan.cell + i),
		"repeat", (json_int_t)t->plan.cell[i].repeat,
		"status", status, "reason", why,
		"spec", spec_json(&t->spec));

	count(t, i, j);
	cell_path(t, t->plan.cell + i, path);
	store(path, j);
}

/* The cells of a repeat on another kernel are one boot. */
static size_t block_end(const struct study *t, size_t i)
{
	const struct cell *first = t->plan.cell + i;
	size_t end = i;

	while (end < t->plan.count && t->plan.cell[end].repeat == first->repeat &&
	       t->plan.cell[end].value[AXIS_LANE] == first->value[AXIS_LANE])
		end++;
	return end;
}

static bool all_done(const struct study *t, size_t i, size_t end)
{
	bool done = t->a->resume;

	for (; done && i < end; i++) {
		json_t *j = old_result(t, t->plan.cell + i);

		done = cell_is_done(&t->spec, t->plan.cell + i, j);
		json_decref(j);
	}
	return done;
}

static int run_command(const struct study *t, const char *command,
		       const struct cell *c, int *status)
{
	char self[PATH_MAX] = "", file[PATH_MAX], dir[PATH_MAX], *text, *argv[4];
	struct child_opts o = CHILD_OPTS_INIT;
	struct child child;
	const char *step;
	int err;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    !realpath(t->a->file, file) || !realpath(t->dir, dir))
		return -errno;
	setenv("BRUMM_STUDY", dir, 1);
	if (asprintf(&text, "exec %s '%s' mc study '%s' --output '%s' --lane %s --repeat %llu --resume",
		     command, self, file, dir, c->value[AXIS_LANE],
		     (unsigned long long)c->repeat) < 0)
		return -ENOMEM;
	argv[0] = (char *)"/bin/sh";
	argv[1] = (char *)"-c";
	argv[2] = text;
	argv[3] = NULL;
	o.argv = argv;
	o.out = true;
	err = child_start(&child, &o, &step);
	free(text);
	if (!err)
		free(child_read_all(&child, status));
	return err;
}

/* Results that were there before are of another run: not the lane's word. */
static void run_lane(struct study *t, size_t i, size_t end)
{
	const struct cell *c = t->plan.cell + i;
	const char *command = spec_lane(&t->spec, c->value[AXIS_LANE]);
	int status = 0, err = 0;
	char why[160];

	if (all_done(t, i, end)) {
		t->tally.had += end - i;
		t->tally.done += end - i;
		return;
	}
	if (command)
		err = run_command(t, command, c, &status);
	snprintf(why, sizeof(why), "the command of the lane left no result: %s %d",
		 err ? "error" : "exit code",
		 err ? -err : WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	for (; i < end; i++) {
		json_t *j = command ? old_result(t, t->plan.cell + i) : NULL;

		if (!command)
			mark(t, i, "skipped", "the study file has no command for this lane ([lanes])");
		else if (!j)
			mark(t, i, cli_signal() ? "interrupted" : "failed", why);
		else
			count(t, i, j);
		json_decref(j);
	}
}

static bool ours(const struct study *t, const struct cell *c)
{
	const struct args *a = t->a;

	return (!a->lane || !strcmp(a->lane, c->value[AXIS_LANE])) &&
	       (!a->has_repeat || a->repeat == c->repeat);
}

static bool is_here(const struct study *t, const struct cell *c)
{
	return t->a->lane || !strcmp(c->value[AXIS_LANE], LANE_HERE);
}

static int run_cells(struct study *t)
{
	size_t i, end;
	int err = 0;

	for (i = 0; i < t->plan.count && !err && !cli_signal(); i = end) {
		const struct cell *c = t->plan.cell + i;

		end = i + 1;
		if (!ours(t, c))
			continue;
		if (is_here(t, c)) {
			err = store_machine(t, c->value[AXIS_LANE]);
			if (!err)
				err = run_here(t, i);
		} else {
			end = block_end(t, i);
			run_lane(t, i, end);
		}
	}
	return err;
}

/* ---- the command ---------------------------------------------------------- */

static int list_cells(struct study *t)
{
	json_t *list = json_array(), *skip;
	size_t i;

	for (i = 0; i < t->plan.count; i++) {
		const struct cell *c = t->plan.cell + i;
		const char *why = NULL;

		if (!ours(t, c))
			continue;
		skip = is_here(t, c) ? cell_skip(&t->spec, c) : NULL;
		why = json_string_value(json_object_get(skip, "reason"));
		if (!is_here(t, c) && !spec_lane(&t->spec, c->value[AXIS_LANE]))
			why = "the study file has no command for this lane ([lanes])";
		if (t->a->json)
			json_array_append_new(list, json_pack("{s:s, s:o, s:s?}",
				"cell", c->name, "axes", cell_axes_json(c),
				"skipped", why));
		else
			printf("%s%s%s\n", c->name, why ? ": skipped: " : "", why ?: "");
		json_decref(skip);
	}
	if (t->a->json)
		return cli_print_json(list);
	json_decref(list);
	return cli_flush();
}

static int tell(const struct study *t)
{
	const struct tally *y = &t->tally;

	if (t->a->json)
		return cli_print_json(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b}",
			"output", t->dir,
			"cells", (json_int_t)t->plan.count,
			"done", (json_int_t)y->done,
			"done_before", (json_int_t)y->had,
			"skipped", (json_int_t)y->skipped,
			"failed", (json_int_t)y->wrong,
			"interrupted", cli_signal() != 0));
	printf("%s: %zu cells done (%zu before), %zu skipped, %zu failed%s\n", t->dir,
	       y->done, y->had, y->skipped, y->wrong,
	       cli_signal() ? "; interrupted: --resume goes on" : "");
	return cli_flush();
}

static int run_study(struct study *t)
{
	int status;

	if (t->a->dry_run)
		return list_cells(t);
	cli_catch_signals();
	signal(SIGPIPE, SIG_IGN);
	if (store_study(t, "partial"))
		return EXIT_ERROR;
	status = run_cells(t) ? EXIT_ERROR : EXIT_FINE;
	if (!status && !cli_signal() && store_study(t, "complete"))
		status = EXIT_ERROR;
	if (tell(t) || status)
		return EXIT_ERROR;
	if (cli_signal())
		return 128 + cli_signal();
	return t->tally.wrong ? EXIT_MISSED : EXIT_FINE;
}

int mc_study(int argc, char **argv)
{
	struct args a = { 0 };
	struct study t = { .a = &a };
	int status = EXIT_ERROR;

	cli_parse(&argp, argc, argv, &a);
	if (spec_read(&t.spec, a.file))
		return EXIT_ERROR;
	if (!prepare(&t)) {
		if (cells_make(&t.plan, &t.spec))
			cli_fail(ENOMEM, "cannot plan");
		else
			status = run_study(&t);
	}
	cells_free(&t.plan);
	spec_free(&t.spec);
	return status;
}
