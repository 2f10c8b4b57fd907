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
 * The living. What tasks own is a second vector, of other kinds, in the same
 * ledger: one usage, one limit, the same events. It is changed by differences in
 * which few kinds are not zero, and its length costs a charge of the device
 * nothing. The ledger's mode says what its limit means for the living:
 *
 *	off	nothing: they are counted, and do not count against the limit
 *	audit	the same, but what would have been refused is an event
 *	enforce	the limit is for both together
 *
 * Locks, outer to inner; raw ones, because tracepoints charge, and with both
 * held only steps linear in the depth of the tree are done. Interrupts are off:
 * the tracepoint of a move comes with a lock of the tracing of cgroups held, which
 * is taken inside css_set_lock, which soft interrupts take.
 *	domain lock	everything in the ledgers of a domain
 *	root's lock	the root's prices
 *
 * Lifetime. A ledger whose counts are not all zero must not go away; whoever
 * charged it may use it until the uncharge. Ledgers are freed after an RCU
 * grace period, since the lock of a domain lies in one.
 */
#ifndef BRUMM_LEDGER_H
#define BRUMM_LEDGER_H

#include "kinds.h"
#include "os.h"

/*
 * Built with BRUMM_QUOTA=0 nothing is charged to anybody: the database knows of
 * no sponsor, and this file's functions are not there. That is the base line
 * for what accounting costs.
 */
#ifndef BRUMM_QUOTA
#define BRUMM_QUOTA	1
#endif

/* LEDGER_NO_LIMIT: of max and high; LEDGER_PRICE_MAX bounds a price, in ns. */
#define LEDGER_NO_LIMIT		U64_MAX
#define LEDGER_PRICE_MAX	1000000000000ULL

/* Used for what a ledger holds and for what is charged or uncharged at once. */
struct ledger_counts {
	u64 n[LEDGER_KINDS];
};

/* What a ledger holds of the living. */
struct living_counts {
	u64 n[LIVING_KINDS];
};

/**
 * struct living_delta - a change of what is held
 * @kinds: bit per kind: those of @n that mean something; none of them is 0
 * @n: by how much
 */
struct living_delta {
	u32 kinds;
	s64 n[LIVING_KINDS];
};

struct ledger_prices {
	u64 ns[LEDGER_KINDS];
	u64 living[LIVING_KINDS];
};

/* What a limit means for the living, see above. */
enum ledger_mode {
	LEDGER_OFF,
	LEDGER_AUDIT,
	LEDGER_ENFORCE,
};

enum ledger_event {
	LEDGER_EV_MAX,		/* refused: this limit would be exceeded */
	LEDGER_EV_HIGH,		/* usage rose above high */
	LEDGER_EV_LOCKED,	/* refused: this group is locked */
	LEDGER_EV_OVER,		/* charged beyond the limit, see ledger_charge() */
	LEDGER_EV_AUDIT,	/* let through, would have been refused */
	LEDGER_EVENTS,
};

/**
 * struct ledger_domain - what the ledgers below a child of the root share
 * @lock: see above; in the root: the lock of its prices
 * @irqs: flags of who holds @lock
 * @version: changes whenever a price that is in force here does
 * @root: the root
 * @root_version: version of the root's prices that @prices is a copy of
 * @prices: for ledgers with no prices of their own on the way up; in the root:
 *	its prices
 */
struct ledger_domain {
	raw_spinlock_t lock;	/* see "Locks" above */
	unsigned long irqs;
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
 * @usage: @count and @living at @prices, good at @version
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
 * @mode: see &enum ledger_mode
 * @living: what tasks here and below own
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
	enum ledger_mode mode;
	struct living_counts living;
	struct ledger_domain own_domain;
};

/**
 * struct ledger_state - a ledger as it was at one moment
 * @count: what is charged here and below
 * @living: what tasks here and below own
 * @prices: those in force
 * @own_prices: they are the ledger's own
 * @locked: see &struct ledger
 * @mode: see &struct ledger
 * @usage: @count and @living at @prices, ns
 * @max: ns
 * @high: ns
 * @peak: ns; at least @usage
 * @low_peak: ns; at least @usage
 * @event: here and below
 * @event_local: of this ledger's own limits
 */
struct ledger_state {
	struct ledger_counts count;
	struct living_counts living;
	struct ledger_prices prices;
	bool own_prices;
	bool locked;
	enum ledger_mode mode;
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

/* ledger-living.c */
int ledger_living_try(struct ledger *l, const struct living_delta *d);
void ledger_living_change(struct ledger *l, const struct living_delta *d);
void ledger_living_move(struct ledger *from, struct ledger *to,
			const struct living_counts *c);
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
u64 living_cost(const struct ledger_prices *p, const struct living_counts *c);
u64 ledger_cost_all(const struct ledger_prices *p,
		    const struct ledger_counts *c,
		    const struct living_counts *living);
u64 ledger_usage(struct ledger *l);
u64 ledger_device_usage(struct ledger *l);
void ledger_get_state(struct ledger *l, struct ledger_state *s);

void ledger_set_max(struct ledger *l, u64 ns);
void ledger_set_high(struct ledger *l, u64 ns);
void ledger_set_locked(struct ledger *l, bool locked);
void ledger_set_mode(struct ledger *l, enum ledger_mode mode);
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

static inline bool living_counts_zero(const struct living_counts *c)
{
	u64 any = 0;
	int k;

	for (k = 0; k < LIVING_KINDS; k++)
		any |= c->n[k];
	return !any;
}

/* Put @n more of kind @k into @d, which is empty there. */
static inline void living_delta_set(struct living_delta *d, enum living_kind k,
				    s64 n)
{
	d->n[k] = n;
	if (n)
		d->kinds |= 1U << k;
}

/* For each kind that @d changes. @left: u32, what is still to come. */
#define for_each_living_kind(k, d, left)				\
	for ((left) = (d)->kinds;					\
	     (left) && ((k) = __builtin_ctz(left), true);		\
	     (left) &= (left) - 1)

/*
 * Supplied by the user of the ledger. Called without a lock of the ledger,
 * inside an RCU read section that keeps @l in memory: must not sleep, and may be
 * called where interrupts are off.
 *
 * ledger_notify: the events of @l (here and below) or, with @local, also its
 *	own have changed.
 * ledger_idle: an uncharge of @l itself left nothing of the device, or nothing
 *	of the living, charged there. There may be something of the other, and
 *	somebody may have charged it again since.
 */
void ledger_notify(struct ledger *l, bool local);
void ledger_idle(struct ledger *l);

#endif /* BRUMM_LEDGER_H */
