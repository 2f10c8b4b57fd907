// SPDX-License-Identifier: GPL-2.0
/* Files that are there as a whole or not at all, and what waits where they are made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../userspace/brumm/whole.h"
#include "common.h"

static char dir[] = "/tmp/brumm-whole-XXXXXX";
static char path[64], temp[64], other[64];

static int make_names(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/result", dir);
	snprintf(temp, sizeof(temp), "%s/result.new", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return 0;
}

static int remove_all(void **state)
{
	(void)state;
	unlink(path);
	unlink(temp);
	unlink(other);
	return 0;
}

static int remove_folder(void **state)
{
	remove_all(state);
	return rmdir(dir);
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static const char *text_of(const char *name)
{
	static char text[64];
	FILE *f = fopen(name, "re");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return text;
}

static int write_text(const char *name, const char *text, int why)
{
	struct whole w;
	int err = whole_open(&w, name);

	if (err)
		return err;
	fputs(text, w.f);
	return whole_close(&w, why);
}

static void appears_as_a_whole(void **state)
{
	struct whole w;
	struct stat st;
	mode_t mask = umask(027);

	(void)state;
	put(path, "old");
	assert_int_equal(whole_open(&w, path), 0);
	fputs("new", w.f);
	fflush(w.f);
	assert_string_equal(text_of(path), "old");
	assert_int_equal(whole_close(&w, 0), 0);
	umask(mask);
	assert_string_equal(text_of(path), "new");
	assert_int_equal(access(temp, F_OK), -1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void failure_leaves_what_was(void **state)
{
	(void)state;
	put(path, "old");
	assert_int_equal(write_text(path, "new", -ECANCELED), -ECANCELED);
	assert_string_equal(text_of(path), "old");
	assert_int_equal(access(temp, F_OK), -1);
	assert_int_equal(whole_json(path, NULL, 0), -ENOMEM);
	assert_string_equal(text_of(path), "old");
	snprintf(other, sizeof(other), "%s/none/result", dir);
	assert_int_equal(write_text(other, "new", 0), -ENOENT);
	snprintf(other, sizeof(other), "%s/other", dir);
}

static void links_are_not_followed(void **state)
{
	struct stat st;

	(void)state;
	put(other, "untouched");
	assert_int_equal(symlink(other, temp), 0);
	assert_int_equal(write_text(path, "new", 0), 0);
	assert_string_equal(text_of(other), "untouched");
	assert_string_equal(text_of(path), "new");
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	/* One that points to nothing makes nothing. */
	unlink(other);
	assert_int_equal(symlink(other, temp), 0);
	assert_int_equal(write_text(path, "newer", 0), 0);
	assert_int_equal(access(other, F_OK), -1);
	assert_string_equal(text_of(path), "newer");
	/* Nor does another name of a file that is not ours. */
	put(other, "untouched");
	assert_int_equal(link(other, temp), 0);
	assert_int_equal(write_text(path, "newest", 0), 0);
	assert_string_equal(text_of(other), "untouched");
	/* What cannot go is not written to. */
	assert_int_equal(mkdir(temp, 0700), 0);
	assert_int_equal(write_text(path, "last", 0), -EEXIST);
	assert_string_equal(text_of(path), "newest");
	rmdir(temp);
}

static void a_full_disk_is_told(void **state)
{
	json_t *j = json_pack("{s:i}", "a", 1);
	struct whole w;
	struct stat st;
	char buf[4096];
	int i;

	(void)state;
	assert_int_equal(write_text("/dev/full", "new", 0), -ENOSPC);
	assert_int_equal(whole_json("/dev/full", j, 0), -ENOSPC);
	/* Also where it was known long before the end. */
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(whole_open(&w, "/dev/full"), 0);
	for (i = 0; i < 64; i++)
		fwrite(buf, sizeof(buf), 1, w.f);
	assert_int_equal(whole_close(&w, 0), -ENOSPC);
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	json_decref(j);
}

/* As /dev/stdout is where that is a file: nothing takes its place. */
static void what_is_stdout_stays(void **state)
{
	int out = dup(STDOUT_FILENO), fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	int err;

	(void)state;
	assert_true(out >= 0 && fd >= 0);
	assert_int_equal(symlink(other, path), 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	err = write_text(path, "new", 0);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(fd);
	assert_int_equal(err, 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_string_equal(text_of(other), "new");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(appears_as_a_whole, remove_all),
		cmocka_unit_test_teardown(failure_leaves_what_was, remove_all),
		cmocka_unit_test_teardown(links_are_not_followed, remove_all),
		cmocka_unit_test_teardown(a_full_disk_is_told, remove_all),
		cmocka_unit_test_teardown(what_is_stdout_stays, remove_all),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("whole", tests, make_names, remove_folder);
}
