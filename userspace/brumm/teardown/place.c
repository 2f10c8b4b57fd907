// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "place.h"
#include "teardown.h"

#define CPUS_TEXT	(CPU_SETSIZE * 5)

/* Do weights not hold for it? Deadlines are bounded by themselves. */
static bool weightless(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static void look_class(json_t *j, pid_t tid, enum place place)
{
	int policy = sched_getscheduler(tid);
	struct sched_param param;

	/* A deadline cannot be put back by what is known of it here. */
	if (policy < 0 || (policy & ~SCHED_RESET_ON_FORK) == SCHED_DEADLINE ||
	    place == PLACE_CPUS || (place == PLACE_REALTIME && !weightless(policy)) ||
	    sched_getparam(tid, &param))
		return;
	json_object_set_new(j, "policy", json_integer(policy));
	json_object_set_new(j, "priority", json_integer(param.sched_priority));
}

static void look_cpus(json_t *j, pid_t tid, const char *cpus)
{
	char text[CPUS_TEXT];
	cpu_set_t set;

	if (sched_getaffinity(tid, sizeof(set), &set))
		return;
	format_cpus(&set, text, sizeof(text));
	json_object_set_new(j, "cpus", json_string(text));
	json_object_set_new(j, "set", json_string(cpus));
}

static json_t *look(pid_t tid, const char *cpus, enum place place)
{
	struct task task;
	json_t *j;

	if (task_read(tid, &task))
		return NULL;
	j = json_pack("{s:i, s:I}", "tid", (int)tid, "born", (json_int_t)task.born);
	if (!j)
		return NULL;
	if (cpus)
		look_cpus(j, tid, cpus);
	look_class(j, tid, place);
	if (json_object_size(j) > 2)
		return j;
	json_decref(j);
	return NULL;
}

static void look_process(pid_t pid, const char *cpus, enum place place, json_t *list)
{
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			json_array_append_new(list, look(atoi(e->d_name), cpus, place));
	if (d)
		closedir(d);
}

json_t *place_look(const struct tasks *tasks, const cpu_set_t *cpus,
		   enum place place)
{
	json_t *list = json_array();
	char text[CPUS_TEXT];
	size_t i;

	if (cpus)
		format_cpus(cpus, text, sizeof(text));
	for (i = 0; i < tasks->n; i++) {
		const struct task *t = &tasks->list[i];

		/* Each look into /proc is something to clean up later. */
		if (!cpus && place == PLACE_REALTIME && t->threads == 1 &&
		    !weightless(t->policy))
			continue;
		look_process(t->pid, cpus ? text : NULL, place, list);
	}
	return list;
}

/* The thread that was looked at; -ESRCH: it has ended; -errno: who knows. */
static pid_t still(const json_t *thread)
{
	pid_t tid = (pid_t)json_integer_value(json_object_get(thread, "tid"));
	struct task now;
	int err = tid > 0 ? task_read(tid, &now) : -ESRCH;

	if (err)
		return err;
	if (now.born != (uint64_t)json_integer_value(json_object_get(thread, "born")))
		return -ESRCH;
	return tid;
}

void place_apply(const json_t *threads, const cpu_set_t *cpus)
{
	static const struct sched_param none;
	json_t *thread;
	size_t i;
	pid_t tid;

	json_array_foreach(threads, i, thread) {
		tid = still(thread);
		if (tid > 0 && cpus)
			sched_setaffinity(tid, sizeof(*cpus), cpus);
		if (tid > 0 && json_object_get(thread, "policy"))
			sched_setscheduler(tid, SCHED_IDLE, &none);
	}
}

static int restore_class(pid_t tid, const json_t *thread)
{
	const json_t *policy = json_object_get(thread, "policy");
	struct sched_param param = {
		.sched_priority = (int)json_integer_value(json_object_get(thread, "priority")),
	};

	if (policy && (sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) == SCHED_IDLE &&
	    sched_setscheduler(tid, (int)json_integer_value(policy), &param))
		return -errno;
	return 0;
}

static int restore_cpus(pid_t tid, const json_t *thread)
{
	const char *old = json_string_value(json_object_get(thread, "cpus"));
	const char *set = json_string_value(json_object_get(thread, "set"));
	cpu_set_t before, ours, now;

	if (!old || !set || parse_cpus(old, &before) || parse_cpus(set, &ours))
		return 0;
	if (sched_getaffinity(tid, sizeof(now), &now))
		return -errno;
	/* Its cpuset may have left it only some of those that were set. */
	CPU_AND(&ours, &ours, &now);
	if (CPU_EQUAL(&ours, &now) && sched_setaffinity(tid, sizeof(before), &before))
		return -errno;
	return 0;
}

int place_restore(const json_t *threads)
{
	int err, failed = 0;
	json_t *thread;
	size_t i;
	pid_t tid;

	json_array_foreach(threads, i, thread) {
		tid = still(thread);
		err = tid < 0 ? tid : restore_cpus(tid, thread);
		if (tid > 0)
			err = restore_class(tid, thread) ?: err;
		if (err && err != -ESRCH)
			failed = err;
	}
	return failed;
}
