// SPDX-License-Identifier: GPL-2.0
/* The cgroups below one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tasks.h"

static int is_dir(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_name[0] == '.')
		return 0;
	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return !fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode);
}

/* Of cgroups, from the one that a walk starts at. */
struct paths {
	char **v;
	size_t n, room;
};

static int add_path(struct paths *p, const char *above, const char *name)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		void *v = reallocarray(p->v, room, sizeof(*p->v));

		if (!v)
			return -ENOMEM;
		p->v = v;
		p->room = room;
	}
	if (asprintf(&p->v[p->n], "%s/%s", above, name) < 0)
		return -ENOMEM;
	p->n++;
	return 0;
}

static void free_paths(struct paths *p)
{
	while (p->n)
		free(p->v[--p->n]);
	free(p->v);
}

/* Opens a folder whose path may be longer than the kernel takes at once. */
static int open_path(int from, const char *path)
{
	char part[PATH_MAX];
	int fd = from, next;
	size_t n;

	for (;; path += n + strspn(path + n, "/")) {
		n = strlen(path);
		if (n >= sizeof(part))
			for (n = sizeof(part) - 1; path[n] != '/'; n--)
				;
		memcpy(part, path, n);
		part[n] = '\0';
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd != from)
			close(fd);
		fd = next;
		if (fd < 0 || !path[n])
			return fd;
	}
}

/* Those right below one. */
static int add_below(int group, const char *path, struct paths *p)
{
	int fd = open_path(group, path);
	struct dirent *e;
	int err = 0;
	DIR *d;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* removed meanwhile */
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while (!err && (e = readdir(d)))
		if (is_dir(fd, e))
			err = add_path(p, path, e->d_name);
	closedir(d);
	return err;
}

static int call_for(int group, char *path, groups_fn fn, void *arg)
{
	char *name = strrchr(path, '/');
	int ret = 0, above, sub;

	*name++ = '\0';
	above = open_path(group, path);
	if (above < 0)
		return 0; /* removed meanwhile */
	sub = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sub >= 0) {
		ret = fn(above, name, sub, arg);
		close(sub);
	}
	close(above);
	return ret;
}

/* By paths, so that a deep hierarchy needs no more descriptors than a flat one. */
int groups_walk(int group, groups_fn fn, void *arg)
{
	struct paths p = { 0 };
	int ret = add_below(group, ".", &p);
	size_t i;

	for (i = 0; i < p.n && !ret; i++)
		ret = add_below(group, p.v[i], &p);
	/* Each stands behind those above it. */
	for (i = p.n; i && !ret; i--)
		ret = call_for(group, p.v[i - 1], fn, arg);
	free_paths(&p);
	return ret;
}

static int count_group(int parent, const char *name, int group, void *arg)
{
	(void)parent;
	(void)name;
	(void)group;
	++*(size_t *)arg;
	return 0;
}

size_t groups_count(int group)
{
	size_t n = 0;

	groups_walk(group, count_group, &n);
	return n;
}
