// SPDX-License-Identifier: GPL-2.0
/* Messages as the service sees them: nothing of them is to be trusted. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

/* Descriptors that are being closed by threads; more are kept open. */
#define MAX_CLOSING 64

static atomic_int closing;

static void *close_thread(void *arg)
{
	close((int)(intptr_t)arg);
	atomic_fetch_sub(&closing, 1);
	return NULL;
}

/*
 * close() of a file on a FUSE or network file system waits for its server,
 * which may be the one who wants to hold us up. So that is done aside.
 */
void close_foreign(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (atomic_fetch_add(&closing, 1) < MAX_CLOSING &&
	    !pthread_attr_init(&attr)) {
		pthread_attr_setstacksize(&attr, 64 * 1024);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		if (!pthread_create(&thread, &attr, close_thread,
				    (void *)(intptr_t)fd)) {
			pthread_attr_destroy(&attr);
			return;
		}
		pthread_attr_destroy(&attr);
	}
	atomic_fetch_sub(&closing, 1);
}

/* Keeps the first descriptor; returns how many there were. */
static unsigned int take_fds(struct msghdr *m, int *fd)
{
	struct cmsghdr *c;
	unsigned int n = 0;
	size_t i, len;
	int f;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		len = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < len; i++) {
			memcpy(&f, CMSG_DATA(c) + i * sizeof(int), sizeof(f));
			if (n++)
				close_foreign(f);
			else
				*fd = f;
		}
	}
	return n;
}

enum message message_receive(int sock, struct proto_request *rq, int *fd)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} c;
	struct iovec iov = { .iov_base = rq, .iov_len = sizeof(*rq) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.buf,
		.msg_controllen = sizeof(c.buf),
	};
	unsigned int n;
	ssize_t len;

	*fd = -1;
	len = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? MESSAGE_NONE :
							   MESSAGE_END;
	n = take_fds(&m, fd);
	if (!len && !n)
		return MESSAGE_END;
	if (len == sizeof(*rq) && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    n <= 1 && rq->magic == PROTO_MAGIC &&
	    rq->version == PROTO_VERSION && !rq->reserved)
		return MESSAGE_OK;
	if (len != sizeof(*rq))
		memset(rq, 0, sizeof(*rq));
	if (*fd >= 0)
		close_foreign(*fd);
	*fd = -1;
	return MESSAGE_BAD;
}

int message_reply(int sock, struct proto_reply *re, const void *entries)
{
	struct iovec iov[2] = {
		{ .iov_base = re, .iov_len = sizeof(*re) },
		{ .iov_base = (void *)entries,
		  .iov_len = (size_t)re->count * re->entry },
	};
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

	re->magic = PROTO_MAGIC;
	re->version = PROTO_VERSION;
	/* Who does not read his replies does not get to hold us up. */
	if (sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}
