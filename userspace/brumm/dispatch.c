// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "cli.h"

static void usage(const struct cli_commands *set, FILE *f)
{
	size_t i;

	fprintf(f, "Usage: %s COMMAND [OPTION...]\n%s\n\n", set->name, set->about);
	for (i = 0; i < set->nr; i++)
		fprintf(f, "  %-10s %s\n", set->list[i].name, set->list[i].what);
	fprintf(f, "\n%s COMMAND --help tells more.%s\n", set->name, set->more);
}

int cli_dispatch(const struct cli_commands *set, int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(set, stderr);
		return EXIT_ERROR;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") ||
	    !strcmp(argv[1], "help")) {
		usage(set, stdout);
		return cli_flush();
	}
	for (i = 0; i < set->nr; i++) {
		if (strcmp(argv[1], set->list[i].name))
			continue;
		snprintf(cli_name, sizeof(cli_name), "%s %s", set->name, argv[1]);
		return set->list[i].run(argc - 1, argv + 1);
	}
	cli_error("no command '%s'; see %s --help", argv[1], set->name);
	return EXIT_ERROR;
}
