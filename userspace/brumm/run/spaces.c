// SPDX-License-Identifier: GPL-2.0
/* Namespaces but the PID namespace: what has to be done in and about them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run.h"

int unshare(int flags);

static int loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFFLAGS, &ifr))
		err = -errno;
	ifr.ifr_flags |= IFF_UP;
	if (!err && ioctl(fd, SIOCSIFFLAGS, &ifr))
		err = -errno;
	close(fd);
	return err;
}

/* What is mounted inside stays inside, and /proc shows what is inside. */
static int own_mounts(bool proc)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	if (proc && mount("proc", "/proc", "proc",
			  MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	return 0;
}

int spaces_enter(const struct run *r, const char **where)
{
	int err = 0;

	/* Its root is the cgroup that the caller is in, which it was not. */
	if (r->ns & CLONE_NEWCGROUP && unshare(CLONE_NEWCGROUP)) {
		*where = "cgroup namespace";
		return -errno;
	}
	if (r->ns & CLONE_NEWNS) {
		*where = "own mounts";
		err = own_mounts(r->pidns);
	}
	if (!err && r->ns & CLONE_NEWNET) {
		*where = "loopback interface";
		err = loopback_up();
	}
	return err;
}

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int spaces_map_users(const struct run *r, pid_t pid)
{
	static const char all[] = "0 0 4294967295";
	char uid[64], gid[64];
	int err = 0;

	if (!(r->ns & CLONE_NEWUSER))
		return 0;
	/* Root keeps its users, anybody else becomes the only one. */
	if (!geteuid()) {
		err = write_proc(pid, "uid_map", all);
		return err ? err : write_proc(pid, "gid_map", all);
	}
	snprintf(uid, sizeof(uid), "0 %u 1", geteuid());
	snprintf(gid, sizeof(gid), "0 %u 1", getegid());
	err = write_proc(pid, "setgroups", "deny");
	if (!err)
		err = write_proc(pid, "uid_map", uid);
	return err ? err : write_proc(pid, "gid_map", gid);
}
