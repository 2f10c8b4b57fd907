// SPDX-License-Identifier: GPL-2.0
/* brumm run itself, while the command runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

static void take_terminal(const struct run *r)
{
	/* SIGTTOU is blocked: we may take it from the background. */
	if (r->terminal)
		tcsetpgrp(STDIN_FILENO, getpgrp());
}

static pid_t start_init(struct run *r, int sock, int other)
{
	struct clone_args a = { .exit_signal = SIGCHLD };
	pid_t pid;

	a.flags = (unsigned int)(r->ns & ~CLONE_NEWCGROUP);
	if (r->pidns)
		a.flags |= CLONE_NEWPID;
	pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	if (pid < 0)
		return -errno;
	if (!pid) {
		close(other);
		init_main(r, sock);
	}
	return pid;
}

/* Puts it where it belongs, and lets it begin. */
static int place_init(const struct run *r, pid_t pid, int sock)
{
	char text[16];
	int err = spaces_map_users(r, pid);

	if (err) {
		cli_fail(err, "user namespace");
		return err;
	}
	err = brumm_group_enter(r->name, pid);
	if (err) {
		/* libcgroup does not know a hierarchy without controllers. */
		snprintf(text, sizeof(text), "%d", (int)pid);
		err = brumm_group_write(r->group, "cgroup.procs", text);
	}
	if (err)
		cli_fail(err, "cannot move the command into %s", r->name);
	else
		err = run_send(sock, &(struct run_message){ .kind = RUN_GO });
	return err;
}

static void forward(const struct run *r, int sfd, int sock)
{
	struct run_message m = { .kind = RUN_SIGNAL };
	struct signalfd_siginfo info;

	if (read(sfd, &info, sizeof(info)) != sizeof(info))
		return;
	m.value = (int)info.ssi_signo;
	/* fg, not bg: then the shell has given us the terminal. */
	m.foreground = r->terminal && tcgetpgrp(STDIN_FILENO) == getpgrp();
	run_send(sock, &m);
}

static int ended(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static void failed(const struct run *r, const struct run_message *m)
{
	if (strcmp(m->where, "command"))
		cli_error("%s: %s", m->where,
			  m->value == -EPERM ? "not permitted; run as root, or with --ns user" :
			  brumm_strerror(m->value));
	else if (m->value == -ENOENT)
		cli_error("%s: no such command", r->argv[0]);
	else
		cli_error("%s: cannot be executed: %s", r->argv[0],
			  strerror(-m->value));
}

/* Returns the exit code, or -1: go on. */
static int take_message(struct run *r, int sock, int *status)
{
	struct run_message m;

	if (run_receive(sock, &m) != 1) {
		cli_error("the init of the command was killed");
		return 128 + SIGKILL;
	}
	switch (m.kind) {
	case RUN_FAILED:
		failed(r, &m);
		*status = -2;
		return strcmp(m.where, "command") ? RUN_OWN_ERROR : -1;
	case RUN_STOPPED:
		take_terminal(r);
		kill(getpid(), SIGSTOP);
		return -1;
	case RUN_ENDED:
		/* It is not the command's own if there was none. */
		*status = *status == -2 ? -1 : m.value;
		return ended(m.value);
	default:
		return -1;
	}
}

static int watch(struct run *r, int sock, const sigset_t *set, int *status)
{
	int sfd = signalfd(-1, set, SFD_CLOEXEC), code = -1;
	struct pollfd p[] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = sfd, .events = POLLIN },
	};

	while (code < 0) {
		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		if (p[1].revents)
			forward(r, sfd, sock);
		if (p[0].revents)
			code = take_message(r, sock, status);
	}
	close(sfd);
	return code;
}

int supervise(struct run *r, int *status)
{
	int sock[2], code = RUN_OWN_ERROR;
	sigset_t set, all;
	pid_t init;

	*status = -1;
	run_signals(&set);
	sigfillset(&all);
	r->terminal = isatty(STDIN_FILENO) &&
		      tcgetpgrp(STDIN_FILENO) == getpgrp();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		cli_fail(errno, "socket");
		return code;
	}
	init = start_init(r, sock[1], sock[0]);
	close(sock[1]);
	if (init < 0)
		cli_error("cannot make the namespaces: %s",
			  init == -EPERM ? "not permitted; run as root, or with --ns user" :
			  brumm_strerror(init));
	else if (!place_init(r, init, sock[0]))
		code = watch(r, sock[0], &set, status);
	else
		kill(init, SIGKILL);
	take_terminal(r);
	/* Its other end would take a close for our end, and go by itself. */
	return code;
}
