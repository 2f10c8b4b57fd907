// SPDX-License-Identifier: GPL-2.0
/*
 * The first process inside: starts the command, passes signals on, waits for
 * orphans, and dies with brumm run. When the command has ended it stays until it
 * is killed with the rest, so that the kill is one thing, and timed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

static void fail(int sock, int err, const char *where) __attribute__((noreturn));

static void fail(int sock, int err, const char *where)
{
	struct run_message m = { .kind = RUN_FAILED, .value = err };

	strncpy(m.where, where, sizeof(m.where) - 1);
	run_send(sock, &m);
	_exit(RUN_OWN_ERROR);
}

static bool parent_ended(const struct run *r)
{
	struct pollfd p = { .fd = r->self, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void wait_for_go(const struct run *r, int sock)
{
	struct run_message m;

	if (run_receive(sock, &m) != 1 || m.kind != RUN_GO)
		_exit(RUN_OWN_ERROR);
	/* Had it ended before, the signal would never come. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (parent_ended(r))
		_exit(RUN_OWN_ERROR);
}

static void run_command(const struct run *r, int sock) __attribute__((noreturn));

static void run_command(const struct run *r, int sock)
{
	struct run_message m = { .kind = RUN_FAILED };

	/* A group of its own: ^C and ^Z are for it, not for us. */
	setpgid(0, 0);
	if (r->terminal)
		tcsetpgrp(STDIN_FILENO, getpid());
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
	execvp(r->argv[0], r->argv);
	m.value = -errno;
	strcpy(m.where, "command");
	run_send(sock, &m);
	_exit(m.value == -ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE);
}

static void pass_on(pid_t command, int sig, bool foreground)
{
	if (!command)
		return;
	if (sig == SIGCONT && foreground)
		tcsetpgrp(STDIN_FILENO, command);
	/* Stopping and going on is for all that it started, as by ^Z. */
	kill(sig == SIGTSTP || sig == SIGCONT ? -command : command, sig);
}

static void wait_for_all(int sock, pid_t *command)
{
	struct run_message m = { 0 };
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != *command)
			continue;
		m.kind = WIFSTOPPED(status) ? RUN_STOPPED : RUN_ENDED;
		m.value = status;
		if (m.kind == RUN_ENDED) {
			*command = 0;
			/*
			 * From now on nobody becomes a zombie of ours, not even
			 * while we are frozen: all of them at once would be much
			 * work for the kernel at our own end.
			 */
			signal(SIGCHLD, SIG_IGN);
		}
		run_send(sock, &m);
	}
}

static void take_signal(int sfd, int sock, pid_t *command)
{
	struct signalfd_siginfo info;

	if (read(sfd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		wait_for_all(sock, command);
	else
		pass_on(*command, (int)info.ssi_signo, false);
}

static void take_message(int sock, pid_t command)
{
	struct run_message m;

	if (run_receive(sock, &m) != 1)
		_exit(RUN_OWN_ERROR);
	if (m.kind == RUN_SIGNAL)
		pass_on(command, m.value, m.foreground);
}

static void serve(const struct run *r, int sock, int sfd, pid_t command)
	__attribute__((noreturn));

static void serve(const struct run *r, int sock, int sfd, pid_t command)
{
	struct pollfd p[] = {
		{ .fd = sfd, .events = POLLIN },
		{ .fd = sock, .events = POLLIN },
		{ .fd = r->self, .events = POLLIN },
	};

	for (;;) {
		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		if (p[2].revents)
			_exit(RUN_OWN_ERROR);
		if (p[0].revents)
			take_signal(sfd, sock, &command);
		if (p[1].revents)
			take_message(sock, command);
	}
}

void init_main(const struct run *r, int sock)
{
	const char *where = "";
	sigset_t set;
	pid_t pid;
	int err, sfd;

	/* It leads out of where the command is confined. */
	close(r->group);
	wait_for_go(r, sock);
	err = spaces_enter(r, &where);
	if (err)
		fail(sock, err, where);
	if (r->opts.on_cpus)
		sched_setaffinity(0, sizeof(r->opts.cpus), &r->opts.cpus);
	if (!r->pidns)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "brumm-init");
	run_signals(&set);
	sigaddset(&set, SIGCHLD);
	sfd = signalfd(-1, &set, SFD_CLOEXEC);
	pid = sfd < 0 ? -1 : fork();
	if (pid < 0)
		fail(sock, -errno, "fork");
	if (!pid)
		run_command(r, sock);
	serve(r, sock, sfd, pid);
}
