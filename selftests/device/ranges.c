// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: a node is a range, whatever is cut out of it, and what is charged is
 * what an independent model says, after every step.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "model.h"
#include "rng.h"
#include "tap.h"

/* Pages of 1 GiB, or of what the machine can spare. */
static uint64_t large_range(void)
{
	uint64_t pages = tap_pick(65536, 262144);
	struct sysinfo si;

	sysinfo(&si);
	while (pages * PAGE > (uint64_t)si.freeram * si.mem_unit / 2)
		pages /= 2;
	if (pages != tap_pick(65536, 262144))
		tap_diag("memory for %llu MiB only",
			 (unsigned long long)(pages / 256));
	return pages;
}

static void large_is_one_node(void)
{
	int a = cg_make("a"), b = cg_make("b");
	int src = win_open_in(a), to = win_open_in(b);
	uint64_t pages = large_range();
	struct brumm_unmap u;
	uint32_t *p;

	REQUIRE_OK(dev_alloc(src, 0, pages));
	CHECK_COUNTS(a, 1, 1, pages);
	REQUIRE_OK(dev_map(src, 0, pages, to, 0, RWD));
	CHECK_EQ(dev_count(src, 0), 1);
	CHECK_EQ(dev_nodes(src), 1);
	CHECK_EQ(dev_nodes(to), 1);
	CHECK_COUNTS(a, 1, 2, 2 * pages);
	p = win_mmap(to, pages, PROT_READ | PROT_WRITE);
	CHECK_SIG(poke(cell(p, 0, 0), 1), 0);
	CHECK_SIG(poke(cell(p, pages - 1, 0), 1), 0);
	REQUIRE_OK(dev_unmap_flags(src, 0, pages, 0, 0, &u));
	CHECK_EQ(u.nodes, 1);
	CHECK_EQ(u.pages, pages);
	CHECK_SIG(peek(cell(p, 0, 0), NULL), SIGBUS);
	CHECK_SIG(peek(cell(p, pages - 1, 0), NULL), SIGBUS);
	CHECK_COUNTS(a, 1, 1, pages);
	CHECK_COUNTS(b, 0, 0, 0);
}

static void every_second_page(void)
{
	int a = cg_make("a"), src = win_open_in(a), to = win_open();
	uint64_t pages = tap_pick(4096, 65536), i, step = pages / 64;
	uint32_t *p = win_mmap(to, pages, PROT_READ);

	REQUIRE_OK(dev_alloc(src, 0, pages));
	REQUIRE_OK(dev_map(src, 0, pages, to, 0, R));
	for (i = 0; i < pages; i += step)
		CHECK_SIG(peek(cell(p, i, 0), NULL), 0);
	for (i = 0; i < pages; i += 2) {
		REQUIRE_OK(dev_unmap(src, i, 1));
		if (i % step == 0)
			CHECK_COUNTS(a, 1, i / 2 + 2,
				     2 * pages - (i / 2 + 1));
	}
	CHECK_EQ(dev_nodes(to), pages / 2);
	CHECK_EQ(dev_count(src, 0), pages / 2);
	CHECK_EQ(dev_nodes(src), 1);
	for (i = 0; i < pages; i += step) {
		CHECK_SIG(peek(cell(p, i, 0), NULL), SIGBUS);
		CHECK_SIG(peek(cell(p, i + 1, 0), NULL), 0);
	}
	/* The rest in one go. */
	REQUIRE_OK(dev_unmap(src, 0, pages));
	CHECK_EQ(dev_nodes(to), 0);
	CHECK_COUNTS(a, 1, 1, pages);
}

/* A range, and in it a tree of three levels: holes go through all of them. */
static void holes_through_levels(void)
{
	const uint8_t group[] = { 1, 2, 0, 2 };
	int a = cg_make("a"), b = cg_make("b"), win[4];
	struct model m;
	uint32_t i;

	win[0] = win_open_in(a);
	win[1] = win_open_in(b);
	win[2] = win_open();
	win[3] = win_open_in(b);
	model_init(&m, 4, 32, win, group);
	model_payer(&m, a);
	model_payer(&m, b);
	REQUIRE_OK(model_alloc(&m, 0, 0, 32));
	REQUIRE_OK(model_map(&m, 0, 0, 32, 1, 0, ALL, 0));
	REQUIRE_OK(model_map(&m, 1, 4, 20, 2, 0, RWD, 0));
	REQUIRE_OK(model_map(&m, 2, 2, 10, 3, 20, R, 0));
	for (i = 1; i < 32; i += 3) {
		REQUIRE_OK(model_unmap(&m, 0, i, 1, false));
		model_check(&m);
		STOP_IF_FAILED();
	}
	for (i = 0; i < 32; i += 5) {
		REQUIRE_OK(model_reduce(&m, 1, i, 2, i & 1, W));
		model_check(&m);
		STOP_IF_FAILED();
	}
	model_unmap(&m, 0, 0, 32, true);
	model_check(&m);
}

/*
 * Siblings that overlap: to cut the first one must not hide the second, which
 * begins between its start and the start of the range.
 */
static void siblings_set(int win[4])
{
	win[0] = win_with(10);
	win[1] = win_open();
	win[2] = win_open();
	win[3] = win_open();
	REQUIRE_OK(dev_map(win[0], 0, 10, win[1], 0, RWD));
	REQUIRE_OK(dev_map(win[1], 0, 10, win[2], 0, RW));
	REQUIRE_OK(dev_map(win[1], 2, 3, win[3], 2, RW));
}

static void siblings_reduced(void)
{
	int win[4];

	siblings_set(win);
	REQUIRE_OK(dev_unmap_flags(win[1], 3, 4, BRUMM_UNMAP_RIGHTS, W, NULL));
	CHECK_EQ(dev_rights(win[2], 2), RW);
	CHECK_EQ(dev_rights(win[2], 3), R);
	CHECK_EQ(dev_rights(win[2], 6), R);
	CHECK_EQ(dev_rights(win[2], 7), RW);
	CHECK_EQ(dev_rights(win[3], 2), RW);
	CHECK_EQ(dev_rights(win[3], 3), R);
	CHECK_EQ(dev_rights(win[3], 4), R);
}

static void siblings_revoked(void)
{
	int win[4], from, self;

	/* From the parent and from the root, with the range and without. */
	for (from = 0; from < 2; from++) {
		for (self = 0; self < 2; self++) {
			siblings_set(win);
			REQUIRE_OK(dev_unmap_flags(win[from], 3, 4, self ?
						   BRUMM_UNMAP_SELF : 0, 0,
						   NULL));
			CHECK_EQ(dev_rights(win[2], 2), RW);
			CHECK_RET(dev_rights(win[2], 3), -ENOENT);
			CHECK_RET(dev_rights(win[2], 6), -ENOENT);
			CHECK_EQ(dev_rights(win[2], 7), RW);
			CHECK_EQ(dev_rights(win[3], 2), RW);
			CHECK_RET(dev_rights(win[3], 3), -ENOENT);
			CHECK_RET(dev_rights(win[3], 4), -ENOENT);
		}
	}
}

#define WINDOWS	4
#define PAGES	40

static uint32_t random_rights(struct rng *r)
{
	return rng_once_in(r, 3) ? R | rng_below(r, 16) : ALL;
}

static void random_step(struct model *m, struct rng *r)
{
	uint32_t w = rng_below(r, WINDOWS), to_w = rng_below(r, WINDOWS);
	uint32_t n = 1 + rng_below(r, rng_once_in(r, 3) ? PAGES / 2 : 5);
	uint32_t page = rng_below(r, PAGES - n + 1);
	uint32_t to = rng_below(r, PAGES - n + 1);
	uint32_t rights = random_rights(r);
	uint32_t what = rng_below(r, 16);
	bool self = rng_once_in(r, 2);

	if (getenv("BRUMM_VERBOSE"))
		tap_diag("op %u: w%u page %u n %u to w%u page %u rights %u self %d",
			 what, w, page, n, to_w, to, rights, self);
	switch (what) {
	case 0:
	case 1:
		model_alloc(m, w, page, n);
		break;
	case 2:
	case 3:
		model_unmap(m, w, page, n, self);
		break;
	case 4:
		model_reduce(m, w, page, n, self,
			     (rights & (W | X | D)) ?: W);
		break;
	case 5:
		model_map(m, w, page, n, to_w, to, rights, BRUMM_MAP_GRANT);
		break;
	case 6:
		model_map(m, w, page, n, to_w, to, rights, BRUMM_MAP_REPLACE);
		break;
	case 7:
		model_map(m, w, page, n, to_w, to, rights,
			  BRUMM_MAP_REPLACE | BRUMM_MAP_GRANT);
		break;
	default:
		model_map(m, w, page, n, to_w, to, rights, 0);
	}
}

static void random_operations(void)
{
	const uint8_t group[WINDOWS] = { 1, 2, 0, 3 };
	int a = cg_make("t/a"), b = cg_make("t/b"), c = cg_make("t/c");
	int cgroup[WINDOWS] = { a, b, -1, c }, win[WINDOWS];
	unsigned long steps = tap_pick(2000, 30000), i;
	struct rng r = { tap_seed() };
	uint32_t *mem[WINDOWS];
	struct model m;
	uint32_t w;

	for (w = 0; w < WINDOWS; w++) {
		win[w] = cgroup[w] < 0 ? win_open() : win_open_in(cgroup[w]);
		mem[w] = win_mmap(win[w], PAGES, PROT_READ | PROT_WRITE);
	}
	model_init(&m, WINDOWS, PAGES, win, group);
	m.mem = mem;
	model_payer(&m, a);
	model_payer(&m, b);
	model_payer(&m, c);
	for (i = 0; i < steps; i++) {
		random_step(&m, &r);
		if (i % tap_pick(50, 10) == 0 || getenv("BRUMM_VERBOSE"))
			model_check(&m);
		if (tap_failures()) {
			tap_diag("at step %lu", i);
			tap_stop();
		}
	}
}

static const struct tap_case cases[] = {
	{ "a large range mapped once is one node", large_is_one_node },
	{ "unmapping every second page", every_second_page, 300 },
	{ "holes through several levels", holes_through_levels },
	{ "rights are taken from siblings that overlap", siblings_reduced },
	{ "siblings that overlap are revoked", siblings_revoked },
	{ "random operations agree with the model", random_operations, 600 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
