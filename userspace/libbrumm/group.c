// SPDX-License-Identifier: GPL-2.0
/* cgroups: finding them, and what they are called. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal.h"

/* Reads to the end, at most @size - 1 bytes, and terminates. */
int fd_read_text(int fd, char *buf, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have < size - 1) {
		n = read(fd, buf + have, size - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return (int)have;
}

int knob_read(int dir, const char *name, char *buf, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = fd_read_text(fd, buf, size);
	close(fd);
	return ret < 0 ? ret : 0;
}

int knob_write(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		err = -errno;
	else if ((size_t)n != strlen(text))
		err = -EIO;
	close(fd);
	return err;
}

PUBLIC int brumm_cgroup_mount(char *buf, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *where;
	size_t room = 0;
	int ret = -ENOENT;

	if (!f)
		return -errno;
	while (getline(&line, &room, f) > 0) {
		if (parse_mountinfo_line(line, "cgroup2", &where) != 1)
			continue;
		/* The usual place wins, otherwise the last one mounted. */
		if (strlen(where) >= size) {
			ret = -ENAMETOOLONG;
			continue;
		}
		strcpy(buf, where);
		ret = 0;
		if (!strcmp(where, "/sys/fs/cgroup"))
			break;
	}
	free(line);
	fclose(f);
	return ret;
}

static bool has_dotdot(const char *path)
{
	const char *p = path;
	size_t len;

	while (*p) {
		p += strspn(p, "/");
		len = strcspn(p, "/");
		if (len == 2 && !strncmp(p, "..", 2))
			return true;
		p += len;
	}
	return false;
}

/* Path below the mount point, or NULL if @name is not a full path of it. */
static const char *below(const char *mount, const char *name)
{
	size_t len = strlen(mount);

	if (strncmp(name, mount, len) || (name[len] && name[len] != '/'))
		return NULL;
	return name + len;
}

PUBLIC int brumm_group_path(const char *name, char *buf, size_t size)
{
	char mount[PATH_MAX];
	const char *rest;
	int n, err;

	if (!*name || has_dotdot(name))
		return -EINVAL;
	err = brumm_cgroup_mount(mount, sizeof(mount));
	if (err)
		return err;
	rest = below(mount, name);
	if (!rest)
		rest = name;
	rest += strspn(rest, "/");
	n = snprintf(buf, size, "%s%s%s", mount, *rest ? "/" : "", rest);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	while (n > 1 && buf[n - 1] == '/')
		buf[--n] = '\0';
	return 0;
}

static int open_dir(const char *path)
{
	struct statfs st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &st))
		err = -errno;
	else if (st.f_type != CGROUP2_SUPER_MAGIC)
		err = -ENOTDIR;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

PUBLIC int brumm_group_open(const char *name)
{
	char path[PATH_MAX];
	int err = brumm_group_path(name, path, sizeof(path));

	return err ? err : open_dir(path);
}

PUBLIC int brumm_group_open_pid(pid_t pid)
{
	char file[64], text[PATH_MAX + 1024];
	char full[2 * PATH_MAX], mount[PATH_MAX], *path;
	int err;

	if (pid)
		snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	else
		snprintf(file, sizeof(file), "/proc/self/cgroup");
	err = knob_read(AT_FDCWD, file, text, sizeof(text));
	if (err == -ENOENT)
		return -ESRCH;
	if (!err)
		err = parse_cgroup_line(text, &path);
	if (!err)
		err = brumm_cgroup_mount(mount, sizeof(mount));
	if (err)
		return err;
	/* Not brumm_group_path(): a cgroup may be called like the mount. */
	snprintf(full, sizeof(full), "%s%s", mount, path);
	return open_dir(full);
}

PUBLIC int brumm_group_id(int group, uint64_t *id)
{
	struct {
		struct file_handle head;
		uint64_t id;
	} h = { .head.handle_bytes = sizeof(h.id) };
	struct stat st;
	int mount_id;

	if (!name_to_handle_at(group, "", &h.head, &mount_id, AT_EMPTY_PATH) &&
	    h.head.handle_bytes == sizeof(h.id)) {
		memcpy(id, h.head.f_handle, sizeof(*id));
		return 0;
	}
	/* The same number wherever ino_t has 64 bits. */
	if (fstat(group, &st))
		return -errno;
	*id = st.st_ino;
	return 0;
}

PUBLIC int brumm_group_name(int group, char *buf, size_t size)
{
	static const char deleted[] = " (deleted)";
	char link[64], path[PATH_MAX], mount[PATH_MAX];
	const char *rest;
	struct stat a, b;
	ssize_t n;
	int err;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", group);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	err = brumm_cgroup_mount(mount, sizeof(mount));
	if (err)
		return err;
	rest = below(mount, path);
	if (!rest)
		return -EXDEV;
	/* A cgroup may really be called so. */
	if (n > (ssize_t)strlen(deleted) &&
	    !strcmp(path + n - strlen(deleted), deleted) &&
	    (fstat(group, &a) || stat(path, &b) || a.st_ino != b.st_ino))
		return -ENOENT;
	if (!*rest)
		rest = "/";
	if (strlen(rest) >= size)
		return -ENAMETOOLONG;
	strcpy(buf, rest);
	return 0;
}

/* Is @word one of the words of @text? */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word), n;

	for (; *text; text += n) {
		text += strspn(text, " \n");
		n = strcspn(text, " \n");
		if (n == len && !strncmp(text, word, len))
			return true;
	}
	return false;
}

PUBLIC int brumm_group_why(int group, char *buf, size_t size)
{
	char text[KNOB_MAX], name[PATH_MAX];

	if (!faccessat(group, "brumm.max", F_OK, 0))
		return -EEXIST;
	if (brumm_group_name(group, name, sizeof(name)))
		strcpy(name, "?");
	if (access("/sys/module/brumm", F_OK))
		snprintf(buf, size, "the module is not loaded; modprobe brumm");
	else if (!strcmp(name, "/"))
		snprintf(buf, size, "the root cgroup has no budget; use a cgroup below it");
	else if (knob_read(group, "cgroup.controllers", text, sizeof(text)))
		snprintf(buf, size, "the cgroup is gone");
	else if (!has_word(text, "memory"))
		snprintf(buf, size,
			 "the cgroup has no memory controller; write +memory to cgroup.subtree_control of the one above it");
	else
		snprintf(buf, size, "this module offers no such file; see brumm info");
	return 0;
}
