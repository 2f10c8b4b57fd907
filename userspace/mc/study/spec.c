// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../../brumm/teardown/teardown.h"
#include "../calc/calc.h"
#include "spec.h"

const char *const axis_names[AXES] = {
	"lane", "instances", "rate", "scheduler", "isolation", "neighbour", "memory",
};

static const char *const schedulers[] = { "other", "fifo", "rr", NULL };
static const char *const isolations[] = {
	"bare", "containers", "vms", "partition", NULL
};
static const char *const neighbours[] = {
	"none", "teardown", "teardown-idle", "teardown-budget", "teardown-paced",
	"fork-storm", "mprotect-storm", NULL
};
static const char *const memories[] = { "anonymous", "brumm", NULL };

/* What an axis may have; NULL: a number, and any name for the lane. */
static const char *const *const allowed[AXES] = {
	[AXIS_SCHEDULER] = schedulers,
	[AXIS_ISOLATION] = isolations,
	[AXIS_NEIGHBOUR] = neighbours,
	[AXIS_MEMORY] = memories,
};

static const char *const defaults[AXES] = {
	LANE_HERE, "1", "1000", "other", "bare", "none", "anonymous",
};

/* ---- values --------------------------------------------------------------- */

static int add(struct list *l, const char *text)
{
	char **more = reallocarray(l->item, l->count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->item = more;
	more[l->count] = strdup(text);
	if (!more[l->count])
		return -ENOMEM;
	l->count++;
	return 0;
}

static void list_free(struct list *l)
{
	while (l->count)
		free(l->item[--l->count]);
	free(l->item);
	l->item = NULL;
}

static int number(const char *text, uint64_t least, uint64_t most, uint64_t *v)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
		return -EINVAL;
	*v = n;
	return 0;
}

static bool among(const char *const *names, const char *text)
{
	while (*names && strcmp(*names, text))
		names++;
	return *names;
}

/* Names become names of files. */
static bool good_value(enum axis axis, const char *text)
{
	uint64_t n;

	if (axis == AXIS_INSTANCES)
		return !number(text, 1, 64, &n);
	if (axis == AXIS_RATE)
		return !number(text, 1, 100000000, &n);
	if (axis == AXIS_LANE)
		return text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == 0 &&
		       text[0] != '.' && strlen(text) < 32;
	return among(allowed[axis], text);
}

static int parse_axis(struct list *l, enum axis axis, const char *value)
{
	char *copy = strdup(value), *rest = copy, *one;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (one = strsep(&rest, " \t,\n"))) {
		if (!*one)
			continue;
		if (!good_value(axis, one)) {
			cli_error("'%s' is not a value of %s", one, axis_names[axis]);
			err = -EINVAL;
		} else {
			err = add(l, one);
		}
	}
	free(copy);
	return err;
}

static int text_of(char **to, const char *value)
{
	char *more;

	/* A line that goes on, as libinih tells it. */
	if (asprintf(&more, "%s%s%s", *to ?: "", *to ? " " : "", value) < 0)
		return -ENOMEM;
	free(*to);
	*to = more;
	return 0;
}

/* ---- keys ----------------------------------------------------------------- */

static int set_number(struct spec *s, const char *name, const char *value)
{
	const struct {
		const char *name;
		uint64_t *to, least, most;
	} numbers[] = {
		{ "study.repeats", &s->repeats, 1, 10000 },
		{ "study.seed", &s->seed, 0, UINT32_MAX },
		{ "servers.port", &s->port, 1024, 65000 },
		{ "servers.containers", &s->containers, 2, 64 },
		{ "service.servers", &s->figures.scale.servers, 1, 1000000000 },
		{ "service.each", &s->figures.scale.each, 1, 1000000 },
		{ "neighbour.processes", &s->processes, 1, 1000000 },
		{ "neighbour.mappings", &s->mappings, 0, 100000000 },
		{ "neighbour.threads", &s->threads, 1, 1024 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!strcmp(name, numbers[i].name))
			return number(value, numbers[i].least, numbers[i].most,
				      numbers[i].to);
	}
	return -ENOENT;
}

static int set_text(struct spec *s, const char *name, const char *value)
{
	const struct {
		const char *name;
		char **to;
	} texts[] = {
		{ "study.title", &s->title },
		{ "study.what", &s->what },
		{ "servers.command", &s->server },
		{ "servers.vm", &s->vm },
		{ "neighbour.budget", &s->budget },
		{ "neighbour.pace", &s->pace },
		{ "neighbour.cpus", &s->place },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!strcmp(name, texts[i].name))
			return text_of(texts[i].to, value);
	}
	return -ENOENT;
}

static int set_other(struct spec *s, const char *name, const char *value)
{
	const struct {
		const char *name;
		uint64_t *to;
	} times[] = {
		{ "neighbour.at", &s->at },
		{ "neighbour.lasts", &s->lasts },
		{ "servers.settle", &s->settle },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		if (!strcmp(name, times[i].name))
			return brumm_parse_time(value, times[i].to);
	}
	if (!strcmp(name, "servers.cpus"))
		return parse_cpus(value, &s->cpus);
	if (!strcmp(name, "neighbour.memory"))
		return brumm_parse_size(value, &s->memory);
	if (!strcmp(name, "service.targets"))
		return parse_targets(value, &s->figures);
	return -ENOENT;
}

static int set_axis(struct spec *s, const char *name, const char *value)
{
	int i;

	for (i = 0; i < AXES; i++) {
		if (!strcmp(name, axis_names[i]))
			return parse_axis(&s->axis[i], (enum axis)i, value);
	}
	return -ENOENT;
}

static int set_load(struct spec *s, const char *key, const char *value)
{
	static const char *const ours[] = { "rate", "seed", "fanout", "json",
					    "output", "announce", NULL };
	char option[1024];

	if (!strcmp(key, "command"))
		return text_of(&s->loader, value);
	if (among(ours, key)) {
		cli_error("%s is chosen by the study", key);
		return -EINVAL;
	}
	snprintf(option, sizeof(option), "--%s%s%s", key, *value ? "=" : "", value);
	return add(&s->load, option);
}

static int set_lane(struct spec *s, const char *lane, const char *value)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s %s", lane, value);
	return good_value(AXIS_LANE, lane) ? add(&s->lanes, text) : -EINVAL;
}

static int set(struct spec *s, const char *section, const char *key,
	       const char *value)
{
	char name[128];
	int err;

	if (!strcmp(section, "axes"))
		return set_axis(s, key, value);
	if (!strcmp(section, "load"))
		return set_load(s, key, value);
	if (!strcmp(section, "lanes"))
		return set_lane(s, key, value);
	snprintf(name, sizeof(name), "%s.%s", section, key);
	err = set_number(s, name, value);
	if (err == -ENOENT)
		err = set_text(s, name, value);
	return err == -ENOENT ? set_other(s, name, value) : err;
}

/* libinih wants 1 for fine. */
static int handler(void *arg, const char *section, const char *key,
		   const char *value)
{
	int err = set(arg, section, key, value);

	if (err == -ENOENT)
		cli_error("[%s] has no key '%s'; see brumm(1)", section, key);
	else if (err)
		cli_error("[%s] %s: '%s' is not valid", section, key, value);
	return !err;
}

/* ---- the whole ------------------------------------------------------------ */

static int complete(struct spec *s, const char *path)
{
	int i, err = 0;

	for (i = 0; i < AXES && !err; i++) {
		if (!s->axis[i].count)
			err = add(&s->axis[i], defaults[i]);
	}
	if (!err && !s->title)
		err = text_of(&s->title, basename(path));
	if (!err && !s->server)
		err = text_of(&s->server, "memcached -m 64 -t 1 -U 0");
	if (!err && !s->budget)
		err = text_of(&s->budget, "5ms");
	return err;
}

int spec_read(struct spec *s, const char *path)
{
	int line;

	*s = (struct spec){
		.repeats = 3, .seed = 1, .port = 21211, .containers = 4,
		.processes = 300, .threads = 2, .at = 2000000000,
		.lasts = 1000000000, .settle = 300000000,
		.figures = FIGURES_OPTS_INIT,
	};
	if (sched_getaffinity(0, sizeof(s->cpus), &s->cpus))
		CPU_ZERO(&s->cpus);
	line = ini_parse(path, handler, s);
	if (line < 0)
		cli_fail(errno ?: EIO, "%s", path);
	else if (line > 0)
		cli_error("%s, line %d: not understood", path, line);
	else if (!complete(s, path))
		return 0;
	spec_free(s);
	return -1;
}

void spec_free(struct spec *s)
{
	char **texts[] = { &s->title, &s->what, &s->server, &s->vm, &s->loader,
			   &s->budget, &s->pace, &s->place };
	size_t i;

	for (i = 0; i < AXES; i++)
		list_free(&s->axis[i]);
	list_free(&s->load);
	list_free(&s->lanes);
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

const char *spec_lane(const struct spec *s, const char *lane)
{
	size_t i, len = strlen(lane);

	for (i = 0; i < s->lanes.count; i++) {
		const char *o = s->lanes.item[i];

		if (!strncmp(o, lane, len) && o[len] == ' ')
			return o + len + 1;
	}
	return NULL;
}

static json_t *list_json(const struct list *l)
{
	json_t *j = json_array();
	size_t i;

	for (i = 0; i < l->count; i++)
		json_array_append_new(j, json_string(l->item[i]));
	return j;
}

static json_t *cpus_json(const cpu_set_t *set)
{
	json_t *j = json_array();
	int i;

	for (i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, set))
			json_array_append_new(j, json_integer(i));
	}
	return j;
}

json_t *spec_json(const struct spec *s)
{
	return json_pack("{s:o, s:s, s:s?, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s?, s:s?}",
		"cpus", cpus_json(&s->cpus),
		"server", s->server,
		"load_command", s->loader,
		"seed", (json_int_t)s->seed,
		"load", list_json(&s->load),
		"containers", (json_int_t)s->containers,
		"neighbour_processes", (json_int_t)s->processes,
		"neighbour_memory", (json_int_t)s->memory,
		"neighbour_mappings", (json_int_t)s->mappings,
		"neighbour_threads", (json_int_t)s->threads,
		"neighbour_at_ns", (json_int_t)s->at,
		"neighbour_lasts_ns", (json_int_t)s->lasts,
		"neighbour_budget", s->budget,
		"neighbour_pace", s->pace,
		"neighbour_cpus", s->place);
}
