// SPDX-License-Identifier: GPL-2.0
/* Times, sizes, and the formats of cgroup and proc files. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* Digits only: strtoull() would take signs and leading space. */
static int digits(const char **text, uint64_t *value)
{
	const char *s = *text;
	uint64_t v = 0;
	bool over = false;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++) {
		over |= __builtin_mul_overflow(v, 10, &v);
		over |= __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v);
	}
	*text = s;
	*value = v;
	return over ? -ERANGE : 0;
}

int parse_u64(const char *text, uint64_t *value)
{
	uint64_t v;
	int err;

	text = skip_space(text);
	err = digits(&text, &v);
	if (err == -EINVAL || *skip_space(text))
		return -EINVAL;
	if (!err)
		*value = v;
	return err;
}

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
};

/* The end of a time: perhaps a suffix, then nothing but space. */
static int parse_unit(const char *s, uint64_t *ns)
{
	size_t i, len;

	s = skip_space(s);
	*ns = 1000;
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		len = strlen(units[i].name);
		if (!strncmp(s, units[i].name, len)) {
			*ns = units[i].ns;
			s += len;
			break;
		}
	}
	return *skip_space(s) ? -EINVAL : 0;
}

PUBLIC int brumm_parse_time(const char *text, uint64_t *ns)
{
	const char *s = skip_space(text), *fraction = NULL;
	uint64_t whole, unit, v, part = 0;
	int err;

	if (!strncmp(s, "max", 3) && !*skip_space(s + 3)) {
		*ns = BRUMM_NO_LIMIT;
		return 0;
	}
	err = digits(&s, &whole);
	if (err == -EINVAL)
		return err;
	if (*s == '.') {
		fraction = ++s;
		if (!isdigit((unsigned char)*s))
			return -EINVAL;
		while (isdigit((unsigned char)*s))
			s++;
	}
	if (parse_unit(s, &unit))
		return -EINVAL;
	for (v = unit; fraction && isdigit((unsigned char)*fraction);
	     fraction++) {
		v /= 10;
		if (!v && *fraction != '0')
			return -EINVAL;
		part += v * (uint64_t)(*fraction - '0');
	}
	if (err || __builtin_mul_overflow(whole, unit, &v) ||
	    __builtin_add_overflow(v, part, &v) || v == BRUMM_NO_LIMIT)
		return -ERANGE;
	*ns = v;
	return 0;
}

PUBLIC char *brumm_format_time(uint64_t ns, char *buf, size_t size)
{
	size_t i = ARRAY_SIZE(units) - 1;
	double v;

	if (ns == BRUMM_NO_LIMIT) {
		snprintf(buf, size, "max");
		return buf;
	}
	if (!ns) {
		snprintf(buf, size, "0");
		return buf;
	}
	while (i && ns < units[i].ns)
		i--;
	v = (double)ns / (double)units[i].ns;
	/* What rounding would make 1000 is one of the next unit. */
	if (v >= 999.5 && i + 1 < ARRAY_SIZE(units))
		v = (double)ns / (double)units[++i].ns;
	snprintf(buf, size, "%.*f %s", !i || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2,
		 v, units[i].name);
	return buf;
}

PUBLIC int brumm_parse_size(const char *text, uint64_t *bytes)
{
	static const char suffix[] = "KMGT";
	const char *s = skip_space(text), *p;
	uint64_t v;
	int err, shift = 0;

	err = digits(&s, &v);
	if (err == -EINVAL)
		return err;
	s = skip_space(s);
	p = *s ? strchr(suffix, toupper((unsigned char)*s)) : NULL;
	if (p) {
		shift = 10 * (int)(p - suffix + 1);
		s++;
	}
	if (*skip_space(s))
		return -EINVAL;
	if (err || v > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = v << shift;
	return 0;
}

/* "key value" lines. A line that is something else is not ours to judge. */
int parse_flat(char *text, brumm_each_fn each, void *arg)
{
	char *line, *save, *value;
	uint64_t v;
	int ret;

	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = '\0';
		if (parse_u64(value, &v))
			continue;
		ret = each(line, v, arg);
		if (ret)
			return ret;
	}
	return 0;
}

/* /proc/PID/cgroup: the line "0::PATH" is the v2 hierarchy. */
int parse_cgroup_line(char *text, char **path)
{
	static const char deleted[] = " (deleted)";
	char *line, *save;
	size_t len;

	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "0::/", 4))
			continue;
		*path = line + 3;
		if (!strncmp(*path, "/..", 3) &&
		    (!(*path)[3] || (*path)[3] == '/'))
			return -EXDEV;
		len = strlen(*path);
		if (len > strlen(deleted) &&
		    !strcmp(*path + len - strlen(deleted), deleted))
			return -ENOENT;
		return 0;
	}
	return -ENOENT;
}

static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' &&
		    s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
				       (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/*
 * A line of /proc/self/mountinfo:
 *	36 35 98:0 ROOT WHERE OPTIONS TAGS... - TYPE SOURCE ...
 * Returns 1 and the place if it is a whole (ROOT is /) mount of @type.
 */
int parse_mountinfo_line(char *line, const char *type, char **where)
{
	char *word[6], *save, *w;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(word); i++) {
		word[i] = strtok_r(i ? NULL : line, " \n", &save);
		if (!word[i])
			return 0;
	}
	while ((w = strtok_r(NULL, " \n", &save)) && strcmp(w, "-"))
		;
	w = w ? strtok_r(NULL, " \n", &save) : NULL;
	if (!w || strcmp(w, type) || strcmp(word[3], "/"))
		return 0;
	unescape(word[4]);
	*where = word[4];
	return 1;
}
