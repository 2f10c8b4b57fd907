// SPDX-License-Identifier: GPL-2.0
/* Shapes of one descriptor table, or of one that is inherited. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shape.h"

/* Who inherits descriptors. */
#define HEIRS	8

/* @n of them by @open, which returns how many files it made. */
static int repeat(struct shape_build *b, const char *kind, int (*one)(void))
{
	unsigned int i = 0;
	int made;

	while (i < b->n) {
		made = one();
		if (made < 0)
			return made;
		i += (unsigned int)made;
	}
	shape_extra(b, kind, i);
	return 0;
}

static int made(int fd)
{
	return fd < 0 ? -errno : 1;
}

/* In memory: what a disk or a server takes for a close is not the kernel's. */
static int one_plain(void)
{
	int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY);

	return made(fd >= 0 ? fd : open("/", O_RDONLY | O_DIRECTORY));
}

static int one_eventfd(void)
{
	return made(eventfd(0, 0));
}

static int one_pipe(void)
{
	int fd[2];

	return pipe(fd) ? -errno : 2;
}

static int one_unix(void)
{
	int fd[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, fd) ? -errno : 2;
}

static int one_tcp(void)
{
	return made(socket(AF_INET, SOCK_STREAM, 0));
}

static int one_socket(void)
{
	return made(socket(AF_INET, SOCK_DGRAM, 0));
}

static int one_epoll(void)
{
	return made(epoll_create1(0));
}

static int one_other(void)
{
	return made(open("/dev/null", O_RDWR));
}

static int one_uring(void)
{
	struct io_uring_params p = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 8, &p);

	/* Not configured, or turned off by sysctl. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return -EOPNOTSUPP;
	return made(fd);
}

int shape_plain(struct shape_build *b)
{
	return repeat(b, "plain", one_plain);
}

int shape_eventfd(struct shape_build *b)
{
	return repeat(b, "eventfd", one_eventfd);
}

int shape_pipe(struct shape_build *b)
{
	return repeat(b, "pipe", one_pipe);
}

int shape_unix(struct shape_build *b)
{
	return repeat(b, "unix", one_unix);
}

int shape_socket(struct shape_build *b)
{
	return repeat(b, "socket", one_socket);
}

int shape_uring(struct shape_build *b)
{
	return repeat(b, "uring", one_uring);
}

int shape_epoll(struct shape_build *b)
{
	return repeat(b, "epoll", one_epoll);
}

int shape_otherfile(struct shape_build *b)
{
	return repeat(b, "otherfile", one_other);
}

/* A connection to @at, both ends of it. */
static int connect_one(int listener, const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		return -errno;
	return accept(listener, NULL, NULL) < 0 ? -errno : 2;
}

/* Connected to each other; not so where there is no loopback. */
int shape_tcp(struct shape_build *b)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int listener = socket(AF_INET, SOCK_STREAM, 0), n = 0;
	socklen_t len = sizeof(at);
	unsigned int i = 1;

	if (listener < 0)
		return -errno;
	if (bind(listener, (struct sockaddr *)&at, len) ||
	    listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		n = -errno;
	while (n >= 0 && i < b->n) {
		n = connect_one(listener, &at);
		i += n > 0 ? (unsigned int)n : 0;
	}
	if (n < 0 && i == 1) {
		/* The listener, and one that did not connect. */
		shape_extra(b, "tcp", 2);
		return repeat(b, "tcp", one_tcp);
	}
	shape_extra(b, "tcp", i);
	return n < 0 ? n : 0;
}

int shape_dup(struct shape_build *b)
{
	int fd = open("/dev/null", O_RDWR);
	unsigned int i;

	for (i = 1; i < b->n && fd >= 0; i++)
		fd = dup(fd);
	shape_extra(b, "otherfile", 1);
	return fd < 0 ? -errno : 0;
}

/* Files that many processes have open: each closes, the last one is the last. */
int shape_inherit(struct shape_build *b)
{
	int err;

	b->n /= HEIRS;
	err = shape_eventfd(b);
	return err ? err : shape_spawn_open(b, HEIRS - 1, NULL);
}
