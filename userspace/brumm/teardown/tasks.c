// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tasks.h"

void tasks_free(struct tasks *t)
{
	free(t->list);
	*t = (struct tasks){ 0 };
}

bool task_parse(const char *text, struct task *t)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long born;
	long long rss;
	size_t len, i;

	*t = (struct task){ 0 };
	if (!open || !close || close < open)
		return false;
	len = (size_t)(close - open - 1);
	if (len >= sizeof(t->comm))
		len = sizeof(t->comm) - 1;
	/* A name may be any bytes; JSON and terminals want text. */
	for (i = 0; i < len; i++)
		t->comm[i] = isprint((unsigned char)open[1 + i]) ? open[1 + i] : '?';
	t->pid = atoi(text);
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu %*u %lld"
		   " %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*u %d",
		   &t->state, &t->ppid, &t->threads, &born, &rss, &t->policy) != 6)
		return false;
	t->born = born;
	t->rss = rss > 0 ? (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
	return true;
}

/* Reads /proc/PID/NAME; its length, -ESRCH, or why it cannot be opened. */
static int proc_read(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	buf[n] = '\0';
	return (int)n;
}

int task_read(pid_t pid, struct task *t)
{
	char text[1024];
	int n = proc_read(pid, "stat", text, sizeof(text));

	if (n < 0)
		return n;
	return task_parse(text, t) ? 0 : -ESRCH;
}

int task_open(const struct task *t)
{
	int fd = pidfd_open(t->pid, 0);
	struct task now;

	if (fd < 0)
		return -errno;
	/* The number cannot be given away any more, so this is who it is. */
	if (!task_read(t->pid, &now) && now.born == t->born)
		return fd;
	close(fd);
	return -ESRCH;
}

static int add(struct tasks *t, pid_t pid)
{
	struct task *list;

	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 64;

		list = reallocarray(t->list, room, sizeof(*list));
		if (!list)
			return -ENOMEM;
		t->list = list;
		t->room = room;
	}
	if (!task_read(pid, &t->list[t->n]) && t->list[t->n].state != 'Z' &&
	    t->list[t->n].state != 'X')
		t->n++;
	return 0;
}

static int read_pids(int group, pid_t **pids, size_t *n)
{
	int fd = openat(group, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	size_t room = 0;
	void *more;

	*pids = NULL;
	*n = 0;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return 0; /* removed meanwhile */
	}
	/*
	 * A cgroup of threads has no such list: its processes are in that of
	 * the cgroup above. 0 stands for a process of another namespace.
	 */
	while (fscanf(f, "%d", &pid) == 1) {
		if (pid <= 0)
			continue;
		if (*n == room) {
			room = room ? 2 * room : 64;
			more = reallocarray(*pids, room, sizeof(**pids));
			if (!more) {
				fclose(f);
				return -ENOMEM;
			}
			*pids = more;
		}
		(*pids)[(*n)++] = pid;
	}
	fclose(f);
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Keeps of the tasks from @from on those that are in the cgroup for certain: which
 * are in its list once more, and were the same process before that and are after.
 * Another may have got the number of one that has ended.
 */
static int confirm(int group, struct tasks *t, size_t from)
{
	size_t n, i, kept = from;
	struct task now;
	pid_t *pids;
	int err = read_pids(group, &pids, &n);

	if (n)
		qsort(pids, n, sizeof(*pids), compare_pids);
	for (i = from; i < t->n && !err; i++) {
		if (n && bsearch(&t->list[i].pid, pids, n, sizeof(*pids), compare_pids) &&
		    !task_read(t->list[i].pid, &now) &&
		    now.born == t->list[i].born)
			t->list[kept++] = t->list[i];
	}
	free(pids);
	if (!err)
		t->n = kept;
	return err;
}

static int add_procs(int parent, const char *name, int group, void *arg)
{
	struct tasks *t = arg;
	size_t from = t->n, n, i;
	pid_t *pids;
	int err = read_pids(group, &pids, &n);

	(void)parent;
	(void)name;
	for (i = 0; i < n && !err; i++)
		err = add(t, pids[i]);
	free(pids);
	return err ? err : confirm(group, t, from);
}

int tasks_of_group(int group, struct tasks *t)
{
	int err = add_procs(-1, NULL, group, t);

	return err ? err : groups_walk(group, add_procs, t);
}

ino_t task_ns(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

bool task_in_ns(pid_t pid, ino_t ns)
{
	char path[64];
	struct stat st;
	bool found = false;
	int fd, up;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0) {
		found = !fstat(fd, &st) && st.st_ino == ns;
		up = found ? -1 : ioctl(fd, NS_GET_PARENT);
		close(fd);
		fd = up;
	}
	return found;
}

int tasks_of_ns(ino_t ns, struct tasks *t)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int ret = 0;

	if (!d)
		return -errno;
	while (!ret && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    task_in_ns(atoi(e->d_name), ns))
			ret = add(t, atoi(e->d_name));
	closedir(d);
	return ret;
}

/* The numbers of the line NSpid, from the outermost on. */
static unsigned int ns_pids(pid_t pid, pid_t *last)
{
	char text[8192], *line, *end;
	unsigned int n = 0;
	long v;

	*last = 0;
	if (proc_read(pid, "status", text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	line += strlen("\nNSpid:");
	for (;; line = end) {
		while (*line == ' ' || *line == '\t')
			line++;
		v = strtol(line, &end, 10);
		if (end == line)
			return n;
		*last = (pid_t)v;
		n++;
	}
}

pid_t task_inner_pid(pid_t pid)
{
	pid_t last;

	ns_pids(pid, &last);
	return last;
}

unsigned int task_levels(pid_t pid)
{
	pid_t last;

	return ns_pids(pid, &last);
}

static int by_pid(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_depth(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->late != 0) - (y->late != 0) ?:
	       (x->late < y->late) - (x->late > y->late) ?:
	       (x->depth < y->depth) - (x->depth > y->depth) ?: by_pid(a, b);
}

static struct task *find(const struct tasks *t, pid_t pid)
{
	struct task key = { .pid = pid };

	return bsearch(&key, t->list, t->n, sizeof(key), by_pid);
}

void tasks_subtract(struct tasks *t, const struct tasks *known)
{
	struct task *sorted = malloc(known->n * sizeof(*sorted) + 1), *other;
	size_t i, n = 0;

	if (!sorted)
		return;
	memcpy(sorted, known->list, known->n * sizeof(*sorted));
	qsort(sorted, known->n, sizeof(*sorted), by_pid);
	for (i = 0; i < t->n; i++) {
		other = bsearch(&t->list[i], sorted, known->n, sizeof(*sorted), by_pid);
		if (!other || other->born != t->list[i].born)
			t->list[n++] = t->list[i];
	}
	t->n = n;
	free(sorted);
}

void tasks_append(struct tasks *t, struct tasks *more)
{
	struct task *list = reallocarray(t->list, t->n + more->n, sizeof(*list));

	if (list) {
		memcpy(list + t->n, more->list, more->n * sizeof(*list));
		t->list = list;
		t->n += more->n;
		t->room = t->n;
	}
	tasks_free(more);
}

/* Who is above @init comes behind it, but before the init of his own namespace. */
static void keep_above(struct tasks *t, const struct task *init)
{
	struct task *up = find(t, init->ppid);
	unsigned int late = init->late - 1;
	size_t i;

	for (i = 0; up && i < t->n; i++, up = find(t, up->ppid))
		if (!up->init && (!up->late || up->late > late))
			up->late = late;
}

/*
 * An init has a child in the list or no parent there, but for one whose only company
 * came from outside. Most have neither, and each look into /proc is work.
 */
void tasks_find_inits(struct tasks *t)
{
	struct task *task, *up;
	pid_t inner;
	size_t i;

	if (!t->n)
		return;
	qsort(t->list, t->n, sizeof(*t->list), by_pid);
	for (i = 0; i < t->n; i++) {
		up = find(t, t->list[i].ppid);
		(up ?: &t->list[i])->init = 1;
	}
	for (i = 0; i < t->n; i++) {
		task = &t->list[i];
		if (!task->init)
			continue;
		task->init = ns_pids(task->pid, &inner);
		if (task->init < 2 || inner != 1)
			task->init = 0;
		task->late = 2 * task->init;
	}
	for (i = 0; i < t->n; i++)
		if (t->list[i].init)
			keep_above(t, &t->list[i]);
}

void tasks_order(struct tasks *t)
{
	const struct task *up;
	size_t i;

	if (!t->n)
		return;
	qsort(t->list, t->n, sizeof(*t->list), by_pid);
	for (i = 0; i < t->n; i++) {
		t->list[i].depth = 0;
		/* The parents were not read at one time: there may be a ring. */
		for (up = find(t, t->list[i].ppid);
		     up && t->list[i].depth < t->n; up = find(t, up->ppid))
			t->list[i].depth++;
	}
	qsort(t->list, t->n, sizeof(*t->list), by_depth);
}
