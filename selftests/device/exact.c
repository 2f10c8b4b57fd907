// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: when a revoke has returned, nobody reads or writes the frame through
 * a revoked mapping: a reader and writer races with it on the other CPU, and the
 * owner rewrites the frame at once.
 *
 * Word SEEN of the frame is even while it is mapped and odd from the return of
 * the revoke on: who reads an odd number has read through a dead mapping. Word
 * HIT is the receivers' to write; after the return the owner puts a mark there,
 * and it must stay.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

enum { SEEN = 0, HIT = 512 };	/* different cache lines */
enum { MARK = 0x80000000u };

/* How the receiver gets at the frame, or tries to escape. */
enum manner {
	PLAINLY,
	BY_MEM_FILE,	/* as a debugger, by the VMA's access() */
	MOVING,		/* the VMA is moved to and fro by mremap */
	REMAPPING,	/* the window is unmapped and mapped again */
};

/* Shared with the receivers. */
struct race {
	uint32_t stop;
	uint32_t ready;
	uint32_t latest;	/* greatest value of SEEN that was read */
	uint32_t readable;	/* round in which a read must not fail, or 0 */
	uint64_t reads, writes, faults;
	int to;			/* the receivers' window */
	uint64_t pages;		/* of it */
	enum manner manner;
	uint32_t *base;
};

static void saw(struct race *r, uint32_t v)
{
	if (v & 1)
		tap_fail(__FILE__, __LINE__, "read %#x after the revoke", v);
	put(&r->latest, v);
	__atomic_add_fetch(&r->reads, 1, __ATOMIC_RELAXED);
}

static void refused(struct race *r, int sig)
{
	/* Only whose VMA is not always there may miss it. */
	if (r->manner < MOVING || sig != SIGSEGV)
		CHECK_SIG(sig, SIGBUS);
	__atomic_add_fetch(&r->faults, 1, __ATOMIC_RELAXED);
}

static uint32_t *base_of(struct race *r)
{
	return __atomic_load_n(&r->base, __ATOMIC_ACQUIRE);
}

static void read_once(struct race *r, struct rng *g)
{
	uint32_t before = get(&r->readable), v;
	uint64_t page = rng_below(g, r->pages);
	int sig = peek(cell(base_of(r), page, SEEN), &v);

	if (!sig) {
		saw(r, v);
		return;
	}
	refused(r, sig);
	/* Only some rights were revoked: reading goes on as before. */
	if (before && before == get(&r->readable))
		tap_fail(__FILE__, __LINE__, "SIGBUS in round %u", before);
}

static void write_once(struct race *r, struct rng *g, uint32_t n)
{
	uint64_t page = rng_below(g, r->pages);
	int sig = poke(cell(base_of(r), page, HIT), n & ~MARK);

	if (!sig)
		__atomic_add_fetch(&r->writes, 1, __ATOMIC_RELAXED);
	else
		refused(r, sig);
}

/* In turn, at random, so that each follows the other and itself. */
static void *read_and_write(void *arg)
{
	struct race *r = arg;
	struct rng g = { (uintptr_t)&r };
	uint32_t n = 0;

	add(&r->ready, 1);
	while (!get(&r->stop)) {
		if (rng_once_in(&g, 2))
			read_once(r, &g);
		else
			write_once(r, &g, ++n);
	}
	return NULL;
}

static void *read_mem_file(void *arg)
{
	struct race *r = arg;
	struct rng g = { (uintptr_t)&r };
	int fd = open("/proc/self/mem", O_RDWR);
	uint32_t v, n = 0;

	REQUIRE(fd >= 0);
	add(&r->ready, 1);
	while (!get(&r->stop)) {
		if (pread(fd, &v, sizeof(v), (uintptr_t)r->base) == sizeof(v))
			saw(r, v);
		else
			__atomic_add_fetch(&r->faults, 1, __ATOMIC_RELAXED);
		v = ++n & ~MARK;
		if (rng_once_in(&g, 2) &&
		    pwrite(fd, &v, sizeof(v),
			   (uintptr_t)cell(r->base, 0, HIT)) == sizeof(v))
			__atomic_add_fetch(&r->writes, 1, __ATOMIC_RELAXED);
	}
	close(fd);
	return NULL;
}

static void *move_to_and_fro(void *arg)
{
	struct race *r = arg;
	uint64_t bytes = r->pages * PAGE;
	char *room = mmap(NULL, 8 * bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i = 0;

	REQUIRE(room != MAP_FAILED);
	while (!get(&r->stop)) {
		void *to = room + (++i & 3) * 2 * bytes;
		void *p = mremap(r->base, bytes, bytes, MREMAP_MAYMOVE |
				 MREMAP_FIXED, to);

		REQUIRE(p == to);
		__atomic_store_n(&r->base, p, __ATOMIC_RELEASE);
		if (!(i & 7))
			sched_yield();
	}
	return NULL;
}

static void *unmap_and_map(void *arg)
{
	struct race *r = arg;
	uint64_t bytes = r->pages * PAGE;

	while (!get(&r->stop)) {
		REQUIRE(!munmap(r->base, bytes));
		REQUIRE(mmap(r->base, bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, r->to, 0) == r->base);
		sched_yield();
	}
	return NULL;
}

/* The other process, on the other CPU. */
static void receivers(void *arg)
{
	struct race *r = arg;
	pthread_t t = 0;

	r->base = win_mmap(r->to, r->pages, PROT_READ | PROT_WRITE);
	/* Anywhere, the owner's CPU included. */
	if (r->manner == MOVING)
		t = start(move_to_and_fro, r);
	else if (r->manner == REMAPPING)
		t = start(unmap_and_map, r);
	pin_to_cpu(1);
	if (r->manner == BY_MEM_FILE)
		read_mem_file(r);
	else
		read_and_write(r);
	if (t)
		join(t);
}

/*
 * Some time: none, a little, or until a receiver has seen @v. Never by yielding:
 * who else runs on this CPU may take it for long.
 */
static void linger(struct race *r, struct rng *g, uint32_t v)
{
	uint32_t spins = rng_below(g, 4) ? rng_below(g, 300) : 0, i;

	if (rng_once_in(g, 8)) {
		uint64_t end = now_ns() + 5000000;

		while (get(&r->latest) != v && now_ns() < end)
			;
	}
	for (i = 0; i < spins; i++)
		__asm__ volatile("" : : : "memory");
}

struct contest {
	int src, mid;		/* owner's window, and one in between */
	uint32_t *frame;	/* the owner's view of page 0 */
	struct race *race;
	pid_t child;
	struct rng g;
	uint32_t seen;		/* rounds whose value was read by a receiver */
};

static void contest_begin(struct contest *c, uint64_t pages,
			  enum manner manner)
{
	memset(c, 0, sizeof(*c));
	c->g.s = tap_seed();
	c->src = win_with(4);
	c->mid = win_open();
	c->frame = win_mmap(c->src, 4, PROT_READ | PROT_WRITE);
	c->race = shared(sizeof(*c->race));
	c->race->to = win_open();
	c->race->pages = pages;
	c->race->manner = manner;
	c->child = spawn(receivers, c->race);
	pin_to_cpu(0);
	await(&c->race->ready, 1);
}

/* The frame is the owner's alone: nobody sees it, nobody changes it. */
static void alone(struct contest *c, uint32_t round)
{
	uint32_t mark = MARK | round, spins = rng_below(&c->g, 200), i;

	put(cell(c->frame, 0, SEEN), 2 * round + 1);
	put(cell(c->frame, 0, HIT), mark);
	for (i = 0; i < spins; i++)
		__asm__ volatile("" : : : "memory");
	if (get(cell(c->frame, 0, HIT)) != mark)
		tap_fail(__FILE__, __LINE__,
			 "write of %#x after the revoke of round %u",
			 get(cell(c->frame, 0, HIT)), round);
}

static void contest_end(struct contest *c, uint32_t rounds)
{
	struct race *r = c->race;

	put(&r->stop, 1);
	reap(c->child);
	tap_diag("%u rounds, %u seen by a receiver; %llu reads, %llu writes, %llu refused",
		 rounds, c->seen, (unsigned long long)r->reads,
		 (unsigned long long)r->writes, (unsigned long long)r->faults);
	/* Or else there was no race to lose. */
	CHECK(c->seen > rounds / 100);
	CHECK(r->reads > rounds / 100);
}

/*
 * Is there another round? On a busy machine the receivers may not get to run for
 * all that were asked for: then some more, until there was a race.
 */
static bool goes_on(const struct contest *c, uint32_t round, uint32_t rounds)
{
	return round <= rounds ||
	       (round <= 20 * rounds &&
		(c->seen <= rounds / 100 || c->race->reads <= rounds / 100));
}

static void begin_round(struct contest *c, uint32_t round)
{
	put(cell(c->frame, 0, SEEN), 2 * round);
}

static void mapped(struct contest *c, uint32_t round)
{
	linger(c->race, &c->g, 2 * round);
	c->seen += get(&c->race->latest) == 2 * round;
}

static void run_unmap(uint64_t pages, enum manner manner, bool through_mid,
		      uint32_t rounds)
{
	struct contest c;
	uint32_t round;
	uint64_t i;

	contest_begin(&c, pages, manner);
	for (round = 1; goes_on(&c, round, rounds); round++) {
		int from = c.src;

		begin_round(&c, round);
		if (through_mid) {
			REQUIRE_OK(dev_map(c.src, 0, 1, c.mid, 0, RWD));
			from = c.mid;
		}
		for (i = 0; i < pages; i++)
			REQUIRE_OK(dev_map(from, 0, 1, c.race->to, i, RW));
		mapped(&c, round);
		REQUIRE_OK(dev_unmap(c.src, 0, 1));
		alone(&c, round);
		STOP_IF_FAILED();
	}
	contest_end(&c, rounds);
}

static void unmap_is_exact(void)
{
	run_unmap(1, PLAINLY, false, tap_pick(2000, 100000));
}

static void unmap_of_many_is_exact(void)
{
	run_unmap(16, PLAINLY, false, tap_pick(200, 2000));
}

static void unmap_below_is_exact(void)
{
	run_unmap(2, PLAINLY, true, tap_pick(400, 5000));
}

static void unmap_is_exact_for_debuggers(void)
{
	run_unmap(1, BY_MEM_FILE, false, tap_pick(400, 5000));
}

static void unmap_is_exact_for_movers(void)
{
	run_unmap(2, MOVING, false, tap_pick(400, 5000));
}

static void unmap_is_exact_for_remappers(void)
{
	run_unmap(2, REMAPPING, false, tap_pick(400, 5000));
}

/* W is taken: no write lands any more, and no read ever fails. */
static void reduce_is_exact(void)
{
	uint32_t rounds = tap_pick(2000, 100000), round;
	struct contest c;

	contest_begin(&c, 1, PLAINLY);
	for (round = 1; goes_on(&c, round, rounds); round++) {
		uint32_t mark = MARK | round, spins = rng_below(&c.g, 200), i;

		begin_round(&c, round);
		REQUIRE_OK(dev_map(c.src, 0, 1, c.race->to, 0, RW));
		put(&c.race->readable, round);
		mapped(&c, round);
		REQUIRE_OK(dev_unmap_flags(c.src, 0, 1, BRUMM_UNMAP_RIGHTS, W,
					   NULL));
		put(cell(c.frame, 0, HIT), mark);
		for (i = 0; i < spins; i++)
			__asm__ volatile("" : : : "memory");
		CHECK_EQ(get(cell(c.frame, 0, HIT)), mark);
		put(&c.race->readable, 0);
		REQUIRE_OK(dev_unmap(c.src, 0, 1));
		alone(&c, round);
		STOP_IF_FAILED();
	}
	CHECK(c.race->writes > rounds / 100);
	contest_end(&c, rounds);
}

/* The place gets another frame, by REPLACE; the old one is out of reach. */
static void replace_is_exact(void)
{
	uint32_t rounds = tap_pick(400, 5000), round;
	struct contest c;

	contest_begin(&c, 1, PLAINLY);
	for (round = 1; goes_on(&c, round, rounds); round++) {
		begin_round(&c, round);
		REQUIRE_OK(dev_map_flags(c.src, 0, 1, c.race->to, 0, RW,
					 BRUMM_MAP_REPLACE));
		mapped(&c, round);
		/* Page 1 stays even for ever. */
		REQUIRE_OK(dev_map_flags(c.src, 1, 1, c.race->to, 0, RW,
					 BRUMM_MAP_REPLACE));
		alone(&c, round);
		STOP_IF_FAILED();
	}
	contest_end(&c, rounds);
}

/* The receiver's mapping is granted away from under him. */
static void grant_is_exact(void)
{
	uint32_t rounds = tap_pick(400, 5000), round;
	struct contest c;

	contest_begin(&c, 1, PLAINLY);
	for (round = 1; goes_on(&c, round, rounds); round++) {
		begin_round(&c, round);
		REQUIRE_OK(dev_map(c.src, 0, 1, c.race->to, 0, RWD));
		mapped(&c, round);
		REQUIRE_OK(dev_grant(c.race->to, 0, 1, c.mid, 0, RWD));
		alone(&c, round);
		REQUIRE_OK(dev_unmap(c.src, 0, 1));
		STOP_IF_FAILED();
	}
	contest_end(&c, rounds);
}

/* A window in between is closed: what came through it is gone on return. */
static void close_is_exact(void)
{
	uint32_t rounds = tap_pick(400, 5000), round;
	struct contest c;

	contest_begin(&c, 1, PLAINLY);
	for (round = 1; goes_on(&c, round, rounds); round++) {
		int mid = win_open();

		begin_round(&c, round);
		REQUIRE_OK(dev_map(c.src, 0, 1, mid, 0, RWD));
		REQUIRE_OK(dev_map(mid, 0, 1, c.race->to, 0, RW));
		mapped(&c, round);
		close(mid);
		alone(&c, round);
		STOP_IF_FAILED();
	}
	contest_end(&c, rounds);
}

/* Revoked by two at once, owner and middle: exact for both. */
static void *second_revoker(void *arg)
{
	struct contest *c = arg;

	while (!get(&c->race->stop))
		REQUIRE_OK(dev_unmap(c->mid, 0, 1));
	return NULL;
}

static void joined_revokes_are_exact(void)
{
	uint32_t rounds = tap_pick(400, 5000), round;
	struct contest c;
	pthread_t t;

	contest_begin(&c, 4, PLAINLY);
	t = start(second_revoker, &c);
	for (round = 1; round <= rounds; round++) {
		uint64_t i;

		begin_round(&c, round);
		REQUIRE_OK(dev_map(c.src, 0, 1, c.mid, 0, RWD));
		for (i = 0; i < 4; i++)
			REQUIRE_OK(dev_map(c.mid, 0, 1, c.race->to, i, RW));
		mapped(&c, round);
		REQUIRE_OK(dev_unmap(c.src, 0, 1));
		alone(&c, round);
		STOP_IF_FAILED();
	}
	put(&c.race->stop, 1);
	join(t);
	c.seen = rounds;	/* the other revoker often comes first */
	contest_end(&c, rounds);
}

/* The frame is freed and comes back as somebody else's: never seen. */
static void freed_frames_are_not_seen(void)
{
	uint32_t rounds = tap_pick(400, 5000), round;
	struct contest c;
	uint32_t *p;

	contest_begin(&c, 1, PLAINLY);
	p = win_mmap(c.mid, 8, PROT_READ | PROT_WRITE);
	for (round = 1; goes_on(&c, round, rounds); round++) {
		unsigned int i;

		REQUIRE_OK(dev_alloc(c.mid, 0, 1));
		put(cell(p, 0, SEEN), 2 * round);
		REQUIRE_OK(dev_map(c.mid, 0, 1, c.race->to, 0, RW));
		mapped(&c, round);
		REQUIRE_OK(dev_unmap_self(c.mid, 0, 1));
		/* Most likely the same frame is among these. */
		REQUIRE_OK(dev_alloc(c.mid, 0, 8));
		for (i = 0; i < 8; i++) {
			CHECK_EQ(get(cell(p, i, HIT)), 0);
			put(cell(p, i, SEEN), 2 * round + 1);
		}
		REQUIRE_OK(dev_unmap_self(c.mid, 0, 8));
		STOP_IF_FAILED();
	}
	contest_end(&c, rounds);
}

static const struct tap_case cases[] = {
	{ "UNMAP: no stale read, no late write", unmap_is_exact, 1200 },
	{ "UNMAP of many mappings of the frame", unmap_of_many_is_exact, 600 },
	{ "UNMAP through a window in between", unmap_below_is_exact, 600 },
	{ "UNMAP against reads of /proc/self/mem",
	  unmap_is_exact_for_debuggers, 600 },
	{ "UNMAP while the VMA is moved", unmap_is_exact_for_movers, 600 },
	{ "UNMAP while the window is mmapped anew",
	  unmap_is_exact_for_remappers, 600 },
	{ "UNMAP of W: no late write, no read fails", reduce_is_exact, 1200 },
	{ "REPLACE", replace_is_exact, 600 },
	{ "GRANT", grant_is_exact, 600 },
	{ "close of a window in between", close_is_exact, 600 },
	{ "two revokes at once", joined_revokes_are_exact, 600 },
	{ "freed frames", freed_frames_are_not_seen, 600 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
