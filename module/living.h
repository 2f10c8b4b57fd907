/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The living: what dies with the tasks of a group, kept in the ledger while
 * brumm.mode says so (Documentation/design/living.md).
 *
 * A record stands for one thing that tasks own: a thread group, an address space,
 * what all tasks of a group have open, and which namespaces only they use.
 * It knows what it has put on whose account. A look takes the difference between
 * the thing as it is and the record, and charges or uncharges that: so each look
 * repairs whatever an earlier one missed, and nothing is ever taken back that
 * was not charged. There are two kinds of looks:
 *
 *	quick	from a tracepoint, where nobody may sleep and page-table locks may
 *		be held: a few counters, O(1)
 *	exact	by the worker or a reader of the group's files: may sleep; also finds
 *		whose the thing is by now, and makes that group if it has none
 *
 * Locks, outer to inner; all raw, with interrupts off (see ledger.h), none taken
 * in interrupts
 *	record's lock		what it has charged, and where
 *	living_lock		table and lists of records
 *	ledger domain		see ledger.h
 * A tracepoint handler takes them below whatever its caller holds: page-table
 * locks, mmap_lock, cgroup_mutex, css_set_lock. Nothing is done with them held
 * that takes one of these, allocates, or wakes anybody but a worker. In the one
 * event that comes in a softirq (sched_process_free) nothing but a lock-free list
 * is touched.
 *
 * Lifetime. A record is found by its key in the table, under RCU. It pins what it
 * is about (a task_struct, hence its signal_struct; an mm_struct, not the
 * memory), so that no look finds it freed, and no key is used again meanwhile.
 */
#ifndef BRUMM_LIVING_H
#define BRUMM_LIVING_H

#include <linux/llist.h>
#include <linux/refcount.h>

#include "group.h"

struct mm_struct;
struct task_struct;

enum living_type {
	LIVING_IS_PROCESS,	/* key: signal_struct */
	LIVING_IS_MM,		/* key: mm_struct */
	LIVING_IS_CLAIM,	/* key: task_struct, see living-claim.c */
	LIVING_IS_FILES,	/* key: brumm_group, see living-files.c */
};

/* Counters of an address space that change with each fault. */
#define LIVING_RSS	4

/* Bits of &struct living.flags */
#define LIVING_DIRTY	0
#define LIVING_CLAIMS	1
#define LIVING_AWAITED	2

/**
 * struct living - a record
 * @hash: in the table, by @key
 * @key: what it is about
 * @type: what that is
 * @refs: one while it is in the table, and those of who looks at it
 * @lock: see above; protects @gone, @group, @count and what follows them
 * @irqs: flags of who holds @lock
 * @gone: charged nothing any more, and never will
 * @group: on whose account; with a reference
 * @looked_at: ktime of the last exact look, ns
 * @in_group: in @group->living
 * @in_all: in the list of all
 * @in_processes: of a process: in @group->processes
 * @round: of the walk that met it last, see living_look_at_group()
 * @files_round: of a process: the same of living_next_process()
 * @dirty: in the list of those that the worker is to look at soon
 * @flags: bits: LIVING_DIRTY: @dirty is in that list, LIVING_CLAIMS: @claims is,
 *	LIVING_AWAITED: see living_make_due()
 * @rcu: to free it
 * @count: what it has charged
 * @claimed: what tasks have claimed for it, and is charged to @group, too; see
 *	living-claim.c
 * @task: of a process: a member, the leader when last seen; of a claim: whose;
 *	pinned
 * @about: of a claim: the record that it is for, with a reference; or NULL
 * @user_time: of a claim: what its task had of it then
 * @claims: of a claim: in the list of those that the worker looks at
 * @mm: of an address space; pinned
 * @rss: of an address space: its counters at the last exact look
 * @rss_read: what they seemed to be at a glance then; the difference grows with
 *	the number of CPUs and stays nearly the same between two looks
 * @huge: of an address space: pages that are mapped huge, by counter
 */
struct living {
	struct hlist_node hash;
	void *key;
	enum living_type type;
	refcount_t refs;
	raw_spinlock_t lock;	/* see "Locks" above */
	unsigned long irqs;
	bool gone;
	struct brumm_group *group;
	u64 looked_at;
	struct list_head in_group;
	struct list_head in_all;
	struct list_head in_processes;
	unsigned long round;
	unsigned long files_round;
	struct llist_node dirty;
	unsigned long flags;
	struct rcu_head rcu;
	struct living_counts count;
	u64 claimed[LIVING_KINDS];
	struct task_struct *task;
	struct living *about;
	u64 user_time;
	struct llist_node claims;
	struct mm_struct *mm;
	s64 rss[LIVING_RSS];
	s64 rss_read[LIVING_RSS];
	u64 huge[LIVING_RSS];
};

static inline void living_lock_record(struct living *l)
	__acquires(&l->lock)
{
	unsigned long irqs;

	raw_spin_lock_irqsave(&l->lock, irqs);
	l->irqs = irqs;
}

static inline void living_unlock_record(struct living *l)
	__releases(&l->lock)
{
	unsigned long irqs = l->irqs;

	raw_spin_unlock_irqrestore(&l->lock, irqs);
}

/**
 * struct living_truth - what a look has found
 * @kinds: bit per kind: which of @n it has looked at
 * @n: how many there are, not the difference
 */
struct living_truth {
	u32 kinds;
	u64 n[LIVING_KINDS];
};

static inline void living_truth_set(struct living_truth *t,
				    enum living_kind k, u64 n)
{
	t->kinds |= 1U << k;
	t->n[k] = n;
}

/**
 * struct living_due - a claim that is being settled
 * @group: where it is charged, with a reference; NULL: there is none
 * @about: the record that it is for, with a reference; NULL: one that comes
 * @noted: it is among what @about says is claimed
 * @left: what of it no look has found yet
 */
struct living_due {
	struct brumm_group *group;
	struct living *about;
	bool noted;
	struct living_counts left;
};

/**
 * struct living_state - of a group and those below it
 * @records: how many
 * @oldest: age of the oldest look when this one began, ns
 * @stale: groups whose open files, or namespaces, could not be looked at
 */
struct living_state {
	u64 records;
	u64 oldest;
	u64 stale;
};

#if BRUMM_QUOTA
/* living.c: for the rest of the module */
int living_init(void);
void living_exit(void);
int living_mode_changed(void);
void living_refresh(struct cgroup_subsys_state *css, struct living_state *s);

/* living.c: records */
struct living *living_find(const void *key);
struct living *living_get(const void *key);
struct living *living_make(enum living_type type, void *what,
			   struct brumm_group *g);
struct living *living_make_due(enum living_type type, void *what,
			       struct brumm_group *g, struct living_due *due);
void living_put(struct living *l);
void living_remove(struct living *l);
void living_rehome(struct living *l, struct brumm_group *g);
bool living_is_on(void);
void living_mark_dirty(struct living *l);
void living_missed(void);
struct living *living_next_process(struct brumm_group *g, unsigned long round);

/* living-settle.c: what a look does to a record */
void living_settle(struct living *l, struct brumm_group *g,
		   const struct living_truth *t, struct living_due *due);
void living_charge_to(struct living *l, const struct living_truth *t,
		      struct living_due *due);
void living_unclaim(struct living *l, struct living_due *due);
void living_arrived(struct living *l);

/* living-group.c: on whose account */
struct brumm_group *living_group_now(struct task_struct *task, bool *wants);
struct brumm_group *living_group_make(struct task_struct *task);

/* living-task.c: thread groups, and the events of all */
int living_events_on(void);
void living_events_off(void);
bool living_walk_tasks(void);
void living_look_process(struct living *l);
struct task_struct *living_process_task(struct living *l);
struct task_struct *living_next_task(pid_t *nr);
void living_quick_process(struct living *l, struct living_due *due);

/* living-mm.c: address spaces */
bool living_owns_mm(struct task_struct *task, struct mm_struct *mm);
void living_follow_mm(struct mm_struct *mm, struct brumm_group *g,
		      struct living_due *due);
void living_look_mm(struct living *l);
void living_quick_mm(struct living *l, struct living_due *due);
void living_mm_kinds(struct living *l, struct living_delta *d);
void living_moved_mm(struct living *l, struct brumm_group *g);
void living_rss_changed(struct living *l, int member);

/* living-files.c: descriptors and open files */
void living_look_files(struct living *l, bool wait);
void living_follow_files(struct brumm_group *g);
bool living_refresh_files(struct brumm_group *g);
void living_mark_files(const struct living *l);
void living_drop_files_if_empty(struct living *l);
void living_quick_files(struct living *l, const struct task_struct *task,
			struct living_due *due);
u64 living_slots_of_current(void);

/* living-ns.c: namespaces */
bool living_has_spaces(struct task_struct *task);
bool living_look_spaces(bool wait);

/* living-claim.c: refusal. The first two are called in the task itself. */
int living_try_charge(struct living *about, const struct living_delta *d);
void living_settle_claim(void);
void living_take_claim(struct task_struct *task, struct living_due *due);
void living_rehome_due(struct living_due *due, struct brumm_group *g);
void living_drop_due(struct living_due *due);
void living_look_claim(struct living *l);
void living_look_at_claims(void);
void living_drop_claims(void);

/* living-ask.c: what an operation of the calling task would add; see kfuncs.c */
int living_ask_fork(unsigned long flags);
int living_ask_exec(void);
int living_ask_mmap(unsigned long flags, u64 bytes);
int living_ask_area(void);
int living_ask_split(unsigned long start, unsigned long end);
#else
static inline int living_init(void)
{
	return 0;
}

static inline void living_exit(void)
{
}
#endif

#endif /* BRUMM_LIVING_H */
