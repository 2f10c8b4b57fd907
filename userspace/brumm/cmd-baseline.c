// SPDX-License-Identifier: GPL-2.0
/*
 * brumm baseline: watch how dear a cgroup gets, and propose its budget (the
 * paper, section 4: the observed maximum and a modest margin).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define MARGIN_DEFAULT	10
#define MARGIN_MAX	1000
#define NS_PER_MS	1000000ULL
#define PIECE_NS	100000000L

struct args {
	struct cli_group group;
	uint64_t time, interval;	/* ns */
	unsigned int margin;		/* per cent */
	bool past, set;
};

/* How often a budget or lock that holds for the cgroup refused something. */
struct refused {
	uint64_t max, locked;
};

/* What was seen. */
struct seen {
	uint64_t peak, at;		/* ns; when it was first found that high */
	uint64_t current, max;
	uint64_t samples, started, ended;
	struct refused before, after;
	char mode[32];
};

enum { OPT_TIME = 't', OPT_MARGIN = 'm', OPT_INTERVAL = 'i', OPT_PAST = 'p', OPT_SET = 's' };

static const struct argp_option options[] = {
	{ "time", OPT_TIME, "TIME", 0, "watch that long (until SIGINT, or the cgroup is gone)", 0 },
	{ "margin", OPT_MARGIN, "PERCENT", 0, "what the budget is above the peak (10)", 0 },
	{ "interval", OPT_INTERVAL, "TIME", 0, "look at what tasks own that often (1s)", 0 },
	{ "past", OPT_PAST, NULL, 0, "do not watch: take the peak since the cgroup was made", 0 },
	{ "set", OPT_SET, NULL, 0, "and set brumm.max to the budget", 0 },
	{ 0 },
};

static const struct argp_child children[] = { { &cli_group_argp, 0, NULL, 0 }, { 0 } };

static void parse_time(const char *arg, uint64_t least, uint64_t *ns,
		       struct argp_state *state)
{
	if (brumm_parse_time(arg, ns) || *ns < least || *ns > UINT64_MAX / 2)
		argp_error(state, "'%s' is not a time of at least %llu ms", arg,
			   (unsigned long long)(least / NS_PER_MS));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	unsigned long n;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->group;
		return 0;
	case OPT_TIME:
		parse_time(arg, NS_PER_MS, &a->time, state);
		return 0;
	case OPT_INTERVAL:
		parse_time(arg, 10 * NS_PER_MS, &a->interval, state);
		return 0;
	case OPT_MARGIN:
		n = strtoul(arg, &end, 10);
		if (*arg < '0' || *arg > '9' || (*end && strcmp(end, "%")) ||
		    n > MARGIN_MAX)
			argp_error(state, "'%s' is not from 0 to %d per cent",
				   arg, MARGIN_MAX);
		a->margin = (unsigned int)n;
		return 0;
	case OPT_PAST:
		a->past = true;
		return 0;
	case OPT_SET:
		a->set = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP",
	.doc = "Watch a cgroup at work, and propose its budget: the highest expected "
	       "clean-up time that was seen, and a margin."
	       "\vLet it do all that it may do meanwhile. What its tasks own is in the "
	       "figure where brumm.mode is not off (brumm set CGROUP mode audit). Exit "
	       "code 2: a budget or lock, of it or above it, refused something "
	       "meanwhile, so that the peak may be cut, or there was nothing to see; "
	       "nothing is set then.",
};

/* ---- watching ----------------------------------------------------------- */

static int add_refused(int group, unsigned int flags, struct refused *r)
{
	struct brumm_group_events e;
	int err = brumm_group_events(group, flags, &e);

	if (err)
		return err;
	r->max += e.max;
	r->locked += e.locked;
	return 0;
}

/*
 * By budgets and locks of the cgroup, of those below, which cut what reaches it, and
 * of those above, which count only there; whomever of theirs they refused.
 */
static int read_refused(int group, struct refused *r)
{
	int above = dup(group), next, err;

	*r = (struct refused){ 0 };
	err = add_refused(group, 0, r);
	while (!err && above >= 0) {
		next = openat(above, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(above);
		above = next;
		/* The root has no budget, and above it is another file system. */
		if (above >= 0 && add_refused(above, BRUMM_EVENTS_LOCAL, r))
			break;
	}
	if (above >= 0)
		close(above);
	return err;
}

static int look(int group, int peak, struct seen *s)
{
	uint64_t now, ns;
	int err;

	/* The read of it is what brings what tasks own up to date. */
	err = brumm_group_current(group, &now);
	if (!err)
		err = brumm_peak_read(peak, &ns);
	if (err)
		return err;
	s->samples++;
	s->current = now;
	s->ended = cli_now();
	if (ns > s->peak || s->samples == 1)
		s->at = s->ended;
	s->peak = ns;
	return read_refused(group, &s->after);
}

static void tell_progress(const struct seen *s)
{
	char t[2][16];

	fprintf(stderr, "\r\033[K%.0f s: now %s, peak %s",
		(double)(s->ended - s->started) / 1e9,
		brumm_format_time(s->current, t[0], sizeof(t[0])),
		brumm_format_time(s->peak, t[1], sizeof(t[1])));
}

/* In short pieces: a signal may come just before one. */
static void pause_until(uint64_t end)
{
	struct timespec t = { 0 };
	uint64_t now;

	for (now = cli_now(); now < end && !cli_signal(); now = cli_now()) {
		t.tv_nsec = end - now < PIECE_NS ? (long)(end - now) : PIECE_NS;
		nanosleep(&t, NULL);
	}
}

/* Until time is over, a signal comes, or the cgroup goes away (-ENODEV). */
static int watch(const struct args *a, int group, int peak, struct seen *s)
{
	bool fancy = cli_fancy(stderr);
	uint64_t end = a->time && a->time < UINT64_MAX - s->started ?
			       s->started + a->time : UINT64_MAX;
	int err;

	for (;;) {
		err = look(group, peak, s);
		if (err || a->past)
			break;
		if (fancy)
			tell_progress(s);
		if (cli_signal() || s->ended >= end)
			break;
		pause_until(end - s->ended < a->interval ? end : s->ended + a->interval);
	}
	if (fancy && !a->past)
		fputs("\r\033[K", stderr);
	/* What was seen of a cgroup that is gone stands. */
	return err == -ENODEV && s->samples ? 0 : err;
}

static int observe(const struct args *a, int group, struct seen *s)
{
	int peak = brumm_peak_open(group), err;

	if (peak < 0)
		return peak;
	err = a->past ? 0 : brumm_peak_reset(peak);
	if (!err)
		err = brumm_group_max(group, &s->max);
	/* Of the past nobody knows what was there before: it counts as a whole. */
	if (!err && !a->past)
		err = read_refused(group, &s->before);
	if (brumm_group_read(group, "brumm.mode", s->mode, sizeof(s->mode)))
		strcpy(s->mode, "off");
	s->mode[strcspn(s->mode, " \n")] = '\0';
	s->started = cli_now();
	if (!err)
		err = watch(a, group, peak, s);
	close(peak);
	return err;
}

/* ---- telling ------------------------------------------------------------ */

/* As a whole number of us, which is what brumm.max is shown in. */
static uint64_t budget(const struct args *a, const struct seen *s)
{
	uint64_t us = s->peak / 1000 + !!(s->peak % 1000);

	if (us > UINT64_MAX / (100 + MARGIN_MAX) / 1000)
		return BRUMM_NO_LIMIT;
	return (us * (100 + a->margin) + 99) / 100 * 1000;
}

static bool was_refused(const struct seen *s)
{
	return s->after.max != s->before.max || s->after.locked != s->before.locked;
}

/* Would a budget from it be one that the cgroup can live with? */
static bool is_usable(const struct seen *s)
{
	return s->peak && !was_refused(s);
}

static int report(const struct args *a, const struct seen *s, bool done)
{
	uint64_t proposed = budget(a, s);
	char t[3][16];

	if (a->group.json)
		return cli_print_json(json_pack(
			"{s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:i, s:o, s:o, s:I, s:I, s:b, s:b}",
			"cgroup", a->group.name, "mode", s->mode,
			"peak_ns", cli_json_time(s->peak),
			"peak_after_ns", a->past ? json_null() :
						   cli_json_time(s->at - s->started),
			"watched_ns", (json_int_t)(s->ended - s->started),
			"samples", (json_int_t)s->samples,
			"current_ns", cli_json_time(s->current),
			"margin_percent", (int)a->margin,
			"budget_ns", cli_json_time(proposed),
			"max_ns", cli_json_time(s->max),
			"refused", (json_int_t)(s->after.max - s->before.max),
			"refused_locked", (json_int_t)(s->after.locked - s->before.locked),
			"cut", was_refused(s),
			"set", done));
	printf("%s: peak %s", a->group.name,
	       brumm_format_time(s->peak, t[0], sizeof(t[0])));
	if (a->past)
		fputs(" since it was made", stdout);
	else
		printf(" in %s (%llu looks)",
		       brumm_format_time(s->ended - s->started, t[1], sizeof(t[1])),
		       (unsigned long long)s->samples);
	printf("; budget with a margin of %u %%: %s%s\n", a->margin,
	       brumm_format_time(proposed, t[2], sizeof(t[2])),
	       done ? ", which is set" : "");
	if (!done && is_usable(s))
		printf("to set it: brumm set %s max %lluus\n", a->group.name,
		       (unsigned long long)(proposed / 1000));
	return cli_flush();
}

static void warn(const struct args *a, const struct seen *s)
{
	if (was_refused(s))
		cli_error("the peak may be cut: %llu charges were refused for a budget and "
			  "%llu for a lock; raise brumm.max (brumm set %s max max), "
			  "and watch again",
			  (unsigned long long)(s->after.max - s->before.max),
			  (unsigned long long)(s->after.locked - s->before.locked),
			  a->group.name);
	if (!s->peak)
		cli_error("nothing was ever charged: let it work, and watch again");
	if (!strcmp(s->mode, "off"))
		cli_error("note: brumm.mode is off, so only memory of the device is in "
			  "it; brumm set %s mode audit adds what tasks own",
			  a->group.name);
}

int cmd_baseline(int argc, char **argv)
{
	struct args a = { .margin = MARGIN_DEFAULT, .interval = 1000 * NS_PER_MS };
	struct seen s = { 0 };
	bool done = false;
	int group, err, ret;

	cli_parse(&argp, argc, argv, &a);
	group = cli_open_group(a.group.name);
	if (group < 0)
		return EXIT_ERROR;
	cli_catch_signals();
	err = observe(&a, group, &s);
	if (err) {
		ret = cli_knob_failed(group, a.group.name, "brumm.peak", err);
		goto out;
	}
	if (a.set && is_usable(&s)) {
		err = brumm_group_set_max(group, budget(&a, &s));
		done = !err;
	}
	ret = report(&a, &s, done);
	warn(&a, &s);
	if (err)
		ret = cli_knob_failed(group, a.group.name, "brumm.max", err);
	else if ((was_refused(&s) || (a.set && !done)) && ret == EXIT_FINE)
		ret = EXIT_MISSED;
out:
	close(group);
	return ret;
}
