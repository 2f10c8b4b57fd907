// SPDX-License-Identifier: GPL-2.0
/*
 * actor ROLE [ARG...]: who is to be torn down, or stands beside it. Says "ready"
 * when it is so; what waits for the end of its input then ends.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "tap.h"

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void wait_for_end(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

/* N processes that sleep. */
static int sleepers(char **argv)
{
	int n = atoi(argv[0]);

	while (n-- > 1)
		if (fork() <= 0)
			break;
	if (n <= 0)
		ready();
	pause();
	return 0;
}

/* Forks for ever; so do its children. */
static int bomb(char **argv)
{
	(void)argv;
	signal(SIGCHLD, SIG_IGN);
	ready();
	for (;;)
		if (fork() < 0)
			sched_yield();
	return 0;
}

/* Holds so many MiB. */
static int hold(char **argv)
{
	size_t bytes = (size_t)atoi(argv[0]) << 20;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 1;
	madvise(p, bytes, MADV_NOHUGEPAGE);
	memset(p, 1, bytes);
	ready();
	pause();
	return 0;
}

/*
 * Maps 32 pages twice for the cgroup of folder ARG, into a window of its own.
 * At the end of input it says how many mappings stand there.
 */
static int sponsored(char **argv)
{
	int group = open(argv[0], O_RDONLY | O_DIRECTORY), from, to, i;

	if (group < 0)
		return 1;
	from = dev_open();
	to = dev_open();
	if (from < 0 || to < 0 || dev_alloc(from, 0, 32))
		return 1;
	for (i = 0; i < 2; i++)
		if (dev_map_for(from, 0, 32, to, i * 64ULL, RW, group))
			return 1;
	ready();
	wait_for_end();
	printf("%lld\n", (long long)dev_nodes(to));
	return 0;
}

static int answer_init(int fd)
{
	static char room[1 << 16];
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} out = { 0 };
	struct fuse_in_header *in = (void *)room;

	if (read(fd, room, sizeof(room)) < (ssize_t)sizeof(*in) ||
	    in->opcode != FUSE_INIT)
		return -1;
	out.head.len = sizeof(out);
	out.head.unique = in->unique;
	out.init.major = FUSE_KERNEL_VERSION;
	out.init.minor = FUSE_KERNEL_MINOR_VERSION;
	out.init.max_write = 4096;
	return write(fd, &out, sizeof(out)) == sizeof(out) ? 0 : -1;
}

/*
 * A file system at ARG that takes requests and never answers: who has asked
 * sleeps uninterruptibly when he is killed. Ready at the first request.
 */
static int silent_fuse(char **argv)
{
	static char room[1 << 16];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[80];

	if (fd < 0)
		return 4;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("silent", argv[0], "fuse", 0, options) || answer_init(fd))
		return 1;
	puts("mounted");
	fflush(stdout);
	if (read(fd, room, sizeof(room)) < 0)
		return 1;
	ready();
	wait_for_end();
	umount2(argv[0], MNT_DETACH);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *role;
		int args;
		int (*run)(char **argv);
	} roles[] = {
		{ "sleepers", 1, sleepers }, { "bomb", 0, bomb },
		{ "hold", 1, hold },	     { "sponsored", 1, sponsored },
		{ "silent-fuse", 1, silent_fuse },
	};
	size_t i;

	for (i = 0; argc > 1 && i < ARRAY_SIZE(roles); i++)
		if (!strcmp(argv[1], roles[i].role) && argc == 2 + roles[i].args)
			return roles[i].run(argv + 2);
	fprintf(stderr, "usage: actor sleepers N | bomb | hold MIB | sponsored FOLDER | silent-fuse FOLDER\n");
	return 1;
}
