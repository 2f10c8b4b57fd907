// SPDX-License-Identifier: GPL-2.0
/* Starting processes in their cgroups, and talking to them. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"

int fd_send(int sock, int fd)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.buf,
		.msg_controllen = sizeof(c.buf),
	};

	c.head.cmsg_level = SOL_SOCKET;
	c.head.cmsg_type = SCM_RIGHTS;
	c.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

int fd_receive(int sock)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.buf,
		.msg_controllen = sizeof(c.buf),
	};
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1)
		return -EPIPE;
	if (c.head.cmsg_type != SCM_RIGHTS ||
	    c.head.cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(&c.head), sizeof(fd));
	return fd;
}

/* Obeys until the controller says that it is over, or is gone. */
int actor_loop(int sock, int other, void (*on_other)(void *arg),
	       void (*obey)(void *arg, const struct order *o, struct report *r),
	       void *arg)
{
	struct pollfd p[2] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = other, .events = POLLIN },
	};
	struct report r;
	struct order o;

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			on_other(arg);
		if (!p[0].revents)
			continue;
		if (recv(sock, &o, sizeof(o), 0) != sizeof(o) ||
		    o.op == ACTOR_END)
			return 0;
		memset(&r, 0, sizeof(r));
		obey(arg, &o, &r);
		if (send(sock, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			return -EPIPE;
	}
}

/*
 * The init of a PID namespace: the actor is its child, and there is one more,
 * so that a whole group of processes has to die.
 */
static void play_init(void (*play)(const struct stage *st, int sock),
		      const struct stage *st, int sock)
{
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(st, sock);
		_exit(1);
	}
	close(sock);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	_exit(0);
}

int actor_start(struct actor *a, const char *cgroup, bool pid_namespace,
		void (*play)(const struct stage *st, int sock),
		const struct stage *st)
{
	int sock[2], err;
	struct order go;
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	fflush(stdout);
	pid = syscall(SYS_clone, SIGCHLD | (pid_namespace ? CLONE_NEWPID : 0),
		      NULL, NULL, NULL, NULL);
	if (pid < 0) {
		err = -errno;
		close(sock[0]);
		close(sock[1]);
		return err;
	}
	if (!pid) {
		close(sock[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* First into the cgroup: that is what its window belongs to. */
		if (recv(sock[1], &go, sizeof(go), 0) != sizeof(go))
			_exit(1);
		if (pid_namespace)
			play_init(play, st, sock[1]);
		play(st, sock[1]);
		_exit(1);
	}
	close(sock[1]);
	a->pid = (pid_t)pid;
	a->sock = sock[0];
	a->pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	err = a->pidfd < 0 ? -errno : brumm_group_enter(cgroup, a->pid);
	if (!err && send(a->sock, &(struct order){ 0 }, sizeof(struct order),
			 MSG_NOSIGNAL) < 0)
		err = -errno;
	if (err)
		actor_end(a);
	return err;
}

int actor_order(struct actor *a, int op, uint64_t arg, struct report *r)
{
	struct order o = { .op = op, .a = arg };
	struct pollfd p = { .fd = a->sock, .events = POLLIN };

	memset(r, 0, sizeof(*r));
	if (send(a->sock, &o, sizeof(o), MSG_NOSIGNAL) != sizeof(o))
		return -EPIPE;
	if (poll(&p, 1, 60000) != 1)
		return -ETIMEDOUT;
	return recv(a->sock, r, sizeof(*r), 0) == sizeof(*r) ? 0 : -EPIPE;
}

/* By force if a word is not enough. */
void actor_end(struct actor *a)
{
	struct order o = { .op = ACTOR_END };
	struct pollfd p = { .fd = a->pidfd, .events = POLLIN };

	if (a->pid <= 0)
		return;
	if (a->sock >= 0)
		send(a->sock, &o, sizeof(o), MSG_NOSIGNAL);
	else
		kill(a->pid, SIGTERM);
	if (a->pidfd < 0 || poll(&p, 1, 5000) != 1)
		kill(a->pid, SIGKILL);
	waitpid(a->pid, NULL, 0);
	if (a->pidfd >= 0)
		close(a->pidfd);
	if (a->sock >= 0)
		close(a->sock);
	*a = (struct actor){ .pidfd = -1, .sock = -1 };
}

/* The memory service is the program that anybody would use. */
int memory_start(struct actor *a, const char *cgroup, const char *program,
		 const struct stage *st)
{
	char buf[128];
	int out[2];
	ssize_t n;

	if (pipe(out))
		return -errno;
	fflush(stdout);
	a->sock = -1;
	a->pid = fork();
	if (!a->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		if (brumm_group_enter(cgroup, 0))
			_exit(1);
		execl(program, program, "serve", "--quiet", "--socket",
		      st->memory_sock, "--control", st->control_sock, "--pool",
		      "16M", NULL);
		_exit(127);
	}
	close(out[1]);
	a->pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	n = read(out[0], buf, sizeof(buf) - 1);
	close(out[0]);
	if (n > 0 && !strncmp(buf, "ready:", 6))
		return 0;
	actor_end(a);
	return -ECHILD;
}
