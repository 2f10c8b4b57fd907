// SPDX-License-Identifier: GPL-2.0
/* The cgroup that a command runs in. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

/* The path of the cgroup above. */
static int path_above(const char *name, char *buf, size_t size)
{
	int err = brumm_group_path(name, buf, size);
	char *slash = err ? NULL : strrchr(buf, '/');

	if (!slash)
		return err ?: -EINVAL;
	*slash = '\0';
	return 0;
}

/*
 * By hand: where v2 has no memory controller libcgroup makes no cgroup, and in
 * a delegated subtree it fails at the cgroups above, which it need not change.
 */
static int make_bare(const char *name)
{
	char path[PATH_MAX];
	int err = path_above(name, path, sizeof(path)), up;

	if (err)
		return err;
	up = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (up < 0)
		return -errno;
	/* If it cannot be had, the budget will say so. */
	brumm_group_write(up, "cgroup.subtree_control", "+memory");
	close(up);
	err = brumm_group_path(name, path, sizeof(path));
	if (!err && mkdir(path, 0755) && errno != EEXIST)
		err = -errno;
	return err;
}

static void say_why(const char *name, int err)
{
	switch (err) {
	case -ENOENT:
		cli_error("%s: no cgroup v2 hierarchy, or nothing above it; mount -t cgroup2 none /sys/fs/cgroup, and see --name",
			  name);
		break;
	case -EACCES:
	case -EPERM:
	case -EROFS:
		cli_error("%s: not permitted; run as root, or name a cgroup below one that was delegated to you by --name",
			  name);
		break;
	case -EBUSY:
		cli_error("%s: a cgroup above has processes of its own; choose another place by --name",
			  name);
		break;
	default:
		cli_fail(err, "cannot make the cgroup %s", name);
	}
}

static int check_empty(const struct run *r)
{
	uint64_t v;

	if (brumm_group_number(r->group, "cgroup.events", "populated", &v) || !v)
		return 0;
	cli_error("%s: there are processes in it, which would be killed with the command; name another one, or brumm reap %s first",
		  r->name, r->name);
	return RUN_OWN_ERROR;
}

static int set_budget(const struct run *r)
{
	int err;

	if (r->has_max) {
		err = brumm_group_set_max(r->group, r->max);
		if (err) {
			cli_knob_failed(r->group, r->name, "brumm.max", err);
			return RUN_OWN_ERROR;
		}
	}
	if (r->has_high) {
		err = brumm_group_set_high(r->group, r->high);
		if (err) {
			cli_knob_failed(r->group, r->name, "brumm.high", err);
			return RUN_OWN_ERROR;
		}
	}
	return 0;
}

/* What somebody else made, with all below it, is not ours to remove. */
static void keep_if_there(struct run *r)
{
	int group = brumm_group_open(r->name);

	if (group < 0)
		return;
	close(group);
	if (!r->opts.keep && !r->quiet)
		cli_error("%s: was there before, and stays; its other settings hold",
			  r->name);
	r->opts.keep = true;
}

int run_make_group(struct run *r)
{
	bool bare;
	int err;

	keep_if_there(r);
	err = brumm_group_create(r->name);
	if (err == -ENOTSUP || err == -EIO) {
		bare = err == -ENOTSUP;
		err = make_bare(r->name);
		if (!err && bare && !r->quiet)
			cli_error("cgroup v2 has no memory controller here: no budget, and memory is not told");
	}
	if (err) {
		say_why(r->name, err);
		return RUN_OWN_ERROR;
	}
	r->group = cli_open_group(r->name);
	if (r->group < 0)
		return RUN_OWN_ERROR;
	if (check_empty(r))
		return RUN_OWN_ERROR;
	err = set_budget(r);
	if (err)
		run_remove_group(r);
	return err;
}

void run_remove_group(struct run *r)
{
	char path[PATH_MAX];

	if (!r->opts.keep && !brumm_group_path(r->name, path, sizeof(path)))
		rmdir(path);
}
