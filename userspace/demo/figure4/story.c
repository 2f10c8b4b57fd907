// SPDX-License-Identifier: GPL-2.0
/* What is told on the terminal and written as JSON. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../brumm/whole.h"
#include "demo.h"

static json_t *story;
static unsigned int step, failures;

static json_t *root(void)
{
	if (!story)
		story = json_pack("{s:s, s:[]}", "demo", "figure4", "expected");
	return story;
}

void story_say(const char *fmt, ...)
{
	va_list ap;

	fputs("   ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void story_step(const char *fmt, ...)
{
	va_list ap;

	printf("\n%u. ", ++step);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

bool story_expect(bool holds, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("   %s %s\n", holds ? "ok:    " : "FAILED:", text);
	fflush(stdout);
	failures += !holds;
	json_array_append_new(json_object_get(root(), "expected"),
			      json_pack("{s:i, s:s, s:b}", "step", (int)step,
					"what", text, "holds", holds));
	return holds;
}

json_t *story_object(const char *name)
{
	json_t *j = json_object_get(root(), name);

	if (!j) {
		j = json_object();
		json_object_set_new(root(), name, j);
	}
	return j;
}

void story_note(const char *object, const char *key, json_t *value)
{
	json_object_set_new(story_object(object), key, value);
}

void story_time(const char *object, const char *key, uint64_t ns)
{
	story_note(object, key, json_integer((json_int_t)ns));
}

bool story_failed(void)
{
	return failures;
}

/* Complete or not at all: whoever reads it may do so at any time. */
int story_write(const char *path)
{
	char *folder = strdup(path), *slash;

	if (!folder)
		return -ENOMEM;
	for (slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(folder, 0777);
		*slash = '/';
	}
	free(folder);
	json_object_set_new(root(), "failed", json_integer(failures));
	return whole_json(path, root(), JSON_INDENT(2));
}

/* Valid until the eighth call after this one. */
const char *show_time(uint64_t ns)
{
	static char buf[8][16];
	static unsigned int i;

	i = (i + 1) % 8;
	return brumm_format_time(ns, buf[i], sizeof(buf[i]));
}
