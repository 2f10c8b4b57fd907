// SPDX-License-Identifier: GPL-2.0
/*
 * Starts memcached on CPUs, with a scheduler, bare or in something, and waits
 * until it listens.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../../brumm/teardown/tasks.h"
#include "servers.h"

#define SELF		"/proc/self/exe"
#define LISTEN_WAIT	60000000000ull
#define VM_WAIT		300000000000ull

enum { REAL_TIME_PRIORITY = 10 };

static bool is(const struct cell *c, enum axis axis, const char *value)
{
	return !strcmp(c->value[axis], value);
}

/* The n-th CPU of a set, from the first again after the last. */
static void nth_cpu(const cpu_set_t *set, size_t n, cpu_set_t *one)
{
	int cpu;

	CPU_ZERO(one);
	n %= (size_t)CPU_COUNT(set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, set) && !n--) {
			CPU_SET(cpu, one);
			return;
		}
	}
}

/* Of @of containers, the CPUs of the i-th: @total CPUs divided equally. */
static void share_of_cpus(const struct spec *s, size_t total, size_t of,
			  size_t i, cpu_set_t *set)
{
	size_t each = total / of ? total / of : 1, n;
	cpu_set_t one, all;

	CPU_ZERO(set);
	CPU_ZERO(&all);
	for (n = 0; n < total; n++) {
		nth_cpu(&s->cpus, n, &one);
		CPU_OR(&all, &all, &one);
	}
	for (n = 0; n < each; n++) {
		nth_cpu(&all, i * each + n, &one);
		CPU_OR(set, set, &one);
	}
}

/* ---- a partition ---------------------------------------------------------- */

static void cpus_text(const cpu_set_t *set, char *to, size_t size)
{
	size_t used = 0;
	int cpu;

	*to = 0;
	for (cpu = 0; cpu < CPU_SETSIZE && used < size; cpu++) {
		if (CPU_ISSET(cpu, set))
			used += (size_t)snprintf(to + used, size - used, "%s%d",
						 used ? "," : "", cpu);
	}
}

static int make_partition(struct servers *v, const struct spec *s, size_t cpus,
			  char *why, size_t size)
{
	char path[PATH_MAX], list[512];
	int root = brumm_group_open("/"), group, err;
	cpu_set_t set;

	if (root < 0)
		return root;
	brumm_group_write(root, "cgroup.subtree_control", "+cpuset");
	close(root);
	snprintf(v->partition, sizeof(v->partition), "brumm-mc-%d", (int)getpid());
	err = brumm_group_path(v->partition, path, sizeof(path));
	if (!err && mkdir(path, 0755) && errno != EEXIST)
		err = -errno;
	group = err ? err : brumm_group_open(v->partition);
	if (group < 0) {
		snprintf(why, size, "%s cannot be made", v->partition);
		return group;
	}
	share_of_cpus(s, cpus, 1, 0, &set);
	cpus_text(&set, list, sizeof(list));
	err = brumm_group_write(group, "cpuset.cpus", list);
	/* Isolated came with 6.x; what there is shows when it is verified. */
	if (!err && brumm_group_write(group, "cpuset.cpus.partition", "isolated"))
		err = brumm_group_write(group, "cpuset.cpus.partition", "root");
	close(group);
	if (err)
		snprintf(why, size, "CPUs %s cannot be made a partition", list);
	return err;
}

/* ---- starting ------------------------------------------------------------- */

/* The command with what it is told, behind @prefix. */
static char **command(const char *prefix, const char *base, unsigned int port,
		      size_t threads)
{
	char *text;
	char **argv;

	/* The last -t is the one that holds. */
	if (threads ? asprintf(&text, "%s %s -t %zu -l 127.0.0.1 -p %u", prefix, base,
			       threads, port) < 0 :
		      asprintf(&text, "%s %s -l 127.0.0.1 -p %u", prefix, base, port) < 0)
		return NULL;
	argv = split_words(text);
	free(text);
	return argv;
}

/*
 * The library that gives memcached memory of the device: beside us, or where it is
 * installed. 0 or -ENOENT.
 */
static int preload_path(char *to, size_t size)
{
	static const char *const places[] = { "", "../lib/brumm/" };
	char self[PATH_MAX - 64];
	ssize_t len = readlink(SELF, self, sizeof(self) - 1);
	size_t i;
	char *slash;

	self[len < 0 ? 0 : len] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(to, size, "%s/%slibbrumm-memcached.so", self, places[i]);
		if (!access(to, R_OK))
			return 0;
	}
	return -ENOENT;
}

static char **server_command(struct server_of_cell *one, const struct spec *s,
			     const struct cell *c, size_t threads)
{
	char prefix[256] = "";
	/* memcached does not run as root unless told to, nor has all users here. */
	const char *user = geteuid() ? "" : " -u root";
	char base[2 * PATH_MAX], library[PATH_MAX];

	snprintf(base, sizeof(base), "%s%s", s->server, user);
	if (is(c, AXIS_MEMORY, "brumm")) {
		if (preload_path(library, sizeof(library))) {
			errno = ENOENT;
			return NULL;
		}
		snprintf(base, sizeof(base), "env LD_PRELOAD=%s %s%s -e /dev/brumm",
			 library, s->server, user);
	}
	if (is(c, AXIS_ISOLATION, "vms")) {
		snprintf(base, sizeof(base), "%s %u", s->vm, one->port);
		return split_words(base);
	}
	if (is(c, AXIS_ISOLATION, "containers")) {
		snprintf(one->group, sizeof(one->group), "brumm-mc-%d-%u",
			 (int)getpid(), one->port);
		snprintf(prefix, sizeof(prefix),
			 SELF " run --quiet --pidns --ns ipc,uts,cgroup --name %s --",
			 one->group);
	}
	return command(prefix, base, one->port, threads);
}

static int start_one(struct server_of_cell *one, const struct spec *s,
		     const struct cell *c, size_t threads, int group, char *why,
		     size_t size)
{
	struct child_opts o = CHILD_OPTS_INIT;
	const char *step;
	int err;

	o.argv = server_command(one, s, c, threads);
	if (!o.argv) {
		snprintf(why, size, "libbrumm-memcached.so is not beside brumm, nor in ../lib/brumm");
		return -ENOENT;
	}
	o.cpus = &one->cpus;
	o.group = group;
	if (!is(c, AXIS_SCHEDULER, "other")) {
		o.policy = is(c, AXIS_SCHEDULER, "fifo") ? SCHED_FIFO : SCHED_RR;
		o.priority = REAL_TIME_PRIORITY;
	}
	err = child_start(&one->child, &o, &step);
	if (err)
		snprintf(why, size, "a server cannot be started: %s: %s", step,
			 strerror(-err));
	free(o.argv);
	return err;
}

static bool listens(unsigned int port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	return good;
}

/* The process of a container that is no init and no runner of ours. */
static pid_t pid_in_group(const char *name)
{
	int group = brumm_group_open(name);
	struct tasks t = { 0 };
	pid_t pid = 0;
	size_t i;

	if (group < 0)
		return 0;
	if (!tasks_of_group(group, &t)) {
		for (i = 0; i < t.n; i++) {
			if (strcmp(t.list[i].comm, "brumm") && strcmp(t.list[i].comm, "exe"))
				pid = t.list[i].pid;
		}
	}
	tasks_free(&t);
	close(group);
	return pid;
}

static int wait_for(struct server_of_cell *one, uint64_t ns, char *why,
		    size_t size)
{
	uint64_t until = cli_now() + ns;
	int status, err;

	while (!listens(one->port)) {
		if (child_ended(&one->child, &status)) {
			snprintf(why, size, "the server for port %u ended at once: is memcached installed, and the port free?",
				 one->port);
			return -ECHILD;
		}
		if (cli_now() > until) {
			snprintf(why, size, "nothing listens at port %u", one->port);
			return -ETIMEDOUT;
		}
		err = pause_for(10000000);
		if (err)
			return err;
	}
	one->pid = *one->group ? pid_in_group(one->group) : one->child.pid;
	return 0;
}

int servers_start(struct servers *v, const struct spec *s, const struct cell *c,
		  char *why, size_t size)
{
	size_t instances = cell_number(c, AXIS_INSTANCES), i, threads = 0;
	bool many = is(c, AXIS_ISOLATION, "containers") || is(c, AXIS_ISOLATION, "vms");
	int group = -1, err = 0;

	*v = (struct servers){ .count = many ? s->containers : instances };
	v->fanout = many ? v->count : 1;
	if (many)
		threads = instances / v->count ? instances / v->count : 1;
	if (is(c, AXIS_ISOLATION, "partition")) {
		err = make_partition(v, s, instances, why, size);
		group = err ? err : brumm_group_open(v->partition);
	}
	for (i = 0; i < v->count && !err; i++) {
		struct server_of_cell *one = v->server + i;

		one->port = (unsigned int)(s->port + i);
		if (many)
			share_of_cpus(s, instances, v->count, i, &one->cpus);
		else
			nth_cpu(&s->cpus, i, &one->cpus);
		if (listens(one->port)) {
			snprintf(why, size, "somebody listens at port %u already; see [servers] port",
				 one->port);
			err = -EADDRINUSE;
			break;
		}
		err = start_one(one, s, c, threads, group, why, size);
	}
	for (i = 0; i < v->count && !err; i++)
		err = wait_for(v->server + i,
			       is(c, AXIS_ISOLATION, "vms") ? VM_WAIT : LISTEN_WAIT,
			       why, size);
	if (group >= 0)
		close(group);
	if (!err)
		err = pause_for(s->settle);
	return err;
}

void servers_stop(struct servers *v)
{
	size_t i;

	for (i = 0; i < v->count; i++)
		child_end(&v->server[i].child, 5000000000ull);
	if (*v->partition)
		brumm_group_remove(v->partition);
	*v = (struct servers){ 0 };
}
