// SPDX-License-Identifier: GPL-2.0
/* The ledger, against figures written out and against brute force. */
#include "world.h"
#include <tap.h>

typedef unsigned __int128 u128;

static struct ledger root, a, b, c, d;	/* root > a > b > c, root > d */
static unsigned long notified[5], notified_local[5], idle[5];

static int index_of(const struct ledger *l)
{
	const struct ledger *const all[] = { &root, &a, &b, &c, &d };
	int i;

	for (i = 0; i < 5; i++)
		if (all[i] == l)
			return i;
	return 0;
}

static void on_notify(struct ledger *l, bool local)
{
	notified[index_of(l)]++;
	notified_local[index_of(l)] += local;
}

static void on_idle(struct ledger *l)
{
	idle[index_of(l)]++;
}

static const struct ledger_prices prices = { .ns = { 1000, 100, 1 } };

static void chain(void)
{
	ledger_init_root(&root, &prices);
	ledger_init(&a, &root);
	ledger_init(&b, &a);
	ledger_init(&c, &b);
	ledger_init(&d, &root);
	world_on_notify = on_notify;
	world_on_idle = on_idle;
}

static struct ledger_counts counts(u64 lookup, u64 map, u64 pt)
{
	return (struct ledger_counts){ .n = { lookup, map, pt } };
}

static int try(struct ledger *l, u64 lookup, u64 map, u64 pt)
{
	struct ledger_counts n = counts(lookup, map, pt);

	return ledger_try_charge(l, &n);
}

static void charge(struct ledger *l, u64 lookup, u64 map, u64 pt)
{
	struct ledger_counts n = counts(lookup, map, pt);

	ledger_charge(l, &n);
}

static void uncharge(struct ledger *l, u64 lookup, u64 map, u64 pt)
{
	struct ledger_counts n = counts(lookup, map, pt);

	ledger_uncharge(l, &n);
}

static struct ledger_state state(struct ledger *l)
{
	struct ledger_state s;

	ledger_get_state(l, &s);
	return s;
}

static void all_levels(void)
{
	chain();
	CHECK_OK(try(&c, 1, 2, 3));
	CHECK_OK(try(&b, 0, 1, 0));
	CHECK_OK(try(&d, 0, 0, 7));
	CHECK_EQ(ledger_usage(&c), 1203);
	CHECK_EQ(ledger_usage(&b), 1303);
	CHECK_EQ(ledger_usage(&a), 1303);
	CHECK_EQ(ledger_usage(&d), 7);
	CHECK_EQ(state(&a).count.n[LEDGER_MAP], 3);
	uncharge(&c, 1, 2, 3);
	CHECK(ledger_is_zero(&c) && !ledger_is_zero(&b));
	CHECK_EQ(idle[3], 1);
	CHECK_EQ(idle[2], 0);
	uncharge(&b, 0, 1, 0);
	uncharge(&d, 0, 0, 7);
	CHECK(ledger_is_zero(&a) && ledger_is_zero(&b) && ledger_is_zero(&d));
	CHECK_EQ(idle[2], 1);
	CHECK_EQ(idle[1], 0);
}

/* At the limit it fits, one above it does not; nothing stays of a refusal. */
static void refused(void)
{
	struct ledger_state before_b, before_c, after_c;

	chain();
	ledger_set_max(&a, 1000);
	CHECK_OK(try(&c, 0, 9, 99));
	before_b = state(&b);
	before_c = state(&c);
	CHECK_RET(try(&c, 0, 0, 2), -EDQUOT);
	CHECK_RET(try(&c, 0, 1, 0), -EDQUOT);
	CHECK_EQ(ledger_usage(&a), 999);
	after_c = state(&c);
	CHECK(!memcmp(&before_c.count, &after_c.count, sizeof(after_c.count)));
	CHECK_EQ(state(&c).peak, before_c.peak);
	CHECK_EQ(state(&b).usage, before_b.usage);
	CHECK_OK(try(&c, 0, 0, 1));
	CHECK_EQ(ledger_usage(&a), 1000);

	/* The event is the group's whose limit it was, and of those above. */
	CHECK_EQ(state(&a).event_local[LEDGER_EV_MAX], 2);
	CHECK_EQ(state(&a).event[LEDGER_EV_MAX], 2);
	CHECK_EQ(state(&b).event[LEDGER_EV_MAX], 0);
	CHECK_EQ(state(&c).event[LEDGER_EV_MAX], 0);
	ledger_set_max(&b, 5);
	CHECK_RET(try(&c, 0, 0, 1), -EDQUOT);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_MAX], 1);
	CHECK_EQ(state(&a).event[LEDGER_EV_MAX], 3);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_MAX], 2);
	CHECK_EQ(state(&c).event[LEDGER_EV_MAX], 0);
	CHECK_EQ(notified[1], 3);
	CHECK_EQ(notified_local[1], 2);
	CHECK_EQ(notified_local[2], 1);
	CHECK_EQ(notified[3], 0);
}

static void locked(void)
{
	chain();
	ledger_set_locked(&b, true);
	CHECK_RET(try(&c, 0, 0, 1), -EBUSY);
	CHECK_OK(try(&a, 0, 0, 1));
	CHECK_EQ(state(&b).event_local[LEDGER_EV_LOCKED], 1);
	CHECK_EQ(state(&a).event[LEDGER_EV_LOCKED], 1);
	CHECK_EQ(state(&c).event[LEDGER_EV_LOCKED], 0);
	/* What has happened already is charged all the same. */
	charge(&c, 0, 0, 5);
	CHECK_EQ(ledger_usage(&c), 5);
	uncharge(&c, 0, 0, 5);
	ledger_set_locked(&b, false);
	CHECK_OK(try(&c, 0, 0, 1));
	/* Nothing is nothing, even when locked. */
	ledger_set_locked(&b, true);
	CHECK_OK(try(&c, 0, 0, 0));
}

static void over(void)
{
	chain();
	ledger_set_max(&b, 10);
	charge(&c, 0, 0, 10);
	CHECK_EQ(state(&b).event[LEDGER_EV_OVER], 0);
	charge(&c, 0, 0, 1);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_OVER], 1);
	CHECK_EQ(state(&a).event[LEDGER_EV_OVER], 1);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_OVER], 0);
	CHECK_EQ(state(&c).event[LEDGER_EV_OVER], 0);
	CHECK_EQ(ledger_usage(&b), 11);
	CHECK_RET(try(&c, 0, 0, 1), -EDQUOT);
	uncharge(&c, 0, 0, 2);
	CHECK_OK(try(&c, 0, 0, 1));
}

/* High: once for each time that the usage rises above it. */
static void high(void)
{
	chain();
	ledger_set_high(&a, 10);
	CHECK_OK(try(&c, 0, 0, 10));
	CHECK_EQ(state(&a).event[LEDGER_EV_HIGH], 0);
	CHECK_OK(try(&c, 0, 0, 1));
	CHECK_OK(try(&c, 0, 0, 1));
	CHECK_EQ(state(&a).event[LEDGER_EV_HIGH], 1);
	CHECK_EQ(state(&c).event[LEDGER_EV_HIGH], 0);
	uncharge(&c, 0, 0, 2);
	CHECK_OK(try(&c, 0, 0, 2));
	CHECK_EQ(state(&a).event_local[LEDGER_EV_HIGH], 2);
}

/* A price holds for what was charged before, and goes without a trace. */
static void reprice(void)
{
	struct ledger_prices own = { .ns = { 0, 7, 0 } };
	struct ledger_prices other = { .ns = { 1, 2, 3 } };

	chain();
	CHECK_OK(try(&c, 1, 1, 1));
	ledger_set_prices(&b, &own, ~0U);
	CHECK_EQ(ledger_usage(&c), 7);
	CHECK_EQ(ledger_usage(&b), 7);
	CHECK_EQ(ledger_usage(&a), 1101);
	ledger_set_prices(&root, &other, ~0U);
	CHECK_EQ(ledger_usage(&a), 6);
	CHECK_EQ(ledger_usage(&d), 0);
	CHECK_EQ(ledger_usage(&c), 7);
	ledger_set_prices(&c, &other, 1U << LEDGER_PT);
	CHECK_EQ(ledger_usage(&c), 10);
	CHECK(state(&c).own_prices && !state(&a).own_prices);
	uncharge(&c, 1, 1, 1);
	CHECK_EQ(ledger_usage(&a), 0);
	CHECK_EQ(ledger_usage(&b), 0);
	CHECK_EQ(ledger_usage(&c), 0);
	CHECK_OK(try(&c, 1, 1, 1));
	ledger_inherit_prices(&b);
	CHECK_EQ(ledger_usage(&b), 6);
	CHECK_EQ(ledger_usage(&c), 10);
	ledger_inherit_prices(&c);
	CHECK_EQ(ledger_usage(&c), 6);
}

/* A price that makes too much of what is there refuses; it takes nothing away. */
static void reprice_limit(void)
{
	struct ledger_prices dear = { .ns = { 0, 0, 1000 } };

	chain();
	ledger_set_max(&a, 10);
	CHECK_OK(try(&c, 0, 0, 5));
	ledger_set_prices(&a, &dear, ~0U);
	CHECK_EQ(ledger_usage(&a), 5000);
	CHECK_RET(try(&c, 0, 0, 1), -EDQUOT);
	ledger_inherit_prices(&a);
	CHECK_OK(try(&c, 0, 0, 5));
	CHECK_RET(try(&c, 0, 0, 1), -EDQUOT);
}

static void peak(void)
{
	u64 usage;

	chain();
	CHECK_OK(try(&c, 0, 0, 50));
	uncharge(&c, 0, 0, 40);
	CHECK_EQ(state(&a).peak, 50);
	CHECK_EQ(ledger_reset_peak(&a, &usage), 50);
	CHECK_EQ(usage, 10);
	CHECK_EQ(state(&a).low_peak, 10);
	CHECK_OK(try(&c, 0, 0, 5));
	CHECK_EQ(state(&a).low_peak, 15);
	CHECK_EQ(state(&a).peak, 50);
	CHECK_EQ(state(&b).low_peak, 50);
}

static u64 saturate(u128 x)
{
	return x > U64_MAX ? U64_MAX : (u64)x;
}

static void overflow(void)
{
	struct ledger_prices p = { .ns = { U64_MAX, 1ULL << 40, 3 } };
	struct ledger_counts n = counts(2, 0, 0);

	CHECK(ledger_cost(&p, &n) == U64_MAX);
	n = counts(1, 0, 0);
	CHECK(ledger_cost(&p, &n) == U64_MAX);
	n = counts(1, 0, 1);
	CHECK(ledger_cost(&p, &n) == U64_MAX);
	n = counts(0, 1ULL << 23, 5);
	CHECK(ledger_cost(&p, &n) == (1ULL << 63) + 15);
	n = counts(0, 1ULL << 24, 0);
	CHECK(ledger_cost(&p, &n) == U64_MAX);

	/* Saturated usage does not wrap, and comes back exactly. */
	chain();
	ledger_set_prices(&root, &p, ~0U);
	CHECK_OK(try(&c, 0, 1ULL << 23, 1));
	CHECK_OK(try(&c, 0, 1ULL << 23, 1));
	CHECK(ledger_usage(&a) == U64_MAX);
	ledger_set_max(&a, U64_MAX - 1);
	CHECK_RET(try(&c, 0, 0, 1), -EDQUOT);
	uncharge(&c, 0, 1ULL << 23, 1);
	CHECK(ledger_usage(&a) == (1ULL << 63) + 3);
	CHECK_OK(try(&c, 0, 0, 1));
	uncharge(&c, 0, 1ULL << 23, 2);
	CHECK(ledger_is_zero(&a));
	CHECK_EQ(ledger_usage(&a), 0);
}

/*
 * Brute force: what was charged to each ledger itself, the rest is sums in 128
 * bits.
 */
#define TREE	12

struct ref {
	int parent;		/* -1: the root */
	u64 own[LEDGER_KINDS];
	u64 max, high, peak;
	bool locked, has_prices;
	struct ledger_prices p;
	u64 event[LEDGER_EVENTS], local[LEDGER_EVENTS];
};

static struct ledger tree[TREE];
static struct ref ref[TREE];
static struct ledger_prices ref_root;

static bool ref_below(int i, int up)
{
	for (; i >= 0; i = ref[i].parent)
		if (i == up)
			return true;
	return false;
}

static const struct ledger_prices *ref_prices(int i)
{
	for (; i >= 0; i = ref[i].parent)
		if (ref[i].has_prices)
			return &ref[i].p;
	return &ref_root;
}

static u128 ref_cost(int i, const u64 *n)
{
	u128 sum = 0;
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		sum += (u128)n[k] * ref_prices(i)->ns[k];
	return sum;
}

static void ref_counts(int up, u64 *n)
{
	int i, k;

	memset(n, 0, LEDGER_KINDS * sizeof(*n));
	for (i = 0; i < TREE; i++)
		for (k = 0; k < LEDGER_KINDS && ref_below(i, up); k++)
			n[k] += ref[i].own[k];
}

static u128 ref_usage(int i)
{
	u64 n[LEDGER_KINDS];

	ref_counts(i, n);
	return ref_cost(i, n);
}

static void ref_event(int i, enum ledger_event ev)
{
	ref[i].local[ev]++;
	for (; i >= 0; i = ref[i].parent)
		ref[i].event[ev]++;
}

static int ref_try(int i, const u64 *n)
{
	int up;

	for (up = i; up >= 0; up = ref[up].parent) {
		if (ref[up].locked) {
			ref_event(up, LEDGER_EV_LOCKED);
			return -EBUSY;
		}
		if (saturate(ref_usage(up) + ref_cost(up, n)) > ref[up].max) {
			ref_event(up, LEDGER_EV_MAX);
			return -EDQUOT;
		}
	}
	return 0;
}

static void ref_charge(int i, const u64 *n, bool forced)
{
	u64 before, after;
	int up, k;

	for (up = i; up >= 0; up = ref[up].parent) {
		before = saturate(ref_usage(up));
		after = saturate(ref_usage(up) + ref_cost(up, n));
		if (before <= ref[up].high && after > ref[up].high)
			ref_event(up, LEDGER_EV_HIGH);
		if (forced && after > ref[up].max)
			ref_event(up, LEDGER_EV_OVER);
	}
	for (k = 0; k < LEDGER_KINDS; k++)
		ref[i].own[k] += n[k];
}

static void ref_check(void)
{
	u64 n[LEDGER_KINDS], usage;
	struct ledger_state s;
	int i, k;

	for (i = 0; i < TREE; i++) {
		ledger_get_state(&tree[i], &s);
		ref_counts(i, n);
		usage = saturate(ref_usage(i));
		ref[i].peak = max(ref[i].peak, usage);
		CHECK(s.usage == usage);
		CHECK(s.peak == ref[i].peak);
		CHECK(ledger_usage(&tree[i]) == usage);
		for (k = 0; k < LEDGER_KINDS; k++)
			CHECK(s.count.n[k] == n[k]);
		for (k = 0; k < LEDGER_EVENTS; k++) {
			CHECK_EQ(s.event[k], ref[i].event[k]);
			CHECK_EQ(s.event_local[k], ref[i].local[k]);
		}
	}
	STOP_IF_FAILED();
}

static void random_counts(struct rnd *r, u64 *n)
{
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		n[k] = rnd(r, 3) ? rnd(r, 5) : (u64)rnd(r, 1U << 31) << rnd(r, 8);
}

static void random_prices(struct rnd *r, struct ledger_prices *p)
{
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		p->ns[k] = rnd(r, 4) ? rnd(r, 9) :
			   rnd(r, 4) ? 1ULL << rnd(r, 41) : 0;
}

static void random_setting(struct rnd *r, int i)
{
	u64 usage = saturate(ref_usage(i));

	switch (rnd(r, 5)) {
	case 0:
		ref[i].max = rnd(r, 2) ? LEDGER_NO_LIMIT : usage + rnd(r, 50);
		ledger_set_max(&tree[i], ref[i].max);
		break;
	case 1:
		ref[i].high = rnd(r, 2) ? LEDGER_NO_LIMIT : usage + rnd(r, 20);
		ledger_set_high(&tree[i], ref[i].high);
		break;
	case 2:
		ref[i].locked = !rnd(r, 4);
		ledger_set_locked(&tree[i], ref[i].locked);
		break;
	case 3:
		ref[i].has_prices = rnd(r, 3);
		random_prices(r, &ref[i].p);
		if (ref[i].has_prices)
			ledger_set_prices(&tree[i], &ref[i].p, ~0U);
		else
			ledger_inherit_prices(&tree[i]);
		break;
	default:
		random_prices(r, &ref_root);
		ledger_set_prices(&root, &ref_root, ~0U);
	}
}

static void random_step(struct rnd *r)
{
	struct ledger_counts n;
	int i = (int)rnd(r, TREE), k;
	u32 dice = rnd(r, 10);

	if (dice < 5) {
		random_counts(r, n.n);
		if (ledger_counts_zero(&n))
			return;
		if (dice < 4) {
			int err = ref_try(i, n.n);

			CHECK_RET(ledger_try_charge(&tree[i], &n), err);
			if (err)
				return;
		} else {
			ledger_charge(&tree[i], &n);
		}
		ref_charge(i, n.n, dice == 4);
	} else if (dice < 9) {
		for (k = 0; k < LEDGER_KINDS; k++) {
			n.n[k] = rnd(r, 3) ? ref[i].own[k] : ref[i].own[k] / 2;
			ref[i].own[k] -= n.n[k];
		}
		ledger_uncharge(&tree[i], &n);
	} else {
		random_setting(r, i);
	}
}

static void random_tree(u64 seed, u32 steps)
{
	struct rnd r;
	int i;

	rnd_seed(&r, seed);
	memset(ref, 0, sizeof(ref));
	ref_root = prices;
	ledger_init_root(&root, &prices);
	for (i = 0; i < TREE; i++) {
		ref[i].parent = (int)rnd(&r, (u32)i + 1) - 1;
		ref[i].max = LEDGER_NO_LIMIT;
		ref[i].high = LEDGER_NO_LIMIT;
		ledger_init(&tree[i], ref[i].parent < 0 ? &root :
			    &tree[ref[i].parent]);
	}
	while (steps--) {
		random_step(&r);
		ref_check();
	}
}

static void brute_force(void)
{
	u64 seed, first = tap_seed();

	for (seed = 0; seed < tap_pick(200, 5000); seed++)
		random_tree(first + seed, 300);
}

static const struct tap_case cases[] = {
	{ "a charge counts at every level", all_levels },
	{ "a refused charge leaves nothing, and its event at the right level",
	  refused },
	{ "a lock refuses, here and below", locked },
	{ "what cannot be refused is counted as over", over },
	{ "high counts each rise above it", high },
	{ "a price holds at once for what is charged", reprice },
	{ "a higher price refuses, and leaves no residue", reprice_limit },
	{ "peaks", peak },
	{ "sums saturate", overflow },
	{ "random trees do what brute force does", brute_force, 3600 },
};

TAP_MAIN(cases)
