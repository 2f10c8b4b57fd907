// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: wide, deep and random trees are built and revoked whole, and while
 * that goes on others get on with their work: on other frames, and on another
 * subtree of the same frame. Latencies are told, not judged.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

/* ---- the neighbour ---------------------------------------------------- */

enum step { MAP, FAULT, UNMAP, STEPS };

static const char *const step_names[STEPS] = { "map", "fault", "unmap" };

struct worst {
	uint64_t ns;
	uint64_t done;
};

struct neighbour {
	uint32_t ready, stop, busy;	/* busy: the revoke is under way */
	int sibling;			/* a mapping of the same frame */
	struct worst quiet[2][STEPS], during[2][STEPS];
};

static uint64_t timed(struct neighbour *n, int kind, enum step s,
		      uint64_t since)
{
	uint64_t now = now_ns(), took = now - since;
	struct worst *w = get(&n->busy) ? &n->during[kind][s] :
					  &n->quiet[kind][s];

	w->done++;
	if (took > w->ns)
		w->ns = took;
	return now_ns();
}

/* Map, touch and unmap a page of @from. */
static void neighbour_round(struct neighbour *n, int kind, int from, int to,
			    uint32_t *p)
{
	uint64_t t = now_ns();

	REQUIRE_OK(dev_map(from, 0, 1, to, 0, RW));
	t = timed(n, kind, MAP, t);
	CHECK_SIG(poke(p, 1), 0);
	t = timed(n, kind, FAULT, t);
	REQUIRE_OK(dev_unmap(from, 0, 1));
	timed(n, kind, UNMAP, t);
}

static void neighbour(void *arg)
{
	struct neighbour *n = arg;
	int own, to;
	uint32_t *p;

	cg_enter(cg_make("neighbour"));
	own = win_with(1);
	to = win_open();
	p = win_mmap(to, 1, PROT_READ | PROT_WRITE);
	put(&n->ready, 1);
	while (!get(&n->stop)) {
		neighbour_round(n, 0, own, to, p);
		neighbour_round(n, 1, n->sibling, to, p);
	}
}

static void tell(const struct neighbour *n, uint64_t revoke_ns,
		 unsigned long nodes)
{
	static const char *const kinds[] = {
		"other frames", "sibling of the same frame",
	};
	int kind, s;

	tap_diag("revoke of %lu mappings: %llu us", nodes,
		 (unsigned long long)revoke_ns / 1000);
	for (kind = 0; kind < 2; kind++)
		for (s = 0; s < STEPS; s++)
			tap_diag("%s, longest %s: %llu us meanwhile (%llu done), %llu us before (%llu done)",
				 kinds[kind], step_names[s],
				 (unsigned long long)n->during[kind][s].ns / 1000,
				 (unsigned long long)n->during[kind][s].done,
				 (unsigned long long)n->quiet[kind][s].ns / 1000,
				 (unsigned long long)n->quiet[kind][s].done);
}

/*
 * A revoke must not be waited for: work goes on during it. On a machine with
 * one CPU to share the neighbour still gets a good part of the time.
 */
static void check_progress(const struct neighbour *n, uint64_t revoke_ns)
{
	uint64_t want = revoke_ns / 1000000 / 100;	/* one in 100 ms */
	int kind, s;

	for (kind = 0; kind < 2; kind++)
		for (s = 0; s < STEPS; s++)
			CHECK(n->during[kind][s].done >= want);
}

/* Revoke what is derived from page 0 of @w beside a neighbour. */
static void revoke_beside(int w, struct neighbour *n, unsigned long nodes)
{
	struct brumm_unmap u;
	uint64_t start;
	pid_t child;

	child = spawn(neighbour, n);
	await(&n->ready, 1);
	sleep_us(100000);
	put(&n->busy, 1);
	start = now_ns();
	REQUIRE_OK(dev_unmap_flags(w, 0, 1, 0, 0, &u));
	start = now_ns() - start;
	put(&n->busy, 0);
	put(&n->stop, 1);
	reap(child);
	CHECK_EQ(u.nodes, nodes);
	CHECK_EQ(u.pages, nodes);
	tell(n, start, nodes);
	check_progress(n, start);
}

/* ---- trees ------------------------------------------------------------ */

/* The root's page 0 is mapped to @mid, the trunk, and to a sibling. */
struct roots {
	int src, mid;
	struct neighbour *n;
};

static void plant(struct roots *r)
{
	r->n = shared(sizeof(*r->n));
	r->src = win_with(1);
	r->mid = win_open();
	r->n->sibling = win_open();
	REQUIRE_OK(dev_map(r->src, 0, 1, r->mid, 0, RWD));
	REQUIRE_OK(dev_map(r->src, 0, 1, r->n->sibling, 0, RWD));
}

static void wide(void)
{
	unsigned long nodes = tap_pick(100000, 1000000), i;
	int cg = cg_make("a"), to = win_open_in(cg);
	unsigned long shown = 50000;	/* a 32-bit process has not more room */
	uint32_t *p = win_mmap(to, shown, PROT_READ | PROT_WRITE);
	struct roots r;

	plant(&r);
	for (i = 0; i < nodes; i++) {
		/* Scattered in small runs, and every tenth one touched. */
		uint64_t at = (i / 4 * 7919) % (nodes / 4) * 4 + i % 4;

		REQUIRE_OK(dev_map(r.mid, 0, 1, to, at, RW));
		if (i % 10 == 0 && at < shown)
			CHECK_SIG(poke(cell(p, at, 0), i), 0);
	}
	CHECK_COUNTS(cg, nodes, nodes, nodes);
	CHECK_EQ(dev_count(r.mid, 0), nodes);
	revoke_beside(r.mid, r.n, nodes);
	CHECK_COUNTS(cg, 0, 0, 0);
	CHECK_EQ(dev_nodes(to), 0);
	CHECK_EQ(dev_count(r.src, 0), 2);
	CHECK_SIG(peek(cell(p, 0, 0), NULL), SIGBUS);
}

static void deep(void)
{
	int w = win_open(), to = win_open(), round;
	unsigned int i;

	for (round = 0; round < 20; round++) {
		struct brumm_unmap u;

		REQUIRE_OK(dev_alloc(w, 0, 4));
		for (i = 0; i < BRUMM_MAX_DEPTH; i++)
			REQUIRE_OK(dev_map(w, 10 * i, 4, SELF, 10 * (i + 1),
					   RWD));
		CHECK_EQ(dev_depth(w, 10 * BRUMM_MAX_DEPTH), BRUMM_MAX_DEPTH);
		CHECK_RET(dev_map(w, 10 * BRUMM_MAX_DEPTH, 1, to, 0, R),
			  -ELOOP);
		CHECK_RET(dev_map_flags(w, 10 * BRUMM_MAX_DEPTH, 1, to, 0, R,
					BRUMM_MAP_REPLACE), -ELOOP);
		CHECK_EQ(dev_count(w, 0), BRUMM_MAX_DEPTH);
		/* A hole through all levels, then the rest. */
		REQUIRE_OK(dev_unmap_flags(w, 1, 1, 0, 0, &u));
		CHECK_EQ(u.nodes, BRUMM_MAX_DEPTH);
		CHECK_EQ(dev_nodes(w), 2 * BRUMM_MAX_DEPTH + 1);
		REQUIRE_OK(dev_unmap_flags(w, 0, 4, BRUMM_UNMAP_SELF, 0, &u));
		CHECK_EQ(u.nodes, 2 * BRUMM_MAX_DEPTH + 1);
		CHECK_EQ(dev_nodes(w), 0);
	}
}

/* Chains to the limit, many of them below one trunk. */
static void deep_and_wide(void)
{
	unsigned long chains = tap_pick(500, 10000), i;
	unsigned long nodes = chains * (BRUMM_MAX_DEPTH - 1);
	int to = win_open();
	struct roots r;
	unsigned int d;

	plant(&r);
	for (i = 0; i < chains; i++) {
		uint64_t at = i * BRUMM_MAX_DEPTH;

		REQUIRE_OK(dev_map(r.mid, 0, 1, to, at, RWD));
		for (d = 0; d < BRUMM_MAX_DEPTH - 2; d++)
			REQUIRE_OK(dev_map(to, at + d, 1, SELF, at + d + 1,
					   RWD));
	}
	CHECK_EQ(dev_depth(to, BRUMM_MAX_DEPTH - 2), BRUMM_MAX_DEPTH);
	revoke_beside(r.mid, r.n, nodes);
	CHECK_EQ(dev_nodes(to), 0);
}

/* Each mapping from a random earlier one, in two windows. */
static void random_tree(void)
{
	unsigned long nodes = tap_pick(20000, 200000), made = 0;
	struct rng g = { tap_seed() };
	int win[2] = { win_open(), win_open() };
	struct roots r;

	plant(&r);
	REQUIRE_OK(dev_map(r.mid, 0, 1, win[0], 0, RWD));
	for (made = 1; made < nodes;) {
		/* Biased to young ones, so that it gets deep as well. */
		unsigned long up = rng_once_in(&g, 2) ? rng_below(&g, made) :
				   made - 1 - rng_below(&g, made / 4 + 1);
		int ret = dev_map(win[up & 1], up, 1, win[made & 1], made, RWD);

		if (ret == -ELOOP)
			continue;
		REQUIRE_OK(ret);
		made++;
	}
	CHECK_EQ(dev_count(r.mid, 0), nodes);
	revoke_beside(r.mid, r.n, nodes);
	CHECK_EQ(dev_nodes(win[0]), 0);
	CHECK_EQ(dev_nodes(win[1]), 0);
}

/* Many revoke the same tree, from above and from within: each returns. */
struct crowd {
	int w;
	uint64_t page, pages;
};

static void *revoke_part(void *arg)
{
	struct crowd *c = arg;

	REQUIRE_OK(dev_unmap_self(c->w, c->page, c->pages));
	CHECK_RET(dev_rights(c->w, c->page), -ENOENT);
	return NULL;
}

static void crowd(void)
{
	unsigned long nodes = tap_pick(5000, 50000), i;
	int rounds = tap_pick(5, 20), round, t;

	for (round = 0; round < rounds; round++) {
		int src = win_with(1), to = win_open();
		struct crowd c[6];
		pthread_t thread[6];

		REQUIRE_OK(dev_map(src, 0, 1, to, 0, RWD));
		for (i = 1; i < nodes; i++)
			REQUIRE_OK(dev_map(to, (i - 1) / 2, 1, SELF, i, RWD));
		for (t = 0; t < 6; t++) {
			c[t] = (struct crowd){ to, t, nodes / 6 * (t + 1) };
			if (t == 5)
				c[t] = (struct crowd){ src, 0, 1 };
			thread[t] = start(revoke_part, &c[t]);
		}
		for (t = 0; t < 6; t++)
			join(thread[t]);
		CHECK_EQ(dev_nodes(src), 0);
		CHECK_EQ(dev_nodes(to), 0);
		close(src);
		close(to);
	}
}

/* New children cannot escape a running revoke, nor keep it from its end. */
struct feeder {
	int from, to;
	uint32_t stop;
	uint64_t made;
};

static void *feed(void *arg)
{
	struct feeder *f = arg;
	struct rng g = { (uintptr_t)arg };

	while (!get(&f->stop)) {
		int ret = dev_map(f->from, 0, 1, f->to, rng_below(&g, 1 << 20),
				  RWD);

		if (ret && ret != -ENOENT && ret != -EEXIST)
			REQUIRE_OK(ret);
		f->made += !ret;
	}
	return NULL;
}

static void no_escape(void)
{
	unsigned long rounds = tap_pick(200, 5000), i;
	int src = win_with(1), mid = win_open(), to = win_open();
	struct feeder f = { .from = mid, .to = to };
	pthread_t t = start(feed, &f);

	for (i = 0; i < rounds; i++) {
		REQUIRE_OK(dev_map(src, 0, 1, mid, 0, RWD));
		if (i & 1)
			sleep_us(500);
		REQUIRE_OK(dev_unmap(src, 0, 1));
		CHECK_EQ(dev_nodes(mid), 0);
		CHECK_EQ(dev_nodes(to), 0);
		CHECK_EQ(dev_count(src, 0), 0);
		STOP_IF_FAILED();
	}
	put(&f.stop, 1);
	join(t);
	tap_diag("%llu mappings made meanwhile", (unsigned long long)f.made);
	CHECK(f.made > 0);
}

static const struct tap_case cases[] = {
	{ "a wide tree is revoked, others get on", wide, 900 },
	{ "a deep tree, to the limit and no deeper", deep },
	{ "deep chains are revoked, others get on", deep_and_wide, 900 },
	{ "a random tree is revoked, others get on", random_tree, 600 },
	{ "many revokes of one tree at once", crowd, 600 },
	{ "nothing derived meanwhile escapes a revoke", no_escape, 600 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
