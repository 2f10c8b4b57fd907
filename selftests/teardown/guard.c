// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: with the guard on, what would exceed brumm.max is refused with the errno
 * of the operation, exactly where the limit is; in mode audit it is let through
 * and counted; and no tenant gets around it. How many fit follows from prices that
 * are set here, not from what the module says.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cg.h"
#include "proc.h"
#include "rng.h"
#include "steps.h"
#include "tap.h"

#define PAGE		4096ul
#define HUGE		(2ul << 20)
#define GIB		(1ul << 30)
#define TOP		"brumm-test/g"
#define BRUMM		"build/user/brumm"
#define WORKERS		8
#define COST		1000	/* of one of what is counted, ns */

static int top;

/* Nothing costs anything, but each of @kinds COST. */
static void prices(int cg, const char *kinds)
{
	char have[4096], text[4096] = "", *line, *save, name[32];
	size_t used = 0;

	REQUIRE(cg_read(cg, "brumm.price", have, sizeof(have)) > 0);
	for (line = strtok_r(have, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		REQUIRE(sscanf(line, "%31s", name) == 1);
		if (strcmp(name, "own"))
			used += snprintf(text + used, sizeof(text) - used,
					 "%s %d ", name,
					 strstr(kinds, name) ? COST : 0);
	}
	REQUIRE_OK(cg_write(cg, "brumm.price", text));
}

static int64_t usage(int cg)
{
	return cg_key(cg, "brumm.stat", "usage_ns");
}

static int64_t events(const char *key)
{
	return cg_key(top, "brumm.events", key);
}

/* What is used now, and @n more. */
static void limit(int cg, int64_t n)
{
	char text[40];

	snprintf(text, sizeof(text), "%lldns", (long long)(usage(cg) + n * COST));
	REQUIRE_OK(cg_write(cg, "brumm.max", text));
}

static void make_place(const char *kinds, const char *mode)
{
	top = cg_make("g");
	prices(top, kinds);
	REQUIRE_OK(cg_write(top, "brumm.mode", mode));
}

static bool run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void agrees(void)
{
	CHECK(run(BRUMM " recount " TOP " >recount.$$ 2>&1 || { sed 's/^/# /' recount.$$; exit 1; }; rm recount.$$"));
}

/* What `brumm guard --status` says of some hooks. */
struct hooks {
	long fork_refused, fork_audited, mmap_audited;
};

static struct hooks hooks(void)
{
	FILE *f = popen(BRUMM " guard --status", "r");
	char line[160], name[32];
	struct hooks h = { -1, -1, -1 };
	long refused, audited;

	REQUIRE(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %*s %ld %ld", name, &refused, &audited) != 3)
			continue;
		if (!strcmp(name, "fork")) {
			h.fork_refused = refused;
			h.fork_audited = audited;
		} else if (!strcmp(name, "mmap")) {
			h.mmap_audited = audited;
		}
	}
	pclose(f);
	return h;
}

static void nothing_is_left(void)
{
	uint64_t until = now_ns() + 10000000000ull;

	REQUIRE_OK(cg_write(top, "cgroup.kill", "1"));
	while (waitpid(-1, NULL, WNOHANG) >= 0 || usage(top)) {
		if (now_ns() > until)
			break;
		sleep_us(10000);
	}
	CHECK_EQ(usage(top), 0);
}

/* What actors do */

static long none(long arg)
{
	return arg;
}

/* How many of @arg children could be made, that stay. */
static long forks(long arg)
{
	long n;

	for (n = 0; n < arg; n++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (!pid)
			for (;;)
				pause();
	}
	return n;
}

static long fork_and_reap(long arg)
{
	pid_t pid = fork();

	(void)arg;
	if (pid < 0)
		return -1;
	if (!pid)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static int sleeper(void *arg)
{
	for (;;)
		pause();
	return !arg;
}

static long threads(long arg)
{
	long n;

	for (n = 0; n < arg; n++) {
		char *stack = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (stack == MAP_FAILED)
			return -1;
		if (clone(sleeper, stack + 16 * PAGE,
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM, NULL) < 0)
			break;
	}
	return n;
}

/* Mappings of a page that cannot be merged. */
static long maps(long arg)
{
	long n;

	for (n = 0; n < arg; n++)
		if (mmap(NULL, PAGE, n & 1 ? PROT_READ : PROT_NONE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			break;
	return n;
}

static char *area;

static long map_area(long bytes)
{
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return area == MAP_FAILED ? -1 : 0;
}

/* A table for each page. */
static long touch_area(long bytes)
{
	long at;

	for (at = 0; at < bytes; at += HUGE)
		area[at + (at >> 9) % HUGE / PAGE * PAGE] = 1;
	return 0;
}

static long protect(long pages)
{
	return mprotect(area, pages * PAGE, PROT_READ);
}

static long move_area(long bytes)
{
	return mremap(area, PAGE, bytes, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0;
}

static long grow_heap(long bytes)
{
	long old = syscall(SYS_brk, 0);

	return syscall(SYS_brk, old + bytes) == old + bytes ? 0 : -1;
}

static const char *program = "/bin/true";

static long execute(long arg)
{
	int status;
	pid_t pid = vfork();

	if (!pid) {
		/* It may not come far. */
		close(2);
		execl(program, "true", NULL);
		_exit(errno == arg ? 99 : 98);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Cases */

static void fork_bomb(void)
{
	struct actor *a;

	make_place("process", "enforce");
	a = actor(top);
	limit(top, 7);
	CHECK_EQ(act(a, forks, 50), 7);
	CHECK_EQ(a->error, EAGAIN);
	CHECK_EQ(usage(top), 8 * COST);
	CHECK_EQ(events("max"), 1);
	CHECK_EQ(events("over"), 0);
	/* At run time. */
	limit(top, 3);
	CHECK_EQ(act(a, forks, 50), 3);
	CHECK_EQ(events("over"), 0);
	CHECK_EQ(cg_key(top, "brumm.stat", "process_count"), 11);
	nothing_is_left();
}

static void thread_bomb(void)
{
	struct actor *a;

	make_place("thread", "enforce");
	a = actor(top);
	limit(top, 9);
	CHECK_EQ(act(a, threads, 50), 9);
	CHECK_EQ(a->error, EAGAIN);
	CHECK_EQ(usage(top), 9 * COST);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

static void map_bomb(void)
{
	struct actor *a;

	make_place("vma", "enforce");
	a = actor(top);
	act(a, none, 0);
	limit(top, 12);
	CHECK_EQ(act(a, maps, 50), 12);
	CHECK_EQ(a->error, ENOMEM);
	/* The heap has no mapping to be made longer, or one more does not fit. */
	CHECK_EQ(act(a, map_area, PAGE), -1);
	CHECK_EQ(a->error, ENOMEM);
	CHECK_EQ(events("over"), 0);
	limit(top, 1);
	CHECK_EQ(act(a, map_area, 10 * PAGE), 0);
	/* A part of it: that cuts it. All of it does not. */
	CHECK_EQ(act(a, protect, 5), -1);
	CHECK_EQ(a->error, ENOMEM);
	CHECK_EQ(act(a, protect, 10), 0);
	limit(top, 1);
	CHECK_EQ(act(a, protect, 5), 0);
	CHECK_EQ(act(a, move_area, HUGE), -1);
	CHECK_EQ(a->error, ENOMEM);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

/* One table for 2 MiB, and some above; what may be refused is never above max. */
static void table_bomb(void)
{
	struct actor *a;
	int64_t max;
	int n;

	make_place("table", "enforce");
	a = actor(top);
	act(a, none, 0);
	limit(top, 400);
	max = usage(top) + 400 * COST;
	CHECK_EQ(act(a, map_area, GIB), -1);
	CHECK_EQ(a->error, ENOMEM);
	for (n = 0; n < 10 && !act(a, map_area, GIB / 8); n++)
		act(a, touch_area, GIB / 8);
	CHECK_EQ(a->error, ENOMEM);
	/* 64 each, and at most 4 at the ends. */
	CHECK(n == 5 || n == 6);
	CHECK(usage(top) >= 5 * 64 * COST && usage(top) <= max);
	CHECK_EQ(act(a, move_area, GIB), -1);
	CHECK_EQ(act(a, grow_heap, GIB), -1);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();

	/* First all are mapped, and touched afterwards. */
	cg_remove("g");
	make_place("table", "enforce");
	a = actor(top);
	act(a, none, 0);
	limit(top, 400);
	for (n = 0; n < 10 && !act(a, map_area, GIB / 8); n++)
		;
	CHECK(n == 5 || n == 6);
	nothing_is_left();
}

static void execs(void)
{
	struct actor *a;

	make_place("vma", "enforce");
	a = actor(top);
	CHECK_EQ(act(a, execute, 0), 0);
	limit(top, 5);
	CHECK_EQ(act(a, execute, ENOMEM), 99);
	limit(top, 100);
	CHECK_EQ(act(a, execute, 0), 0);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

/* A fork of the caller now waits until the returned descriptor is read. */
static long watch_forks(long arg)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_FORK };
	struct uffdio_register all = { { (uintptr_t)page, PAGE }, UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | arg);

	return ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all) ? -1 : fd;
}

/* What is used stays the same, as long as @a is at it. */
static void reserved(struct actor *a, int64_t expect)
{
	unsigned long n = tap_pick(20, 240);

	while (usage(top) == expect && n--)
		sleep_us(50000);
	CHECK_EQ(usage(top), expect);
	CHECK(get(&a->done) != get(&a->go));
}

static void slow_fork(void)
{
	struct uffd_msg msg;
	struct actor *a;
	int fd;

	make_place("process", "enforce");
	a = actor(top);
	fd = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, a->pid, 0),
		     act(a, watch_forks, 0), 0);
	REQUIRE(fd >= 0);
	limit(top, 1);
	tell(a, forks, 1);
	while (usage(top) == COST)
		sleep_us(1000);
	reserved(a, 2 * COST);
	REQUIRE(read(fd, &msg, sizeof(msg)) == sizeof(msg));
	CHECK_EQ(heed(a), 1);
	CHECK_EQ(usage(top), 2 * COST);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

/* A program that is not open for writing, which nobody could execute. */
static int make_program(const void *text, size_t size, char path[64])
{
	int fd = memfd_create("program", MFD_CLOEXEC), read_only;

	REQUIRE(write(fd, text, size) == (ssize_t)size);
	snprintf(path, 64, "/proc/%d/fd/%d", getpid(), fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	REQUIRE(read_only >= 0);
	close(fd);
	snprintf(path, 64, "/proc/%d/fd/%d", getpid(), read_only);
	return read_only;
}

/* A script, for whose interpreter one waits until we give up a lease of it. */
static void slow_exec(void)
{
	char text[1 << 20], path[64], script[64];
	int fd = open(program, O_RDONLY);
	struct actor *a;

	fd = make_program(text, read(fd, text, sizeof(text)), path);
	make_program(text, snprintf(text, sizeof(text), "#!%s\n", path), script);
	program = script;
	signal(SIGIO, SIG_IGN);
	REQUIRE_OK(fcntl(fd, F_SETLEASE, F_WRLCK));
	make_place("mm", "enforce");
	a = actor(top);
	act(a, none, 0);
	limit(top, 1);
	tell(a, execute, 0);
	while (fcntl(fd, F_GETLEASE) == F_WRLCK)
		sleep_us(1000);
	reserved(a, 2 * COST);
	REQUIRE_OK(fcntl(fd, F_SETLEASE, F_UNLCK));
	CHECK_EQ(heed(a), 0);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

static void audited(void)
{
	struct hooks before = hooks(), after;
	struct actor *a;

	make_place("process vma", "audit");
	a = actor(top);
	act(a, none, 0);
	REQUIRE_OK(cg_write(top, "brumm.max", "1ns"));
	CHECK_EQ(act(a, forks, 5), 5);
	CHECK_EQ(act(a, maps, 6), 6);
	CHECK_EQ(events("max"), 0);
	CHECK_EQ(events("audit"), 11);
	/* And at once: */
	REQUIRE_OK(cg_write(top, "brumm.mode", "enforce"));
	CHECK_EQ(act(a, forks, 5), 0);
	REQUIRE_OK(cg_write(top, "brumm.mode", "off"));
	CHECK_EQ(act(a, forks, 5), 5);
	after = hooks();
	CHECK_EQ(after.fork_audited - before.fork_audited, 5);
	CHECK_EQ(after.mmap_audited - before.mmap_audited, 6);
	CHECK_EQ(after.fork_refused - before.fork_refused, 1);
	nothing_is_left();
}

/* The limit of a cgroup above, and of one beside. */
static void levels(void)
{
	int64_t in, beside;
	struct actor *a, *b;
	int one, two;

	make_place("process", "enforce");
	one = cg_make("g/one");
	two = cg_make("g/two");
	a = actor(one);
	b = actor(two);
	limit(top, 6);
	limit(two, 2);
	CHECK_EQ(act(b, forks, 50), 2);
	CHECK_EQ(act(a, forks, 50), 4);
	in = cg_key(one, "brumm.events.local", "max");
	beside = cg_key(two, "brumm.events.local", "max");
	CHECK_EQ(in, 0);
	CHECK_EQ(beside, 1);
	CHECK_EQ(cg_key(top, "brumm.events.local", "max"), 1);
	REQUIRE_OK(cg_write(one, "brumm.lock", "1"));
	limit(top, 9);
	CHECK_EQ(act(a, forks, 50), 0);
	CHECK_EQ(a->error, EAGAIN);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

/* A child that is in another cgroup from its birth on. */
static long fork_into(long cg)
{
	struct clone_args a = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = cg,
	};
	pid_t pid = syscall(SYS_clone3, &a, sizeof(a));

	return pid ? pid : sleeper(NULL);
}

static void born_elsewhere(void)
{
	struct actor *a;
	int one, two;
	int64_t max;

	make_place("process", "enforce");
	/* So that each has an account. */
	limit(one = cg_make("g/one"), 9);
	limit(two = cg_make("g/two"), 9);
	a = actor(one);
	limit(top, 1);
	max = usage(top) + COST;
	CHECK(act(a, fork_into, two) > 0);
	CHECK_EQ(events("over"), 0);
	CHECK_EQ(cg_key(two, "brumm.stat", "process_count"), 1);
	CHECK_EQ(usage(top), max);
	CHECK_EQ(act(a, fork_into, two), -1);
	CHECK_EQ(a->error, EAGAIN);
	nothing_is_left();
}

/* Races */

struct arena {
	uint64_t seed;
	uint32_t steps, next, go, done, quit;
};

static void one_step(struct rng *r)
{
	static char *mine[4];
	int i = rng_below(r, 4);

	switch (rng_below(r, 8)) {
	case 0:
	case 1:
		fork_and_reap(0);
		break;
	case 2:
		execute(0);
		break;
	case 3:
		if (mine[i])
			mprotect(mine[i] + PAGE * rng_below(r, 4), PAGE,
				 rng_below(r, 2) ? PROT_READ : PROT_NONE);
		break;
	default:
		if (mine[i]) {
			munmap(mine[i], 4 * PAGE);
			mine[i] = NULL;
		} else {
			mine[i] = mmap(NULL, 4 * PAGE, PROT_READ,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
			if (mine[i] == MAP_FAILED)
				mine[i] = NULL;
			else
				(void)*(volatile char *)mine[i];
		}
	}
}

static void work(void *arg)
{
	struct arena *a = arg;
	struct rng r = { .s = a->seed + add(&a->next, 1) };
	uint32_t i;

	while (!get(&a->go))
		sleep_us(1000);
	for (i = 0; i < a->steps; i++)
		one_step(&r);
	add(&a->done, 1);
	while (!get(&a->quit))
		sleep_us(2000);
	_exit(0);
}

/* They wait for the word. */
static struct arena *begin(uint32_t steps)
{
	struct arena *a = shared(sizeof(*a));
	int i;

	a->seed = tap_seed();
	a->steps = steps;
	for (i = 0; i < WORKERS; i++)
		spawn_in(top, work, a);
	while (get(&a->next) < WORKERS)
		sleep_us(1000);
	return a;
}

static void at_the_limit(void)
{
	struct arena *a;
	int64_t max;

	make_place("process thread mm vma", "enforce");
	a = begin(tap_pick(150, 2000));
	/* Two or three of them can have a child at a time. */
	max = usage(top) + 120 * COST;
	limit(top, 120);
	put(&a->go, 1);
	while (get(&a->done) < WORKERS)
		sleep_us(2000);
	tap_diag("refused %lld", (long long)events("max"));
	CHECK(events("max") > 0);
	CHECK_EQ(events("over"), 0);
	CHECK(cg_number(top, "brumm.peak") <= max / 1000);
	agrees();
	put(&a->quit, 1);
	nothing_is_left();
}

static void at_random(void)
{
	static const char *const modes[] = { "enforce", "enforce", "audit", "off" };
	static const char *const limits[] = { "1ns", "10s", "10s", "max" };
	struct rng r = { .s = tap_seed() };
	struct arena *a;

	make_place("process thread mm vma table anon file shmem", "enforce");
	a = begin(tap_pick(80, 1000));
	put(&a->go, 1);
	while (get(&a->done) < WORKERS) {
		REQUIRE_OK(cg_write(top, "brumm.max",
				    limits[rng_below(&r, 4)]));
		REQUIRE_OK(cg_write(top, "brumm.mode",
				    modes[rng_below(&r, 4)]));
		sleep_us(1000 + rng_below(&r, 20000));
	}
	REQUIRE_OK(cg_write(top, "brumm.mode", "enforce"));
	agrees();
	put(&a->quit, 1);
	nothing_is_left();
}

/* Around it */

static int64_t as_nobody(void *arg)
{
	struct actor *a = arg;
	char uid[16];

	snprintf(uid, sizeof(uid), "%d", a->pid);
	cg_enter(top);
	if (setgid(65534) || setuid(65534))
		return -1;
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS))
		return -errno;
	/* As root of its own name spaces. */
	if (!cg_write(top, "brumm.max", "max") ||
	    !cg_write(top, "brumm.mode", "off") ||
	    !cg_write(top, "brumm.price", "process 0"))
		return -2;
	if (!access("/sys/fs/bpf/brumm/fork", F_OK) ||
	    !unlink("/sys/fs/bpf/brumm/fork"))
		return -3;
	return forks(50);
}

static void tenant(void)
{
	make_place("process", "enforce");
	REQUIRE_OK(cg_write(top, "brumm.max", "5us"));
	CHECK_EQ(in_child(as_nobody, &(struct actor){ .pid = getpid() }), 4);
	CHECK(run(BRUMM " guard --status >/dev/null"));
	nothing_is_left();
}

/* Of a task that shares the memory of one elsewhere, the owner's limit holds. */
static uint32_t *shared_step;
static int outer;

static int map_here(void *arg)
{
	struct actor *a = arg;

	cg_enter(outer);
	a->result = maps(50);
	a->error = errno;
	put(shared_step, 1);
	return sleeper(arg);
}

static long share_memory(long arg)
{
	char *stack = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return clone(map_here, stack + 64 * PAGE, CLONE_VM | SIGCHLD,
		     (void *)arg);
}

static void shared_memory(void)
{
	struct actor *a, *b = shared(sizeof(*b));
	int inner;

	make_place("vma", "enforce");
	inner = cg_make("g/in");
	outer = cg_make("g/out");
	shared_step = shared(sizeof(*shared_step));
	a = actor(inner);
	act(a, none, 0);
	limit(inner, 12);
	act(a, share_memory, (long)b);
	await(shared_step, 1);
	CHECK(b->result > 0 && b->result < 12);
	CHECK_EQ(b->error, ENOMEM);
	CHECK_EQ(events("over"), 0);
	nothing_is_left();
}

static void killed(void)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		pid_t pid;

		CHECK(run(BRUMM " guard --stop >/dev/null"));
		CHECK(!run(BRUMM " guard --status >/dev/null"));
		pid = fork();
		REQUIRE(pid >= 0);
		if (!pid) {
			execl(BRUMM, "brumm", "guard", "--json", NULL);
			_exit(1);
		}
		sleep_us(50000 * i * i);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	/* Whatever that has left. */
	CHECK(run(BRUMM " guard >/dev/null"));
	CHECK(run(BRUMM " guard >/dev/null"));
	CHECK(run(BRUMM " guard --status >/dev/null"));
	fork_bomb();
}

static void keeps_the_module(void)
{
	CHECK(syscall(SYS_delete_module, "brumm", O_NONBLOCK) == -1);
	CHECK(errno == EWOULDBLOCK || errno == EBUSY);
	CHECK(run(BRUMM " guard --status >/dev/null"));
}

static const struct tap_case cases[] = {
	{ "a fork that exceeds the budget is refused with EAGAIN", fork_bomb },
	{ "so is a thread", thread_bomb },
	{ "mappings are refused with ENOMEM, and cuts by mprotect", map_bomb },
	{ "page tables are reserved when memory is mapped", table_bomb },
	{ "an exec is refused with an errno, and nobody killed", execs },
	{ "a fork keeps what it has reserved, however long it takes", slow_fork },
	{ "so does an exec", slow_exec },
	{ "audit lets through, and counts by hook", audited },
	{ "limits of all levels hold", levels },
	{ "a child that is born elsewhere exceeds no level of both", born_elsewhere },
	{ "memory shared across cgroups is its owner's", shared_memory },
	{ "8 processes at the limit never exceed it", at_the_limit, 400 },
	{ "refused at random, a recount agrees", at_random, 400 },
	{ "a tenant with name spaces of its own gets around nothing", tenant },
	{ "killed half-way, it is completed", killed },
	{ "the module stays while it is on", keeps_the_module },
};

int main(int argc, char **argv)
{
	tap_after_case = cg_sweep;
	return tap_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
