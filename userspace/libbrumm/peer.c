// SPDX-License-Identifier: GPL-2.0
/* Who is at the other end of a socket, and in which cgroup. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77		/* since Linux 6.5 */
#endif

static int peer_pidfd(int sock, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd;

	if (!getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len))
		return fd;
	if (errno != ENOPROTOOPT)
		return -errno;
	/*
	 * An older kernel. The number may be that of another process by now;
	 * then its cgroup is not that of the window, and the kernel refuses
	 * each mapping.
	 */
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

/*
 * Notes a cgroup and those above it. The first that has a budget pays, as it
 * does for the windows that are opened there.
 */
static int climb(struct peer *p, int dir)
{
	uint64_t id, last = 0;
	struct statfs st;
	int up, err = 0;

	/* Above the root of the hierarchy is another file system. */
	while (!fstatfs(dir, &st) && st.f_type == CGROUP2_SUPER_MAGIC) {
		err = brumm_group_id(dir, &id);
		if (err || id == last)
			break;
		if (p->nr_ids == PEER_DEPTH) {
			err = -ELOOP;
			break;
		}
		p->ids[p->nr_ids++] = last = id;
		up = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (up < 0) {
			err = -errno;
			break;
		}
		if (p->payer < 0 && !faccessat(dir, "brumm.max", F_OK, 0)) {
			p->payer = dir;
			p->payer_id = id;
		} else {
			close(dir);
		}
		dir = up;
	}
	if (dir != p->payer)
		close(dir);
	return err;
}

void peer_forget(struct peer *p)
{
	if (p->payer >= 0)
		close(p->payer);
	p->payer = -1;
}

int peer_identify(int sock, struct peer *p)
{
	struct pollfd alive = { .events = POLLIN };
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int dir, err = 0;

	*p = (struct peer){ .payer = -1 };
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	p->pid = cred.pid;
	p->uid = cred.uid;
	if (cred.pid <= 0)
		return -EPERM;
	alive.fd = peer_pidfd(sock, cred.pid);
	if (alive.fd < 0)
		return alive.fd;
	dir = brumm_group_open_pid(cred.pid);
	/* Still alive: then the number was not used again while we looked. */
	if (dir >= 0 && poll(&alive, 1, 0)) {
		close(dir);
		dir = -ESRCH;
	}
	close(alive.fd);
	if (dir >= 0)
		err = climb(p, dir);
	if (dir < 0 || err)
		peer_forget(p);
	return dir < 0 ? dir : err;
}

bool peer_is_below(const struct peer *p, uint64_t cgroup)
{
	unsigned int i;

	for (i = 0; i < p->nr_ids; i++)
		if (p->ids[i] == cgroup)
			return true;
	return false;
}
