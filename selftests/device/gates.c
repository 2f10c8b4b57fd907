// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: a gate allows to map into its range and nothing else; GRANT moves a
 * mapping with its children; REPLACE leaves no trace of what stood there.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"
#include "tap.h"

static void gate_opens_range(void)
{
	int a = win_with(8), b = win_open(), g = dev_gate(b, 16, 4, 0);
	uint32_t *p = win_mmap(a, 8, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 32, PROT_READ | PROT_WRITE);

	REQUIRE(g >= 0);
	CHECK(fcntl(g, F_GETFD) & FD_CLOEXEC);
	put(cell(p, 3, 0), 4);
	/* Offsets count from the start of the gate. */
	REQUIRE_OK(dev_map(a, 3, 1, g, 0, R));
	CHECK_EQ(get(cell(q, 16, 0)), 4);
	REQUIRE_OK(dev_map(a, 0, 1, g, 3, R));
	CHECK_RET(dev_map(a, 0, 1, g, 4, R), -EOVERFLOW);
	CHECK_RET(dev_map(a, 0, 2, g, 3, R), -EOVERFLOW);
	CHECK_RET(dev_map(a, 0, 1, g, WINDOW_PAGES - 16, R), -EOVERFLOW);
	CHECK_RET(dev_map(a, 0, 1, g, 0, R), -EEXIST);
	CHECK_EQ(dev_nodes(b), 2);
	close(g);
	CHECK_EQ(dev_nodes(b), 2);
	CHECK_EQ(get(cell(q, 16, 0)), 4);
}

static void gate_does_nothing_else(void)
{
	int w = win_with(1), g = dev_gate(w, 0, 1, 0);
	struct brumm_info info;
	struct brumm_query q;
	uint32_t buf[64];

	REQUIRE(g >= 0);
	CHECK_RET(dev_info(g, &info), -ENOTTY);
	CHECK_RET(dev_alloc(g, 0, 1), -ENOTTY);
	CHECK_RET(dev_gate(g, 0, 1, 0), -ENOTTY);
	CHECK_RET(dev_map(g, 0, 1, w, 5, R), -ENOTTY);
	CHECK_RET(dev_unmap_self(g, 0, 1), -ENOTTY);
	CHECK_RET(dev_query(g, 0, 0, &q), -ENOTTY);
	CHECK(!dev_mmap(g, 0, 1, PROT_READ));
	CHECK(read(g, buf, sizeof(buf)) < 0);
	CHECK(write(g, buf, sizeof(buf)) < 0);
	CHECK_EQ(dev_nodes(w), 1);
}

static void gate_dies_with_window(void)
{
	int a = win_with(1), b = win_open(), g = dev_gate(b, 0, 1, 0);

	REQUIRE(g >= 0);
	close(b);
	CHECK_RET(dev_map(a, 0, 1, g, 0, R), -ESTALE);
	CHECK_EQ(dev_count(a, 0), 0);
	close(g);
}

static void gate_of_own_window(void)
{
	int w = win_with(2), g = dev_gate(w, 1, 4, 0);

	REQUIRE(g >= 0);
	/* Page 1 of the window onto pages 2 .. 3, and onto itself. */
	CHECK_OK(dev_map(w, 0, 2, g, 1, R));
	CHECK_RET(dev_map(w, 1, 1, g, 0, R), -EINVAL);
	CHECK_EQ(dev_nodes(w), 2);
}

static void many_gates(void)
{
	int a = win_with(1), b = win_open(), g[100], i;

	for (i = 0; i < 100; i++) {
		g[i] = dev_gate(b, i, 1, 0);
		REQUIRE(g[i] >= 0);
	}
	for (i = 99; i >= 0; i--)
		CHECK_OK(dev_map(a, 0, 1, g[i], 0, R));
	CHECK_EQ(dev_nodes(b), 100);
	close(b);
	for (i = 0; i < 100; i++)
		CHECK_RET(dev_map(a, 0, 1, g[i], 0, R), -ESTALE);
	CHECK_EQ(dev_count(a, 0), 0);
}

static void grant_moves(void)
{
	int a = win_with(4), b = win_open(), c = win_open(), d = win_open();
	uint32_t *p = win_mmap(a, 4, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 4, PROT_READ | PROT_WRITE);
	uint32_t *r = win_mmap(c, 4, PROT_READ | PROT_WRITE);

	put(p, 1);
	REQUIRE_OK(dev_map(a, 0, 4, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 4, d, 0, R));
	CHECK_SIG(peek(q, NULL), 0);
	REQUIRE_OK(dev_grant(b, 0, 4, c, 0, RWD));
	CHECK_EQ(dev_nodes(b), 0);
	CHECK_SIG(peek(q, NULL), SIGBUS);
	CHECK_SIG(peek(r, NULL), 0);
	CHECK_EQ(dev_depth(c, 0), 1);
	CHECK_EQ(dev_rights(c, 0), RWD);
	CHECK_EQ(dev_count(a, 0), 2);
	/* What was derived from it is derived from it in its new place. */
	CHECK_EQ(dev_rights(d, 0), R);
	CHECK_EQ(dev_count(c, 0), 1);
	REQUIRE_OK(dev_unmap(c, 0, 4));
	CHECK_EQ(dev_nodes(d), 0);
	/* And the owner can still take it back. */
	REQUIRE_OK(dev_unmap(a, 0, 4));
	CHECK_EQ(dev_nodes(c), 0);
	CHECK_SIG(peek(r, NULL), SIGBUS);
}

static void grant_part(void)
{
	int a = win_with(8), b = win_open(), c = win_open(), d = win_open();

	REQUIRE_OK(dev_map(a, 0, 8, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 8, d, 0, R));
	REQUIRE_OK(dev_grant(b, 2, 4, c, 10, RWD));
	CHECK_RET(dev_rights(b, 2), -ENOENT);
	CHECK_RET(dev_rights(b, 5), -ENOENT);
	CHECK_EQ(dev_rights(b, 1), RWD);
	CHECK_EQ(dev_rights(b, 6), RWD);
	CHECK_EQ(dev_nodes(b), 2);
	CHECK_EQ(dev_nodes(c), 1);
	CHECK_EQ(dev_nodes(d), 1);
	/* Children belong to the page they came from, wherever it is. */
	REQUIRE_OK(dev_unmap(c, 10, 1));
	CHECK_RET(dev_rights(d, 2), -ENOENT);
	CHECK_EQ(dev_rights(d, 1), R);
	CHECK_EQ(dev_rights(d, 3), R);
	REQUIRE_OK(dev_unmap(b, 0, 2));
	CHECK_RET(dev_rights(d, 0), -ENOENT);
	CHECK_EQ(dev_rights(d, 3), R);
}

static void grant_root(void)
{
	struct brumm_query q;
	int a = win_with(2), b = win_open();
	uint32_t *p = win_mmap(a, 2, PROT_READ | PROT_WRITE);
	uint32_t *r = win_mmap(b, 2, PROT_READ | PROT_WRITE);

	put(p, 77);
	REQUIRE_OK(dev_grant(a, 0, 2, b, 0, ALL));
	close(a);
	munmap(p, 2 * PAGE);
	CHECK_SIG(peek(r, NULL), 0);
	CHECK_EQ(get(r), 77);
	REQUIRE_OK(dev_query(b, 0, 0, &q));
	CHECK(q.state & BRUMM_NODE_ROOT);
	CHECK_EQ(q.depth, 0);
}

static void grant_within_window(void)
{
	int w = win_with(4);
	uint32_t *p = win_mmap(w, 40, PROT_READ | PROT_WRITE);

	put(cell(p, 1, 0), 11);
	REQUIRE_OK(dev_grant(w, 0, 4, SELF, 20, ALL));
	CHECK_SIG(peek(cell(p, 1, 0), NULL), SIGBUS);
	CHECK_EQ(get(cell(p, 21, 0)), 11);
	CHECK_RET(dev_grant(w, 20, 4, SELF, 22, ALL), -EINVAL);
	CHECK_EQ(dev_nodes(w), 1);
}

static void replace(void)
{
	int a = win_with(4), b = win_open(), c = win_open();
	uint32_t *p = win_mmap(a, 4, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 4, PROT_READ | PROT_WRITE);
	unsigned int i;

	for (i = 0; i < 4; i++)
		put(cell(p, i, 0), i);
	REQUIRE_OK(dev_map(a, 0, 4, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 4, c, 0, R));
	for (i = 0; i < 4; i++)
		CHECK_EQ(get(cell(q, i, 0)), i);
	CHECK_RET(dev_map(a, 3, 1, b, 1, R), -EEXIST);
	REQUIRE_OK(dev_map_flags(a, 3, 1, b, 1, R, BRUMM_MAP_REPLACE));
	CHECK_EQ(get(cell(q, 1, 0)), 3);
	CHECK_EQ(get(cell(q, 2, 0)), 2);
	/* What was derived from the replaced page has gone with it. */
	CHECK_RET(dev_rights(c, 1), -ENOENT);
	CHECK_EQ(dev_rights(c, 0), R);
	CHECK_EQ(dev_rights(c, 2), R);
	/* Over an empty range it is an ordinary MAP. */
	REQUIRE_OK(dev_map_flags(a, 0, 1, b, 100, R, BRUMM_MAP_REPLACE));
	CHECK_EQ(dev_rights(b, 100), R);
	CHECK_EQ(dev_nodes(b), 4);
}

static void replace_refused(void)
{
	int a = win_with(2), b = win_open();
	struct dump before, now;
	int win[] = { a, b };

	REQUIRE_OK(dev_map(a, 0, 2, b, 0, RW));
	dump_take(&before, win, 2);
	/* Refused for reasons that have nothing to do with the target. */
	CHECK_RET(dev_map_flags(b, 0, 1, a, 0, R, BRUMM_MAP_REPLACE), -EPERM);
	CHECK_RET(dev_map_flags(a, 5, 1, b, 0, R, BRUMM_MAP_REPLACE), -ENOENT);
	CHECK_RET(dev_map_flags(a, 1, 2, b, 0, R, BRUMM_MAP_REPLACE), -ENOENT);
	dump_take(&now, win, 2);
	CHECK(dump_same(&before, &now));
}

/* To revoke the target takes the source with it: it is its ancestor. */
static void replace_own_ancestor(void)
{
	int a = win_with(1), b = win_open();

	REQUIRE_OK(dev_map(a, 0, 1, b, 0, RWD));
	CHECK_RET(dev_map_flags(b, 0, 1, a, 0, R, BRUMM_MAP_REPLACE), -ENOENT);
	CHECK_EQ(dev_nodes(b), 0);
	CHECK_EQ(dev_nodes(a), 0);
}

static void grant_replace(void)
{
	int a = win_with(2), b = win_open();
	uint32_t *q = win_mmap(b, 2, PROT_READ | PROT_WRITE);
	uint32_t *p = win_mmap(a, 2, PROT_READ | PROT_WRITE);

	put(cell(p, 0, 0), 1);
	put(cell(p, 1, 0), 2);
	REQUIRE_OK(dev_map(a, 0, 1, b, 0, RWD));
	REQUIRE_OK(dev_map(a, 1, 1, b, 1, RWD));
	CHECK_EQ(get(cell(q, 0, 0)), 1);
	REQUIRE_OK(dev_map_flags(b, 1, 1, SELF, 0, RW,
				 BRUMM_MAP_REPLACE | BRUMM_MAP_GRANT));
	CHECK_EQ(get(cell(q, 0, 0)), 2);
	CHECK_RET(dev_rights(b, 1), -ENOENT);
	CHECK_EQ(dev_rights(b, 0), RW);
	CHECK_EQ(dev_count(a, 0), 1);
}

static const struct tap_case cases[] = {
	{ "a gate opens its range and no page more", gate_opens_range },
	{ "a gate is good for nothing but MAP into it", gate_does_nothing_else },
	{ "a gate is dead when its window is gone", gate_dies_with_window },
	{ "a gate of the own window", gate_of_own_window },
	{ "many gates of one window", many_gates },
	{ "GRANT moves a mapping and keeps what was derived", grant_moves },
	{ "GRANT of a part", grant_part },
	{ "GRANT of a root gives the frames away", grant_root },
	{ "GRANT within a window", grant_within_window },
	{ "REPLACE revokes what stood there", replace },
	{ "REPLACE that is refused has revoked nothing", replace_refused },
	{ "REPLACE of what the source came from", replace_own_ancestor },
	{ "GRANT with REPLACE", grant_replace },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
