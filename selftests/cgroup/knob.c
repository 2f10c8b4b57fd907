// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cg.h"
#include "knob.h"
#include "tap.h"

bool knob_is(int cgroup, const char *file, const char *want, const char *at,
	     int line)
{
	char text[4096];
	int len = cg_read(cgroup, file, text, sizeof(text));

	if (len < 0) {
		tap_fail(at, line, "reading %s: %s", file, tap_result(len));
		return false;
	}
	if (len && text[len - 1] == '\n' &&
	    strlen(want) == (size_t)len - 1 && !memcmp(text, want, len - 1))
		return true;
	tap_fail(at, line, "%s is \"%s\", want \"%s\\n\"", file, text, want);
	return false;
}

bool prices_are(int cgroup, uint64_t lookup, uint64_t map, uint64_t pt,
		uint64_t deep, bool own, const char *at, int line)
{
	const struct {
		const char *key;
		uint64_t want;
	} want[] = {
		{ "lookup", lookup }, { "map", map }, { "pt", pt },
		{ "deep", deep }, { "own", own },
	};
	unsigned int i;
	int64_t is;

	for (i = 0; i < sizeof(want) / sizeof(*want); i++) {
		is = cg_key(cgroup, "brumm.price", want[i].key);
		if (is == (int64_t)want[i].want)
			continue;
		tap_fail(at, line, "brumm.price: %s is %lld, want %llu",
			 want[i].key, (long long)is,
			 (unsigned long long)want[i].want);
		return false;
	}
	return true;
}

int knob_write(int cgroup, const char *file, const char *text, unsigned int len)
{
	int fd = openat(cgroup, file, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

uint64_t knob_usage_ns(int cgroup)
{
	return cg_key(cgroup, "brumm.stat", "usage_ns");
}

int priced(const char *name)
{
	int cg = cg_make(name);

	REQUIRE_OK(cg_write(cg, "brumm.price", PRICES));
	return cg;
}

unsigned int amount(unsigned int n)
{
	const char *text = getenv("BRUMM_LESS");
	unsigned int less = text ? atoi(text) : 1;

	return less > 1 ? n / less : n;
}
