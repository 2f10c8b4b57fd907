// SPDX-License-Identifier: GPL-2.0
/*
 * The living: namespaces.
 *
 * Contract
 *   - A namespace is charged to the lowest group that all its users are in or
 *     below: it goes when the last of them goes. Users are threads, by their
 *     nsproxy, and processes, by their credentials (user) and their number (pid);
 *     a process that is dead is a user of the latter two until it is reaped. Who
 *     is not followed is in no group: what he uses is charged to nobody.
 *   - An open file of a namespace, or a mount of one, is no user.
 *   - clone, unshare and setns raise no event. So there is one look, for all groups
 *     at once, since it takes all tasks to know who uses what. Nothing is kept of it
 *     but the sums.
 *   - A reader of a group's files has such a look made, if a task of the group
 *     uses a namespace that is not one of those of the boot, or did at the last
 *     look. The worker does in turn, for one part in SPACES_SHARE of its time at
 *     most. As long as all tasks that are followed use those of the boot there is
 *     none.
 *
 * A namespace is known by its address, and nothing is read in it: no reference is
 * held. One that is gone, or another one at the same address, makes one look wrong
 * at most.
 */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/user_namespace.h>

#include "living.h"
#include "living-map.h"

#define SPACES_SHARE	64
/* Between two looks of the worker, at least. */
#define SPACES_REST	NSEC_PER_SEC
/* Threads of a process with a set of their own that are found by one walk. */
#define SPACES_BATCH	16
/* Namespaces of a thread's set, and of its process. */
#define SPACES_OF_TASK	8

static DEFINE_MUTEX(spaces_lock);
/* When the worker may look next, and when the last look began, ns. */
static u64 spaces_next;
static u64 spaces_looked_at;
/* Somebody who is followed uses one that is not of the boot. */
static bool spaces_wanted;

/**
 * struct spaces - a look
 * @space: met so far, and for each: whose, and what kind, see spaces_value()
 * @proxy: sets met so far, and in which process last
 * @process: number of the process
 * @more: one that is followed uses others than those of the boot
 */
struct spaces {
	struct living_map space;
	struct living_map proxy;
	unsigned long process;
	bool more;
};

/* A group, which is aligned, and a kind in the bits below. */
#define SPACES_KIND	7UL

static_assert(LIVING_NS - LIVING_NETNS <= SPACES_KIND);
static_assert(__alignof__(struct brumm_group) > SPACES_KIND);

static unsigned long spaces_value(struct brumm_group *g, enum living_kind k)
{
	refcount_inc(&g->refs);
	return (unsigned long)g | (k - LIVING_NETNS);
}

static struct brumm_group *spaces_group(unsigned long value)
{
	return (struct brumm_group *)(value & ~SPACES_KIND);
}

/* The lowest that both are in or below. */
static struct brumm_group *common_group(struct brumm_group *a,
					struct brumm_group *b)
{
	while (!group_is_root(a) && !group_is_above(&a->sp, &b->sp))
		a = a->parent;
	return a;
}

/* One more user, of @g. There is room. */
static void meet_space(struct spaces *s, const void *ns, enum living_kind k,
		       struct brumm_group *g)
{
	struct living_entry *e;
	struct brumm_group *old;

	if (!ns)
		return;
	e = living_map_put(&s->space, ns);
	if (!e->value) {
		e->value = spaces_value(g, k);
		return;
	}
	old = spaces_group(e->value);
	g = common_group(old, g);
	if (g == old)
		return;
	e->value = spaces_value(g, k);
	group_put(&old->sp);
}

/* Those of the set of thread @t: what the pointers say while it is kept. */
static void meet_proxy(struct spaces *s, struct task_struct *t,
		       struct brumm_group *g)
{
	const struct nsproxy *p;

	task_lock(t);
	p = t->nsproxy;
	if (p) {
		meet_space(s, p->net_ns, LIVING_NETNS, g);
		meet_space(s, p->mnt_ns, LIVING_MNTNS, g);
		meet_space(s, p->ipc_ns, LIVING_IPCNS, g);
		meet_space(s, p->uts_ns, LIVING_NS, g);
		meet_space(s, p->time_ns, LIVING_NS, g);
		meet_space(s, p->cgroup_ns, LIVING_NS, g);
	}
	task_unlock(t);
}

/* Threads of @task's process, one of each set; pinned. */
static unsigned int find_proxies(struct spaces *s, struct task_struct *task,
				 struct task_struct *found[SPACES_BATCH])
{
	struct living_entry *e;
	struct task_struct *t;
	unsigned int nr = 0;
	const void *proxy;

	rcu_read_lock();
	for_each_thread(task, t) {
		proxy = READ_ONCE(t->nsproxy);
		/* Those of the boot have been met. */
		if (!proxy || proxy == init_task.nsproxy)
			continue;
		e = living_map_put(&s->proxy, proxy);
		if (e->value == s->process)
			continue;
		e->value = s->process;
		found[nr++] = get_task_struct(t);
		if (nr == SPACES_BATCH)
			break;
	}
	rcu_read_unlock();
	return nr;
}

static bool spaces_room(struct spaces *s)
{
	return living_map_room(&s->proxy, SPACES_BATCH) &&
	       living_map_room(&s->space, SPACES_BATCH * SPACES_OF_TASK);
}

static void meet_user_and_pid(struct spaces *s, struct task_struct *task,
			      struct brumm_group *g)
{
	const struct user_namespace *user;
	const struct pid_namespace *pid;

	rcu_read_lock();
	user = task_cred_xxx(task, user_ns);
	pid = task_active_pid_ns(task);
	rcu_read_unlock();
	/* The number is gone once the process is reaped. */
	if (pid == &init_pid_ns)
		pid = NULL;
	if (user == &init_user_ns)
		user = NULL;
	meet_space(s, user, LIVING_NS, g);
	meet_space(s, pid, LIVING_PIDNS, g);
	s->more |= !group_is_root(g) && (user || pid);
}

static bool walk_process(struct spaces *s, struct task_struct *task,
			 struct brumm_group *g)
{
	struct task_struct *found[SPACES_BATCH];
	unsigned int i, nr;

	s->process++;
	do {
		if (!spaces_room(s))
			return false;
		nr = find_proxies(s, task, found);
		for (i = 0; i < nr; i++) {
			meet_proxy(s, found[i], g);
			put_task_struct(found[i]);
		}
		s->more |= nr && !group_is_root(g);
	} while (nr == SPACES_BATCH);
	if (!spaces_room(s))
		return false;
	meet_user_and_pid(s, task, g);
	return true;
}

/* On whose account is @task's process? The root's: nobody's. With a reference. */
static struct brumm_group *payer_of(struct task_struct *task)
{
	struct living *l = living_get(task->signal);
	struct brumm_group *g = &group_root;

	if (l) {
		living_lock_record(l);
		if (!l->gone)
			g = l->group;
		refcount_inc(&g->refs);
		living_unlock_record(l);
		living_put(l);
	} else {
		refcount_inc(&g->refs);
	}
	return g;
}

static int walk_all(struct spaces *s)
{
	struct task_struct *task;
	struct brumm_group *g;
	bool room = true;
	pid_t nr = 1;

	if (!spaces_room(s))
		return -ENOMEM;
	meet_proxy(s, &init_task, &group_root);
	while (room && (task = living_next_task(&nr))) {
		if (!(task->flags & PF_KTHREAD)) {
			g = payer_of(task);
			room = walk_process(s, task, g);
			group_put(&g->sp);
		}
		put_task_struct(task);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return room ? 0 : -ENOMEM;
}

/* Have each group know what it owns. */
static void hand_out(struct spaces *s)
{
	struct living_entry *e = NULL;
	struct brumm_group *g = NULL;

	lockdep_assert_held(&spaces_lock);
	while ((g = group_next_below(&group_root, g)))
		memset(g->spaces, 0, sizeof(g->spaces));
	while ((e = living_map_next(&s->space, e)))
		spaces_group(e->value)->spaces[e->value & SPACES_KIND]++;
}

static void settle_group(struct brumm_group *g)
{
	struct living_truth t = {};
	struct living *l;
	u64 any = 0;
	int k;

	for (k = LIVING_NETNS; k <= LIVING_NS; k++) {
		living_truth_set(&t, k, g->spaces[k - LIVING_NETNS]);
		any |= t.n[k];
	}
	l = any ? living_make(LIVING_IS_FILES, g, g) : living_get(g);
	if (!l)
		return;
	living_lock_record(l);
	living_settle(l, NULL, &t, NULL);
	living_unlock_record(l);
	living_drop_files_if_empty(l);
	living_put(l);
}

static void settle_all(struct spaces *s)
{
	struct brumm_group *g = NULL;

	hand_out(s);
	while ((g = group_next_below(&group_root, g))) {
		if (!group_is_root(g))
			settle_group(g);
		cond_resched();
	}
	WRITE_ONCE(spaces_wanted, s->more);
}

static void drop(struct spaces *s)
{
	struct living_entry *e = NULL;

	while ((e = living_map_next(&s->space, e)))
		group_put(&spaces_group(e->value)->sp);
	living_map_free(&s->space);
	living_map_free(&s->proxy);
}

/**
 * living_look_spaces() - an exact look at all namespaces
 * @wait: do it now; or else only if nobody else does, and it is due. Of those who
 *	wait one does it for all
 *
 * Context: may sleep.
 * Return: false: there was no memory.
 */
bool living_look_spaces(bool wait)
{
	u64 begin = ktime_get_ns(), now;
	struct spaces s = {};
	int err;

	if (!wait) {
		if (!READ_ONCE(spaces_wanted) ||
		    begin < READ_ONCE(spaces_next) ||
		    !mutex_trylock(&spaces_lock))
			return true;
	} else if (mutex_lock_killable(&spaces_lock)) {
		return true;
	}
	if (wait && spaces_looked_at > begin) {
		mutex_unlock(&spaces_lock);
		return true;
	}
	now = ktime_get_ns();
	err = walk_all(&s);
	if (!err) {
		settle_all(&s);
		spaces_looked_at = now;
	}
	drop(&s);
	begin = now;
	now = ktime_get_ns();
	WRITE_ONCE(spaces_next,
		   now + max_t(u64, SPACES_REST, (now - begin) * SPACES_SHARE));
	mutex_unlock(&spaces_lock);
	return err != -ENOMEM;
}

/* Does a process use namespaces that are not of the boot? */
bool living_has_spaces(struct task_struct *task)
{
	const struct pid_namespace *pid;
	struct task_struct *t;
	bool has;

	rcu_read_lock();
	pid = task_active_pid_ns(task);
	has = task_cred_xxx(task, user_ns) != &init_user_ns ||
	      (pid && pid != &init_pid_ns);
	for_each_thread(task, t) {
		const void *proxy = READ_ONCE(t->nsproxy);

		has |= proxy && proxy != init_task.nsproxy;
	}
	rcu_read_unlock();
	if (has)
		WRITE_ONCE(spaces_wanted, true);
	return has;
}
