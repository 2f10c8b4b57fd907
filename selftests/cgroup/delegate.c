// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: who is given a subtree, by ownership or with a cgroup namespace, sets
 * the limits of what he makes in it and never those of the subtree itself.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

#define SOMEBODY	65534

static const char *const writable[][2] = {
	{ "brumm.max", "1s" },		{ "brumm.high", "1s" },
	{ "brumm.lock", "0" },		{ "brumm.price", "map 5" },
	{ "brumm.peak", "1" },		{ "brumm.reclaim", "1" },
	{ "brumm.mode", "off" },
};

/* As systemd and the kernel's documentation have it. */
static void give(int cg)
{
	static const char *const files[] = {
		"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		REQUIRE(!fchownat(cg, files[i], SOMEBODY, SOMEBODY,
				  AT_EMPTY_PATH));
}

static void become_somebody(void)
{
	REQUIRE(!setgroups(0, NULL));
	REQUIRE(!setresgid(SOMEBODY, SOMEBODY, SOMEBODY));
	REQUIRE(!setresuid(SOMEBODY, SOMEBODY, SOMEBODY));
}

static void check_writes(int cg, int err)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(writable); i++)
		if (!CHECK_RET(cg_write(cg, writable[i][0], writable[i][1]),
			       err))
			tap_diag("%s", writable[i][0]);
}

/* A child of @cg, and the caller in a second one. */
static int settle(int cg)
{
	int child;

	REQUIRE(!mkdirat(cg, "child", 0755));
	REQUIRE(!mkdirat(cg, "self", 0755));
	child = openat(cg, "self", O_RDONLY | O_DIRECTORY);
	REQUIRE(child >= 0);
	cg_enter(child);
	REQUIRE_OK(cg_write(cg, "cgroup.subtree_control", "+memory"));
	child = openat(cg, "child", O_RDONLY | O_DIRECTORY);
	REQUIRE(child >= 0);
	return child;
}

static void by_ownership(void)
{
	int cg = cg_make("d"), child;

	REQUIRE_OK(cg_write(cg, "brumm.max", "5s"));
	give(cg);
	cg_enter(cg);
	become_somebody();
	child = settle(cg);
	check_writes(cg, -EACCES);
	check_writes(child, 0);
	CHECK_KNOB(child, "brumm.max", "1000000");
	CHECK_KNOB(cg, "brumm.max", "5000000");
	CHECK_EQ(cg_key(cg, "brumm.price", "own"), 0);
}

/* Even the superuser of the namespace, and even if the files were his. */
static void by_namespace(void)
{
	int cg = cg_make("d"), child;
	unsigned int i;

	/* As systemd mounts it. */
	REQUIRE(!mount(NULL, CG_TOP, NULL, MS_REMOUNT, "nsdelegate"));
	REQUIRE_OK(cg_write(cg, "brumm.max", "5s"));
	give(cg);
	for (i = 0; i < ARRAY_SIZE(writable); i++)
		REQUIRE(!fchownat(cg, writable[i][0], SOMEBODY, SOMEBODY, 0));
	cg_enter(cg);
	become_somebody();
	REQUIRE(!unshare(CLONE_NEWUSER | CLONE_NEWCGROUP | CLONE_NEWNS));
	/* The limit is of who opened the file: it must be opened in here. */
	child = settle(cg);
	check_writes(cg, -EPERM);
	check_writes(child, 0);
	CHECK_KNOB(child, "brumm.max", "1000000");
	CHECK_KNOB(cg, "brumm.max", "5000000");
	/* Reading is fine. */
	CHECK_EQ(cg_key(cg, "brumm.stat", "usage_ns"), 0);
	CHECK_EQ(cg_key(cg, "brumm.events", "max"), 0);
}

/* Nothing that he may write lets him get more than he was given. */
static void no_way_around(void)
{
	int cg = priced("d"), child, w;
	char text[40];

	snprintf(text, sizeof(text), "%lluns", COST(2, 2, 2));
	REQUIRE_OK(cg_write(cg, "brumm.max", text));
	give(cg);
	REQUIRE(!chmod(BRUMM_DEVICE, 0666));
	cg_enter(cg);
	become_somebody();
	child = settle(cg);
	CHECK_OK(cg_write(child, "brumm.max", "max"));
	CHECK_OK(cg_write(child, "brumm.price", "lookup 0 map 0 pt 0"));
	cg_enter(child);
	w = win_open();
	CHECK_OK(dev_alloc(w, 0, 1));
	CHECK_OK(dev_alloc(w, 1, 1));
	CHECK_RET(dev_alloc(w, 2, 1), -EDQUOT);
	CHECK_EQ(knob_usage_ns(child), 0);
	CHECK_EQ(knob_usage_ns(cg), COST(2, 2, 2));
}

/* An owner below @cg writes @mode. */
static int owner_writes_mode(const char *mode)
{
	int cg = priced("d");

	give(cg);
	cg_enter(cg);
	become_somebody();
	return cg_write(settle(cg), "brumm.mode", mode);
}

/* That costs all others, too. */
static void not_the_first(void)
{
	CHECK_RET(owner_writes_mode("audit"), -EPERM);
}

static void not_the_last(void)
{
	REQUIRE_OK(cg_write(cg_make("e"), "brumm.mode", "audit"));
	CHECK_OK(owner_writes_mode("enforce"));
}

static const struct tap_case cases[] = {
	{ "an owner sets limits below, not here", by_ownership },
	{ "so does the superuser of a cgroup namespace", by_namespace },
	{ "prices and limits below are no way around", no_way_around },
	{ "an owner cannot have tasks followed", not_the_first },
	{ "where they are followed, he says what limits mean", not_the_last },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
