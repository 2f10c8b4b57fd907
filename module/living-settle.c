// SPDX-License-Identifier: GPL-2.0
/*
 * The living: what a look does to a record's account.
 *
 * Contract
 *   - The difference between the truth and what the record has charged is charged
 *     or uncharged in one step. A claim for it that is being settled is used up
 *     first; as much as others have claimed for it is left to them.
 *   - A record that is made for what was claimed before waits for that claim, as if
 *     it had been noted in it: see living_make_due().
 */
#include "living.h"

static struct ledger *living_ledger(struct living *l)
{
	lockdep_assert_held(&l->lock);
	return &l->group->sp.ledger;
}

/*
 * @l has @more of kind @k than it has charged. Return: what of it is not yet to be
 * charged, since others have claimed as much; what @due has, that is used up first,
 * and goes into @less.
 */
static u64 living_hold(const struct living *l, enum living_kind k, u64 more,
		       struct living_due *due, u64 *less)
{
	if (due) {
		*less = due->left.n[k];
		due->left.n[k] = 0;
	}
	return min_t(u64, more - min(more, *less), l->claimed[k]);
}

/* Charge what makes @l->count @t. @due, which may be NULL, is used up first. */
void living_charge_to(struct living *l, const struct living_truth *t,
		      struct living_due *due)
{
	struct living_delta d;
	u64 count, less, held;
	u32 left;
	int k;

	if (due && (!due->group || (due->about && due->about != l)))
		due = NULL;
	if (due)
		living_rehome_due(due, l->group);
	d.kinds = 0;
	for_each_living_kind(k, t, left) {
		count = l->count.n[k];
		less = 0;
		held = living_hold(l, k, t->n[k] - min(t->n[k], count), due,
				   &less);
		l->count.n[k] = t->n[k] - held;
		living_delta_set(&d, k, l->count.n[k] - count - less);
	}
	ledger_living_change(living_ledger(l), &d);
}

/* What of @l was claimed as @due is being settled; nothing of it is used up yet. */
void living_unclaim(struct living *l, struct living_due *due)
{
	int k;

	lockdep_assert_held(&l->lock);
	if (!due || due->about != l || !due->noted)
		return;
	for (k = 0; k < LIVING_KINDS; k++)
		l->claimed[k] -= due->left.n[k];
	due->noted = false;
}

/* Of kinds that @t has, the claim that @l waits for is being settled. */
static void living_awaited(struct living *l, const struct living_truth *t)
{
	u32 left;
	int k;

	for_each_living_kind(k, t, left)
		l->claimed[k] = 0;
}

/**
 * living_settle() - charge what a look has found
 * @l: the record
 * @g: on whose account from now on, the caller holds a reference; NULL: as before
 * @t: what there is
 * @due: a claim for it that is to be used up first, or NULL
 *
 * Who has looked later must come later: the caller holds @l->lock from before the
 * look, or looks at nothing that others tell the same record. A @due that is about
 * another record is left alone.
 */
void living_settle(struct living *l, struct brumm_group *g,
		   const struct living_truth *t, struct living_due *due)
{
	lockdep_assert_held(&l->lock);
	living_unclaim(l, due);
	if (due && test_bit(LIVING_AWAITED, &l->flags))
		living_awaited(l, t);
	if (l->gone)
		return;
	if (g)
		living_rehome(l, g);
	living_charge_to(l, t, due);
}

/* @l waits for no claim any more: what of one it has no kind for was not for it. */
void living_arrived(struct living *l)
{
	living_lock_record(l);
	if (test_and_clear_bit(LIVING_AWAITED, &l->flags))
		memset(l->claimed, 0, sizeof(l->claimed));
	living_unlock_record(l);
}
