// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cli.h"
#include "keep.h"
#include "place.h"

#define RUN_DIR	"/run/brumm"
#define LOCK	"brumm.lock"

/* What notes may be of. */
static const char *const knobs[] = {
	LOCK, "cgroup.freeze", "cpu.idle", "cpu.weight", "pids.max",
};

/*
 * The file has a line for each note, the first says of whom. A line that is not
 * whole is of who was killed before he had changed what it tells of.
 */
struct keep {
	json_t *notes;
	int group;
	int fd;		/* -1: no file */
	char path[PATH_MAX];
};

/* A folder that nobody else writes, made if it is not there. */
static int own_folder(int above, const char *name, mode_t mode)
{
	struct stat st;
	int fd, err;

	if (mkdirat(above, name, mode) && errno != EEXIST)
		return -errno;
	fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))))
		err = -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Where the files are: of root, or of a user's session. */
static int open_folder(char *path, size_t size)
{
	const char *run = RUN_DIR;
	char above[PATH_MAX];
	int up, fd;

	if (geteuid()) {
		run = getenv("XDG_RUNTIME_DIR");
		if (!run || *run != '/')
			return -ENOENT;
	}
	if (snprintf(above, sizeof(above), "%s%s", run, geteuid() ? "/brumm" : "") >= (int)sizeof(above) ||
	    snprintf(path, size, "%s/reap", above) >= (int)size)
		return -ENAMETOOLONG;
	up = own_folder(AT_FDCWD, above, 0755);
	fd = up < 0 ? up : own_folder(up, "reap", 0700);
	if (up >= 0)
		close(up);
	if (fd == -EPERM)
		cli_error("%s: not used, since somebody else may write there or above; remedy: chown, chmod go-w",
			  path);
	return fd;
}

/* Opens a file for whom nobody else writes it: -EBUSY if somebody does. */
static int take(int folder, const char *name, int flags)
{
	struct stat a, b;
	int fd, err;

	for (;;) {
		fd = openat(folder, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			err = errno == EWOULDBLOCK ? -EBUSY : -errno;
			close(fd);
			return err;
		}
		/* Whose it was may have removed it before he let go. */
		if (!fstat(fd, &a) && !fstatat(folder, name, &b, AT_SYMLINK_NOFOLLOW) &&
		    a.st_ino == b.st_ino)
			return fd;
		close(fd);
	}
}

static json_t *read_notes(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
	json_t *notes = json_array(), *note;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while (f && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n') {
		note = json_loadb(line, (size_t)n, 0, NULL);
		if (!note)
			break;
		json_array_append_new(notes, note);
	}
	free(line);
	if (f)
		fclose(f);
	else if (copy >= 0)
		close(copy);
	return notes;
}

static void write_note(struct keep *k, const json_t *note)
{
	char *text = json_dumps(note, JSON_COMPACT), *line = NULL;
	ssize_t n = -1;
	int len = text ? asprintf(&line, "%s\n", text) : -1;

	if (len >= 0)
		n = write(k->fd, line, (size_t)len);
	if (n != len || len < 0)
		cli_fail(n < 0 ? -errno : -ENOSPC, "%s: if this is killed by SIGKILL, not all can be put back",
			 k->path);
	if (len >= 0)
		free(line);
	free(text);
}

static void add(struct keep *k, json_t *note)
{
	if (!note || json_array_append_new(k->notes, note)) {
		cli_fail(-ENOMEM, "cannot note what is changed");
		return;
	}
	if (k->fd >= 0)
		write_note(k, note);
}

/* The first line of a file, as the word that is there. */
static int read_knob(int group, const char *file, char *buf, size_t size)
{
	int err = group < 0 ? -ENOENT : brumm_group_read(group, file, buf, size);

	if (!err)
		buf[strcspn(buf, "\n")] = '\0';
	return err;
}

static bool is_known(const char *file)
{
	size_t i;

	for (i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (!strcmp(file, knobs[i]))
			return true;
	return false;
}

/*
 * What somebody else has changed since is his. What was not set goes with what was
 * noted after it: @with, which then says whether this one was put back.
 */
static int put_back_knob(int group, const json_t *note, bool *with)
{
	const char *file, *old, *set = NULL;
	bool ours = *with;
	char now[64];
	int err = 0;

	*with = false;
	if (!json_object_get(note, "file"))
		return 0;
	if (json_unpack((json_t *)note, "{s:s, s:s, s?s}", "file", &file,
			"old", &old, "set", &set) || !is_known(file))
		return -EINVAL;
	if (set) {
		err = read_knob(group, file, now, sizeof(now));
		ours = !err && !strcmp(now, set);
	}
	if (ours) {
		err = brumm_group_write(group, file, old);
		*with = !err;
	}
	/* With the cgroup, or with the module, there is nothing to put back. */
	return err == -ENOENT || err == -ENODEV ? 0 : err;
}

static bool is_lock(const json_t *note)
{
	const char *file = json_string_value(json_object_get(note, "file"));

	return file && !strcmp(file, LOCK);
}

/*
 * The last first: some files have a say in what others do. 0, or why something is
 * not put back.
 */
static int put_back(int group, const json_t *notes, bool locked)
{
	size_t i = json_array_size(notes);
	const json_t *note, *threads;
	int err, failed = 0;
	bool with = false;

	while (i--) {
		note = json_array_get(notes, i);
		threads = json_object_get(note, "threads");
		err = 0;
		if (threads)
			err = place_restore(threads);
		else if (group >= 0 && !(locked && is_lock(note)))
			err = put_back_knob(group, note, &with);
		if (err)
			failed = err;
	}
	return failed;
}

/* Whose notes: a cgroup is known by its number, which no other gets. */
static int file_name(int group, ino_t ns, char *buf, size_t size)
{
	uint64_t id = ns;
	int err = group < 0 ? 0 : brumm_group_id(group, &id);

	snprintf(buf, size, "%s-%llu", group < 0 ? "pidns" : "cgroup", (unsigned long long)id);
	return err;
}

static int open_file(struct keep *k, const struct target *t)
{
	int folder = open_folder(k->path, sizeof(k->path)), err, left = 0;
	char name[64];
	size_t len;

	if (folder < 0)
		return folder;
	err = file_name(t->group, t->ns, name, sizeof(name));
	k->fd = err ? err : take(folder, name, O_CREAT);
	close(folder);
	if (k->fd < 0)
		return k->fd;
	len = strlen(k->path);
	snprintf(k->path + len, sizeof(k->path) - len, "/%s", name);
	k->notes = read_notes(k->fd);
	left = json_array_size(k->notes) > 0;
	put_back(t->group, k->notes, false);
	if (ftruncate(k->fd, 0))
		return -errno;
	json_array_clear(k->notes);
	return left;
}

int keep_open(const struct target *t, struct keep **out)
{
	struct keep *k = calloc(1, sizeof(*k));
	int err;

	*out = k;
	if (!k)
		return -ENOMEM;
	k->fd = -1;
	k->group = t->group;
	err = open_file(k, t);
	if (err < 0 && k->fd >= 0) {
		close(k->fd);
		k->fd = -1;
	}
	if (!k->notes)
		k->notes = json_array();
	if (k->fd >= 0)
		add(k, json_pack("{s:s, s:I, s:i}", "name", t->name, "init",
				 (json_int_t)t->init, "by", (int)getpid()));
	return err;
}

int keep_knob(struct keep *k, const char *file, const char *value)
{
	char old[64];
	int err = is_known(file) ? read_knob(k->group, file, old, sizeof(old)) : -EINVAL;

	if (err)
		return err;
	add(k, json_pack("{s:s, s:s, s:s*}", "file", file, "old", old, "set", value));
	return value ? brumm_group_write(k->group, file, value) : 0;
}

void keep_threads(struct keep *k, json_t *threads)
{
	if (json_array_size(threads))
		add(k, json_pack("{s:o}", "threads", threads));
	else
		json_decref(threads);
}

void keep_restore(struct keep *k, bool locked)
{
	put_back(k->group, k->notes, locked);
}

void keep_close(struct keep *k)
{
	if (!k)
		return;
	if (k->fd >= 0) {
		unlink(k->path);
		close(k->fd);
	}
	json_decref(k->notes);
	free(k);
}

/* The cgroup of that name, if it is still the same one. */
static int open_group(const char *name, const char *file)
{
	char now[64];
	int group = *name ? brumm_group_open(name) : -ENOENT;

	if (group < 0)
		return -1;
	if (!file_name(group, 0, now, sizeof(now)) && !strcmp(now, file))
		return group;
	close(group);
	return -1;
}

/* Puts back what a file tells, and removes it. */
static json_t *restore_file(int folder, const char *file)
{
	int fd = take(folder, file, 0), group;
	const char *name, *outcome;
	json_t *notes, *j;

	if (fd < 0)
		return fd == -EBUSY ? json_pack("{s:s, s:s}", "name", file, "outcome", "busy") : NULL;
	notes = read_notes(fd);
	name = json_string_value(json_object_get(json_array_get(notes, 0), "name")) ?: "";
	group = open_group(name, file);
	outcome = group < 0 && *name ? "gone" : "restored";
	put_back(group, notes, false);
	j = json_pack("{s:s, s:s}", "name", *name ? name : file, "outcome", outcome);
	unlinkat(folder, file, 0);
	if (group >= 0)
		close(group);
	json_decref(notes);
	close(fd);
	return j;
}

int keep_restore_left(const struct target *t, json_t *done)
{
	char path[PATH_MAX], only[64];
	int folder = open_folder(path, sizeof(path)), err;
	struct dirent *e;
	json_t *j;
	DIR *d;

	if (folder < 0)
		return folder;
	err = t ? file_name(t->group, t->ns, only, sizeof(only)) : 0;
	d = err ? NULL : fdopendir(folder);
	if (!d) {
		close(folder);
		return err ?: -ENOMEM;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || (t && strcmp(e->d_name, only)))
			continue;
		j = restore_file(folder, e->d_name);
		if (j)
			json_array_append_new(done, j);
	}
	closedir(d);
	return 0;
}
