// SPDX-License-Identifier: GPL-2.0
/* Windows: the commands of /dev/brumm, thinly. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

static int command(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

PUBLIC int brumm_open(int flags)
{
	int fd;

	if (flags & ~O_NONBLOCK)
		return -EINVAL;
	fd = open(BRUMM_DEVICE, O_RDWR | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

PUBLIC int brumm_info(int window, struct brumm_info *info)
{
	*info = (struct brumm_info){ .size = sizeof(*info) };
	return command(window, BRUMM_IOC_INFO, info);
}

PUBLIC int brumm_mmap(int window, uint64_t length, int prot, void **addr)
{
	void *p;

	if (length > SIZE_MAX)
		return -EOVERFLOW;
	p = mmap(NULL, (size_t)length, prot, MAP_SHARED, window, 0);
	if (p == MAP_FAILED)
		return -errno;
	*addr = p;
	return 0;
}

PUBLIC int brumm_munmap(void *addr, uint64_t length)
{
	return munmap(addr, (size_t)length) ? -errno : 0;
}

PUBLIC int brumm_alloc(int window, uint64_t offset, uint64_t length)
{
	struct brumm_alloc a = {
		.size = sizeof(a),
		.offset = offset,
		.length = length,
	};

	return command(window, BRUMM_IOC_ALLOC, &a);
}

PUBLIC int brumm_gate(int window, uint64_t offset, uint64_t length,
		      uint32_t flags)
{
	struct brumm_gate g = {
		.size = sizeof(g),
		.flags = flags,
		.offset = offset,
		.length = length,
	};

	return command(window, BRUMM_IOC_GATE, &g);
}

PUBLIC int brumm_map(int window, const struct brumm_map *map)
{
	struct brumm_map m = *map;

	m.size = sizeof(m);
	return command(window, BRUMM_IOC_MAP, &m);
}

PUBLIC int brumm_grant(int window, const struct brumm_map *map)
{
	struct brumm_map m = *map;

	m.flags |= BRUMM_MAP_GRANT;
	return brumm_map(window, &m);
}

static int unmap(int window, struct brumm_unmap *u, struct brumm_unmap *done)
{
	int ret = command(window, BRUMM_IOC_UNMAP, u);

	if (done)
		*done = *u;
	return ret;
}

PUBLIC int brumm_unmap(int window, uint64_t offset, uint64_t length,
		       uint32_t flags, struct brumm_unmap *done)
{
	struct brumm_unmap u = {
		.size = sizeof(u),
		.flags = flags,
		.offset = offset,
		.length = length,
	};

	return unmap(window, &u, done);
}

PUBLIC int brumm_reduce(int window, uint64_t offset, uint64_t length,
			uint32_t rights, uint32_t flags,
			struct brumm_unmap *done)
{
	struct brumm_unmap u = {
		.size = sizeof(u),
		.flags = flags | BRUMM_UNMAP_RIGHTS,
		.offset = offset,
		.length = length,
		.rights = rights,
	};

	return unmap(window, &u, done);
}

PUBLIC int brumm_query(int window, uint64_t offset, uint32_t flags,
		       struct brumm_query *query)
{
	*query = (struct brumm_query){
		.size = sizeof(*query),
		.flags = flags,
		.offset = offset,
	};
	return command(window, BRUMM_IOC_QUERY, query);
}

PUBLIC int brumm_events(int window, struct brumm_event *events, unsigned int n)
{
	ssize_t len = read(window, events, n * sizeof(*events));

	return len < 0 ? -errno : (int)(len / (ssize_t)sizeof(*events));
}

PUBLIC int brumm_event_wait(int window, int timeout_ms)
{
	struct pollfd p = { .fd = window, .events = POLLIN };
	int ret = poll(&p, 1, timeout_ms);

	if (ret < 0)
		return -errno;
	if (ret && (p.revents & POLLNVAL))
		return -EBADF;
	return ret && (p.revents & POLLIN);
}
