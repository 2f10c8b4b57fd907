// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: a write to brumm.reclaim returns when all that the cgroup and those
 * below it sponsored is revoked; it says what it took; it can be killed, and is
 * in nobody's way meanwhile.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

static int reclaim(int cg)
{
	return cg_write(cg, "brumm.reclaim", "1");
}

static void all_below_is_revoked(void)
{
	int top = priced("t"), low = cg_make("t/m/l"), side = cg_make("t/s");
	int other = priced("o");
	int w = win_open_in(low), v = win_open_in(side), u = win_open_in(other);
	uint32_t *p = win_mmap(u, 8, PROT_READ | PROT_WRITE);

	REQUIRE_OK(dev_alloc(w, 0, 4));
	REQUIRE_OK(dev_alloc(v, 0, 4));
	REQUIRE_OK(dev_alloc(u, 4, 4));
	/* What low sponsors goes from wherever it is. */
	REQUIRE_OK(dev_map(w, 0, 4, u, 0, RW));
	*cell(p, 0, 0) = 1;
	*cell(p, 4, 0) = 2;
	CHECK_OK(reclaim(top));
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK_EQ(dev_nodes(w), 0);
	CHECK_EQ(dev_nodes(v), 0);
	CHECK_SIG(peek(cell(p, 0, 0), NULL), SIGBUS);
	/* What others sponsor stays. */
	CHECK_EQ(*cell(p, 4, 0), 2);
	CHECK_COUNTS(other, 1, 1, 4);
	CHECK_OK(dev_alloc(w, 0, 4));
}

static void empty_is_fine(void)
{
	int cg = cg_make("a");

	CHECK_OK(reclaim(cg));
	CHECK_OK(cg_write(cg, "brumm.reclaim", "whatever"));
	CHECK_EQ(cg_key(cg, "brumm.stat", "reclaims"), 2);
	CHECK_EQ(cg_key(cg, "brumm.stat", "last_reclaim_predicted_ns"), 0);
	CHECK(openat(cg, "brumm.reclaim", O_RDONLY) >= 0 ||
	      errno == EACCES || !getuid());
}

static void says_what_it_took(void)
{
	int cg = priced("a"), w = win_open_in(cg);
	int64_t worst, took;

	REQUIRE_OK(dev_alloc(w, 0, 2000));
	REQUIRE_OK(dev_alloc(w, 3000, 1));
	CHECK_OK(reclaim(cg));
	CHECK_EQ(cg_key(cg, "brumm.stat", "reclaims"), 1);
	CHECK_EQ(cg_key(cg, "brumm.stat", "last_reclaim_predicted_ns"),
		 COST(2, 2, 2001));
	worst = cg_key(cg, "brumm.stat", "last_reclaim_measured_ns");
	CHECK(worst > 0);
	CHECK_EQ(cg_key(cg, "brumm.stat", "worst_reclaim_measured_ns"), worst);
	REQUIRE_OK(dev_alloc(w, 0, 1));
	CHECK_OK(reclaim(cg));
	CHECK_EQ(cg_key(cg, "brumm.stat", "last_reclaim_predicted_ns"),
		 COST(1, 1, 1));
	took = cg_key(cg, "brumm.stat", "last_reclaim_measured_ns");
	CHECK_EQ(cg_key(cg, "brumm.stat", "worst_reclaim_measured_ns"),
		 took > worst ? took : worst);
	if (took < worst)
		CHECK_EQ(cg_key(cg, "brumm.stat",
				"worst_reclaim_predicted_ns"),
			 COST(2, 2, 2001));
}

/* Many small ones, so that a reclaim has much to do and can be stopped. */
static int heavy(const char *name, int *w, unsigned int nr)
{
	int cg = cg_make(name);

	*w = win_open_in(cg);
	while (nr--)
		REQUIRE_OK(dev_alloc(*w, nr, 1));
	return cg;
}

struct job {
	int cg;
	uint32_t state;		/* 1: about to write, 2: done */
};

static void run_reclaim(void *arg)
{
	struct job *job = arg;

	put(&job->state, 1);
	CHECK_OK(reclaim(job->cg));
	put(&job->state, 2);
}

static void concurrent_ones_all_end(void)
{
	int w, cg = heavy("a/b", &w, amount(2000)), top = cg_make("a"), i;
	struct job *job = shared(4 * sizeof(*job));
	pid_t pid[4];

	for (i = 0; i < 4; i++) {
		job[i].cg = i % 2 ? cg : top;
		pid[i] = spawn(run_reclaim, &job[i]);
	}
	for (i = 0; i < 4; i++)
		reap(pid[i]);
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK_EQ(cg_key(cg, "brumm.stat", "reclaims"), 2);
	CHECK_EQ(cg_key(top, "brumm.stat", "reclaims"), 2);
}

/* More is added while it runs: it ends all the same. */
static void add_for_ever(void *arg)
{
	int w = *(int *)arg;
	unsigned int i;

	for (i = 0;; i++)
		if (dev_alloc(w, i % 100000 + 10000, 1))
			dev_unmap_self(w, 10000, 100000);
}

static void ends_against_a_tenant(void)
{
	int w, cg = heavy("a", &w, 500);
	pid_t pid = spawn(add_for_ever, &w);
	int i;

	for (i = 0; i < 10; i++)
		CHECK_OK(reclaim(cg));
	kill_and_reap(pid);
	/* Locked, it leaves nothing. */
	REQUIRE_OK(cg_write(cg, "brumm.lock", "1"));
	CHECK_OK(reclaim(cg));
	CHECK_COUNTS(cg, 0, 0, 0);
}

static void can_be_killed(void)
{
	const unsigned int nr = amount(20000);
	int w, cg = heavy("a", &w, nr);
	struct job *job = shared(sizeof(*job));
	uint64_t left;
	pid_t pid;

	job->cg = cg;
	pid = spawn(run_reclaim, job);
	await(&job->state, 1);
	while (cg_counts(cg).map == nr)
		;
	kill_and_reap(pid);
	left = cg_counts(cg).map;
	if (get(&job->state) == 2)
		tap_skip("it was done already");
	CHECK(left > 0);
	tap_diag("%llu of %u were left", (unsigned long long)left, nr);
	/* A part of the work is not a measurement. */
	CHECK_EQ(cg_key(cg, "brumm.stat", "reclaims"), 0);
	CHECK_OK(reclaim(cg));
	CHECK_COUNTS(cg, 0, 0, 0);
	CHECK_EQ(cg_key(cg, "brumm.stat", "reclaims"), 1);
}

/* kernfs would have the removal wait, and everybody behind it. */
static void is_in_nobodys_way(void)
{
	const unsigned int nr = amount(20000);
	int w, cg = heavy("a/b", &w, nr);
	struct job *job = shared(sizeof(*job));
	int top = cg_make("a");
	char text[100];
	pid_t pid;
	int fd;

	job->cg = cg;
	fd = openat(cg, "brumm.stat", O_RDONLY);
	pid = spawn(run_reclaim, job);
	await(&job->state, 1);
	while (cg_counts(cg).map == nr)
		;
	CHECK(pread(fd, text, sizeof(text), 0) > 0);
	cg_make("other");
	cg_remove("other");
	cg_remove("a/b");
	if (get(&job->state) == 2)
		tap_skip("it was done already");
	tap_diag("%llu left when the cgroup was gone",
		 (unsigned long long)cg_counts(top).map);
	reap(pid);
	CHECK_EQ(get(&job->state), 2);
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK(pread(fd, text, sizeof(text), 0) < 0 && errno == ENODEV);
}

static const struct tap_case cases[] = {
	{ "all below is revoked, and nothing else", all_below_is_revoked },
	{ "there may be nothing to revoke", empty_is_fine },
	{ "it says what it took", says_what_it_took },
	{ "concurrent reclaims all end", concurrent_ones_all_end },
	{ "it ends while a tenant goes on", ends_against_a_tenant },
	{ "it can be killed", can_be_killed },
	{ "it is in nobody's way", is_in_nobodys_way },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
