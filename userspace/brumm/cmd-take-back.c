// SPDX-License-Identifier: GPL-2.0
/* brumm take-back: the controller's word to a memory service. */
#define _GNU_SOURCE
#include <unistd.h>

#include "cli.h"

struct args {
	const char *group, *control;
	uint64_t limit;
	bool json, lock;
};

enum { OPT_LIMIT = 'l', OPT_JSON = 'j', OPT_LOCK = 'k', OPT_CONTROL = 'c' };

static const struct argp_option options[] = {
	{ "control", OPT_CONTROL, "PATH", 0, "socket of the service (" BRUMM_CONTROL_SOCKET ")", 0 },
	{ "lock", OPT_LOCK, NULL, 0, "lock the budget first, and leave it locked", 0 },
	{ "limit", OPT_LIMIT, "TIME", 0, "exit with 2 if it takes longer (5ms)", 0 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_CONTROL:
		a->control = arg;
		return 0;
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

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "CGROUP",
	.doc = "Tell a memory service to take all pages back that it gave to clients "
	       "in a cgroup and in those below it. With them goes all that was "
	       "derived from them, wherever it is. Other memory that the cgroup "
	       "sponsors stays; see brumm reclaim.",
};

int cmd_take_back(int argc, char **argv)
{
	struct args a = { .limit = BRUMM_NO_LIMIT };
	struct brumm_control *control;
	struct brumm_taken t;
	uint64_t id, before = BRUMM_NO_LIMIT;
	int group, err, ret = EXIT_FINE;
	bool missed;
	char x[2][16];

	cli_parse(&argp, argc, argv, &a);
	group = cli_open_group(a.group);
	if (group < 0)
		return EXIT_ERROR;
	err = a.lock ? brumm_group_lock(group, true) : 0;
	if (err) {
		ret = cli_knob_failed(group, a.group, "brumm.lock", err);
		close(group);
		return ret;
	}
	brumm_group_current(group, &before);
	err = brumm_group_id(group, &id);
	close(group);
	if (!err)
		err = brumm_control_open(a.control, &control);
	if (err) {
		cli_service_failed(a.control ? a.control : BRUMM_CONTROL_SOCKET,
				   err);
		return EXIT_ERROR;
	}
	err = brumm_control_take_back(control, id, &t);
	brumm_control_close(control);
	if (err) {
		cli_fail(err, "%s", a.group);
		return EXIT_ERROR;
	}
	missed = a.limit != BRUMM_NO_LIMIT && t.ns > a.limit;
	if (a.json)
		ret = cli_print_json(json_pack(
			"{s:s, s:I, s:I, s:I, s:o, s:I, s:o, s:b}",
			"cgroup", a.group,
			"clients", (json_int_t)t.clients,
			"bytes", (json_int_t)t.bytes,
			"mappings", (json_int_t)t.nodes,
			"expected_ns", cli_json_time(before),
			"measured_ns", (json_int_t)t.ns,
			"limit_ns", cli_json_time(a.limit),
			"within_limit", !missed));
	else
		printf("%s: %llu bytes of %llu clients, %llu mappings, in %s (all of the cgroup's: expected %s)\n",
		       a.group, (unsigned long long)t.bytes,
		       (unsigned long long)t.clients,
		       (unsigned long long)t.nodes,
		       brumm_format_time(t.ns, x[0], sizeof(x[0])),
		       before == BRUMM_NO_LIMIT ? "unknown" :
		       brumm_format_time(before, x[1], sizeof(x[1])));
	if (ret || cli_flush())
		return EXIT_ERROR;
	if (missed && !a.json)
		cli_error("longer than the limit");
	return missed ? EXIT_MISSED : EXIT_FINE;
}
