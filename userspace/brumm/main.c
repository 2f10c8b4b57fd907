// SPDX-License-Identifier: GPL-2.0
/* brumm COMMAND ... */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "info", cmd_info, "what works on this machine, and what to do where not" },
	{ "show", cmd_show, "budgets and expected clean-up times of cgroups" },
	{ "set", cmd_set, "set the budget, prices or lock of a cgroup" },
	{ "reclaim", cmd_reclaim, "take all memory back that a cgroup sponsors" },
	{ "run", cmd_run, "run a command in a cgroup with a budget, and reap it" },
	{ "reap", cmd_reap, "end a cgroup or PID namespace, and time until nothing is left" },
	{ "serve", cmd_serve, "memory service: hand out pages that can be taken back" },
	{ "take-back", cmd_take_back, "tell a memory service to take a cgroup's pages back" },
	{ "query", cmd_query, "what a memory service handed out, or what a window holds" },
	{ "profile", cmd_profile, "measure what clean-up takes here, and set the prices" },
	{ "recount", cmd_recount, "count what tasks own from /proc, and compare" },
	{ "probe", cmd_probe, "where the time of map, unmap, faults and reclaims goes" },
	{ "bench", cmd_bench, "how long taking back takes here, beside what Linux has" },
	{ "predict", cmd_predict, "what cleaning up after a cgroup is expected to take" },
	{ "mc", cmd_mc, "the memcached study: how many requests are too late, and why" },
};

static void usage(FILE *f)
{
	size_t i;

	fputs("Usage: brumm COMMAND [OPTION...]\n"
	      "Memory that can be taken back, and budgets of what that costs.\n\n",
	      f);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\nbrumm COMMAND --help tells more. Exit codes: 0 fine, 1 error, 2 a stated limit\n"
	      "was missed, 4 not supported here.\n", f);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(stderr);
		return EXIT_ERROR;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") ||
	    !strcmp(argv[1], "help")) {
		usage(stdout);
		return cli_flush();
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("brumm " BRUMM_CLI_VERSION);
		return cli_flush();
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		snprintf(cli_name, sizeof(cli_name), "brumm %s", argv[1]);
		return commands[i].run(argc - 1, argv + 1);
	}
	cli_error("no command '%s'; see brumm --help", argv[1]);
	return EXIT_ERROR;
}
