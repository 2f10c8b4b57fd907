// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger, for what tasks own: charge, refuse, move.
 *
 * Contract
 *   - ledger_living_try() asks beforehand: it charges every level below the root
 *     or none. What a limit means is the level's mode: enforce refuses, audit
 *     counts what would have been refused and lets it through, but says so, off
 *     says nothing.
 *   - ledger_living_change() tells what is so already, more of some kinds and less
 *     of others, and cannot fail. A level that it leaves above its limit counts
 *     "over" if the change made it dearer.
 *   - ledger_living_move() takes counts from one ledger to another. Levels above
 *     both do not change, if they are in one domain: there is no moment at which
 *     these hold them twice or not at all.
 *
 * All may be called where nobody may sleep, with interrupts off, but not from
 * interrupts: the domain lock is not safe from them. See ledger.h for the locks.
 * Portable: nothing here but what os.h offers.
 */
#include "ledger-core.h"

/* A change, and what it makes dearer and cheaper at the prices last asked. */
struct living_bill {
	const struct living_delta *d;
	const struct ledger_prices *prices;
	u64 more, less;
};

static void living_bill_at(struct living_bill *b, const struct ledger *l)
{
	const struct living_delta *d = b->d;
	u64 more = 0, less = 0, ns;
	u32 left;
	int k;

	if (likely(l->prices == b->prices))
		return;
	b->prices = l->prices;
	for_each_living_kind(k, d, left) {
		u64 n = d->n[k] < 0 ? -(u64)d->n[k] : (u64)d->n[k];

		if (check_mul_overflow(l->prices->living[k], n, &ns))
			ns = U64_MAX;
		if (d->n[k] < 0)
			less = add_saturating(less, ns);
		else
			more = add_saturating(more, ns);
	}
	b->more = more;
	b->less = less;
}

/* Put @d on the account of @l alone; true: usage rose above high by it. */
static bool living_add(struct ledger *l, struct living_bill *b)
{
	const struct living_delta *d = b->d;
	u64 before = l->usage, after;
	bool slow = false;
	u32 left;
	int k;

	living_bill_at(b, l);
	for_each_living_kind(k, d, left) {
		u64 *n = &l->living.n[k];

		if (d->n[k] < 0 && WARN_ON_ONCE(*n < -(u64)d->n[k])) {
			*n = 0;
			slow = true;
		} else {
			*n += d->n[k];
		}
	}
	/* A sum that is saturated, or would be, is made anew. */
	slow |= check_add_overflow(before, b->more, &after);
	if (unlikely(slow || before == U64_MAX || b->less == U64_MAX))
		l->usage = ledger_cost_all(l->prices, &l->count, &l->living);
	else
		l->usage = after - b->less;
	ledger_note_peak(l);
	return unlikely(l->usage > l->high) && before <= l->high;
}

/* Is @more beyond what @l has left? */
static bool living_exceeds(const struct ledger *l, u64 more)
{
	return unlikely(add_saturating(l->usage, more) > l->max);
}

/*
 * Does every level allow what @b adds? All levels are up to date afterwards, if
 * so.
 */
static int living_admit(struct ledger *l, struct living_bill *b,
			struct ledger_raised *r)
{
	unsigned int level;
	int err = 0;

	for (level = 0; l->parent; l = l->parent, level++) {
		ledger_sync(l);
		if (l->mode != LEDGER_ENFORCE)
			continue;
		living_bill_at(b, l);
		if (unlikely(l->locked)) {
			err = -EBUSY;
			ledger_raise(r, l, level, LEDGER_EV_LOCKED);
			break;
		}
		if (living_exceeds(l, b->more)) {
			err = -EDQUOT;
			ledger_raise(r, l, level, LEDGER_EV_MAX);
			break;
		}
	}
	if (unlikely(err)) {
		for (; l->parent; l = l->parent)
			ledger_pass_on(r, l);
	}
	return err;
}

/*
 * From @l up to below @end, which is above it or NULL: charge, and count what
 * there is to count. @asked: it was let through by living_admit(). True: then it
 * would have been refused, were it not for a level's mode.
 */
static bool living_add_below(struct ledger *l, const struct ledger *end,
			     struct living_bill *b, bool asked,
			     struct ledger_raised *r)
{
	bool over, grows, audited = false;
	unsigned int level;

	for (level = 0; l != end && l->parent; l = l->parent, level++) {
		ledger_sync(l);
		living_bill_at(b, l);
		over = asked && (l->locked || living_exceeds(l, b->more));
		grows = b->more > b->less;
		if (living_add(l, b))
			ledger_raise(r, l, level, LEDGER_EV_HIGH);
		if (unlikely(over) && l->mode == LEDGER_AUDIT) {
			ledger_raise(r, l, level, LEDGER_EV_AUDIT);
			audited = true;
		}
		if (!asked && grows && unlikely(l->usage > l->max) &&
		    l->mode != LEDGER_OFF)
			ledger_raise(r, l, level, LEDGER_EV_OVER);
		if (unlikely(r->levels))
			ledger_pass_on(r, l);
	}
	/* Above @end nothing has changed but what happened below. */
	for (; r->levels && l && l->parent; l = l->parent)
		ledger_pass_on(r, l);
	return audited;
}

static bool living_left_none(const struct ledger *l, u32 kinds)
{
	/* What @l still has of one of them is told by one look. */
	return !l->living.n[__builtin_ctz(kinds)] &&
	       living_counts_zero(&l->living);
}

/* Gives up the lock of the domain of @l, and tells whom it may concern. */
static void living_unlock(struct ledger *l, const struct ledger_raised *r,
			  bool idle)
	__releases(&l->domain->lock)
{
	/* The lock may be freed right after it is given up. */
	rcu_read_lock();
	ledger_unlock(l);
	if (unlikely(r->levels))
		ledger_tell(r, l);
	if (idle)
		ledger_idle(l);
	rcu_read_unlock();
}

/**
 * ledger_living_try() - charge if every level allows it
 * @l: where to charge, not the root; the caller keeps it in memory
 * @d: what; none of it negative
 *
 * Context: does not sleep; takes the domain lock.
 * Return: 0; 1 charged, though a limit in mode audit is exceeded, or the group
 * locked; -EDQUOT a limit would be exceeded, -EBUSY a group is locked.
 */
int ledger_living_try(struct ledger *l, const struct living_delta *d)
{
	struct living_bill b = { .d = d };
	struct ledger_raised r;
	int err;

	if (!d->kinds)
		return 0;
	r.levels = 0;
	ledger_lock(l);
	err = living_admit(l, &b, &r);
	if (!err)
		err = living_add_below(l, NULL, &b, true, &r);
	living_unlock(l, &r, false);
	return err;
}

/**
 * ledger_living_change() - charge and uncharge what is so already
 * @l: where, not the root; the caller keeps it in memory, or what is charged
 *	there does, and then it may be freed as soon as this returns
 * @d: by how much of each kind; takes back no more than was charged
 *
 * Context: does not sleep; takes the domain lock.
 */
void ledger_living_change(struct ledger *l, const struct living_delta *d)
{
	struct living_bill b = { .d = d };
	struct ledger_raised r;

	if (!d->kinds)
		return;
	r.levels = 0;
	ledger_lock(l);
	living_add_below(l, NULL, &b, false, &r);
	living_unlock(l, &r, living_left_none(l, d->kinds));
}

static void delta_of(struct living_delta *d, const struct living_counts *c,
		     bool negative)
{
	int k;

	d->kinds = 0;
	for (k = 0; k < LIVING_KINDS; k++)
		living_delta_set(d, k, negative ? -(s64)c->n[k] : (s64)c->n[k]);
}

/* The lowest ledger that is above both, or one of them; the root at last. */
static struct ledger *living_common(struct ledger *a, struct ledger *b)
{
	struct ledger *at;

	for (; a->parent; a = a->parent) {
		for (at = b; at->parent; at = at->parent) {
			if (at == a)
				return a;
		}
	}
	return a;
}

/* Both are in one domain. */
static void living_move_within(struct ledger *from, struct ledger *to,
			       const struct living_delta *plus,
			       const struct living_delta *minus)
{
	struct ledger *common = living_common(from, to);
	struct living_bill b = { .d = plus };
	struct ledger_raised r, none;
	bool idle;

	r.levels = 0;
	none.levels = 0;
	rcu_read_lock();
	ledger_lock(to);
	living_add_below(to, common, &b, false, &r);
	b = (struct living_bill) { .d = minus };
	living_add_below(from, common, &b, false, &none);
	idle = living_left_none(from, minus->kinds);
	living_unlock(to, &r, false);
	/* Cheaper only: that raised nothing. */
	if (idle)
		ledger_idle(from);
	rcu_read_unlock();
}

/**
 * ledger_living_move() - charge elsewhere what is charged already
 * @from: where it is, not the root; may be freed as soon as this returns
 * @to: where it goes, not the root; the caller keeps it in memory
 * @c: what
 *
 * Context: does not sleep; takes the domain lock, or one after the other.
 */
void ledger_living_move(struct ledger *from, struct ledger *to,
			const struct living_counts *c)
{
	struct living_delta plus, minus;

	delta_of(&plus, c, false);
	if (from == to || !plus.kinds)
		return;
	delta_of(&minus, c, true);
	if (from->domain == to->domain) {
		living_move_within(from, to, &plus, &minus);
		return;
	}
	ledger_living_change(to, &plus);
	ledger_living_change(from, &minus);
}
