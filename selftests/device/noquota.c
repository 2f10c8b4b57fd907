// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: without accounting (make QUOTA=0) the device maps and revokes as ever,
 * nobody pays, and who asks for a sponsor or a budget is told that there is
 * none. Skipped where the module has accounting, but for BRUMM_NOQUOTA=1.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "tap.h"

static void info(void)
{
	struct brumm_info i;

	REQUIRE_OK(dev_info(win_open_in(cg_make("a")), &i));
	CHECK_EQ(i.map_flags, BRUMM_MAP_GRANT | BRUMM_MAP_REPLACE);
	CHECK(!(i.features & BRUMM_FEATURE_CGROUP));
	CHECK_EQ(i.cgroup, 0);
}

static void no_budget(void)
{
	int cg = cg_make("a"), w = win_with(4), to = win_open_in(cg);
	static const char *const files[] = {
		"brumm.max", "brumm.current", "brumm.stat", "brumm.price",
		"brumm.reclaim",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		CHECK(faccessat(cg, files[i], F_OK, 0) == -1);
		CHECK_EQ(errno, ENOENT);
	}
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, cg), -EOPNOTSUPP);
	CHECK_RET(dev_rights(to, 0), -ENOENT);
}

static void nobody_pays(void)
{
	int a = win_open_in(cg_make("a")), b = win_open_in(cg_make("b"));
	struct brumm_query q;

	REQUIRE_OK(dev_alloc(a, 0, 64));
	REQUIRE_OK(dev_map(a, 0, 64, b, 0, RWD));
	REQUIRE_OK(dev_query(b, 0, 0, &q));
	CHECK_EQ(q.sponsor, 0);
	CHECK(!(q.state & BRUMM_NODE_FIRST));
	CHECK_EQ(q.depth, 1);
}

/* The same as with accounting: nodes, pages, and what becomes of an access. */
static void revoked(void)
{
	int a = win_open_in(cg_make("a")), b = win_open(), c = win_open();
	struct brumm_unmap u;
	uint32_t *p, value;

	REQUIRE_OK(dev_alloc(a, 0, 512));
	REQUIRE_OK(dev_map(a, 0, 512, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 256, c, 0, RW));
	p = win_mmap(c, 256, PROT_READ | PROT_WRITE);
	CHECK_SIG(poke(cell(p, 7, 0), 7), 0);
	REQUIRE_OK(dev_unmap_flags(b, 4, 8, 0, 0, &u));
	CHECK_EQ(u.pages, 8);
	CHECK_SIG(peek(cell(p, 7, 0), &value), SIGBUS);
	CHECK_SIG(peek(cell(p, 12, 0), &value), 0);
	CHECK_EQ(dev_nodes(c), 2);
	REQUIRE_OK(dev_unmap_flags(a, 0, 512, 0, 0, &u));
	CHECK_EQ(u.nodes, 3);
	CHECK_EQ(u.pages, 512 + 256 - 8);
	CHECK_EQ(dev_count(a, 0), 0);
}

/* Holes and cuts need no credit; a range that several nodes make up neither. */
static void holes(void)
{
	int a = win_open_in(cg_make("a")), b = win_open();
	struct brumm_unmap u;
	unsigned int i;

	REQUIRE_OK(dev_alloc(a, 0, 1024));
	REQUIRE_OK(dev_map(a, 0, 1024, b, 0, RWD));
	for (i = 1; i < 1024; i += 2)
		REQUIRE_OK(dev_unmap_self(b, i, 1));
	CHECK_EQ(dev_nodes(b), 512);
	REQUIRE_OK(dev_unmap_flags(a, 100, 9, BRUMM_UNMAP_RIGHTS, W, &u));
	CHECK_EQ(dev_rights(b, 100), R | D);
	CHECK_EQ(dev_rights(b, 110), RWD);
	REQUIRE_OK(dev_grant(b, 0, 1, b, 2000, RWD));
	CHECK_EQ(dev_depth(b, 2000), 1);
	REQUIRE_OK(dev_unmap_flags(b, 0, 1024, BRUMM_UNMAP_SELF, 0, &u));
	CHECK_EQ(u.nodes, 511);
	REQUIRE_OK(dev_unmap_flags(a, 0, 1024, BRUMM_UNMAP_SELF, 0, &u));
	CHECK_EQ(u.nodes, 2);
}

static const struct tap_case cases[] = {
	{ "INFO offers no sponsor and no budget", info },
	{ "no brumm.* files, and a named sponsor is refused", no_budget },
	{ "nobody pays", nobody_pays },
	{ "a revoke takes what was derived, and nothing else", revoked },
	{ "holes, fewer rights and grants", holes },
};

static const char *(*needs)(void);

static const char *accounting(void)
{
	const char *why = needs ? needs() : NULL;
	struct brumm_info i;
	int w;

	if (why || getenv("BRUMM_NOQUOTA"))
		return why;
	w = dev_open();
	if (w < 0 || dev_info(w, &i) < 0)
		return "no /dev/brumm";
	close(w);
	return i.features & BRUMM_FEATURE_CGROUP ?
		"the module has accounting" : NULL;
}

int main(int argc, char **argv)
{
	dev_program();
	needs = tap_before_all;
	tap_before_all = accounting;
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
