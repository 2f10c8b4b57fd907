// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "../cli.h"
#include "target.h"

bool target_is_pid(const char *arg)
{
	return *arg && strspn(arg, "0123456789") == strlen(arg) &&
	       strlen(arg) < 10 && atoi(arg) > 0;
}

/* Is the caller in the cgroup or below it? */
static bool caller_within(const char *name)
{
	char own[PATH_MAX];
	size_t len = strlen(name);
	int fd = brumm_group_open_pid(0), err;

	if (fd < 0)
		return false;
	err = brumm_group_name(fd, own, sizeof(own));
	close(fd);
	return !err && !strncmp(own, name, len) &&
	       (!own[len] || own[len] == '/');
}

int target_open_group(int group, struct target *t)
{
	int err = brumm_group_name(group, t->name, sizeof(t->name));

	t->group = group;
	t->init_fd = -1;
	if (err) {
		cli_fail(err, "cannot tell the name of the cgroup");
		return EXIT_ERROR;
	}
	if (!strcmp(t->name, "/")) {
		cli_error("the root cgroup is the whole machine; name one below it");
		return EXIT_ERROR;
	}
	if (faccessat(group, "cgroup.kill", F_OK, 0)) {
		cli_error("%s has no cgroup.kill: a kernel before 5.14, or a cgroup of threads (name the one above it)",
			  t->name);
		return EXIT_UNSUPPORTED;
	}
	if (caller_within(t->name)) {
		cli_error("%s: this command runs in it itself; run it from another cgroup",
			  t->name);
		return EXIT_ERROR;
	}
	return EXIT_FINE;
}

/* The init of a namespace; 0: not to be seen. */
static pid_t init_of(ino_t ns)
{
	struct tasks list = { 0 };
	pid_t pid = 0;
	size_t i;

	tasks_of_ns(ns, &list);
	for (i = 0; i < list.n && !pid; i++)
		if (task_ns(list.list[i].pid) == ns &&
		    task_inner_pid(list.list[i].pid) == 1)
			pid = list.list[i].pid;
	tasks_free(&list);
	return pid;
}

static void no_init(pid_t pid)
{
	char name[PATH_MAX] = "/";
	int group = brumm_group_open_pid(pid);
	pid_t init = task_levels(pid) > 1 ? init_of(task_ns(pid)) : 0;

	if (group >= 0) {
		if (brumm_group_name(group, name, sizeof(name)))
			strcpy(name, "/");
		close(group);
	}
	if (init)
		cli_error("%d is not the init of its PID namespace; that is %d: brumm reap %d",
			  pid, init, init);
	else if (strcmp(name, "/"))
		cli_error("%d has no PID namespace of its own; to end all of its cgroup: brumm reap %s",
			  pid, name);
	else
		cli_error("%d has neither a PID namespace nor a cgroup of its own; kill it as it is, and start such things by brumm run",
			  pid);
}

/* A cgroup in which there is nobody else belongs to the namespace. */
static void open_own_group(struct target *t)
{
	struct tasks list = { 0 };
	size_t i;

	t->group = brumm_group_open_pid(t->init);
	if (t->group < 0)
		return;
	if (!brumm_group_name(t->group, t->name, sizeof(t->name)) &&
	    strcmp(t->name, "/") && !tasks_of_group(t->group, &list)) {
		for (i = 0; i < list.n; i++)
			if (!task_in_ns(list.list[i].pid, t->ns))
				break;
		if (i == list.n && i) {
			tasks_free(&list);
			return;
		}
	}
	tasks_free(&list);
	close(t->group);
	t->group = -1;
	t->name[0] = '\0';
}

static int no_process(pid_t pid)
{
	cli_error("no process %d; if a cgroup is meant: /%d", pid, pid);
	return EXIT_ERROR;
}

static int open_pid(pid_t pid, struct target *t)
{
	struct pollfd p = { .events = POLLIN };

	t->init_fd = pidfd_open(pid, 0);
	if (t->init_fd < 0) {
		if (errno == ESRCH || errno == EINVAL)
			return no_process(pid);
		cli_fail(errno, "process %d", pid);
		return EXIT_ERROR;
	}
	t->ns = task_ns(pid);
	if (!t->ns) {
		cli_error("%d: its namespace cannot be seen; run as root", pid);
		return EXIT_ERROR;
	}
	if (task_levels(pid) < 2 || task_inner_pid(pid) != 1) {
		no_init(pid);
		return EXIT_ERROR;
	}
	t->init = pid;
	open_own_group(t);
	/* As long as it runs, what was read by the number is of no other. */
	p.fd = t->init_fd;
	return poll(&p, 1, 0) ? no_process(pid) : EXIT_FINE;
}

int target_open(const char *arg, struct target *t)
{
	int group, status;

	*t = (struct target){ .group = -1, .init_fd = -1 };
	if (target_is_pid(arg)) {
		status = open_pid(atoi(arg), t);
	} else {
		group = cli_open_group(arg);
		if (group < 0)
			return EXIT_ERROR;
		status = target_open_group(group, t);
	}
	if (status)
		target_close(t);
	return status;
}

void target_close(struct target *t)
{
	if (t->group >= 0)
		close(t->group);
	if (t->init_fd >= 0)
		close(t->init_fd);
	t->group = -1;
	t->init_fd = -1;
}

int target_tasks(const struct target *t, struct tasks *list)
{
	return t->init ? tasks_of_ns(t->ns, list) :
			 tasks_of_group(t->group, list);
}
