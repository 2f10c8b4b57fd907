/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writing a file that is there as a whole, or not at all: whoever reads it may do so at
 * any time, and what was there before stays until all of the new one is.
 */
#ifndef BRUMM_WHOLE_H
#define BRUMM_WHOLE_H

#include <jansson.h>
#include <stdio.h>

/**
 * struct whole - a file that is being written
 * @f: to write to
 * @path: its name
 * @temp: what it is called until it is whole; NULL: it is written to at once
 */
struct whole {
	FILE *f;
	char *path, *temp;
};

/**
 * whole_create() - a new file, whatever is there by that name
 * @temp: that name: of a run that was killed, or a trap; it goes, and is not written to
 * @flags: of open(), beside those for that
 *
 * Returns a descriptor or -errno.
 */
int whole_create(const char *temp, int flags);

/**
 * whole_open() - begin to write
 * @path: what is there and no regular file, as a device or a pipe, is written to at once,
 *	and so is the file that is stdout or stderr: nothing takes its place
 *
 * Until whole_close() the file is called @path.new, made by whole_create(). 0 or -errno.
 */
int whole_open(struct whole *w, const char *path);

/**
 * whole_close() - put it into its place
 * @err: 0, or why it is not to be kept; as is any error of @w->f
 *
 * Returns @err, or what else went wrong as -errno; then nothing of it is left.
 */
int whole_close(struct whole *w, int err);

/* A value, with flags of json_dumpf(), and a newline. 0 or -errno; NULL is -ENOMEM. */
int whole_json(const char *path, const json_t *j, size_t flags);

#endif /* BRUMM_WHOLE_H */
