// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

char cli_name[64] = "brumm";

void cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	cli_parse_as(argp, argc, argv, 0, EXIT_ERROR, input);
}

void cli_parse_as(const struct argp *argp, int argc, char **argv,
		  unsigned int flags, int status, void *input)
{
	argp_err_exit_status = status;
	argv[0] = cli_name;
	if (argp_parse(argp, argc, argv, flags, NULL, input))
		exit(status);
}

void cli_error(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", cli_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void cli_fail(int err, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", cli_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s (%s)\n", brumm_strerror(err),
		strerrorname_np(err < 0 ? -err : err) ?: "?");
}

static volatile sig_atomic_t caught, times;

static void on_signal(int sig)
{
	caught = sig;
	times++;
}

void cli_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal }, old;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(signals); i++) {
		/* What nohup and shells have set to be ignored stays so. */
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
	}
}

int cli_signal(void)
{
	return caught;
}

unsigned int cli_signals(void)
{
	return (unsigned int)times;
}

bool cli_fancy(FILE *f)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(fileno(f)) && term && strcmp(term, "dumb") &&
	       !(no && *no);
}

int cli_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_FINE;
	/* Who closed the pipe knows why. */
	if (errno != EPIPE)
		cli_fail(errno, "cannot write");
	return EXIT_ERROR;
}

int cli_print_json(json_t *j)
{
	int err = !j || json_dumpf(j, stdout, JSON_INDENT(2)) ||
		  putchar('\n') == EOF;

	if (!j)
		cli_fail(-ENOMEM, "cannot make the JSON");
	json_decref(j);
	return err ? EXIT_ERROR : cli_flush();
}

json_t *cli_json_time(uint64_t ns)
{
	if (ns == BRUMM_NO_LIMIT)
		return json_null();
	/* JSON has no unsigned 64-bit numbers, and 292 years are enough. */
	return json_integer(ns > LLONG_MAX ? LLONG_MAX : (json_int_t)ns);
}

uint64_t cli_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int cli_enter_group(int group)
{
	int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, "0", 1) != 1)
		err = -errno;
	close(fd);
	return err;
}

int cli_open_group(const char *name)
{
	char path[PATH_MAX];
	int fd = brumm_group_open(name);

	if (fd >= 0)
		return fd;
	if (fd == -ENOENT && brumm_cgroup_mount(path, sizeof(path)))
		cli_error("no cgroup v2 hierarchy is mounted; mount -t cgroup2 none /sys/fs/cgroup");
	else if (fd == -ENOENT)
		cli_error("%s: no such cgroup; see brumm show --all, and name it by its path below %s",
			  name, path);
	else if (fd == -ENOTDIR)
		cli_error("%s: not a cgroup of the v2 hierarchy", name);
	else if (fd == -EINVAL)
		cli_error("'%s': not the name of a cgroup", name);
	else
		cli_fail(fd, "%s", name);
	return -1;
}

int cli_knob_failed(int group, const char *name, const char *knob, int err)
{
	char why[256];

	if (err == -ENOENT && !brumm_group_why(group, why, sizeof(why))) {
		cli_error("%s has no %s: %s", name, knob, why);
		return EXIT_UNSUPPORTED;
	}
	if (err == -EACCES || err == -EPERM)
		cli_error("%s: %s: permission denied; a limit is set by who owns the cgroup above, so run as root or as that user",
			  name, knob);
	else if (err == -ENODEV)
		cli_error("%s: the cgroup is gone", name);
	else if (err == -EINVAL)
		cli_error("%s: %s: not a valid value; times are like 5000 (us), 5ms or max, lock is 0 or 1, prices are in ns",
			  name, knob);
	else if (err == -ERANGE)
		cli_error("%s: %s: too large; max means no limit", name, knob);
	else
		cli_fail(err, "%s: %s", name, knob);
	return EXIT_ERROR;
}

void cli_service_failed(const char *path, int err)
{
	if (err == -ENOENT || err == -ECONNREFUSED)
		cli_error("no memory service listens at %s; start brumm serve, or name its socket by --control",
			  path);
	else if (err == -EACCES)
		cli_error("%s: only root and the service's own user may control it",
			  path);
	else
		cli_fail(err, "%s", path);
}

enum { OPT_JSON = 'j' };

static const struct argp_option group_options[] = {
	{ "json", OPT_JSON, NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse_group(int key, char *arg, struct argp_state *state)
{
	struct cli_group *g = state->input;

	switch (key) {
	case OPT_JSON:
		g->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (g->name)
			argp_error(state, "one cgroup only");
		g->name = arg;
		return 0;
	case ARGP_KEY_END:
		if (!g->name)
			argp_error(state, "which cgroup?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_group_argp = {
	.options = group_options, .parser = parse_group
};
