// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rpc.h"

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int unix_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = PROTO_REPLY_S };
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) ||
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		err = -errno;
		close(fd);
		return err == -EAGAIN ? -ETIMEDOUT : err;
	}
	return fd;
}

static int send_request(struct rpc *rpc, struct proto_request *rq, int fd)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	struct iovec iov = { .iov_base = rq, .iov_len = sizeof(*rq) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = c.buf;
		m.msg_controllen = sizeof(c.buf);
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.head), &fd, sizeof(int));
	}
	while (sendmsg(rpc->fd, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int check_reply(const struct proto_request *rq,
		       const struct proto_reply *re, size_t len, size_t entry,
		       unsigned int n)
{
	if (len < sizeof(*re) || re->magic != PROTO_MAGIC ||
	    re->version != PROTO_VERSION)
		return -EPROTO;
	if (re->op == PROTO_REFUSED)
		return re->error < 0 ? re->error : -EPROTO;
	if (re->op != rq->op || re->tag != rq->tag || re->error > 0)
		return -EPROTO;
	if (re->count > n || (re->count && re->entry != entry) ||
	    len != sizeof(*re) + re->count * entry)
		return -EPROTO;
	return 0;
}

/*
 * Who hangs up without having read what we sent makes our next call fail, once;
 * what he had sent before is there all the same.
 */
static ssize_t receive(int fd, void *buf, size_t size, int flags)
{
	bool reset = false;
	ssize_t len;

	for (;;) {
		len = recv(fd, buf, size, flags);
		if (len >= 0 || (errno != EINTR && errno != ECONNRESET))
			return len;
		if (errno == ECONNRESET) {
			if (reset)
				return len;
			reset = true;
			flags |= MSG_DONTWAIT;
		}
	}
}

int rpc_call(struct rpc *rpc, uint16_t op, const uint64_t *arg, int fd,
	     uint64_t *value, void *entries, size_t entry, unsigned int n)
{
	struct proto_request rq = {
		.magic = PROTO_MAGIC,
		.version = PROTO_VERSION,
		.op = op,
		.tag = ++rpc->tag,
	};
	union {
		struct proto_reply re;
		char buf[PROTO_MAX_REPLY];
	} u;
	ssize_t len;
	int sent, err;

	if (arg)
		memcpy(rq.arg, arg, sizeof(rq.arg));
	/* Who hung up may have left a word why. */
	sent = send_request(rpc, &rq, fd);
	if (sent == -EAGAIN)
		sent = -ETIMEDOUT;
	if (sent && sent != -EPIPE && sent != -ECONNRESET)
		return sent;
	len = receive(rpc->fd, &u, sizeof(u), sent ? MSG_DONTWAIT : 0);
	if (len <= 0) {
		err = !len || sent || errno == ECONNRESET ? -EPIPE :
		      errno == EAGAIN		       ? -ETIMEDOUT :
							 -errno;
		/* A late reply must not be taken for that to the next one. */
		shutdown(rpc->fd, SHUT_RDWR);
		return err;
	}
	err = check_reply(&rq, &u.re, (size_t)len, entry, n);
	if (err) {
		shutdown(rpc->fd, SHUT_RDWR);
		return err;
	}
	if (value)
		memcpy(value, u.re.value, sizeof(u.re.value));
	if (u.re.error)
		return u.re.error;
	if (u.re.count)
		memcpy(entries, u.buf + sizeof(u.re), u.re.count * entry);
	return (int)u.re.count;
}
