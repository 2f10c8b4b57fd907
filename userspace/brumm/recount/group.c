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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <brumm/brumm.h>
#include "recount.h"

const char *const recount_names[RECOUNT_KINDS] = {
	"process", "thread", "mm", "vma", "anon", "file", "shmem", "huge",
	"table", "swap", "fd", "plain", "eventfd", "pipe", "unix", "tcp",
	"socket", "uring", "epoll", "otherfile", "netns", "mntns", "ipcns",
	"pidns", "ns",
};

/* Those whose address space has been counted. */
struct seen {
	struct one {
		pid_t pid;
		unsigned long stack;
	} *one;
	size_t nr, room;
};

/* Path of the cgroup of @pid below the mount point; "": there is none. */
static void cgroup_of(pid_t pid, char path[PATH_MAX])
{
	char file[64], line[PATH_MAX + 8];
	FILE *f;

	*path = '\0';
	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	f = fopen(file, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3))
			snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, line + 3);
	}
	if (f)
		fclose(f);
}

/* Is process @pid in @name, or below it? */
static bool is_below(pid_t pid, const char *name)
{
	size_t len = strlen(name);
	char path[PATH_MAX];

	/* "/" itself is written without it. */
	if (len && name[len - 1] == '/')
		len--;
	cgroup_of(pid, path);
	return *path && !strncmp(path, name, len) &&
	       (!path[len] || strchr("/ ", path[len]));
}

/* Who is charged for @pid: its cgroup, or the nearest above with brumm.* files. */
static ino_t payer_of(pid_t pid)
{
	char mount[PATH_MAX], path[PATH_MAX], file[2 * PATH_MAX + 16], *slash;
	struct stat st;

	if (brumm_cgroup_mount(mount, sizeof(mount)))
		return 0;
	cgroup_of(pid, path);
	while ((slash = strrchr(path, '/'))) {
		snprintf(file, sizeof(file), "%s%s/brumm.stat", mount, path);
		if (!access(file, F_OK)) {
			snprintf(file, sizeof(file), "%s%s", mount, path);
			return stat(file, &st) ? 0 : st.st_ino;
		}
		*slash = '\0';
	}
	return 0;
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

/* What has been met so far. */
struct met {
	struct seen seen;
	struct tables tables;
	struct spaces spaces;
};

/* A dead leader stays in the cgroup where it died: ask a thread that lives. */
static int recount_process(pid_t pid, const char *name, struct met *m,
			   struct recount *c)
{
	pid_t thread = with_memory(pid), asked = thread ? thread : pid;
	bool ours = is_below(asked, name);
	uint64_t threads;
	int err;

	err = spaces_meet(&m->spaces, pid, ours);
	if (err || !ours)
		return err;
	threads = count_threads(pid);
	if (!threads)
		return 0;
	c->n[RECOUNT_PROCESS]++;
	c->n[RECOUNT_THREAD] += threads - 1;
	err = tables_meet(&m->tables, pid, payer_of(asked));
	if (err || !thread)
		return err;
	err = already(&m->seen, thread);
	if (!err)
		err = recount_mm(thread, c);
	return err < 0 && err != -ESRCH ? err : 0;
}

int recount_group(const char *name, struct recount *c)
{
	struct met met = { 0 };
	const struct dirent *d;
	int err = 0;
	DIR *proc;

	memset(c, 0, sizeof(*c));
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while (!err && (d = readdir(proc)))
		if (isdigit(d->d_name[0]))
			err = recount_process(atoi(d->d_name), name, &met, c);
	closedir(proc);
	if (!err)
		err = tables_count(&met.tables, c);
	spaces_add(&met.spaces, c);
	spaces_free(&met.spaces);
	tables_free(&met.tables);
	free(met.seen.one);
	return err;
}
