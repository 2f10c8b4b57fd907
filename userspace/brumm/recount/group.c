// SPDX-License-Identifier: GPL-2.0
/* Processes of a cgroup, and which of them share an address space. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recount.h"

const char *const recount_names[RECOUNT_KINDS] = {
	"process", "thread", "mm", "vma", "anon", "file", "shmem", "huge",
	"table", "swap",
};

/* Those whose address space has been counted. */
struct seen {
	struct one {
		pid_t pid;
		unsigned long stack;
	} *one;
	size_t nr, room;
};

/* Is process @pid in @name, or below it? */
static bool is_below(pid_t pid, const char *name)
{
	char path[64], line[PATH_MAX + 8];
	size_t len = strlen(name);
	bool below = false;
	FILE *f;

	/* "/" itself is written without it. */
	if (len && name[len - 1] == '/')
		len--;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	f = fopen(path, "re");
	while (f && !below && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		below = !strncmp(line, "0::", 3) &&
			!strncmp(line + 3, name, len) &&
			(!line[3 + len] || strchr("/ ", line[3 + len]));
	}
	if (f)
		fclose(f);
	return below;
}

static uint64_t count_threads(pid_t pid)
{
	const struct dirent *d;
	char path[64];
	uint64_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		n += isdigit(d->d_name[0]) != 0;
	if (dir)
		closedir(dir);
	return n;
}

/* A thread of @pid that still has its memory, 0: none has. */
static pid_t with_memory(pid_t pid)
{
	const struct dirent *d;
	pid_t found = 0;
	char path[128];
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		if (!isdigit(d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/maps", atoi(d->d_name));
		f = fopen(path, "re");
		if (f && fgetc(f) != EOF)
			found = atoi(d->d_name);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Where its stack begins: the same in those who share it. */
static unsigned long stack_of(pid_t pid)
{
	char path[64], text[1024], *at;
	unsigned long start = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* Behind the name, which may contain anything, it is the 26th. */
	if (fgets(text, sizeof(text), f) && (at = strrchr(text, ')')))
		sscanf(at + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		       "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		       "%*s %lu", &start);
	fclose(f);
	return start;
}

/* Has its address space been counted? If not, it is from now on; or an errno. */
static int already(struct seen *s, pid_t pid)
{
	unsigned long stack = stack_of(pid);
	struct one *grown;
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (s->one[i].stack == stack &&
		    !syscall(SYS_kcmp, s->one[i].pid, pid, KCMP_VM, 0, 0))
			return 1;
	if (s->nr == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		grown = reallocarray(s->one, s->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->one = grown;
	}
	s->one[s->nr++] = (struct one){ pid, stack };
	return 0;
}

/* A dead leader stays in the cgroup where it died: ask a thread that lives. */
static int recount_process(pid_t pid, const char *name, struct seen *s,
			   struct recount *c)
{
	pid_t thread = with_memory(pid);
	uint64_t threads;
	int err;

	if (!is_below(thread ? thread : pid, name))
		return 0;
	threads = count_threads(pid);
	if (!threads)
		return 0;
	c->n[RECOUNT_PROCESS]++;
	c->n[RECOUNT_THREAD] += threads - 1;
	if (!thread)
		return 0;
	err = already(s, thread);
	if (!err)
		err = recount_mm(thread, c);
	return err < 0 && err != -ESRCH ? err : 0;
}

int recount_group(const char *name, struct recount *c)
{
	struct seen seen = { 0 };
	const struct dirent *d;
	int err = 0;
	DIR *proc;

	memset(c, 0, sizeof(*c));
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while (!err && (d = readdir(proc)))
		if (isdigit(d->d_name[0]))
			err = recount_process(atoi(d->d_name), name, &seen, c);
	closedir(proc);
	free(seen.one);
	return err;
}
