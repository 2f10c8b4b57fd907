// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cg.h"
#include "tap.h"

int cg_write(int cgroup, const char *file, const char *text)
{
	int fd = openat(cgroup, file, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int cg_read(int cgroup, const char *file, char *text, unsigned int room)
{
	int fd = openat(cgroup, file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read(fd, text, room - 1);
	if (n < 0)
		n = -errno;
	else
		text[n] = '\0';
	close(fd);
	return n;
}

int64_t cg_number(int cgroup, const char *file)
{
	char text[100];
	int ret = cg_read(cgroup, file, text, sizeof(text));

	if (ret < 0)
		return ret;
	return strncmp(text, "max", 3) ? strtoll(text, NULL, 10) : INT64_MAX;
}

int64_t cg_key(int cgroup, const char *file, const char *key)
{
	char text[4096], *line, *save;
	int ret = cg_read(cgroup, file, text, sizeof(text));
	size_t len = strlen(key);

	if (ret < 0)
		return ret;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, key, len) && line[len] == ' ')
			return strtoll(line + len + 1, NULL, 10);
	return -ENOENT;
}

struct cg_counts cg_counts(int cgroup)
{
	return (struct cg_counts){
		.lookup = cg_key(cgroup, "brumm.stat", "lookup_count"),
		.map = cg_key(cgroup, "brumm.stat", "map_count"),
		.pt = cg_key(cgroup, "brumm.stat", "pt_count"),
	};
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void enable_memory(const char *path)
{
	int dir = open_dir(path);

	REQUIRE(dir >= 0);
	REQUIRE_OK(cg_write(dir, "cgroup.subtree_control", "+memory"));
	close(dir);
}

/* Every level gets the memory controller from the one above. */
int cg_make(const char *name)
{
	char path[400];
	char *slash;
	int fd;

	snprintf(path, sizeof(path), CG_TESTS "/%s", name);
	enable_memory(CG_TOP);
	for (slash = path + strlen(CG_TOP) + 1; (slash = strchr(slash, '/'));
	     slash++) {
		*slash = '\0';
		REQUIRE(!mkdir(path, 0755) || errno == EEXIST);
		enable_memory(path);
		*slash = '/';
	}
	REQUIRE(!mkdir(path, 0755) || errno == EEXIST);
	fd = open_dir(path);
	REQUIRE(fd >= 0);
	return fd;
}

void cg_enter(int cgroup)
{
	REQUIRE_OK(cg_write(cgroup, "cgroup.procs", "0"));
}

void cg_leave(void)
{
	int top = open_dir(CG_TOP);

	REQUIRE(top >= 0);
	cg_enter(top);
	close(top);
}

uint64_t cg_id(int cgroup)
{
	struct {
		struct file_handle h;
		unsigned char bytes[MAX_HANDLE_SZ];
	} buf = { .h.handle_bytes = MAX_HANDLE_SZ };
	uint64_t id;
	int mount;

	REQUIRE(!name_to_handle_at(cgroup, "", &buf.h, &mount, AT_EMPTY_PATH));
	memcpy(&id, buf.h.f_handle, sizeof(id));
	return id;
}

static int remove_dir(const char *path)
{
	struct timespec pause = { .tv_nsec = 20 * 1000000L };
	int tries;

	/* Tasks that were killed may still be on their way out. */
	for (tries = 0; tries < 250; tries++) {
		if (!rmdir(path) || errno != EBUSY)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -errno;
}

void cg_remove(const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), CG_TESTS "/%s", name);
	REQUIRE_OK(remove_dir(path));
}

static void check_zero(int dir, const char *path)
{
	char text[4096];

	/* Only with the controller are there brumm files. */
	if (cg_read(dir, "brumm.stat", text, sizeof(text)) < 0)
		return;
	if (!CHECK(!cg_key(dir, "brumm.stat", "lookup_count") &&
		   !cg_key(dir, "brumm.stat", "map_count") &&
		   !cg_key(dir, "brumm.stat", "pt_count")) ||
	    !CHECK_EQ(cg_number(dir, "brumm.current"), 0))
		tap_diag("%s still has:\n%s", path, text);
}

static void sweep(const char *path)
{
	int fd = open_dir(path);
	struct dirent *de;
	char below[600];
	DIR *dir;

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	while ((de = readdir(dir))) {
		if (de->d_type != DT_DIR || de->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, de->d_name);
		sweep(below);
	}
	check_zero(fd, path);
	closedir(dir);
	CHECK_OK(remove_dir(path));
}

void cg_sweep(void)
{
	sweep(CG_TESTS);
}
