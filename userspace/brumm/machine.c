// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "machine.h"

#define CPUINFO		"/proc/cpuinfo"
#define VULNERABILITIES	"/sys/devices/system/cpu/vulnerabilities"
#define CLOCKSOURCE	"/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define MODULE		"/sys/module/brumm/srcversion"

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* The first line of a file, or null. */
static json_t *first_line(const char *path)
{
	char line[512] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return json_null();
	if (fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	fclose(f);
	return text_or_null(line);
}

/* The value of the first line "KEY\t: VALUE". */
static json_t *cpuinfo(const char *key)
{
	char line[512], *value = NULL;
	FILE *f = fopen(CPUINFO, "re");
	size_t len = strlen(key);

	if (!f)
		return json_null();
	while (!value && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, len) &&
		    strspn(line + len, "\t ") == strcspn(line + len, ":"))
			value = strchr(line, ':');
	}
	fclose(f);
	if (!value)
		return json_null();
	value += 1 + strspn(value + 1, " ");
	value[strcspn(value, "\n")] = 0;
	return text_or_null(value);
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* "meltdown: Mitigation: PTI; spectre_v1: ...", in the order of the names. */
static json_t *mitigations(void)
{
	struct dirent **list;
	char path[PATH_MAX];
	char *text = NULL;
	size_t size = 0;
	json_t *j, *what;
	FILE *out;
	int i, n;

	n = scandir(VULNERABILITIES, &list, visible, alphasort);
	if (n < 0)
		return json_null();
	out = open_memstream(&text, &size);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), VULNERABILITIES "/%s",
			 list[i]->d_name);
		what = first_line(path);
		if (out && json_is_string(what))
			fprintf(out, "%s%s: %s", i ? "; " : "",
				list[i]->d_name, json_string_value(what));
		json_decref(what);
		free(list[i]);
	}
	free(list);
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	j = text_or_null(text);
	free(text);
	return j;
}

json_t *machine_fingerprint(void)
{
	struct utsname u = { 0 };
	char cpus[16];

	uname(&u);
	snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	return json_pack("{s:o, s:s, s:o, s:s, s:s, s:s, s:o, s:o}",
			 "cpu", cpuinfo("model name"),
			 "cpus", cpus,
			 "microcode", cpuinfo("microcode"),
			 "machine", u.machine,
			 "release", u.release,
			 "version", u.version,
			 "mitigations", mitigations(),
			 "module", first_line(MODULE));
}

/* Adds those of @a that are not the same in @b; @both: or not there at all. */
static int add_differences(json_t *list, json_t *a, const json_t *b, bool both)
{
	const char *key;
	json_t *value, *other;

	json_object_foreach(a, key, value) {
		other = json_object_get(b, key);
		if (other ? both && !json_equal(value, other) : true) {
			if (json_array_append_new(list, json_string(key)))
				return -1;
		}
	}
	return 0;
}

json_t *machine_differences(const json_t *a, const json_t *b)
{
	json_t *list = json_array();

	if (!list || add_differences(list, (json_t *)a, b, true) ||
	    add_differences(list, (json_t *)b, a, false)) {
		json_decref(list);
		return NULL;
	}
	return list;
}

/* Does the CPU say that a hypervisor is there? */
static json_t *virtualised(void)
{
	json_t *flags = cpuinfo("flags"), *j = json_null();

	if (json_is_string(flags))
		j = json_boolean(strstr(json_string_value(flags),
					" hypervisor"));
	json_decref(flags);
	return j;
}

json_t *machine_describe(void)
{
	json_t *j = machine_fingerprint();

	if (j && (json_object_set_new(j, "clock", first_line(CLOCKSOURCE)) ||
		  json_object_set_new(j, "virtualised", virtualised()) ||
		  json_object_set_new(j, "lane",
				      text_or_null(getenv("BRUMM_LANE"))) ||
		  json_object_set_new(j, "mode",
				      text_or_null(getenv("BRUMM_MODE"))))) {
		json_decref(j);
		return NULL;
	}
	return j;
}
