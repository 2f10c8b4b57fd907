// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-service.h"

static pthread_t thread;
static unsigned char is_mapped[FAKE_PAGES], is_dirty[FAKE_PAGES];
static uint64_t page;

static int fake_map(void *arg, const struct brumm_map *m)
{
	struct fake *f = arg;
	uint64_t i;

	if (f->map_error)
		return f->map_error;
	for (i = m->source / page; i < (m->source + m->length) / page; i++) {
		/* Nobody gets what another one has, or has written to. */
		if (is_mapped[i] || is_dirty[i])
			f->wrong++;
		is_mapped[i] = is_dirty[i] = 1;
		f->mapped++;
	}
	f->maps++;
	return 0;
}

static int fake_unmap(void *arg, uint64_t offset, uint64_t length,
		      struct brumm_unmap *done)
{
	struct fake *f = arg;
	uint64_t i;

	if (f->unmap_error)
		return f->unmap_error;
	*done = (struct brumm_unmap){ .nodes = 1 };
	for (i = offset / page; i < (offset + length) / page; i++) {
		done->pages += is_mapped[i];
		f->mapped -= is_mapped[i];
		is_mapped[i] = 0;
	}
	f->unmaps++;
	return 0;
}

static int fake_zero(void *arg, uint64_t offset, uint64_t length)
{
	struct fake *f = arg;
	uint64_t i;

	for (i = offset / page; i < (offset + length) / page; i++) {
		if (is_mapped[i])
			f->wrong++;
		is_dirty[i] = 0;
		f->zeroed++;
	}
	return 0;
}

static int fake_query(void *arg, uint64_t offset, uint32_t flags,
		      struct brumm_query *q)
{
	(void)arg;
	if (offset)
		return -ENOENT;
	*q = (struct brumm_query){
		.flags = flags,
		.length = FAKE_PAGES * page,
		.rights = BRUMM_RIGHTS_ALL,
	};
	return 0;
}

static void fake_close(void *arg)
{
	(void)arg;
}

static void *run(void *arg)
{
	return (void *)(intptr_t)brumm_server_run(arg);
}

int fake_start(struct fake *f, const struct brumm_server_config *config)
{
	struct brumm_server_config c = { 0 };
	struct backend b = {
		.map = fake_map,
		.unmap = fake_unmap,
		.zero = fake_zero,
		.query = fake_query,
		.close = fake_close,
		.arg = f,
	};
	int err;

	memset(f, 0, sizeof(*f));
	memset(is_mapped, 0, sizeof(is_mapped));
	memset(is_dirty, 0, sizeof(is_dirty));
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	strcpy(f->dir, "/tmp/brumm-test-XXXXXX");
	if (!mkdtemp(f->dir))
		return -errno;
	snprintf(f->path, sizeof(f->path), "%s/memory", f->dir);
	snprintf(f->control, sizeof(f->control), "%s/control", f->dir);
	if (config)
		c = *config;
	else
		c.flags = BRUMM_SERVER_ROOT_CLIENTS;
	c.path = f->path;
	c.control = f->control;
	c.pool = FAKE_PAGES * page;
	err = server_open(&c, &b, &f->server);
	if (err)
		return err;
	return -pthread_create(&thread, NULL, run, f->server);
}

void fake_stop(struct fake *f)
{
	brumm_server_stop(f->server);
	pthread_join(thread, NULL);
	brumm_server_close(f->server);
	rmdir(f->dir);
}
