// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../cli.h"
#include "spaces.h"

/* In /proc/PID/ns, and the kind. */
static const struct {
	const char *link, *kind;
} types[] = {
	{ "net", "netns" }, { "mnt", "mntns" }, { "ipc", "ipcns" },
	{ "pid", "pidns" }, { "uts", "ns" }, { "user", "ns" },
	{ "cgroup", "ns" }, { "time", "ns" },
};

#define TYPES	ARRAY_SIZE(types)

static void look(pid_t pid, ino_t ino[TYPES])
{
	struct stat st;
	char path[64];
	size_t t;

	for (t = 0; t < TYPES; t++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid,
			 types[t].link);
		ino[t] = stat(path, &st) ? 0 : st.st_ino;
	}
}

/* Namespaces of one process after the other, and whether they are the group's. */
struct spaces {
	ino_t (*ino)[TYPES];
	size_t n;
};

/* The first of the list that is in namespace @ino of type @t. */
static size_t first_in(const struct spaces *s, size_t t, ino_t ino)
{
	size_t i = 0;

	while (i < s->n && s->ino[i][t] != ino)
		i++;
	return i;
}

static void drop(struct spaces *s, const ino_t others[TYPES])
{
	size_t t, i;

	for (t = 0; t < TYPES; t++) {
		for (i = 0; others[t] && i < s->n; i++) {
			if (s->ino[i][t] == others[t])
				s->ino[i][t] = 0;
		}
	}
}

static bool any(const struct spaces *s)
{
	size_t t, i;

	for (i = 0; i < s->n; i++) {
		for (t = 0; t < TYPES; t++) {
			if (s->ino[i][t])
				return true;
		}
	}
	return false;
}

static bool listed(const struct tasks *list, pid_t pid)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (list->list[i].pid == pid)
			return true;
	}
	return false;
}

/* What others are in is not the group's. */
static void drop_others(struct spaces *s, const struct tasks *list)
{
	DIR *d = opendir("/proc");
	ino_t ino[TYPES];
	struct dirent *e;
	pid_t pid;

	while (d && (e = readdir(d)) && any(s)) {
		pid = atoi(e->d_name);
		if (pid > 0 && !listed(list, pid)) {
			look(pid, ino);
			drop(s, ino);
		}
	}
	if (d)
		closedir(d);
}

int spaces_count(const struct kinds *k, const struct tasks *list,
		 struct counts *c)
{
	struct spaces s = { .n = list->n };
	ino_t own[TYPES];
	size_t i, t;

	if (!list->n)
		return 0;
	s.ino = calloc(list->n, sizeof(*s.ino));
	if (!s.ino)
		return -ENOMEM;
	for (i = 0; i < s.n; i++)
		look(list->list[i].pid, s.ino[i]);
	look(getpid(), own);
	drop(&s, own);
	/* Mostly that was all. */
	if (any(&s))
		drop_others(&s, list);
	for (i = 0; i < s.n; i++) {
		for (t = 0; t < TYPES; t++) {
			if (s.ino[i][t] && first_in(&s, t, s.ino[i][t]) == i)
				kinds_add(k, c, types[t].kind, 1);
		}
	}
	free(s.ino);
	return 0;
}
