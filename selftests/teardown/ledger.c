// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cg.h"
#include "ledger.h"
#include "proc.h"
#include "tap.h"

int place[PLACES], top;

void make_places(void)
{
	top = cg_make("l");
	place[HERE] = cg_make("l/a");
	place[DEEP] = cg_make("l/b/c");
	place[OUTSIDE] = cg_make("o");
	REQUIRE_OK(cg_write(top, "brumm.mode", "audit"));
}

int64_t count(int cg, const char *kind)
{
	char key[40];

	snprintf(key, sizeof(key), "%s_count", kind);
	return cg_key(cg, "brumm.stat", key);
}

void agrees(void)
{
	int status = system("build/user/brumm recount brumm-test/l >recount.$$ 2>&1 || "
			    "{ r=$?; sed 's/^/# /' recount.$$; exit $r; }; "
			    "rm recount.$$");

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

void nothing_is_left(void)
{
	uint64_t until = now_ns() + 10000000000ull;
	char text[8192], *line, *end;

	/* The last of a task is released when a grace period is over. */
	while (cg_key(top, "brumm.stat", "living_records") && now_ns() < until)
		sleep_us(10000);
	REQUIRE(cg_read(top, "brumm.stat", text, sizeof(text)) > 0);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		end = strstr(line, "_count ");
		if (end && strcmp(end, "_count 0"))
			tap_fail(__FILE__, __LINE__, "left: %s", line);
	}
	CHECK_EQ(cg_key(top, "brumm.stat", "usage_ns"), 0);
}
