// SPDX-License-Identifier: GPL-2.0
/* Times, sizes, and the formats of cgroup and proc files. */
#define _GNU_SOURCE
#include "common.h"
#include "internal.h"

static void times(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t ns;
	} cases[] = {
		{ "0", 0, 0 },
		{ "5000", 0, 5000000 },
		{ "5000\n", 0, 5000000 },
		{ " \t5 ms ", 0, 5000000 },
		{ "5ms", 0, 5000000 },
		{ "7us", 0, 7000 },
		{ "7ns", 0, 7 },
		{ "2s", 0, 2000000000 },
		{ "1.5ms", 0, 1500000 },
		{ "0.001", 0, 1 },
		{ "1.234567891s", 0, 1234567891 },
		{ "1.2340000000000s", 0, 1234000000 },
		{ "max", 0, BRUMM_NO_LIMIT },
		{ "max\n", 0, BRUMM_NO_LIMIT },
		{ "18446744073709551614ns", 0, UINT64_MAX - 1 },
		{ "18446744073709551615ns", -ERANGE, 0 },
		{ "18446744073709551616ns", -ERANGE, 0 },
		{ "18446744073709551.614", 0, UINT64_MAX - 1 },
		{ "18446744073709551.615", -ERANGE, 0 },
		{ "18446744073s", 0, 18446744073000000000u },
		{ "18446744074s", -ERANGE, 0 },
		{ "99999999999999999999999", -ERANGE, 0 },
		{ "99999999999999999999999x", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ " ", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "1.5ns", -EINVAL, 0 },
		{ "0.0001", -EINVAL, 0 },
		{ "5m", -EINVAL, 0 },
		{ "5 ms x", -EINVAL, 0 },
		{ "5msms", -EINVAL, 0 },
		{ "maximum", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "ms", -EINVAL, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = 42;
		int err = brumm_parse_time(cases[i].text, &ns);

		if (err != cases[i].err || ns != (err ? 42 : cases[i].ns))
			fail_msg("'%s': %d, %llu", cases[i].text, err,
				 (unsigned long long)ns);
	}
}

static void sizes(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(brumm_parse_size("64M\n", &v), 0);
	assert_int_equal(v, 64 << 20);
	assert_int_equal(brumm_parse_size("4096", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(brumm_parse_size(" 3 g ", &v), 0);
	assert_int_equal(v, 3ull << 30);
	assert_int_equal(brumm_parse_size("16777215T", &v), 0);
	assert_int_equal(brumm_parse_size("16777216T", &v), -ERANGE);
	assert_int_equal(brumm_parse_size("12MB", &v), -EINVAL);
	assert_int_equal(brumm_parse_size("-1", &v), -EINVAL);
	assert_int_equal(brumm_parse_size("K", &v), -EINVAL);
	assert_int_equal(brumm_parse_size("", &v), -EINVAL);
}

static void formats(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0" },		      { 15, "15 ns" },
		{ 999, "999 ns" },	      { 1000, "1.00 us" },
		{ 1250000, "1.25 ms" },	      { 12000000000, "12.0 s" },
		{ 999499, "999 us" },	      { 999500, "1.00 ms" },
		{ 9995, "10.0 us" },	      { 99950, "100 us" },
		{ BRUMM_NO_LIMIT, "max" },    { 1234567890123, "1235 s" },
	};
	char buf[16];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(brumm_format_time(cases[i].ns, buf,
						      sizeof(buf)),
				    cases[i].text);
}

static int sum(const char *key, uint64_t value, void *arg)
{
	uint64_t *all = arg;

	*all = *all * 31 + (unsigned char)key[0] * 1000 + value;
	return !strcmp(key, "stop");
}

static void files(void **state)
{
	char flat[] = "max 3\nodd line\nhigh 5\nnovalue\nover x\n\n";
	char stop[] = "stop 1\nafter 2\n";
	uint64_t v = 0;

	(void)state;
	assert_int_equal(parse_flat(flat, sum, &v), 0);
	assert_int_equal(v, ('m' * 1000 + 3) * 31 + 'h' * 1000 + 5);
	assert_int_equal(parse_flat(stop, sum, &v), 1);
}

static void cgroup_lines(void **state)
{
	char v2[] = "12:pids:/x\n1:name=systemd:/y\n0::/a/b c\n";
	char only_v1[] = "12:pids:/x\n";
	char outside[] = "0::/../other\n", up[] = "0::/..\n";
	char dots[] = "0::/..a\n", gone[] = "0::/a (deleted)\n";
	char *path;

	(void)state;
	assert_int_equal(parse_cgroup_line(v2, &path), 0);
	assert_string_equal(path, "/a/b c");
	assert_int_equal(parse_cgroup_line(only_v1, &path), -ENOENT);
	assert_int_equal(parse_cgroup_line(outside, &path), -EXDEV);
	assert_int_equal(parse_cgroup_line(up, &path), -EXDEV);
	assert_int_equal(parse_cgroup_line(dots, &path), 0);
	assert_string_equal(path, "/..a");
	assert_int_equal(parse_cgroup_line(gone, &path), -ENOENT);
}

static void mounts(void **state)
{
	char yes[] = "35 25 0:30 / /sys/fs/my\\040cg rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
	char part[] = "35 25 0:30 /sub /mnt rw - cgroup2 cgroup2 rw\n";
	char other[] = "35 25 0:30 / /mnt rw shared:1 master:2 - cgroup cgroup rw\n";
	char cut[] = "35 25 0:30 / /mnt rw\n", empty[] = "\n";
	char *where;

	(void)state;
	assert_int_equal(parse_mountinfo_line(yes, "cgroup2", &where), 1);
	assert_string_equal(where, "/sys/fs/my cg");
	assert_int_equal(parse_mountinfo_line(part, "cgroup2", &where), 0);
	assert_int_equal(parse_mountinfo_line(other, "cgroup2", &where), 0);
	assert_int_equal(parse_mountinfo_line(cut, "cgroup2", &where), 0);
	assert_int_equal(parse_mountinfo_line(empty, "cgroup2", &where), 0);
}

static void errors(void **state)
{
	(void)state;
	assert_non_null(strstr(brumm_strerror(-EDQUOT), "brumm.max"));
	assert_ptr_equal(brumm_strerror(EDQUOT), brumm_strerror(-EDQUOT));
	assert_string_equal(brumm_strerror(-EISDIR), strerror(EISDIR));
	assert_non_null(brumm_strerror(123456));
	assert_non_null(brumm_strerror(INT32_MIN));
}

static void paths(void **state)
{
	char mount[4096], buf[4096], full[4200];

	(void)state;
	assert_int_equal(brumm_group_path("a/../b", buf, sizeof(buf)), -EINVAL);
	assert_int_equal(brumm_group_path("..", buf, sizeof(buf)), -EINVAL);
	assert_int_equal(brumm_group_path("", buf, sizeof(buf)), -EINVAL);
	if (brumm_cgroup_mount(mount, sizeof(mount)))
		return;	/* no cgroup v2 here */
	assert_int_equal(brumm_group_path("/a/b/", buf, sizeof(buf)), 0);
	snprintf(full, sizeof(full), "%s/a/b", mount);
	assert_string_equal(buf, full);
	assert_int_equal(brumm_group_path(full, buf, sizeof(buf)), 0);
	assert_string_equal(buf, full);
	assert_int_equal(brumm_group_path("..a", buf, sizeof(buf)), 0);
	assert_int_equal(brumm_group_path("/", buf, sizeof(buf)), 0);
	assert_string_equal(buf, mount);
	assert_int_equal(brumm_group_path("abc", buf, strlen(mount) + 4),
			 -ENAMETOOLONG);
	assert_true(brumm_group_open("no/such/cgroup") == -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),  cmocka_unit_test(sizes),
		cmocka_unit_test(formats), cmocka_unit_test(files),
		cmocka_unit_test(cgroup_lines), cmocka_unit_test(mounts),
		cmocka_unit_test(errors), cmocka_unit_test(paths),
	};

	return RUN_TAP("parse", tests);
}
