// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: requests that began as right ones and were then damaged get an error
 * of the documented set or succeed, at a sound kernel. Valid ones are mixed in,
 * so that there is always something to damage.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

#define WINDOWS	4
#define FDS	16
#define PAGES	32

union request {
	struct brumm_info info;
	struct brumm_alloc alloc;
	struct brumm_gate gate;
	struct brumm_map map;
	struct brumm_unmap unmap;
	struct brumm_query query;
	uint8_t bytes[2 * 4096];
};

struct fuzz {
	struct rng g;
	int fd[FDS];		/* windows first, then other kinds */
	int cg[2];
	uint32_t *mem;
	char *edge;		/* the last page before nothing */
	uint64_t by_result[134];
};

static const struct {
	unsigned long cmd;
	uint32_t size;
	int errors[16];
} commands[] = {
	{ BRUMM_IOC_INFO, sizeof(struct brumm_info), { 0 } },
	{ BRUMM_IOC_ALLOC, sizeof(struct brumm_alloc),
	  { EEXIST, ENOMEM, EDQUOT, EBUSY, EINTR, EBADF } },
	{ BRUMM_IOC_GATE, sizeof(struct brumm_gate),
	  { EMFILE, ENFILE, ENOMEM, EBADF } },
	{ BRUMM_IOC_MAP, sizeof(struct brumm_map),
	  { ENOENT, EACCES, EPERM, EEXIST, ELOOP, EDQUOT, EBUSY, EBADF, ESTALE,
	    ENOMEM, EINTR } },
	{ BRUMM_IOC_UNMAP, sizeof(struct brumm_unmap),
	  { EDQUOT, EBUSY, ENOMEM, EBADF } },
	{ BRUMM_IOC_QUERY, sizeof(struct brumm_query),
	  { ENOENT, ENOMEM, EINTR } },
};

/* What every command may say. */
static const int common[] = {
	ENOTTY, EINVAL, EOPNOTSUPP, E2BIG, EOVERFLOW, EFAULT,
};

static bool documented(unsigned int c, int err)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(common); i++)
		if (err == common[i])
			return true;
	for (i = 0; c < ARRAY_SIZE(commands) &&
	     i < ARRAY_SIZE(commands[0].errors); i++)
		if (err && err == commands[c].errors[i])
			return true;
	return false;
}

static int some_fd(struct fuzz *f)
{
	return rng_once_in(&f->g, 20) ? (int)rng_next(&f->g) :
	       f->fd[rng_below(&f->g, FDS)];
}

static uint64_t pages(struct fuzz *f, uint32_t n)
{
	return (uint64_t)rng_below(&f->g, n) * PAGE;
}

static uint32_t rights(struct fuzz *f)
{
	return rng_once_in(&f->g, 3) ? R | rng_below(&f->g, 16) : ALL;
}

/* As somebody would ask who knows the interface. */
static void right_request(struct fuzz *f, unsigned int c, union request *r)
{
	uint64_t length = PAGE + pages(f, 6);
	uint32_t flags = rng_below(&f->g, 4);

	memset(r, 0, sizeof(*r));
	switch (c) {
	case 1:
		r->alloc.offset = pages(f, PAGES);
		r->alloc.length = length;
		break;
	case 2:
		r->gate.flags = flags & BRUMM_GATE_SPONSOR;
		r->gate.offset = pages(f, PAGES);
		r->gate.length = length;
		break;
	case 3:
		r->map.flags = rng_once_in(&f->g, 3) ? flags : 0;
		r->map.source = pages(f, PAGES);
		r->map.length = length;
		r->map.target = pages(f, PAGES);
		r->map.fd = f->fd[rng_below(&f->g, WINDOWS + 2)];
		r->map.rights = rights(f);
		if (rng_once_in(&f->g, 8)) {
			r->map.flags |= BRUMM_MAP_SPONSOR;
			r->map.sponsor = f->cg[flags & 1];
		}
		break;
	case 4:
		r->unmap.flags = flags;
		r->unmap.offset = pages(f, PAGES);
		r->unmap.length = length;
		if (flags & BRUMM_UNMAP_RIGHTS)
			r->unmap.rights = rights(f) & ~R;
		break;
	case 5:
		r->query.flags = flags;
		r->query.offset = pages(f, PAGES);
		break;
	}
	r->info.size = commands[c].size;
}

/* Numbers at which code breaks. */
static uint64_t evil(struct fuzz *f)
{
	static const uint64_t all[] = {
		0, 1, 2, 8, 0x7f, 0x80, 0xff, 0xfff, PAGE, PAGE + 1, 0x7fffffff,
		0x80000000, 0xffffffff, 0x100000000, BRUMM_WINDOW_BYTES - PAGE,
		BRUMM_WINDOW_BYTES, BRUMM_WINDOW_BYTES + PAGE, 1ULL << 44,
		0x7fffffffffffffff, 1ULL << 63, -PAGE, -1ULL,
	};

	return all[rng_below(&f->g, ARRAY_SIZE(all))];
}

static void damage(struct fuzz *f, unsigned int c, union request *r)
{
	uint32_t at = rng_below(&f->g, commands[c].size), size;
	uint64_t value = rng_once_in(&f->g, 2) ? evil(f) : rng_next(&f->g);

	switch (rng_below(&f->g, 7)) {
	case 0:		/* a bit */
		r->bytes[at] ^= 1 << rng_below(&f->g, 8);
		break;
	case 1:		/* a byte */
		r->bytes[at] = value;
		break;
	case 2:		/* 32 bits */
		memcpy(r->bytes + (at & ~3), &value, 4);
		break;
	case 3:		/* 64 bits */
		memcpy(r->bytes + (at & ~7), &value, 8);
		break;
	case 4:		/* the size, and something behind it */
		size = rng_below(&f->g, 2 * 4096);
		memcpy(r->bytes, &size, 4);
		r->bytes[rng_below(&f->g, sizeof(r->bytes))] = 1;
		break;
	case 5:		/* a descriptor where one may be */
		r->map.fd = some_fd(f);
		r->map.sponsor = some_fd(f);
		break;
	default:	/* one field into another */
		memcpy(r->bytes + (at & ~7),
		       r->bytes + (rng_below(&f->g, 48) & ~7), 8);
	}
}

/* Mostly where it belongs, sometimes at an edge, in a window, or nowhere. */
static void *place(struct fuzz *f, unsigned int c, union request *r)
{
	char *p;

	switch (rng_below(&f->g, 40)) {
	case 0:
		p = f->edge + PAGE - commands[c].size;
		memcpy(p, r, commands[c].size);
		return p;
	case 1:
		p = f->edge + PAGE - rng_below(&f->g, 64);
		memcpy(p, r, f->edge + PAGE - p);
		return p;
	case 2:
		return (char *)f->mem + pages(f, PAGES);
	case 3:
		return (void *)(uintptr_t)evil(f);
	default:
		return r;
	}
}

static void one_ioctl(struct fuzz *f)
{
	unsigned int c = rng_below(&f->g, ARRAY_SIZE(commands)), n;
	unsigned long cmd = commands[c].cmd;
	bool stray = rng_once_in(&f->g, 8);
	int fd = f->fd[rng_below(&f->g, stray ? FDS : WINDOWS)];
	union request r;
	int ret;

	right_request(f, c, &r);
	for (n = rng_below(&f->g, 4); n; n--)
		damage(f, c, &r);
	/* Large lengths are fine, large memory is not what is tested here. */
	if (c == 1 && r.alloc.length > 64 * PAGE &&
	    r.alloc.length <= BRUMM_WINDOW_BYTES)
		r.alloc.length = 64 * PAGE;
	if (rng_once_in(&f->g, 30))
		cmd ^= 1UL << rng_below(&f->g, 32);
	ret = dev_ioctl(fd, cmd, place(f, c, &r));
	if (ret >= 0 && cmd == BRUMM_IOC_GATE && fd == f->fd[0] &&
	    rng_once_in(&f->g, 4)) {
		close(f->fd[WINDOWS]);
		f->fd[WINDOWS] = ret;
	} else if (ret > 2 && cmd == BRUMM_IOC_GATE) {
		close(ret);
	}
	/* Other files answer as they like. */
	if (ret < 0 && !stray && !documented(c, -ret) &&
	    cmd == commands[c].cmd)
		tap_fail(__FILE__, __LINE__, "command %u gives %s", c,
			 tap_result(ret));
	f->by_result[ret < 0 ? (-ret < 134 ? -ret : 133) : 0]++;
}

static void one_other(struct fuzz *f)
{
	int w = rng_below(&f->g, WINDOWS);
	struct pollfd p = { .fd = f->fd[w], .events = POLLIN };
	uint64_t length = PAGE + pages(f, 4);
	char buf[200];
	void *q;

	switch (rng_below(&f->g, 7)) {
	case 0:
		close(f->fd[w]);
		f->fd[w] = win_open_in(f->cg[w & 1]);
		fcntl(f->fd[w], F_SETFL, O_NONBLOCK);
		break;
	case 1:
		if (read(f->fd[w], buf, rng_below(&f->g, sizeof(buf))) < 0)
			CHECK(errno == EAGAIN || errno == EINVAL);
		break;
	case 2:
		poll(&p, 1, 0);
		break;
	case 3:
		poke(cell(f->mem, rng_below(&f->g, PAGES), 0), 1);
		break;
	case 4:
		q = mmap(NULL, length, rng_below(&f->g, 8),
			 rng_once_in(&f->g, 3) ? MAP_PRIVATE : MAP_SHARED,
			 f->fd[w], evil(f) & ~(PAGE - 1) & INT64_MAX);
		if (q != MAP_FAILED)
			munmap(q, length);
		break;
	case 5:
		madvise(f->mem, PAGES * PAGE, rng_below(&f->g, 26));
		break;
	default:
		peek(cell(f->mem, rng_below(&f->g, PAGES), 0), NULL);
	}
}

static void prepare(struct fuzz *f)
{
	int n, i, w;

	memset(f, 0, sizeof(*f));
	f->g.s = tap_seed();
	f->cg[0] = cg_make("t/a");
	f->cg[1] = cg_make("t/b");
	REQUIRE_OK(cg_write(f->cg[0], "brumm.max", "2000"));
	REQUIRE_OK(cg_write(f->cg[0], "memory.max", "64M"));
	for (n = 0; n < WINDOWS; n++) {
		f->fd[n] = win_open_in(f->cg[n & 1]);
		fcntl(f->fd[n], F_SETFL, O_NONBLOCK);
	}
	/* Not among those that are closed and opened again. */
	w = win_with(8);
	f->mem = win_mmap(w, PAGES, PROT_READ | PROT_WRITE);
	f->fd[n++] = dev_gate(f->fd[0], 0, PAGES, 0);
	f->fd[n++] = dev_gate(w, 8, PAGES - 8, BRUMM_GATE_SPONSOR);
	f->fd[n++] = w;
	f->fd[n++] = eventfd(0, EFD_NONBLOCK);
	f->fd[n++] = memfd_create("fuzz", 0);
	f->fd[n++] = open("/dev/null", O_RDWR);
	f->fd[n++] = open(BRUMM_DEVICE, O_RDONLY);
	f->fd[n++] = f->cg[0];
	while (n < FDS)
		f->fd[n++] = -1;
	for (i = 0; i < 12; i++)
		REQUIRE(f->fd[i] >= 0);
	f->edge = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(f->edge != MAP_FAILED);
	munmap(f->edge + PAGE, PAGE);
}

static void tell(const struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(f->by_result); i++)
		if (f->by_result[i])
			tap_diag("%8llu %s",
				 (unsigned long long)f->by_result[i],
				 i ? tap_result(-(int)i) : "success");
}

static void damaged_requests(void)
{
	unsigned long rounds = tap_pick(50000, 2000000), i;
	static struct fuzz f;

	prepare(&f);
	for (i = 0; i < rounds; i++) {
		if (rng_once_in(&f.g, 10))
			one_other(&f);
		else
			one_ioctl(&f);
		STOP_IF_FAILED();
	}
	tell(&f);
	/* Not all of it bounced off at the first check. */
	CHECK(f.by_result[0] > rounds / 20);
}

/* The request changes while it is being read. */
struct shaker {
	union request r;
	uint32_t stop;
	uint64_t seed;
};

static void *shake(void *arg)
{
	struct shaker *s = arg;
	struct rng g = { s->seed };

	while (!get(&s->stop)) {
		uint64_t value = rng_next(&g) & (PAGES * PAGE - 1);
		uint32_t at = rng_below(&g, sizeof(struct brumm_map) / 4);

		__atomic_store_n((uint32_t *)s->r.bytes + at,
				 rng_once_in(&g, 2) ? (uint32_t)value :
				 rng_below(&g, 64), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void changing_requests(void)
{
	unsigned long rounds = tap_pick(10000, 500000), i;
	static struct shaker s;
	static struct fuzz f;
	pthread_t t;

	prepare(&f);
	s.seed = f.g.s;
	t = start(shake, &s);
	for (i = 0; i < rounds; i++) {
		unsigned int c = rng_below(&f.g, ARRAY_SIZE(commands));
		union request r;
		int ret;

		right_request(&f, c, &r);
		memcpy(&s.r, &r, commands[c].size);
		ret = dev_ioctl(f.fd[rng_below(&f.g, WINDOWS)],
				commands[c].cmd, &s.r);
		if (ret > 2 && c == 2)
			close(ret);
		if (ret < 0 && !documented(c, -ret))
			tap_fail(__FILE__, __LINE__, "command %u gives %s", c,
				 tap_result(ret));
		STOP_IF_FAILED();
	}
	put(&s.stop, 1);
	join(t);
}

static const struct tap_case cases[] = {
	{ "damaged requests", damaged_requests, 900 },
	{ "requests that change meanwhile", changing_requests, 600 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
