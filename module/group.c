// SPDX-License-Identifier: GPL-2.0
/*
 * Groups: which cgroup pays, and how long we remember it.
 *
 * Contract
 *   - A group is made with all groups above it, so that whatever it is charged
 *     is charged there, too.
 *   - It is freed once its cgroup is gone, nothing is charged, it has no
 *     children and nobody holds a reference. Until then, what a removed cgroup
 *     still costs counts in the groups above.
 *   - Nothing here holds a cgroup or a css; a group holds the kernfs node of
 *     its directory, which is a name without the cgroup behind it.
 *
 * When a cgroup is removed, its tracepoint marks the group gone. From then on
 * three events may be the last one that the group waited for, and each has it
 * checked: the mark itself, an uncharge that leaves nothing, a reference that
 * is given back. The check runs from a work item, because the first happens
 * with interrupts off and the second under mutexes.
 *
 * Locks, outer to inner
 *	groups_lock	mutex: tree and table of groups; held to allocate nothing
 *	ledger domain	raw spinlock
 *	checks_lock	raw spinlock: list of groups to check (raw, because a
 *			tracepoint takes it)
 * A look-up takes none of them but RCU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/srcu.h>
#include <linux/tracepoint.h>
#include <linux/xarray.h>

#include "group.h"
#include "tree.h"

/* Least time between two notifications of a group, as the cgroup core has it. */
#define GROUP_NOTIFY_INTERVAL	(HZ / 100 ?: 1)

/* Never gone, never charged; its ledger has the prices of last resort. */
struct brumm_group group_root;

/* See "Locks" above. */
DEFINE_MUTEX(groups_lock);
/* By id of the cgroup; not in it: groups that another one has replaced. */
static DEFINE_XARRAY_FLAGS(groups, XA_FLAGS_ACCOUNT);

static DEFINE_RAW_SPINLOCK(checks_lock);
static LIST_HEAD(checks);
static void groups_check(struct work_struct *work);
static DECLARE_WORK(checks_work, groups_check);

static struct brumm_group *group_of_ledger(struct ledger *l)
{
	return container_of(l, struct brumm_group, sp.ledger);
}

bool group_is_root(const struct brumm_group *g)
{
	return g == &group_root;
}

/* Notification */

static void group_notify_file(struct brumm_group *g, const char *name)
{
	struct kernfs_node *kn = kernfs_find_and_get(g->dir, name);

	/* None: removed with the cgroup, or with the memory controller. */
	if (!kn)
		return;
	kernfs_notify(kn);
	kernfs_put(kn);
}

static void group_notify(struct work_struct *work)
{
	struct brumm_group *g = container_of(to_delayed_work(work),
					     struct brumm_group, notify);

	WRITE_ONCE(g->notified_at, jiffies);
	if (test_and_clear_bit(GROUP_EVENTS, &g->notify_files))
		group_notify_file(g, KNOB_EVENTS);
	if (test_and_clear_bit(GROUP_EVENTS_LOCAL, &g->notify_files))
		group_notify_file(g, KNOB_EVENTS_LOCAL);
}

/*
 * Tenants who are refused in a loop must not keep the notification work of
 * all of kernfs busy: hence the interval. The last event is always told.
 */
void ledger_notify(struct ledger *l, bool local)
{
	struct brumm_group *g = group_of_ledger(l);
	unsigned long since = jiffies - READ_ONCE(g->notified_at);
	unsigned long delay = 0;

	if (since < GROUP_NOTIFY_INTERVAL)
		delay = GROUP_NOTIFY_INTERVAL - since;
	set_bit(GROUP_EVENTS, &g->notify_files);
	if (local)
		set_bit(GROUP_EVENTS_LOCAL, &g->notify_files);
	schedule_delayed_work(&g->notify, delay);
}

/* Free */

/* Inside an RCU read section, or with a reference: keeps @g from being freed. */
static void group_check_later(struct brumm_group *g)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&checks_lock, flags);
	if (list_empty(&g->checks))
		list_add_tail(&g->checks, &checks);
	raw_spin_unlock_irqrestore(&checks_lock, flags);
	schedule_work(&checks_work);
}

static void group_mark_gone(struct brumm_group *g)
{
	WRITE_ONCE(g->gone, true);
	group_check_later(g);
}

/*
 * Called inside an RCU read section that began before the counts became zero.
 * Either this sees the mark, or who marked @g has it checked later than that:
 * both look at the counts under the domain lock.
 */
void ledger_idle(struct ledger *l)
{
	struct brumm_group *g = group_of_ledger(l);

	if (unlikely(READ_ONCE(g->gone)))
		group_check_later(g);
}

/**
 * group_put() - give a reference back
 * @sp: of which group; NULL: the root
 *
 * Context: any but hard interrupts.
 */
void group_put(struct mapdb_sponsor *sp)
{
	struct brumm_group *g;

	if (!sp)
		return;
	g = group_of(sp);
	rcu_read_lock();
	refcount_dec(&g->refs);
	/* Pairs with group_mark_gone() and the check after it. */
	smp_mb__after_atomic();
	if (unlikely(READ_ONCE(g->gone)))
		group_check_later(g);
	rcu_read_unlock();
}

/* Take the last reference, if @g is not needed any more. */
static bool group_take_last(struct brumm_group *g)
{
	struct ledger *l = &g->sp.ledger;

	lockdep_assert_held(&groups_lock);
	if (!g->gone || !ledger_is_zero(l) || !refcount_dec_if_one(&g->refs))
		return false;
	/*
	 * Now nobody can get a reference. Somebody may have had one, charged,
	 * and given it back between the two looks.
	 */
	if (likely(ledger_is_zero(l)))
		return true;
	refcount_set(&g->refs, 1);
	return false;
}

static void group_unlink(struct brumm_group *g, struct list_head *dead)
{
	lockdep_assert_held(&groups_lock);
	xa_cmpxchg(&groups, g->sp.id, g, NULL, 0);
	list_move_tail(&g->sibling, dead);
	refcount_dec(&g->parent->refs);
}

/* Nobody can reach @g; those above it may be freed right afterwards. */
static void group_free(struct brumm_group *g)
{
	WARN_ON_ONCE(!ledger_is_zero(&g->sp.ledger));
	cancel_delayed_work_sync(&g->notify);
	kernfs_put(g->dir);
	kfree(g);
}

static struct brumm_group *checks_pop(void)
{
	struct brumm_group *g;

	raw_spin_lock_irq(&checks_lock);
	g = list_first_entry_or_null(&checks, struct brumm_group, checks);
	if (g)
		list_del_init(&g->checks);
	raw_spin_unlock_irq(&checks_lock);
	return g;
}

static void checks_forget(struct brumm_group *g)
{
	raw_spin_lock_irq(&checks_lock);
	list_del_init(&g->checks);
	raw_spin_unlock_irq(&checks_lock);
}

static void groups_check(struct work_struct *work)
{
	struct brumm_group *g, *next;
	LIST_HEAD(dead);

	/*
	 * Only this work frees groups, so what it pops stays. With a group its
	 * parent may have lost the last that it was kept for.
	 */
	while ((g = checks_pop())) {
		mutex_lock(&groups_lock);
		for (; group_take_last(g); g = g->parent)
			group_unlink(g, &dead);
		mutex_unlock(&groups_lock);
		cond_resched();
	}
	if (list_empty(&dead))
		return;
	/*
	 * For a map that still carries the sponsor of a node that is gone, and
	 * for look-ups, uncharges and puts on their last steps.
	 */
	synchronize_srcu(mapdb_charging);
	synchronize_rcu();
	list_for_each_entry(g, &dead, sibling)
		checks_forget(g);
	list_for_each_entry_safe(g, next, &dead, sibling)
		group_free(g);
}

/* Look up */

static bool css_is_v2(const struct cgroup_subsys_state *css)
{
	return css->cgroup->root == &cgrp_dfl_root;
}

static bool css_is_root(const struct cgroup_subsys_state *css)
{
	return !css->parent;
}

static bool css_is_visible(const struct cgroup_subsys_state *css)
{
	return READ_ONCE(css->flags) & CSS_VISIBLE;
}

static bool css_is_gone(const struct cgroup_subsys_state *css)
{
	return (READ_ONCE(css->flags) & CSS_DYING) ||
	       !(READ_ONCE(css->cgroup->self.flags) & CSS_ONLINE);
}

/* With groups_lock, or inside an RCU read section. No reference is taken. */
static struct brumm_group *group_lookup(const struct cgroup_subsys_state *css)
{
	struct brumm_group *g;

	if (css_is_root(css))
		return &group_root;
	g = xa_load(&groups, cgroup_id(css->cgroup));
	return g && g->css_serial == css->serial_nr ? g : NULL;
}

/**
 * group_tryget() - the group of a cgroup
 * @css: the cgroup's memory css
 *
 * Return: the group, with a reference, or NULL if there is none.
 */
struct brumm_group *group_tryget(const struct cgroup_subsys_state *css)
{
	struct brumm_group *g;

	rcu_read_lock();
	g = group_lookup(css);
	if (g && !refcount_inc_not_zero(&g->refs))
		g = NULL;
	rcu_read_unlock();
	return g;
}

/**
 * group_find_css() - the group of a cgroup, or the nearest above it
 * @css: the cgroup's memory css
 *
 * Return: the group, with a reference; the root's if there is no other.
 */
struct brumm_group *group_find_css(struct cgroup_subsys_state *css)
{
	struct brumm_group *g;

	while (!(g = group_tryget(css)))
		css = css->parent;
	return g;
}

/* Make */

static struct brumm_group *group_alloc(const struct cgroup_subsys_state *css)
{
	struct brumm_group *g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);

	if (!g)
		return NULL;
	g->css_serial = css->serial_nr;
	refcount_set(&g->refs, 1);
	INIT_LIST_HEAD(&g->checks);
	INIT_LIST_HEAD(&g->children);
	INIT_LIST_HEAD(&g->sibling);
	INIT_LIST_HEAD(&g->living);
	INIT_LIST_HEAD(&g->processes);
	mutex_init(&g->files_lock);
	INIT_DELAYED_WORK(&g->notify, group_notify);
	g->notified_at = jiffies - GROUP_NOTIFY_INTERVAL;
	mutex_init(&g->lock);
	g->watches = RB_ROOT;
	g->sp.id = cgroup_id(css->cgroup);
	g->dir = css->cgroup->kn;
	kernfs_get(g->dir);
	return g;
}

/* Not linked yet. */
static void group_discard(struct brumm_group *g)
{
	kernfs_put(g->dir);
	kfree(g);
}

/*
 * Put @g into the tree below @parent and into the table, where stock_fill()
 * has made room. -EAGAIN: the room is gone.
 */
static int group_link(struct brumm_group *g, struct brumm_group *parent)
{
	struct brumm_group *old;

	lockdep_assert_held(&groups_lock);
	mapdb_sponsor_init(&g->sp, &parent->sp.ledger, g->sp.id);
	g->parent = parent;
	group_init_mode(g);
	old = xa_store(&groups, g->sp.id, g, GFP_NOWAIT | __GFP_NOWARN);
	if (xa_is_err(old))
		return -EAGAIN;
	if (old)
		group_mark_gone(old);
	refcount_inc(&parent->refs);
	/* In front: group_next_below() does not meet what is made meanwhile. */
	list_add(&g->sibling, &parent->children);
	return 0;
}

/*
 * A cgroup that was removed before its group was in the table has not been
 * marked by group_on_rmdir(): do it now, from @g on, which is at or above @css.
 */
static void groups_mark_gone(const struct cgroup_subsys_state *css,
			     struct brumm_group *g)
{
	while (group_lookup(css) != g)
		css = css->parent;
	/* Pairs with group_on_rmdir(): table first, then the flags. */
	smp_mb();
	for (; !css_is_root(css); css = css->parent, g = g->parent) {
		if (css_is_gone(css))
			group_mark_gone(g);
	}
}

/* Groups to be linked, the uppermost first, linked by ->parent. */
struct group_stock {
	struct brumm_group *top;
	unsigned int nr;
};

static struct brumm_group *stock_pop(struct group_stock *stock)
{
	struct brumm_group *g = stock->top;

	stock->top = g->parent;
	stock->nr--;
	return g;
}

static void stock_push(struct group_stock *stock, struct brumm_group *g)
{
	g->parent = stock->top;
	stock->top = g;
	stock->nr++;
}

/* Room in the table that nobody came to use goes with the group. */
static void stock_free(struct group_stock *stock)
{
	while (stock->nr) {
		struct brumm_group *g = stock_pop(stock);

		xa_release(&groups, g->sp.id);
		group_discard(g);
	}
}

static bool group_exists(const struct cgroup_subsys_state *css)
{
	bool exists;

	rcu_read_lock();
	exists = group_lookup(css);
	rcu_read_unlock();
	return exists;
}

/*
 * Allocate the groups that are missing from @css upwards. That is charged to
 * whoever asks and may take him long, or be the end of him: hence without
 * groups_lock, which everybody else needs.
 */
static int stock_fill(struct group_stock *stock,
		      const struct cgroup_subsys_state *css)
{
	struct brumm_group *g;
	int err;

	for (; !group_exists(css); css = css->parent) {
		g = group_alloc(css);
		if (!g)
			return -ENOMEM;
		stock_push(stock, g);
		err = xa_reserve(&groups, g->sp.id, GFP_KERNEL_ACCOUNT);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Link the group of @css, and all above it that are missing. -EAGAIN: more are
 * missing than are in stock.
 */
static struct brumm_group *group_make(const struct cgroup_subsys_state *css,
				      struct group_stock *stock)
{
	const struct cgroup_subsys_state *at;
	struct brumm_group *g, *parent;
	unsigned int missing = 0;
	int err = 0;

	lockdep_assert_held(&groups_lock);
	for (at = css; !(parent = group_lookup(at)); at = at->parent)
		missing++;
	if (missing > stock->nr)
		return ERR_PTR(-EAGAIN);
	/* Others have made the upper ones since. */
	while (stock->nr > missing)
		group_discard(stock_pop(stock));
	while (!err && stock->nr) {
		g = stock_pop(stock);
		err = group_link(g, parent);
		if (err)
			stock_push(stock, g);
		else
			parent = g;
	}
	groups_mark_gone(css, parent);
	return err ? ERR_PTR(err) : parent;
}

/**
 * group_get_css() - the group of a cgroup, made if there is none
 * @css: the cgroup's memory css, which the caller keeps
 *
 * Context: may sleep; takes groups_lock when the group is to be made.
 * Return: the group, with a reference, or -ENOMEM.
 */
struct brumm_group *group_get_css(struct cgroup_subsys_state *css)
{
	struct brumm_group *g = group_tryget(css);

	if (likely(g))
		return g;
	do {
		struct group_stock stock = {};
		int err = stock_fill(&stock, css);

		g = ERR_PTR(err);
		if (!err) {
			mutex_lock(&groups_lock);
			g = group_make(css, &stock);
			if (!IS_ERR(g))
				refcount_inc(&g->refs);
			mutex_unlock(&groups_lock);
		}
		stock_free(&stock);
	} while (g == ERR_PTR(-EAGAIN));
	return g;
}

/* The group of @css as the rest of the module wants it. */
static struct mapdb_sponsor *sponsor_get_css(struct cgroup_subsys_state *css)
{
	struct brumm_group *g;

	if (!css_is_v2(css) || css_is_root(css))
		return NULL;
	g = group_get_css(css);
	return IS_ERR(g) ? ERR_CAST(g) : &g->sp;
}

/**
 * group_get_current() - the group of the calling task
 *
 * Context: may sleep.
 * Return: the group, with a reference; NULL: the root; or -ENOMEM.
 */
struct mapdb_sponsor *group_get_current(void)
{
	struct cgroup_subsys_state *css = task_get_css(current, memory_cgrp_id);
	struct cgroup_subsys_state *at = css;
	struct mapdb_sponsor *sp;

	/* A css is there without its files when only "io" asked for it. */
	while (!css_is_root(at) && !css_is_visible(at))
		at = at->parent;
	sp = sponsor_get_css(at);
	css_put(css);
	return sp;
}

/* Is @fd open at all? */
static bool fd_is_open(int fd)
{
	struct file *file = fget_raw(fd);

	if (!file)
		return false;
	fput(file);
	return true;
}

/**
 * group_get_fd() - the group of a cgroup directory
 * @fd: descriptor of the directory
 *
 * Context: may sleep.
 * Return: the group, with a reference; NULL: the root; or -EBADF not open,
 * -EINVAL not a cgroup v2 directory with brumm.* files, -ENOMEM.
 */
struct mapdb_sponsor *group_get_fd(int fd)
{
	struct cgroup_subsys_state *css;
	struct mapdb_sponsor *sp = ERR_PTR(-EINVAL);
	struct cgroup *cgrp;

	if (!fd_is_open(fd))
		return ERR_PTR(-EBADF);
	if (!knobs_present())
		return sp;
	cgrp = cgroup_get_from_fd(fd);
	if (IS_ERR(cgrp))
		return sp;
	css = cgroup_get_e_css(cgrp, &memory_cgrp_subsys);
	if (css->cgroup == cgrp && css_is_visible(css))
		sp = sponsor_get_css(css);
	css_put(css);
	cgroup_put(cgrp);
	return sp;
}

/**
 * group_is_above() - is one group the same as another or above it?
 * @up: the one, NULL: the root
 * @sp: the other, NULL: the root
 *
 * The caller holds references to both.
 */
bool group_is_above(struct mapdb_sponsor *up, struct mapdb_sponsor *sp)
{
	struct brumm_group *g;

	if (!up)
		return true;
	if (!sp)
		return false;
	for (g = group_of(sp); g; g = g->parent) {
		if (&g->sp == up)
			return true;
	}
	return false;
}

/* For the knobs */

static struct brumm_group *group_leaf(struct brumm_group *g)
{
	while (!list_empty(&g->children))
		g = list_first_entry(&g->children, struct brumm_group, sibling);
	return g;
}

/**
 * group_next_below() - walk a subtree, children before parents
 * @top: where it starts, and ends; the caller keeps it
 * @prev: what the last call returned, whose reference goes back; or NULL
 *
 * Groups made meanwhile need not be met, so that the walk ends.
 *
 * Context: may sleep; takes groups_lock.
 * Return: the next group, with a reference, or NULL after @top.
 */
struct brumm_group *group_next_below(struct brumm_group *top,
				     struct brumm_group *prev)
{
	struct brumm_group *next = NULL;

	mutex_lock(&groups_lock);
	if (!prev)
		next = group_leaf(top);
	else if (prev != top)
		next = list_is_last(&prev->sibling, &prev->parent->children) ?
			prev->parent : group_leaf(list_next_entry(prev, sibling));
	if (next)
		refcount_inc(&next->refs);
	mutex_unlock(&groups_lock);
	if (prev)
		group_put(&prev->sp);
	return next;
}

/* Start and end */

/* A cgroup is removed. In a tracepoint, interrupts are off. */
static void group_on_rmdir(void *data, struct cgroup *cgrp, const char *path)
{
	struct brumm_group *g;

	if (cgrp->root != &cgrp_dfl_root)
		return;
	/* Pairs with groups_mark_gone(): flags first, then the table. */
	smp_mb();
	rcu_read_lock();
	g = xa_load(&groups, cgroup_id(cgrp));
	if (g)
		group_mark_gone(g);
	rcu_read_unlock();
}

static struct tracepoint *rmdir_tracepoint;

static void match_rmdir(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "cgroup_rmdir"))
		rmdir_tracepoint = tp;
}

/**
 * group_init() - be told of removed cgroups
 *
 * Return: 0, or -ENOENT on a kernel without the tracepoint.
 */
int group_init(void)
{
	int err = -ENOENT;

	/* So that lockdep finds who allocates with groups_lock held. */
	fs_reclaim_acquire(GFP_KERNEL);
	might_lock(&groups_lock);
	fs_reclaim_release(GFP_KERNEL);

	ledger_init_root(&group_root.sp.ledger, &group_first_prices);
	refcount_set(&group_root.refs, 1);
	INIT_LIST_HEAD(&group_root.checks);
	INIT_LIST_HEAD(&group_root.children);
	INIT_LIST_HEAD(&group_root.living);
	INIT_LIST_HEAD(&group_root.processes);
	mutex_init(&group_root.files_lock);
	group_root.own_mode = GROUP_MODE_INHERIT;
	mutex_init(&group_root.lock);

	for_each_kernel_tracepoint(match_rmdir, NULL);
	if (rmdir_tracepoint)
		err = tracepoint_probe_register(rmdir_tracepoint,
						group_on_rmdir, NULL);
	if (err)
		pr_err("this kernel lacks the tracepoint cgroup_rmdir (%d)\n",
		       err);
	return err;
}

/*
 * Forget all groups. Windows and files are gone, so nothing is charged and
 * nobody holds a reference.
 */
void group_exit(void)
{
	struct brumm_group *g;
	LIST_HEAD(dead);

	tracepoint_probe_unregister(rmdir_tracepoint, group_on_rmdir, NULL);
	tracepoint_synchronize_unregister();
	cancel_work_sync(&checks_work);

	mutex_lock(&groups_lock);
	while (!group_is_root(g = group_leaf(&group_root))) {
		WARN_ON_ONCE(refcount_read(&g->refs) != 1);
		group_unlink(g, &dead);
	}
	mutex_unlock(&groups_lock);
	synchronize_rcu();
	while ((g = list_first_entry_or_null(&dead, struct brumm_group,
					     sibling))) {
		list_del(&g->sibling);
		group_free(g);
	}
	xa_destroy(&groups);
}
