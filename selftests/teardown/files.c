// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: brumm.stat counts descriptors, and open files by type, as follows from
 * what was opened: each table once, each file once in a cgroup; by dup, fork,
 * exec, threads, tables that are shared, files on their way, moves and deaths.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cg.h"
#include "ledger.h"
#include "proc.h"
#include "tap.h"

#define MANY	100000
#define STACK	65536

/* Each, and how many open_each() opens. */
static const struct {
	const char *name;
	int opened;
} kinds[] = {
	{ "plain", 2 }, { "eventfd", 2 }, { "pipe", 2 }, { "unix", 4 },
	{ "tcp", 5 }, { "socket", 6 }, { "uring", 7 }, { "epoll", 8 },
	{ "otherfile", 9 },
};

/* A process that does what it is told. */
struct servant {
	uint32_t asked, done;
	void (*fn)(int n);
	int n;
	pid_t pid;
};

static void serve(void *arg)
{
	struct servant *s = arg;
	uint32_t turn;

	for (turn = 1;; turn++) {
		await(&s->asked, turn);
		s->fn(s->n);
		put(&s->done, turn);
	}
}

static struct servant *servant_in(int cg)
{
	struct servant *s = shared(sizeof(*s));

	s->pid = spawn_in(cg, serve, s);
	return s;
}

static void tell(struct servant *s, void (*fn)(int n), int n)
{
	s->fn = fn;
	s->n = n;
	await(&s->done, add(&s->asked, 1));
}

static void move(const struct servant *s, int cg)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", s->pid);
	REQUIRE_OK(cg_write(cg, "cgroup.procs", text));
}

/* What servants do. Those that open leave it open. */

static void open_each(int n)
{
	struct io_uring_params p = { 0 };
	int pair[2];

	/* A place in the tree counts as what it is a place of. */
	REQUIRE(open("/", O_RDONLY) >= 0 &&
		open("/proc/self/exe", O_PATH) >= 0);
	REQUIRE(eventfd(0, 0) >= 0 && eventfd(0, 0) >= 0);
	/* Three slots. */
	REQUIRE(!pipe(pair) && dup(pair[0]) >= 0);
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) &&
		socket(AF_UNIX, SOCK_DGRAM, 0) >= 0 &&
		socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	for (n = 0; n < 5; n++)
		REQUIRE(socket(n % 2 ? AF_INET6 : AF_INET, SOCK_STREAM, 0) >= 0);
	for (n = 0; n < 6; n++)
		REQUIRE(socket(n % 2 ? AF_NETLINK : AF_INET, SOCK_DGRAM, 0) >= 0);
	for (n = 0; n < 7; n++)
		syscall(SYS_io_uring_setup, 4, &p);
	for (n = 0; n < 8; n++)
		REQUIRE(epoll_create1(0) >= 0);
	for (n = 0; n < 9; n++)
		REQUIRE(open("/dev/null", O_RDONLY) >= 0);
}

static void open_events(int n)
{
	while (n--)
		REQUIRE(eventfd(0, 0) >= 0);
}

static void open_events_until_exec(int n)
{
	while (n--)
		REQUIRE(eventfd(0, EFD_CLOEXEC) >= 0);
}

static void dup_last(int n)
{
	int last = eventfd(0, 0);

	while (n--)
		REQUIRE(dup(last) >= 0);
}

static void close_from(int n)
{
	REQUIRE(!close_range(n, ~0u, 0));
}

static void wait_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static pid_t child;

static void fork_one(int n)
{
	(void)n;
	child = spawn(wait_for_ever, NULL);
}

static void end_child(int n)
{
	(void)n;
	kill_and_reap(child);
}

static int wait_with_own(void *arg)
{
	(void)arg;
	wait_for_ever(NULL);
	return 0;
}

/* A process that shares the table. */
static void clone_one(int n)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)n;
	REQUIRE(stack != MAP_FAILED);
	child = clone(wait_with_own, stack + STACK, CLONE_FILES | SIGCHLD, NULL);
	REQUIRE(child > 0);
}

static uint32_t left_table;

static void *own_table(void *arg)
{
	REQUIRE(!unshare(CLONE_FILES));
	close_range(3, ~0u, 0);
	open_events((int)(intptr_t)arg);
	put(&left_table, 1);
	wait_for_ever(NULL);
	return NULL;
}

static void *same_table(void *arg)
{
	wait_for_ever(arg);
	return NULL;
}

static void start_thread(int n)
{
	start(same_table, NULL);
	if (n) {
		start(own_table, (void *)(intptr_t)n);
		await(&left_table, 1);
	}
}

static void exec_sleep(int n)
{
	(void)n;
	child = fork();
	if (!child) {
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
}

static int way[2];

static void send_event(int n)
{
	int fd = eventfd(0, 0);

	(void)n;
	REQUIRE(!socketpair(AF_UNIX, SOCK_DGRAM, 0, way));
	fd_send(way[0], fd);
	close(fd);
}

static void receive_event(int n)
{
	(void)n;
	REQUIRE(fd_recv(way[1]) >= 0);
}

static void raise_limit(int n)
{
	struct rlimit r = { (rlim_t)n + 64, (rlim_t)n + 64 };

	REQUIRE(!setrlimit(RLIMIT_NOFILE, &r));
}

/* Figures before, and what they have grown by since. */
static int64_t fd_before, before[ARRAY_SIZE(kinds)];

static void note(int cg)
{
	unsigned int k;

	fd_before = count(cg, "fd");
	for (k = 0; k < ARRAY_SIZE(kinds); k++)
		before[k] = count(cg, kinds[k].name);
}

static int64_t fds_since(int cg)
{
	return count(cg, "fd") - fd_before;
}

static int64_t since(int cg, const char *kind)
{
	unsigned int k = 0;

	while (strcmp(kinds[k].name, kind))
		k++;
	return count(cg, kind) - before[k];
}

static void finish(struct servant *s)
{
	kill_and_reap(s->pid);
	nothing_is_left();
}

/* ---- cases --------------------------------------------------------------- */

static void types_count(void)
{
	struct servant *s;
	unsigned int k;
	int64_t slots = 1;

	make_places();
	s = servant_in(place[DEEP]);
	/* It has what its parent had. */
	tell(s, close_from, 3);
	note(top);
	tell(s, open_each, 0);
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		/* There is none where that is forbidden. */
		if (!strcmp(kinds[k].name, "uring") && !since(top, "uring"))
			continue;
		CHECK_EQ(since(top, kinds[k].name), kinds[k].opened);
		CHECK_EQ(count(place[HERE], kinds[k].name), 0);
		slots += kinds[k].opened;
	}
	CHECK_EQ(fds_since(place[DEEP]), slots);
	agrees();
	tell(s, close_from, 3);
	for (k = 0; k < ARRAY_SIZE(kinds); k++)
		CHECK_EQ(since(top, kinds[k].name), 0);
	CHECK_EQ(fds_since(top), 0);
	finish(s);
}

static void dups_and_forks_count(void)
{
	struct servant *s;

	make_places();
	s = servant_in(place[HERE]);
	note(top);
	tell(s, dup_last, 10);
	CHECK_EQ(fds_since(top), 11);
	CHECK_EQ(since(top, "eventfd"), 1);
	tell(s, close_from, 3);
	note(top);
	tell(s, open_events, 1000);
	CHECK_EQ(since(top, "eventfd"), 1000);
	tell(s, fork_one, 0);
	CHECK_EQ(count(top, "fd"), 2 * (fd_before + 1000));
	CHECK_EQ(since(top, "eventfd"), 1000);
	agrees();
	/* In another cgroup they count once more. */
	tell(s, end_child, 0);
	move(s, place[DEEP]);
	CHECK_EQ(count(place[HERE], "fd"), 0);
	CHECK_EQ(count(place[HERE], "eventfd"), 0);
	CHECK_EQ(count(place[DEEP], "eventfd"), 1000);
	/* The child stays. */
	tell(s, fork_one, 0);
	move(s, place[HERE]);
	CHECK_EQ(count(place[HERE], "eventfd"), 1000);
	CHECK_EQ(count(place[DEEP], "eventfd"), 1000);
	CHECK_EQ(count(top, "eventfd"), 2000);
	agrees();
	move(s, place[OUTSIDE]);
	CHECK_EQ(count(top, "eventfd"), 1000);
	tell(s, end_child, 0);
	finish(s);
}

static void exec_closes(void)
{
	struct servant *s;
	uint64_t until = now_ns() + 10000000000ull;

	make_places();
	s = servant_in(place[HERE]);
	tell(s, close_from, 3);
	note(top);
	tell(s, open_events, 5);
	tell(s, open_events_until_exec, 100);
	CHECK_EQ(since(top, "eventfd"), 105);
	tell(s, exec_sleep, 0);
	/* The child has the first five. */
	while (fds_since(top) != 105 + 5 + fd_before && now_ns() < until)
		sleep_us(10000);
	CHECK_EQ(fds_since(top), 105 + 5 + fd_before);
	tell(s, close_from, 3);
	CHECK_EQ(since(top, "eventfd"), 5);
	agrees();
	tell(s, end_child, 0);
	finish(s);
}

static void shared_tables_count_once(void)
{
	struct servant *s;

	make_places();
	s = servant_in(place[HERE]);
	tell(s, close_from, 3);
	tell(s, open_events, 20);
	note(top);
	tell(s, start_thread, 0);
	CHECK_EQ(fds_since(top), 0);
	tell(s, start_thread, 7);
	/* A table of its own, with the first three. */
	CHECK_EQ(fds_since(top), 7 + 3);
	CHECK_EQ(since(top, "eventfd"), 7);
	agrees();
	tell(s, clone_one, 0);
	CHECK_EQ(fds_since(top), 7 + 3);
	CHECK_EQ(count(top, "process"), 2);
	agrees();
	/* The other one still has it. */
	kill_and_reap(s->pid);
	CHECK_EQ(count(top, "eventfd"), 20);
	REQUIRE_OK(cg_write(top, "cgroup.kill", "1"));
	nothing_is_left();
}

static void what_is_under_way_does_not_count(void)
{
	struct servant *s;

	make_places();
	s = servant_in(place[HERE]);
	note(top);
	tell(s, send_event, 0);
	CHECK_EQ(since(top, "eventfd"), 0);
	CHECK_EQ(since(top, "unix"), 2);
	tell(s, receive_event, 0);
	CHECK_EQ(since(top, "eventfd"), 1);
	agrees();
	finish(s);
}

static void many_count(void)
{
	struct servant *s;

	make_places();
	s = servant_in(place[HERE]);
	tell(s, raise_limit, MANY);
	note(top);
	tell(s, open_events, MANY / 2);
	tell(s, dup_last, MANY / 2 - 1);
	CHECK_EQ(fds_since(top), MANY);
	CHECK_EQ(since(top, "eventfd"), MANY / 2 + 1);
	CHECK_EQ(cg_key(top, "brumm.stat", "living_stale"), 0);
	finish(s);
}

static const struct tap_case cases[] = {
	{ "files count by type, and no more when they are closed", types_count },
	{ "a file counts once in a cgroup, each slot counts", dups_and_forks_count },
	{ "what an exec closes does not count", exec_closes },
	{ "a table that threads or processes share counts once",
	  shared_tables_count_once },
	{ "a file that is being sent does not count",
	  what_is_under_way_does_not_count },
	{ "100,000 descriptors count, and go at once", many_count },
};

int main(int argc, char **argv)
{
	tap_after_case = cg_sweep;
	return tap_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
