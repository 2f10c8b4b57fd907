// SPDX-License-Identifier: GPL-2.0
/*
 * shape NAME [N]: a process whose exit is mostly one thing. It dies by itself, or
 * says "ready" and waits to be killed; see the list at the end.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
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
#include <time.h>
#include <unistd.h>

#include "tap.h"

static long number;

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

/* N pages side by side. */
static void pages(void)
{
	memset(map((size_t)number << 12), 1, (size_t)number << 12);
}

/* N pages, each in a table of its own. */
static void tables(void)
{
	char *p = map((size_t)number << 21);
	long i;

	for (i = 0; i < number; i++)
		p[(size_t)i << 21] = 1;
}

/* N address ranges, none of which has a page. */
static void vmas(void)
{
	char *p = map((size_t)number << 13);
	long i;

	for (i = 0; i < number; i++)
		mprotect(p + (i << 13), 4096, PROT_READ);
}

/* Of a file system whose files close at once. */
static int one_plain(void)
{
	return open("/proc/self/status", O_RDONLY);
}

static int one_eventfd(void)
{
	return eventfd(0, 0);
}

static int one_pipe(void)
{
	int fd[2];

	return pipe(fd);
}

static int one_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int one_tcp(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int one_udp(void)
{
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static int one_epoll(void)
{
	return epoll_create1(0);
}

static int one_null(void)
{
	return open("/dev/null", O_RDONLY);
}

static void files(int (*one)(void))
{
	struct rlimit r = { 8192, 8192 };
	long i;

	setrlimit(RLIMIT_NOFILE, &r);
	for (i = 0; i < number; i++)
		if (one() < 0) {
			perror("a file");
			exit(1);
		}
}

static void netns(void)
{
	if (unshare(CLONE_NEWNET)) {
		perror("unshare");
		exit(1);
	}
}

static void nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
	pause();
}

/* The init of a PID namespace with N zombies ends. */
static void zombies(void)
{
	long i;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		exit(1);
	pid = fork();
	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	for (i = 0; i < number; i++) {
		siginfo_t info;

		pid = fork();
		if (!pid)
			_exit(0);
		if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
			_exit(1);
	}
	_exit(0);
}

/* A child that has died is reaped N ms later. */
static void parent(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	nap(number);
	waitpid(pid, NULL, 0);
}

static void *sleeper(void *arg)
{
	(void)arg;
	nap(number);
	return NULL;
}

/* The first thread ends N ms before the other one. */
static void leader(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, sleeper, NULL))
		exit(1);
	/* At once: pthread_exit() would load a library first. */
	syscall(SYS_exit, 0);
}

/* The init of a PID namespace waits for a child that has N pages to free. */
static void init(void)
{
	int fd[2];
	pid_t pid;
	char c;

	if (unshare(CLONE_NEWPID) || pipe(fd))
		exit(1);
	pid = fork();
	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	if (!fork()) {
		pages();
		if (write(fd[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	_exit(read(fd[0], &c, 1) != 1);
}

static void *idle(void *arg)
{
	pause();
	return arg;
}

/* N threads. */
static void threads(void)
{
	pthread_attr_t attr;
	pthread_t t;
	long i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (i = 0; i < number; i++)
		if (pthread_create(&t, &attr, idle, NULL))
			exit(1);
	ready();
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* A child with N pages is killed: prints how long that takes, seen from outside. */
static void timed(void)
{
	long long start;
	siginfo_t info;
	int fd[2];
	pid_t pid;
	char c;

	if (pipe(fd))
		exit(1);
	pid = fork();
	if (!pid) {
		pages();
		if (write(fd[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	if (read(fd[0], &c, 1) != 1)
		exit(1);
	nap(20);
	start = now();
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED);
	printf("%lld\n", now() - start);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		int (*one)(void);
	} shapes[] = {
		{ "pages", pages, NULL },     { "dense", pages, NULL },
		{ "tables", tables, NULL },
		{ "vmas", vmas, NULL },	      { "plain", NULL, one_plain },
		{ "eventfd", NULL, one_eventfd }, { "pipe", NULL, one_pipe },
		{ "unix", NULL, one_unix },   { "tcp", NULL, one_tcp },
		{ "socket", NULL, one_udp },  { "epoll", NULL, one_epoll },
		{ "otherfile", NULL, one_null }, { "netns", netns, NULL },
		{ "zombies", zombies, NULL }, { "parent", parent, NULL },
		{ "leader", leader, NULL },   { "init", init, NULL },
		{ "threads", threads, NULL }, { "timed", timed, NULL },
		{ "sleep", ready, NULL },
	};
	size_t i;

	number = argc > 2 ? atol(argv[2]) : 0;
	for (i = 0; argc > 1 && i < ARRAY_SIZE(shapes); i++) {
		if (strcmp(argv[1], shapes[i].name))
			continue;
		if (shapes[i].one)
			files(shapes[i].one);
		else
			shapes[i].run();
		_exit(0);
	}
	fprintf(stderr, "usage: shape NAME [N]\n");
	return 1;
}
