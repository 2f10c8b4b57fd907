// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brumm/brumm.h>

#include "prices.h"

const char *const prices_lists[PRICES_LISTS] = {
	[PRICES_USUAL] = "prices",
	[PRICES_WORST] = "worst",
};

static json_t *price_of(const json_t *doc, enum prices_list list, int term)
{
	return json_object_get(json_object_get(doc, prices_lists[list]),
			       fit_names[term]);
}

/* What is free of charge is not bounded by any budget. */
static json_int_t least(int term)
{
	return term == FIT_SYSCALL ? 0 : 1;
}

int prices_get(const json_t *doc, enum prices_list list, double ns[FIT_TERMS])
{
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		const json_t *j = price_of(doc, list, t);

		if (!json_is_integer(j) || json_integer_value(j) < least(t))
			return -EBADMSG;
		ns[t] = (double)json_integer_value(j);
	}
	return 0;
}

static int verify(const json_t *doc)
{
	const char *schema = json_string_value(json_object_get(doc, "schema"));
	double ns[FIT_TERMS];

	if (!schema || strcmp(schema, PRICES_SCHEMA) ||
	    !json_is_object(json_object_get(doc, "fingerprint")))
		return -EBADMSG;
	return prices_get(doc, PRICES_USUAL, ns);
}

int prices_read(const char *path, json_t **doc)
{
	FILE *f = fopen(path, "re");
	int err;

	if (!f)
		return -errno;
	*doc = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
	err = ferror(f) ? -EIO : *doc ? verify(*doc) : -EBADMSG;
	fclose(f);
	if (err) {
		json_decref(*doc);
		*doc = NULL;
	}
	return err;
}

/* Opens the folder that @path is in, and makes it if there is none. */
static int open_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";
	int fd;

	if (slash && (size_t)(slash - path) >= sizeof(folder))
		return -ENAMETOOLONG;
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s",
			 slash == path ? 1 : (int)(slash - path), path);
	if (mkdir(folder, 0755) && errno != EEXIST && errno != EROFS)
		return -errno;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int prices_prepare(const char *path)
{
	int fd = open_folder(path), err = 0;

	if (fd < 0)
		return fd;
	if (faccessat(fd, ".", W_OK, 0))
		err = -errno;
	close(fd);
	return err;
}

static int write_out(FILE *f, const json_t *doc)
{
	if (json_dumpf(doc, f, JSON_INDENT(2)) || fputc('\n', f) == EOF ||
	    fflush(f) || fsync(fileno(f)))
		return errno ? -errno : -EIO;
	return 0;
}

int prices_write(const char *path, const json_t *doc)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char temp[NAME_MAX + 1];
	int folder = open_folder(path), fd, n, err = 0;
	FILE *f = NULL;

	if (folder < 0)
		return folder;
	n = snprintf(temp, sizeof(temp), ".%s.%d", name, getpid());
	if (!*name || n < 0 || (size_t)n >= sizeof(temp))
		err = -EINVAL;
	/* Of a dead process of that number, or put there by somebody else. */
	if (!err)
		unlinkat(folder, temp, 0);
	fd = err ? -1 : openat(folder, temp, O_WRONLY | O_CREAT | O_EXCL |
					     O_CLOEXEC | O_NOFOLLOW, 0644);
	if (!err && fd < 0)
		err = -errno;
	if (!err) {
		f = fdopen(fd, "w");
		err = f ? write_out(f, doc) : -ENOMEM;
		if (f ? fclose(f) : close(fd))
			err = err ? err : -errno;
		if (!err && renameat(folder, temp, folder, name))
			err = -errno;
		if (err)
			unlinkat(folder, temp, 0);
		/* The new name, too, shall outlive a crash. */
		else if (fsync(folder) && errno != EINVAL)
			err = -errno;
	}
	close(folder);
	return err;
}

int prices_set(const json_t *doc, enum prices_list which, int root)
{
	struct brumm_price list[FIT_TERMS];
	double ns[FIT_TERMS];
	unsigned int n = 0;
	int err = prices_get(doc, which, ns), t;

	if (err)
		return err;
	for (t = 0; t < FIT_TERMS; t++) {
		if (t != FIT_SYSCALL)
			list[n++] = (struct brumm_price){
				.kind = fit_names[t],
				.ns = (uint64_t)ns[t],
			};
	}
	return brumm_group_set_prices(root, list, n);
}
