// SPDX-License-Identifier: GPL-2.0
/*
 * The living: refusal. What a task is about to do is claimed before it does it.
 *
 * Contract
 *   - living_try_charge() charges what the calling task is about to add, at every
 *     level or at none. What is granted is a claim of this one task, and stays on
 *     the account until the thing itself is looked at: then the difference between
 *     claim and truth is charged, kind by kind, in one step. So there is no moment
 *     at which neither of the two counts, and a limit that can be kept by refusing
 *     is kept.
 *   - A task has one claim at most: its next one, its next fork, and its end settle
 *     the former. So does a look when the claim has stood for LIVING_CLAIM_NS: the
 *     operation has failed after it was asked for, or is over. One that takes
 *     longer than that is charged when it is seen, as what cannot be refused is.
 *   - Nobody who dies at the same time is waited for: what they held may be refused
 *     for some milliseconds more.
 *
 * A claim is a record whose thing is the task. Only the task itself adds to it;
 * whoever settles it takes all of it at once, under its lock.
 */
#include <linux/mm_types.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "living.h"

#define LIVING_CLAIM_NS		(100 * NSEC_PER_MSEC)

/**
 * living_take_claim() - take over what a task has claimed
 * @task: the task
 * @due: out: what, and where it is charged; with a reference, if it is not empty
 *
 * Context: any but interrupts.
 */
void living_take_claim(struct task_struct *task, struct living_due *due)
{
	struct living *l = living_get(task);

	due->group = NULL;
	if (likely(!l))
		return;
	living_lock_record(l);
	if (!l->gone && !living_counts_zero(&l->count)) {
		due->group = l->group;
		refcount_inc(&due->group->refs);
		due->left = l->count;
		memset(&l->count, 0, sizeof(l->count));
	}
	living_unlock_record(l);
	living_put(l);
}

/* What nobody has come for was not done. */
void living_drop_due(struct living_due *due)
{
	struct living_delta d;
	int k;

	if (!due->group)
		return;
	d.kinds = 0;
	for (k = 0; k < LIVING_KINDS; k++)
		living_delta_set(&d, k, -(s64)due->left.n[k]);
	ledger_living_change(&due->group->sp.ledger, &d);
	group_put(&due->group->sp);
	due->group = NULL;
}

/* The claim of @task is about what has happened: look at that. */
static void claim_settle(struct task_struct *task, struct mm_struct *mm)
{
	struct living_due due;
	struct living *l;

	living_take_claim(task, &due);
	if (likely(!due.group))
		return;
	l = mm ? living_get(mm) : NULL;
	if (l) {
		living_quick_mm(l, &due);
		living_put(l);
	}
	living_drop_due(&due);
}

/* Have @l say what was charged to @g. False: all are being dropped. */
static bool claim_add(struct living *l, struct brumm_group *g,
		      const struct living_delta *d)
{
	bool added;
	u32 left;
	int k;

	living_lock_record(l);
	added = !l->gone;
	if (likely(added)) {
		/* Empty since a moment ago: it may change hands for nothing. */
		living_rehome(l, g);
		for_each_living_kind(k, d, left)
			l->count.n[k] += d->n[k];
		WRITE_ONCE(l->claimed_at, ktime_get_ns());
	}
	living_unlock_record(l);
	return added;
}

/**
 * living_try_charge() - may the calling task do this?
 * @d: what it would add; none of it negative
 *
 * Of kinds that no look will find it must not be asked for: nothing would take
 * it back before the claim is dropped.
 *
 * Context: the task itself, before the operation; does not sleep, not in
 * interrupts. On a real-time kernel where memory can be allocated.
 * Return: 0, also for who is not followed; -EDQUOT a limit would be exceeded;
 * -EBUSY a group is locked.
 */
int living_try_charge(const struct living_delta *d)
{
	struct task_struct *task = current;
	struct brumm_group *g;
	struct living *l;
	bool wants;
	u32 left;
	int k, err;

	if (!living_is_on() || (task->flags & PF_KTHREAD))
		return 0;
	claim_settle(task, task->mm);
	g = living_group_now(task, &wants);
	if (!g)
		return 0;
	/* Without memory it is asked for all the same, and charged when seen. */
	l = living_make(LIVING_IS_CLAIM, task, g);
	err = ledger_living_try(&g->sp.ledger, d);
	if (!err && !(l && claim_add(l, g, d))) {
		struct living_due due = { .group = g };

		refcount_inc(&g->refs);
		for_each_living_kind(k, d, left)
			due.left.n[k] = d->n[k];
		living_drop_due(&due);
	}
	if (l)
		living_put(l);
	group_put(&g->sp);
	return err;
}

/* The calling task does not do what it asked for. */
void living_cancel(void)
{
	struct living_due due;

	living_take_claim(current, &due);
	living_drop_due(&due);
}

/**
 * living_fork_cost() - what a child of the calling task will own
 * @thread: it will be a thread of the same process
 * @shares_mm: it will share the address space
 * @d: out: at most that; of pages and tables what the parent has, since which of
 *	them are copied is known afterwards only
 *
 * Context: any but interrupts.
 */
void living_fork_cost(bool thread, bool shares_mm, struct living_delta *d)
{
	struct living *l;
	int k;

	d->kinds = 0;
	living_delta_set(d, thread ? LIVING_THREAD : LIVING_PROCESS, 1);
	if (!thread)
		living_delta_set(d, LIVING_FD, living_slots_of_current());
	if (shares_mm || !current->mm)
		return;
	l = living_get(current->mm);
	if (!l)
		return;
	living_lock_record(l);
	for (k = LIVING_MM; k <= LIVING_SWAP; k++)
		living_delta_set(d, k, l->count.n[k]);
	living_unlock_record(l);
	living_put(l);
}

/* A look at a claim: it goes when its task is dead, and is settled when old. */
void living_look_claim(struct living *l)
{
	struct task_struct *task = l->task;

	if (READ_ONCE(task->flags) & PF_EXITING) {
		living_remove(l);
		return;
	}
	if (ktime_get_ns() - READ_ONCE(l->claimed_at) > LIVING_CLAIM_NS)
		claim_settle(task, READ_ONCE(task->mm));
}
