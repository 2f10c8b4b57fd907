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
 *   - A claim about something that has a record already is noted in that, too: who
 *     else looks at it meanwhile takes what it has grown by for what was claimed,
 *     and does not charge it a second time.
 *   - A task has one claim at most. It is settled by the task's next one, by its
 *     fork or exec, by its end, and as soon as the operation is seen to be over:
 *     the task has been in user mode since, or waits for something as it never
 *     does in between, or is not in its exec any more. Never by age: a tenant can
 *     make many operations last as long as he likes (cpu.max, who holds mmap_lock),
 *     and would have all of them let through on one budget.
 *   - Nobody who dies at the same time is waited for: what they held may be refused
 *     for some milliseconds more.
 *   - Where no limit is in force nothing is claimed.
 *
 * A claim is a record whose thing is the task. Only the task itself adds to it;
 * whoever settles it takes all of it at once, under its lock.
 */
#include <linux/mm_types.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "living.h"

/* Claims that stand, or did a tick ago. */
static LLIST_HEAD(living_claims);

static bool claim_stands(const struct living *l)
{
	lockdep_assert_held(&l->lock);
	return !l->gone && !living_counts_zero(&l->count);
}

/*
 * Has the operation ended for which @l was claimed? None waits so that a signal may
 * interrupt it but an exec, of which one can tell; but where a tenant's own file
 * system makes it wait: then what it adds is seen when it is there.
 */
static bool claim_is_over(const struct living *l)
{
	const struct task_struct *task = l->task;
	bool exec = l->count.n[LIVING_MM] && !l->count.n[LIVING_PROCESS];

	lockdep_assert_held(&l->lock);
	if (READ_ONCE(task->flags) & PF_EXITING)
		return true;
	if (exec)
		return !task->in_execve;
	if (READ_ONCE(task->utime) != l->user_time)
		return true;
	return READ_ONCE(task->__state) &
	       (TASK_INTERRUPTIBLE | __TASK_STOPPED | __TASK_TRACED);
}

/* @over: only if the operation is. */
static void claim_take(struct living *l, bool over, struct living_due *due)
{
	due->group = NULL;
	due->about = NULL;
	living_lock_record(l);
	if (claim_stands(l) && (!over || claim_is_over(l))) {
		due->group = l->group;
		refcount_inc(&due->group->refs);
		due->about = l->about;
		due->noted = due->about;
		l->about = NULL;
		due->left = l->count;
		memset(&l->count, 0, sizeof(l->count));
	}
	living_unlock_record(l);
}

/**
 * living_take_claim() - take over what a task has claimed
 * @task: the task
 * @due: out: what, and where it is charged; with references, if it is not empty
 *
 * Context: any but interrupts.
 */
void living_take_claim(struct task_struct *task, struct living_due *due)
{
	struct living *l = living_get(task);

	due->group = NULL;
	due->about = NULL;
	if (likely(!l))
		return;
	claim_take(l, false, due);
	living_put(l);
}

/*
 * Have @due charged to @g: a child may be born elsewhere (CLONE_INTO_CGROUP), or
 * what it is about has moved since. Groups above both have it once all the time.
 */
void living_rehome_due(struct living_due *due, struct brumm_group *g)
{
	if (!due->group || due->group == g)
		return;
	refcount_inc(&g->refs);
	ledger_living_move(&due->group->sp.ledger, &g->sp.ledger, &due->left);
	group_put(&due->group->sp);
	due->group = g;
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
	if (due->about) {
		living_lock_record(due->about);
		living_unclaim(due->about, due);
		living_unlock_record(due->about);
		living_put(due->about);
	}
	due->about = NULL;
}

/* Look at what was claimed: some of it may have happened. */
static void due_settle(struct living_due *due)
{
	if (!due->group)
		return;
	if (due->about && due->about->type == LIVING_IS_MM)
		living_quick_mm(due->about, due);
	else if (due->about)
		living_quick_process(due->about, due);
	living_drop_due(due);
}

static void claim_settle(struct living *l, bool over)
{
	struct living_due due;

	claim_take(l, over, &due);
	due_settle(&due);
}

/* The former operation of the calling task is over. */
void living_settle_claim(void)
{
	struct living_due due;

	living_take_claim(current, &due);
	due_settle(&due);
}

/* Have @l say what was charged as @due, whose references it takes. */
static bool claim_add(struct living *l, struct living_due *due)
{
	bool added;

	living_lock_record(l);
	added = !l->gone;
	if (likely(added)) {
		/* Empty since a moment ago: it may change hands for nothing. */
		living_rehome(l, due->group);
		l->count = due->left;
		l->about = due->about;
		l->user_time = READ_ONCE(current->utime);
	}
	living_unlock_record(l);
	if (!added)
		return false;
	group_put(&due->group->sp);
	if (!test_and_set_bit(LIVING_CLAIMS, &l->flags)) {
		refcount_inc(&l->refs);
		llist_add(&l->claims, &living_claims);
	}
	return true;
}

/* The strictest mode of those of @g and above that have a limit. */
static enum ledger_mode claim_mode(const struct brumm_group *g)
{
	const struct ledger *l = &g->sp.ledger;
	enum ledger_mode mode = LEDGER_OFF;

	for (; l->parent; l = l->parent) {
		if (READ_ONCE(l->max) != LEDGER_NO_LIMIT || READ_ONCE(l->locked))
			mode = max(mode, READ_ONCE(l->mode));
	}
	return mode;
}

/* On whose account a claim about @about goes, with a reference, or NULL. */
static struct brumm_group *claim_group(struct living *about)
{
	struct brumm_group *g = NULL;
	bool wants;

	if (!about)
		return living_group_now(current, &wants);
	living_lock_record(about);
	if (!about->gone) {
		g = about->group;
		refcount_inc(&g->refs);
	}
	living_unlock_record(about);
	return g;
}

/* Charge @d to @due->group, and note it where @due->about is charged to that. */
static int claim_charge(struct living_due *due, const struct living_delta *d)
{
	struct living *about = due->about;
	u32 left;
	int k, err;

	if (!about)
		return ledger_living_try(&due->group->sp.ledger, d);
	living_lock_record(about);
	err = ledger_living_try(&due->group->sp.ledger, d);
	if (err >= 0) {
		for_each_living_kind(k, d, left)
			about->claimed[k] += d->n[k];
	}
	living_unlock_record(about);
	return err;
}

/* As living_try_charge(), for the claim @l, in the place of the former one. */
static int claim_make(struct living *l, struct living_due *due,
		      const struct living_delta *d)
{
	u32 left;
	int k, err;

	claim_settle(l, false);
	err = claim_charge(due, d);
	if (err < 0)
		return err;
	memset(&due->left, 0, sizeof(due->left));
	for_each_living_kind(k, d, left)
		due->left.n[k] = d->n[k];
	due->noted = due->about;
	if (due->about)
		refcount_inc(&due->about->refs);
	refcount_inc(&due->group->refs);
	/* Or else nobody is followed any more. */
	if (!claim_add(l, due))
		due_settle(due);
	return err;
}

/**
 * living_try_charge() - may the calling task do this?
 * @about: the record of what it changes, an address space or its own process; NULL:
 *	what it makes has none yet
 * @d: what it would add; none of it negative
 *
 * Of kinds that no look will find it must not be asked for: nothing would take
 * it back before the claim is dropped.
 *
 * Context: the task itself, before the operation; does not sleep, not in
 * interrupts. On a real-time kernel where memory can be allocated.
 * Return: 0, also for who is not followed or has no limit; 1 it may, but a limit in
 * mode audit is exceeded; -EDQUOT a limit would be exceeded; -EBUSY a group is
 * locked; -ENOMEM.
 */
int living_try_charge(struct living *about, const struct living_delta *d)
{
	struct living_due due = { .about = about };
	struct brumm_group *g = claim_group(about);
	enum ledger_mode mode;
	struct living *l;
	int err = 0;

	if (!g)
		return 0;
	mode = claim_mode(g);
	if (mode != LEDGER_OFF) {
		due.group = g;
		l = living_make(LIVING_IS_CLAIM, current, g);
		if (l) {
			err = claim_make(l, &due, d);
			living_put(l);
		} else if (mode == LEDGER_ENFORCE && living_is_on()) {
			/* Or else who finds no memory had no limit. */
			err = -ENOMEM;
		}
	}
	group_put(&g->sp);
	return err;
}

/* A look at a claim: it is settled if it is over, and goes with its task. */
void living_look_claim(struct living *l)
{
	claim_settle(l, true);
	if (READ_ONCE(l->task->flags) & PF_EXITING) {
		claim_settle(l, false);
		living_remove(l);
	}
}

static bool claim_is_left(struct living *l)
{
	bool left;

	living_lock_record(l);
	left = claim_stands(l);
	living_unlock_record(l);
	return left;
}

/* A look at all claims that stand. */
void living_look_at_claims(void)
{
	struct living *l, *next;

	llist_for_each_entry_safe(l, next, llist_del_all(&living_claims),
				  claims) {
		clear_bit(LIVING_CLAIMS, &l->flags);
		/* What is claimed from here on is entered again. */
		smp_mb__after_atomic();
		living_look_claim(l);
		if (claim_is_left(l) &&
		    !test_and_set_bit(LIVING_CLAIMS, &l->flags)) {
			refcount_inc(&l->refs);
			llist_add(&l->claims, &living_claims);
		}
		living_put(l);
		cond_resched();
	}
}

/* Nobody is followed any more. */
void living_drop_claims(void)
{
	struct living *l, *next;

	llist_for_each_entry_safe(l, next, llist_del_all(&living_claims), claims)
		living_put(l);
}
