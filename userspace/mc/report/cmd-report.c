// SPDX-License-Identifier: GPL-2.0
/* brumm mc report: the results of a study as a page, JSON and tables. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../brumm/whole.h"
#include "../mc.h"
#include "report.h"

struct args {
	const char *from, *to;
	bool json, no_page;
};

enum { OPT_OUTPUT = 'o', OPT_JSON = 'j', OPT_NO_PAGE = 'n' };

static const struct argp_option options[] = {
	{ "output", OPT_OUTPUT, "DIR", 0, "where it goes (the study's folder)", 0 },
	{ "no-page", OPT_NO_PAGE, NULL, 0, "JSON and tables only, which takes no gnuplot", 0 },
	{ "json", OPT_JSON, NULL, 0, "print the JSON, and write no file", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_OUTPUT:
		a->to = arg;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_NO_PAGE:
		a->no_page = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->from)
			argp_error(state, "one study only");
		a->from = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->from)
			argp_error(state, "which folder?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "DIR|FILE",
	.doc = "Make a page of what brumm mc study left in DIR, or of one result of brumm mc "
	       "load: DIR/index.html, which needs nothing else; all that is on it in "
	       "DIR/report.json; op.csv, and latencies as HDR percentile text in "
	       "DIR/percentiles.",
};

/* ---- files ---------------------------------------------------------------- */

typedef int (*write_fn)(const void *what, FILE *f);

static int store(const char *dir, const char *name, write_fn fn, const void *what)
{
	char path[PATH_MAX];
	struct whole w;
	int err = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		err = whole_open(&w, path);
	if (!err)
		err = whole_close(&w, fn(what, w.f));
	if (err)
		cli_fail(err, "%s", path);
	return err;
}

static int write_json(const void *doc, FILE *f)
{
	return json_dumpf(doc, f, JSON_INDENT(1)) || fputc('\n', f) == EOF ? -EIO : 0;
}

static int write_table(const void *doc, FILE *f)
{
	return table_write(doc, f);
}

static int write_percentiles(const void *group, FILE *f)
{
	return percentiles_write(group, f);
}

struct whole_page {
	const json_t *doc;
	char **svg;
};

static int write_page(const void *arg, FILE *f)
{
	const struct whole_page *p = arg;

	return page_write(p->doc, p->svg, f);
}

static int store_page(const char *dir, const json_t *doc)
{
	const json_t *figures = json_object_get(doc, "figures"), *one;
	struct whole_page p = { doc, calloc(json_array_size(figures) + 1, sizeof(char *)) };
	int status = p.svg ? EXIT_FINE : EXIT_ERROR;
	size_t i;

	json_array_foreach(figures, i, one) {
		if (!status)
			p.svg[i] = draw_figure(one, &status);
	}
	if (!status && store(dir, "index.html", write_page, &p))
		status = EXIT_ERROR;
	for (i = 0; p.svg && i < json_array_size(figures); i++)
		free(p.svg[i]);
	free(p.svg);
	return status;
}

static int store_percentiles(const char *dir, const struct study_results *r)
{
	char path[PATH_MAX], name[256], value[64];
	size_t i, used;
	int a, err = 0;

	snprintf(path, sizeof(path), "%s/percentiles", dir);
	if (mkdir(path, 0755) && errno != EEXIST) {
		cli_fail(errno, "%s", path);
		return -errno;
	}
	for (i = 0; i < r->groups && !err; i++) {
		if (!r->group[i].runs)
			continue;
		for (a = 0, used = 0; a < AXES && used < sizeof(name); a++)
			used += (size_t)snprintf(name + used, sizeof(name) - used,
				"%s%s", a ? "-" : "",
				group_axis(r->group + i, (enum axis)a, value,
					   sizeof(value)));
		if (used < sizeof(name))
			snprintf(name + used, sizeof(name) - used, ".hgrm");
		err = store(path, name, write_percentiles, r->group + i);
	}
	return err;
}

static int store_all(const struct args *a, const struct study_results *r,
		     const json_t *doc)
{
	struct stat st;
	const char *dir = a->to ?: a->from;

	if (!a->to && !stat(a->from, &st) && !S_ISDIR(st.st_mode)) {
		cli_error("where to? name a folder by --output");
		return EXIT_ERROR;
	}
	if (a->to && mkdir(a->to, 0755) && errno != EEXIST) {
		cli_fail(errno, "%s", a->to);
		return EXIT_ERROR;
	}
	if (store(dir, "report.json", write_json, doc) ||
	    store(dir, "op.csv", write_table, doc) || store_percentiles(dir, r))
		return EXIT_ERROR;
	if (!a->no_page) {
		int status = store_page(dir, doc);

		if (status)
			return status;
	}
	printf("%s/%s\n", dir, a->no_page ? "report.json" : "index.html");
	return cli_flush();
}

int mc_report(int argc, char **argv)
{
	struct study_results r;
	struct args a = { 0 };
	json_t *doc;
	int status;

	cli_parse(&argp, argc, argv, &a);
	if (collect(&r, a.from))
		return EXIT_ERROR;
	doc = report_json(&r);
	if (a.json) {
		status = cli_print_json(doc);
	} else if (!doc) {
		cli_fail(ENOMEM, "cannot make the report");
		status = EXIT_ERROR;
	} else {
		status = store_all(&a, &r, doc);
		json_decref(doc);
	}
	collect_free(&r);
	return status;
}
