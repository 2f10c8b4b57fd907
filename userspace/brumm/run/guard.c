// SPDX-License-Identifier: GPL-2.0
/*
 * kill -9 of brumm run ends its init by the parent-death signal, and with it a
 * PID namespace. For what is not in one, and for the cgroup, there is the guard:
 * a process in a session of its own that waits for the end of brumm run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

static void silence(void)
{
	int fd = open("/dev/null", O_RDWR);

	/* Who reads our output must not wait for the guard. */
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static void guard(const struct run *r) __attribute__((noreturn));

static void guard(const struct run *r)
{
	struct pollfd p = { .fd = r->self, .events = POLLIN };
	struct teardown t = { .opts = &r->opts };

	setsid();
	prctl(PR_SET_NAME, "brumm-guard");
	silence();
	/* All signals that somebody might send to a whole group are blocked. */
	while (poll(&p, 1, -1) < 1)
		;
	if (!target_open_group(r->group, &t.target) && !teardown_look(&t))
		teardown_do(&t);
	_exit(teardown_status(&t));
}

pid_t guard_start(const struct run *r)
{
	pid_t pid = fork();

	if (!pid)
		guard(r);
	return pid < 0 ? -errno : pid;
}

void guard_end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
