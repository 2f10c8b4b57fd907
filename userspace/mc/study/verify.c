// SPDX-License-Identifier: GPL-2.0
/* Is each server where it was to be? What it was told is not asked. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "servers.h"

struct checks {
	json_t *list;
	bool good;
	size_t server;
};

static void check(struct checks *k, const char *what, const char *want,
		  const char *got, bool ok)
{
	k->good &= ok;
	json_array_append_new(k->list, json_pack("{s:I, s:s, s:s, s:s, s:b}",
		"server", (json_int_t)k->server, "what", what, "want", want,
		"got", got, "ok", ok));
}

static void set_text(const cpu_set_t *set, char *to, size_t size)
{
	size_t used = 0;
	int cpu;

	*to = 0;
	for (cpu = 0; cpu < CPU_SETSIZE && used < size; cpu++) {
		if (CPU_ISSET(cpu, set))
			used += (size_t)snprintf(to + used, size - used, "%s%d",
						 used ? "," : "", cpu);
	}
}

static const char *policy_name(int policy)
{
	switch (policy & ~SCHED_RESET_ON_FORK) {
	case SCHED_OTHER:
		return "other";
	case SCHED_FIFO:
		return "fifo";
	case SCHED_RR:
		return "rr";
	}
	return "another";
}

/* All threads: what a library starts may have gone its own way. */
static void check_threads(struct checks *k, const struct server_of_cell *s,
			  const char *policy)
{
	char path[64], want[256], got[256] = "none", is_policy[16] = "none";
	bool pinned = true, scheduled = true;
	struct dirent *d;
	cpu_set_t set;
	size_t threads = 0;
	DIR *dir;

	set_text(&s->cpus, want, sizeof(want));
	snprintf(path, sizeof(path), "/proc/%d/task", (int)s->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);
		const char *name;

		if (tid <= 0)
			continue;
		threads++;
		if (pinned && !sched_getaffinity(tid, sizeof(set), &set)) {
			set_text(&set, got, sizeof(got));
			pinned = CPU_EQUAL(&set, &s->cpus);
		}
		if (scheduled) {
			name = policy_name(sched_getscheduler(tid));
			snprintf(is_policy, sizeof(is_policy), "%s", name);
			scheduled = !strcmp(name, policy);
		}
	}
	if (dir)
		closedir(dir);
	check(k, "CPUs of all threads", want, got, threads && pinned);
	check(k, "scheduler of all threads", policy, is_policy,
	      threads && scheduled);
}

static void check_group(struct checks *k, pid_t pid, const char *want)
{
	char got[PATH_MAX] = "none";
	int group = brumm_group_open_pid(pid);

	if (group >= 0) {
		brumm_group_name(group, got, sizeof(got));
		close(group);
	}
	check(k, "cgroup", want, got[0] == '/' ? got + 1 : got,
	      got[0] == '/' && !strcmp(got + 1, want));
}

/* Another PID namespace than ours. */
static void check_namespace(struct checks *k, pid_t pid)
{
	char path[64], ours[64] = "", got[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (readlink("/proc/self/ns/pid", ours, sizeof(ours) - 1) < 0 ||
	    readlink(path, got, sizeof(got) - 1) < 0)
		*got = 0;
	check(k, "PID namespace", "one of its own", *got ? got : "none",
	      *got && strcmp(ours, got));
}

/* Has it a mapping of the device? */
static void check_memory(struct checks *k, pid_t pid, const char *want)
{
	char path[64], line[512];
	bool device = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		device |= strstr(line, "brumm") && !strstr(line, ".so");
	if (f)
		fclose(f);
	check(k, "memory", want, device ? "brumm" : "anonymous",
	      !strcmp(want, device ? "brumm" : "anonymous"));
}

static void check_partition(struct checks *k, const char *name)
{
	char got[128] = "none";
	int group = brumm_group_open(name);

	if (group >= 0) {
		brumm_group_read(group, "cpuset.cpus.partition", got, sizeof(got));
		close(group);
	}
	got[strcspn(got, "\n")] = 0;
	check(k, "cpuset.cpus.partition", "isolated", got, !strcmp(got, "isolated"));
}

json_t *servers_verify(const struct servers *v, const struct cell *c, bool *good)
{
	struct checks k = { .list = json_array(), .good = true };
	const char *isolation = c->value[AXIS_ISOLATION];

	for (k.server = 0; k.server < v->count; k.server++) {
		const struct server_of_cell *s = v->server + k.server;

		/* Inside a virtual machine only its own kernel knows. */
		if (strcmp(isolation, "vms")) {
			check_threads(&k, s, c->value[AXIS_SCHEDULER]);
			check_memory(&k, s->pid, c->value[AXIS_MEMORY]);
		}
		if (*s->group) {
			check_group(&k, s->pid, s->group);
			check_namespace(&k, s->pid);
		}
		if (*v->partition)
			check_group(&k, s->pid, v->partition);
	}
	k.server = 0;
	if (*v->partition)
		check_partition(&k, v->partition);
	*good = k.good;
	return k.list;
}
