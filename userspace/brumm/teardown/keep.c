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
#define OF_CGROUP	"cgroup"

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

/* What can be read is in @notes; 0, or why there may be more. */
static int read_notes(int fd, json_t **notes)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
	int err = f ? 0 : -errno;
	char *line = NULL;
	size_t room = 0;
	json_t *note;
	ssize_t n;

	*notes = json_array();
	while (f && !err && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n') {
		note = json_loadb(line, (size_t)n, 0, NULL);
		if (!note || json_array_append_new(*notes, note))
			err = -EBADMSG;
	}
	if (f && ferror(f))
		err = -EIO;
	free(line);
	if (f)
		fclose(f);
	else if (copy >= 0)
		close(copy);
	return err;
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

	snprintf(buf, size, "%s-%llu", group < 0 ? "pidns" : OF_CGROUP, (unsigned long long)id);
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
	err = read_notes(k->fd, &k->notes);
	if (err && err != -EBADMSG)
		return err;
	left = json_array_size(k->notes) > 0;
	err = put_back(t->group, k->notes, false) ?: err;
	if (err)
		cli_fail(err, "%s: not all of what was changed before is put back", k->path);
	if (ftruncate(k->fd, 0))
		return -errno;
	json_array_clear(k->notes);
	return left;
}

/* In another one the same cgroup has another name. */
static json_int_t cgroup_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/cgroup", &st) ? 0 : (json_int_t)st.st_ino;
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
		/* A name that is not UTF-8 is left out: it is found by its number only. */
		add(k, json_pack("{s:o*, s:I, s:I, s:i}", "name", json_string(t->name),
				 "cgroup_ns", cgroup_ns(), "init", (json_int_t)t->init,
				 "by", (int)getpid()));
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

/* Would it be found here, if it were there? */
static bool is_seen(const json_t *head)
{
	const json_t *ns = json_object_get(head, "cgroup_ns");
	char mount[PATH_MAX];

	return !brumm_cgroup_mount(mount, sizeof(mount)) &&
	       (!ns || json_integer_value(ns) == cgroup_ns());
}

/* The cgroup that a file's first note names; -ENOENT: it is gone. */
static int open_group(const json_t *head, const char *file)
{
	const char *name = json_string_value(json_object_get(head, "name"));
	int group = name ? brumm_group_open(name) : -EBADMSG, err;
	char now[64];

	if (group >= 0) {
		err = file_name(group, 0, now, sizeof(now));
		if (!err && !strcmp(now, file))
			return group;
		close(group);
		group = err ?: -ENOENT;
	}
	return group == -ENOENT && !is_seen(head) ? -EXDEV : group;
}

/* Who has left a cgroup that is gone gets back what is his; then -ENOENT. */
static int restore_notes(const char *file, const json_t *notes, int group)
{
	bool by_name = group < 0 && !strncmp(file, OF_CGROUP "-", strlen(OF_CGROUP "-"));
	int err;

	if (by_name)
		group = open_group(json_array_get(notes, 0), file);
	if (by_name && group < 0 && group != -ENOENT)
		return group;
	err = put_back(group, notes, false);
	if (by_name && group >= 0)
		close(group);
	return !err && by_name && group < 0 ? group : err;
}

static void say_kept(int err, const char *file)
{
	if (err == -EXDEV)
		cli_error("%s: kept, since it is of another cgroup namespace; remedy: brumm reap --restore there",
			  file);
	else
		cli_fail(err, "%s: kept, since not all of it is put back; brumm reap --restore CGROUP may find it",
			 file);
}

/* Puts back what a file tells, and removes it; not as long as some is left. */
static json_t *restore_file(int folder, const char *file, int group)
{
	int fd = take(folder, file, 0), unread, err = 0;
	const char *name, *outcome = "restored";
	json_t *notes = NULL, *j = NULL;

	if (fd == -EBUSY)
		return json_pack("{s:s, s:s}", "name", file, "outcome", "busy");
	if (fd == -ENOENT)
		return NULL;
	unread = fd < 0 ? fd : read_notes(fd, &notes);
	/* Who had not noted anything had not changed anything. */
	if (unread || json_array_size(notes)) {
		err = fd < 0 ? fd : restore_notes(file, notes, group);
		if (err == -ENOENT)
			outcome = "gone";
		else if (err || unread)
			outcome = "failed";
		name = json_string_value(json_object_get(json_array_get(notes, 0), "name"));
		j = json_pack("{s:s, s:s}", "name", name && *name ? name : file,
			      "outcome", outcome);
	}
	if (!strcmp(outcome, "failed"))
		say_kept(unread ?: err, file);
	else
		unlinkat(folder, file, 0);
	json_decref(notes);
	if (fd >= 0)
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
		j = restore_file(folder, e->d_name, t ? t->group : -1);
		if (j)
			json_array_append_new(done, j);
	}
	closedir(d);
	return 0;
}
