// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "tap.h"

/* ---- ioctls ----------------------------------------------------------- */

int dev_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

int dev_open(void)
{
	int fd = open(BRUMM_DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int win_open(void)
{
	int fd = dev_open();

	REQUIRE(fd >= 0);
	return fd;
}

int win_open_in(int cgroup)
{
	int fd;

	cg_enter(cgroup);
	fd = win_open();
	cg_leave();
	return fd;
}

int win_with(uint64_t pages)
{
	int fd = win_open();

	REQUIRE_OK(dev_alloc(fd, 0, pages));
	return fd;
}

int dev_info(int w, struct brumm_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return dev_ioctl(w, BRUMM_IOC_INFO, info);
}

int dev_alloc(int w, uint64_t page, uint64_t pages)
{
	struct brumm_alloc a = {
		.size = sizeof(a),
		.offset = page * PAGE,
		.length = pages * PAGE,
	};

	return dev_ioctl(w, BRUMM_IOC_ALLOC, &a);
}

int dev_gate(int w, uint64_t page, uint64_t pages, uint32_t flags)
{
	struct brumm_gate g = {
		.size = sizeof(g),
		.flags = flags,
		.offset = page * PAGE,
		.length = pages * PAGE,
	};

	return dev_ioctl(w, BRUMM_IOC_GATE, &g);
}

static int map(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
	       uint32_t rights, uint32_t flags, int cgroup)
{
	struct brumm_map m = {
		.size = sizeof(m),
		.flags = flags,
		.source = from * PAGE,
		.length = pages * PAGE,
		.target = to * PAGE,
		.fd = to_fd,
		.rights = rights,
		.sponsor = cgroup,
	};

	return dev_ioctl(w, BRUMM_IOC_MAP, &m);
}

int dev_map(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
	    uint32_t rights)
{
	return map(w, from, pages, to_fd, to, rights, 0, 0);
}

int dev_map_flags(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
		  uint32_t rights, uint32_t flags)
{
	return map(w, from, pages, to_fd, to, rights, flags, 0);
}

int dev_map_for(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
		uint32_t rights, int cgroup)
{
	return map(w, from, pages, to_fd, to, rights, BRUMM_MAP_SPONSOR,
		   cgroup);
}

int dev_grant(int w, uint64_t from, uint64_t pages, int to_fd, uint64_t to,
	      uint32_t rights)
{
	return map(w, from, pages, to_fd, to, rights, BRUMM_MAP_GRANT, 0);
}

int dev_unmap_flags(int w, uint64_t page, uint64_t pages, uint32_t flags,
		    uint32_t rights, struct brumm_unmap *out)
{
	struct brumm_unmap u = {
		.size = sizeof(u),
		.flags = flags,
		.offset = page * PAGE,
		.length = pages * PAGE,
		.rights = rights,
	};
	int ret = dev_ioctl(w, BRUMM_IOC_UNMAP, &u);

	if (out)
		*out = u;
	return ret;
}

int dev_unmap(int w, uint64_t page, uint64_t pages)
{
	return dev_unmap_flags(w, page, pages, 0, 0, NULL);
}

int dev_unmap_self(int w, uint64_t page, uint64_t pages)
{
	return dev_unmap_flags(w, page, pages, BRUMM_UNMAP_SELF, 0, NULL);
}

int dev_query(int w, uint64_t page, uint32_t flags, struct brumm_query *q)
{
	memset(q, 0, sizeof(*q));
	q->size = sizeof(*q);
	q->flags = flags;
	q->offset = page * PAGE;
	return dev_ioctl(w, BRUMM_IOC_QUERY, q);
}

int64_t dev_rights(int w, uint64_t page)
{
	struct brumm_query q;
	int ret = dev_query(w, page, 0, &q);

	return ret ? ret : (int64_t)q.rights;
}

int64_t dev_depth(int w, uint64_t page)
{
	struct brumm_query q;
	int ret = dev_query(w, page, 0, &q);

	return ret ? ret : (int64_t)q.depth;
}

int64_t dev_count(int w, uint64_t page)
{
	struct brumm_query q;
	int ret = dev_query(w, page, BRUMM_QUERY_COUNT, &q);

	return ret ? ret : (int64_t)q.descendants;
}

int64_t dev_nodes(int w)
{
	struct brumm_query q;
	uint64_t page = 0;
	int64_t nr = 0;
	int ret = 0;

	while (page < WINDOW_PAGES) {
		ret = dev_query(w, page, BRUMM_QUERY_NEXT, &q);
		if (ret)
			break;
		page = (q.offset + q.length) / PAGE;
		nr++;
	}
	return ret && ret != -ENOENT ? ret : nr;
}

void *dev_mmap(int w, uint64_t page, uint64_t pages, int prot)
{
	void *p = mmap(NULL, pages * PAGE, prot, MAP_SHARED, w, page * PAGE);

	return p == MAP_FAILED ? NULL : p;
}

void *win_mmap_at(int w, uint64_t page, uint64_t pages, int prot)
{
	void *p = dev_mmap(w, page, pages, prot);

	REQUIRE(p);
	return p;
}

void *win_mmap(int w, uint64_t pages, int prot)
{
	return win_mmap_at(w, 0, pages, prot);
}

/* ---- accesses that may fail ------------------------------------------- */

static __thread sigjmp_buf guard_env;
static __thread volatile sig_atomic_t guarded;

static void guard_hit(int sig)
{
	if (guarded) {
		guarded = 0;
		siglongjmp(guard_env, sig);
	}
	signal(sig, SIG_DFL);
}

void guard_init(void)
{
	/* NODEFER: a jump out of it need not restore the mask. */
	struct sigaction sa = {
		.sa_handler = guard_hit,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
}

int peek(const uint32_t *p, uint32_t *value)
{
	uint32_t v;
	int sig = sigsetjmp(guard_env, 0);

	if (sig)
		return sig;
	guarded = 1;
	v = __atomic_load_n(p, __ATOMIC_SEQ_CST);
	guarded = 0;
	if (value)
		*value = v;
	return 0;
}

int poke(uint32_t *p, uint32_t value)
{
	int sig = sigsetjmp(guard_env, 0);

	if (sig)
		return sig;
	guarded = 1;
	__atomic_store_n(p, value, __ATOMIC_SEQ_CST);
	guarded = 0;
	return 0;
}

int call(const void *p)
{
	int sig = sigsetjmp(guard_env, 0);

	if (sig)
		return sig;
	guarded = 1;
	((void (*)(void))(uintptr_t)p)();
	guarded = 0;
	return 0;
}

/* ---- dumps ------------------------------------------------------------ */

static void dump_window(struct dump *d, uint32_t nr, int w)
{
	uint64_t page = 0;

	while (page < WINDOW_PAGES) {
		struct brumm_query q;
		int ret = dev_query(w, page,
				    BRUMM_QUERY_NEXT | BRUMM_QUERY_COUNT, &q);

		if (ret == -ENOENT)
			return;
		REQUIRE_OK(ret);
		if (d->nr == d->room) {
			d->room = d->room ? 2 * d->room : 64;
			d->nodes = realloc(d->nodes,
					   d->room * sizeof(*d->nodes));
			REQUIRE(d->nodes);
		}
		d->nodes[d->nr].window = nr;
		d->nodes[d->nr++].q = q;
		page = (q.offset + q.length) / PAGE;
	}
}

void dump_take(struct dump *d, const int *windows, unsigned int nr)
{
	unsigned int i;

	memset(d, 0, sizeof(*d));
	for (i = 0; i < nr; i++)
		dump_window(d, i, windows[i]);
}

static void dump_tell(const char *what, const struct dump_node *n)
{
	tap_diag("%s window %u offset %#llx length %#llx rights %u depth %u state %u descendants %llu sponsor %llu",
		 what, n->window, n->q.offset, n->q.length, n->q.rights,
		 n->q.depth, n->q.state, n->q.descendants, n->q.sponsor);
}

int dump_same(const struct dump *a, const struct dump *b)
{
	uint32_t i;

	for (i = 0; i < a->nr && i < b->nr; i++) {
		const struct dump_node *x = &a->nodes[i], *y = &b->nodes[i];

		if (x->window == y->window &&
		    !memcmp(&x->q, &y->q, sizeof(x->q)))
			continue;
		dump_tell("before:", x);
		dump_tell("now:", y);
		return 0;
	}
	if (i < a->nr)
		dump_tell("gone:", &a->nodes[i]);
	if (i < b->nr)
		dump_tell("new:", &b->nodes[i]);
	return a->nr == b->nr;
}

void dump_free(struct dump *d)
{
	free(d->nodes);
	memset(d, 0, sizeof(*d));
}

/* ---- what is left ----------------------------------------------------- */

static long read_long(const char *path)
{
	FILE *f = fopen(path, "re");
	long value = -1;

	if (f && fscanf(f, "%ld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

long module_refs(void)
{
	return read_long("/sys/module/brumm/refcnt");
}

static void shrink(const char *cache)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", cache);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		/* Counts are exact only without half-used per-CPU slabs. */
		if (write(fd, "1\n", 2) < 0)
			tap_diag("%s: %s", path, tap_result(-errno));
		close(fd);
	}
}

long module_objects(void)
{
	DIR *dir = opendir("/sys/kernel/slab");
	struct dirent *de;
	char path[300];
	long sum = -1;

	while (dir && (de = readdir(dir))) {
		/* A link: merged with others, so its numbers say nothing. */
		if (strncmp(de->d_name, "brumm", 5) || de->d_type == DT_LNK)
			continue;
		shrink(de->d_name);
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/objects",
			 de->d_name);
		sum = (sum < 0 ? 0 : sum) + read_long(path);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* Files that a killed process had open go a little later than the process. */
static void nothing_left(void)
{
	int tries;

	for (tries = 0; module_refs() > 0 && tries < 200; tries++)
		sleep_ms(50);
	CHECK_EQ(module_refs(), 0);
	/* Objects may wait for an RCU grace period. */
	for (tries = 0; module_objects() > 0 && tries < 100; tries++)
		sleep_ms(50);
	CHECK(module_objects() <= 0);
	if (module_objects() > 0)
		tap_diag("%ld slab objects left", module_objects());
	cg_sweep();
}

static const char *device_there(void)
{
	int fd = dev_open();

	if (fd < 0)
		return "no " BRUMM_DEVICE;
	close(fd);
	return NULL;
}

void dev_program(void)
{
	tap_before_all = device_there;
	tap_after_case = nothing_left;
	guard_init();
}
