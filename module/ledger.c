// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger: charge, refuse, re-price.
 *
 * Contract
 *   - ledger_try_charge() charges every level below the root or none. It
 *     refuses with -EDQUOT where a limit would be exceeded and with -EBUSY
 *     where a group is locked, and counts that at the group that refused.
 *     Whether a charge fits depends on what is charged, never on what somebody
 *     else is trying to charge.
 *   - ledger_charge() cannot fail: for what has happened already. Usage may
 *     exceed the limit by it, which is counted as "over" at each such level.
 *   - A limit may be set below the usage; that refuses further charges and
 *     changes nothing else.
 *   - ledger_uncharge() takes back exactly what was charged, whatever the
 *     prices were then and are now.
 *   - An event counts at the group that it is about (event_local), and at this
 *     group and all those above it but the root (event).
 *
 * N.B. a group with prices of its own is measured by them, the groups above by
 * theirs: nobody gets around a limit of somebody above by declaring his own
 * clean-up cheap.
 *
 * See ledger.h for the locks. Portable: nothing here but what os.h offers.
 */
#include "ledger-core.h"

/* What is to be paid, and its cost at the prices of the last level asked. */
struct ledger_bill {
	const struct ledger_counts *c;
	const struct ledger_prices *prices;
	u64 cost;
};

/*
 * Deeper levels share the last bit. Then a level may be told of an event of
 * its own that it did not have, which costs a reader one look.
 */
#define LEDGER_LEVEL_BITS	64

static u64 level_bit(unsigned int level)
{
	return 1ULL << min_t(unsigned int, level, LEDGER_LEVEL_BITS - 1);
}

static __always_inline u64 cost_of(const u64 *price, const u64 *n, int kinds)
{
	bool over = false;
	u64 ns = 0, of_kind;
	int k;

	for (k = 0; k < kinds; k++) {
		over |= check_mul_overflow(price[k], n[k], &of_kind);
		over |= check_add_overflow(ns, of_kind, &ns);
	}
	return unlikely(over) ? U64_MAX : ns;
}

/* ns for @c at prices @p. */
u64 ledger_cost(const struct ledger_prices *p, const struct ledger_counts *c)
{
	return cost_of(p->ns, c->n, LEDGER_KINDS);
}

/* ns for @c at prices @p. */
u64 living_cost(const struct ledger_prices *p, const struct living_counts *c)
{
	return cost_of(p->living, c->n, LIVING_KINDS);
}

/* ns for both at prices @p. */
u64 ledger_cost_all(const struct ledger_prices *p,
		    const struct ledger_counts *c,
		    const struct living_counts *living)
{
	return add_saturating(ledger_cost(p, c), living_cost(p, living));
}

/* Prices */

/* Make the root's prices those of @d. */
void ledger_copy_root(struct ledger_domain *d)
{
	struct ledger_domain *root = &d->root->own_domain;

	lockdep_assert_held(&d->lock);
	raw_spin_lock(&root->lock);
	d->prices = root->prices;
	d->root_version = root->version;
	raw_spin_unlock(&root->lock);
	d->version++;
}

/*
 * Look up the prices of @l again, and of those above it as far as that takes,
 * so that a whole path is brought up to date in time linear in its length.
 */
void ledger_refresh(struct ledger *l)
{
	const struct ledger_prices *prices = &l->domain->prices;
	struct ledger *end, *at;

	for (end = l; end->parent; end = end->parent) {
		if (end->has_prices) {
			prices = &end->own_prices;
			break;
		}
		if (ledger_is_current(end)) {
			prices = end->prices;
			break;
		}
	}
	for (at = l; at->parent; at = at->parent) {
		at->prices = prices;
		at->usage = ledger_cost_all(prices, &at->count, &at->living);
		at->version = at->domain->version;
		if (at == end)
			break;
	}
}

/* Events */

/* @ev is about @l, the @level-th from where the operation started. */
void ledger_raise(struct ledger_raised *r, struct ledger *l,
		  unsigned int level, enum ledger_event ev)
{
	if (!r->levels)
		memset(r->n, 0, sizeof(r->n));
	r->levels |= level_bit(level);
	r->n[ev]++;
	l->event_local[ev]++;
}

/* Count at @l what was raised there and below. */
void ledger_pass_on(const struct ledger_raised *r, struct ledger *l)
{
	int ev;

	for (ev = 0; ev < LEDGER_EVENTS; ev++)
		l->event[ev] += r->n[ev];
}

void ledger_tell(const struct ledger_raised *r, struct ledger *l)
{
	unsigned int level;
	bool below = false, local;

	for (level = 0; l->parent; l = l->parent, level++) {
		local = r->levels & level_bit(level);
		below |= local;
		if (below)
			ledger_notify(l, local);
	}
}

/* Charge */

/* Most levels have the prices of those below them. */
static u64 ledger_bill_at(struct ledger_bill *b, const struct ledger *l)
{
	if (unlikely(l->prices != b->prices)) {
		b->prices = l->prices;
		b->cost = ledger_cost(l->prices, b->c);
	}
	return b->cost;
}

/* Does @l alone admit @cost more? */
static int ledger_admit(const struct ledger *l, u64 cost,
			enum ledger_event *why)
{
	if (unlikely(l->locked)) {
		*why = LEDGER_EV_LOCKED;
		return -EBUSY;
	}
	if (unlikely(add_saturating(ledger_limited(l), cost) > l->max)) {
		*why = LEDGER_EV_MAX;
		return -EDQUOT;
	}
	return 0;
}

/*
 * Does every level from @from on, which is @l or above it, allow the charge?
 * All levels are up to date afterwards, if so.
 */
static int ledger_admit_all(struct ledger *l, const struct ledger *from,
			    struct ledger_bill *b, struct ledger_raised *r)
{
	enum ledger_event why;
	unsigned int level = 0;
	int err = 0;

	for (; l != from && l->parent; l = l->parent, level++)
		ledger_sync(l);
	for (; l->parent; l = l->parent, level++) {
		ledger_sync(l);
		err = ledger_admit(l, ledger_bill_at(b, l), &why);
		if (unlikely(err)) {
			ledger_raise(r, l, level, why);
			break;
		}
	}
	if (unlikely(err)) {
		for (; l->parent; l = l->parent)
			ledger_pass_on(r, l);
	}
	return err;
}

/* Put @c on the account of @l alone; true: usage rose above high by it. */
static bool ledger_add(struct ledger *l, const struct ledger_counts *c,
		       u64 cost)
{
	u64 before = l->usage;

	/* There are not as many pages as would overflow a count. */
	ledger_counts_add(&l->count, c);
	l->usage = add_saturating(before, cost);
	ledger_note_peak(l);
	return unlikely(l->usage > l->high) && before <= l->high;
}

/* All levels are up to date. */
static void ledger_add_all(struct ledger *l, struct ledger_bill *b, bool over,
			   struct ledger_raised *r)
{
	unsigned int level;

	for (level = 0; l->parent; l = l->parent, level++) {
		if (ledger_add(l, b->c, ledger_bill_at(b, l)))
			ledger_raise(r, l, level, LEDGER_EV_HIGH);
		if (over && ledger_limited(l) > l->max)
			ledger_raise(r, l, level, LEDGER_EV_OVER);
		if (unlikely(r->levels))
			ledger_pass_on(r, l);
	}
}

static int ledger_charge_locked(struct ledger *l, const struct ledger *from,
				const struct ledger_counts *c,
				struct ledger_raised *r)
{
	struct ledger_bill b = { .c = c };
	int err;

	err = ledger_admit_all(l, from, &b, r);
	if (likely(!err))
		ledger_add_all(l, &b, from != l, r);
	return err;
}

/*
 * The usual charge: all levels are up to date, at the same prices, and stay
 * below all that would have to be looked at or told. False: nothing was done.
 */
static bool ledger_charge_simple(struct ledger *l,
				 const struct ledger_counts *c)
{
	const struct ledger_prices *prices = l->prices;
	unsigned long version = l->domain->version;
	u64 cost = ledger_cost(prices, c);
	struct ledger *at;

	for (at = l; at->parent; at = at->parent) {
		if (at->version != version || at->prices != prices ||
		    cost >= at->room || at->usage >= at->room - cost)
			return false;
	}
	for (at = l; at->parent; at = at->parent) {
		ledger_counts_add(&at->count, c);
		at->usage += cost;
		ledger_note_peak(at);
	}
	return true;
}

/* Any other charge; the levels from @from on may refuse. Gives up the lock. */
static noinline int ledger_charge_slow(struct ledger *l,
				       const struct ledger *from,
				       const struct ledger_counts *c)
	__releases(&l->domain->lock)
{
	struct ledger_raised r;
	int err;

	r.levels = 0;
	err = ledger_charge_locked(l, from, c, &r);
	if (likely(!r.levels)) {
		ledger_unlock(l);
		return err;
	}
	rcu_read_lock();
	ledger_unlock(l);
	ledger_tell(&r, l);
	rcu_read_unlock();
	return err;
}

static int ledger_charge_from(struct ledger *l, const struct ledger *from,
			      const struct ledger_counts *c)
{
	if (ledger_counts_zero(c))
		return 0;
	ledger_lock(l);
	if (unlikely(!ledger_charge_simple(l, c)))
		return ledger_charge_slow(l, from, c);
	ledger_unlock(l);
	return 0;
}

/**
 * ledger_try_charge() - charge if every level allows it
 * @l: where to charge, not the root; the caller keeps it in memory
 * @c: what
 *
 * Context: does not sleep; takes the domain lock.
 * Return: 0, -EDQUOT a limit would be exceeded, -EBUSY a group is locked.
 */
int ledger_try_charge(struct ledger *l, const struct ledger_counts *c)
{
	return ledger_charge_from(l, l, c);
}

/* The lowest ledger that is above both, or one of them; the root at last. */
static struct ledger *ledger_common(struct ledger *a, struct ledger *b)
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

/**
 * ledger_try_charge_from() - charge if the levels allow it that concern another
 * @l: where to charge, not the root; the caller keeps it in memory
 * @payer: whoever makes the charge necessary: the limits of levels that are
 *	above both, or are one of them, are kept; those below are not asked, and
 *	may be exceeded, which is counted
 * @c: what
 *
 * Context: does not sleep; takes the domain lock.
 * Return: 0, -EDQUOT a limit would be exceeded, -EBUSY a group is locked.
 */
int ledger_try_charge_from(struct ledger *l, struct ledger *payer,
			   const struct ledger_counts *c)
{
	return ledger_charge_from(l, ledger_common(l, payer), c);
}

/**
 * ledger_charge() - charge regardless of limits and locks
 * @l: where to charge, not the root; the caller keeps it in memory
 * @c: what
 *
 * Context: does not sleep; takes the domain lock.
 */
void ledger_charge(struct ledger *l, const struct ledger_counts *c)
{
	ledger_charge_from(l, NULL, c);
}

/*
 * Where usage cannot just be reduced: it is saturated, or somebody is wrong, who
 * took back more than there is: nothing is left of that kind.
 */
static noinline void ledger_sub_slow(struct ledger *l)
{
	int k;

	for (k = 0; k < LEDGER_KINDS; k++) {
		if (WARN_ON_ONCE((s64)l->count.n[k] < 0))
			l->count.n[k] = 0;
	}
	l->usage = ledger_cost_all(l->prices, &l->count, &l->living);
}

/* Take @c off the account of @l alone. No count is ever near its sign. */
static __always_inline void ledger_sub(struct ledger *l,
				       const struct ledger_counts *c, u64 cost)
{
	u64 below = 0;
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		below |= l->count.n[k] -= c->n[k];
	if (unlikely((s64)below < 0 || l->usage == U64_MAX))
		ledger_sub_slow(l);
	else
		l->usage -= cost;
}

/**
 * ledger_uncharge() - take a charge back
 * @l: where it was charged; may be freed as soon as this returns
 * @c: what
 *
 * Context: does not sleep; takes the domain lock.
 */
void ledger_uncharge(struct ledger *l, const struct ledger_counts *c)
{
	const struct ledger_prices *prices = NULL;
	struct ledger *at;
	u64 cost = 0;
	bool idle;

	if (ledger_counts_zero(c))
		return;
	/* The domain lock may be freed right after it is given up. */
	rcu_read_lock();
	ledger_lock(l);
	for (at = l; at->parent; at = at->parent) {
		ledger_sync(at);
		if (at->prices != prices) {
			prices = at->prices;
			cost = ledger_cost(prices, c);
		}
		ledger_sub(at, c, cost);
	}
	idle = ledger_counts_zero(&l->count);
	ledger_unlock(l);
	if (idle)
		ledger_idle(l);
	rcu_read_unlock();
}

/* Look */

/* Expected clean-up time of all that is charged at @l and below it, ns. */
u64 ledger_usage(struct ledger *l)
{
	u64 usage;

	if (ledger_is_root(l))
		return 0;
	ledger_lock(l);
	ledger_sync(l);
	usage = l->usage;
	ledger_unlock(l);
	return usage;
}

/* The part of it that a reclaim takes back: that of the device, ns. */
u64 ledger_device_usage(struct ledger *l)
{
	u64 usage;

	if (ledger_is_root(l))
		return 0;
	ledger_lock(l);
	ledger_sync(l);
	usage = ledger_cost(l->prices, &l->count);
	ledger_unlock(l);
	return usage;
}

bool ledger_is_zero(struct ledger *l)
{
	bool zero;

	ledger_lock(l);
	zero = ledger_counts_zero(&l->count) && living_counts_zero(&l->living);
	ledger_unlock(l);
	return zero;
}

/**
 * ledger_get_state() - copy all that a reader may want, as of one moment
 * @l: the ledger; of the root only the prices mean something
 * @s: where to
 *
 * Context: does not sleep; takes the domain lock.
 */
void ledger_get_state(struct ledger *l, struct ledger_state *s)
{
	ledger_lock(l);
	if (!ledger_is_root(l)) {
		ledger_sync(l);
		/* A price that rose may have lifted the usage above the peak. */
		ledger_note_peak(l);
	}
	*s = (struct ledger_state) {
		.count = l->count,
		.living = l->living,
		.prices = *l->prices,
		.own_prices = l->has_prices,
		.locked = l->locked,
		.mode = l->mode,
		.usage = l->usage,
		.max = l->max,
		.high = l->high,
		.peak = l->peak,
		.low_peak = l->low_peak,
	};
	memcpy(s->event, l->event, sizeof(s->event));
	memcpy(s->event_local, l->event_local, sizeof(s->event_local));
	ledger_unlock(l);
}

/* Set */

/* What decides on it has changed. */
static void ledger_set_room(struct ledger *l)
{
	u64 most = min(l->max, l->high);

	l->room = l->locked ? 0 : add_saturating(most, 1);
}

void ledger_set_max(struct ledger *l, u64 ns)
{
	ledger_lock(l);
	l->max = ns;
	ledger_set_room(l);
	ledger_unlock(l);
}

void ledger_set_high(struct ledger *l, u64 ns)
{
	ledger_lock(l);
	l->high = ns;
	ledger_set_room(l);
	ledger_unlock(l);
}

void ledger_set_locked(struct ledger *l, bool locked)
{
	ledger_lock(l);
	l->locked = locked;
	ledger_set_room(l);
	ledger_unlock(l);
}

/* What the limit of @l means for the living from now on. */
void ledger_set_mode(struct ledger *l, enum ledger_mode mode)
{
	ledger_lock(l);
	l->mode = mode;
	ledger_unlock(l);
}

/*
 * Prices in force here or below have changed. READ_ONCE() in
 * domain_follow_root() is the other side, for the root.
 */
static void ledger_changed(struct ledger *l)
{
	lockdep_assert_held(&l->domain->lock);
	WRITE_ONCE(l->domain->version, l->domain->version + 1);
}

/**
 * ledger_set_prices() - give a ledger prices of its own
 * @l: the ledger, or the root
 * @prices: the prices
 * @kinds: bit per kind, those of the living after those of the device: which of
 *	@prices to take; the others stay what they are now, but are the ledger's
 *	own from now on, too
 *
 * Holds at once for what is already charged, here and below.
 *
 * Context: does not sleep; takes the domain lock, in constant time.
 */
void ledger_set_prices(struct ledger *l, const struct ledger_prices *prices,
		       unsigned int kinds)
{
	struct ledger_prices set;
	int k;

	ledger_lock(l);
	if (!ledger_is_root(l))
		ledger_sync(l);
	set = *l->prices;
	for (k = 0; k < LEDGER_KINDS; k++) {
		if (kinds & (1U << k))
			set.ns[k] = prices->ns[k];
	}
	for (k = 0; k < LIVING_KINDS; k++) {
		if (kinds & (1U << (LEDGER_KINDS + k)))
			set.living[k] = prices->living[k];
	}
	if (ledger_is_root(l)) {
		l->own_domain.prices = set;
	} else {
		l->own_prices = set;
		l->has_prices = true;
	}
	ledger_changed(l);
	ledger_unlock(l);
}

/* Drop the own prices of @l, which is not the root. */
void ledger_inherit_prices(struct ledger *l)
{
	ledger_lock(l);
	l->has_prices = false;
	ledger_changed(l);
	ledger_unlock(l);
}

/**
 * ledger_reset_peak() - start measuring a new low peak
 * @l: the ledger
 * @usage: where the new peak starts
 *
 * Return: the low peak until now.
 */
u64 ledger_reset_peak(struct ledger *l, u64 *usage)
{
	u64 old;

	ledger_lock(l);
	ledger_sync(l);
	ledger_note_peak(l);
	old = l->low_peak;
	l->low_peak = l->usage;
	*usage = l->usage;
	ledger_unlock(l);
	return old;
}

/* Make */

static void ledger_init_common(struct ledger *l)
{
	memset(l, 0, sizeof(*l));
	l->max = LEDGER_NO_LIMIT;
	l->high = LEDGER_NO_LIMIT;
	ledger_set_room(l);
}

/**
 * ledger_init_root() - make the root, which only has prices
 * @l: the ledger
 * @prices: its prices
 */
void ledger_init_root(struct ledger *l, const struct ledger_prices *prices)
{
	ledger_init_common(l);
	l->domain = &l->own_domain;
	raw_spin_lock_init(&l->domain->lock);
	l->domain->root = l;
	l->domain->prices = *prices;
	l->prices = &l->domain->prices;
	l->has_prices = true;
}

/**
 * ledger_init() - make an empty ledger
 * @l: the ledger
 * @parent: one level up; stays in memory as long as @l
 */
void ledger_init(struct ledger *l, struct ledger *parent)
{
	ledger_init_common(l);
	l->parent = parent;
	l->domain = parent->domain;
	if (ledger_is_root(parent)) {
		l->domain = &l->own_domain;
		raw_spin_lock_init(&l->domain->lock);
		l->domain->root = parent;
		/* Not 0: no ledger in it is up to date yet. */
		l->domain->version = 1;
		ledger_lock(parent);
		l->domain->prices = parent->domain->prices;
		l->domain->root_version = parent->domain->version;
		ledger_unlock(parent);
	}
	ledger_lock(l);
	ledger_refresh(l);
	ledger_unlock(l);
}
