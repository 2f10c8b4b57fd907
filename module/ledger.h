/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger: how long it would take to clean up, per group, hierarchical.
 *
 * A ledger stores counts by kind, never nanoseconds; its usage is
 *
 *	usage = sum over kinds of count[kind] * price[kind]		[ns]
 *
 * (Eq. 1 of the paper, generalised to ranges), so that a changed price holds
 * at once for what is already charged and leaves no residue. A ledger without
 * prices of its own uses those of its nearest ancestor that has some.
 *
 * Every count of a ledger contains those of its descendants. The root has no
 * limit and keeps prices only; its counts are the sum over its children, taken
 * when somebody asks, so that tenants do not meet in one cache line.
 *
 * Exactness. All ledgers below one child of the root (a domain) share one
 * lock. A charge looks at each level first and changes them afterwards, in one
 * critical section: nobody sees a charge that is going to be refused.
 *
 * Lifetime. A ledger whose counts are not all zero must not go away; whoever
 * charged it may use it until the uncharge. Ledgers are freed after an RCU
 * grace period, since the lock of a domain lies in one.
 */
#ifndef BRUMM_LEDGER_H
#define BRUMM_LEDGER_H

#include "os.h"

/* What is counted. The order is that of the files brumm.price and brumm.stat. */
enum ledger_kind {
	LEDGER_LOOKUP,		/* first mapping of a sponsored subtree */
	LEDGER_MAP,		/* a node: unlink, free, its part of a zap */
	LEDGER_PT,		/* a page of a node */
	LEDGER_KINDS,
};

/* LEDGER_NO_LIMIT: of max and high; LEDGER_PRICE_MAX bounds a price, in ns. */
#define LEDGER_NO_LIMIT		U64_MAX
#define LEDGER_PRICE_MAX	(1ULL << 40)

/* Used for what a ledger holds and for what is charged or uncharged at once. */
struct ledger_counts {
	u64 n[LEDGER_KINDS];
};

struct ledger_prices {
	u64 ns[LEDGER_KINDS];
};

enum ledger_event {
	LEDGER_EV_MAX,		/* refused: this limit would be exceeded */
	LEDGER_EV_HIGH,		/* usage rose above high */
	LEDGER_EV_LOCKED,	/* refused: this group is locked */
	LEDGER_EV_OVER,		/* charged beyond the limit, see ledger_charge() */
	LEDGER_EVENTS,
};

/* One reader of the peak who may reset it for himself, as memory.peak does. */
struct ledger_peak {
	struct list_head link;
	u64 value;
};

/**
 * struct ledger - account of one group
 * @parent: one level up; NULL: the root
 * @domain: lock of the domain; protects all below, here and in the domain
 * @own_lock: what @domain points to in a child of the root (and in the root)
 * @count: what is charged here and below
 * @prices: the prices in force: own ones or an ancestor's
 * @own_prices: where @prices points when the group has its own
 * @max: budget, ns
 * @high: event threshold, ns
 * @peak: highest usage ever
 * @low_peak: highest usage since somebody last reset his own
 * @peaks: list of struct ledger_peak
 * @locked: refuse every charge, here and below
 * @event: events here and below
 * @event_local: events of this ledger's own limits
 */
struct ledger {
	struct ledger *parent;
	spinlock_t *domain;
	spinlock_t own_lock;
	struct ledger_counts count;
	const struct ledger_prices *prices;
	struct ledger_prices own_prices;
	u64 max;
	u64 high;
	u64 peak;
	u64 low_peak;
	struct list_head peaks;
	bool locked;
	u64 event[LEDGER_EVENTS];
	u64 event_local[LEDGER_EVENTS];
};

/* ledger.c */
void ledger_init_root(struct ledger *l, const struct ledger_prices *prices);
void ledger_init(struct ledger *l, struct ledger *parent);
bool ledger_is_zero(struct ledger *l);

int ledger_try_charge(struct ledger *l, const struct ledger_counts *c);
void ledger_charge(struct ledger *l, const struct ledger_counts *c);
void ledger_uncharge(struct ledger *l, const struct ledger_counts *c);

u64 ledger_cost(const struct ledger_prices *p, const struct ledger_counts *c);
u64 ledger_usage(struct ledger *l);

static inline void ledger_counts_add(struct ledger_counts *to,
				     const struct ledger_counts *c)
{
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		to->n[k] += c->n[k];
}

static inline bool ledger_counts_zero(const struct ledger_counts *c)
{
	u64 any = 0;
	int k;

	for (k = 0; k < LEDGER_KINDS; k++)
		any |= c->n[k];
	return !any;
}

/*
 * Supplied by the user of the ledger: the events of @l (here and below) or,
 * with @local, also its own have changed. Called without locks, in process
 * context, inside an RCU read section that keeps @l in memory.
 */
void ledger_notify(struct ledger *l, bool local);

#endif /* BRUMM_LEDGER_H */
