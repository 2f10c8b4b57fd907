// SPDX-License-Identifier: GPL-2.0
/* brumm show: the tree of cgroups with their budgets. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Cgroups nested deeper than that are not followed. */
#define MAX_LEVEL 64

struct args {
	const char *group;
	uint64_t interval;	/* ns, 0: once */
	long count;
	bool json, all, check, watch;
};

/* A cgroup and its figures; those that it does not have are absent. */
struct row {
	struct row *next;
	char *path;		/* below the mount point */
	int level;
	int watch;		/* brumm.events, -1: none */
	bool known, interesting, locked, own_prices;
	uint64_t max, high, current, peak;
	struct brumm_group_events events;
};

enum { OPT_ALL = 'a', OPT_JSON = 'j', OPT_WATCH = 'w', OPT_CHECK = 256, OPT_COUNT = 'n' };

static const struct argp_option options[] = {
	{ "all", OPT_ALL, NULL, 0, "also cgroups without a budget and without charges", 0 },
	{ "watch", OPT_WATCH, "TIME", OPTION_ARG_OPTIONAL, "show again whenever there is an event, and at least every TIME (1s)", 0 },
	{ "count", OPT_COUNT, "N", 0, "with --watch: end after N times", 0 },
	{ "check", OPT_CHECK, NULL, 0, "exit with 2 if a cgroup is over its budget", 0 },
	{ "json", OPT_JSON, NULL, 0, "print JSON; with --watch one object a line", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	char *end;

	switch (key) {
	case OPT_ALL:
		a->all = true;
		return 0;
	case OPT_WATCH:
		a->watch = true;
		a->interval = 1000000000;
		if (arg && (brumm_parse_time(arg, &a->interval) ||
			    a->interval < 1000000 ||
			    a->interval > 1000000000000))
			argp_error(state, "'%s' is not a time from 1ms to 1000s", arg);
		return 0;
	case OPT_COUNT:
		a->count = strtol(arg, &end, 10);
		if (*end || end == arg || a->count < 1)
			argp_error(state, "'%s' is not a number", arg);
		return 0;
	case OPT_CHECK:
		a->check = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->group)
			argp_error(state, "one cgroup only");
		a->group = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[CGROUP]",
	.doc = "Show the budget, the expected clean-up time and the events of cgroups."
	       "\vOnly cgroups that have a budget or to which something is charged are "
	       "shown, and those above them. BUDGET: refused beyond it; HIGH: an event "
	       "beyond it; NOW: expected clean-up time; EVENTS are refusals for the "
	       "budget, crossings of high, refusals for the lock, and charges that "
	       "could not be refused.",
};

/* ---- reading ------------------------------------------------------------ */

static void fill(struct row *r, int dir, bool watch)
{
	r->watch = -1;
	r->max = r->high = BRUMM_NO_LIMIT;
	if (brumm_group_current(dir, &r->current))
		return;
	r->known = true;
	r->own_prices = brumm_group_price(dir, NULL, NULL) == 1;
	/* The root has no more than that. */
	if (brumm_group_max(dir, &r->max)) {
		r->peak = BRUMM_NO_LIMIT;
		r->interesting = r->current;
		return;
	}
	brumm_group_high(dir, &r->high);
	brumm_group_peak(dir, &r->peak);
	brumm_group_events(dir, 0, &r->events);
	r->locked = brumm_group_locked(dir) == 1;
	r->interesting = r->current || r->locked || r->own_prices ||
			 r->max != BRUMM_NO_LIMIT || r->high != BRUMM_NO_LIMIT;
	if (watch) {
		r->watch = brumm_watch_open(dir, 0);
		/* Without a descriptor left it is seen at the next turn. */
		if (r->watch < 0)
			r->watch = -1;
	}
}

struct walk {
	const struct args *a;
	struct row **tail;
	int err;
};

static void step(struct walk *w, int dir, const char *path, int level);

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_group(const struct dirent *d)
{
	return d->d_type == DT_DIR && d->d_name[0] != '.';
}

static void descend(struct walk *w, int dir, const char *path, int level)
{
	struct dirent **list;
	char *below;
	int i, n, fd;

	if (level == MAX_LEVEL)
		return;
	n = scandirat(dir, ".", &list, is_group, by_name);
	if (n < 0)
		return;
	for (i = 0; i < n; i++) {
		fd = openat(dir, list[i]->d_name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		/* It may have been removed meanwhile. */
		if (fd >= 0) {
			if (asprintf(&below, "%s/%s",
				     strcmp(path, "/") ? path : "",
				     list[i]->d_name) > 0) {
				step(w, fd, below, level + 1);
				free(below);
			} else {
				w->err = -ENOMEM;
			}
			close(fd);
		}
		free(list[i]);
	}
	free(list);
}

static void step(struct walk *w, int dir, const char *path, int level)
{
	struct row *r = calloc(1, sizeof(*r));

	if (!r || !(r->path = strdup(path))) {
		free(r);
		w->err = -ENOMEM;
		return;
	}
	r->level = level;
	fill(r, dir, w->a->watch);
	*w->tail = r;
	w->tail = &r->next;
	descend(w, dir, path, level);
}

/* Those above one that is to be seen are to be seen as well. */
static void keep_ancestors(struct row *rows)
{
	struct row *above[MAX_LEVEL + 2], *r;
	int i;

	for (r = rows; r; r = r->next) {
		above[r->level] = r;
		for (i = 0; r->interesting && i < r->level; i++)
			above[i]->interesting = true;
	}
}

static void free_rows(struct row *r)
{
	struct row *next;

	for (; r; r = next) {
		next = r->next;
		if (r->watch >= 0)
			close(r->watch);
		free(r->path);
		free(r);
	}
}

/* ---- printing ----------------------------------------------------------- */

static bool over(const struct row *r)
{
	return r->known && r->max != BRUMM_NO_LIMIT && r->current > r->max;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void print_row(const struct row *r, int width, bool fancy)
{
	char t[4][16], used[16] = "";
	const char *colour = "";

	if (!r->known) {
		printf("%*s%-*s  no brumm.* files\n", 2 * r->level, "",
		       width - 2 * r->level,
		       r->level ? last_part(r->path) : r->path);
		return;
	}
	if (r->max != BRUMM_NO_LIMIT && r->max)
		snprintf(used, sizeof(used), "%.0f%%",
			 100.0 * (double)r->current / (double)r->max);
	if (fancy && over(r))
		colour = "\033[31m";
	else if (fancy && (r->locked || r->current > r->high))
		colour = "\033[33m";
	printf("%*s%-*s %s%9s %9s %9s %5s %9s %7llu %6llu %6llu %6llu %s%s\n",
	       2 * r->level, "", width - 2 * r->level,
	       r->level ? last_part(r->path) : r->path, colour,
	       brumm_format_time(r->max, t[0], sizeof(t[0])),
	       brumm_format_time(r->high, t[1], sizeof(t[1])),
	       brumm_format_time(r->current, t[2], sizeof(t[2])), used,
	       r->peak == BRUMM_NO_LIMIT ? "" :
	       brumm_format_time(r->peak, t[3], sizeof(t[3])),
	       (unsigned long long)r->events.max,
	       (unsigned long long)r->events.high,
	       (unsigned long long)r->events.locked,
	       (unsigned long long)r->events.over, r->locked ? "locked" : "",
	       *colour ? "\033[m" : "");
}

static void print_text(const struct row *rows, const struct args *a, bool fancy)
{
	const struct row *r;
	int width = 10, w;

	for (r = rows; r; r = r->next) {
		w = 2 * r->level + (int)strlen(last_part(r->path));
		if ((a->all || r->interesting) && w > width)
			width = w;
	}
	printf("%-*s %9s %9s %9s %5s %9s %7s %6s %6s %6s\n", width, "CGROUP",
	       "BUDGET", "HIGH", "NOW", "USED", "PEAK", "REFUSED", "HIGH",
	       "LOCKED", "OVER");
	for (r = rows; r; r = r->next)
		if (a->all || r->interesting || r == rows)
			print_row(r, width, fancy);
}

static json_t *make_json(const struct row *rows, const struct args *a)
{
	json_t *list = json_array();
	const struct row *r;

	for (r = rows; r; r = r->next) {
		if (!a->all && !r->interesting && r != rows)
			continue;
		if (!r->known) {
			json_array_append_new(list, json_pack(
				"{s:s, s:b}", "cgroup", r->path, "known", 0));
			continue;
		}
		json_array_append_new(list, json_pack(
			"{s:s, s:b, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:{s:I, s:I, s:I, s:I}}",
			"cgroup", r->path, "known", 1,
			"max_ns", cli_json_time(r->max),
			"high_ns", cli_json_time(r->high),
			"current_ns", cli_json_time(r->current),
			"peak_ns", cli_json_time(r->peak),
			"locked", r->locked, "own_prices", r->own_prices,
			"over_budget", over(r),
			"events",
			"max", (json_int_t)r->events.max,
			"high", (json_int_t)r->events.high,
			"locked", (json_int_t)r->events.locked,
			"over", (json_int_t)r->events.over));
	}
	return json_pack("{s:o}", "cgroups", list);
}

static int print(const struct row *rows, const struct args *a)
{
	bool fancy = cli_fancy(stdout);
	json_t *j;

	if (a->json && !a->watch)
		return cli_print_json(make_json(rows, a));
	if (a->json) {
		j = make_json(rows, a);
		json_dumpf(j, stdout, JSON_COMPACT);
		json_decref(j);
		putchar('\n');
	} else {
		if (a->watch && fancy)
			fputs("\033[H\033[J", stdout);
		print_text(rows, a, fancy);
	}
	return cli_flush();
}

/* ---- watching ----------------------------------------------------------- */

/* Until something happens in one of the cgroups, or the time is over. */
static void wait_event(const struct row *rows, uint64_t ns)
{
	const struct row *r;
	struct pollfd *p;
	size_t n = 0;

	for (r = rows; r; r = r->next)
		n++;
	p = calloc(n ? n : 1, sizeof(*p));
	n = 0;
	for (r = rows; p && r; r = r->next)
		if (r->watch >= 0)
			p[n++] = (struct pollfd){ .fd = r->watch,
						  .events = POLLPRI };
	poll(p, p ? n : 0, (int)(ns / 1000000));
	free(p);
}

static int show(int dir, const char *path, const struct args *a)
{
	struct row *rows = NULL;
	struct walk w = { .a = a, .tail = &rows };
	const struct row *r;
	int ret;

	step(&w, dir, path, 0);
	keep_ancestors(rows);
	ret = print(rows, a);
	if (w.err) {
		cli_fail(w.err, "the list is not complete");
		ret = EXIT_ERROR;
	}
	for (r = rows; r && a->check && ret == EXIT_FINE; r = r->next)
		if (over(r))
			ret = EXIT_MISSED;
	if (ret == EXIT_FINE && rows && !rows->known && !rows->next) {
		cli_knob_failed(dir, path, "brumm.* files", -ENOENT);
		ret = EXIT_UNSUPPORTED;
	}
	if (a->watch && ret != EXIT_ERROR && !cli_signal() && a->count != 1)
		wait_event(rows, a->interval);
	free_rows(rows);
	return ret;
}

int cmd_show(int argc, char **argv)
{
	struct args a = { 0 };
	char path[PATH_MAX];
	int dir, ret, worst = EXIT_FINE;

	cli_parse(&argp, argc, argv, &a);
	cli_catch_signals();
	dir = cli_open_group(a.group ? a.group : "/");
	if (dir < 0)
		return EXIT_ERROR;
	if (brumm_group_name(dir, path, sizeof(path)))
		snprintf(path, sizeof(path), "%s", a.group);
	if (access("/sys/module/brumm", F_OK)) {
		cli_error("the module is not loaded; modprobe brumm, see brumm info");
		close(dir);
		return EXIT_UNSUPPORTED;
	}
	do {
		ret = show(dir, path, &a);
		if (ret > worst || ret == EXIT_ERROR)
			worst = ret;
		if (a.count && !--a.count)
			break;
	} while (a.watch && ret != EXIT_ERROR && !cli_signal());
	close(dir);
	return worst;
}
