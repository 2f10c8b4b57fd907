// SPDX-License-Identifier: GPL-2.0
/* brumm serve: the memory service. */
#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

struct args {
	struct brumm_server_config config;
	bool quiet;
};

enum {
	OPT_SOCKET = 's', OPT_CONTROL = 'c', OPT_POOL = 'p', OPT_QUIET = 'q',
	OPT_MODE = 'm', OPT_CLIENTS = 256, OPT_UID_CLIENTS, OPT_ALLOCS,
	OPT_BYTES, OPT_ROOT,
};

static const struct argp_option options[] = {
	{ "socket", OPT_SOCKET, "PATH", 0, "for clients (" BRUMM_SERVICE_SOCKET ")", 0 },
	{ "control", OPT_CONTROL, "PATH", 0, "for controllers, none: no such socket (" BRUMM_CONTROL_SOCKET ")", 0 },
	{ "mode", OPT_MODE, "OCTAL", 0, "permissions of the socket for clients (0666)", 0 },
	{ "pool", OPT_POOL, "SIZE", 0, "memory to hand out (64M)", 0 },
	{ "max-clients", OPT_CLIENTS, "N", 0, "connections (256)", 1 },
	{ "max-clients-per-user", OPT_UID_CLIENTS, "N", 0, "of one user other than root (64)", 1 },
	{ "max-allocations", OPT_ALLOCS, "N", 0, "of one client (1024)", 1 },
	{ "max-bytes", OPT_BYTES, "SIZE", 0, "of one client (the pool)", 1 },
	{ "serve-unaccounted", OPT_ROOT, NULL, 0, "serve also clients whose cgroup has no budget; this service's cgroup then pays", 2 },
	{ "quiet", OPT_QUIET, NULL, 0, "no messages", 2 },
	{ 0 },
};

static uint32_t number(struct argp_state *state, const char *arg, int base,
		       unsigned long max)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(arg, &end, base);
	if (errno || *end || end == arg || *arg == '-' || !v || v > max)
		argp_error(state, "'%s' is not a number up to %lu", arg, max);
	return (uint32_t)v;
}

static uint64_t size(struct argp_state *state, const char *arg)
{
	uint64_t v, page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (brumm_parse_size(arg, &v) || !v || v % page ||
	    v > BRUMM_WINDOW_BYTES)
		argp_error(state, "'%s' is not a size in whole pages", arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	struct brumm_server_config *c = &a->config;

	switch (key) {
	case OPT_SOCKET:
		c->path = arg;
		return 0;
	case OPT_CONTROL:
		c->control = strcmp(arg, "none") ? arg : NULL;
		return 0;
	case OPT_MODE:
		c->mode = number(state, arg, 8, 0777);
		return 0;
	case OPT_POOL:
		c->pool = size(state, arg);
		return 0;
	case OPT_CLIENTS:
		c->max_clients = number(state, arg, 10, 1000000);
		return 0;
	case OPT_UID_CLIENTS:
		c->max_clients_uid = number(state, arg, 10, 1000000);
		return 0;
	case OPT_ALLOCS:
		c->max_allocations = number(state, arg, 10, 10000000);
		return 0;
	case OPT_BYTES:
		c->max_bytes = size(state, arg);
		return 0;
	case OPT_ROOT:
		c->flags |= BRUMM_SERVER_ROOT_CLIENTS;
		return 0;
	case OPT_QUIET:
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Hand out pages to clients over a Unix socket, charged to the budget "
	       "of the client's cgroup, and take them back: on request, when the "
	       "client dies, or when a controller says so (brumm take-back)."
	       "\vThe memory itself is charged to the cgroup of this service. It gives "
	       "CAP_SYS_RESOURCE up, so that the kernel verifies who is charged. Runs "
	       "until SIGTERM or SIGINT; then everything is taken back. A line on "
	       "standard output says when it is ready.",
};

static void log_line(const char *line, void *arg)
{
	(void)arg;
	cli_error("%s", line);
}

static struct brumm_server *running;

static void on_signal(int sig)
{
	(void)sig;
	brumm_server_stop(running);
}

/* Each client takes three descriptors. */
static void raise_limit(const struct brumm_server_config *c)
{
	rlim_t want = 3 * (rlim_t)(c->max_clients ? c->max_clients : 256) + 128;
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= want)
		return;
	rl.rlim_cur = want < rl.rlim_max ? want : rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

/* The usual folder is there after a boot only if somebody makes it. */
static void make_folder(const char *path)
{
	char *copy = strdup(path);

	if (copy && !strncmp(path, "/run/brumm/", 11))
		mkdir(dirname(copy), 0755);
	free(copy);
}

int cmd_serve(int argc, char **argv)
{
	struct args a = {
		.config.path = BRUMM_SERVICE_SOCKET,
		.config.control = BRUMM_CONTROL_SOCKET,
	};
	struct sigaction sa = { .sa_handler = on_signal };
	int err;

	cli_parse(&argp, argc, argv, &a);
	if (!a.quiet)
		a.config.log = log_line;
	raise_limit(&a.config);
	make_folder(a.config.path);
	if (a.config.control)
		make_folder(a.config.control);
	err = brumm_server_open(&a.config, &running);
	if (err) {
		if (err == -ENOENT && access(BRUMM_DEVICE, F_OK)) {
			cli_error("there is no " BRUMM_DEVICE ": the module is not loaded; modprobe brumm");
			return EXIT_UNSUPPORTED;
		}
		cli_fail(err, "cannot serve at %s", a.config.path);
		return EXIT_ERROR;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	printf("ready: %s\n", a.config.path);
	fflush(stdout);
	err = brumm_server_run(running);
	brumm_server_close(running);
	if (err)
		cli_fail(err, "ended");
	return err ? EXIT_ERROR : EXIT_FINE;
}
