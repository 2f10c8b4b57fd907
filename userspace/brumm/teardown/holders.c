// SPDX-License-Identifier: GPL-2.0
/* Who keeps a teardown from its end, and what to do about it. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "teardown.h"

#define MAX_HOLDERS	20

const char *holder_remedy(char state, const char *where)
{
	static const struct {
		const char *in, *remedy;
	} known[] = {
		{ "fuse", "a FUSE server does not answer: end it, or write 1 to /sys/fs/fuse/connections/*/abort" },
		{ "percpu_rwsem", "a frozen file system? fsfreeze --unfreeze MOUNTPOINT" },
		{ "sb_start", "a frozen file system? fsfreeze --unfreeze MOUNTPOINT" },
		{ "nfs", "an NFS server does not answer: bring it back, or umount -f" },
		{ "rpc_", "an NFS server does not answer: bring it back, or umount -f" },
		{ "p9_", "a 9p server does not answer: bring it back" },
		{ "zap_pid_ns", "the init of a PID namespace waits for its processes: see those" },
		{ "exit_mm", "its memory is being freed: wait, with a longer --timeout" },
		{ "mmput", "its memory is being freed: wait, with a longer --timeout" },
		{ "exit_aio", "I/O is under way: see the device it goes to" },
		{ "io_uring", "I/O is under way: see the device it goes to" },
		{ "io_schedule", "I/O is under way: see the device it goes to" },
		{ "coredump", "a core dump is written: see kernel.core_pattern" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (strstr(where, known[i].in))
			return known[i].remedy;
	switch (state) {
	case 'D':
		return "it sleeps uninterruptibly in the kernel, where no signal ends it: what it waits for has to happen";
	case 't':
		return "a tracer holds it: end the tracer";
	case 'Z':
		return "dead, its parent has not waited for it: end the parent";
	case 'R':
		return "it is dying and wants the CPU: wait, with a longer --timeout, or give the cgroup more weight";
	default:
		return "it was told to die: wait, with a longer --timeout";
	}
}

static void read_file(pid_t pid, pid_t tid, const char *name, char *buf,
		      size_t size)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid,
		 name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* The thread that is to blame: one in state D before others. */
static struct task culprit(pid_t pid)
{
	struct task task, best = { .pid = pid };
	struct dirent *e;
	char text[1024];
	DIR *d;

	snprintf(text, sizeof(text), "/proc/%d/task", (int)pid);
	d = opendir(text);
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		read_file(pid, atoi(e->d_name), "stat", text, sizeof(text));
		if (!task_parse(text, &task))
			continue;
		if (!best.state || task.state == 'D' ||
		    (best.state == 'Z' && task.state != 'Z'))
			best = task;
	}
	if (d)
		closedir(d);
	return best;
}

static json_t *holder(pid_t pid)
{
	struct task task = culprit(pid);
	char state[2] = { task.state, '\0' }, wchan[128], stack[2048], *s;
	char where[2200];

	read_file(pid, task.pid, "wchan", wchan, sizeof(wchan));
	read_file(pid, task.pid, "stack", stack, sizeof(stack));
	snprintf(where, sizeof(where), "%s %s", wchan, stack);
	for (s = stack + strlen(stack); s > stack && s[-1] == '\n'; s--)
		s[-1] = '\0';
	return json_pack("{s:i, s:i, s:s%, s:s, s:s?, s:s?, s:s}",
			 "pid", (int)pid, "tid", (int)task.pid,
			 "comm", task.comm, strlen(task.comm), "state", state,
			 "wchan", *wchan && strcmp(wchan, "0") ? wchan : NULL,
			 "stack", *stack ? stack : NULL,
			 "remedy", holder_remedy(task.state, where));
}

json_t *holders_find(const struct teardown *t)
{
	json_t *list = json_array();
	struct tasks left = { 0 };
	size_t i;

	target_tasks(&t->target, &left);
	for (i = 0; i < left.n && json_array_size(list) < MAX_HOLDERS; i++)
		json_array_append_new(list, holder(left.list[i].pid));
	tasks_free(&left);
	return list;
}

void holders_print(const json_t *holders, FILE *f)
{
	const char *comm, *state, *wchan, *remedy;
	json_t *h;
	size_t i;
	int pid;

	if (!json_array_size(holders))
		fputs("  no process is left; something else holds the cgroup\n", f);
	json_array_foreach(holders, i, h) {
		wchan = NULL;
		if (json_unpack(h, "{s:i, s:s, s:s, s?s, s:s}", "pid", &pid,
				"comm", &comm, "state", &state, "wchan", &wchan,
				"remedy", &remedy))
			json_unpack(h, "{s:i, s:s, s:s, s:s}", "pid", &pid,
				    "comm", &comm, "state", &state,
				    "remedy", &remedy);
		fprintf(f, "  %d (%s), state %s%s%s: %s\n", pid, comm, state,
			wchan ? ", in " : "", wchan ?: "", remedy);
	}
}
