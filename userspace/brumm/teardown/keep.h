/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a teardown changes in a group before it kills it: noted before it is
 * changed, in a file that outlives a SIGKILL of who changes it. Who comes next
 * puts it back. The file is locked as long as its writer lives.
 */
#ifndef BRUMM_TEARDOWN_KEEP_H
#define BRUMM_TEARDOWN_KEEP_H

#include <jansson.h>
#include <stdbool.h>

#include "target.h"

struct keep;

/**
 * keep_open() - begin to note what is changed in @t
 * @t: as long as it is open
 * @k: notes; where there is no file they are in memory only
 *
 * What somebody left who was killed is put back first.
 *
 * Return: 0; 1: something was put back; -EBUSY: somebody else is at it; another
 * negative errno: why there is no file.
 */
int keep_open(const struct target *t, struct keep **k);
/*
 * Writes @value to a file of the cgroup, NULL: only notes what it has, which is put
 * back with what is noted next. 0 or why it has not changed.
 */
int keep_knob(struct keep *k, const char *file, const char *value);
/* An array from place_look(), which the caller then applies. Takes the reference. */
void keep_threads(struct keep *k, json_t *threads);
/* Puts all back that is still as it was set; @locked: but for the lock. */
void keep_restore(struct keep *k, bool locked);
/* Removes the file. */
void keep_close(struct keep *k);

/**
 * keep_restore_left() - put back what was left by those who were killed
 * @t: in this one only, NULL: everywhere
 * @done: gets an object for each: name, outcome ("restored", "gone", "busy", or
 * "failed": not all is put back, and the notes stay)
 *
 * Return: 0 or -errno.
 */
int keep_restore_left(const struct target *t, json_t *done);

#endif /* BRUMM_TEARDOWN_KEEP_H */
