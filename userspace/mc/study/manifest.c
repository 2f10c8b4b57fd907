// SPDX-License-Identifier: GPL-2.0
/* What else of the machine a latency depends on. */
#define _GNU_SOURCE
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../../brumm/machine.h"
#include "child.h"
#include "manifest.h"

static const struct {
	const char *key, *path;
} files[] = {
	{ "command_line", "/proc/cmdline" },
	{ "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor" },
	{ "idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver" },
	{ "smt", "/sys/devices/system/cpu/smt/control" },
	{ "rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us" },
	{ "rr_slice_ms", "/proc/sys/kernel/sched_rr_timeslice_ms" },
	{ "autogroup", "/proc/sys/kernel/sched_autogroup_enabled" },
	{ "numa_balancing", "/proc/sys/kernel/numa_balancing" },
	{ "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled" },
	{ "cpus_online", "/sys/devices/system/cpu/online" },
	{ "cpus_isolated", "/sys/devices/system/cpu/isolated" },
	{ "numa_nodes", "/sys/devices/system/node/online" },
	{ "load_average", "/proc/loadavg" },
};

/* The first line, null where there is none. */
static json_t *line_of(const char *path)
{
	char line[1024];
	FILE *f = fopen(path, "re");
	json_t *j = NULL;

	if (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		j = json_string(line);
	}
	if (f)
		fclose(f);
	return j ?: json_null();
}

/* "27: 0-1", for each interrupt. */
static json_t *irq_affinity(void)
{
	json_t *list = json_array(), *cpus;
	char *slash;
	char text[128];
	glob_t g;
	size_t i;

	if (glob("/proc/irq/[0-9]*/effective_affinity_list", 0, NULL, &g))
		return list;
	for (i = 0; i < g.gl_pathc; i++) {
		cpus = line_of(g.gl_pathv[i]);
		slash = strrchr(g.gl_pathv[i], '/');
		*slash = 0;
		snprintf(text, sizeof(text), "%s: %s",
			 strrchr(g.gl_pathv[i], '/') + 1,
			 json_string_value(cpus) ?: "");
		json_array_append_new(list, json_string(text));
		json_decref(cpus);
	}
	globfree(&g);
	return list;
}

static json_t *version_of(const char *command)
{
	struct child_opts o = CHILD_OPTS_INIT;
	const char *step;
	struct child c;
	char *text = NULL;
	json_t *j;
	int status;

	o.argv = split_words(command);
	o.out = true;
	if (o.argv && !child_start(&c, &o, &step))
		text = child_read_all(&c, &status);
	free(o.argv);
	if (text)
		text[strcspn(text, "\n")] = 0;
	j = text && *text ? json_string(text) : json_null();
	free(text);
	return j;
}

json_t *manifest_json(const char *server)
{
	json_t *j = machine_describe();
	char version[512];
	size_t i;

	if (!j)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(files); i++)
		json_object_set_new(j, files[i].key, line_of(files[i].path));
	json_object_set_new(j, "irq_affinity", irq_affinity());
	json_object_set_new(j, "ticks_per_s", json_integer(sysconf(_SC_CLK_TCK)));
	json_object_set_new(j, "brumm", json_string(BRUMM_CLI_VERSION));
	snprintf(version, sizeof(version), "%.*s --version",
		 (int)strcspn(server, " \t"), server);
	json_object_set_new(j, "server", version_of(version));
	return j;
}
