// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: memory limits are told by ENOMEM to who asks for too much, nobody is
 * killed for it, and nothing is half done.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "tap.h"

static int limited(const char *max)
{
	int cg = cg_make("small");

	REQUIRE_OK(cg_write(cg, "memory.max", max));
	cg_write(cg, "memory.swap.max", "0");
	return cg;
}

static void nobody_killed(int cg)
{
	CHECK_EQ(cg_key(cg, "memory.events", "oom_kill"), 0);
}

static void large_alloc(void *arg)
{
	int w;
	unsigned int i;

	cg_enter(*(int *)arg);
	w = win_open();
	for (i = 0; i < 5; i++) {
		CHECK_RET(dev_alloc(w, 0, 16384), -ENOMEM);
		CHECK_EQ(dev_nodes(w), 0);
	}
	/* What fits still fits. */
	CHECK_OK(dev_alloc(w, 0, 256));
	CHECK_COUNTS(*(int *)arg, 1, 1, 256);
}

static void alloc_over_the_limit(void)
{
	int cg = limited("16M");

	reap(spawn(large_alloc, &cg));
	nobody_killed(cg);
}

/*
 * Only the device is to need memory of the cgroup: a page fault of the test
 * itself, or a page for the pipe that it writes to, would be a reason to kill it.
 */
static void enter_resident(int cg)
{
	REQUIRE(!mlockall(MCL_CURRENT));
	cg_enter(cg);
}

/* Frames are taken up to the limit, and given back whole. */
static void fill_and_empty(void *arg)
{
	uint64_t at = 0;
	int w, ret, round;

	enter_resident(*(int *)arg);
	w = win_open();
	for (round = 0; round < 3; round++) {
		for (at = 0; !(ret = dev_alloc(w, at, 64)); at += 64)
			;
		CHECK_RET(ret, -ENOMEM);
		CHECK(at > 1024);
		CHECK_EQ(dev_nodes(w), at / 64);
		REQUIRE_OK(dev_unmap_self(w, 0, at));
	}
}

static void alloc_up_to_the_limit(void)
{
	int cg = limited("16M");

	reap(spawn(fill_and_empty, &cg));
	nobody_killed(cg);
}

/* Nodes are memory as well; whoever maps pays for it. */
static void many_nodes(void *arg)
{
	int src = win_with(1), to = win_open(), ret;
	struct rlimit none = { 0, 0 };
	uint64_t i;

	setrlimit(RLIMIT_CORE, &none);
	enter_resident(*(int *)arg);
	for (i = 0; !(ret = dev_map(src, 0, 1, to, i, R)) && i < 1000000; i++)
		;
	CHECK_RET(ret, -ENOMEM);
	CHECK_EQ(dev_count(src, 0), i);
	CHECK_EQ(dev_nodes(to), i);
	/* Taking back needs no memory. */
	CHECK_OK(dev_unmap(src, 0, 1));
	CHECK_EQ(dev_nodes(to), 0);
	tap_diag("%llu nodes in 3 MiB", (unsigned long long)i);
}

static void nodes_over_the_limit(void)
{
	int cg = limited("3M");

	reap(spawn(many_nodes, &cg));
	nobody_killed(cg);
}

/* Holes need nodes, over the limit too: taking back is not refused. */
static void holes(void *arg)
{
	int src = win_open(), to = win_open(), pages = 20000, i;

	REQUIRE_OK(dev_alloc(src, 0, pages));
	REQUIRE_OK(dev_map(src, 0, pages, to, 0, RW));
	enter_resident(*(int *)arg);
	for (i = 1; i < pages; i += 2) {
		int ret = dev_unmap(src, i, 1);

		if (!CHECK_OK(ret))
			break;
	}
	CHECK_EQ(dev_nodes(to), pages / 2);
}

static void holes_over_the_limit(void)
{
	int cg = limited("1M");

	reap(spawn(holes, &cg));
	nobody_killed(cg);
}

static void huge_lengths(void)
{
	int cg = limited("32M"), w;

	cg_enter(cg);
	w = win_open();
	/* More than there is in any machine: refused soon, not tried for long. */
	CHECK_RET(dev_alloc(w, 0, WINDOW_PAGES), -ENOMEM);
	CHECK_RET(dev_alloc(w, 0, WINDOW_PAGES / 2), -ENOMEM);
	CHECK_RET(dev_alloc(w, 0, 1 << 28), -ENOMEM);
	CHECK_RET(dev_alloc(w, 0, 1 << 20), -ENOMEM);
	CHECK_EQ(dev_nodes(w), 0);
	cg_leave();
	nobody_killed(cg);
}

static void out_of_descriptors(void)
{
	struct rlimit lim = { 40, 40 };
	int w = win_open(), got = 0, ret;

	REQUIRE(!setrlimit(RLIMIT_NOFILE, &lim));
	while ((ret = dev_gate(w, 0, 1, 0)) >= 0)
		got++;
	CHECK_RET(ret, -EMFILE);
	CHECK(got > 20);
	CHECK_RET(dev_open(), -EMFILE);
}

static const struct tap_case cases[] = {
	{ "ALLOC over memory.max: ENOMEM, nobody is killed",
	  alloc_over_the_limit },
	{ "ALLOC up to memory.max and back", alloc_up_to_the_limit },
	{ "MAP of more nodes than memory.max allows", nodes_over_the_limit, 300 },
	{ "UNMAP makes holes beyond memory.max", holes_over_the_limit, 300 },
	{ "lengths beyond all reason", huge_lengths },
	{ "no descriptor is left", out_of_descriptors },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
