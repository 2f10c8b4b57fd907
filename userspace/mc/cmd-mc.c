// SPDX-License-Identifier: GPL-2.0
/* brumm mc COMMAND ... */
#define _GNU_SOURCE
#include <string.h>

#include "mc.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "load", mc_load, "send requests to memcached, and time every one" },
	{ "calc", mc_calc, "outlier proportions, and what they mean for a service" },
	{ "study", mc_study, "run a load in many settings, beside neighbours" },
	{ "report", mc_report, "make a page of what a study found" },
	{ "compare", mc_compare, "what changed from one study to another, beyond noise" },
	{ "tenant", mc_tenant, "be such a neighbour: processes to be killed, or a storm" },
};

static void usage(FILE *f)
{
	size_t i;

	fputs("Usage: brumm mc COMMAND [OPTION...]\n"
	      "How many requests to memcached take too long, and why.\n\n", f);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\nbrumm mc COMMAND --help tells more.\n", f);
}

int cmd_mc(int argc, char **argv)
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
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		snprintf(cli_name, sizeof(cli_name), "brumm mc %s", argv[1]);
		return commands[i].run(argc - 1, argv + 1);
	}
	cli_error("no command '%s'; see brumm mc --help", argv[1]);
	return EXIT_ERROR;
}
