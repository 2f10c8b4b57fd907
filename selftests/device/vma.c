// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: a window has one VMA, whole, shared, with the protection it was made
 * with, and nothing that a process may do to its address space changes that or
 * shows a page that no mapping stands for.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"
#include "tap.h"

/* System calls as results. */
static int errno_of(int ret)
{
	return ret < 0 ? -errno : 0;
}

static int mmap_err(int w, uint64_t page, uint64_t pages, int prot, int flags)
{
	void *p = mmap(NULL, pages * PAGE, prot, flags, w, page * PAGE);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, pages * PAGE);
	return 0;
}

/* A window whose pages 1 and 2 of 4 are there. */
static uint32_t *gapped(int *w)
{
	uint32_t *p;

	*w = win_open();
	REQUIRE_OK(dev_alloc(*w, 1, 2));
	p = win_mmap(*w, 4, PROT_READ | PROT_WRITE);
	put(cell(p, 1, 0), 11);
	put(cell(p, 2, 0), 12);
	return p;
}

static void check_gapped(const uint32_t *p)
{
	uint32_t v = 0;

	CHECK_SIG(peek(p, NULL), SIGBUS);
	CHECK_SIG(peek(p + PAGE / 4, &v), 0);
	CHECK_EQ(v, 11);
	CHECK_SIG(peek(p + 2 * PAGE / 4, &v), 0);
	CHECK_EQ(v, 12);
	CHECK_SIG(peek(p + 3 * PAGE / 4, NULL), SIGBUS);
}

static void private_is_refused(void)
{
	int w = win_with(2);

	CHECK_RET(mmap_err(w, 0, 2, PROT_READ, MAP_PRIVATE), -EINVAL);
	CHECK_RET(mmap_err(w, 0, 2, PROT_READ | PROT_WRITE, MAP_PRIVATE),
		  -EINVAL);
	/* That has not used up the one VMA. */
	CHECK_OK(mmap_err(w, 0, 2, PROT_READ | PROT_WRITE, MAP_SHARED));
}

static void second_is_refused(void)
{
	int w, again = open(BRUMM_DEVICE, O_RDWR | O_CLOEXEC);
	uint32_t *p = gapped(&w);
	int copy = dup(w);

	CHECK_RET(mmap_err(w, 0, 1, PROT_READ, MAP_SHARED), -EBUSY);
	CHECK_RET(mmap_err(w, 100, 1, PROT_READ, MAP_SHARED), -EBUSY);
	CHECK_RET(mmap_err(copy, 0, 1, PROT_READ, MAP_SHARED), -EBUSY);
	CHECK_OK(mmap_err(again, 0, 1, PROT_READ, MAP_SHARED));
	check_gapped(p);
	CHECK(!munmap(p, 4 * PAGE));
	CHECK_OK(mmap_err(copy, 0, 1, PROT_READ, MAP_SHARED));
}

static void beyond_the_end_is_refused(void)
{
	int w = win_open();

	CHECK_RET(mmap_err(w, WINDOW_PAGES, 1, PROT_READ, MAP_SHARED),
		  -EOVERFLOW);
	CHECK_RET(mmap_err(w, WINDOW_PAGES - 1, 2, PROT_READ, MAP_SHARED),
		  -EOVERFLOW);
	CHECK_OK(mmap_err(w, WINDOW_PAGES - 1, 1, PROT_READ, MAP_SHARED));
}

static void mprotect_is_refused(void)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC,
		PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	unsigned int i;
	int w;
	uint32_t *p = gapped(&w);

	for (i = 0; i < ARRAY_SIZE(prots); i++) {
		CHECK(mprotect(p, 4 * PAGE, prots[i]) < 0);
		CHECK(errno == EACCES || errno == EINVAL);
		/* A part of it would split it as well. */
		CHECK(mprotect(p, PAGE, prots[i]) < 0);
		CHECK(errno == EACCES || errno == EINVAL);
	}
	check_gapped(p);
	CHECK_SIG(poke(p + PAGE / 4, 11), 0);
}

static void split_is_refused(void)
{
	int w;
	uint32_t *p = gapped(&w);
	void *q;

	CHECK_RET(errno_of(munmap(p, PAGE)), -EINVAL);
	CHECK_RET(errno_of(munmap(cell(p, 1, 0), PAGE)), -EINVAL);
	CHECK_RET(errno_of(munmap(cell(p, 3, 0), PAGE)), -EINVAL);
	q = mmap(cell(p, 1, 0), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_FIXED, -1, 0);
	CHECK(q == MAP_FAILED);
	q = mremap(cell(p, 1, 0), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (char *)p + (64 << 20));
	CHECK(q == MAP_FAILED);
	check_gapped(p);
}

/* Part of the same VMA under a mapping of something else, as a whole. */
static void map_fixed_over_all(void)
{
	int w;
	uint32_t *p = gapped(&w), v = 1;
	void *q = mmap(p, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_FIXED, -1, 0);

	REQUIRE(q == (void *)p);
	CHECK_SIG(peek(cell(q, 1, 0), &v), 0);
	CHECK_EQ(v, 0);
	CHECK_OK(mmap_err(w, 0, 1, PROT_READ, MAP_SHARED));
}

static void mremap_moves(void)
{
	int w, to = win_open();
	uint32_t *p = gapped(&w), *q;
	char *room = mmap(NULL, 8 * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check_gapped(p);
	q = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	REQUIRE((char *)q == room);
	check_gapped(q);
	CHECK_SIG(peek(cell(p, 1, 0), NULL), SIGSEGV);
	CHECK_RET(mmap_err(w, 0, 1, PROT_READ, MAP_SHARED), -EBUSY);
	/* It is revoked in its new place. */
	REQUIRE_OK(dev_grant(w, 1, 1, to, 0, ALL));
	CHECK_SIG(peek(cell(q, 1, 0), NULL), SIGBUS);
	CHECK_SIG(peek(cell(q, 2, 0), NULL), 0);
	CHECK(!munmap(q, 4 * PAGE));
	CHECK_OK(mmap_err(w, 0, 1, PROT_READ, MAP_SHARED));
}

static void mremap_makes_no_more(void)
{
	int w;
	uint32_t *p = gapped(&w);
	char *room = mmap(NULL, 16 * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* Grow, in place and by moving. */
	CHECK(mremap(p, 4 * PAGE, 8 * PAGE, 0) == MAP_FAILED);
	CHECK(mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	/* Shrink: that cuts a part off. */
	CHECK(mremap(p, 4 * PAGE, 2 * PAGE, 0) == MAP_FAILED);
	/* The old way and the new way to have it twice. */
	CHECK(mremap(p, 0, 4 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(mremap(p, 0, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room) ==
	      MAP_FAILED);
	CHECK(mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE |
		     MREMAP_DONTUNMAP, 0) == MAP_FAILED);
	check_gapped(p);
}

struct forked {
	int w;
	uint32_t *p;
	uint32_t step;
};

static void forked_child(void *arg)
{
	struct forked *f = arg;

	CHECK_SIG(peek(cell(f->p, 1, 0), NULL), SIGSEGV);
	/* The descriptor is inherited, the one VMA is in use. */
	CHECK_RET(mmap_err(f->w, 0, 1, PROT_READ, MAP_SHARED), -EBUSY);
	CHECK_OK(dev_map(f->w, 1, 1, SELF, 3, RW));
	put(&f->step, 1);
	await(&f->step, 2);
	CHECK_OK(mmap_err(f->w, 0, 1, PROT_READ, MAP_SHARED));
}

static void fork_inherits_no_vma(void)
{
	struct forked *f = shared(sizeof(*f));
	uint32_t v;
	pid_t pid;

	f->p = gapped(&f->w);
	pid = spawn(forked_child, f);
	await(&f->step, 1);
	CHECK_SIG(peek(cell(f->p, 3, 0), &v), 0);
	CHECK_EQ(v, 11);
	munmap(f->p, 4 * PAGE);
	put(&f->step, 2);
	reap(pid);
}

/* The same for an address space that a child shares or borrows. */
static void vfork_and_threads_share(void)
{
	int w;
	uint32_t *p = gapped(&w);
	pid_t pid = vfork();

	if (!pid)
		_exit(__atomic_load_n(cell(p, 1, 0), __ATOMIC_SEQ_CST) == 11 ?
		      0 : 1);
	REQUIRE(pid > 0);
	reap(pid);
	check_gapped(p);
}

static void madvise_changes_nothing(void)
{
	/* Advice that would drop, copy, dump or pin the pages. */
	static const struct {
		int advice;
		bool refused;
	} all[] = {
		{ MADV_DONTNEED, true }, { MADV_FREE, true },
		{ MADV_REMOVE, true }, { MADV_DOFORK, true },
		{ MADV_DODUMP, true }, { MADV_COLD, true },
		{ MADV_PAGEOUT, true }, { MADV_WIPEONFORK, true },
		{ 24 /* MADV_DONTNEED_LOCKED */, true },
		{ 22 /* MADV_POPULATE_READ */, true },
		{ 23 /* MADV_POPULATE_WRITE */, true },
		{ 25 /* MADV_COLLAPSE */, true },
		{ MADV_MERGEABLE, false }, { MADV_UNMERGEABLE, false },
		{ MADV_HUGEPAGE, false }, { MADV_NOHUGEPAGE, false },
		{ MADV_WILLNEED, false }, { MADV_SEQUENTIAL, false },
		{ MADV_RANDOM, false }, { MADV_NORMAL, false },
		{ MADV_DONTFORK, false }, { MADV_DONTDUMP, false },
		{ MADV_KEEPONFORK, false },
	};
	struct forked *f = shared(sizeof(*f));
	unsigned int i;

	f->p = gapped(&f->w);
	check_gapped(f->p);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		int ret = errno_of(madvise(f->p, 4 * PAGE, all[i].advice));

		if (all[i].refused && !ret)
			tap_fail(__FILE__, __LINE__, "advice %d is taken",
				 all[i].advice);
		/* Advice for a part would split it. */
		madvise(cell(f->p, 1, 0), PAGE, all[i].advice);
		check_gapped(f->p);
		STOP_IF_FAILED();
	}
	REQUIRE(!madvise(f->p, 4 * PAGE, MADV_NORMAL));
}

static void not_in_child_after_madvise(void)
{
	struct forked *f = shared(sizeof(*f));
	pid_t pid;

	f->p = gapped(&f->w);
	CHECK(madvise(f->p, 4 * PAGE, MADV_DOFORK) < 0);
	pid = spawn(forked_child, f);
	await(&f->step, 1);
	munmap(f->p, 4 * PAGE);
	put(&f->step, 2);
	reap(pid);
}

static void mlock_and_msync_change_nothing(void)
{
	int w;
	uint32_t *p = gapped(&w);
	unsigned char vec[4];

	/* Whatever they say: no page is brought in where there is none. */
	mlock(p, 4 * PAGE);
	check_gapped(p);
	munlock(p, 4 * PAGE);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	check_gapped(p);
	munlockall();
	msync(p, 4 * PAGE, MS_SYNC | MS_INVALIDATE);
	mincore(p, 4 * PAGE, vec);
	check_gapped(p);
}

/* Shows another part of the window in the place of the VMA, or does nothing. */
static void remap_file_pages_shifts(void)
{
	int w;
	uint32_t *p = gapped(&w), v = 0;

	if (remap_file_pages(p, 4 * PAGE, 0, 1, 0)) {
		check_gapped(p);
		return;
	}
	CHECK_SIG(peek(cell(p, 0, 0), &v), 0);
	CHECK_EQ(v, 11);
	CHECK_SIG(peek(cell(p, 2, 0), NULL), SIGBUS);
	CHECK_RET(mmap_err(w, 0, 1, PROT_READ, MAP_SHARED), -EBUSY);
}

static void populate_brings_in_nothing(void)
{
	int w = win_open();
	uint32_t *p;

	REQUIRE_OK(dev_alloc(w, 1, 2));
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_POPULATE | MAP_LOCKED, w, 0);
	if (p == MAP_FAILED)
		return;
	put(cell(p, 1, 0), 11);
	put(cell(p, 2, 0), 12);
	check_gapped(p);
	munmap(p, 4 * PAGE);
}

static void exec_drops_it(void)
{
	int w = win_with(1);
	pid_t pid;

	REQUIRE(win_mmap(w, 1, PROT_READ));
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	reap(pid);
	CHECK_RET(mmap_err(w, 0, 1, PROT_READ, MAP_SHARED), -EBUSY);
}

/* In /proc the VMA says what it is. */
static void flags_in_smaps(void)
{
	static const char *const want[] = { "pf", "io", "dc", "de", "dd" };
	char line[400], range[40];
	bool found = false;
	unsigned int i;
	FILE *f;
	int w;
	uint32_t *p = gapped(&w);

	snprintf(range, sizeof(range), "%08lx-", (unsigned long)p);
	f = fopen("/proc/self/smaps", "re");
	REQUIRE(f);
	while (fgets(line, sizeof(line), f)) {
		found |= !strncmp(line, range, strlen(range));
		if (!found || strncmp(line, "VmFlags:", 8))
			continue;
		for (i = 0; i < ARRAY_SIZE(want); i++)
			if (!strstr(line, want[i]))
				tap_fail(__FILE__, __LINE__, "no %s in %s",
					 want[i], line);
		break;
	}
	CHECK(found);
	fclose(f);
}

static const struct tap_case cases[] = {
	{ "MAP_PRIVATE is refused", private_is_refused },
	{ "a second mmap is refused", second_is_refused },
	{ "mmap beyond the offset space is refused", beyond_the_end_is_refused },
	{ "mprotect is refused", mprotect_is_refused },
	{ "what would split the VMA is refused", split_is_refused },
	{ "the whole VMA can be mapped over", map_fixed_over_all },
	{ "mremap moves it, and it is revoked there", mremap_moves },
	{ "mremap makes it neither larger nor two", mremap_makes_no_more },
	{ "a child inherits the descriptor and not the VMA",
	  fork_inherits_no_vma },
	{ "who shares the address space shares the VMA",
	  vfork_and_threads_share },
	{ "madvise changes nothing", madvise_changes_nothing },
	{ "madvise does not bring it into a child", not_in_child_after_madvise },
	{ "mlock, msync and mincore change nothing",
	  mlock_and_msync_change_nothing },
	{ "remap_file_pages shows one VMA still", remap_file_pages_shifts },
	{ "MAP_POPULATE brings in nothing", populate_brings_in_nothing },
	{ "exec in a child leaves it alone", exec_drops_it },
	{ "the flags of the VMA", flags_in_smaps },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
