// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files.h"

static DIR *open_dir(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return opendir(path);
}

size_t files_slots(pid_t pid)
{
	DIR *d = open_dir(pid);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* A socket says of what protocol it is. */
static const char *socket_type(const char *path)
{
	char name[32];
	ssize_t len = getxattr(path, "system.sockprotoname", name,
			       sizeof(name) - 1);

	name[len < 0 ? 0 : len] = '\0';
	if (!strncmp(name, "UNIX", 4))
		return "unix";
	if (!strcmp(name, "TCP") || !strcmp(name, "TCPv6") ||
	    !strcmp(name, "MPTCP"))
		return "tcp";
	return "socket";
}

static const char *anon_type(const char *target)
{
	if (strstr(target, "[eventfd]"))
		return "eventfd";
	if (strstr(target, "[eventpoll]"))
		return "epoll";
	if (strstr(target, "[io_uring]"))
		return "uring";
	return "otherfile";
}

/* Only a place in the tree (O_PATH)? */
static bool is_place(pid_t pid, int fd)
{
	char path[64], line[64];
	unsigned int flags = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) &&
	       sscanf(line, "flags: %o", &flags) != 1)
		;
	if (f)
		fclose(f);
	return flags & O_PATH;
}

/* Without opening what it leads to. */
static int look_at(int dir, const char *name, pid_t pid, struct file *f)
{
	char path[64], target[64];
	struct stat st;
	ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);

	if (len < 0 || fstatat(dir, name, &st, 0))
		return -errno;
	target[len] = '\0';
	*f = (struct file){ .pid = pid, .fd = atoi(name), .dev = st.st_dev,
			    .ino = st.st_ino, .type = "otherfile" };
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, f->fd);
	if (!strncmp(target, "anon_inode:", 11))
		f->type = anon_type(target);
	else if (!strncmp(target, "socket:", 7))
		f->type = socket_type(path);
	else if (S_ISFIFO(st.st_mode) && !is_place(pid, f->fd))
		f->type = "pipe";
	else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		f->type = "plain";
	return 0;
}

static int append(struct files *f, const struct file *one)
{
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 256;
		void *more = reallocarray(f->list, room, sizeof(*one));

		if (!more)
			return -ENOMEM;
		f->list = more;
		f->room = room;
	}
	f->list[f->n++] = *one;
	return 0;
}

int files_of(pid_t pid, struct files *f)
{
	DIR *d = open_dir(pid);
	struct dirent *e;
	struct file one;
	int err = 0;

	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		/* Closed meanwhile. */
		if (look_at(dirfd(d), e->d_name, pid, &one))
			continue;
		err = append(f, &one);
	}
	closedir(d);
	return err;
}

/* An order of files: 0 is the same one. */
static int compare(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	long order;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	order = syscall(SYS_kcmp, x->pid, y->pid, KCMP_FILE, x->fd, y->fd);
	if (order == 0)
		return 0;
	if (order == 1 || order == 2)
		return order == 1 ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->fd < y->fd ? -1 : x->fd > y->fd;
}

void files_unique(struct files *f)
{
	size_t i, n = 0;

	if (f->n)
		qsort(f->list, f->n, sizeof(*f->list), compare);
	for (i = 0; i < f->n; i++) {
		if (!n || compare(&f->list[n - 1], &f->list[i]))
			f->list[n++] = f->list[i];
	}
	f->n = n;
}

void files_count(const struct kinds *k, struct files *f, struct counts *c)
{
	size_t i;

	files_unique(f);
	for (i = 0; i < f->n; i++)
		kinds_add(k, c, f->list[i].type, 1);
}

void files_free(struct files *f)
{
	free(f->list);
	*f = (struct files){ 0 };
}
