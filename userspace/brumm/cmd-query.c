// SPDX-License-Identifier: GPL-2.0
/* brumm query: what a service handed out, or what stands in a window. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli.h"

struct args {
	const char *control;
	long pid, fd;
	bool json, nodes, count;
};

enum {
	OPT_CONTROL = 'c', OPT_JSON = 'j', OPT_NODES = 'n', OPT_COUNT = 256,
	OPT_PID = 'p', OPT_FD = 'f',
};

static const struct argp_option options[] = {
	{ "control", OPT_CONTROL, "PATH", 0, "socket of the service (" BRUMM_CONTROL_SOCKET ")", 0 },
	{ "nodes", OPT_NODES, NULL, 0, "list what stands in the service's window, too", 0 },
	{ "pid", OPT_PID, "PID", 0, "ask a window of this process instead", 1 },
	{ "fd", OPT_FD, "N", 0, "which of its descriptors; without --pid one that this program has inherited", 1 },
	{ "count", OPT_COUNT, NULL, 0, "count what was derived from each; takes as long as there are many", 2 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 2 },
	{ 0 },
};

static long number(struct argp_state *state, const char *arg)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(arg, &end, 10);
	if (errno || *end || end == arg || v < 0 || v > INT32_MAX)
		argp_error(state, "'%s' is not a number", arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_CONTROL:
		a->control = arg;
		return 0;
	case OPT_NODES:
		a->nodes = true;
		return 0;
	case OPT_COUNT:
		a->count = true;
		return 0;
	case OPT_PID:
		a->pid = number(state, arg);
		return 0;
	case OPT_FD:
		a->fd = number(state, arg);
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected");
		return 0;
	case ARGP_KEY_END:
		if (a->pid >= 0 && a->fd < 0)
			argp_error(state, "--pid needs --fd");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "List the clients of a memory service and what they hold; or what "
	       "stands in a window.",
};

/* Where nodes come from: a service, or a window. */
struct source {
	struct brumm_control *control;
	int window;
	uint32_t flags;
};

static int next_nodes(struct source *s, uint64_t from, struct brumm_query *list,
		      unsigned int n)
{
	int err;

	if (s->control)
		return brumm_control_nodes(s->control, from, s->flags, list, n);
	if (from >= BRUMM_WINDOW_BYTES)
		return 0;
	err = brumm_query(s->window, from, s->flags | BRUMM_QUERY_NEXT, list);
	return err == -ENOENT ? 0 : err ? err : 1;
}

static void rights_text(uint32_t rights, char text[5])
{
	text[0] = rights & BRUMM_RIGHT_R ? 'r' : '-';
	text[1] = rights & BRUMM_RIGHT_W ? 'w' : '-';
	text[2] = rights & BRUMM_RIGHT_X ? 'x' : '-';
	text[3] = rights & BRUMM_RIGHT_D ? 'd' : '-';
	text[4] = '\0';
}

static void one_node(json_t *to, const struct brumm_query *q, bool count)
{
	char rights[5];

	rights_text(q->rights, rights);
	if (to) {
		json_array_append_new(to, json_pack(
			"{s:I, s:I, s:s, s:i, s:b, s:b, s:o, s:I}",
			"offset", (json_int_t)q->offset,
			"length", (json_int_t)q->length,
			"rights", rights,
			"depth", (int)q->depth,
			"root", !!(q->state & BRUMM_NODE_ROOT),
			"first", !!(q->state & BRUMM_NODE_FIRST),
			"descendants", count ? json_integer((json_int_t)q->descendants) : json_null(),
			"sponsor", (json_int_t)q->sponsor));
		return;
	}
	printf("%#14llx %12llu %-6s %5u %11s ", (unsigned long long)q->offset,
	       (unsigned long long)q->length, rights, q->depth,
	       q->state & BRUMM_NODE_ROOT ? "root" :
	       q->state & BRUMM_NODE_FIRST ? "first" : "");
	if (count)
		printf("%11llu ", (unsigned long long)q->descendants);
	printf("%20llu\n", (unsigned long long)q->sponsor);
}

/* Until there are no more, or somebody presses ^C: what was seen is kept. */
static int list_nodes(struct source *s, json_t *to)
{
	struct brumm_query list[64];
	bool count = s->flags & BRUMM_QUERY_COUNT;
	uint64_t from = 0;
	int i, n;

	if (!to) {
		printf("%14s %12s %-6s %5s %11s ", "OFFSET", "BYTES", "RIGHTS",
		       "DEPTH", "");
		if (count)
			printf("%11s ", "DERIVED");
		printf("%20s\n", "SPONSOR");
	}
	while (!cli_signal()) {
		n = next_nodes(s, from, list, ARRAY_SIZE(list));
		if (n <= 0)
			return n;
		for (i = 0; i < n; i++)
			one_node(to, &list[i], count);
		from = list[n - 1].offset + list[n - 1].length;
	}
	return -EINTR;
}

static int list_allocations(struct brumm_control *c, uint64_t session,
			    json_t *to)
{
	struct brumm_allocation list[64];
	uint64_t after = 0;
	char rights[5];
	int i, n;

	while ((n = brumm_control_allocations(c, session, after, list,
					      ARRAY_SIZE(list))) > 0) {
		for (i = 0; i < n; i++) {
			rights_text(list[i].rights, rights);
			if (to)
				json_array_append_new(to, json_pack(
					"{s:I, s:I, s:I, s:s}",
					"handle", (json_int_t)list[i].handle,
					"offset", (json_int_t)list[i].offset,
					"length", (json_int_t)list[i].length,
					"rights", rights));
			else
				printf("    %#14llx %12llu %s\n",
				       (unsigned long long)list[i].offset,
				       (unsigned long long)list[i].length,
				       rights);
		}
		after = list[n - 1].handle;
	}
	/* The client went away meanwhile: nothing is left to be listed. */
	return n == -ENOENT ? 0 : n;
}

static int list_clients(struct brumm_control *c, json_t *to)
{
	struct brumm_service_client list[32];
	uint64_t after = 0;
	json_t *allocations = NULL;
	int i, n, err;

	while ((n = brumm_control_clients(c, after, list,
					  ARRAY_SIZE(list))) > 0) {
		for (i = 0; i < n; i++) {
			if (to)
				allocations = json_array();
			else
				printf("  client %d, uid %u, cgroup %llu: %llu bytes in %llu allocations\n",
				       list[i].pid, list[i].uid,
				       (unsigned long long)list[i].cgroup,
				       (unsigned long long)list[i].bytes,
				       (unsigned long long)list[i].allocations);
			err = list_allocations(c, list[i].session, allocations);
			if (to)
				json_array_append_new(to, json_pack(
					"{s:I, s:i, s:I, s:I, s:I, s:o}",
					"session", (json_int_t)list[i].session,
					"pid", (int)list[i].pid,
					"uid", (json_int_t)list[i].uid,
					"cgroup", (json_int_t)list[i].cgroup,
					"bytes", (json_int_t)list[i].bytes,
					"allocations", allocations));
			if (err)
				return err;
			if (cli_signal())
				return -EINTR;
		}
		after = list[n - 1].session;
	}
	return n;
}

static int finish(const struct args *a, json_t *j, int err)
{
	int ret = EXIT_FINE;

	if (a->json) {
		if (err)
			json_object_set_new(j, "complete", json_false());
		ret = cli_print_json(j);
	} else if (cli_flush()) {
		ret = EXIT_ERROR;
	}
	if (err == -EINTR && cli_signal()) {
		cli_error("interrupted; the list is not complete");
		return 128 + cli_signal();
	}
	if (err) {
		cli_fail(err, "the list is not complete");
		return EXIT_ERROR;
	}
	return ret;
}

static int query_service(const struct args *a)
{
	const char *path = a->control ? a->control : BRUMM_CONTROL_SOCKET;
	json_t *j = NULL, *clients = NULL, *nodes = NULL;
	struct brumm_service_status st;
	struct source s = { .flags = a->count ? BRUMM_QUERY_COUNT : 0 };
	int err = brumm_control_open(path, &s.control);

	if (err) {
		cli_service_failed(path, err);
		return EXIT_ERROR;
	}
	err = brumm_control_status(s.control, &st);
	if (!err && a->json) {
		clients = json_array();
		j = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o}",
			      "service", path,
			      "pool_bytes", (json_int_t)st.pool,
			      "free_bytes", (json_int_t)st.free,
			      "clients_now", (json_int_t)st.clients,
			      "allocations_now", (json_int_t)st.allocations,
			      "refused", (json_int_t)st.refused,
			      "dropped", (json_int_t)st.dropped,
			      "complete", 1,
			      "clients", clients);
	} else if (!err) {
		printf("%s: %llu of %llu bytes free, %llu clients, %llu allocations; %llu requests refused, %llu clients dropped\n",
		       path, (unsigned long long)st.free,
		       (unsigned long long)st.pool,
		       (unsigned long long)st.clients,
		       (unsigned long long)st.allocations,
		       (unsigned long long)st.refused,
		       (unsigned long long)st.dropped);
	}
	if (!err)
		err = list_clients(s.control, clients);
	if (!err && a->nodes) {
		if (j)
			json_object_set_new(j, "nodes", nodes = json_array());
		err = list_nodes(&s, nodes);
	}
	brumm_control_close(s.control);
	if (a->json && !j) {
		cli_fail(err, "%s", path);
		return EXIT_ERROR;
	}
	return finish(a, j, err);
}

/* A duplicate of a descriptor of another process. */
static int foreign_fd(pid_t pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), ret;

	if (pidfd < 0)
		return -errno;
	ret = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (ret < 0)
		ret = -errno;
	close(pidfd);
	return ret;
}

static int query_window(const struct args *a)
{
	struct source s = { .flags = a->count ? BRUMM_QUERY_COUNT : 0 };
	json_t *j = NULL, *nodes = NULL;
	struct brumm_info info;
	int err;

	s.window = a->pid >= 0 ? foreign_fd((pid_t)a->pid, (int)a->fd) :
				 (int)a->fd;
	if (s.window < 0) {
		cli_error("descriptor %ld of process %ld: %s", a->fd, a->pid,
			  s.window == -ESRCH ? "no such process" :
			  s.window == -EBADF ? "it has no such descriptor" :
			  s.window == -EPERM ? "it takes the right to trace the process; run as root" :
					       brumm_strerror(s.window));
		return EXIT_ERROR;
	}
	err = brumm_info(s.window, &info);
	if (err) {
		cli_error("descriptor %ld is not a window (%s)", a->fd,
			  strerrorname_np(-err));
		return EXIT_ERROR;
	}
	if (a->json) {
		nodes = json_array();
		j = json_pack("{s:I, s:b, s:o}", "cgroup",
			      (json_int_t)info.cgroup, "complete", 1, "nodes",
			      nodes);
	} else {
		printf("window of cgroup %llu\n",
		       (unsigned long long)info.cgroup);
	}
	err = list_nodes(&s, nodes);
	return finish(a, j, err);
}

int cmd_query(int argc, char **argv)
{
	struct args a = { .pid = -1, .fd = -1 };

	cli_parse(&argp, argc, argv, &a);
	cli_catch_signals();
	return a.fd >= 0 ? query_window(&a) : query_service(&a);
}
