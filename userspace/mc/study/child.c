// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "child.h"

/* What a child that could not be started says through the pipe. */
struct failure {
	int err;
	const char *step;	/* the same address after fork() */
};

static const char *prepare(const struct child_opts *o, int out, pid_t parent)
{
	struct sched_param param = { .sched_priority = o->priority };

	/* Who started it may be gone by now, which nobody would tell. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
		return "prctl";
	if (o->group >= 0 && (errno = -cli_enter_group(o->group)))
		return "entering its cgroup";
	if (o->cpus && sched_setaffinity(0, sizeof(*o->cpus), o->cpus))
		return "pinning it to its CPUs";
	if (o->policy != SCHED_OTHER && sched_setscheduler(0, o->policy, &param))
		return "giving it a real-time priority";
	if (dup2(out >= 0 ? out : STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    (o->err >= 0 && dup2(o->err, STDERR_FILENO) < 0))
		return "dup2";
	return NULL;
}

static void run(const struct child_opts *o, int out, int tell, pid_t parent)
{
	struct failure f = { .step = prepare(o, out, parent) };

	if (!f.step) {
		execvp(o->argv[0], o->argv);
		f.step = o->argv[0];
	}
	f.err = errno ?: EINVAL;
	if (write(tell, &f, sizeof(f)) != sizeof(f))
		_exit(126);
	_exit(127);
}

static void close_both(int fd[2])
{
	if (fd[0] >= 0)
		close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
}

int child_start(struct child *c, const struct child_opts *o, const char **step)
{
	int out[2] = { -1, -1 }, tell[2] = { -1, -1 };
	struct failure f = { 0 };
	pid_t self = getpid();
	ssize_t got;

	*c = (struct child){ .out = -1 };
	*step = "pipe";
	if (pipe2(tell, O_CLOEXEC) || (o->out && pipe2(out, O_CLOEXEC)))
		goto failed;
	c->pid = fork();
	if (c->pid < 0) {
		*step = "fork";
		c->pid = 0;
		goto failed;
	}
	if (!c->pid)
		run(o, out[1], tell[1], self);
	close(tell[1]);
	if (out[1] >= 0)
		close(out[1]);
	do {
		got = read(tell[0], &f, sizeof(f));
	} while (got < 0 && errno == EINTR);
	close(tell[0]);
	c->out = out[0];
	if (got != sizeof(f))
		return 0;
	*step = f.step;
	child_end(c, 0);
	return -f.err;
failed:
	got = -errno;
	close_both(out);
	close_both(tell);
	return (int)got;
}

static void forget(struct child *c)
{
	c->pid = 0;
	if (c->out >= 0)
		close(c->out);
	c->out = -1;
}

bool child_ended(struct child *c, int *status)
{
	if (!c->pid)
		return true;
	if (waitpid(c->pid, status, WNOHANG) != c->pid)
		return false;
	forget(c);
	return true;
}

/* Whatever comes, also a signal, this ends in time. */
void child_end(struct child *c, uint64_t ns)
{
	uint64_t until = cli_now() + ns;
	int status;

	if (!c->pid)
		return;
	kill(c->pid, ns ? SIGTERM : SIGKILL);
	while (cli_now() < until) {
		if (child_ended(c, &status))
			return;
		usleep(2000);
	}
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	forget(c);
}

static int wait_readable(int fd, uint64_t until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now = cli_now();
	int ret;

	if (now >= until)
		return -ETIMEDOUT;
	ret = poll(&p, 1, (int)((until - now) / 1000000) + 1);
	if (ret < 0)
		return -errno;
	return ret ? 0 : -ETIMEDOUT;
}

int child_read_line(struct child *c, char *line, size_t size, uint64_t ns)
{
	uint64_t until = cli_now() + ns;
	size_t n = 0;
	int err;

	while (n + 1 < size) {
		err = wait_readable(c->out, until);
		if (err)
			return err;
		if (read(c->out, line + n, 1) != 1)
			return -EPIPE;
		if (line[n] == '\n')
			break;
		n++;
	}
	line[n] = 0;
	return 0;
}

char *child_read_all(struct child *c, int *status)
{
	char *text = NULL, part[4096];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool told = false;
	ssize_t n;

	for (;;) {
		/* What it has till then it prints. */
		if (cli_signal() && !told) {
			kill(c->pid, SIGTERM);
			told = true;
		}
		/* Not for ever: a signal may come just before. */
		if (wait_readable(c->out, cli_now() + 100000000))
			continue;
		n = read(c->out, part, sizeof(part));
		if (n > 0 && f)
			fwrite(part, 1, (size_t)n, f);
		if (!n || (n < 0 && errno != EINTR))
			break;
	}
	while (waitpid(c->pid, status, 0) < 0 && errno == EINTR)
		;
	forget(c);
	if (f && fclose(f)) {
		free(text);
		text = NULL;
	}
	return text;
}

int pause_for(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000),
			       (long)(ns % 1000000000) };

	if (cli_signal())
		return -EINTR;
	while (nanosleep(&ts, &ts)) {
		if (cli_signal())
			return -EINTR;
	}
	return cli_signal() ? -EINTR : 0;
}

char **split_words(const char *text)
{
	size_t len = strlen(text), n = 0;
	char **argv = malloc((len / 2 + 2) * sizeof(*argv) + len + 1);
	char *copy, *one;

	if (!argv)
		return NULL;
	copy = memcpy((char *)(argv + len / 2 + 2), text, len + 1);
	while ((one = strsep(&copy, " \t\n"))) {
		if (*one)
			argv[n++] = one;
	}
	argv[n] = NULL;
	return argv;
}
