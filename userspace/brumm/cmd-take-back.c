// SPDX-License-Identifier: GPL-2.0
/* brumm take-back: the controller's word to a memory service. */
#define _GNU_SOURCE
#include <unistd.h>

#include "take.h"

struct args {
	struct take_args take;
	const char *control;
};

enum { OPT_CONTROL = 'c' };

static const struct argp_option options[] = {
	{ "control", OPT_CONTROL, "PATH", 0, "socket of the service (" BRUMM_CONTROL_SOCKET ")", 0 },
	{ 0 },
};

static const struct argp_child children[] = { { &take_argp, 0, NULL, 0 }, { 0 } };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->take;
		return 0;
	case OPT_CONTROL:
		a->control = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP",
	.doc = "Tell a memory service to take all pages back that it gave to clients "
	       "in a cgroup and in those below it. With them goes all that was "
	       "derived from them, wherever it is. Other memory that the cgroup "
	       "sponsors stays; see brumm reclaim.",
};

static int report(const struct take_args *a, const struct brumm_taken *t,
		  uint64_t before)
{
	int ret = EXIT_FINE, status = take_status(a, t->ns);
	char x[2][16];

	if (a->group.json)
		ret = cli_print_json(json_pack(
			"{s:s, s:I, s:I, s:I, s:o, s:I, s:o, s:b}",
			"cgroup", a->group.name,
			"clients", (json_int_t)t->clients,
			"bytes", (json_int_t)t->bytes,
			"mappings", (json_int_t)t->nodes,
			"expected_ns", cli_json_time(before),
			"measured_ns", (json_int_t)t->ns,
			"limit_ns", cli_json_time(a->limit),
			"within_limit", status == EXIT_FINE));
	else
		printf("%s: %llu bytes of %llu clients, %llu mappings, in %s (all of the cgroup's: expected %s)\n",
		       a->group.name, (unsigned long long)t->bytes,
		       (unsigned long long)t->clients,
		       (unsigned long long)t->nodes,
		       brumm_format_time(t->ns, x[0], sizeof(x[0])),
		       before == BRUMM_NO_LIMIT ? "unknown" :
		       brumm_format_time(before, x[1], sizeof(x[1])));
	return ret || cli_flush() ? EXIT_ERROR : status;
}

int cmd_take_back(int argc, char **argv)
{
	struct args a = { .take = TAKE_ARGS_INIT };
	struct brumm_control *control;
	struct brumm_taken t;
	uint64_t id, before = BRUMM_NO_LIMIT;
	int group, err, status;

	cli_parse(&argp, argc, argv, &a);
	group = take_open(&a.take, &status);
	if (group < 0)
		return status;
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
		cli_fail(err, "%s", a.take.group.name);
		return EXIT_ERROR;
	}
	return report(&a.take, &t, before);
}
