// SPDX-License-Identifier: GPL-2.0
/* The memory service upon a real window. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server.h"

struct window {
	int fd;
	char *view;
	uint64_t length;
};

static int window_map(void *arg, const struct brumm_map *map)
{
	struct window *w = arg;

	return brumm_map(w->fd, map);
}

static int window_unmap(void *arg, uint64_t offset, uint64_t length,
			struct brumm_unmap *done)
{
	struct window *w = arg;

	return brumm_unmap(w->fd, offset, length, 0, done);
}

/* Somebody may revoke the pool itself, by brumm.reclaim of our own cgroup. */
static int window_zero(void *arg, uint64_t offset, uint64_t length)
{
	struct window *w = arg;

	return brumm_fill(w->view + offset, 0, (size_t)length);
}

static int window_query(void *arg, uint64_t offset, uint32_t flags,
			struct brumm_query *query)
{
	struct window *w = arg;

	return brumm_query(w->fd, offset, flags, query);
}

static void window_close(void *arg)
{
	struct window *w = arg;

	if (w->view)
		brumm_munmap(w->view, w->length);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

/* Gives CAP_SYS_RESOURCE up, in this thread. */
static int drop_cap(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	data[0].inheritable &= ~(1u << CAP_SYS_RESOURCE);
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

PUBLIC int brumm_server_open(const struct brumm_server_config *config,
			     struct brumm_server **server)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct backend b = {
		.map = window_map,
		.unmap = window_unmap,
		.zero = window_zero,
		.query = window_query,
		.close = window_close,
	};
	struct window *w;
	void *view;
	int err;

	if (!config->path || config->reserved || config->pool % page ||
	    config->mode & ~0777u ||
	    config->flags & ~(BRUMM_SERVER_ROOT_CLIENTS | BRUMM_SERVER_KEEP_CAP))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->length = config->pool ? config->pool : SERVER_POOL;
	err = w->fd = brumm_open(0);
	if (w->fd >= 0)
		err = brumm_alloc(w->fd, 0, w->length);
	if (!err)
		err = brumm_mmap(w->fd, w->length, PROT_READ | PROT_WRITE,
				 &view);
	if (!err) {
		w->view = view;
		err = brumm_guard_init();
	}
	if (!err && !(config->flags & BRUMM_SERVER_KEEP_CAP))
		err = drop_cap();
	if (err) {
		window_close(w);
		return err;
	}
	b.arg = w;
	return server_open(config, &b, server);
}
