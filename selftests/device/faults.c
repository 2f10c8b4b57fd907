// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: whichever allocation or copy in a command fails, the command either
 * does all or says so and changes nothing. Each is made to fail in turn by
 * /proc/thread-self/fail-nth; kernels without fault injection skip this.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "tap.h"

#define NTH_MAX	2000	/* no command has so many allocations */
/*
 * How often a fault has to be out of reach to be behind the last: how many
 * allocations a command makes depends on what lies ready in the slabs.
 */
#define NTH_MISSES	4

static int nth_fd = -1;

static void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		tap_diag("%s: %s", path, tap_result(-errno));
	close(fd);
}

static void faults_prepare(void)
{
#define KNOB(name) "/sys/kernel/debug/" name
	put_text(KNOB("failslab/ignore-gfp-wait"), "N");
	put_text(KNOB("failslab/verbose"), "0");
	put_text(KNOB("fail_page_alloc/ignore-gfp-wait"), "N");
	put_text(KNOB("fail_page_alloc/ignore-gfp-highmem"), "N");
	put_text(KNOB("fail_page_alloc/min-order"), "0");
	put_text(KNOB("fail_page_alloc/verbose"), "0");
	put_text(KNOB("fail_usercopy/verbose"), "0");
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		tap_skip("no fault injection in this kernel");
}

static void nth_set(unsigned int nth)
{
	char text[20];
	int n = snprintf(text, sizeof(text), "%u", nth);

	REQUIRE(pwrite(nth_fd, text, n, 0) == n);
}

/*
 * Was the fault reached? Reading copies to user space and may be what fails
 * itself: then the command had not got that far.
 */
static bool nth_reached(void)
{
	char text[20] = "";
	ssize_t n = pread(nth_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return false;
	/* Off; if it fails that was the last shot. */
	if (pwrite(nth_fd, "0", 1, 0) < 0 && pwrite(nth_fd, "0", 1, 0) < 0)
		tap_fail(__FILE__, __LINE__, "fail-nth stays on");
	return text[0] == '0';
}

/* ---- the stage -------------------------------------------------------- */

/*
 * A: 8 frames in two trees, payer P. B: all of them derived, RWD. C: 1 .. 6 of
 * those. A knows of nothing in D.
 */
struct stage {
	int win[4], gate, cg;
	struct dump before;
	struct cg_counts counts;
};

enum { A, B, C, E };

static void stage_set(struct stage *s)
{
	int i;

	memset(s, 0, sizeof(*s));
	s->cg = cg_make("p");
	for (i = 0; i < 4; i++)
		s->win[i] = win_open_in(s->cg);
	REQUIRE_OK(dev_alloc(s->win[A], 0, 4));
	REQUIRE_OK(dev_alloc(s->win[A], 4, 4));
	REQUIRE_OK(dev_map(s->win[A], 0, 8, s->win[B], 0, ALL));
	REQUIRE_OK(dev_map(s->win[B], 1, 6, s->win[C], 1, RWD));
	s->gate = dev_gate(s->win[E], 0, 100, 0);
	REQUIRE(s->gate >= 0);
	dump_take(&s->before, s->win, 4);
	s->counts = cg_counts(s->cg);
}

static bool stage_same(struct stage *s)
{
	struct cg_counts now = cg_counts(s->cg);
	struct dump d;
	bool same;

	dump_take(&d, s->win, 4);
	same = dump_same(&s->before, &d) &&
	       !memcmp(&now, &s->counts, sizeof(now));
	dump_free(&d);
	return same;
}

static void stage_strike(struct stage *s)
{
	int i;

	for (i = 0; i < 4; i++)
		close(s->win[i]);
	close(s->gate);
	close(s->cg);
	dump_free(&s->before);
}

/**
 * struct trial - a command
 * @run: does it; 0, a descriptor, or a negative errno
 * @done: is it done as a whole?
 */
struct trial {
	int (*run)(struct stage *s);
	bool (*done)(struct stage *s);
};

static void judge(struct stage *s, const struct trial *t, int ret,
		  unsigned int nth)
{
	bool fine = ret >= 0 || ret == -ENOMEM || ret == -EFAULT;

	if (!fine)
		tap_fail(__FILE__, __LINE__, "fault %u gives %s", nth,
			 tap_result(ret));
	if (ret < 0 && !stage_same(s))
		tap_fail(__FILE__, __LINE__,
			 "fault %u gives %s and changes something", nth,
			 tap_result(ret));
	if (ret >= 0 && t->done && !t->done(s))
		tap_fail(__FILE__, __LINE__, "fault %u: success, not done", nth);
}

static void try_all(const struct trial *t)
{
	unsigned int nth, misses = 0, failed = 0, survived = 0;

	faults_prepare();
	for (nth = 1; misses < NTH_MISSES && nth < NTH_MAX;) {
		struct stage s;
		bool reached;
		int ret;

		stage_set(&s);
		nth_set(nth);
		ret = t->run(&s);
		reached = nth_reached();
		judge(&s, t, ret, nth);
		if (!reached)
			CHECK(ret >= 0);
		failed += reached && ret < 0;
		survived += reached && ret >= 0;
		if (ret > 2)
			close(ret);
		stage_strike(&s);
		if (tap_failures() > 5)
			tap_stop();
		if (reached)
			nth++;
		else
			misses++;
	}
	tap_diag("%u faults: %u refused, %u survived", nth - 1, failed,
		 survived);
	CHECK(nth < NTH_MAX);
}

/* ---- the commands ----------------------------------------------------- */

static int run_open(struct stage *s)
{
	(void)s;
	return dev_open();
}

static int run_alloc(struct stage *s)
{
	return dev_alloc(s->win[E], 0, 40);
}

static bool done_alloc(struct stage *s)
{
	return dev_nodes(s->win[E]) == 1;
}

static int run_gate(struct stage *s)
{
	return dev_gate(s->win[E], 0, 1, 0);
}

static int run_map(struct stage *s)
{
	return dev_map(s->win[A], 0, 2, s->win[E], 0, R);
}

static bool done_map(struct stage *s)
{
	return dev_rights(s->win[E], 1) == R;
}

static int run_map_pieces(struct stage *s)
{
	return dev_map(s->win[C], 1, 6, s->gate, 10, R);
}

static bool done_map_pieces(struct stage *s)
{
	return dev_nodes(s->win[E]) == 2;
}

static int run_replace(struct stage *s)
{
	return dev_map_flags(s->win[A], 0, 3, s->win[C], 3, R,
			     BRUMM_MAP_REPLACE);
}

static bool done_replace(struct stage *s)
{
	return dev_rights(s->win[C], 5) == R && dev_depth(s->win[C], 5) == 1 &&
	       dev_rights(s->win[C], 6) == RWD;
}

static int run_grant(struct stage *s)
{
	return dev_grant(s->win[B], 2, 4, s->win[E], 0, ALL);
}

static bool done_grant(struct stage *s)
{
	return dev_nodes(s->win[E]) == 2 && dev_nodes(s->win[B]) == 2 &&
	       dev_rights(s->win[B], 2) == -ENOENT;
}

static int run_grant_replace(struct stage *s)
{
	return dev_map_flags(s->win[C], 1, 2, s->win[C], 5, RWD,
			     BRUMM_MAP_GRANT | BRUMM_MAP_REPLACE);
}

static bool done_grant_replace(struct stage *s)
{
	return dev_rights(s->win[C], 1) == -ENOENT &&
	       dev_rights(s->win[C], 6) == RWD;
}

static int run_unmap_hole(struct stage *s)
{
	return dev_unmap(s->win[A], 2, 4);
}

static bool done_unmap_hole(struct stage *s)
{
	return dev_rights(s->win[B], 2) == -ENOENT &&
	       dev_rights(s->win[C], 5) == -ENOENT &&
	       dev_rights(s->win[C], 6) == RWD;
}

static int run_unmap_self(struct stage *s)
{
	return dev_unmap_self(s->win[A], 1, 6);
}

static bool done_unmap_self(struct stage *s)
{
	return dev_nodes(s->win[A]) == 2 && dev_nodes(s->win[B]) == 2 &&
	       dev_nodes(s->win[C]) == 0;
}

static int run_reduce(struct stage *s)
{
	return dev_unmap_flags(s->win[A], 2, 4, BRUMM_UNMAP_RIGHTS |
			       BRUMM_UNMAP_SELF, W, NULL);
}

static bool done_reduce(struct stage *s)
{
	return dev_rights(s->win[A], 2) == (ALL & ~W) &&
	       dev_rights(s->win[C], 5) == (R | D) &&
	       dev_rights(s->win[C], 6) == RWD;
}

static int run_query(struct stage *s)
{
	return dev_count(s->win[A], 0) < 0 ? -ENOMEM : 0;
}

static int run_mmap(struct stage *s)
{
	void *p = dev_mmap(s->win[B], 0, 4, PROT_READ | PROT_WRITE);

	if (!p)
		return -errno;
	munmap(p, 4 * PAGE);
	return 0;
}

/* A fault that fails for memory is tried again, by the kernel. */
static int run_touch(struct stage *s)
{
	uint32_t *p = dev_mmap(s->win[B], 0, 4, PROT_READ | PROT_WRITE);
	int sig;

	if (!p)
		return -errno;
	sig = poke(cell(p, 3, 0), 1);
	if (!sig)
		sig = peek(cell(p, 5 % 4, 0), NULL);
	munmap(p, 4 * PAGE);
	return sig ? -EIO : 0;
}

static int run_knob(struct stage *s)
{
	return cg_write(s->cg, "brumm.price", "default");
}

#define TRIAL(name, is_done)						\
static void try_##name(void)						\
{									\
	static const struct trial t = { run_##name, is_done };		\
									\
	try_all(&t);							\
}

TRIAL(open, NULL)
TRIAL(alloc, done_alloc)
TRIAL(gate, NULL)
TRIAL(map, done_map)
TRIAL(map_pieces, done_map_pieces)
TRIAL(replace, done_replace)
TRIAL(grant, done_grant)
TRIAL(grant_replace, done_grant_replace)
TRIAL(unmap_hole, done_unmap_hole)
TRIAL(unmap_self, done_unmap_self)
TRIAL(reduce, done_reduce)
TRIAL(query, NULL)
TRIAL(mmap, NULL)
TRIAL(touch, NULL)
TRIAL(knob, NULL)

/* A first window in a cgroup makes its group: each fault in that. */
static void try_new_group(void)
{
	unsigned int nth, misses = 0;

	faults_prepare();
	for (nth = 1; misses < NTH_MISSES && nth < NTH_MAX;) {
		int cg = cg_make("t/fresh"), w;
		bool reached;

		cg_enter(cg);
		nth_set(nth);
		w = dev_open();
		reached = nth_reached();
		cg_leave();
		if (w < 0)
			CHECK(w == -ENOMEM || w == -EFAULT);
		else
			REQUIRE_OK(dev_alloc(w, 0, 1));
		if (w >= 0) {
			CHECK_COUNTS(cg, 1, 1, 1);
			close(w);
			CHECK_COUNTS(cg, 0, 0, 0);
		}
		close(cg);
		cg_remove("t/fresh");
		if (reached)
			nth++;
		else
			misses++;
		STOP_IF_FAILED();
	}
	CHECK(nth < NTH_MAX);
	tap_diag("%u faults", nth - 1);
}

/* An event that could not be copied is there for the next read. */
static void try_read_event(void)
{
	int src = win_open(), to = win_open();
	unsigned int nth, failed = 0;

	faults_prepare();
	for (nth = 1; nth < 4; nth++) {
		struct brumm_event e = {};
		ssize_t n;

		REQUIRE_OK(dev_alloc(src, 0, 1));
		REQUIRE_OK(dev_map(src, 0, 1, to, nth, R));
		REQUIRE_OK(dev_unmap_self(src, 0, 1));
		nth_set(nth);
		n = read(to, &e, sizeof(e));
		if (n < 0)
			n = -errno;
		nth_reached();
		if (n < 0) {
			failed++;
			CHECK_EQ(n, -EFAULT);
			REQUIRE(read(to, &e, sizeof(e)) == sizeof(e));
		}
		CHECK_EQ(e.offset, nth * PAGE);
	}
	CHECK(failed);
}

/* Every second page is unmapped while memory is short all the time. */
static void every_second_page(void)
{
	uint64_t pages = tap_pick(128, 1024), i;
	struct stage s;
	int src, to;

	faults_prepare();
	memset(&s, 0, sizeof(s));
	s.cg = cg_make("p");
	src = win_open_in(s.cg);
	to = win_open();
	REQUIRE_OK(dev_alloc(src, 0, pages));
	REQUIRE_OK(dev_map(src, 0, pages, to, 0, R));
	for (i = 0; i < pages; i += 2) {
		unsigned int nth = 1 + i % 8;
		int ret;

		/* UNMAP does not fail for memory; a copy of its request may. */
		do {
			nth_set(nth++);
			ret = dev_unmap(src, i, 1);
			nth_reached();
		} while (ret == -EFAULT && nth < 50);
		REQUIRE_OK(ret);
		CHECK_COUNTS(s.cg, 1, i / 2 + 2, 2 * pages - (i / 2 + 1));
		STOP_IF_FAILED();
	}
	CHECK_EQ(dev_nodes(to), pages / 2);
}

static const struct tap_case cases[] = {
	{ "open", try_open, 300 },
	{ "open in a cgroup that has no group yet", try_new_group, 300 },
	{ "ALLOC", try_alloc, 300 },
	{ "GATE", try_gate, 300 },
	{ "MAP", try_map, 300 },
	{ "MAP of several pieces through a gate", try_map_pieces, 300 },
	{ "MAP with REPLACE", try_replace, 300 },
	{ "GRANT", try_grant, 300 },
	{ "GRANT with REPLACE", try_grant_replace, 300 },
	{ "UNMAP that makes holes", try_unmap_hole, 300 },
	{ "UNMAP with SELF", try_unmap_self, 300 },
	{ "UNMAP of rights of a part", try_reduce, 300 },
	{ "QUERY with COUNT", try_query, 300 },
	{ "read of events", try_read_event, 300 },
	{ "mmap", try_mmap, 300 },
	{ "page faults", try_touch, 300 },
	{ "a knob", try_knob, 300 },
	{ "every second page is unmapped while memory is short",
	  every_second_page, 300 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
