// SPDX-License-Identifier: GPL-2.0
/* Namespaces: the links in /proc/TID/ns of everybody. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "recount.h"

static const struct {
	const char *link;
	enum recount_kind kind;
} types[] = {
	{ "net", RECOUNT_NETNS }, { "mnt", RECOUNT_MNTNS },
	{ "ipc", RECOUNT_IPCNS }, { "pid", RECOUNT_PIDNS },
	{ "uts", RECOUNT_NS },	  { "user", RECOUNT_NS },
	{ "cgroup", RECOUNT_NS }, { "time", RECOUNT_NS },
};

#define TYPES	(sizeof(types) / sizeof(*types))

static int meet(struct spaces *s, ino_t ino, enum recount_kind kind, bool ours)
{
	struct space *grown;
	size_t i = 0;

	while (i < s->nr && s->one[i].ino != ino)
		i++;
	if (i == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		grown = reallocarray(s->one, s->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->one = grown;
	}
	if (i == s->nr)
		s->one[s->nr++] = (struct space){ .ino = ino, .kind = kind };
	s->one[i].others |= !ours;
	return 0;
}

/* A thread that is dead has a user and a PID namespace only. */
static int meet_thread(struct spaces *s, int tid, bool ours)
{
	struct stat st;
	char path[64];
	int err = 0;
	size_t t;

	for (t = 0; !err && t < TYPES; t++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", tid, types[t].link);
		if (!stat(path, &st))
			err = meet(s, st.st_ino, types[t].kind, ours);
	}
	return err;
}

int spaces_meet(struct spaces *s, pid_t pid, bool ours)
{
	const struct dirent *d;
	char path[64];
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (!err && dir && (d = readdir(dir)))
		if (isdigit(d->d_name[0]))
			err = meet_thread(s, atoi(d->d_name), ours);
	if (dir)
		closedir(dir);
	return err;
}

void spaces_add(const struct spaces *s, struct recount *c)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (!s->one[i].others)
			c->n[s->one[i].kind]++;
}

void spaces_free(struct spaces *s)
{
	free(s->one);
	*s = (struct spaces){ 0 };
}
