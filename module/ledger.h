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
 * prices of its own uses those of its nearest ancestor that has some. All sums
 * and products saturate at U64_MAX.
 *
 * Every count of a ledger contains those of its descendants. The root has no
 * limit and keeps prices only; its counts are the sum over its children, taken
 * when somebody asks, so that tenants do not meet in one cache line.
 *
 * Exactness. All ledgers below one child of the root (a domain) share one
 * lock. A charge looks at each level first and changes them afterwards, in one
 * critical section: nobody sees a charge that is going to be refused.
 *
 * Prices. Each ledger remembers the prices in force and its usage at them. The
 * memory is good as long as the domain's version is the one it was made at; a
 * change of prices only raises that, whatever the number of descendants, and
 * each level looks up its prices again when it is next used. The root's prices
 * are copied into each domain, so that no charge takes a lock of the root.
 *
 * Locks, outer to inner
 *	domain lock	everything in the ledgers of a domain
 *	root's lock	the root's prices
 *
 * Lifetime. A ledger whose counts are not all zero must not go away; whoever
 * charged it may use it until the uncharge. Ledgers are freed after an RCU
 * grace period, since the lock of a domain lies in one.
 */
#ifndef BRUMM_LEDGER_H
#define BRUMM_LEDGER_H

#include "os.h"

/*
 * Built with BRUMM_QUOTA=0 nothing is charged to anybody: the database knows of
 * no sponsor, and this file's functions are not there. That is the base line
 * for what accounting costs.
 */
#ifndef BRUMM_QUOTA
#define BRUMM_QUOTA	1
#endif

/* What is counted. The order is that of the files brumm.price and brumm.stat. */
enum ledger_kind {
	LEDGER_LOOKUP,		/* first mapping of a sponsored subtree */
	LEDGER_MAP,		/* a node: unlink, free, its part of a zap */
	LEDGER_PT,		/* a page of a node */
	LEDGER_DEEP,		/* a node derived from a derived one */
	LEDGER_KINDS,
};

/* LEDGER_NO_LIMIT: of max and high; LEDGER_PRICE_MAX bounds a price, in ns. */
#define LEDGER_NO_LIMIT		U64_MAX
#define LEDGER_PRICE_MAX	1000000000000ULL

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

/**
 * struct ledger_domain - what the ledgers below a child of the root share
 * @lock: see above; in the root: the lock of its prices
 * @version: changes whenever a price that is in force here does
 * @root: the root
 * @root_version: version of the root's prices that @prices is a copy of
 * @prices: for ledgers with no prices of their own on the way up; in the root:
 *	its prices
 */
struct ledger_domain {
	spinlock_t lock;	/* see "Locks" above */
	unsigned long version;
	struct ledger *root;
	unsigned long root_version;
	struct ledger_prices prices;
};

/**
 * struct ledger - account of one group
 * @parent: one level up; NULL: the root
 * @domain: the domain it belongs to
 * @prices: those in force, good at @version
 * @usage: @count at @prices, good at @version
 * @version: of the domain, when the two were looked up
 * @room: usage that a charge must stay below to go without a further look: 0
 *	if locked, or else above @max or @high
 * @max: budget, ns
 * @high: event threshold, ns
 * @peak: highest usage ever
 * @low_peak: highest usage since ledger_reset_peak()
 * @locked: refuse every charge, here and below
 * @has_prices: @own_prices hold here and below
 * @count: what is charged here and below
 * @own_prices: see @has_prices
 * @event: events here and below
 * @event_local: events of this ledger's own limits
 * @own_domain: what @domain points to in a child of the root, and in the root
 */
struct ledger {
	struct ledger *parent;
	struct ledger_domain *domain;
	const struct ledger_prices *prices;
	u64 usage;
	unsigned long version;
	u64 room;
	u64 max;
	u64 high;
	u64 peak;
	u64 low_peak;
	bool locked;
	bool has_prices;
	struct ledger_counts count;
	struct ledger_prices own_prices;
	u64 event[LEDGER_EVENTS];
	u64 event_local[LEDGER_EVENTS];
	struct ledger_domain own_domain;
};

/**
 * struct ledger_state - a ledger as it was at one moment
 * @count: what is charged here and below
 * @prices: those in force
 * @own_prices: they are the ledger's own
 * @locked: see &struct ledger
 * @usage: @count at @prices, ns
 * @max: ns
 * @high: ns
 * @peak: ns; at least @usage
 * @low_peak: ns; at least @usage
 * @event: here and below
 * @event_local: of this ledger's own limits
 */
struct ledger_state {
	struct ledger_counts count;
	struct ledger_prices prices;
	bool own_prices;
	bool locked;
	u64 usage;
	u64 max;
	u64 high;
	u64 peak;
	u64 low_peak;
	u64 event[LEDGER_EVENTS];
	u64 event_local[LEDGER_EVENTS];
};

/* ledger.c */
void ledger_init_root(struct ledger *l, const struct ledger_prices *prices);
void ledger_init(struct ledger *l, struct ledger *parent);
bool ledger_is_zero(struct ledger *l);

#if BRUMM_QUOTA
int ledger_try_charge(struct ledger *l, const struct ledger_counts *c);
int ledger_try_charge_from(struct ledger *l, struct ledger *payer,
			   const struct ledger_counts *c);
void ledger_charge(struct ledger *l, const struct ledger_counts *c);
void ledger_uncharge(struct ledger *l, const struct ledger_counts *c);
#else
static inline int ledger_try_charge(struct ledger *l,
				    const struct ledger_counts *c)
{
	return 0;
}

static inline int ledger_try_charge_from(struct ledger *l,
					 struct ledger *payer,
					 const struct ledger_counts *c)
{
	return 0;
}

static inline void ledger_charge(struct ledger *l,
				 const struct ledger_counts *c)
{
}

static inline void ledger_uncharge(struct ledger *l,
				   const struct ledger_counts *c)
{
}
#endif

u64 ledger_cost(const struct ledger_prices *p, const struct ledger_counts *c);
u64 ledger_usage(struct ledger *l);
void ledger_get_state(struct ledger *l, struct ledger_state *s);

void ledger_set_max(struct ledger *l, u64 ns);
void ledger_set_high(struct ledger *l, u64 ns);
void ledger_set_locked(struct ledger *l, bool locked);
void ledger_set_prices(struct ledger *l, const struct ledger_prices *prices,
		       unsigned int kinds);
void ledger_inherit_prices(struct ledger *l);
u64 ledger_reset_peak(struct ledger *l, u64 *usage);

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
 * Supplied by the user of the ledger. Called without a lock of the ledger,
 * inside an RCU read section that keeps @l in memory: must not sleep.
 *
 * ledger_notify: the events of @l (here and below) or, with @local, also its
 *	own have changed.
 * ledger_idle: an uncharge of @l itself left nothing charged there. Somebody
 *	may have charged it again since.
 */
void ledger_notify(struct ledger *l, bool local);
void ledger_idle(struct ledger *l);

#endif /* BRUMM_LEDGER_H */
