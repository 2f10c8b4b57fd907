// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../brumm/cli.h"
#include "../study/cell.h"
#include "collect.h"

static int is_json(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 &&
	       !strcmp(d->d_name + len - 5, ".json");
}

static json_t *read_json(const char *path)
{
	json_error_t e;
	json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, &e);

	if (!j)
		cli_error("%s: %s (line %d)", path, e.text, e.line);
	return j;
}

/* ---- groups --------------------------------------------------------------- */

static struct group *group_for(struct study_results *r, json_t *axes)
{
	struct group *more;
	size_t i;

	for (i = 0; i < r->groups; i++) {
		if (json_equal(r->group[i].axes, axes))
			return r->group + i;
	}
	more = reallocarray(r->group, r->groups + 1, sizeof(*more));
	if (!more)
		return NULL;
	r->group = more;
	more += r->groups++;
	*more = (struct group){ .axes = json_incref(axes), .left = json_array() };
	return more;
}

static int add_left(struct group *g, const json_t *cell)
{
	return json_array_append_new(g->left, json_pack("{s:O, s:O?, s:O?}",
		"cell", json_object_get(cell, "cell"),
		"status", json_object_get(cell, "status"),
		"reason", json_object_get(cell, "reason")));
}

static int add_run(struct group *g, json_t *cell, json_t *load, const char *path)
{
	struct load *run = reallocarray(g->run, g->runs + 1, sizeof(*run));
	json_t **cells = reallocarray(g->cell, g->runs + 1, sizeof(*cells));
	const char *differ;
	char why[160];

	if (run)
		g->run = run;
	if (cells)
		g->cell = cells;
	if (!run || !cells)
		return -ENOMEM;
	if (load_parse(run + g->runs, load, why, sizeof(why))) {
		cli_error("%s: the load's result: %s", path, why);
		return -EINVAL;
	}
	differ = figures_differ(run, run + g->runs);
	if (differ) {
		cli_error("%s cannot be added to its repeats: %s", path, differ);
		load_free(run + g->runs);
		return -EINVAL;
	}
	cells[g->runs++] = json_incref(cell);
	return 0;
}

static int add_cell(struct study_results *r, json_t *cell, const char *path)
{
	const char *schema = json_string_value(json_object_get(cell, "schema"));
	const char *status = json_string_value(json_object_get(cell, "status"));
	json_t *axes = json_object_get(cell, "axes");
	struct group *g;

	if (!schema || strcmp(schema, CELL_SCHEMA) || !status ||
	    !json_is_object(axes) || !json_is_string(json_object_get(cell, "cell"))) {
		cli_error("%s is not the result of a cell", path);
		return -EINVAL;
	}
	g = group_for(r, axes);
	if (!g)
		return -ENOMEM;
	if (strcmp(status, "done"))
		return add_left(g, cell);
	return add_run(g, cell, json_object_get(cell, "load"), path);
}

static int compare_axis(const struct group *x, const struct group *y, int i)
{
	const json_t *a = json_object_get(x->axes, axis_names[i]);
	const json_t *b = json_object_get(y->axes, axis_names[i]);

	if (json_is_integer(a) && json_is_integer(b))
		return (json_integer_value(a) > json_integer_value(b)) -
		       (json_integer_value(a) < json_integer_value(b));
	return strcmp(json_string_value(a) ?: "", json_string_value(b) ?: "");
}

/* Where a value stands in the study file; names have no other order. */
static size_t place(const json_t *study, const struct group *g, int i)
{
	const json_t *values = json_object_get(json_object_get(study, "axes"),
					       axis_names[i]);
	const char *is = json_string_value(json_object_get(g->axes, axis_names[i]));
	size_t at = 0;

	while (is && at < json_array_size(values) &&
	       strcmp(json_string_value(json_array_get(values, at)) ?: "", is))
		at++;
	return at;
}

static int by_axes(const void *a, const void *b, void *study)
{
	int i, way = 0;

	for (i = 0; i < AXES && !way; i++) {
		size_t x = place(study, a, i), y = place(study, b, i);

		way = (x > y) - (x < y);
		if (!way)
			way = compare_axis(a, b, i);
	}
	return way;
}

/* ---- a folder ------------------------------------------------------------- */

static int read_cells(struct study_results *r, const char *dir)
{
	char path[PATH_MAX];
	struct dirent **list;
	int n, i, err = 0;
	json_t *cell;

	snprintf(path, sizeof(path), "%s/cells", dir);
	n = scandir(path, &list, is_json, alphasort);
	if (n < 0) {
		cli_fail(errno, "%s", path);
		return -errno;
	}
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/cells/%s", dir, list[i]->d_name);
		free(list[i]);
		if (err)
			continue;
		cell = read_json(path);
		err = cell ? add_cell(r, cell, path) : -EINVAL;
		json_decref(cell);
	}
	free(list);
	return err;
}

static int read_machines(struct study_results *r, const char *dir)
{
	static const char prefix[] = "machine-";
	char path[PATH_MAX];
	struct dirent **list;
	int n = scandir(dir, &list, is_json, alphasort), i;

	for (i = 0; i < n; i++) {
		char *name = list[i]->d_name;

		if (!strncmp(name, prefix, sizeof(prefix) - 1)) {
			snprintf(path, sizeof(path), "%s/%s", dir, name);
			name[strlen(name) - 5] = 0;
			json_object_set_new(r->machines, name + sizeof(prefix) - 1,
					    read_json(path) ?: json_null());
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return 0;
}

static void read_opts(struct study_results *r)
{
	const json_t *s = json_object_get(r->study, "service"), *target;
	size_t i;

	if (!json_is_object(s))
		return;
	r->opts.scale.servers = (uint64_t)json_integer_value(
		json_object_get(s, "servers"));
	r->opts.scale.each = (uint64_t)json_integer_value(
		json_object_get(s, "each"));
	r->opts.targets = 0;
	json_array_foreach(json_object_get(s, "targets"), i, target) {
		if (r->opts.targets < MAX_TARGETS)
			r->opts.target[r->opts.targets++] =
				json_number_value(target);
	}
}

static int collect_folder(struct study_results *r, const char *dir)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/study.json", dir);
	r->study = read_json(path);
	if (!r->study)
		return -ENOENT;
	read_opts(r);
	err = read_machines(r, dir);
	return err ? err : read_cells(r, dir);
}

/* ---- one result ----------------------------------------------------------- */

static json_t *lone_axes(const json_t *load)
{
	const json_t *config = json_object_get(load, "config");
	const json_t *rate = json_object_get(config, "rate");

	return json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:s}",
		"lane", LANE_HERE,
		"instances", (json_int_t)json_array_size(json_object_get(load, "servers")),
		"rate", json_is_number(rate) ? (json_int_t)json_number_value(rate) : 0,
		"scheduler", "other", "isolation", "bare", "neighbour", "none",
		"memory", "anonymous");
}

static int collect_one(struct study_results *r, const char *path)
{
	json_t *load = read_json(path), *cell;
	int err;

	if (!load)
		return -EINVAL;
	r->study = json_pack("{s:s, s:s, s:s, s:o, s:{}}",
		"schema", "brumm-mc-study/1", "title", path,
		"status", "complete", "what", json_null(), "axes");
	json_object_set(r->machines, LANE_HERE,
			json_object_get(load, "machine") ?: json_null());
	cell = json_pack("{s:s, s:s, s:o, s:I, s:s, s:O}",
		"schema", CELL_SCHEMA, "cell", "result",
		"axes", lone_axes(load), "repeat", (json_int_t)0,
		"status", "done", "load", load);
	err = cell ? add_cell(r, cell, path) : -ENOMEM;
	json_decref(cell);
	json_decref(load);
	return err;
}

int collect(struct study_results *r, const char *path)
{
	struct stat st;
	int err;

	*r = (struct study_results){
		.machines = json_object(), .opts = FIGURES_OPTS_INIT
	};
	if (stat(path, &st)) {
		cli_fail(errno, "%s", path);
		collect_free(r);
		return -1;
	}
	err = S_ISDIR(st.st_mode) ? collect_folder(r, path) : collect_one(r, path);
	if (!err)
		qsort_r(r->group, r->groups, sizeof(*r->group), by_axes, r->study);
	if (err)
		collect_free(r);
	return err ? -1 : 0;
}

void collect_free(struct study_results *r)
{
	size_t i, k;

	for (i = 0; i < r->groups; i++) {
		struct group *g = r->group + i;

		for (k = 0; k < g->runs; k++) {
			load_free(g->run + k);
			json_decref(g->cell[k]);
		}
		free(g->run);
		free(g->cell);
		json_decref(g->axes);
		json_decref(g->left);
	}
	free(r->group);
	json_decref(r->study);
	json_decref(r->machines);
	*r = (struct study_results){ 0 };
}

/* ---- names ---------------------------------------------------------------- */

const char *group_axis(const struct group *g, enum axis axis, char *buf,
		       size_t size)
{
	const json_t *v = json_object_get(g->axes, axis_names[axis]);

	if (json_is_integer(v))
		snprintf(buf, size, "%lld", (long long)json_integer_value(v));
	else
		snprintf(buf, size, "%s", json_string_value(v) ?: "?");
	return buf;
}

void collect_varied(const struct study_results *r, bool varied[AXES])
{
	const struct group *first = NULL;
	size_t i;
	int a;

	memset(varied, 0, AXES * sizeof(*varied));
	for (i = 0; i < r->groups; i++) {
		if (!r->group[i].runs)
			continue;
		if (!first)
			first = r->group + i;
		for (a = 0; a < AXES; a++)
			varied[a] |= compare_axis(first, r->group + i, a) != 0;
	}
}

void group_label(const struct group *g, const bool varied[AXES],
		 const bool but[AXES], char *to, size_t size)
{
	static const char *const unit[AXES] = {
		[AXIS_INSTANCES] = " inst.", [AXIS_RATE] = "/s",
		[AXIS_MEMORY] = " memory",
	};
	char value[64];
	size_t used = 0;
	int a;

	*to = 0;
	for (a = 0; a < AXES && used < size; a++) {
		if (!varied[a] || (but && but[a]))
			continue;
		used += (size_t)snprintf(to + used, size - used, "%s%s%s",
			used ? ", " : "",
			group_axis(g, (enum axis)a, value, sizeof(value)),
			unit[a] ?: "");
	}
	if (!used)
		snprintf(to, size, "all");
}
