// SPDX-License-Identifier: GPL-2.0
/* brumm mc COMMAND ... */
#include "mc.h"

static const struct cli_command commands[] = {
	{ "load", mc_load, "send requests to memcached, and time every one" },
	{ "calc", mc_calc, "outlier proportions, and what they mean for a service" },
	{ "study", mc_study, "run a load in many settings, beside neighbours" },
	{ "report", mc_report, "make a page of what a study found" },
	{ "compare", mc_compare, "what changed from one study to another, beyond noise" },
	{ "tenant", mc_tenant, "be such a neighbour: processes to be killed, or a storm" },
};

static const struct cli_commands all = {
	.name = "brumm mc",
	.about = "How many requests to memcached take too long, and why.",
	.more = "",
	.list = commands,
	.nr = ARRAY_SIZE(commands),
};

int cmd_mc(int argc, char **argv)
{
	return cli_dispatch(&all, argc, argv);
}
