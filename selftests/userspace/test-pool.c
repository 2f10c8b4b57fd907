// SPDX-License-Identifier: GPL-2.0
/* The pool against a model with one byte a page. */
#define _GNU_SOURCE
#include "common.h"
#include "internal.h"
#include "pool.h"

#define PAGES	512
#define SLOTS	64

enum { CLEAN, DIRTY, LOST };
static unsigned char owner[PAGES];	/* 0: free, otherwise slot + 1 */
static unsigned char content[PAGES];
static int fail_zero_at = -1;

static int zero(void *arg, uint64_t start, uint64_t pages)
{
	uint64_t i;

	(void)arg;
	assert_true(pages && start + pages <= PAGES);
	for (i = start; i < start + pages; i++) {
		if ((int)i == fail_zero_at)
			return -EFAULT;
		assert_int_equal(owner[i], 0);
		content[i] = CLEAN;
	}
	return 0;
}

static void check(const struct pool *p)
{
	const struct extent *e;
	uint64_t seen = 0, end = 0, i;

	for (e = p->free; e; e = e->next) {
		assert_true(e->pages > 0);
		assert_true(e->start >= end);
		end = e->start + e->pages;
		assert_true(end <= PAGES);
		assert_true(e->cleaned < e->pages);
		assert_true(e->dirty || !e->cleaned);
		for (i = e->start; i < end; i++) {
			assert_int_equal(owner[i], 0);
			if (!e->dirty || i < e->start + e->cleaned)
				assert_int_equal(content[i], CLEAN);
		}
		seen += e->pages;
		/* Neighbours of one kind are one extent. */
		if (e->next && e->next->start == end && !e->cleaned &&
		    !e->next->cleaned)
			assert_true(e->dirty != e->next->dirty);
	}
	assert_int_equal(seen, p->nr_free);
}

static void random_operations(void **state)
{
	struct pool p = { .zero = zero };
	struct extent *slot[SLOTS] = { 0 }, *e;
	unsigned int seed = 20240501, k, max, n;
	uint64_t want, got, i;
	int err, step;

	(void)state;
	memset(owner, 0, sizeof(owner));
	memset(content, CLEAN, sizeof(content));
	assert_int_equal(pool_init(&p, PAGES), 0);
	for (step = 0; step < 200000; step++) {
		k = (unsigned int)rand_r(&seed) % SLOTS;
		if (rand_r(&seed) % 3 == 0) {
			pool_clean(&p, 1 + (uint64_t)rand_r(&seed) % 16);
		} else if (slot[k]) {
			for (e = slot[k]; e; e = e->next)
				for (i = 0; i < e->pages; i++)
					owner[e->start + i] = 0;
			pool_give(&p, slot[k]);
			slot[k] = NULL;
		} else {
			want = 1 + (uint64_t)rand_r(&seed) % 40;
			max = 1 + (unsigned int)rand_r(&seed) % 5;
			got = p.nr_free;
			err = pool_take(&p, want, max, &slot[k]);
			if (err) {
				assert_int_equal(err, -ENOMEM);
				assert_null(slot[k]);
				assert_int_equal(p.nr_free, got);
				continue;
			}
			got = n = 0;
			for (e = slot[k]; e; e = e->next, n++) {
				for (i = e->start; i < e->start + e->pages; i++) {
					assert_int_equal(owner[i], 0);
					assert_int_equal(content[i], CLEAN);
					owner[i] = (unsigned char)(k + 1);
					content[i] = DIRTY;
				}
				got += e->pages;
			}
			assert_int_equal(got, want);
			assert_true(n <= max);
		}
		check(&p);
	}
	for (k = 0; k < SLOTS; k++) {
		for (e = slot[k]; e; e = e->next)
			for (i = 0; i < e->pages; i++)
				owner[e->start + i] = 0;
		pool_give(&p, slot[k]);
	}
	while (pool_clean(&p, 7))
		check(&p);
	/* Everything is one clean extent again. */
	assert_int_equal(p.nr_free, PAGES);
	assert_int_equal(p.free->pages, PAGES);
	pool_destroy(&p);
}

static void lost_pages(void **state)
{
	struct pool p = { .zero = zero };
	struct extent *a, *b;

	(void)state;
	memset(owner, 0, sizeof(owner));
	memset(content, CLEAN, sizeof(content));
	assert_int_equal(pool_init(&p, 8), 0);
	assert_int_equal(pool_take(&p, 4, 1, &a), 0);
	assert_int_equal(pool_take(&p, 5, 4, &b), -ENOMEM);
	pool_give(&p, a);
	fail_zero_at = 2;
	/* What cannot be cleaned is not handed out, and is not counted. */
	while (pool_clean(&p, 1))
		;
	fail_zero_at = -1;
	assert_int_equal(p.pages, 4);
	assert_int_equal(p.nr_free, 4);
	assert_int_equal(pool_take(&p, 4, 1, &a), 0);
	assert_int_equal(a->start, 4);
	pool_give(&p, a);
	fail_zero_at = 5;
	assert_int_equal(pool_take(&p, 4, 4, &a), -ENOMEM);
	assert_null(a);
	assert_int_equal(p.pages, 0);
	fail_zero_at = -1;
	pool_destroy(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations),
		cmocka_unit_test(lost_pages),
	};

	return RUN_TAP("pool", tests);
}
