// SPDX-License-Identifier: GPL-2.0
/*
 * The living: records, who looks at them, on and off.
 *
 * Contract
 *   - As long as no group is followed there is no tracepoint, no record, and no
 *     work. The first mode that is not "off" registers the tracepoints and walks
 *     all tasks, the last one that is drops all of it.
 *   - A reader of a group's files looks at all records of the group and those
 *     below it first, so that what he sees is exact as of then.
 *   - The worker looks at those that an event has marked, and at all of them in
 *     turn, a few a tick, for what raises no event. living_refresh() says how old
 *     the oldest look was.
 *   - When an event finds no memory for a record, the worker walks all tasks.
 *   - Readers wait for those of the same group only, and for nobody who turns
 *     something on or off: whoever removes a cgroup waits for its readers with
 *     cgroup_mutex held.
 *
 * living.h has the locks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/mm_types.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "compat/living.h"
#include "living.h"

#define LIVING_BITS	13
/* Between two ticks of the worker, and in how many it looks at everybody. */
#define LIVING_TICK	(HZ / 10 ?: 1)
#define LIVING_ROUND	50
#define LIVING_LEAST	64
/* What these take of a tick, ns, and a walk over all tasks of the time: one part in */
#define LIVING_TURN	(LIVING_TICK * (NSEC_PER_SEC / HZ) / 4)
#define LIVING_SHARE	4

static DEFINE_RAW_SPINLOCK(living_lock);
static struct hlist_head living_table[1 << LIVING_BITS];
static LIST_HEAD(living_all);
static unsigned long living_nr;

static struct kmem_cache *living_cache;
static struct workqueue_struct *living_wq;
static LLIST_HEAD(living_dirty);
/* Of who takes from it. */
static DEFINE_RAW_SPINLOCK(living_dirty_lock);
static unsigned long living_has_missed;
/* The worker has been kicked, and has not come yet. */
static unsigned long living_kicked;
/* When to walk once more for those who had never run, odd; 0: there was none. */
static unsigned long living_unborn_at;
/* When the worker may walk next, ns. */
static u64 living_walk_next;

/*
 * Who turns it on and off, and whether it is. On: after the tracepoints, before the
 * walk, which finds whom they told of in between.
 */
static DEFINE_MUTEX(living_mutex);
static bool living_on;
/* When who has last followed whom the modes name began, ns. */
static u64 living_followed_at;

static void living_tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(living_work, living_tick);

/* Records */

static struct hlist_head *living_bucket(const void *key)
{
	return &living_table[hash_ptr(key, LIVING_BITS)];
}

/* Inside an RCU read section, or with living_lock. */
struct living *living_find(const void *key)
{
	struct living *l;

	hlist_for_each_entry_rcu(l, living_bucket(key), hash,
				 lockdep_is_held(&living_lock)) {
		if (l->key == key)
			return l;
	}
	return NULL;
}

/* The record of @key with a reference, or NULL. */
struct living *living_get(const void *key)
{
	struct living *l;

	rcu_read_lock();
	l = living_find(key);
	if (l && !refcount_inc_not_zero(&l->refs))
		l = NULL;
	rcu_read_unlock();
	return l;
}

static void living_unpin(struct living *l)
{
	group_put(&l->group->sp);
	if (l->task)
		put_task_struct(l->task);
	if (l->mm)
		mmdrop(l->mm);
}

static void living_free(struct rcu_head *rcu)
{
	kmem_cache_free(living_cache, container_of(rcu, struct living, rcu));
}

static void living_unpin_free(struct rcu_head *rcu)
{
	living_unpin(container_of(rcu, struct living, rcu));
	living_free(rcu);
}

void living_put(struct living *l)
{
	if (!refcount_dec_and_test(&l->refs))
		return;
	if (compat_may_mmdrop()) {
		living_unpin(l);
		call_rcu(&l->rcu, living_free);
	} else {
		call_rcu(&l->rcu, living_unpin_free);
	}
}

/* Have @l be about @what. */
static void living_pin(struct living *l, void *what)
{
	switch (l->type) {
	case LIVING_IS_MM:
		l->mm = what;
		mmgrab(l->mm);
		break;
	case LIVING_IS_PROCESS:
	case LIVING_IS_CLAIM:
		l->task = get_task_struct(what);
		break;
	case LIVING_IS_FILES:
		/* The group: by the reference of whoever is charged. */
		break;
	}
}

static void *living_key(enum living_type type, void *what)
{
	return type == LIVING_IS_PROCESS ?
		((struct task_struct *)what)->signal : what;
}

/*
 * Insert @l, unless there is one already. NULL: we are off. Who tells that holds
 * the lock after that when all are dropped: nothing is inserted behind its back.
 */
static struct living *living_insert(struct living *l)
{
	struct living *old;
	unsigned long irqs;

	raw_spin_lock_irqsave(&living_lock, irqs);
	if (unlikely(!READ_ONCE(living_on))) {
		raw_spin_unlock_irqrestore(&living_lock, irqs);
		return NULL;
	}
	old = living_find(l->key);
	if (unlikely(old)) {
		if (!refcount_inc_not_zero(&old->refs))
			old = NULL;
		raw_spin_unlock_irqrestore(&living_lock, irqs);
		return old;
	}
	hlist_add_head_rcu(&l->hash, living_bucket(l->key));
	list_add(&l->in_group, &l->group->living);
	list_add(&l->in_all, &living_all);
	if (l->type == LIVING_IS_PROCESS)
		list_add_tail(&l->in_processes, &l->group->processes);
	living_nr++;
	raw_spin_unlock_irqrestore(&living_lock, irqs);
	return l;
}

/*
 * What @due has is claimed for @l, as if there had been a record then: so who looks
 * at it before the claim is settled does not charge it a second time.
 */
static void living_await(struct living *l, struct living_due *due)
{
	int k;

	if (!due->group || due->about)
		return;
	living_rehome_due(due, l->group);
	for (k = 0; k < LIVING_KINDS; k++)
		l->claimed[k] = due->left.n[k];
	__set_bit(LIVING_AWAITED, &l->flags);
}

/**
 * living_make_due() - as living_make(), of what was claimed before it was there
 * @type: of what
 * @what: the thing, which the caller keeps
 * @g: on whose account, if it is made
 * @due: the claim, or NULL; the caller settles it next, kind by kind, and says when
 *	that is done by living_arrived()
 *
 * Context: any but interrupts.
 */
struct living *living_make_due(enum living_type type, void *what,
			       struct brumm_group *g, struct living_due *due)
{
	void *key = living_key(type, what);
	struct living *l, *in;

	l = living_get(key);
	if (l)
		return l;
	if (compat_may_allocate())
		l = kmem_cache_zalloc(living_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!l) {
		living_missed();
		return NULL;
	}
	refcount_set(&l->refs, 2);
	raw_spin_lock_init(&l->lock);
	l->type = type;
	l->key = key;
	refcount_inc(&g->refs);
	l->group = g;
	living_pin(l, what);
	if (due)
		living_await(l, due);
	in = living_insert(l);
	if (in != l) {
		refcount_set(&l->refs, 1);
		living_put(l);
	}
	return in;
}

/**
 * living_make() - a record, made if there is none
 * @type: of what
 * @what: the thing, which the caller keeps: a task of the process, or the mm
 * @g: on whose account, if it is made
 *
 * Context: any but interrupts.
 * Return: the record, with a reference; NULL: no memory, the worker will see; or
 * nobody is followed any more.
 */
struct living *living_make(enum living_type type, void *what,
			   struct brumm_group *g)
{
	return living_make_due(type, what, g, NULL);
}

/* Have @l charged to @g from now on, with what it has charged. */
void living_rehome(struct living *l, struct brumm_group *g)
{
	struct brumm_group *old = l->group;

	lockdep_assert_held(&l->lock);
	if (l->gone || g == old)
		return;
	refcount_inc(&g->refs);
	ledger_living_move(&old->sp.ledger, &g->sp.ledger, &l->count);
	l->group = g;
	raw_spin_lock(&living_lock);
	list_move(&l->in_group, &g->living);
	if (l->type == LIVING_IS_PROCESS)
		list_move_tail(&l->in_processes, &g->processes);
	raw_spin_unlock(&living_lock);
	group_put(&old->sp);
}

/* Is anybody followed? */
bool living_is_on(void)
{
	return READ_ONCE(living_on);
}

/* What @l is about is gone, or nobody's whom we follow. */
void living_remove(struct living *l)
{
	struct living_truth none = { .kinds = (1U << LIVING_KINDS) - 1 };
	struct living *about = NULL;
	bool gone;

	living_lock_record(l);
	gone = l->gone;
	if (!gone) {
		living_charge_to(l, &none, NULL);
		l->gone = true;
		swap(about, l->about);
		raw_spin_lock(&living_lock);
		hlist_del_rcu(&l->hash);
		list_del(&l->in_group);
		list_del(&l->in_all);
		if (l->type == LIVING_IS_PROCESS)
			list_del(&l->in_processes);
		living_nr--;
		raw_spin_unlock(&living_lock);
	}
	living_unlock_record(l);
	if (about)
		living_put(about);
	if (!gone)
		living_put(l);
}

/* Looks */

/* Once until it comes: each further kick would put it off by another jiffy. */
static void living_kick(void)
{
	if (!test_and_set_bit(0, &living_kicked))
		mod_delayed_work(living_wq, &living_work, 1);
}

/* Have the worker look at @l soon. Inside an RCU read section; any context. */
void living_mark_dirty(struct living *l)
{
	if (test_and_set_bit(LIVING_DIRTY, &l->flags))
		return;
	if (!refcount_inc_not_zero(&l->refs))
		return;
	if (llist_add(&l->dirty, &living_dirty))
		living_kick();
}

/* Somebody has no record who should have one. Any context. */
void living_missed(void)
{
	if (!test_and_set_bit(0, &living_has_missed))
		living_kick();
}

static void living_look(struct living *l)
{
	might_sleep();
	switch (l->type) {
	case LIVING_IS_PROCESS:
		living_look_process(l);
		break;
	case LIVING_IS_MM:
		living_look_mm(l);
		break;
	case LIVING_IS_CLAIM:
		living_look_claim(l);
		break;
	case LIVING_IS_FILES:
		living_look_files(l, false);
		break;
	}
	WRITE_ONCE(l->looked_at, ktime_get_ns());
}

/*
 * Of those who have never run, one may have missed the event, before that was turned
 * on or for lack of memory. He may be held there, by his parent's memory: so no
 * more often than that.
 */
static void living_walk(void)
{
	u64 begin = ktime_get_ns(), now;

	WRITE_ONCE(living_unborn_at, living_walk_tasks() ? (jiffies + HZ) | 1 : 0);
	now = ktime_get_ns();
	WRITE_ONCE(living_walk_next, now + (now - begin) * LIVING_SHARE);
}

static bool living_has_unborn(void)
{
	unsigned long at = READ_ONCE(living_unborn_at);

	return at && time_after_eq(jiffies, at);
}

static void living_walk_if_missed(void)
{
	if (test_and_clear_bit(0, &living_has_missed) || living_has_unborn())
		living_walk();
}

/*
 * For the worker: a tenant may have cgroups and processes come as fast as he can. Who
 * is missed until then is charged to a group above, if to any. Return: when to come
 * again, in jiffies.
 */
static unsigned long living_walk_in_turn(void)
{
	u64 now = ktime_get_ns(), next = READ_ONCE(living_walk_next);

	if (now >= next)
		living_walk_if_missed();
	else if (test_bit(0, &living_has_missed))
		return min_t(u64, nsecs_to_jiffies(next - now) + 1, LIVING_TICK);
	return LIVING_TICK;
}

static struct living *living_pop_dirty(void)
{
	struct llist_node *node;
	unsigned long irqs;

	raw_spin_lock_irqsave(&living_dirty_lock, irqs);
	node = llist_del_first(&living_dirty);
	raw_spin_unlock_irqrestore(&living_dirty_lock, irqs);
	return node ? llist_entry(node, struct living, dirty) : NULL;
}

/*
 * One at a time: a reader may get no CPU in the middle of it (cpu.max), and must not
 * keep those of others to himself. No more than there are, since others come
 * meanwhile.
 */
static void living_look_at_dirty(void)
{
	unsigned long most = READ_ONCE(living_nr) + LIVING_LEAST;
	struct living *l;

	while (most-- && (l = living_pop_dirty())) {
		clear_bit(LIVING_DIRTY, &l->flags);
		/* What happens from here on marks it again. */
		smp_mb__after_atomic();
		living_look(l);
		living_put(l);
		cond_resched();
	}
	/* Who finds it empty kicks: here nobody may have. */
	if (!llist_empty(&living_dirty))
		living_kick();
}

/* The first of @head, which goes to the end. */
static struct living *living_next_of_all(void)
{
	struct living *l;
	unsigned long irqs;

	raw_spin_lock_irqsave(&living_lock, irqs);
	l = list_first_entry_or_null(&living_all, struct living, in_all);
	if (l) {
		list_move_tail(&l->in_all, &living_all);
		refcount_inc(&l->refs);
	}
	raw_spin_unlock_irqrestore(&living_lock, irqs);
	return l;
}

/*
 * Look at @nr records, those that were looked at longest ago first, as long as that
 * takes no more than @ns.
 */
static void living_look_at_some(unsigned long nr, u64 ns)
{
	u64 begin = ktime_get_ns();
	struct living *l;

	while (nr-- && ktime_get_ns() - begin <= ns && (l = living_next_of_all())) {
		living_look(l);
		living_put(l);
		cond_resched();
	}
}

static void living_drop_all(void)
{
	struct living *l;

	while ((l = living_pop_dirty()))
		living_put(l);
	living_drop_claims();
	while ((l = living_next_of_all())) {
		living_remove(l);
		living_put(l);
		cond_resched();
	}
	living_has_missed = 0;
	living_kicked = 0;
	living_unborn_at = 0;
}

static bool living_wanted(void)
{
	struct brumm_group *g = NULL;
	bool wanted = false;

	while ((g = group_next_below(&group_root, g)))
		wanted |= READ_ONCE(g->followed);
	return wanted;
}

/* The cgroups that were followed are gone. */
static bool living_off_if_unwanted(void)
{
	bool off = false;

	/* Who holds it may wait for us. */
	if (READ_ONCE(living_nr) || !mutex_trylock(&living_mutex))
		return false;
	/* A kick may outlast the last turn-off, with what it was for. */
	if (!living_on) {
		living_drop_all();
		off = true;
	} else if (!living_wanted()) {
		WRITE_ONCE(living_on, false);
		living_events_off();
		living_drop_all();
		off = true;
	}
	mutex_unlock(&living_mutex);
	return off;
}

/* Those that raise no event: once a tick, however often we are kicked. */
static unsigned long living_look_in_turn(void)
{
	static unsigned long next;
	long wait = next - jiffies;

	if (wait > 0 && wait <= LIVING_TICK)
		return wait;
	next = jiffies + LIVING_TICK;
	living_look_at_some(max_t(unsigned long, LIVING_LEAST,
				  READ_ONCE(living_nr) / LIVING_ROUND),
			    LIVING_TURN);
	return LIVING_TICK;
}

static void living_tick(struct work_struct *work)
{
	unsigned long wait;

	clear_bit(0, &living_kicked);
	/* What happens from here on kicks again. */
	smp_mb__after_atomic();
	if (living_off_if_unwanted())
		return;
	living_look_at_dirty();
	wait = living_walk_in_turn();
	living_look_spaces(false);
	living_look_at_claims();
	queue_delayed_work(living_wq, &living_work,
			   min(wait, living_look_in_turn()));
}

/* The next one of @g that round @round has not met. */
static struct living *living_next_of(struct brumm_group *g, unsigned long round)
{
	struct living *l;
	unsigned long irqs;

	raw_spin_lock_irqsave(&living_lock, irqs);
	l = list_first_entry_or_null(&g->living, struct living, in_group);
	if (l && l->round != round) {
		l->round = round;
		list_move_tail(&l->in_group, &g->living);
		refcount_inc(&l->refs);
	} else {
		l = NULL;
	}
	raw_spin_unlock_irqrestore(&living_lock, irqs);
	return l;
}

/**
 * living_next_process() - walk the processes of a group
 * @g: the group
 * @round: a number that no other walk has; of one group there is one walk at a
 *	time
 *
 * Those that come meanwhile stand behind those that were met: so the walk ends.
 *
 * Return: one that was not met yet, with a reference, or NULL.
 */
struct living *living_next_process(struct brumm_group *g, unsigned long round)
{
	struct living *l;
	unsigned long irqs;

	raw_spin_lock_irqsave(&living_lock, irqs);
	l = list_first_entry_or_null(&g->processes, struct living,
				     in_processes);
	if (l && l->files_round != round) {
		l->files_round = round;
		list_move_tail(&l->in_processes, &g->processes);
		refcount_inc(&l->refs);
	} else {
		l = NULL;
	}
	raw_spin_unlock_irqrestore(&living_lock, irqs);
	return l;
}

/*
 * Look at all records of @g but that of its files. Those that come meanwhile stand
 * in front, and are met, too; who forks faster than we look ends it, since a reader
 * must not wait for him.
 */
static void living_look_at_group(struct brumm_group *g, struct living_state *s)
{
	static atomic_long_t rounds;
	unsigned long round, most;
	struct living *l;
	u64 begin, at;

	if (mutex_lock_killable(&g->files_lock))
		return;
	begin = ktime_get_ns();
	most = READ_ONCE(living_nr) + LIVING_LEAST;
	round = atomic_long_inc_return(&rounds);
	while (most-- && !fatal_signal_pending(current) &&
	       (l = living_next_of(g, round))) {
		if (l->type != LIVING_IS_FILES) {
			at = READ_ONCE(l->looked_at);
			if (at && at < begin)
				s->oldest = max(s->oldest, begin - at);
			living_look(l);
			s->records++;
		}
		living_put(l);
		cond_resched();
	}
	mutex_unlock(&g->files_lock);
}

/* Does it own namespaces, or did it, or may it? */
static bool group_knows_spaces(const struct brumm_group *g)
{
	return READ_ONCE(g->has_spaces) ||
	       memchr_inv(g->spaces, 0, sizeof(g->spaces));
}

/**
 * living_refresh() - look at all that a cgroup and those below it own
 * @css: the cgroup's memory css
 * @s: out: what was there
 *
 * A reader who is killed need not be told the truth any more: whoever removes his
 * cgroup waits for him with cgroup_mutex held.
 *
 * Open files and namespaces come last: there may be many of them, and who turns something on or
 * off meanwhile does no harm.
 *
 * Context: may sleep.
 */
void living_refresh(struct cgroup_subsys_state *css, struct living_state *s)
{
	struct brumm_group *top, *g = NULL;
	bool spaces = false;

	*s = (struct living_state) {};
	if (!READ_ONCE(living_on))
		return;
	/* Those who died, and those who belong here but are elsewhere yet. */
	living_look_at_dirty();
	/* It stays noted for the worker, who may be through with it first. */
	if (test_bit(0, &living_has_missed) || living_has_unborn())
		living_walk_tasks();
	top = group_tryget(css);
	if (!top)
		return;
	while ((g = group_next_below(top, g)))
		living_look_at_group(g, s);
	while ((g = group_next_below(top, g))) {
		s->stale += !living_refresh_files(g);
		spaces |= group_knows_spaces(g);
	}
	if (spaces)
		s->stale += !living_look_spaces(true);
	group_put(&top->sp);
}

/* On and off */

static void living_off(void)
{
	if (!living_on)
		return;
	WRITE_ONCE(living_on, false);
	living_events_off();
	cancel_delayed_work_sync(&living_work);
	living_drop_all();
}

static int living_follow(void)
{
	int err = 0;

	if (!living_wanted()) {
		living_off();
		return 0;
	}
	if (!living_on)
		err = living_events_on();
	if (err)
		return err;
	WRITE_ONCE(living_on, true);
	living_walk();
	living_look_at_some(READ_ONCE(living_nr), U64_MAX);
	living_kick();
	return 0;
}

/**
 * living_mode_changed() - follow whom the modes name, and nobody else
 *
 * Of those who come meanwhile one does it for all: he begins later than they wrote
 * what they wait for.
 *
 * Context: may sleep.
 * Return: 0, -EINTR, or another error: this kernel lacks a tracepoint.
 */
int living_mode_changed(void)
{
	u64 begin = ktime_get_ns(), now;
	int err = 0;

	if (mutex_lock_killable(&living_mutex))
		return -EINTR;
	if (living_followed_at <= begin) {
		now = ktime_get_ns();
		err = living_follow();
		if (!err)
			living_followed_at = now;
	}
	mutex_unlock(&living_mutex);
	return err;
}

int living_init(void)
{
	living_cache = KMEM_CACHE(living, SLAB_ACCOUNT);
	if (!living_cache)
		return -ENOMEM;
	living_wq = alloc_workqueue("brumm", WQ_UNBOUND, 1);
	if (!living_wq) {
		kmem_cache_destroy(living_cache);
		return -ENOMEM;
	}
	return 0;
}

/* The files are gone, so nobody turns it on again. */
void living_exit(void)
{
	mutex_lock(&living_mutex);
	living_off();
	mutex_unlock(&living_mutex);
	/* Off already: a kick that came before it, and what it was for. */
	cancel_delayed_work_sync(&living_work);
	living_drop_all();
	destroy_workqueue(living_wq);
	/* Records on their way. */
	rcu_barrier();
	kmem_cache_destroy(living_cache);
}
