/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of libbrumm; nothing of it is exported. */
#ifndef LIBBRUMM_INTERNAL_H
#define LIBBRUMM_INTERNAL_H

#include <brumm/brumm.h>

/* Marks what the version script exports too; all else is built hidden. */
#define PUBLIC __attribute__((visibility("default")))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Greatest size of a knob's content: a page, with room for the NUL. */
#define KNOB_MAX 4097

/* parse.c: these write into the text. */
int parse_flat(char *text, brumm_each_fn each, void *arg);
int parse_u64(const char *text, uint64_t *value);
int parse_cgroup_line(char *text, char **path);
int parse_mountinfo_line(char *line, const char *type, char **where);

/* group.c */
int knob_read(int dir, const char *name, char *buf, size_t size);
int knob_write(int dir, const char *name, const char *text);
int fd_read_text(int fd, char *buf, size_t size);

/* rpc.c */
int unix_connect(const char *path);
uint64_t now_ns(void);

#endif /* LIBBRUMM_INTERNAL_H */
