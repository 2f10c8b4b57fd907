// SPDX-License-Identifier: GPL-2.0
/* Any file of a cgroup. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "internal.h"

PUBLIC int brumm_group_read(int group, const char *file, char *buf, size_t size)
{
	return size ? knob_read(group, file, buf, size) : -EINVAL;
}

PUBLIC int brumm_group_write(int group, const char *file, const char *text)
{
	return knob_write(group, file, text);
}

struct find {
	const char *key;
	uint64_t *value;
};

static int find_key(const char *key, uint64_t value, void *arg)
{
	struct find *f = arg;

	if (strcmp(key, f->key))
		return 0;
	*f->value = value;
	return 1;
}

PUBLIC int brumm_group_number(int group, const char *file, const char *key,
			      uint64_t *value)
{
	struct find f = { .key = key, .value = value };
	char text[KNOB_MAX];
	int ret = knob_read(group, file, text, sizeof(text));

	if (ret)
		return ret;
	if (!key) {
		if (strcmp(text, "max\n"))
			return parse_u64(text, value);
		*value = BRUMM_NO_LIMIT;
		return 0;
	}
	ret = parse_flat(text, find_key, &f);
	return ret == 1 ? 0 : ret ? ret : -ENODATA;
}
