// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "whole.h"

static bool is_open_as(int fd, const struct stat *file)
{
	struct stat own;

	return !fstat(fd, &own) && own.st_dev == file->st_dev &&
	       own.st_ino == file->st_ino;
}

/* As /dev/null, or /dev/stdout. */
static bool has_to_stay(const char *path)
{
	struct stat st;

	return !stat(path, &st) &&
	       (!S_ISREG(st.st_mode) || is_open_as(STDOUT_FILENO, &st) ||
		is_open_as(STDERR_FILENO, &st));
}

int whole_create(const char *temp, int flags)
{
	int fd;

	unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
	return fd < 0 ? -errno : fd;
}

static int open_file(struct whole *w)
{
	int fd;

	if (has_to_stay(w->path)) {
		fd = open(w->path, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (asprintf(&w->temp, "%s.new", w->path) < 0) {
		w->temp = NULL;
		return -ENOMEM;
	}
	return whole_create(w->temp, 0);
}

static void forget(struct whole *w)
{
	free(w->path);
	free(w->temp);
	*w = (struct whole){ 0 };
}

int whole_open(struct whole *w, const char *path)
{
	int fd, err;

	*w = (struct whole){ .path = strdup(path) };
	fd = w->path ? open_file(w) : -ENOMEM;
	if (fd >= 0) {
		w->f = fdopen(fd, "w");
		if (w->f)
			return 0;
		err = -errno;
		close(fd);
		if (w->temp)
			unlink(w->temp);
	} else {
		err = fd;
	}
	forget(w);
	return err;
}

/* The error of the last write is that of the flush, if none came before. */
static int flush(FILE *f)
{
	bool failed = ferror(f);

	if (fflush(f))
		return -errno;
	return failed ? -EIO : 0;
}

int whole_close(struct whole *w, int err)
{
	int flushed = flush(w->f);

	/* Why what was written before did not get there says more than that it did not. */
	if (!err || (err == -EIO && flushed))
		err = flushed;
	if (fclose(w->f) && !err)
		err = -errno;
	if (w->temp && !err && rename(w->temp, w->path))
		err = -errno;
	if (w->temp && err)
		unlink(w->temp);
	forget(w);
	return err;
}

int whole_json(const char *path, const json_t *j, size_t flags)
{
	struct whole w;
	int err = j ? whole_open(&w, path) : -ENOMEM;

	if (err)
		return err;
	errno = 0;
	if (json_dumpf(j, w.f, flags) || fputc('\n', w.f) == EOF)
		err = errno ? -errno : -EIO;
	return whole_close(&w, err);
}
