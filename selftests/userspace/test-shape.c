// SPDX-License-Identifier: GPL-2.0
/*
 * Plans of shapes, by the rules that they have to keep, and their counts, by a
 * second way of counting. Without the module.
 */
#define _GNU_SOURCE
#include "common.h"

#include "../../userspace/brumm/bench/shape-plan.h"

static const struct shape_spec specs[] = {
	{ .kind = SHAPE_SINGLE_FRAME, .n = 1 },
	{ .kind = SHAPE_SINGLE_FRAME, .n = 300, .windows = 3 },
	{ .kind = SHAPE_MANY_FRAMES, .n = 300 },
	{ .kind = SHAPE_MANY_FRAMES, .n = 300, .gap = 40, .seed = 7 },
	{ .kind = SHAPE_RANDOM_PAGES, .n = 1, .seed = 1 },
	{ .kind = SHAPE_RANDOM_PAGES, .n = 5000, .seed = 2 },
	{ .kind = SHAPE_RANDOM_PAGES, .n = 5000, .seed = 3, .windows = 5 },
	{ .kind = SHAPE_RANDOM_PAGES, .n = 999, .width = 1, .depth = 63 },
	{ .kind = SHAPE_RANDOM_RANGES, .n = 5000, .frames = 77, .seed = 4 },
	{ .kind = SHAPE_RANDOM_RANGES, .n = 500, .gap = 3, .seed = 5, .windows = 2 },
	{ .kind = SHAPE_RANGE, .n = 1, .frames = 262144 },
	{ .kind = SHAPE_CHAIN, .n = 63, .frames = 5, .windows = 4 },
};

#define NR_SPECS (sizeof(specs) / sizeof(specs[0]))

static struct shape *plan(const struct shape_spec *spec)
{
	struct shape *s = NULL;

	assert_int_equal(shape_plan(spec, &s), 0);
	assert_non_null(s);
	return s;
}

static void each(void (*judge)(const struct shape *s))
{
	size_t i;

	for (i = 0; i < NR_SPECS; i++) {
		struct shape *s = plan(&specs[i]);

		judge(s);
		shape_free(s);
	}
}

static void judge_tree(const struct shape *s)
{
	uint64_t i;

	assert_int_equal(s->nr, s->spec.n + 1);
	for (i = 1; i < s->nr; i++) {
		const struct shape_node *n = &s->nodes[i];
		const struct shape_node *up = &s->nodes[n->parent];

		assert_true(n->parent < i);
		assert_true(n->pages >= 1);
		assert_true(n->from + n->pages <= up->pages);
		assert_int_equal(n->depth, up->depth + 1);
		assert_true(n->depth < BRUMM_MAX_DEPTH);
		assert_true(n->window < s->spec.windows);
		if (s->spec.kind == SHAPE_RANDOM_PAGES ||
		    s->spec.kind == SHAPE_RANDOM_RANGES)
			assert_true(n->depth <= s->spec.depth);
	}
}

static void test_tree(void **state)
{
	(void)state;
	each(judge_tree);
}

static int by_place(const void *a, const void *b)
{
	const struct shape_node *x = a, *y = b;

	if (x->window != y->window)
		return x->window < y->window ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* No two at one place; with a gap, no two side by side. */
static void judge_places(const struct shape *s)
{
	size_t size = s->nr * sizeof(*s->nodes);
	struct shape_node *nodes = malloc(size);
	uint64_t i;

	assert_non_null(nodes);
	memcpy(nodes, s->nodes, size);
	qsort(nodes, s->nr, sizeof(*nodes), by_place);
	for (i = 0; i < s->nr; i++) {
		const struct shape_node *n = &nodes[i], *last = n - 1;

		assert_true(n->start + (uint64_t)n->pages <=
			    s->views[n->window].pages);
		if (!i || last->window != n->window)
			continue;
		assert_true(n->start >= last->start + last->pages);
		if (s->spec.gap)
			assert_true(n->start > last->start + last->pages);
	}
	free(nodes);
}

static void test_places(void **state)
{
	(void)state;
	each(judge_places);
}

static bool same(const struct shape *a, const struct shape *b)
{
	return a->nr == b->nr &&
	       !memcmp(a->nodes, b->nodes, a->nr * sizeof(*a->nodes));
}

static void test_seeds(void **state)
{
	struct shape_spec spec = {
		.kind = SHAPE_RANDOM_RANGES, .n = 200, .seed = 1,
	};
	struct shape *first = plan(&spec), *s;
	uint64_t seed;

	(void)state;
	s = plan(&spec);
	assert_true(same(first, s));
	shape_free(s);
	for (seed = 2; seed < 200; seed++) {
		spec.seed = seed;
		s = plan(&spec);
		assert_false(same(first, s));
		shape_free(s);
	}
	spec.seed = 1ull << 40 | 1;
	s = plan(&spec);
	assert_false(same(first, s));
	shape_free(s);
	shape_free(first);
}

/* Random trees are wide and deep, and differ. */
static void test_random(void **state)
{
	struct shape *s = plan(&(struct shape_spec){
		.kind = SHAPE_RANDOM_PAGES, .n = 5000, .seed = 2 });
	uint32_t children[5001] = { 0 }, deepest = 0, widest = 0, leaves = 0;
	uint64_t i;

	(void)state;
	for (i = 1; i < s->nr; i++) {
		if (s->nodes[i].parent)
			children[s->nodes[i].parent]++;
		if (s->nodes[i].depth > deepest)
			deepest = s->nodes[i].depth;
	}
	for (i = 1; i < s->nr; i++) {
		leaves += !children[i];
		if (children[i] > widest)
			widest = children[i];
	}
	assert_int_equal(deepest, 12);
	assert_int_equal(widest, 4);
	assert_in_range(leaves, 5000 / 4, 5000 * 3 / 4);
	shape_free(s);
}

/* As if windows 0 and up belonged to these cgroups; then counted by hand. */
static void test_counts(void **state)
{
	struct shape *s = plan(&(struct shape_spec){
		.kind = SHAPE_CHAIN, .n = 3, .frames = 10, .windows = 2 });
	struct shape_counts c;

	(void)state;
	assert_int_equal(shape_mappings(s), 3);
	/* Nobody pays for the base; who gets it first pays for all below. */
	s->sponsors[1] = s->sponsors[2] = s->sponsors[3] = 42;
	s->first[1] = true;
	shape_charged(s, 42, &c);
	assert_true(c.lookup == 1 && c.map == 3 && c.pt == 30);
	shape_charged(s, 0, &c);
	assert_true(c.lookup == 0 && c.map == 0 && c.pt == 0);
	shape_charged(s, 41, &c);
	assert_true(c.lookup == 0 && c.map == 0 && c.pt == 0);
	shape_revoked(s, SHAPE_BY_UNMAP, 0, &c);
	assert_true(c.lookup == 2 && c.map == 3 && c.pt == 30);
	shape_revoked(s, SHAPE_BY_UNMAP_SELF, 0, &c);
	assert_true(c.lookup == 2 && c.map == 4 && c.pt == 40);
	shape_revoked(s, SHAPE_BY_RECLAIM, 42, &c);
	assert_true(c.lookup == 1 && c.map == 3 && c.pt == 30);
	shape_revoked(s, SHAPE_BY_MUNMAP, 0, &c);
	assert_true(c.lookup == 0 && c.map == 0 && c.pt == 40);
	/* The base is paid for: it is the one first. */
	s->sponsors[0] = 42;
	s->first[0] = true;
	s->first[1] = false;
	shape_revoked(s, SHAPE_BY_UNMAP, 0, &c);
	assert_true(c.lookup == 1 && c.map == 3 && c.pt == 30);
	shape_revoked(s, SHAPE_BY_UNMAP_SELF, 0, &c);
	assert_true(c.lookup == 1 && c.map == 4 && c.pt == 40);
	shape_free(s);
}

static void test_refused(void **state)
{
	static const struct {
		struct shape_spec spec;
		int err;
	} bad[] = {
		{ { .kind = SHAPE_SINGLE_FRAME }, -EINVAL },
		{ { .kind = SHAPE_CHAIN + 1, .n = 1 }, -EINVAL },
		{ { .kind = SHAPE_CHAIN, .n = 64 }, -ERANGE },
		{ { .kind = SHAPE_MANY_FRAMES, .n = 9, .frames = 8 }, -EINVAL },
		{ { .kind = SHAPE_RANDOM_PAGES, .n = 9, .depth = 64 }, -EINVAL },
		{ { .kind = SHAPE_RANGE, .n = 1, .frames = 1ull << 31 }, -ERANGE },
		{ { .kind = SHAPE_RANGE, .n = 2, .frames = 1ull << 30 }, -ERANGE },
		{ { .kind = SHAPE_RANGE, .n = 1, .nr_groups = 1 }, -EINVAL },
	};
	struct shape *s = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(shape_plan(&bad[i].spec, &s), bad[i].err);
		assert_null(s);
	}
	shape_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_refused),
	};

	return RUN_TAP("shape", tests);
}
