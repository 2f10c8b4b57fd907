// SPDX-License-Identifier: GPL-2.0
/* The guard's pins: made, read, taken away. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../cli.h"
#include "../probe/loader.h"
#include "guard.h"
#include "guard.skel.h"

#define COUNTS	GUARD_DIR "/counts"
#define GONE_US	2000
#define GONE_TRIES	2500

#define GUARD_HOOK_INFO(name, pin, err, about)				\
	[GUARD_##name] = { #pin, "guard_" #pin, #err, about },
const struct guard_hook_info guard_hooks[GUARD_NR] = {
	GUARD_HOOKS(GUARD_HOOK_INFO)
};

static const char *pin_of(enum guard_hook h)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", GUARD_DIR, guard_hooks[h].name);
	return path;
}

/* What is there */

static int read_counts(struct guard_state *s)
{
	int cpus = libbpf_num_possible_cpus(), fd = bpf_obj_get(COUNTS), i;
	struct guard_counts *all;
	unsigned int h;
	int err = 0;

	if (fd < 0)
		return fd;
	all = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*all));
	if (!all || cpus <= 0)
		err = cpus < 0 ? cpus : -ENOMEM;
	for (h = 0; !err && h < GUARD_NR; h++) {
		err = bpf_map_lookup_elem(fd, &h, all);
		for (i = 0; !err && i < cpus; i++) {
			s->counts[h].refused += all[i].refused;
			s->counts[h].audited += all[i].audited;
		}
	}
	free(all);
	close(fd);
	return err;
}

int guard_read(struct guard_state *s)
{
	enum guard_hook h;

	memset(s, 0, sizeof(*s));
	if (access(GUARD_DIR, X_OK))
		return errno == ENOENT ? 0 : -errno;
	for (h = 0; h < GUARD_NR; h++) {
		if (access(pin_of(h), F_OK))
			continue;
		s->attached |= 1u << h;
		s->nr++;
	}
	s->counted = !read_counts(s);
	return 0;
}

/* Make */

/* One at a time starts or stops it. The descriptor holds the lock. */
static int lock(void)
{
	int fd = open(GUARD_FS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static int mount_bpf(void)
{
	struct statfs fs;

	if (statfs(GUARD_FS, &fs))
		return -errno;
	if (fs.f_type == BPF_FS_MAGIC)
		return 0;
	return mount("bpf", GUARD_FS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     "mode=700") ? -errno : 0;
}

static void unpin_all(void)
{
	struct dirent *d;
	DIR *dir = opendir(GUARD_DIR);

	while (dir && (d = readdir(dir)))
		unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(GUARD_DIR);
}

static int attach(struct bpf_object *obj, enum guard_hook h)
{
	struct bpf_program *prog =
		bpf_object__find_program_by_name(obj, guard_hooks[h].program);
	struct bpf_link *link = prog ? bpf_program__attach(prog) : NULL;
	int err;

	if (!link)
		return prog ? -errno : -ENOENT;
	err = bpf_link__pin(link, pin_of(h));
	/* Pinned, it stays. */
	bpf_link__destroy(link);
	return err;
}

static int attach_all(struct guard_bpf *skel)
{
	enum guard_hook h;
	int err;

	if (mkdir(GUARD_DIR, 0700) && errno != EEXIST)
		return -errno;
	err = bpf_map__pin(skel->maps.counts, COUNTS);
	for (h = 0; !err && h < GUARD_NR; h++)
		err = attach(skel->obj, h);
	if (err)
		unpin_all();
	return err;
}

static int load_and_attach(char **why)
{
	libbpf_print_fn_t old = loader_listen();
	struct guard_bpf *skel;
	int err;

	loader_forget();
	skel = guard_bpf__open_and_load();
	err = skel ? attach_all(skel) : -errno;
	if (err)
		loader_note(why, "BPF", err);
	guard_bpf__destroy(skel);
	libbpf_set_print(old);
	if (err && err != -EPERM && err != -ENOMEM)
		err = -EOPNOTSUPP;
	return err;
}

int guard_on(char **why)
{
	struct guard_state s;
	int err, fd;

	*why = NULL;
	if (access("/sys/module/brumm", F_OK))
		return -ENOENT;
	err = mount_bpf();
	if (err)
		return err;
	fd = lock();
	if (fd < 0)
		return fd;
	err = guard_read(&s);
	if (!err && s.nr == GUARD_NR && s.counted) {
		err = -EALREADY;
	} else if (!err) {
		unpin_all();
		err = load_and_attach(why);
	}
	close(fd);
	return err;
}

/* Take away */

/* What the link that is pinned as @path is called in the kernel; 0: none. */
static unsigned int link_id(const char *path)
{
	struct bpf_link_info info = { 0 };
	unsigned int len = sizeof(info);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		info.id = 0;
	close(fd);
	return info.id;
}

/* The kernel takes a link apart after its last user has left. */
static int wait_gone(unsigned int id)
{
	int tries = GONE_TRIES, fd;

	while (id && (fd = bpf_link_get_fd_by_id(id)) >= 0) {
		close(fd);
		if (!tries--)
			return -EBUSY;
		usleep(GONE_US);
	}
	return 0;
}

int guard_off(void)
{
	unsigned int ids[GUARD_NR];
	enum guard_hook h;
	int fd, err = 0;

	fd = lock();
	if (fd < 0)
		return fd;
	if (access(GUARD_DIR, F_OK)) {
		err = -errno;
	} else {
		for (h = 0; h < GUARD_NR; h++)
			ids[h] = link_id(pin_of(h));
		unpin_all();
		for (h = 0; !err && h < GUARD_NR; h++)
			err = wait_gone(ids[h]);
	}
	close(fd);
	return err;
}
