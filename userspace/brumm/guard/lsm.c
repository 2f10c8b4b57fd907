// SPDX-License-Identifier: GPL-2.0
/* Does the kernel ask BPF programs? */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "guard.h"

static int active_modules(char *text, size_t room)
{
	FILE *f = fopen("/sys/kernel/security/lsm", "re");
	bool got;

	if (!f)
		return -ENOENT;
	got = fgets(text, (int)room, f);
	fclose(f);
	if (!got)
		return -ENOENT;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int guard_lsm(char *boot, size_t room)
{
	char text[512], *word, *rest = text;
	size_t used = 0;
	int err = active_modules(text, sizeof(text));

	*boot = '\0';
	if (err)
		return err;
	while ((word = strsep(&rest, ","))) {
		if (!strcmp(word, "bpf"))
			return 1;
		/* Always there, and not to be chosen. */
		if (strcmp(word, "capability") && used < room)
			used += (size_t)snprintf(boot + used, room - used,
						 "%s,", word);
	}
	if (used < room)
		snprintf(boot + used, room - used, "bpf");
	return 0;
}
