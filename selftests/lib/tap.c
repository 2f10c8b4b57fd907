// SPDX-License-Identifier: GPL-2.0
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define MAX_REPORTS	20	/* failures of a case that are told in full */

enum { CASE_DONE = 0, CASE_STOPPED = 1, CASE_SKIPPED = 4 };

/* Shared by all processes of a case. */
static struct board {
	unsigned int failures;
	char skip[200];
} *board;

const char *(*tap_before_all)(void);
void (*tap_after_case)(void);

static unsigned long env_number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

bool tap_long(void)
{
	return env_number("BRUMM_LONG", 0) != 0;
}

unsigned long tap_pick(unsigned long quick, unsigned long thorough)
{
	if (tap_long())
		return thorough;
	return quick / env_number("BRUMM_SLOW", 1) ?: 1;
}

uint64_t tap_seed(void)
{
	const char *text = getenv("BRUMM_SEED");
	struct timespec ts;
	uint64_t seed;

	if (text && *text)
		return strtoull(text, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	seed = (uint64_t)ts.tv_sec * 1000003 + ts.tv_nsec + getpid();
	tap_diag("BRUMM_SEED=%llu", (unsigned long long)seed);
	return seed;
}

static void put_line(const char *prefix, const char *fmt, va_list ap)
{
	char line[1000];
	int n = snprintf(line, sizeof(line), "%s", prefix);

	n += vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, n) < 0)
		_exit(CASE_STOPPED);
}

static void __attribute__((format(printf, 1, 2))) put(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line("", fmt, ap);
	va_end(ap);
}

void tap_diag(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	put_line("# ", fmt, ap);
	va_end(ap);
	errno = err;
}

void tap_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	unsigned int n = __atomic_fetch_add(&board->failures, 1,
					    __ATOMIC_RELAXED);
	int err = errno;
	char where[200];
	va_list ap;

	if (n == MAX_REPORTS)
		tap_diag("... and more of that");
	if (n >= MAX_REPORTS)
		return;
	snprintf(where, sizeof(where), "# %s:%d: ", base ? base + 1 : file,
		 line);
	va_start(ap, fmt);
	put_line(where, fmt, ap);
	va_end(ap);
	errno = err;
}

unsigned int tap_failures(void)
{
	return __atomic_load_n(&board->failures, __ATOMIC_RELAXED);
}

void tap_stop(void)
{
	_exit(CASE_STOPPED);
}

void tap_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(board->skip, sizeof(board->skip), fmt, ap);
	va_end(ap);
	_exit(CASE_SKIPPED);
}

const char *tap_result(long long value)
{
	static __thread char bufs[4][40];
	static __thread unsigned int at;
	char *buf = bufs[at++ % 4];
	const char *name = value < 0 && value > -4096 ?
			   strerrorname_np(-value) : NULL;

	if (name)
		snprintf(buf, sizeof(bufs[0]), "-%s", name);
	else
		snprintf(buf, sizeof(bufs[0]), "%lld", value);
	return buf;
}

/* Waits for @pid; false when the time is up. */
static bool wait_for(pid_t pid, unsigned int seconds, int *status)
{
	struct timespec tick = { .tv_nsec = 500 * 1000000L }, now, end;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	for (;;) {
		pid_t got = waitpid(-1, status, WNOHANG);

		if (got == pid)
			return true;
		if (got > 0)
			continue;	/* an orphan of the case */
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end.tv_sec)
			return false;
		sigtimedwait(&chld, NULL, &tick);
	}
}

static void end_group(pid_t pgid)
{
	kill(-pgid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

static void judge(int number, const struct tap_case *c, bool in_time,
		  int status, unsigned int seconds)
{
	const char *verdict = "ok";
	char why[240] = "";

	if (!in_time) {
		tap_diag("no end after %u s", seconds);
		verdict = "not ok";
	} else if (WIFSIGNALED(status)) {
		tap_diag("died of signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
		verdict = "not ok";
	} else if (board->failures) {
		tap_diag("%u failed checks", board->failures);
		verdict = "not ok";
	} else if (WEXITSTATUS(status) == CASE_SKIPPED) {
		snprintf(why, sizeof(why), " # SKIP %s", board->skip);
	} else if (WEXITSTATUS(status) != CASE_DONE) {
		tap_diag("exit status %d", WEXITSTATUS(status));
		verdict = "not ok";
	}
	put("%s %d - %s%s", verdict, number, c->name, why);
}

static bool run_case(int number, const struct tap_case *c)
{
	unsigned int seconds = (c->seconds ? c->seconds : TAP_SECONDS) *
			       env_number("BRUMM_SLOW", 1);
	int status = 0;
	bool in_time;
	pid_t pid;

	memset(board, 0, sizeof(*board));
	pid = fork();
	if (pid < 0) {
		put("not ok %d - %s # fork: %s", number, c->name,
		    strerror(errno));
		return false;
	}
	if (!pid) {
		sigset_t none;

		setpgid(0, 0);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		c->run();
		_exit(CASE_DONE);
	}
	setpgid(pid, pid);
	in_time = wait_for(pid, seconds, &status);
	end_group(pid);
	if (tap_after_case)
		tap_after_case();
	judge(number, c, in_time, status, seconds);
	return in_time && !board->failures &&
	       (status == 0 || (WIFEXITED(status) &&
				WEXITSTATUS(status) == CASE_SKIPPED));
}

static bool chosen(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

int tap_main(int argc, char **argv, const struct tap_case *cases, size_t n)
{
	const char *reason = NULL;
	int number = 0, bad = 0, count = 0;
	sigset_t chld;
	size_t i;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED) {
		put("Bail out! mmap: %s", strerror(errno));
		return 1;
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (tap_before_all)
		reason = tap_before_all();
	if (reason) {
		put("1..0 # SKIP %s", reason);
		return 0;
	}
	for (i = 0; i < n; i++)
		count += chosen(cases[i].name, argc, argv);
	put("TAP version 13");
	put("1..%d", count);
	for (i = 0; i < n; i++)
		if (chosen(cases[i].name, argc, argv))
			bad += !run_case(++number, &cases[i]);
	return bad || !count ? 1 : 0;
}
