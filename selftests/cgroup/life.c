// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: a removed cgroup is charged to those above it for as long as what it
 * sponsored is there, and then leaves no trace; it is never kept dying by us.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

#define PATIENCE	500	/* times 20 ms */

static int root_dir(void)
{
	int fd = open(CG_TOP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	return fd;
}

static int64_t dying(void)
{
	int root = root_dir();
	int64_t nr = cg_key(root, "cgroup.stat", "nr_dying_descendants");

	close(root);
	return nr;
}

/* Cgroups die some time after their removal. */
static bool dying_is(int64_t want)
{
	int tries;

	for (tries = 0; tries < PATIENCE; tries++) {
		if (dying() <= want)
			return true;
		sleep_us(20000);
	}
	tap_diag("%lld dying cgroups, %lld before", (long long)dying(),
		 (long long)want);
	return false;
}

static void charges_outlive_the_cgroup(void)
{
	int64_t before = dying();
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);

	/* By the root: the memory is nobody's, only the clean-up is. */
	REQUIRE_OK(dev_alloc(w, 0, 7));
	close(low);
	cg_remove("t/l");
	CHECK(dying_is(before));
	CHECK_COUNTS(top, 1, 1, 7);
	CHECK_EQ(knob_usage_ns(top), COST(1, 1, 7));
	/* And what comes after. */
	REQUIRE_OK(dev_map(w, 0, 7, SELF, 8, RW));
	CHECK_COUNTS(top, 1, 2, 14);
	close(w);
	CHECK_COUNTS(top, 0, 0, 0);
	/* A new one of this name is another one. */
	low = cg_make("t/l");
	CHECK_COUNTS(low, 0, 0, 0);
}

static void limits_above_hold_for_the_removed(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);
	char text[40];

	REQUIRE_OK(dev_alloc(w, 0, 1));
	close(low);
	cg_remove("t/l");
	snprintf(text, sizeof(text), "%lluns", COST(1, 1, 1));
	REQUIRE_OK(cg_write(top, "brumm.max", text));
	CHECK_RET(dev_alloc(w, 1, 1), -EDQUOT);
	CHECK_EQ(cg_key(top, "brumm.events.local", "max"), 1);
}

static void reclaim_reaches_the_removed(void)
{
	int top = priced("t"), low = cg_make("t/m/l"), w = win_open_in(low);

	REQUIRE_OK(dev_alloc(w, 0, 7));
	close(low);
	cg_remove("t/m/l");
	cg_remove("t/m");
	CHECK_COUNTS(top, 1, 1, 7);
	CHECK_OK(cg_write(top, "brumm.reclaim", "1"));
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK_EQ(dev_nodes(w), 0);
	/* The window still belongs to a cgroup that is gone. */
	CHECK_OK(dev_alloc(w, 0, 2));
	CHECK_COUNTS(top, 1, 1, 2);
}

static void many_come_and_go(void)
{
	int64_t before = dying();
	int top = priced("t"), w[40], cg, i, round;
	char name[40];

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "t/%d/x", i);
			cg = cg_make(name);
			w[i] = win_open_in(cg);
			REQUIRE_OK(dev_alloc(w[i], 0, 3));
			close(cg);
		}
		for (i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "t/%d/x", i);
			cg_remove(name);
			snprintf(name, sizeof(name), "t/%d", i);
			cg_remove(name);
			if (i % 2)
				close(w[i]);
		}
		CHECK(dying_is(before));
		CHECK_COUNTS(top, 20, 20, 60);
		for (i = 0; i < 40; i += 2)
			close(w[i]);
		CHECK_COUNTS(top, 0, 0, 0);
	}
}

/* As memory.max is forgotten then. */
static void controller_comes_back(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low), v;

	REQUIRE_OK(cg_write(low, "brumm.max", "5s"));
	REQUIRE_OK(dev_alloc(w, 0, 2));
	REQUIRE_OK(cg_write(top, "cgroup.subtree_control", "-memory"));
	CHECK(faccessat(low, "brumm.max", F_OK, 0));
	/* A window opened meanwhile belongs to the one above. */
	v = win_open_in(low);
	REQUIRE_OK(dev_alloc(v, 0, 1));
	CHECK_COUNTS(top, 2, 2, 3);
	close(v);
	REQUIRE_OK(cg_write(top, "cgroup.subtree_control", "+memory"));
	CHECK_KNOB(low, "brumm.max", "max");
	CHECK_COUNTS(low, 0, 0, 0);
	CHECK_COUNTS(top, 1, 1, 2);
	v = win_open_in(low);
	REQUIRE_OK(dev_alloc(v, 0, 1));
	CHECK_COUNTS(low, 1, 1, 1);
	CHECK_COUNTS(top, 2, 2, 3);
	close(w);
	CHECK_COUNTS(low, 1, 1, 1);
	CHECK_COUNTS(top, 1, 1, 1);
}

static void churn(void *arg)
{
	unsigned int id = (uintptr_t)arg, i;
	char name[40];
	int cg, w;

	for (i = 0; i < amount(60); i++) {
		snprintf(name, sizeof(name), "t/%u-%u", id, i % 3);
		cg = cg_make(name);
		w = win_open_in(cg);
		REQUIRE_OK(dev_alloc(w, 0, 3));
		if (i & 1)
			close(w);
		cg_remove(name);
		close(cg);
		if (!(i & 1))
			close(w);
	}
}

static void removal_races_with_use(void)
{
	int64_t before = dying();
	int top = priced("t");
	pid_t pid[4];
	uintptr_t i;

	for (i = 0; i < 4; i++)
		pid[i] = spawn(churn, (void *)i);
	for (i = 0; i < 4; i++)
		reap(pid[i]);
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK(dying_is(before));
}

static int unload(void)
{
	return syscall(SYS_delete_module, "brumm", O_NONBLOCK) ? -errno : 0;
}

/* Only refusals: whoever runs this wants to keep the module. */
static void unload_is_refused(void)
{
	int w = win_open(), gate;
	void *p;

	CHECK_RET(unload(), -EWOULDBLOCK);
	REQUIRE_OK(dev_alloc(w, 0, 1));
	p = win_mmap(w, 1, PROT_READ);
	gate = dev_gate(w, 0, 1, 0);
	REQUIRE(gate >= 0);
	close(w);
	CHECK_RET(unload(), -EWOULDBLOCK);
	CHECK(!munmap(p, PAGE));
	CHECK_RET(unload(), -EWOULDBLOCK);
	CHECK_EQ(module_refs(), 1);
	close(gate);
}

static const struct tap_case cases[] = {
	{ "charges outlive the cgroup, above", charges_outlive_the_cgroup },
	{ "limits above hold for removed cgroups",
	  limits_above_hold_for_the_removed },
	{ "a reclaim above reaches removed cgroups",
	  reclaim_reaches_the_removed },
	{ "many cgroups come and go", many_come_and_go },
	{ "a controller that comes back starts anew", controller_comes_back },
	{ "removal races with use", removal_races_with_use },
	{ "unloading is refused while a window is there", unload_is_refused },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
