/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two halves of the ledger share: ledger.c (the device, limits, prices)
 * and ledger-living.c (what tasks own). Nobody else includes this.
 */
#ifndef BRUMM_LEDGER_CORE_H
#define BRUMM_LEDGER_CORE_H

#include "ledger.h"

/*
 * Events of one operation: bit i of @levels is the i-th level from below. As long
 * as there is none, @n has not been set to zero either.
 */
struct ledger_raised {
	u64 levels;
	u64 n[LEDGER_EVENTS];
};

static inline u64 add_saturating(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

static inline bool ledger_is_root(const struct ledger *l)
{
	return !l->parent;
}

static inline bool ledger_is_current(const struct ledger *l)
{
	return l->version == l->domain->version;
}

void ledger_copy_root(struct ledger_domain *d);
void ledger_refresh(struct ledger *l);

/* Notice that the root's prices have changed. */
static inline void domain_follow_root(struct ledger_domain *d)
{
	/*
	 * Without the root's lock: who set the price before this charge began
	 * is seen, and who sets one meanwhile comes after it.
	 */
	if (unlikely(READ_ONCE(d->root->own_domain.version) != d->root_version))
		ledger_copy_root(d);
}

static inline void ledger_lock(struct ledger *l)
	__acquires(&l->domain->lock)
{
	unsigned long irqs;

	raw_spin_lock_irqsave(&l->domain->lock, irqs);
	l->domain->irqs = irqs;
	if (!ledger_is_root(l))
		domain_follow_root(l->domain);
}

static inline void ledger_unlock(struct ledger *l)
	__releases(&l->domain->lock)
{
	unsigned long irqs = l->domain->irqs;

	raw_spin_unlock_irqrestore(&l->domain->lock, irqs);
}

static inline void ledger_sync(struct ledger *l)
{
	lockdep_assert_held(&l->domain->lock);
	if (unlikely(!ledger_is_current(l)))
		ledger_refresh(l);
}

static inline void ledger_note_peak(struct ledger *l)
{
	if (l->usage > l->low_peak) {
		l->low_peak = l->usage;
		if (l->usage > l->peak)
			l->peak = l->usage;
	}
}

/* What of the usage the limit of @l is about; all levels are up to date. */
static inline u64 ledger_limited(const struct ledger *l)
{
	if (likely(l->mode == LEDGER_ENFORCE))
		return l->usage;
	return ledger_cost(l->prices, &l->count);
}

void ledger_raise(struct ledger_raised *r, struct ledger *l,
		  unsigned int level, enum ledger_event ev);
void ledger_pass_on(const struct ledger_raised *r, struct ledger *l);
void ledger_tell(const struct ledger_raised *r, struct ledger *l);

#endif /* BRUMM_LEDGER_CORE_H */
