// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <unistd.h>

#include "take.h"

enum { OPT_LIMIT = 'l', OPT_JSON = 'j', OPT_LOCK = 'k' };

static const struct argp_option options[] = {
	{ "lock", OPT_LOCK, NULL, 0, "lock the budget first, and leave it locked", 0 },
	{ "limit", OPT_LIMIT, "TIME", 0, "exit with 2 if it takes longer (5ms)", 0 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct take_args *a = state->input;

	switch (key) {
	case OPT_LIMIT:
		if (brumm_parse_time(arg, &a->limit))
			argp_error(state, "'%s' is not a time", arg);
		return 0;
	case OPT_LOCK:
		a->lock = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->group)
			argp_error(state, "one cgroup only");
		a->group = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->group)
			argp_error(state, "which cgroup?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp take_argp = { .options = options, .parser = parse };

int take_open(const struct take_args *a, int *status)
{
	int group = cli_open_group(a->group), err;

	if (group < 0) {
		*status = EXIT_ERROR;
		return -1;
	}
	err = a->lock ? brumm_group_lock(group, true) : 0;
	if (!err)
		return group;
	*status = cli_knob_failed(group, a->group, "brumm.lock", err);
	close(group);
	return -1;
}

int take_status(const struct take_args *a, uint64_t ns)
{
	char t[16];

	if (a->limit == BRUMM_NO_LIMIT || ns <= a->limit)
		return EXIT_FINE;
	if (!a->json)
		cli_error("longer than the limit of %s",
			  brumm_format_time(a->limit, t, sizeof(t)));
	return EXIT_MISSED;
}
