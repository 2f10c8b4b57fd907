// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: brumm.stat counts what tasks own, as /proc has it (brumm recount),
 * whatever they do: fork, exec, vfork, threads, mappings, files, moves, deaths; and
 * nothing when they are gone.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cg.h"
#include "ledger.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

#define WORKERS		8
#define CHILDREN	6	/* of a worker at a time */
#define AREAS		6
#define FILES		40
#define PAGE		4096ul
#define HUGE		(2ul << 20)

/* Those who wait must not keep those who work from it. */
static void wait_until(const uint32_t *p, uint32_t v)
{
	while (get(p) != v)
		sleep_us(2000);
}

static void wait_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

/* Figures that follow from what is done, not from /proc. */
static void touch_pages(void *arg)
{
	uint32_t *step = arg;
	char *p = mmap(NULL, 100 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *s = mmap(NULL, 100 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long i;

	REQUIRE(p != MAP_FAILED && s != MAP_FAILED);
	put(step, 1);
	await(step, 2);
	for (i = 0; i < 100; i++) {
		p[i * PAGE] = 1;
		if (i < 30)
			s[i * PAGE] = 1;
	}
	put(step, 3);
	await(step, 4);
	madvise(p, 50 * PAGE, MADV_DONTNEED);
	munmap(s, 100 * PAGE);
	put(step, 5);
	wait_for_ever(NULL);
}

static void pages_count(void)
{
	uint32_t *step = shared(sizeof(*step));
	int64_t anon, shmem, vma;
	pid_t pid;

	make_places();
	pid = spawn_in(place[DEEP], touch_pages, step);
	await(step, 1);
	CHECK_EQ(count(top, "process"), 1);
	CHECK_EQ(count(top, "thread"), 0);
	CHECK_EQ(count(top, "mm"), 1);
	anon = count(top, "anon");
	shmem = count(place[DEEP], "shmem");
	vma = count(top, "vma");
	put(step, 2);
	await(step, 3);
	CHECK_EQ(count(top, "anon"), anon + 100);
	CHECK_EQ(count(place[DEEP], "shmem"), shmem + 30);
	CHECK_EQ(count(place[HERE], "anon"), 0);
	put(step, 4);
	await(step, 5);
	CHECK_EQ(count(top, "anon"), anon + 50);
	CHECK_EQ(count(top, "shmem"), shmem);
	CHECK_EQ(count(top, "vma"), vma - 1);
	agrees();
	kill_and_reap(pid);
	nothing_is_left();
}

static void *sleeper(void *arg)
{
	(void)arg;
	wait_for_ever(NULL);
	return NULL;
}

static void with_threads(void *arg)
{
	int i;

	for (i = 0; i < 5; i++)
		start(sleeper, NULL);
	put(arg, 1);
	wait_for_ever(NULL);
}

static void processes_move(void)
{
	uint32_t *up = shared(sizeof(*up));
	pid_t pid, other;
	char text[16];

	make_places();
	pid = spawn_in(place[HERE], with_threads, up);
	await(up, 1);
	CHECK_EQ(count(top, "thread"), 5);
	snprintf(text, sizeof(text), "%d", pid);
	REQUIRE_OK(cg_write(place[DEEP], "cgroup.procs", text));
	CHECK_EQ(count(place[HERE], "process"), 0);
	CHECK_EQ(cg_key(place[HERE], "brumm.stat", "usage_ns"), 0);
	CHECK_EQ(count(place[DEEP], "thread"), 5);
	CHECK_EQ(count(place[DEEP], "mm"), 1);
	agrees();
	REQUIRE_OK(cg_write(place[OUTSIDE], "cgroup.procs", text));
	CHECK_EQ(cg_key(top, "brumm.stat", "living_records"), 0);
	CHECK_EQ(cg_key(top, "brumm.stat", "usage_ns"), 0);
	REQUIRE_OK(cg_write(place[HERE], "cgroup.procs", text));
	CHECK_EQ(count(top, "thread"), 5);
	agrees();
	/* Off, and on again while it is there. */
	other = spawn_in(place[OUTSIDE], wait_for_ever, NULL);
	REQUIRE_OK(cg_write(top, "brumm.mode", "off"));
	CHECK_EQ(cg_key(top, "brumm.stat", "usage_ns"), 0);
	REQUIRE_OK(cg_write(place[OUTSIDE], "brumm.mode", "audit"));
	CHECK_EQ(count(place[OUTSIDE], "process"), 1);
	CHECK_EQ(count(top, "process"), 0);
	REQUIRE_OK(cg_write(top, "brumm.mode", "enforce"));
	CHECK_EQ(count(top, "thread"), 5);
	agrees();
	kill_and_reap(pid);
	kill_and_reap(other);
	nothing_is_left();
}

/* Any operation of a tenant, in a row. */
struct worker {
	struct rng rng;
	pid_t child[CHILDREN];
	char *area[AREAS];
	size_t len[AREAS];
	int file[FILES];
};

static void *short_thread(void *arg)
{
	(void)arg;
	return NULL;
}

static void make_child(struct worker *w)
{
	unsigned int i = rng_below(&w->rng, CHILDREN), how;

	if (w->child[i]) {
		kill(w->child[i], SIGKILL);
		waitpid(w->child[i], NULL, 0);
		w->child[i] = 0;
		return;
	}
	how = rng_below(&w->rng, 12);
	w->child[i] = how == 11 ? vfork() : fork();
	if (w->child[i])
		return;
	if (how >= 10) {
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	if (how < 3) {
		start(sleeper, NULL);
		syscall(SYS_exit, 0);	/* a leader that is dead */
	}
	wait_for_ever(NULL);
}

static void use_memory(struct worker *w)
{
	unsigned int i = rng_below(&w->rng, AREAS);
	size_t pages, at;

	if (!w->area[i]) {
		int flags = rng_once_in(&w->rng, 3) ? MAP_SHARED : MAP_PRIVATE;

		w->len[i] = PAGE * (1 + rng_below(&w->rng, 1200));
		w->area[i] = mmap(NULL, w->len[i], PROT_READ | PROT_WRITE,
				  flags | MAP_ANONYMOUS, -1, 0);
		if (w->area[i] == MAP_FAILED)
			w->area[i] = NULL;
		else if (rng_once_in(&w->rng, 3))
			madvise(w->area[i], w->len[i], MADV_HUGEPAGE);
		return;
	}
	pages = w->len[i] / PAGE;
	at = PAGE * rng_below(&w->rng, pages);
	switch (rng_below(&w->rng, 6)) {
	case 0:
		munmap(w->area[i], w->len[i]);
		w->area[i] = NULL;
		break;
	case 1:
		madvise(w->area[i] + at, w->len[i] - at, MADV_DONTNEED);
		break;
	case 2:
		mprotect(w->area[i] + at, PAGE, PROT_READ);
		mprotect(w->area[i], w->len[i], PROT_READ | PROT_WRITE);
		break;
	default:
		for (; at < w->len[i] && !rng_once_in(&w->rng, 500); at += PAGE)
			w->area[i][at] = 1;
	}
}

static int any_file(struct worker *w, int other)
{
	int pair[2] = { -1, -1 };

	switch (rng_below(&w->rng, 7)) {
	case 0:
		return eventfd(0, rng_once_in(&w->rng, 2) ? EFD_CLOEXEC : 0);
	case 1:
		return open("/proc/self/stat", O_RDONLY);
	case 2:
		return socket(AF_INET, rng_once_in(&w->rng, 2) ? SOCK_STREAM :
			      SOCK_DGRAM, 0);
	case 3:
		return epoll_create1(EPOLL_CLOEXEC);
	case 4:
		if (!pipe(pair))
			close(pair[1]);
		return pair[0];
	case 5:
		return open("/dev/null", O_RDWR);
	default:
		return dup(other);
	}
}

static void use_files(struct worker *w)
{
	unsigned int i = rng_below(&w->rng, FILES);

	if (w->file[i] > 0) {
		close(w->file[i]);
		w->file[i] = 0;
	} else {
		w->file[i] = any_file(w, w->file[rng_below(&w->rng, FILES)]);
	}
}

static void move(struct worker *w)
{
	pid_t pid = w->child[rng_below(&w->rng, CHILDREN)];
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	cg_write(place[rng_below(&w->rng, PLACES)], "cgroup.procs", text);
}

static void one_step(struct worker *w)
{
	switch (rng_below(&w->rng, 10)) {
	case 0:
	case 1:
		make_child(w);
		break;
	case 2:
		move(w);
		break;
	case 3:
		join(start(short_thread, NULL));
		break;
	case 4:
	case 5:
		use_files(w);
		break;
	default:
		use_memory(w);
	}
}

struct arena {
	uint32_t round, done, next;
	uint64_t seed;
	unsigned int steps, rounds;
};

/* By number: a leader that is dead may be in another cgroup than its threads. */
static void leave(const struct worker *w)
{
	unsigned int i;

	for (i = 0; i < CHILDREN; i++) {
		if (!w->child[i])
			continue;
		kill(w->child[i], SIGKILL);
		waitpid(w->child[i], NULL, 0);
	}
	_exit(0);
}

static void work(void *arg)
{
	struct arena *a = arg;
	struct worker *w = calloc(1, sizeof(*w));
	uint32_t me = add(&a->next, 1), round;
	unsigned int i;

	REQUIRE(w);
	w->rng.s = a->seed + me;
	for (round = 1;; round++) {
		wait_until(&a->round, round);
		if (round > a->rounds)
			leave(w);
		for (i = 0; i < a->steps; i++)
			one_step(w);
		add(&a->done, 1);
	}
}

static void anything(void)
{
	struct arena *a = shared(sizeof(*a));
	unsigned int i, round, rounds = tap_pick(2, 10);
	pid_t pid[WORKERS];

	make_places();
	a->seed = tap_seed();
	a->rounds = rounds;
	/* 10^4 altogether in the long variant, and recounted in between. */
	a->steps = tap_pick(100, 1250) / rounds;
	for (i = 0; i < WORKERS; i++)
		pid[i] = spawn_in(place[i % 2], work, a);
	for (round = 1; round <= rounds; round++) {
		put(&a->done, 0);
		put(&a->round, round);
		wait_until(&a->done, WORKERS);
		tap_diag("round %u", round);
		agrees();
	}
	put(&a->round, round);
	for (i = 0; i < WORKERS; i++)
		reap(pid[i]);
	nothing_is_left();
}

/* A cgroup that is removed is charged for its dead until they are reaped. */
static void die(void *arg)
{
	(void)arg;
	_exit(0);
}

static void the_dead_count(void)
{
	siginfo_t info;
	pid_t pid;

	make_places();
	pid = spawn_in(place[DEEP], die, NULL);
	REQUIRE(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	CHECK_EQ(count(top, "process"), 1);
	CHECK_EQ(count(top, "mm"), 0);
	cg_remove("l/b/c");
	CHECK_EQ(count(top, "process"), 1);
	reap(pid);
	nothing_is_left();
}

static const struct tap_case cases[] = {
	{ "pages, mappings and tables count", pages_count },
	{ "a process moves with all its threads and memory", processes_move },
	{ "the dead count until they are reaped", the_dead_count },
	{ "random operations of 8 processes leave no difference",
	  anything, 600 },
};

int main(int argc, char **argv)
{
	tap_after_case = cg_sweep;
	return tap_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
