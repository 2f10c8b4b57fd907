// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cli.h"
#include "watch.h"

/* For a command to end when it is told to. */
#define GRACE_NS	2000000000ull

/* Its pid, or -1. */
static pid_t start(char **command)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	execvp(*command, command);
	cli_error("cannot run %s: %s", *command, strerror(errno));
	_exit(127);
}

/* As a shell says it; -1: it runs. */
static int ended(pid_t pid, int flags)
{
	int status;

	if (waitpid(pid, &status, flags) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Ends it, by force if it does not end by itself; its exit code. */
static int end_command(pid_t pid)
{
	uint64_t until = cli_now() + GRACE_NS;
	int code;

	kill(pid, SIGTERM);
	do {
		code = ended(pid, WNOHANG);
		if (code >= 0)
			return code;
		poll(NULL, 0, WATCH_ROUND_MS);
	} while (cli_now() < until);
	kill(pid, SIGKILL);
	return ended(pid, 0);
}

static int wait_a_round(struct watch *w)
{
	if (w->round)
		return w->round(w->arg, WATCH_ROUND_MS);
	poll(NULL, 0, WATCH_ROUND_MS);
	return 0;
}

int watch(struct watch *w)
{
	uint64_t until = cli_now() + (uint64_t)(w->seconds * 1e9);
	pid_t pid = -1;
	int err = 0;

	w->code = -1;
	if (w->command) {
		pid = start(w->command);
		if (pid < 0)
			return -errno;
	}
	while (!err && !cli_signal()) {
		if (pid > 0) {
			w->code = ended(pid, WNOHANG);
			if (w->code >= 0)
				break;
		} else if (w->seconds && cli_now() >= until) {
			break;
		}
		err = wait_a_round(w);
	}
	/* A signal to us alone: what we started does not outlive us. */
	if (pid > 0 && w->code < 0)
		w->code = end_command(pid);
	return err;
}
