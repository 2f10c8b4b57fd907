// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: nobody gets more rights than he was given, by deriving, by the kind
 * of mmap or after UNMAP has taken some.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"
#include "tap.h"

/* Every pair of source and asked rights. */
static void derive_no_more(void)
{
	int a = win_with(1), b = win_open(), c = win_open();
	uint32_t have, ask;

	for (have = R; have <= ALL; have += 2) {
		REQUIRE_OK(dev_map(a, 0, 1, b, 0, have));
		CHECK_EQ(dev_rights(b, 0), have);
		for (ask = 0; ask <= ALL; ask++) {
			int ret = dev_map(b, 0, 1, c, 0, ask);

			if (!(ask & R))
				CHECK_RET(ret, -EINVAL);
			else if (!(have & D) && ask & ~have)
				CHECK(ret == -EPERM || ret == -EACCES);
			else if (!(have & D))
				CHECK_RET(ret, -EPERM);
			else if (ask & ~have)
				CHECK_RET(ret, -EACCES);
			else
				CHECK_OK(ret);
			if (!ret)
				CHECK_EQ(dev_rights(c, 0), ask);
			else
				CHECK_EQ(dev_nodes(c), 0);
			CHECK_OK(dev_unmap_self(c, 0, 1));
		}
		CHECK_OK(dev_unmap(a, 0, 1));
	}
}

static void write_needs_w(void)
{
	int a = win_with(2), b = win_open();
	uint32_t *p = win_mmap(a, 2, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 2, PROT_READ | PROT_WRITE), v;

	put(p, 1);
	REQUIRE_OK(dev_map(a, 0, 1, b, 0, R));
	/* Not touched before, and again when a read has brought it in. */
	CHECK_SIG(poke(q, 2), SIGBUS);
	CHECK_SIG(peek(q, &v), 0);
	CHECK_EQ(v, 1);
	CHECK_SIG(poke(q, 2), SIGBUS);
	CHECK_EQ(get(p), 1);
	/* A read first, then a write where there is W. */
	REQUIRE_OK(dev_map(a, 1, 1, b, 1, RW));
	CHECK_SIG(peek(cell(q, 1, 0), NULL), 0);
	CHECK_SIG(poke(cell(q, 1, 0), 3), 0);
	CHECK_EQ(get(cell(p, 1, 0)), 3);
}

static void vma_limits_too(void)
{
	int a = win_with(1);
	uint32_t *p = win_mmap(a, 1, PROT_READ);

	CHECK_SIG(peek(p, NULL), 0);
	CHECK_SIG(poke(p, 1), SIGSEGV);
	munmap(p, PAGE);
	p = win_mmap(a, 1, PROT_NONE);
	CHECK_SIG(peek(p, NULL), SIGSEGV);
}

static void take_w(void)
{
	struct brumm_unmap u;
	int a = win_with(2), b = win_open(), c = win_open();
	uint32_t *p = win_mmap(a, 2, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 2, PROT_READ | PROT_WRITE);
	uint32_t *r = win_mmap(c, 2, PROT_READ | PROT_WRITE);

	REQUIRE_OK(dev_map(a, 0, 2, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 2, c, 0, RW));
	CHECK_SIG(poke(cell(q, 0, 0), 1), 0);
	CHECK_SIG(poke(cell(r, 1, 0), 1), 0);
	REQUIRE_OK(dev_unmap_flags(a, 0, 2, BRUMM_UNMAP_RIGHTS, W, &u));
	CHECK_EQ(u.nodes, 2);
	CHECK_EQ(u.pages, 4);
	CHECK_EQ(dev_rights(a, 0), ALL);
	CHECK_EQ(dev_rights(b, 0), R | D);
	CHECK_EQ(dev_rights(c, 1), R);
	CHECK_SIG(poke(cell(q, 0, 0), 2), SIGBUS);
	CHECK_SIG(poke(cell(r, 1, 0), 2), SIGBUS);
	CHECK_SIG(peek(cell(q, 0, 0), NULL), 0);
	CHECK_SIG(peek(cell(r, 1, 0), NULL), 0);
	CHECK_SIG(poke(cell(p, 0, 0), 3), 0);
	CHECK_EQ(get(cell(r, 0, 0)), 3);
	/* Nothing to take: fine, and nothing done. */
	REQUIRE_OK(dev_unmap_flags(a, 0, 2, BRUMM_UNMAP_RIGHTS, W, &u));
	CHECK_EQ(u.nodes, 0);
	CHECK_EQ(u.pages, 0);
	CHECK_RET(dev_map(b, 0, 1, SELF, 50, RW), -EACCES);
}

static void take_from_self(void)
{
	int a = win_with(1), b = win_open();
	uint32_t *p = win_mmap(a, 1, PROT_READ | PROT_WRITE);

	REQUIRE_OK(dev_map(a, 0, 1, b, 0, RWD));
	CHECK_SIG(poke(p, 1), 0);
	REQUIRE_OK(dev_unmap_flags(a, 0, 1, BRUMM_UNMAP_RIGHTS |
				   BRUMM_UNMAP_SELF, W | D, NULL));
	CHECK_EQ(dev_rights(a, 0), R | X);
	CHECK_EQ(dev_rights(b, 0), R);
	CHECK_SIG(poke(p, 2), SIGBUS);
	CHECK_SIG(peek(p, NULL), 0);
	CHECK_RET(dev_map(a, 0, 1, SELF, 1, R), -EPERM);
}

static void take_from_part(void)
{
	int a = win_with(8), b = win_open(), c = win_open();
	uint32_t *q = win_mmap(b, 8, PROT_READ | PROT_WRITE);
	unsigned int i;

	REQUIRE_OK(dev_map(a, 0, 8, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 8, c, 0, RW));
	for (i = 0; i < 8; i++)
		CHECK_SIG(poke(cell(q, i, 0), i), 0);
	REQUIRE_OK(dev_unmap_flags(a, 2, 3, BRUMM_UNMAP_RIGHTS, W, NULL));
	for (i = 0; i < 8; i++) {
		int in = i >= 2 && i < 5;

		CHECK_EQ(dev_rights(b, i), in ? R | D : RWD);
		CHECK_EQ(dev_rights(c, i), in ? R : RW);
		CHECK_SIG(poke(cell(q, i, 0), i), in ? SIGBUS : 0);
		CHECK_SIG(peek(cell(q, i, 0), NULL), 0);
	}
	CHECK_EQ(dev_rights(a, 3), ALL);
}

static void take_d(void)
{
	int a = win_with(1), b = win_open(), c = win_open();

	REQUIRE_OK(dev_map(a, 0, 1, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 1, c, 0, RWD));
	REQUIRE_OK(dev_unmap_flags(a, 0, 1, BRUMM_UNMAP_RIGHTS, D, NULL));
	/* What was derived before stays; nothing more is. */
	CHECK_EQ(dev_rights(c, 0), RW);
	CHECK_RET(dev_map(b, 0, 1, c, 1, R), -EPERM);
	CHECK_RET(dev_map(c, 0, 1, SELF, 1, R), -EPERM);
	CHECK_OK(dev_map(a, 0, 1, c, 1, R));
	/* A holder without D still takes back what was derived from him. */
	REQUIRE_OK(dev_unmap(b, 0, 1));
	CHECK_RET(dev_rights(c, 0), -ENOENT);
}

/* Machine code that returns at once, the same on x86-64 and IA-32. */
static const unsigned char ret_code[] = { 0xc3 };

static void exec_shows_x_only(void)
{
	int a = win_with(2), b = win_open();
	uint32_t *p = win_mmap(a, 2, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 3, PROT_READ | PROT_EXEC);

	memcpy(cell(p, 0, 0), ret_code, sizeof(ret_code));
	memcpy(cell(p, 1, 0), ret_code, sizeof(ret_code));
	REQUIRE_OK(dev_map(a, 0, 1, b, 0, R | X));
	REQUIRE_OK(dev_map(a, 1, 1, b, 1, R));
	CHECK_SIG(call(cell(q, 0, 0)), 0);
	CHECK_SIG(peek(cell(q, 0, 0), NULL), 0);
	CHECK_SIG(call(cell(q, 1, 0)), SIGBUS);
	CHECK_SIG(peek(cell(q, 1, 0), NULL), SIGBUS);
	CHECK_SIG(call(cell(q, 2, 0)), SIGBUS);
	REQUIRE_OK(dev_unmap(a, 0, 1));
	CHECK_SIG(call(cell(q, 0, 0)), SIGBUS);
}

static void take_x(void)
{
	int a = win_with(1), b = win_open();
	uint32_t *p = win_mmap(a, 1, PROT_READ | PROT_WRITE);
	uint32_t *q = win_mmap(b, 1, PROT_READ | PROT_EXEC);

	memcpy(p, ret_code, sizeof(ret_code));
	REQUIRE_OK(dev_map(a, 0, 1, b, 0, R | X));
	CHECK_SIG(call(q), 0);
	REQUIRE_OK(dev_unmap_flags(a, 0, 1, BRUMM_UNMAP_RIGHTS, X, NULL));
	CHECK_SIG(call(q), SIGBUS);
	CHECK_SIG(peek(q, NULL), SIGBUS);
	CHECK_EQ(dev_rights(b, 0), R);
}

static void no_exec_without_prot_exec(void)
{
	int a = win_with(1);
	uint32_t *p = win_mmap(a, 1, PROT_READ | PROT_WRITE);

	memcpy(p, ret_code, sizeof(ret_code));
	CHECK_SIG(call(p), SIGSEGV);
	CHECK(mprotect(p, PAGE, PROT_READ | PROT_EXEC) != 0);
	CHECK_SIG(call(p), SIGSEGV);
}

static const struct tap_case cases[] = {
	{ "a derived mapping has no right that its source lacks",
	  derive_no_more },
	{ "writing needs W of the mapping: SIGBUS", write_needs_w },
	{ "the protection of the mmap holds as well: SIGSEGV", vma_limits_too },
	{ "taking W makes everybody below read-only", take_w },
	{ "taking rights with SELF takes them from the range too",
	  take_from_self },
	{ "taking W from a part leaves it to the rest", take_from_part },
	{ "without D nothing can be derived, but be taken back", take_d },
	{ "an executable window shows only what has X", exec_shows_x_only },
	{ "taking X stops execution", take_x },
	{ "a window without PROT_EXEC does not execute",
	  no_exec_without_prot_exec },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
