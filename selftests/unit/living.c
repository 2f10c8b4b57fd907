// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger of the living: figures written out, and random trees against brute
 * force, with charges of the device in between.
 */
#include "world.h"
#include <tap.h>

typedef unsigned __int128 u128;

static struct ledger root, a, b, c, d;	/* root > a > b > c, root > d */
static unsigned long notified;
static const struct ledger *idle;

static void on_notify(struct ledger *l, bool local)
{
	notified++;
}

static void on_idle(struct ledger *l)
{
	idle = l;
}

static const struct ledger_prices prices = {
	.ns = { 1000, 100, 1 },
	.living = { [LIVING_PROCESS] = 500, [LIVING_VMA] = 10, [LIVING_NS] = 3 },
};

static void chain(void)
{
	ledger_init_root(&root, &prices);
	ledger_init(&a, &root);
	ledger_init(&b, &a);
	ledger_init(&c, &b);
	ledger_init(&d, &root);
	notified = 0;
	idle = NULL;
	world_on_notify = on_notify;
	world_on_idle = on_idle;
}

static struct living_delta delta(s64 process, s64 vma, s64 ns)
{
	struct living_delta n = {};

	living_delta_set(&n, LIVING_PROCESS, process);
	living_delta_set(&n, LIVING_VMA, vma);
	living_delta_set(&n, LIVING_NS, ns);
	return n;
}

static int try(struct ledger *l, s64 process, s64 vma, s64 ns)
{
	struct living_delta n = delta(process, vma, ns);

	return ledger_living_try(l, &n);
}

static void change(struct ledger *l, s64 process, s64 vma, s64 ns)
{
	struct living_delta n = delta(process, vma, ns);

	ledger_living_change(l, &n);
}

static int device(struct ledger *l, u64 pages)
{
	struct ledger_counts n = { .n = { [LEDGER_PT] = pages } };

	return ledger_try_charge(l, &n);
}

static struct ledger_state state(struct ledger *l)
{
	struct ledger_state s;

	ledger_get_state(l, &s);
	return s;
}

static void together(void)
{
	struct ledger_counts n = { .n = { [LEDGER_PT] = 7 } };

	chain();
	change(&c, 1, 2, 3);
	CHECK_OK(device(&b, 7));
	CHECK_EQ(ledger_usage(&c), 529);
	CHECK_EQ(ledger_usage(&b), 536);
	CHECK_EQ(ledger_usage(&a), 536);
	CHECK_EQ(ledger_usage(&d), 0);
	CHECK_EQ(state(&a).living.n[LIVING_VMA], 2);
	CHECK_EQ(state(&a).count.n[LEDGER_PT], 7);
	change(&c, -1, 5, -3);
	CHECK_EQ(ledger_usage(&c), 70);
	CHECK_EQ(state(&a).peak, 536);
	CHECK(!ledger_is_zero(&c));
	ledger_uncharge(&b, &n);
	CHECK(!ledger_is_zero(&b));
	change(&c, 0, -7, 0);
	CHECK(idle == &c);
	CHECK(ledger_is_zero(&a) && ledger_is_zero(&b) && ledger_is_zero(&c));
	CHECK_EQ(ledger_usage(&a), 0);
}

static void enforced(void)
{
	chain();
	ledger_set_mode(&a, LEDGER_ENFORCE);
	ledger_set_max(&a, 1000);
	ledger_set_max(&c, 1);
	CHECK_OK(try(&c, 1, 49, 0));
	CHECK_OK(device(&b, 10));
	CHECK_EQ(ledger_usage(&a), 1000);
	CHECK_RET(try(&c, 0, 0, 1), -EDQUOT);
	CHECK_RET(device(&b, 1), -EDQUOT);
	CHECK_EQ(ledger_usage(&c), 990);
	CHECK_EQ(state(&c).living.n[LIVING_NS], 0);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_MAX], 2);
	CHECK_EQ(state(&c).event[LEDGER_EV_MAX], 0);
	CHECK_EQ(state(&c).event[LEDGER_EV_AUDIT], 0);
	CHECK_EQ(notified, 2);
	/* Cannot be refused. */
	change(&c, 0, 1, 0);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_OVER], 1);
	/* Cheaper, and still above. */
	change(&c, -1, 45, 0);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_OVER], 1);
	CHECK_EQ(state(&c).event[LEDGER_EV_OVER], 0);
	ledger_set_locked(&a, true);
	CHECK_RET(try(&c, 0, 0, 1), -EBUSY);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_LOCKED], 1);
	CHECK_OK(try(&c, 0, 0, 0));
}

/* What the living cost does not count against the device where it is not limited. */
static void audited(void)
{
	chain();
	ledger_set_mode(&b, LEDGER_AUDIT);
	ledger_set_max(&b, 600);
	ledger_set_max(&c, 1);
	CHECK_OK(try(&c, 1, 10, 0));
	CHECK_EQ(state(&b).event_local[LEDGER_EV_AUDIT], 0);
	CHECK_RET(try(&c, 1, 0, 0), 1);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_AUDIT], 1);
	CHECK_EQ(state(&a).event[LEDGER_EV_AUDIT], 1);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_AUDIT], 0);
	CHECK_EQ(state(&c).event[LEDGER_EV_AUDIT], 0);
	change(&c, 1, 0, 0);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_OVER], 1);
	CHECK_EQ(state(&c).event_local[LEDGER_EV_OVER], 0);
	CHECK_OK(device(&b, 600));
	CHECK_RET(device(&b, 1), -EDQUOT);
	CHECK_EQ(ledger_usage(&b), 2200);
	ledger_set_locked(&b, true);
	CHECK_RET(try(&c, 0, 1, 0), 1);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_AUDIT], 2);
	/* Refused above: nothing was let through below. */
	ledger_set_mode(&a, LEDGER_ENFORCE);
	ledger_set_max(&a, 2210);
	CHECK_RET(try(&c, 0, 1, 0), -EDQUOT);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_AUDIT], 2);
}

static void repriced(void)
{
	struct ledger_prices own = { .living = { [LIVING_VMA] = 7 } };

	chain();
	change(&c, 1, 1, 1);
	ledger_set_prices(&b, &own, 1U << (LEDGER_KINDS + LIVING_VMA));
	CHECK_EQ(ledger_usage(&c), 510);
	CHECK_EQ(ledger_usage(&a), 513);
	ledger_set_prices(&b, &own, ~0U);
	CHECK_EQ(ledger_usage(&c), 7);
	change(&c, -1, 0, -1);
	CHECK_EQ(ledger_usage(&b), 7);
	CHECK_EQ(ledger_usage(&a), 10);
	ledger_inherit_prices(&b);
	CHECK_EQ(ledger_usage(&c), 10);
}

static void moved(void)
{
	struct living_counts n = { .n = { [LIVING_PROCESS] = 1,
					  [LIVING_VMA] = 5 } };

	chain();
	ledger_set_mode(&a, LEDGER_ENFORCE);
	ledger_set_max(&a, 560);
	ledger_set_mode(&b, LEDGER_AUDIT);
	ledger_set_max(&b, 1);
	change(&a, 1, 6, 0);
	ledger_living_move(&a, &c, &n);
	CHECK_EQ(ledger_usage(&a), 560);
	CHECK_EQ(ledger_usage(&b), 550);
	CHECK_EQ(ledger_usage(&c), 550);
	CHECK_EQ(state(&a).peak, 560);
	CHECK_EQ(state(&a).event_local[LEDGER_EV_OVER], 0);
	CHECK_EQ(state(&b).event_local[LEDGER_EV_OVER], 1);
	CHECK_EQ(state(&a).event[LEDGER_EV_OVER], 1);
	ledger_living_move(&c, &d, &n);
	CHECK_EQ(ledger_usage(&a), 10);
	CHECK_EQ(ledger_usage(&d), 550);
	CHECK(ledger_is_zero(&b) && ledger_is_zero(&c));
	CHECK(idle == &c);
	ledger_living_move(&d, &d, &n);
	CHECK_EQ(ledger_usage(&d), 550);
}

static void overflow(void)
{
	struct ledger_prices p = { .living = { [LIVING_VMA] = 1ULL << 40,
					       [LIVING_NS] = 3 } };

	chain();
	ledger_set_prices(&root, &p, ~0U);
	change(&c, 0, 1LL << 23, 1);
	CHECK(ledger_usage(&a) == (1ULL << 63) + 3);
	change(&c, 0, 1LL << 23, 1);
	CHECK(ledger_usage(&a) == U64_MAX);
	CHECK_OK(try(&c, 0, 1LL << 24, 0));
	change(&c, 0, -(1LL << 24), 5);
	CHECK(ledger_usage(&a) == U64_MAX);
	change(&c, 0, -(1LL << 23), 0);
	CHECK(ledger_usage(&a) == (1ULL << 63) + 21);
	change(&c, 0, -(1LL << 23), -7);
	CHECK(ledger_is_zero(&a));
	CHECK_EQ(ledger_usage(&a), 0);
}

/* Brute force: what each holds itself; the rest is sums in 128 bits. */
#define TREE	10

struct ref {
	int parent;		/* -1: the root */
	u64 own[LEDGER_ALL_KINDS];
	u64 max, high, peak;
	bool locked, has_prices;
	enum ledger_mode mode;
	u64 price[LEDGER_ALL_KINDS];
	u64 event[LEDGER_EVENTS];
};

static struct ledger tree[TREE];
static struct ref ref[TREE];
static u64 ref_root[LEDGER_ALL_KINDS];

static u64 saturate(u128 x)
{
	return x > U64_MAX ? U64_MAX : (u64)x;
}

static bool ref_below(int i, int up)
{
	for (; i >= 0; i = ref[i].parent)
		if (i == up)
			return true;
	return false;
}

static const u64 *ref_prices(int i)
{
	for (; i >= 0; i = ref[i].parent)
		if (ref[i].has_prices)
			return ref[i].price;
	return ref_root;
}

/* What @n costs at the prices of @i: kinds from @first on. */
static u128 ref_cost(int i, const u64 *n, int first, int kinds)
{
	u128 sum = 0;
	int k;

	for (k = first; k < first + kinds; k++)
		sum += (u128)n[k] * ref_prices(i)[k];
	return sum;
}

static u128 ref_usage(int up, bool device_only)
{
	u64 n[LEDGER_ALL_KINDS] = {};
	int i, k;

	for (i = 0; i < TREE; i++)
		for (k = 0; k < LEDGER_ALL_KINDS && ref_below(i, up); k++)
			n[k] += ref[i].own[k];
	return ref_cost(up, n, 0,
			device_only ? LEDGER_KINDS : LEDGER_ALL_KINDS);
}

static void ref_event(int i, enum ledger_event ev)
{
	for (; i >= 0; i = ref[i].parent)
		ref[i].event[ev]++;
}

/* @living: n has no kinds of the device, else none of the others. */
static int ref_try(int i, const u64 *n, bool living)
{
	bool device_only;
	int up;

	for (up = i; up >= 0; up = ref[up].parent) {
		device_only = ref[up].mode != LEDGER_ENFORCE;
		if (living && device_only)
			continue;
		if (ref[up].locked) {
			ref_event(up, LEDGER_EV_LOCKED);
			return -EBUSY;
		}
		if (saturate(ref_usage(up, device_only) +
			     ref_cost(up, n, 0, LEDGER_ALL_KINDS)) >
		    ref[up].max) {
			ref_event(up, LEDGER_EV_MAX);
			return -EDQUOT;
		}
	}
	return 0;
}

/*
 * Levels from @i up to below @end: @n comes; @less goes. Has one of them a limit
 * that would have refused it?
 */
static bool ref_add(int i, int end, const u64 *n, const u64 *less, bool asked)
{
	u64 before[TREE], after;
	bool audited = false;
	int up, k;

	for (up = i; up != end; up = ref[up].parent)
		before[up] = saturate(ref_usage(up, false));
	for (k = 0; k < LEDGER_ALL_KINDS; k++)
		ref[i].own[k] += n[k] - less[k];
	for (up = i; up != end; up = ref[up].parent) {
		u64 more = saturate(ref_cost(up, n, 0, LEDGER_ALL_KINDS));
		u64 off = saturate(ref_cost(up, less, 0, LEDGER_ALL_KINDS));

		after = saturate(ref_usage(up, false));
		if (before[up] <= ref[up].high && after > ref[up].high)
			ref_event(up, LEDGER_EV_HIGH);
		if (asked && ref[up].mode == LEDGER_AUDIT &&
		    (ref[up].locked ||
		     saturate((u128)before[up] + more) > ref[up].max)) {
			ref_event(up, LEDGER_EV_AUDIT);
			audited = true;
		}
		if (!asked && more > off && after > ref[up].max &&
		    ref[up].mode != LEDGER_OFF)
			ref_event(up, LEDGER_EV_OVER);
		ref[up].peak = max(ref[up].peak, after);
	}
	return audited;
}

static void ref_check(void)
{
	struct ledger_state s;
	u64 n, usage;
	int i, j, k;

	for (i = 0; i < TREE; i++) {
		ledger_get_state(&tree[i], &s);
		usage = saturate(ref_usage(i, false));
		ref[i].peak = max(ref[i].peak, usage);
		CHECK(s.usage == usage);
		CHECK(s.peak == ref[i].peak);
		for (k = 0; k < LEDGER_ALL_KINDS; k++) {
			for (n = 0, j = 0; j < TREE; j++)
				n += ref_below(j, i) ? ref[j].own[k] : 0;
			CHECK(n == (k < LEDGER_KINDS ? s.count.n[k] :
				    s.living.n[k - LEDGER_KINDS]));
		}
		for (k = 0; k < LEDGER_EVENTS; k++)
			CHECK_EQ(s.event[k], ref[i].event[k]);
	}
	STOP_IF_FAILED();
}

static void random_counts(struct rnd *r, u64 *n, int first, int kinds)
{
	int k, some = (int)rnd(r, (u32)kinds) + 1;

	memset(n, 0, LEDGER_ALL_KINDS * sizeof(*n));
	while (some--) {
		k = first + (int)rnd(r, (u32)kinds);
		n[k] = rnd(r, 3) ? rnd(r, 5) : (u64)rnd(r, 1U << 31);
	}
}

/* A part of what @i holds of the living. */
static void random_part(struct rnd *r, int i, u64 *n)
{
	int k;

	memset(n, 0, LEDGER_ALL_KINDS * sizeof(*n));
	for (k = LEDGER_KINDS; k < LEDGER_ALL_KINDS; k++)
		n[k] = rnd(r, 3) ? ref[i].own[k] : ref[i].own[k] / 2;
}

static void random_setting(struct rnd *r, int i)
{
	u64 usage = saturate(ref_usage(i, false));
	struct ledger_prices p;
	int k;

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
		ref[i].mode = rnd(r, 3);
		ledger_set_mode(&tree[i], ref[i].mode);
		break;
	default:
		for (k = 0; k < LEDGER_ALL_KINDS; k++) {
			ref[i].price[k] = rnd(r, 4) ? rnd(r, 9) :
					  rnd(r, 4) ? 1ULL << rnd(r, 41) : 0;
			if (k < LEDGER_KINDS)
				p.ns[k] = ref[i].price[k];
			else
				p.living[k - LEDGER_KINDS] = ref[i].price[k];
		}
		ref[i].has_prices = rnd(r, 3);
		if (ref[i].has_prices)
			ledger_set_prices(&tree[i], &p, ~0U);
		else
			ledger_inherit_prices(&tree[i]);
	}
}

static const u64 none[LEDGER_ALL_KINDS];

static void step_device(struct rnd *r, int i)
{
	struct ledger_counts dev;
	u64 n[LEDGER_ALL_KINDS];
	int err;

	random_counts(r, n, 0, LEDGER_KINDS);
	memcpy(dev.n, n, sizeof(dev.n));
	if (ledger_counts_zero(&dev))
		return;
	err = ref_try(i, n, false);
	CHECK_RET(ledger_try_charge(&tree[i], &dev), err);
	if (!err) {
		int up, k;

		for (up = i; up >= 0; up = ref[up].parent) {
			u64 before = saturate(ref_usage(up, false));
			u64 after = saturate(ref_usage(up, false) +
					     ref_cost(up, n, 0, LEDGER_KINDS));

			if (before <= ref[up].high && after > ref[up].high)
				ref_event(up, LEDGER_EV_HIGH);
		}
		for (k = 0; k < LEDGER_KINDS; k++)
			ref[i].own[k] += n[k];
	}
}

static void step_living(struct rnd *r, int i, bool asked)
{
	u64 n[LEDGER_ALL_KINDS], less[LEDGER_ALL_KINDS];
	struct living_delta diff = {};
	int k, got = 0, err = 0;

	random_counts(r, n, LEDGER_KINDS, LIVING_KINDS);
	memcpy(less, none, sizeof(none));
	if (!asked) {
		random_part(r, i, less);
		for (k = LEDGER_KINDS; k < LEDGER_ALL_KINDS; k++) {
			u64 both = min(n[k], less[k]);

			n[k] -= both;
			less[k] -= both;
		}
	}
	for (k = 0; k < LIVING_KINDS; k++)
		living_delta_set(&diff, k, (s64)(n[LEDGER_KINDS + k] -
						 less[LEDGER_KINDS + k]));
	if (!diff.kinds)
		return;
	if (asked) {
		err = ref_try(i, n, true);
		got = ledger_living_try(&tree[i], &diff);
	} else {
		ledger_living_change(&tree[i], &diff);
	}
	if (!err)
		err = ref_add(i, -1, n, less, asked);
	CHECK_RET(got, err);
}

static void step_move(struct rnd *r, int from, int to)
{
	u64 n[LEDGER_ALL_KINDS];
	struct living_counts counts;
	int up;

	random_part(r, from, n);
	memcpy(counts.n, n + LEDGER_KINDS, sizeof(counts.n));
	ledger_living_move(&tree[from], &tree[to], &counts);
	if (from == to || living_counts_zero(&counts))
		return;
	/* The lowest that is above both sees nothing of it. */
	for (up = to; up >= 0 && !ref_below(from, up); up = ref[up].parent)
		;
	if (up >= 0) {
		u64 peak[TREE];
		int i, k;

		/* What is above must not see the sum of both. */
		for (i = 0; i < TREE; i++)
			peak[i] = ref[i].peak;
		for (k = 0; k < LEDGER_ALL_KINDS; k++)
			ref[from].own[k] -= n[k];
		for (i = to; i != up; i = ref[i].parent)
			CHECK(!ref_below(from, i));
		ref_add(to, up, n, none, false);
		for (i = up; i >= 0; i = ref[i].parent)
			ref[i].peak = peak[i];
	} else {
		ref_add(to, -1, n, none, false);
		ref_add(from, -1, none, n, false);
	}
}

static void random_tree(u64 seed, u32 steps)
{
	struct rnd r;
	int i;

	rnd_seed(&r, seed);
	memset(ref, 0, sizeof(ref));
	memcpy(ref_root, prices.ns, sizeof(prices.ns));
	memcpy(ref_root + LEDGER_KINDS, prices.living, sizeof(prices.living));
	ledger_init_root(&root, &prices);
	for (i = 0; i < TREE; i++) {
		ref[i].parent = (int)rnd(&r, (u32)i + 1) - 1;
		ref[i].max = LEDGER_NO_LIMIT;
		ref[i].high = LEDGER_NO_LIMIT;
		ledger_init(&tree[i], ref[i].parent < 0 ? &root :
			    &tree[ref[i].parent]);
	}
	while (steps--) {
		i = (int)rnd(&r, TREE);
		switch (rnd(&r, 10)) {
		case 0:
		case 1:
			random_setting(&r, i);
			break;
		case 2:
			step_device(&r, i);
			break;
		case 3:
			step_move(&r, i, (int)rnd(&r, TREE));
			break;
		case 4:
		case 5:
		case 6:
			step_living(&r, i, true);
			break;
		default:
			step_living(&r, i, false);
		}
		ref_check();
	}
}

static void brute_force(void)
{
	u64 seed, first = tap_seed();

	for (seed = 0; seed < tap_pick(150, 3000); seed++)
		random_tree(first + seed, 300);
}

static const struct tap_case cases[] = {
	{ "both count in one usage", together },
	{ "enforce: one limit for both", enforced },
	{ "audit: let through and counted; the device is limited alone", audited },
	{ "a price holds at once for what is charged", repriced },
	{ "a move is not seen above", moved },
	{ "sums saturate", overflow },
	{ "random trees do what brute force does", brute_force, 3600 },
};

TAP_MAIN(cases)
