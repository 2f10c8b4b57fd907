// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: whatever is written to a brumm.* file is taken or refused by a
 * documented error, and what a file says afterwards can be written to it again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "rng.h"
#include "tap.h"

#define ROOM	8192

/* Files that are written, with what is right for them. */
static const struct {
	const char *file;
	bool says_what_it_takes;
	const char *right[8];
} knobs[] = {
	{ "brumm.max", true,
	  { "max", "0", "5000", "5ms", "100us", "1s", "77ns" } },
	{ "brumm.high", true,
	  { "max", "0", "5000", "5ms", "100us", "1s", "77ns" } },
	{ "brumm.price", false,
	  { "default", "lookup 10", "map 20 pt 3", "lookup 1us map 2 pt 0" } },
	{ "brumm.lock", true, { "0", "1" } },
	{ "brumm.mode", false, { "off", "audit", "enforce", "inherit" } },
	{ "brumm.peak", false, { "reset", "1" } },
	{ "brumm.reclaim", false, { "1", "" } },
};

static const char *const words[] = {
	"max", "-", "+", " ", "\n", "\t", "0", "9", "18446744073709551615",
	"18446744073709551616", "1e9", "0x10", "us", "ns", "ms", "s", ".5",
	"lookup", "map", "pt", "vma", "ns", "audit", "default", "own", "\xff", "%s%n", "-1",
};

static size_t damage(struct rng *g, char *text, size_t len)
{
	uint32_t at = len ? rng_below(g, len) : 0;
	const char *word = words[rng_below(g, ARRAY_SIZE(words))];
	size_t n = strlen(word);

	switch (rng_below(g, 7)) {
	case 0:
		if (len)
			text[at] ^= 1 << rng_below(g, 8);
		return len;
	case 1:		/* a word in between */
		if (len + n >= ROOM)
			return len;
		memmove(text + at + n, text + at, len - at);
		memcpy(text + at, word, n);
		return len + n;
	case 2:
		return at;
	case 3:		/* twice */
		if (2 * len >= ROOM)
			return len;
		memcpy(text + len, text, len);
		return 2 * len;
	case 4:		/* long */
		n = rng_below(g, rng_once_in(g, 20) ? ROOM : 200);
		memset(text, word[0], n);
		return n;
	case 5:
		if (len)
			text[at] = '\0';
		return len;
	default:
		if (len < ROOM)
			text[len++] = '\n';
		return len;
	}
}

static int write_raw(int cg, const char *file, const char *text, size_t len)
{
	int fd = openat(cg, file, O_WRONLY | O_CLOEXEC), ret = 0;
	ssize_t n;

	REQUIRE(fd >= 0);
	n = write(fd, text, len);
	if (n < 0)
		ret = -errno;
	else
		CHECK_EQ(n, len);
	close(fd);
	return ret;
}

static void check_readable(int cg)
{
	static const char *const all[] = {
		"brumm.max", "brumm.high", "brumm.current", "brumm.peak",
		"brumm.stat", "brumm.events", "brumm.events.local",
		"brumm.price", "brumm.lock", "brumm.mode",
	};
	char text[4096];
	unsigned int i;
	int n;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		n = cg_read(cg, all[i], text, sizeof(text));
		if (!CHECK(n > 0 && n < 4095 && text[n - 1] == '\n'))
			tap_diag("%s", all[i]);
	}
}

/* Some clean-up to take account of, so that limits and prices matter. */
static void live(struct rng *g, int w)
{
	uint32_t page = rng_below(g, 64);

	if (rng_once_in(g, 3))
		dev_unmap_self(w, page, 8);
	else
		dev_alloc(w, page, 1 + rng_below(g, 8));
}

static void damaged_writes(void)
{
	unsigned long rounds = tap_pick(4000, 200000), i, taken = 0;
	struct rng g = { tap_seed() };
	int top = cg_make("t"), cg = cg_make("t/a"), w = win_open_in(cg);
	static char text[2 * ROOM];

	for (i = 0; i < rounds; i++) {
		unsigned int k = rng_below(&g, ARRAY_SIZE(knobs)), n = 0;
		int at = rng_once_in(&g, 4) ? top : cg, ret;
		size_t len;

		while (n < ARRAY_SIZE(knobs[0].right) && knobs[k].right[n])
			n++;
		strcpy(text, knobs[k].right[rng_below(&g, n)]);
		len = strlen(text);
		for (n = rng_below(&g, 4); n; n--)
			len = damage(&g, text, len);
		/* A reclaim for each would take the rest of the day. */
		if (!strcmp(knobs[k].file, "brumm.reclaim") &&
		    !rng_once_in(&g, 20))
			continue;
		ret = write_raw(at, knobs[k].file, text, len);
		if (ret != 0 && ret != -EINVAL && ret != -ERANGE &&
		    ret != -E2BIG)
			tap_fail(__FILE__, __LINE__, "%s: '%.*s' gives %s",
				 knobs[k].file, (int)(len < 80 ? len : 80),
				 text, tap_result(ret));
		taken += !ret;
		if (!ret && knobs[k].says_what_it_takes) {
			cg_read(at, knobs[k].file, text, 4096);
			CHECK_OK(write_raw(at, knobs[k].file, text,
					   strlen(text)));
		}
		if (i % 16 == 0)
			live(&g, w);
		if (i % 256 == 0)
			check_readable(cg);
		STOP_IF_FAILED();
	}
	tap_diag("%lu of %lu taken", taken, rounds);
	CHECK(taken > rounds / 20);
	cg_write(top, "brumm.lock", "0");
}

static const struct tap_case cases[] = {
	{ "damaged writes to the knobs", damaged_writes, 900 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
