// SPDX-License-Identifier: GPL-2.0
/*
 * Making, entering and removing cgroups, by libcgroup. It names them by their
 * path below the mount point, and is not thread-safe. It knows no brumm.*
 * file, as these belong to no controller of cgroup.controllers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libcgroup.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int to_errno(int err)
{
	switch (err) {
	case 0:
		return 0;
	case ECGOTHER:
		err = cgroup_get_last_errno();
		return err > 0 ? -err : -EIO;
	case ECGROUPNOTALLOWED:
	case ECGROUPNOTOWNER:
		return -EACCES;
	case ECGROUPNOTEXIST:
		return -ENOENT;
	case ECGROUPSUBSYSNOTMOUNTED:
	case ECGROUPNOTCOMPILED:
	case ECGROUPNOTMOUNTED:
	case ECGROUPUNSUPP:
		return -ENOTSUP;
	case ECGNONEMPTY:
		return -EBUSY;
	case ECGINVAL:
		return -EINVAL;
	default:
		return -EIO;
	}
}

/* libcgroup's name of a cgroup: the path below the mount, no slash first. */
static int group_name(const char *name, char *buf, size_t size)
{
	char mount[PATH_MAX], path[PATH_MAX];
	const char *rest;
	int err = brumm_cgroup_mount(mount, sizeof(mount));

	if (!err)
		err = brumm_group_path(name, path, sizeof(path));
	if (err)
		return err;
	rest = path + strlen(mount);
	rest += strspn(rest, "/");
	if (!*rest)
		return -EINVAL;
	if (strlen(rest) >= size)
		return -ENAMETOOLONG;
	strcpy(buf, rest);
	return 0;
}

typedef int (*group_fn)(struct cgroup *g, void *arg);

static int with_group(const char *name, group_fn fn, void *arg)
{
	static bool ready;
	char path[PATH_MAX];
	struct cgroup *g;
	int err = group_name(name, path, sizeof(path));

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	if (!ready)
		err = to_errno(cgroup_init());
	if (!err) {
		ready = true;
		g = cgroup_new_cgroup(path);
		if (!g || !cgroup_add_controller(g, "memory"))
			err = -ENOMEM;
		else
			err = to_errno(fn(g, arg));
		cgroup_free(&g);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int do_create(struct cgroup *g, void *arg)
{
	(void)arg;
	return cgroup_create_cgroup(g, 1);
}

static int do_enter(struct cgroup *g, void *arg)
{
	return cgroup_attach_task_pid(g, *(pid_t *)arg);
}

static int do_remove(struct cgroup *g, void *arg)
{
	(void)arg;
	return cgroup_delete_cgroup_ext(g, CGFLAG_DELETE_EMPTY_ONLY);
}

/* Does the v2 hierarchy have the controller? It may be mounted as v1. */
static int check_memory(void)
{
	char path[PATH_MAX], text[KNOB_MAX], *word, *save;
	int fd, err = brumm_cgroup_mount(path, sizeof(path));

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = knob_read(fd, "cgroup.controllers", text, sizeof(text));
	close(fd);
	if (err)
		return err;
	for (word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save))
		if (!strcmp(word, "memory"))
			return 0;
	return -ENOTSUP;
}

PUBLIC int brumm_group_create(const char *name)
{
	int fd, err = check_memory();

	if (!err)
		err = with_group(name, do_create, NULL);
	if (err)
		return err;
	fd = brumm_group_open(name);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

PUBLIC int brumm_group_enter(const char *name, pid_t pid)
{
	if (!pid)
		pid = getpid();
	return with_group(name, do_enter, &pid);
}

static int get_populated(const char *key, uint64_t value, void *arg)
{
	if (!strcmp(key, "populated"))
		*(bool *)arg = value;
	return 0;
}

/*
 * libcgroup moves processes that it finds to the cgroup above, also where it
 * was told to remove empty ones only: out of the budget that they are under.
 */
PUBLIC int brumm_group_remove(const char *name)
{
	bool populated = false;
	char text[KNOB_MAX];
	int err, fd = brumm_group_open(name);

	if (fd < 0)
		return fd;
	err = knob_read(fd, "cgroup.events", text, sizeof(text));
	close(fd);
	/* The root has no such file, and is not to be removed. */
	if (err == -ENOENT)
		return -EBUSY;
	if (!err)
		err = parse_flat(text, get_populated, &populated);
	if (!err && populated)
		err = -EBUSY;
	return err ? err : with_group(name, do_remove, NULL);
}
