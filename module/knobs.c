// SPDX-License-Identifier: GPL-2.0
/*
 * The brumm.* files of a cgroup. What each means and what it refuses is in
 * Documentation/abi/knobs.md.
 *
 * Contract: reading makes no group; a cgroup without one shows what it would
 * start with. A write that fails has changed nothing, except that a reclaim
 * that was killed has reclaimed something.
 *
 * How a module gets cgroup files. The functions that add and remove them are
 * declared in the kernel's headers but not exported. A kprobe tells the address
 * of a function; it may lie behind the landing pad of the function, where a
 * kernel with indirect branch tracking allows no indirect call. So each is
 * called by a static call, which is a direct one, and nothing else.
 *
 * Lifetime. kernfs keeps a cgroup's files, and with them the css, while a
 * handler runs, and removing a file waits for its handlers with cgroup_mutex
 * held. Therefore no handler takes long, nor a lock that is held around the
 * removal; and a reclaim, which may take long, gives that protection up (see
 * reclaim_write()).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/kernfs.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/static_call.h>

#include "group.h"
#include "living.h"
#include "units.h"

#ifndef CONFIG_HAVE_STATIC_CALL
#error "brumm needs an architecture that patches static calls"
#endif

#define LEDGER_NAME(name, text)						\
	[LEDGER_##name] = text,
#define LIVING_NAME(name, text)						\
	[LEDGER_KINDS + LIVING_##name] = text,

static const char *const kind_names[LEDGER_ALL_KINDS] = {
	LEDGER_KINDS_LIST(LEDGER_NAME)
	LIVING_KINDS_LIST(LIVING_NAME)
};

static const char *const mode_names[] = {
	[LEDGER_OFF] = "off",
	[LEDGER_AUDIT] = "audit",
	[LEDGER_ENFORCE] = "enforce",
};

static const char *const event_names[LEDGER_EVENTS] = {
	[LEDGER_EV_MAX] = "max",
	[LEDGER_EV_HIGH] = "high",
	[LEDGER_EV_LOCKED] = "locked",
	[LEDGER_EV_OVER] = "over",
	[LEDGER_EV_AUDIT] = "audit",
};

/* brumm.max, brumm.high */

static void show_limit(struct seq_file *sf, u64 ns)
{
	char buf[UNITS_TIME_BYTES];

	units_print_limit(buf, ns);
	seq_printf(sf, "%s\n", buf);
}

static ssize_t limit_write(struct kernfs_open_file *of, const char *buf,
			   size_t nbytes, void (*set)(struct ledger *, u64))
{
	struct brumm_group *g;
	u64 ns;
	int err;

	err = units_parse_limit(buf, nbytes, &ns);
	if (err)
		return err;
	g = group_get_css(of_css(of));
	if (IS_ERR(g))
		return PTR_ERR(g);
	set(&g->sp.ledger, ns);
	group_put(&g->sp);
	return nbytes;
}

static int max_show(struct seq_file *sf, void *v)
{
	struct ledger_state s;

	group_get_state(seq_css(sf), &s);
	show_limit(sf, s.max);
	return 0;
}

static ssize_t max_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
			 loff_t off)
{
	return limit_write(of, buf, nbytes, ledger_set_max);
}

static int high_show(struct seq_file *sf, void *v)
{
	struct ledger_state s;

	group_get_state(seq_css(sf), &s);
	show_limit(sf, s.high);
	return 0;
}

static ssize_t high_write(struct kernfs_open_file *of, char *buf,
			  size_t nbytes, loff_t off)
{
	return limit_write(of, buf, nbytes, ledger_set_high);
}

/* brumm.current, brumm.peak */

static int current_show(struct seq_file *sf, void *v)
{
	struct living_state living;
	struct ledger_state s;

	living_refresh(seq_css(sf), &living);
	group_get_state(seq_css(sf), &s);
	seq_printf(sf, "%llu\n", units_us_up(s.usage));
	return 0;
}

/**
 * struct peak_watch - an open brumm.peak whose holder has reset it
 * @node: in group->watches, by @of
 * @of: the open file
 * @value: its peak until the last time that anybody reset his
 *
 * Its peak now is the larger one of @value and the ledger's low peak. It holds
 * a reference to the group.
 */
struct peak_watch {
	struct rb_node node;
	struct kernfs_open_file *of;
	u64 value;
};

static struct peak_watch *watch_of(struct rb_node *node)
{
	return rb_entry(node, struct peak_watch, node);
}

static struct peak_watch *watch_find(struct brumm_group *g,
				     const struct kernfs_open_file *of)
{
	struct rb_node *node = g->watches.rb_node;

	lockdep_assert_held(&g->lock);
	while (node) {
		struct peak_watch *w = watch_of(node);

		if (w->of == of)
			return w;
		node = (ulong)of < (ulong)w->of ? node->rb_left :
						  node->rb_right;
	}
	return NULL;
}

static void watch_insert(struct brumm_group *g, struct peak_watch *w)
{
	struct rb_node **link = &g->watches.rb_node, *parent = NULL;

	lockdep_assert_held(&g->lock);
	while (*link) {
		parent = *link;
		link = (ulong)w->of < (ulong)watch_of(parent)->of ?
			&parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&w->node, parent, link);
	rb_insert_color(&w->node, &g->watches);
	refcount_inc(&g->refs);
}

static int peak_show(struct seq_file *sf, void *v)
{
	struct living_state living;
	struct ledger_state s;
	struct brumm_group *g;
	struct peak_watch *w;
	u64 peak;

	living_refresh(seq_css(sf), &living);
	g = group_find_css(seq_css(sf));
	/* A watch is in the cgroup's own group: then @g is that one. */
	mutex_lock(&g->lock);
	group_get_state(seq_css(sf), &s);
	w = watch_find(g, sf->private);
	peak = w ? max(w->value, s.low_peak) : s.peak;
	mutex_unlock(&g->lock);
	group_put(&g->sp);
	seq_printf(sf, "%llu\n", units_us_up(peak));
	return 0;
}

/* Start the peak of @w anew, and keep what the others have seen. */
static void watch_reset(struct brumm_group *g, struct peak_watch *w)
{
	struct rb_node *node;
	u64 seen, usage;

	lockdep_assert_held(&g->lock);
	seen = ledger_reset_peak(&g->sp.ledger, &usage);
	for (node = rb_first(&g->watches); node; node = rb_next(node))
		watch_of(node)->value = max(watch_of(node)->value, seen);
	w->value = usage;
}

static ssize_t peak_write(struct kernfs_open_file *of, char *buf,
			  size_t nbytes, loff_t off)
{
	struct brumm_group *g = group_get_css(of_css(of));
	struct peak_watch *w, *spare;

	if (IS_ERR(g))
		return PTR_ERR(g);
	spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	if (!spare) {
		group_put(&g->sp);
		return -ENOMEM;
	}
	mutex_lock(&g->lock);
	w = watch_find(g, of);
	if (!w) {
		w = spare;
		spare = NULL;
		w->of = of;
		watch_insert(g, w);
	}
	watch_reset(g, w);
	mutex_unlock(&g->lock);
	kfree(spare);
	group_put(&g->sp);
	return nbytes;
}

static void peak_release(struct kernfs_open_file *of)
{
	struct brumm_group *g = group_find_css(of_css(of));
	struct peak_watch *w;

	mutex_lock(&g->lock);
	w = watch_find(g, of);
	if (w)
		rb_erase(&w->node, &g->watches);
	mutex_unlock(&g->lock);
	if (w)
		group_put(&g->sp);
	kfree(w);
	group_put(&g->sp);
}

/* brumm.stat */

/* Count and price of the @k-th kind of all. */
static u64 kind_count(const struct ledger_state *s, int k)
{
	return k < LEDGER_KINDS ? s->count.n[k] : s->living.n[k - LEDGER_KINDS];
}

static u64 *kind_price(struct ledger_prices *p, int k)
{
	return k < LEDGER_KINDS ? &p->ns[k] : &p->living[k - LEDGER_KINDS];
}

static void show_counts(struct seq_file *sf, struct ledger_state *s)
{
	u64 n, ns;
	int k;

	seq_printf(sf, "usage_ns %llu\n", s->usage);
	for (k = 0; k < LEDGER_ALL_KINDS; k++) {
		n = kind_count(s, k);
		if (check_mul_overflow(*kind_price(&s->prices, k), n, &ns))
			ns = U64_MAX;
		seq_printf(sf, "%s_count %llu\n", kind_names[k], n);
		seq_printf(sf, "%s_ns %llu\n", kind_names[k], ns);
	}
}

static void show_reclaims(struct seq_file *sf, const struct group_reclaims *r)
{
	seq_printf(sf, "reclaims %llu\n", r->nr);
	seq_printf(sf, "last_reclaim_predicted_ns %llu\n", r->last_predicted);
	seq_printf(sf, "last_reclaim_measured_ns %llu\n", r->last_measured);
	seq_printf(sf, "worst_reclaim_predicted_ns %llu\n", r->worst_predicted);
	seq_printf(sf, "worst_reclaim_measured_ns %llu\n", r->worst_measured);
}

static int stat_show(struct seq_file *sf, void *v)
{
	struct cgroup_subsys_state *css = seq_css(sf);
	struct group_reclaims reclaims;
	struct living_state living;
	struct ledger_state s;

	living_refresh(css, &living);
	group_get_state(css, &s);
	show_counts(sf, &s);
	if (css->parent) {
		group_get_reclaims(css, &reclaims);
		show_reclaims(sf, &reclaims);
	}
	seq_printf(sf, "living_records %llu\n", living.records);
	seq_printf(sf, "living_oldest_look_ns %llu\n", living.oldest);
	seq_printf(sf, "living_stale %llu\n", living.stale);
	seq_printf(sf, "living_serial_ns %llu\n",
		   living_cost(&s.prices, &s.living));
	return 0;
}

/* brumm.events, brumm.events.local */

static void show_events(struct seq_file *sf, const u64 *event)
{
	int ev;

	for (ev = 0; ev < LEDGER_EVENTS; ev++)
		seq_printf(sf, "%s %llu\n", event_names[ev], event[ev]);
}

static int events_show(struct seq_file *sf, void *v)
{
	struct ledger_state s;

	group_get_state(seq_css(sf), &s);
	show_events(sf, s.event);
	return 0;
}

static int events_local_show(struct seq_file *sf, void *v)
{
	struct ledger_state s;

	group_get_state(seq_css(sf), &s);
	show_events(sf, s.event_local);
	return 0;
}

/* brumm.price */

static int price_show(struct seq_file *sf, void *v)
{
	struct ledger_state s;
	int k;

	group_get_state(seq_css(sf), &s);
	for (k = 0; k < LEDGER_ALL_KINDS; k++)
		seq_printf(sf, "%s %llu\n", kind_names[k],
			   *kind_price(&s.prices, k));
	seq_printf(sf, "own %d\n", s.own_prices);
	return 0;
}

/* Which of @names is @word? */
static int name_parse(const char *word, size_t len, const char *const *names,
		      int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		if (units_word_is(word, len, names[i]))
			return i;
	}
	return -EINVAL;
}

/* Pairs of a kind and its price; the bit of each kind in @kinds. */
static int prices_parse(const char *s, const char *end,
			struct ledger_prices *prices, unsigned int *kinds)
{
	const char *word;
	size_t len;
	u64 *price;
	int k, err;

	*kinds = 0;
	while (units_next_word(&s, end, &word, &len)) {
		k = name_parse(word, len, kind_names, LEDGER_ALL_KINDS);
		if (k < 0 || (*kinds & BIT(k)) ||
		    !units_next_word(&s, end, &word, &len))
			return -EINVAL;
		price = kind_price(prices, k);
		err = units_parse_time(word, len, UNITS_NS, price);
		if (err)
			return err;
		if (*price > LEDGER_PRICE_MAX)
			return -ERANGE;
		*kinds |= BIT(k);
	}
	return *kinds ? 0 : -EINVAL;
}

static bool is_word(const char *s, const char *end, const char *what)
{
	const char *word;
	size_t len;

	return units_next_word(&s, end, &word, &len) &&
	       units_word_is(word, len, what) &&
	       !units_next_word(&s, end, &word, &len);
}

static ssize_t price_write(struct kernfs_open_file *of, char *buf,
			   size_t nbytes, loff_t off)
{
	const bool drop = is_word(buf, buf + nbytes, "default");
	struct ledger_prices prices = {};
	unsigned int kinds = 0;
	struct brumm_group *g;
	int err;

	if (!drop) {
		err = prices_parse(buf, buf + nbytes, &prices, &kinds);
		if (err)
			return err;
	}
	g = group_get_css(of_css(of));
	if (IS_ERR(g))
		return PTR_ERR(g);
	if (!drop)
		ledger_set_prices(&g->sp.ledger, &prices, kinds);
	else
		group_default_prices(g);
	group_put(&g->sp);
	return nbytes;
}

/* brumm.mode */

static int mode_show(struct seq_file *sf, void *v)
{
	enum ledger_mode in_force;
	int own = group_get_mode(seq_css(sf), &in_force);

	seq_printf(sf, "%s%s\n", mode_names[in_force],
		   own == GROUP_MODE_INHERIT ? " inherited" : "");
	return 0;
}

static ssize_t mode_write(struct kernfs_open_file *of, char *buf,
			  size_t nbytes, loff_t off)
{
	const char *s = buf, *end = buf + nbytes, *word, *rest;
	int mode = GROUP_MODE_INHERIT;
	struct brumm_group *g;
	size_t len, rest_len;
	int err = 0, old;

	if (!units_next_word(&s, end, &word, &len) ||
	    units_next_word(&s, end, &rest, &rest_len))
		return -EINVAL;
	if (!units_word_is(word, len, "inherit")) {
		mode = name_parse(word, len, mode_names,
				  ARRAY_SIZE(mode_names));
		if (mode < 0)
			return mode;
	}
	/* Following tasks costs everybody a little: that is not for an owner. */
	if (mode > LEDGER_OFF && !living_is_on() &&
	    !file_ns_capable(of->file, &init_user_ns, CAP_SYS_ADMIN))
		return -EPERM;
	g = group_get_css(of_css(of));
	if (IS_ERR(g))
		return PTR_ERR(g);
	old = group_set_mode(g, mode);
	/* From one of those that follow to another nobody is met or forgotten. */
	if (old <= LEDGER_OFF || mode <= LEDGER_OFF)
		err = living_mode_changed();
	if (err)
		group_set_mode(g, old);
	group_put(&g->sp);
	return err ?: nbytes;
}

/* brumm.lock */

static int lock_show(struct seq_file *sf, void *v)
{
	struct ledger_state s;

	group_get_state(seq_css(sf), &s);
	seq_printf(sf, "%d\n", s.locked);
	return 0;
}

static ssize_t lock_write(struct kernfs_open_file *of, char *buf,
			  size_t nbytes, loff_t off)
{
	struct brumm_group *g;
	bool locked;
	int err;

	err = units_parse_bool(buf, nbytes, &locked);
	if (err)
		return err;
	g = group_get_css(of_css(of));
	if (IS_ERR(g))
		return PTR_ERR(g);
	ledger_set_locked(&g->sp.ledger, locked);
	group_put(&g->sp);
	return nbytes;
}

/* Functions of the kernel that are not exported */

static int no_add_cftypes(struct cgroup_subsys *ss, struct cftype *cfts)
{
	return -EOPNOTSUPP;
}

static int no_rm_cftypes(struct cftype *cfts)
{
	return -EOPNOTSUPP;
}

static void no_protection(struct kernfs_node *kn)
{
}

DEFINE_STATIC_CALL(add_cftypes, no_add_cftypes);
DEFINE_STATIC_CALL(rm_cftypes, no_rm_cftypes);
DEFINE_STATIC_CALL(break_protection, no_protection);
DEFINE_STATIC_CALL(unbreak_protection, no_protection);

enum needed {
	ADD_CFTYPES,
	RM_CFTYPES,
	BREAK_PROTECTION,
	UNBREAK_PROTECTION,
	NR_NEEDED,
};

static const char *const needed_names[NR_NEEDED] = {
	[ADD_CFTYPES] = "cgroup_add_dfl_cftypes",
	[RM_CFTYPES] = "cgroup_rm_cftypes",
	[BREAK_PROTECTION] = "kernfs_break_active_protection",
	[UNBREAK_PROTECTION] = "kernfs_unbreak_active_protection",
};

/*
 * The probe is registered disabled: it gets its address, and nothing is patched
 * into a function that others are calling.
 */
static void *address_of(const char *name)
{
	struct kprobe kp = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (register_kprobe(&kp))
		return NULL;
	unregister_kprobe(&kp);
	return kp.addr;
}

/* All or nothing. */
static int resolve(void)
{
	void *addr[NR_NEEDED];
	char missing[160] = "";
	int i, len = 0;

	for (i = 0; i < NR_NEEDED; i++) {
		addr[i] = address_of(needed_names[i]);
		if (addr[i])
			continue;
		len += scnprintf(missing + len, sizeof(missing) - len, " %s",
				 needed_names[i]);
	}
	if (len) {
		pr_err("cannot find by kprobe, so no cgroup files are possible:%s\n",
		       missing);
		return -EOPNOTSUPP;
	}
	static_call_update(add_cftypes, addr[ADD_CFTYPES]);
	static_call_update(rm_cftypes, addr[RM_CFTYPES]);
	static_call_update(break_protection, addr[BREAK_PROTECTION]);
	static_call_update(unbreak_protection, addr[UNBREAK_PROTECTION]);
	return 0;
}

/* brumm.reclaim */

/* Read: reclaims under way. Written: when the module goes. */
static DECLARE_RWSEM(reclaiming);

static void reclaims_note(struct brumm_group *g, u64 predicted, u64 measured)
{
	struct group_reclaims *r = &g->reclaims;

	mutex_lock(&g->lock);
	r->nr++;
	r->last_predicted = predicted;
	r->last_measured = measured;
	if (measured >= r->worst_measured) {
		r->worst_predicted = predicted;
		r->worst_measured = measured;
	}
	mutex_unlock(&g->lock);
}

/* All that @top and those below it sponsor. */
static int reclaim_below(struct brumm_group *top,
			 struct mapdb_unmap_result *res)
{
	struct brumm_group *g = NULL;
	int err = 0;

	mapdb_settle();
	while (!err && (g = group_next_below(top, g))) {
		err = mapdb_reclaim_settled(&g->sp, res);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
	}
	if (g)
		group_put(&g->sp);
	return err;
}

static int reclaim(struct brumm_group *g)
{
	u64 predicted = ledger_device_usage(&g->sp.ledger);
	struct mapdb_unmap_result res = {};
	u64 start = ktime_get_ns();
	int err;

	os_begin(reclaim, 0);
	err = reclaim_below(g, &res);
	os_end(reclaim, g->sp.id, res.nodes, res.pages, 0, err);
	/* A part of the work says nothing of the prediction for all of it. */
	if (!err)
		reclaims_note(g, predicted, ktime_get_ns() - start);
	return err;
}

/*
 * With kernfs' protection a removal of this cgroup, or of the module, would
 * wait for us while it holds cgroup_mutex, and so would everybody who makes or
 * enters a cgroup. Without it both go ahead: the group is kept by our
 * reference, the module by @reclaiming, see knobs_exit().
 */
static ssize_t reclaim_write(struct kernfs_open_file *of, char *buf,
			     size_t nbytes, loff_t off)
{
	struct brumm_group *g = group_get_css(of_css(of));
	int err;

	if (IS_ERR(g))
		return PTR_ERR(g);
	down_read(&reclaiming);
	static_call(break_protection)(of->kn);
	err = reclaim(g);
	group_put(&g->sp);
	static_call(unbreak_protection)(of->kn);
	up_read(&reclaiming);
	return err ?: nbytes;
}

/* The table */

#define ANYWHERE	CFTYPE_NO_PREFIX
#define BELOW_ROOT	(CFTYPE_NO_PREFIX | CFTYPE_NOT_ON_ROOT)

static struct cftype knobs[] = {
	{
		.name = "brumm.max",
		.flags = BELOW_ROOT,
		.seq_show = max_show,
		.write = max_write,
	},
	{
		.name = "brumm.high",
		.flags = BELOW_ROOT,
		.seq_show = high_show,
		.write = high_write,
	},
	{
		.name = "brumm.current",
		.flags = ANYWHERE,
		.seq_show = current_show,
	},
	{
		.name = "brumm.peak",
		.flags = BELOW_ROOT,
		.seq_show = peak_show,
		.write = peak_write,
		.release = peak_release,
	},
	{
		.name = "brumm.stat",
		.flags = ANYWHERE,
		.seq_show = stat_show,
	},
	{
		.name = KNOB_EVENTS,
		.flags = BELOW_ROOT,
		.seq_show = events_show,
	},
	{
		.name = KNOB_EVENTS_LOCAL,
		.flags = BELOW_ROOT,
		.seq_show = events_local_show,
	},
	{
		.name = "brumm.price",
		.flags = ANYWHERE,
		.seq_show = price_show,
		.write = price_write,
	},
	{
		.name = "brumm.mode",
		.flags = ANYWHERE,
		.seq_show = mode_show,
		.write = mode_write,
	},
	{
		.name = "brumm.lock",
		.flags = BELOW_ROOT,
		.seq_show = lock_show,
		.write = lock_write,
	},
	{
		.name = "brumm.reclaim",
		.flags = BELOW_ROOT,
		.write = reclaim_write,
	},
	{ }
};

static bool present;

bool knobs_present(void)
{
	return present;
}

/**
 * knobs_init() - add the files to all cgroups, now and later
 *
 * Without the memory controller (cgroup_disable=memory) there are no cgroups
 * to add them to: the device works, and nobody pays.
 *
 * Return: 0; -EOPNOTSUPP this kernel has not what it takes; what the cgroup
 * core says.
 */
int knobs_init(void)
{
	int err;

	if (!cgroup_subsys_enabled(memory_cgrp_subsys)) {
		pr_warn("the memory controller is disabled: no brumm.* files, nothing is charged\n");
		return 0;
	}
	err = resolve();
	if (err)
		return err;
	err = static_call(add_cftypes)(&memory_cgrp_subsys, knobs);
	if (err) {
		pr_err("cannot add files to the cgroups (%d)\n", err);
		return err;
	}
	present = true;
	if (!cgroup_subsys_on_dfl(memory_cgrp_subsys))
		pr_notice("the memory controller is in a v1 hierarchy: no brumm.* files before it is in v2\n");
	return 0;
}

/* Remove the files. When this returns, no handler runs. */
void knobs_exit(void)
{
	if (!present)
		return;
	present = false;
	static_call(rm_cftypes)(knobs);
	/* Reclaims that gave up kernfs' protection before that. */
	down_write(&reclaiming);
	up_write(&reclaiming);
	/* The last of them may still be on its way out of our text. */
	synchronize_rcu_tasks();
}
