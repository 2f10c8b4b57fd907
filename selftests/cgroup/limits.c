// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: brumm.max, brumm.high, brumm.lock and brumm.price take what the ABI
 * page says and refuse the rest; a limit refuses what would exceed it and
 * breaks nothing that is there; a price holds at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

static void fresh_cgroup(void)
{
	int cg = cg_make("a");

	CHECK_KNOB(cg, "brumm.max", "max");
	CHECK_KNOB(cg, "brumm.high", "max");
	CHECK_KNOB(cg, "brumm.current", "0");
	CHECK_KNOB(cg, "brumm.peak", "0");
	CHECK_KNOB(cg, "brumm.lock", "0");
	CHECK_KNOB(cg, "brumm.mode", "off inherited");
	CHECK_KNOB(cg, "brumm.events", "max 0\nhigh 0\nlocked 0\nover 0\naudit 0");
	CHECK_KNOB(cg, "brumm.events.local",
		   "max 0\nhigh 0\nlocked 0\nover 0\naudit 0");
	CHECK_EQ(cg_key(cg, "brumm.price", "own"), 0);
	CHECK_EQ(cg_key(cg, "brumm.stat", "reclaims"), 0);
}

static void root_has_no_limits(void)
{
	static const char *const absent[] = {
		"brumm.max", "brumm.high", "brumm.peak", "brumm.events",
		"brumm.events.local", "brumm.lock", "brumm.reclaim",
	};
	int root = open(CG_TOP, O_RDONLY | O_DIRECTORY);
	unsigned int i;

	REQUIRE(root >= 0);
	for (i = 0; i < ARRAY_SIZE(absent); i++)
		CHECK(faccessat(root, absent[i], F_OK, 0) && errno == ENOENT);
	CHECK(cg_number(root, "brumm.current") >= 0);
	CHECK(cg_key(root, "brumm.stat", "usage_ns") >= 0);
	CHECK(cg_key(root, "brumm.price", "map") > 0);
}

static void times_are_read_exactly(void)
{
	static const struct {
		const char *text;
		const char *back;
	} good[] = {
		{ "5000", "5000" },
		{ "5000\n", "5000" },
		{ "0", "0" },
		{ "00012", "12" },
		{ "max", "max" },
		{ " max\n", "max" },
		{ "5us", "5" },
		{ "5ms", "5000" },
		{ "5 ms", "5000" },
		{ "\t5   ms \n", "5000" },
		{ "5s", "5000000" },
		{ "500ns", "0.5" },
		{ "1 ns", "0.001" },
		{ "0.001", "0.001" },
		{ "1.5ms", "1500" },
		{ "1.2345ms", "1234.5" },
		{ "1.000000001 s", "1000000.001" },
		{ "2.50000000000000000000us", "2.5" },
		{ "7.0ns", "0.007" },
		{ "18446744073709551.614", "18446744073709551.614" },
		{ "18446744073709551614ns", "18446744073709551.614" },
	};
	static const char *const files[] = { "brumm.max", "brumm.high" };
	int cg = cg_make("a");
	unsigned int i, f;
	char text[100];

	for (f = 0; f < ARRAY_SIZE(files); f++) {
		for (i = 0; i < ARRAY_SIZE(good); i++) {
			CHECK_OK(cg_write(cg, files[f], "77"));
			if (!CHECK_OK(cg_write(cg, files[f], good[i].text)) ||
			    !CHECK_KNOB(cg, files[f], good[i].back))
				tap_diag("written: %s", good[i].text);
			/* What is read may be written again. */
			REQUIRE(cg_read(cg, files[f], text, sizeof(text)) > 0);
			CHECK_OK(cg_write(cg, files[f], text));
			CHECK_KNOB(cg, files[f], good[i].back);
		}
		/* Decimals and all. */
		CHECK_OK(cg_write(cg, files[f], "max"));
	}
}

static void nonsense_is_refused(void)
{
	static const struct {
		const char *text;
		int err;
	} bad[] = {
		{ "\n", -EINVAL },	{ " ", -EINVAL },
		{ "-1", -EINVAL },	{ "-0", -EINVAL },
		{ "+1", -EINVAL },	{ "- 1", -EINVAL },
		{ "0x10", -EINVAL },	{ "1e3", -EINVAL },
		{ "1,5", -EINVAL },	{ "1.", -EINVAL },
		{ ".5", -EINVAL },	{ "1.2.3", -EINVAL },
		{ "1. 5", -EINVAL },	{ "1 .5", -EINVAL },
		{ "ms", -EINVAL },	{ "5m", -EINVAL },
		{ "5 sec", -EINVAL },	{ "5MS", -EINVAL },
		{ "5 ms ms", -EINVAL },	{ "5ms1", -EINVAL },
		{ "5 5", -EINVAL },	{ "max 1", -EINVAL },
		{ "maximum", -EINVAL },	{ "MAX", -EINVAL },
		{ "inf", -EINVAL },	{ "0.0001", -EINVAL },
		{ "0.5ns", -EINVAL },	{ "1.0000000001s", -EINVAL },
		{ "18446744073709551.615", -ERANGE },
		{ "18446744073709551616", -ERANGE },
		{ "18446744073709551615ns", -ERANGE },
		{ "18446744074s", -ERANGE },
		{ "99999999999999999999999999999999s", -ERANGE },
	};
	static const char *const files[] = { "brumm.max", "brumm.high" };
	static char garbage[4097];
	int cg = cg_make("a");
	unsigned int i, f;

	memset(garbage, '7', sizeof(garbage));
	for (f = 0; f < ARRAY_SIZE(files); f++) {
		CHECK_OK(cg_write(cg, files[f], "77"));
		for (i = 0; i < ARRAY_SIZE(bad); i++)
			if (!CHECK_RET(cg_write(cg, files[f], bad[i].text),
				       bad[i].err))
				tap_diag("written: %s", bad[i].text);
		/* A zero byte does not end the text. */
		CHECK_RET(knob_write(cg, files[f], "5\0", 2), -EINVAL);
		CHECK_RET(knob_write(cg, files[f], "5\0ms", 4), -EINVAL);
		CHECK_RET(knob_write(cg, files[f], "\0", 1), -EINVAL);
		/* 4 KiB of digits are a large number; more is not looked at. */
		CHECK_RET(knob_write(cg, files[f], garbage, 4096), -ERANGE);
		CHECK_RET(knob_write(cg, files[f], garbage, 4097), -E2BIG);
		memset(garbage, 'x', sizeof(garbage));
		CHECK_RET(knob_write(cg, files[f], garbage, 4096), -EINVAL);
		memset(garbage, 0, sizeof(garbage));
		CHECK_RET(knob_write(cg, files[f], garbage, 4096), -EINVAL);
		memset(garbage, '7', sizeof(garbage));
		/* Nothing is nothing. */
		CHECK_OK(knob_write(cg, files[f], "", 0));
		CHECK_KNOB(cg, files[f], "77");
	}
}

static void lock_is_a_bit(void)
{
	int cg = cg_make("a");

	CHECK_OK(cg_write(cg, "brumm.lock", "1\n"));
	CHECK_KNOB(cg, "brumm.lock", "1");
	CHECK_RET(cg_write(cg, "brumm.lock", "2"), -EINVAL);
	CHECK_RET(cg_write(cg, "brumm.lock", "01"), -EINVAL);
	CHECK_RET(cg_write(cg, "brumm.lock", "y"), -EINVAL);
	CHECK_RET(cg_write(cg, "brumm.lock", "-1"), -EINVAL);
	CHECK_RET(cg_write(cg, "brumm.lock", "1 0"), -EINVAL);
	CHECK_RET(cg_write(cg, "brumm.lock", "\n"), -EINVAL);
	CHECK_KNOB(cg, "brumm.lock", "1");
	CHECK_OK(cg_write(cg, "brumm.lock", " 0 "));
	CHECK_KNOB(cg, "brumm.lock", "0");
}

static void modes_are_inherited(void)
{
	static const char *const bad[] = {
		"\n", "on", "0", "Off", "audit enforce", "inherited", "off,",
	};
	int root = open(CG_TOP, O_RDONLY | O_DIRECTORY);
	int top = cg_make("a"), low = cg_make("a/b"), other = cg_make("c");
	unsigned int i;

	REQUIRE(root >= 0);
	CHECK_OK(cg_write(low, "brumm.mode", "audit"));
	CHECK_KNOB(low, "brumm.mode", "audit");
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_RET(cg_write(low, "brumm.mode", bad[i]), -EINVAL);
	CHECK_KNOB(low, "brumm.mode", "audit");
	CHECK_KNOB(top, "brumm.mode", "off inherited");
	CHECK_OK(cg_write(top, "brumm.mode", " enforce\n"));
	CHECK_KNOB(top, "brumm.mode", "enforce");
	CHECK_KNOB(low, "brumm.mode", "audit");
	CHECK_OK(cg_write(low, "brumm.mode", "inherit"));
	CHECK_KNOB(low, "brumm.mode", "enforce inherited");
	CHECK_KNOB(cg_make("a/b/d"), "brumm.mode", "enforce inherited");
	CHECK_OK(cg_write(root, "brumm.mode", "audit"));
	CHECK_KNOB(root, "brumm.mode", "audit");
	CHECK_KNOB(other, "brumm.mode", "audit inherited");
	CHECK_KNOB(top, "brumm.mode", "enforce");
	CHECK_OK(cg_write(top, "brumm.mode", "inherit"));
	CHECK_KNOB(low, "brumm.mode", "audit inherited");
	CHECK_OK(cg_write(low, "brumm.mode", "off"));
	CHECK_KNOB(low, "brumm.mode", "off");
	CHECK_OK(cg_write(root, "brumm.mode", "inherit"));
	CHECK_KNOB(root, "brumm.mode", "off inherited");
	CHECK_KNOB(top, "brumm.mode", "off inherited");
}

/* Kinds of the living stand behind those of the device, and have prices. */
static void living_has_prices(void)
{
	int top = cg_make("a"), low = cg_make("a/b");

	CHECK(cg_key(low, "brumm.price", "process") > 0);
	CHECK_EQ(cg_key(low, "brumm.stat", "process_count"), 0);
	CHECK_EQ(cg_key(low, "brumm.stat", "ns_ns"), 0);
	CHECK_OK(cg_write(top, "brumm.price", "process 1ms ns 7 map 9"));
	CHECK_EQ(cg_key(low, "brumm.price", "process"), 1000000);
	CHECK_EQ(cg_key(low, "brumm.price", "ns"), 7);
	CHECK_EQ(cg_key(low, "brumm.price", "map"), 9);
	CHECK_RET(cg_write(top, "brumm.price", "process 1 process 2"), -EINVAL);
	CHECK_RET(cg_write(top, "brumm.price", "ns 1001s"), -ERANGE);
	CHECK_EQ(cg_key(top, "brumm.price", "process"), 1000000);
}

static void limit_is_exact(void)
{
	int cg = priced("a"), w = win_open_in(cg);
	char text[40];

	/* One ALLOC of 4 pages fits, and not a nanosecond less. */
	snprintf(text, sizeof(text), "%lluns", COST(1, 1, 4) - 1);
	CHECK_OK(cg_write(cg, "brumm.max", text));
	CHECK_RET(dev_alloc(w, 0, 4), -EDQUOT);
	CHECK_EQ(knob_usage_ns(cg), 0);
	CHECK_COUNTS(cg, 0, 0, 0);
	snprintf(text, sizeof(text), "%lluns", COST(1, 1, 4));
	CHECK_OK(cg_write(cg, "brumm.max", text));
	CHECK_OK(dev_alloc(w, 0, 4));
	CHECK_EQ(knob_usage_ns(cg), COST(1, 1, 4));
	/* Rounded up to a whole microsecond. */
	CHECK_EQ(cg_number(cg, "brumm.current"), (COST(1, 1, 4) + 999) / 1000);
	CHECK_RET(dev_alloc(w, 8, 1), -EDQUOT);
	REQUIRE_OK(dev_unmap_self(w, 0, 4));
	CHECK_EQ(knob_usage_ns(cg), 0);
	CHECK_OK(dev_alloc(w, 8, 1));
}

static void zero_allows_nothing(void)
{
	int cg = cg_make("a"), w = win_open_in(cg);

	CHECK_OK(cg_write(cg, "brumm.max", "0"));
	CHECK_RET(dev_alloc(w, 0, 1), -EDQUOT);
	CHECK_OK(cg_write(cg, "brumm.max", "max"));
	CHECK_OK(dev_alloc(w, 0, 1));
}

static void below_current_breaks_nothing(void)
{
	int cg = priced("a"), w = win_open_in(cg), v = win_open_in(cg);
	uint32_t *p = win_mmap(w, 8, PROT_READ | PROT_WRITE);
	uint64_t usage;

	REQUIRE_OK(dev_alloc(w, 0, 8));
	*cell(p, 7, 0) = 5;
	usage = knob_usage_ns(cg);
	CHECK_OK(cg_write(cg, "brumm.max", "1"));
	CHECK_KNOB(cg, "brumm.max", "1");
	CHECK_EQ(knob_usage_ns(cg), usage);
	CHECK_EQ(*cell(p, 7, 0), 5);
	CHECK_RET(dev_map(w, 0, 1, v, 0, RW), -EDQUOT);
	CHECK_EQ(dev_nodes(v), 0);
	CHECK_OK(dev_unmap_self(w, 0, 4));
	CHECK_EQ(*cell(p, 7, 0), 5);
	CHECK_OK(cg_write(cg, "brumm.max", "max"));
	CHECK_OK(dev_map(w, 4, 1, v, 0, RW));
}

static void limit_above_counts(void)
{
	int top = priced("t"), low = cg_make("t/l"), other = cg_make("t/o");
	int w = win_open_in(low), v = win_open_in(other);
	char text[40];

	/* Room for two ALLOCs of a page in the whole subtree. */
	snprintf(text, sizeof(text), "%lluns", COST(2, 2, 2));
	CHECK_OK(cg_write(top, "brumm.max", text));
	CHECK_OK(dev_alloc(w, 0, 1));
	CHECK_OK(dev_alloc(v, 0, 1));
	CHECK_RET(dev_alloc(w, 1, 1), -EDQUOT);
	CHECK_RET(dev_alloc(v, 1, 1), -EDQUOT);
	CHECK_COUNTS(low, 1, 1, 1);
	CHECK_COUNTS(top, 2, 2, 2);
	REQUIRE_OK(dev_unmap_self(v, 0, 1));
	CHECK_OK(dev_alloc(w, 1, 1));
}

static void lock_refuses(void)
{
	int top = cg_make("t"), low = cg_make("t/l"), w = win_open_in(low);

	REQUIRE_OK(dev_alloc(w, 0, 2));
	CHECK_OK(cg_write(top, "brumm.lock", "1"));
	CHECK_KNOB(low, "brumm.lock", "0");
	CHECK_RET(dev_alloc(w, 8, 1), -EBUSY);
	CHECK_RET(dev_map(w, 0, 1, SELF, 8, RW), -EBUSY);
	CHECK_EQ(cg_key(top, "brumm.events.local", "locked"), 2);
	CHECK_EQ(cg_key(low, "brumm.events", "locked"), 0);
	/* Giving back is always possible. */
	CHECK_OK(dev_unmap_self(w, 0, 2));
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK_OK(cg_write(top, "brumm.lock", "0"));
	CHECK_OK(dev_alloc(w, 0, 1));
}

static void prices_hold_at_once(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);
	char text[40];

	REQUIRE_OK(dev_alloc(w, 0, 10));
	CHECK_EQ(knob_usage_ns(low), COST(1, 1, 10));
	CHECK_EQ(cg_key(low, "brumm.stat", "pt_ns"), 10 * PRICE_PT);
	CHECK_EQ(cg_key(low, "brumm.price", "own"), 0);
	CHECK_EQ(cg_key(low, "brumm.price", "pt"), PRICE_PT);
	/* From above, one of them only. */
	CHECK_OK(cg_write(top, "brumm.price", "pt 700"));
	CHECK_EQ(knob_usage_ns(low), COST(1, 1, 10) + 10 * 600);
	CHECK_EQ(knob_usage_ns(top), COST(1, 1, 10) + 10 * 600);
	/* Own prices: only here, and limits above keep to theirs. */
	CHECK_OK(cg_write(low, "brumm.price", "lookup 0\nmap 0\ndeep 0\npt 1us\n"));
	CHECK_PRICES(low, 0, 0, 1000, 0, true);
	CHECK_EQ(knob_usage_ns(low), 10000);
	CHECK_EQ(knob_usage_ns(top), COST(1, 1, 10) + 10 * 600);
	CHECK_OK(cg_write(low, "brumm.price", "pt 0"));
	CHECK_EQ(knob_usage_ns(low), 0);
	snprintf(text, sizeof(text), "%lluns", COST(1, 1, 10) + 10 * 600);
	CHECK_OK(cg_write(top, "brumm.max", text));
	CHECK_RET(dev_alloc(w, 16, 1), -EDQUOT);
	CHECK_EQ(cg_key(top, "brumm.events.local", "max"), 1);
	/* The price decides on the next charge. */
	CHECK_OK(cg_write(top, "brumm.price", "lookup 0 map 0 pt 0 deep 0"));
	CHECK_OK(dev_alloc(w, 16, 1));
	CHECK_OK(cg_write(low, "brumm.price", "default"));
	CHECK_PRICES(low, 0, 0, 0, 0, false);
	CHECK_OK(cg_write(top, "brumm.price", PRICES));
	CHECK_EQ(knob_usage_ns(low), COST(2, 2, 11));
	close(w);
	CHECK_EQ(knob_usage_ns(low), 0);
	CHECK_EQ(knob_usage_ns(top), 0);
}

/* Also in parts, and wherever it goes. */
static void derived_twice_is_deep(void)
{
	int cg = priced("t"), w = win_open_in(cg);

	REQUIRE_OK(cg_write(cg, "brumm.price", "deep 1000"));
	REQUIRE_OK(dev_alloc(w, 0, 4));
	REQUIRE_OK(dev_map(w, 0, 4, SELF, 10, ALL));
	CHECK_EQ(cg_key(cg, "brumm.stat", "deep_count"), 0);
	REQUIRE_OK(dev_map(w, 10, 4, SELF, 20, ALL));
	REQUIRE_OK(dev_map(w, 20, 4, SELF, 30, ALL));
	CHECK_EQ(cg_key(cg, "brumm.stat", "deep_count"), 2);
	CHECK_EQ(cg_key(cg, "brumm.stat", "deep_ns"), 2000);
	CHECK_EQ(knob_usage_ns(cg), COST(1, 4, 16) + 2000);
	REQUIRE_OK(dev_unmap_self(w, 31, 1));
	CHECK_EQ(knob_usage_ns(cg), COST(1, 5, 15) + 3000);
	REQUIRE_OK(dev_grant(w, 30, 1, SELF, 40, ALL));
	CHECK_EQ(knob_usage_ns(cg), COST(1, 5, 15) + 3000);
	REQUIRE_OK(dev_unmap(w, 10, 4));
	CHECK_EQ(cg_key(cg, "brumm.stat", "deep_count"), 0);
	CHECK_EQ(knob_usage_ns(cg), COST(1, 2, 8));
	close(w);
}

static void root_prices_reach_all(void)
{
	int root = open(CG_TOP, O_RDONLY | O_DIRECTORY);
	int cg = cg_make("a"), low = cg_make("b/c"), w = win_open_in(low);
	char before[4096], *own;

	REQUIRE(root >= 0);
	REQUIRE(cg_read(root, "brumm.price", before, sizeof(before)) > 0);
	own = strstr(before, "own");
	REQUIRE(own);
	*own = '\0';
	REQUIRE_OK(dev_alloc(w, 0, 3));
	CHECK_OK(cg_write(root, "brumm.price", "lookup 7 map 8 pt 9"));
	CHECK_EQ(knob_usage_ns(low), 7 + 8 + 3 * 9);
	CHECK_EQ(cg_key(cg, "brumm.price", "map"), 8);
	CHECK_EQ(knob_usage_ns(root),
		 7 * cg_counts(root).lookup + 8 * cg_counts(root).map +
		 9 * cg_counts(root).pt);
	CHECK_OK(cg_write(root, "brumm.price", "default"));
	CHECK(cg_key(root, "brumm.price", "map") > 8);
	CHECK_EQ(cg_key(cg, "brumm.price", "map"),
		 cg_key(root, "brumm.price", "map"));
	CHECK_OK(cg_write(root, "brumm.price", before));
}

static void prices_all_or_nothing(void)
{
	static const struct {
		const char *text;
		int err;
	} bad[] = {
		{ "\n", -EINVAL },		{ "map", -EINVAL },
		{ "300", -EINVAL },		{ "map -1", -EINVAL },
		{ "map max", -EINVAL },		{ "map 1 map 2", -EINVAL },
		{ "map 1 pt", -EINVAL },	{ "map 1 node 2", -EINVAL },
		{ "map 1 pt x", -EINVAL },	{ "map 0.5", -EINVAL },
		{ "default 1", -EINVAL },	{ "default default", -EINVAL },
		{ "own 1", -EINVAL },		{ "map=5", -EINVAL },
		{ "map 1 pt 1001s", -ERANGE },
		{ "pt 99999999999999999999", -ERANGE },
	};
	int cg = priced("a");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (!CHECK_RET(cg_write(cg, "brumm.price", bad[i].text),
			       bad[i].err))
			tap_diag("written: %s", bad[i].text);
	CHECK_PRICES(cg, 1000000, 10000, 100, 0, true);
	CHECK_OK(cg_write(cg, "brumm.price", "pt 1.5us\nlookup 1000s"));
	CHECK_PRICES(cg, 1000000000000, 10000, 1500, 0, true);
}

static void huge_usage_saturates(void)
{
	int cg = cg_make("a"), w = win_open_in(cg);
	unsigned int i;

	/* 10^12 ns a page: 2^64 ns are less than 18.5 million pages. */
	CHECK_OK(cg_write(cg, "brumm.price", "lookup 0 map 0 pt 1000s"));
	REQUIRE_OK(dev_alloc(w, 0, 64));
	for (i = 1; i * 64 < 20000000 / 2048; i++)
		CHECK_OK(dev_map(w, 0, 64, SELF, i * 64, R));
	CHECK_EQ(knob_usage_ns(cg), i * 64 * 1000000000000ULL);
	CHECK_OK(cg_write(cg, "brumm.max", "18446744073709551.614"));
	CHECK_OK(dev_alloc(w, i * 64, 1));
	REQUIRE_OK(dev_unmap_self(w, 0, 100000));
	CHECK_EQ(knob_usage_ns(cg), 0);
}

static const struct tap_case cases[] = {
	{ "a fresh cgroup shows defaults", fresh_cgroup },
	{ "the root has no limits", root_has_no_limits },
	{ "times are read exactly and read back", times_are_read_exactly },
	{ "nonsense is refused and changes nothing", nonsense_is_refused },
	{ "the lock is 0 or 1", lock_is_a_bit },
	{ "modes are inherited", modes_are_inherited },
	{ "kinds of the living have prices", living_has_prices },
	{ "the limit is exact", limit_is_exact },
	{ "a limit of 0 allows nothing", zero_allows_nothing },
	{ "a limit below the usage breaks nothing",
	  below_current_breaks_nothing },
	{ "a limit holds for the cgroups below", limit_above_counts },
	{ "a locked group refuses, also those below", lock_refuses },
	{ "prices hold at once, also for those below", prices_hold_at_once },
	{ "what is derived twice is deep", derived_twice_is_deep },
	{ "prices of the root reach everybody", root_prices_reach_all },
	{ "prices are set all or none", prices_all_or_nothing },
	{ "large prices do not overflow", huge_usage_saturates },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
