// SPDX-License-Identifier: GPL-2.0
/* What a cell needs, and whether it is here. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "servers.h"

static bool no(char *why, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool no(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return true;
}

static bool is(const struct cell *c, enum axis axis, const char *value)
{
	return !strcmp(c->value[axis], value);
}

/* Is a word in a file of the root cgroup? */
static bool root_has(const char *file, const char *word)
{
	char text[512];
	int root = brumm_group_open("/");
	const char *at;
	size_t len = strlen(word);
	bool found = false;

	if (root < 0)
		return false;
	if (brumm_group_read(root, file, text, sizeof(text)) >= 0) {
		at = text;
		while (!found && (at = strstr(at, word))) {
			found = (at == text || at[-1] == ' ') &&
				strchr(" \n", at[len]);
			at += len;
		}
	}
	close(root);
	return found;
}

static bool unfit_cpus(const struct spec *s, const struct cell *c, char *why,
		       size_t size)
{
	uint64_t want = cell_number(c, AXIS_INSTANCES);
	cpu_set_t here, both;
	int cpus;

	if (sched_getaffinity(0, sizeof(here), &here))
		return no(why, size, "the CPUs of this machine are not known");
	CPU_AND(&both, &here, &s->cpus);
	if (!CPU_EQUAL(&both, &s->cpus))
		return no(why, size, "not all CPUs for servers are here: there are %d",
			  CPU_COUNT(&here));
	cpus = CPU_COUNT(&s->cpus);
	if (want > (uint64_t)cpus)
		return no(why, size, "%lu instances, and %d CPUs for servers",
			  (unsigned long)want, cpus);
	if (is(c, AXIS_ISOLATION, "partition") && want >= (uint64_t)CPU_COUNT(&here))
		return no(why, size, "no CPU is left outside the partition: %lu instances, %d CPUs",
			  (unsigned long)want, CPU_COUNT(&here));
	return false;
}

static bool unfit_scheduler(const struct cell *c, char *why, size_t size)
{
	struct rlimit r;

	if (is(c, AXIS_SCHEDULER, "other") || !geteuid())
		return false;
	if (!getrlimit(RLIMIT_RTPRIO, &r) && r.rlim_cur > 0)
		return false;
	return no(why, size, "real-time priorities take root or RLIMIT_RTPRIO");
}

static bool unfit_isolation(const struct spec *s, const struct cell *c,
			    char *why, size_t size)
{
	char mount[PATH_MAX];

	if (is(c, AXIS_ISOLATION, "bare"))
		return false;
	if (is(c, AXIS_ISOLATION, "vms") && !s->vm)
		return no(why, size, "the study file has no command for virtual machines ([servers] vm)");
	if (is(c, AXIS_ISOLATION, "vms") && access("/dev/kvm", R_OK | W_OK))
		return no(why, size, "virtual machines need /dev/kvm");
	if (is(c, AXIS_ISOLATION, "vms"))
		return false;
	if (brumm_cgroup_mount(mount, sizeof(mount)))
		return no(why, size, "no cgroup v2 hierarchy is mounted");
	if (geteuid())
		return no(why, size, "%s take root", c->value[AXIS_ISOLATION]);
	if (is(c, AXIS_ISOLATION, "partition") &&
	    !root_has("cgroup.controllers", "cpuset"))
		return no(why, size, "cgroup v2 has no cpuset controller here");
	return false;
}

static bool module_is_loaded(void)
{
	return !access("/dev/brumm", F_OK);
}

static bool unfit_neighbour(const struct cell *c, char *why, size_t size)
{
	char mount[PATH_MAX];

	if (is(c, AXIS_NEIGHBOUR, "none"))
		return false;
	if (brumm_cgroup_mount(mount, sizeof(mount)))
		return no(why, size, "no cgroup v2 hierarchy is mounted");
	if (is(c, AXIS_NEIGHBOUR, "teardown-budget") && !module_is_loaded())
		return no(why, size, "budgets need the module brumm, which is not loaded");
	if (is(c, AXIS_NEIGHBOUR, "teardown-budget") &&
	    !root_has("cgroup.controllers", "memory"))
		return no(why, size, "budgets need the memory controller of cgroup v2");
	if (is(c, AXIS_NEIGHBOUR, "teardown-idle") &&
	    !root_has("cgroup.controllers", "cpu"))
		return no(why, size, "cgroup v2 has no cpu controller here");
	return false;
}

bool servers_unfit(const struct spec *s, const struct cell *c, char *why,
		   size_t size)
{
	if (unfit_cpus(s, c, why, size) || unfit_scheduler(c, why, size) ||
	    unfit_isolation(s, c, why, size) || unfit_neighbour(c, why, size))
		return true;
	if (is(c, AXIS_MEMORY, "brumm") && !module_is_loaded())
		return no(why, size, "memory of the device needs the module brumm, which is not loaded");
	return false;
}
