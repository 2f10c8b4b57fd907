// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <unistd.h>

#include "take.h"

enum { OPT_LIMIT = 'l', OPT_LOCK = 'k' };

static const struct argp_option options[] = {
	{ "lock", OPT_LOCK, NULL, 0, "lock the budget first, and leave it locked", 0 },
	{ "limit", OPT_LIMIT, "TIME", 0, "exit with 2 if it takes longer (5ms)", 0 },
	{ 0 },
};

static const struct argp_child children[] = { { &cli_group_argp, 0, NULL, 0 }, { 0 } };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct take_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->group;
		return 0;
	case OPT_LIMIT:
		if (brumm_parse_time(arg, &a->limit))
			argp_error(state, "'%s' is not a time", arg);
		return 0;
	case OPT_LOCK:
		a->lock = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp take_argp = {
	.options = options, .parser = parse, .children = children
};

int take_open(const struct take_args *a, int *status)
{
	int group = cli_open_group(a->group.name), err;

	if (group < 0) {
		*status = EXIT_ERROR;
		return -1;
	}
	err = a->lock ? brumm_group_lock(group, true) : 0;
	if (!err)
		return group;
	*status = cli_knob_failed(group, a->group.name, "brumm.lock", err);
	close(group);
	return -1;
}

int take_status(const struct take_args *a, uint64_t ns)
{
	char t[16];

	if (a->limit == BRUMM_NO_LIMIT || ns <= a->limit)
		return EXIT_FINE;
	if (!a->group.json)
		cli_error("longer than the limit of %s",
			  brumm_format_time(a->limit, t, sizeof(t)));
	return EXIT_MISSED;
}
