// SPDX-License-Identifier: GPL-2.0
/* brumm COMMAND ... */
#define _GNU_SOURCE
#include <string.h>

#include "cli.h"

static const struct cli_command commands[] = {
	{ "info", cmd_info, "what works on this machine, and what to do where not" },
	{ "show", cmd_show, "budgets and expected clean-up times of cgroups" },
	{ "set", cmd_set, "set the budget, prices or lock of a cgroup" },
	{ "reclaim", cmd_reclaim, "take all memory back that a cgroup sponsors" },
	{ "run", cmd_run, "run a command in a cgroup with a budget, and reap it" },
	{ "reap", cmd_reap, "end a cgroup or PID namespace, and time until nothing is left" },
	{ "guard", cmd_guard, "refuse what would exceed a budget, before it happens" },
	{ "serve", cmd_serve, "memory service: hand out pages that can be taken back" },
	{ "take-back", cmd_take_back, "tell a memory service to take a cgroup's pages back" },
	{ "query", cmd_query, "what a memory service handed out, or what a window holds" },
	{ "profile", cmd_profile, "measure what clean-up takes here, and set the prices" },
	{ "recount", cmd_recount, "count what tasks own from /proc, and compare" },
	{ "probe", cmd_probe, "where the time of map, unmap, faults and reclaims goes" },
	{ "bench", cmd_bench, "how long taking back takes here, beside what Linux has" },
	{ "predict", cmd_predict, "what cleaning up after a cgroup is expected to take" },
	{ "baseline", cmd_baseline, "watch how dear a cgroup gets, and propose its budget" },
	{ "mc", cmd_mc, "the memcached study: how many requests are too late, and why" },
};

static const struct cli_commands all = {
	.name = "brumm",
	.about = "Memory that can be taken back, and budgets of what that costs.",
	.more = " Exit codes: 0 fine, 1 error, 2 a stated limit\n"
		"was missed, 4 not supported here.",
	.list = commands,
	.nr = ARRAY_SIZE(commands),
};

int main(int argc, char **argv)
{
	if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
		puts("brumm " BRUMM_CLI_VERSION);
		return cli_flush();
	}
	return cli_dispatch(&all, argc, argv);
}
