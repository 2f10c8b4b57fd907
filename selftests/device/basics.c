// SPDX-License-Identifier: GPL-2.0
/* Proves: a window does what the header says of it when all goes well. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "tap.h"

static void info(void)
{
	struct brumm_info i;
	int cg = cg_make("a");
	int w = win_open(), in = win_open_in(cg);

	REQUIRE_OK(dev_info(w, &i));
	CHECK_EQ(i.size, sizeof(i));
	CHECK_EQ(i.version, BRUMM_VERSION);
	CHECK_EQ(i.page_size, sysconf(_SC_PAGESIZE));
	CHECK_EQ(i.max_depth, BRUMM_MAX_DEPTH);
	CHECK(i.batch > 0);
	CHECK(i.events > 0);
	CHECK_EQ(i.map_flags, BRUMM_MAP_GRANT | BRUMM_MAP_REPLACE |
		 BRUMM_MAP_SPONSOR);
	CHECK_EQ(i.unmap_flags, BRUMM_UNMAP_SELF | BRUMM_UNMAP_RIGHTS);
	CHECK_EQ(i.rights, BRUMM_RIGHTS_ALL);
	CHECK(i.features & BRUMM_FEATURE_CGROUP);
	CHECK_EQ(i.cgroup, 0);
	REQUIRE_OK(dev_info(in, &i));
	CHECK_EQ(i.cgroup, cg_id(cg));
}

static void alloc_is_zeroed(void)
{
	int w = win_open();
	uint32_t *p, dirty = 0;
	unsigned int i;

	/* Frames that somebody has written before are the interesting ones. */
	REQUIRE_OK(dev_alloc(w, 0, 512));
	p = win_mmap(w, 512, PROT_READ | PROT_WRITE);
	memset(p, 0xa5, 512 * PAGE);
	REQUIRE_OK(dev_unmap_self(w, 0, 512));
	REQUIRE_OK(dev_alloc(w, 0, 512));
	for (i = 0; i < 512 * PAGE / sizeof(*p); i++)
		dirty |= p[i];
	CHECK_EQ(dirty, 0);
	for (i = 0; i < 512; i++)
		put(cell(p, i, 3), i);
	for (i = 0; i < 512; i++)
		CHECK_EQ(get(cell(p, i, 3)), i);
}

static void alloc_is_a_root(void)
{
	struct brumm_query q;
	int w = win_open();

	REQUIRE_OK(dev_alloc(w, 10, 6));
	REQUIRE_OK(dev_query(w, 12, BRUMM_QUERY_COUNT, &q));
	CHECK_EQ(q.offset, 10 * PAGE);
	CHECK_EQ(q.length, 6 * PAGE);
	CHECK_EQ(q.rights, ALL);
	CHECK_EQ(q.depth, 0);
	CHECK(q.state & BRUMM_NODE_ROOT);
	CHECK_EQ(q.descendants, 0);
	CHECK_EQ(q.sponsor, 0);
	CHECK_RET(dev_query(w, 9, 0, &q), -ENOENT);
	CHECK_RET(dev_query(w, 16, 0, &q), -ENOENT);
}

static void map_to_own_window(void)
{
	int w = win_with(4);
	uint32_t *p = win_mmap(w, 100, PROT_READ | PROT_WRITE);

	REQUIRE_OK(dev_map(w, 1, 2, SELF, 50, RWD));
	put(cell(p, 1, 0), 17);
	CHECK_EQ(get(cell(p, 50, 0)), 17);
	put(cell(p, 51, 7), 18);
	CHECK_EQ(get(cell(p, 2, 7)), 18);
	CHECK_EQ(dev_depth(w, 50), 1);
	CHECK_EQ(dev_count(w, 1), 1);
	CHECK_SIG(peek(cell(p, 52, 0), NULL), SIGBUS);
	/* Its own descriptor is the same window. */
	REQUIRE_OK(dev_map(w, 50, 1, w, 60, R));
	CHECK_EQ(get(cell(p, 60, 0)), 17);
	CHECK_EQ(dev_depth(w, 60), 2);
}

static void map_to_other_window(void)
{
	int a = win_with(4), b = win_open();
	uint32_t *p = win_mmap(a, 4, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 4, PROT_READ | PROT_WRITE);

	put(cell(p, 3, 0), 5);
	CHECK_SIG(peek(cell(q, 0, 0), NULL), SIGBUS);
	REQUIRE_OK(dev_map(a, 3, 1, b, 0, RW));
	CHECK_EQ(get(cell(q, 0, 0)), 5);
	put(cell(q, 0, 0), 6);
	CHECK_EQ(get(cell(p, 3, 0)), 6);
	CHECK_EQ(dev_rights(b, 0), RW);
	CHECK_EQ(dev_nodes(b), 1);
	REQUIRE_OK(dev_unmap(a, 0, 4));
	CHECK_SIG(peek(cell(q, 0, 0), NULL), SIGBUS);
	CHECK_SIG(poke(cell(q, 0, 0), 1), SIGBUS);
	CHECK_EQ(dev_nodes(b), 0);
	CHECK_EQ(get(cell(p, 3, 0)), 6);
}

struct pair {
	int from, to, sock[2];
	uint32_t step;
};

/* The other process has the window by SCM_RIGHTS only. */
static void receiver(void *arg)
{
	struct pair *s = arg;
	int w = win_open();
	uint32_t *p = win_mmap(w, 8, PROT_READ | PROT_WRITE);

	fd_send(s->sock[1], w);
	await(&s->step, 1);
	CHECK_EQ(get(cell(p, 5, 0)), 71);
	put(cell(p, 5, 1), 72);
	put(&s->step, 2);
	await(&s->step, 3);
	CHECK_SIG(peek(cell(p, 5, 0), NULL), SIGBUS);
	put(&s->step, 4);
}

static void map_to_other_process(void)
{
	struct pair *s = shared(sizeof(*s));
	int w = win_with(2), to;
	uint32_t *p = win_mmap(w, 2, PROT_READ | PROT_WRITE);
	pid_t child;

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, s->sock));
	child = spawn(receiver, s);
	to = fd_recv(s->sock[0]);
	put(cell(p, 0, 0), 71);
	REQUIRE_OK(dev_map(w, 0, 1, to, 5, RW));
	put(&s->step, 1);
	await(&s->step, 2);
	CHECK_EQ(get(cell(p, 0, 1)), 72);
	REQUIRE_OK(dev_unmap(w, 0, 1));
	put(&s->step, 3);
	await(&s->step, 4);
	reap(child);
}

static void map_spans_mappings(void)
{
	int a = win_open(), b = win_open();
	uint32_t *p, *q;
	unsigned int i;

	/* Two allocations side by side are two trees, and map in one go. */
	REQUIRE_OK(dev_alloc(a, 0, 2));
	REQUIRE_OK(dev_alloc(a, 2, 2));
	p = win_mmap(a, 4, PROT_READ | PROT_WRITE);
	q = win_mmap(b, 3, PROT_READ);
	for (i = 0; i < 4; i++)
		put(cell(p, i, 0), 30 + i);
	REQUIRE_OK(dev_map(a, 1, 3, b, 0, R));
	for (i = 0; i < 3; i++)
		CHECK_EQ(get(cell(q, i, 0)), 31 + i);
	CHECK_EQ(dev_nodes(b), 2);
	CHECK_EQ(dev_count(a, 0), 1);
	CHECK_EQ(dev_count(a, 2), 1);
}

static void unmap_variants(void)
{
	struct brumm_unmap u;
	int a = win_with(8), b = win_open(), c = win_open();

	REQUIRE_OK(dev_map(a, 0, 8, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 2, 4, c, 0, R));
	/* What was derived goes, the range itself stays. */
	REQUIRE_OK(dev_unmap_flags(b, 0, 8, 0, 0, &u));
	CHECK_EQ(u.nodes, 1);
	CHECK_EQ(u.pages, 4);
	CHECK_EQ(dev_nodes(b), 1);
	CHECK_EQ(dev_nodes(c), 0);
	/* Gaps are fine, and so is a range with nothing in it. */
	REQUIRE_OK(dev_unmap_flags(c, 0, 1000, BRUMM_UNMAP_SELF, 0, &u));
	CHECK_EQ(u.nodes, 0);
	CHECK_EQ(u.pages, 0);
	REQUIRE_OK(dev_map(b, 2, 4, c, 0, R));
	/* With SELF everything, and only that. */
	REQUIRE_OK(dev_unmap_flags(b, 0, 8, BRUMM_UNMAP_SELF, 0, &u));
	CHECK_EQ(u.nodes, 2);
	CHECK_EQ(u.pages, 12);
	CHECK_EQ(dev_nodes(a), 1);
	CHECK_EQ(dev_nodes(b), 0);
	CHECK_EQ(dev_nodes(c), 0);
	REQUIRE_OK(dev_unmap_flags(a, 0, 8, BRUMM_UNMAP_SELF, 0, &u));
	CHECK_EQ(dev_nodes(a), 0);
}

static void unmap_part(void)
{
	struct brumm_query q;
	int a = win_with(8), b = win_open();
	uint32_t *p = win_mmap(b, 8, PROT_READ);

	REQUIRE_OK(dev_map(a, 0, 8, b, 0, R));
	REQUIRE_OK(dev_unmap(a, 3, 2));
	CHECK_EQ(dev_nodes(a), 1);
	CHECK_EQ(dev_nodes(b), 2);
	CHECK_EQ(dev_count(a, 0), 2);
	REQUIRE_OK(dev_query(b, 7, 0, &q));
	CHECK_EQ(q.offset, 5 * PAGE);
	CHECK_EQ(q.length, 3 * PAGE);
	CHECK_SIG(peek(cell(p, 2, 0), NULL), 0);
	CHECK_SIG(peek(cell(p, 3, 0), NULL), SIGBUS);
	CHECK_SIG(peek(cell(p, 4, 0), NULL), SIGBUS);
	CHECK_SIG(peek(cell(p, 5, 0), NULL), 0);
	/* The hole can be filled again. */
	REQUIRE_OK(dev_map(a, 3, 2, b, 3, R));
	CHECK_EQ(dev_nodes(b), 3);
	CHECK_SIG(peek(cell(p, 3, 0), NULL), 0);
}

static void query_next(void)
{
	struct brumm_query q;
	int w = win_open();

	CHECK_RET(dev_query(w, 0, BRUMM_QUERY_NEXT, &q), -ENOENT);
	REQUIRE_OK(dev_alloc(w, 5, 2));
	REQUIRE_OK(dev_alloc(w, WINDOW_PAGES - 1, 1));
	REQUIRE_OK(dev_query(w, 0, BRUMM_QUERY_NEXT, &q));
	CHECK_EQ(q.offset, 5 * PAGE);
	REQUIRE_OK(dev_query(w, 6, BRUMM_QUERY_NEXT, &q));
	CHECK_EQ(q.offset, 5 * PAGE);
	REQUIRE_OK(dev_query(w, 7, BRUMM_QUERY_NEXT, &q));
	CHECK_EQ(q.offset, BRUMM_WINDOW_BYTES - PAGE);
	CHECK_EQ(q.length, PAGE);
	CHECK_EQ(dev_nodes(w), 2);
}

static void mmap_any_part(void)
{
	int w = win_open();
	uint32_t *p;

	REQUIRE_OK(dev_alloc(w, 1ULL << 30, 2));
	p = win_mmap_at(w, (1ULL << 30) + 1, 2, PROT_READ | PROT_WRITE);
	CHECK_SIG(poke(cell(p, 0, 0), 9), 0);
	CHECK_SIG(poke(cell(p, 1, 0), 9), SIGBUS);
	/* After it is gone there can be another one. */
	REQUIRE(!munmap(p, 2 * PAGE));
	p = win_mmap_at(w, 1ULL << 30, 2, PROT_READ);
	CHECK_EQ(get(cell(p, 1, 0)), 9);
}

/* Release: the mappings in it go, and what was derived from them. */
static void close_revokes(void)
{
	int a = win_with(4), b = win_open(), c = win_open();
	uint32_t *p = win_mmap(c, 4, PROT_READ);

	REQUIRE_OK(dev_map(a, 0, 4, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 4, c, 0, R));
	CHECK_SIG(peek(p, NULL), 0);
	close(b);
	CHECK_EQ(dev_nodes(c), 0);
	CHECK_EQ(dev_count(a, 0), 0);
	CHECK_SIG(peek(p, NULL), SIGBUS);
}

static void mmap_keeps_window(void)
{
	int a = win_with(1), b = win_open();
	uint32_t *p = win_mmap(b, 1, PROT_READ);

	REQUIRE_OK(dev_map(a, 0, 1, b, 0, R));
	close(b);
	CHECK_EQ(dev_count(a, 0), 1);
	CHECK_SIG(peek(p, NULL), 0);
	munmap(p, PAGE);
	CHECK_EQ(dev_count(a, 0), 0);
}

static void root_unmapped_frees_memory(void)
{
	int cg = cg_make("a");
	int w = win_open();
	int64_t before, with;

	cg_enter(cg);
	before = cg_number(cg, "memory.current");
	REQUIRE_OK(dev_alloc(w, 0, 2048));
	with = cg_number(cg, "memory.current");
	CHECK(with - before >= (int64_t)(2048 * PAGE));
	REQUIRE_OK(dev_unmap_self(w, 0, 2048));
	CHECK(cg_number(cg, "memory.current") - before < 1 << 20);
	cg_leave();
}

static const struct tap_case cases[] = {
	{ "INFO tells version, limits and the window's cgroup", info },
	{ "ALLOC gives zeroed frames that keep what is written", alloc_is_zeroed },
	{ "ALLOC makes one root node with all rights", alloc_is_a_root },
	{ "MAP within a window shares the frame", map_to_own_window },
	{ "MAP to another window shares it until UNMAP", map_to_other_window },
	{ "MAP to a window of another process", map_to_other_process },
	{ "MAP covers several mappings at once", map_spans_mappings },
	{ "UNMAP with and without SELF, over gaps", unmap_variants },
	{ "UNMAP of a part leaves the rest", unmap_part },
	{ "QUERY NEXT finds every mapping up to the last page", query_next },
	{ "mmap shows any part, and another one later", mmap_any_part },
	{ "closing a window revokes all that came from it", close_revokes },
	{ "a window lives as long as it is mmapped", mmap_keeps_window },
	{ "frames are charged to memcg and freed with their root",
	  root_unmapped_frees_memory },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
