// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: each field of each request wrong in turn, from an otherwise right
 * one, gives the documented error and changes nothing.
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "tap.h"

union request {
	struct brumm_info info;
	struct brumm_alloc alloc;
	struct brumm_gate gate;
	struct brumm_map map;
	struct brumm_unmap unmap;
	struct brumm_query query;
	uint8_t bytes[8192];
};

/*
 * What stands: A pages 0 .. 7, of which 0 .. 3 are mapped to B pages 0 .. 3 and
 * those on to C; gate G opens pages 64 .. 67 of B; cgroup T pays.
 */
static struct stage {
	int a, b, c, gate, cgroup;
	struct dump before;
	struct cg_counts counts;
} st;

static const int *windows(void)
{
	static int win[3];

	win[0] = st.a;
	win[1] = st.b;
	win[2] = st.c;
	return win;
}

static void set_stage(void)
{
	st.cgroup = cg_make("t");
	st.a = win_open_in(st.cgroup);
	st.b = win_open();
	st.c = win_open();
	st.gate = dev_gate(st.b, 64, 4, 0);
	REQUIRE(st.gate >= 0);
	REQUIRE_OK(dev_alloc(st.a, 0, 8));
	REQUIRE_OK(dev_map(st.a, 0, 4, st.b, 0, RWD));
	REQUIRE_OK(dev_map(st.b, 0, 4, st.c, 0, R));
	dump_take(&st.before, windows(), 3);
	st.counts = cg_counts(st.cgroup);
}

static bool stage_same(void)
{
	struct cg_counts now = cg_counts(st.cgroup);
	struct dump d;
	bool same;

	dump_take(&d, windows(), 3);
	same = dump_same(&st.before, &d) &&
	       !memcmp(&now, &st.counts, sizeof(now));
	dump_free(&d);
	return same;
}

/* ---- the right requests ----------------------------------------------- */

static void right_info(union request *r)
{
	r->info = (struct brumm_info){ .size = sizeof(r->info) };
}

static void right_alloc(union request *r)
{
	r->alloc = (struct brumm_alloc){
		.size = sizeof(r->alloc),
		.offset = 16 * PAGE,
		.length = 2 * PAGE,
	};
}

static void right_gate(union request *r)
{
	r->gate = (struct brumm_gate){
		.size = sizeof(r->gate),
		.offset = 16 * PAGE,
		.length = 2 * PAGE,
	};
}

static void right_map(union request *r)
{
	r->map = (struct brumm_map){
		.size = sizeof(r->map),
		.source = 4 * PAGE,
		.length = 2 * PAGE,
		.target = 16 * PAGE,
		.fd = st.b,
		.rights = RW,
	};
}

static void right_unmap(union request *r)
{
	r->unmap = (struct brumm_unmap){
		.size = sizeof(r->unmap),
		.offset = 0,
		.length = 2 * PAGE,
	};
}

static void right_query(union request *r)
{
	r->query = (struct brumm_query){
		.size = sizeof(r->query),
		.offset = 0,
	};
}

/* A field and the wrong values that do not depend on anything. */
struct field {
	const char *name;
	uint16_t offset, size;
	struct {
		uint64_t value;
		int err;
	} bad[6];
};

#define FIELD(type, member, ...)					\
	{ #member, offsetof(struct type, member),			\
	  sizeof(((struct type *)0)->member), { __VA_ARGS__ } }

/* A size, offsets and lengths are wrong in the same ways everywhere. */
#define BAD_SIZE	{ 0, -EINVAL }, { 1, -EINVAL }, { 8, -EINVAL },	\
			{ ~0u, -E2BIG }, { PAGE + 8, -E2BIG }
#define BAD_OFFSET	{ 1, -EINVAL }, { PAGE / 2, -EINVAL },		\
			{ BRUMM_WINDOW_BYTES, -EOVERFLOW },		\
			{ BRUMM_WINDOW_BYTES - PAGE, -EOVERFLOW },	\
			{ -PAGE, -EOVERFLOW }, { 1ULL << 63, -EOVERFLOW }
#define BAD_LENGTH	{ 0, -EINVAL }, { 1, -EINVAL }, { PAGE + 1, -EINVAL }, \
			{ BRUMM_WINDOW_BYTES + PAGE, -EOVERFLOW },	\
			{ -PAGE, -EOVERFLOW }, { 1ULL << 63, -EOVERFLOW }

static const struct field info_fields[] = {
	FIELD(brumm_info, size, { 0, -EINVAL }, { 1, -EINVAL }, { 8, -EINVAL },
	      { ~0u, -E2BIG }, { PAGE + 8, -E2BIG }),
	{ NULL },
};

static const struct field alloc_fields[] = {
	FIELD(brumm_alloc, size, BAD_SIZE),
	FIELD(brumm_alloc, offset, BAD_OFFSET),
	FIELD(brumm_alloc, length, BAD_LENGTH),
	FIELD(brumm_alloc, offset, { 0, -EEXIST }, { 7 * PAGE, -EEXIST }),
	{ NULL },
};

static const struct field gate_fields[] = {
	FIELD(brumm_gate, size, BAD_SIZE),
	FIELD(brumm_gate, offset, BAD_OFFSET),
	FIELD(brumm_gate, length, BAD_LENGTH),
	{ NULL },
};

static const struct field map_fields[] = {
	FIELD(brumm_map, size, BAD_SIZE),
	FIELD(brumm_map, source, BAD_OFFSET),
	FIELD(brumm_map, source, { 7 * PAGE, -ENOENT }, { 8 * PAGE, -ENOENT },
	      { BRUMM_WINDOW_BYTES - 2 * PAGE, -ENOENT }),
	FIELD(brumm_map, length, BAD_LENGTH),
	FIELD(brumm_map, length, { 5 * PAGE, -ENOENT }),
	FIELD(brumm_map, target, BAD_OFFSET),
	FIELD(brumm_map, target, { 0, -EEXIST }, { 3 * PAGE, -EEXIST }),
	FIELD(brumm_map, fd, { -2, -EBADF }, { 9999, -EBADF },
	      { 0x80000000u, -EBADF }, { 0x7fffffffu, -EBADF }),
	FIELD(brumm_map, rights, { 0, -EINVAL }, { W, -EINVAL },
	      { X, -EINVAL }, { D, -EINVAL }, { W | X | D, -EINVAL }),
	FIELD(brumm_map, sponsor, { 1, -EINVAL }, { -1, -EINVAL }),
	FIELD(brumm_map, reserved, { 1, -EINVAL }, { 0x80000000u, -EINVAL }),
	{ NULL },
};

static const struct field unmap_fields[] = {
	FIELD(brumm_unmap, size, BAD_SIZE),
	FIELD(brumm_unmap, offset, BAD_OFFSET),
	FIELD(brumm_unmap, length, BAD_LENGTH),
	FIELD(brumm_unmap, rights, { R, -EINVAL }, { W, -EINVAL },
	      { ALL, -EINVAL }),
	FIELD(brumm_unmap, reserved, { 1, -EINVAL }, { 0x80000000u, -EINVAL }),
	{ NULL },
};

static const struct field query_fields[] = {
	FIELD(brumm_query, size, BAD_SIZE),
	FIELD(brumm_query, offset, { 1, -EINVAL }, { PAGE / 2, -EINVAL },
	      { BRUMM_WINDOW_BYTES, -EOVERFLOW }, { -PAGE, -EOVERFLOW },
	      { 8 * PAGE, -ENOENT },
	      { BRUMM_WINDOW_BYTES - PAGE, -ENOENT }),
	{ NULL },
};

/**
 * struct command - an ioctl
 * @flags: those it knows
 * @rights: offset of a member with rights, 0: none
 * @returns_fd: the result of success is a descriptor
 * @answers: writes something into the request
 */
static const struct command {
	const char *name;
	unsigned long cmd;
	uint32_t size;
	void (*right)(union request *r);
	const struct field *fields;
	uint16_t flags_at;
	uint32_t flags;
	uint16_t rights_at;
	bool returns_fd;
	bool answers;
} commands[] = {
	{ "INFO", BRUMM_IOC_INFO, sizeof(struct brumm_info), right_info,
	  info_fields, .answers = true },
	{ "ALLOC", BRUMM_IOC_ALLOC, sizeof(struct brumm_alloc), right_alloc,
	  alloc_fields, offsetof(struct brumm_alloc, flags), 0 },
	{ "GATE", BRUMM_IOC_GATE, sizeof(struct brumm_gate), right_gate,
	  gate_fields, offsetof(struct brumm_gate, flags),
	  BRUMM_GATE_SPONSOR, .returns_fd = true },
	{ "MAP", BRUMM_IOC_MAP, sizeof(struct brumm_map), right_map,
	  map_fields, offsetof(struct brumm_map, flags), BRUMM_MAP_GRANT |
	  BRUMM_MAP_REPLACE | BRUMM_MAP_SPONSOR,
	  offsetof(struct brumm_map, rights) },
	{ "UNMAP", BRUMM_IOC_UNMAP, sizeof(struct brumm_unmap), right_unmap,
	  unmap_fields, offsetof(struct brumm_unmap, flags),
	  BRUMM_UNMAP_SELF | BRUMM_UNMAP_RIGHTS,
	  offsetof(struct brumm_unmap, rights), .answers = true },
	{ "QUERY", BRUMM_IOC_QUERY, sizeof(struct brumm_query), right_query,
	  query_fields, offsetof(struct brumm_query, flags),
	  BRUMM_QUERY_NEXT | BRUMM_QUERY_COUNT, .answers = true },
};

static void store(union request *r, uint16_t at, uint16_t size, uint64_t value)
{
	/* Little-endian, as everything here. */
	memcpy(r->bytes + at, &value, size);
}

/* Nothing but the named error, and nothing has changed. */
static void expect(const struct command *c, union request *r, const char *what,
		   uint64_t value, int err)
{
	int ret = dev_ioctl(st.a, c->cmd, r);

	if (ret != err)
		tap_fail(__FILE__, __LINE__, "%s with %s %#llx gives %s, want %s",
			 c->name, what, (unsigned long long)value,
			 tap_result(ret), tap_result(err));
	if (!stage_same()) {
		tap_fail(__FILE__, __LINE__, "%s with %s %#llx changed something",
			 c->name, what, (unsigned long long)value);
		tap_stop();
	}
}

static void each_field(void)
{
	const struct command *c;
	const struct field *f;
	union request r;
	unsigned int i;

	set_stage();
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		for (f = c->fields; f->name; f++) {
			for (i = 0; i < ARRAY_SIZE(f->bad) && f->bad[i].err;
			     i++) {
				memset(&r, 0, sizeof(r));
				c->right(&r);
				store(&r, f->offset, f->size, f->bad[i].value);
				/* A size says there is more: it is not zero. */
				if (f->bad[i].err == -E2BIG)
					r.bytes[c->size + 1] = 1;
				expect(c, &r, f->name, f->bad[i].value,
				       f->bad[i].err);
			}
		}
	}
}

static void each_flag(void)
{
	const struct command *c;
	union request r;
	uint32_t bit;

	set_stage();
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		if (!c->flags_at)
			continue;
		for (bit = 1; bit; bit <<= 1) {
			if (bit & c->flags)
				continue;
			memset(&r, 0, sizeof(r));
			c->right(&r);
			store(&r, c->flags_at, 4, bit);
			expect(c, &r, "flag", bit, -EOPNOTSUPP);
			/* The known ones do not hide it. */
			store(&r, c->flags_at, 4, bit | c->flags);
			expect(c, &r, "flags", bit | c->flags, -EOPNOTSUPP);
		}
	}
}

static void each_right(void)
{
	const struct command *c;
	union request r;
	uint32_t bit;

	set_stage();
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		if (!c->rights_at)
			continue;
		for (bit = BRUMM_RIGHTS_ALL + 1; bit; bit <<= 1) {
			memset(&r, 0, sizeof(r));
			c->right(&r);
			if (c->cmd == BRUMM_IOC_UNMAP)
				store(&r, c->flags_at, 4, BRUMM_UNMAP_RIGHTS);
			store(&r, c->rights_at, 4, R | bit);
			if (c->cmd == BRUMM_IOC_UNMAP)
				store(&r, c->rights_at, 4, W | bit);
			expect(c, &r, "right", bit, -EOPNOTSUPP);
		}
	}
	/* R cannot be taken alone, and taking nothing is nonsense. */
	memset(&r, 0, sizeof(r));
	right_unmap(&r);
	r.unmap.flags = BRUMM_UNMAP_RIGHTS;
	for (bit = 0; bit <= ALL; bit++) {
		if (bit && !(bit & R))
			continue;
		r.unmap.rights = bit;
		expect(&commands[4], &r, "rights", bit, -EINVAL);
	}
}

/* Sizes of older and newer callers, with and without something behind. */
static void each_size(void)
{
	const struct command *c;
	union request r;
	uint32_t size;

	set_stage();
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		for (size = c->size + 1; size <= PAGE; size += 1 + size / 16) {
			memset(&r, 0, sizeof(r));
			c->right(&r);
			store(&r, 0, 4, size);
			r.bytes[size - 1] = 0x80;
			expect(c, &r, "tail", size, -E2BIG);
		}
		for (size = 0; size < 4; size++) {
			memset(&r, 0, sizeof(r));
			c->right(&r);
			store(&r, 0, 4, size);
			expect(c, &r, "size", size, -EINVAL);
		}
	}
}

static void longer_with_zeroes(void)
{
	const struct command *c;
	union request r;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		int ret;

		set_stage();
		memset(&r, 0, sizeof(r));
		c->right(&r);
		store(&r, 0, 4, c->size + 64);
		ret = dev_ioctl(st.a, c->cmd, &r);
		if (c->returns_fd)
			CHECK(ret >= 0);
		else
			CHECK_OK(ret);
		close(st.a);
		close(st.b);
		close(st.c);
		close(st.gate);
	}
}

static void output_of_longer_callers(void)
{
	struct {
		struct brumm_info i;
		uint8_t more[64];
	} r = { .i.size = sizeof(r) };
	unsigned int k;
	int w = win_open();

	REQUIRE_OK(dev_ioctl(w, BRUMM_IOC_INFO, &r));
	CHECK_EQ(r.i.version, BRUMM_VERSION);
	for (k = 0; k < sizeof(r.more); k++)
		CHECK_EQ(r.more[k], 0);
}

/* ---- pointers --------------------------------------------------------- */

static void bad_pointers(void)
{
	char *rw = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct command *c;

	REQUIRE(rw != MAP_FAILED);
	munmap(rw + 2 * PAGE, PAGE);
	set_stage();
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		union request *edge = (void *)(rw + 2 * PAGE - c->size + 8);
		union request r;

		expect(c, NULL, "pointer", 0, -EFAULT);
		expect(c, (void *)8, "pointer", 8, -EFAULT);
		expect(c, (void *)(intptr_t)-4096, "pointer", -4096, -EFAULT);
		/* The end of the structure is not there. */
		memset(&r, 0, sizeof(r));
		c->right(&r);
		memcpy(edge, &r, c->size - 8);
		expect(c, edge, "a pointer at the edge", 0, -EFAULT);
	}
}

static void readonly_pointers(void)
{
	char *ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct command *c;

	REQUIRE(ro != MAP_FAILED);
	set_stage();
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		union request r;

		if (!c->answers)
			continue;
		memset(&r, 0, sizeof(r));
		c->right(&r);
		REQUIRE(!mprotect(ro, PAGE, PROT_READ | PROT_WRITE));
		memcpy(ro, &r, c->size);
		REQUIRE(!mprotect(ro, PAGE, PROT_READ));
		expect(c, (void *)ro, "a read-only pointer", 0, -EFAULT);
	}
}

/* ---- commands --------------------------------------------------------- */

static void unknown_commands(void)
{
	union request r;
	unsigned int nr;

	set_stage();
	for (nr = 0; nr < 256; nr++) {
		struct command c = { .name = "command", .size = 64 };

		memset(&r, 0, sizeof(r));
		r.info.size = 64;
		/* A size or a direction makes it another command. */
		c.cmd = _IOC(_IOC_READ | _IOC_WRITE, BRUMM_IOC_TYPE, nr, 4096);
		expect(&c, &r, "number", nr, -ENOTTY);
		c.cmd = _IOC(_IOC_READ | _IOC_WRITE, BRUMM_IOC_TYPE, nr,
			     sizeof(struct brumm_map));
		expect(&c, &r, "number", nr, -ENOTTY);
		if (nr <= _IOC_NR(BRUMM_IOC_QUERY))
			continue;
		c.cmd = _IO(BRUMM_IOC_TYPE, nr);
		expect(&c, &r, "number", nr, -ENOTTY);
	}
	for (nr = 0; nr < ARRAY_SIZE(commands); nr++) {
		struct command c = commands[nr];

		memset(&r, 0, sizeof(r));
		c.right(&r);
		c.cmd = (c.cmd & ~0xff00UL) | ('x' << 8);
		expect(&c, &r, "another type", nr, -ENOTTY);
	}
}

/* ---- descriptors ------------------------------------------------------ */

static void wrong_kinds_of_target(void)
{
	int closed = dev_open(), pipes[2], socks[2], kinds[12], n = 0, i;
	union request r;

	set_stage();
	REQUIRE(!pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	kinds[n++] = pipes[0];
	kinds[n++] = pipes[1];
	kinds[n++] = socks[0];
	kinds[n++] = eventfd(0, 0);
	kinds[n++] = memfd_create("x", 0);
	kinds[n++] = open("/dev/null", O_RDWR);
	kinds[n++] = open("/proc/self/exe", O_RDONLY);
	kinds[n++] = open("/", O_RDONLY | O_DIRECTORY);
	kinds[n++] = st.cgroup;
	for (i = 0; i < n; i++) {
		REQUIRE(kinds[i] >= 0);
		memset(&r, 0, sizeof(r));
		right_map(&r);
		r.map.fd = kinds[i];
		expect(&commands[3], &r, "kind of descriptor", i, -EINVAL);
	}
	/* O_PATH gives a name of a file, not the file. */
	memset(&r, 0, sizeof(r));
	right_map(&r);
	r.map.fd = open(BRUMM_DEVICE, O_PATH);
	REQUIRE(r.map.fd >= 0);
	expect(&commands[3], &r, "O_PATH", 0, -EBADF);
	close(closed);
	r.map.fd = closed;
	expect(&commands[3], &r, "closed descriptor", 0, -EBADF);
	r.map.fd = -1;
	r.map.target = 4 * PAGE;
	expect(&commands[3], &r, "same range", 0, -EINVAL);
	r.map.target = 5 * PAGE;
	expect(&commands[3], &r, "overlap", 5, -EINVAL);
	r.map.target = 3 * PAGE;
	expect(&commands[3], &r, "overlap", 3, -EINVAL);
	r.map.flags = BRUMM_MAP_REPLACE;
	expect(&commands[3], &r, "overlap with REPLACE", 3, -EINVAL);
	r.map.flags = BRUMM_MAP_GRANT;
	expect(&commands[3], &r, "overlap with GRANT", 3, -EINVAL);
}

/* A window that was opened for reading only cannot be changed. */
static void opened_read_only(void)
{
	int w = open(BRUMM_DEVICE, O_RDONLY | O_CLOEXEC);
	int src = win_with(1);
	struct brumm_query q;
	struct brumm_info i;

	REQUIRE(w >= 0);
	CHECK_OK(dev_info(w, &i));
	CHECK_RET(dev_query(w, 0, 0, &q), -ENOENT);
	CHECK_RET(dev_alloc(w, 0, 1), -EBADF);
	CHECK_RET(dev_gate(w, 0, 1, 0), -EBADF);
	CHECK_RET(dev_map(w, 0, 1, SELF, 1, R), -EBADF);
	CHECK_RET(dev_unmap_self(w, 0, 1), -EBADF);
	CHECK_RET(dev_map(src, 0, 1, w, 0, R), -EBADF);
	CHECK(!dev_mmap(w, 0, 1, PROT_READ | PROT_WRITE));
	CHECK_RET(-errno, -EACCES);
}

static void files_of_other_kinds(void)
{
	int null = open("/dev/null", O_RDWR), w = win_open();
	char buf[64] = { 0 };
	unsigned int i;

	REQUIRE(null >= 0);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		CHECK_RET(dev_ioctl(null, commands[i].cmd, buf), -ENOTTY);
	CHECK_EQ(write(w, buf, sizeof(buf)), -1);
	CHECK(errno == EINVAL || errno == EBADF);
	CHECK_EQ(lseek(w, 0, SEEK_SET), -1);
	CHECK_EQ(ftruncate(w, PAGE), -1);
	CHECK_EQ(fallocate(w, 0, 0, PAGE), -1);
}

static const struct tap_case cases[] = {
	{ "each field wrong in turn", each_field },
	{ "each unknown flag", each_flag },
	{ "each unknown right", each_right },
	{ "sizes that are too small, and non-zero tails", each_size },
	{ "a longer request with zeroes is fine", longer_with_zeroes },
	{ "a longer answer is filled with zeroes", output_of_longer_callers },
	{ "pointers to nowhere", bad_pointers },
	{ "pointers that cannot be written to", readonly_pointers },
	{ "unknown commands", unknown_commands },
	{ "descriptors of the wrong kind, and overlap", wrong_kinds_of_target },
	{ "a descriptor for reading only", opened_read_only },
	{ "other files, other operations", files_of_other_kinds },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
