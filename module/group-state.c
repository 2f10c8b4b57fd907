// SPDX-License-Identifier: GPL-2.0
/*
 * Groups: what their files show, and the mode that each inherits.
 *
 * Contract
 *   - Reading makes no group: a cgroup without one shows what it would start with.
 *   - A group's mode is its own or that of the nearest group above that has one;
 *     the root's own is "off" until somebody writes another. It says what the
 *     group's limit means for the living (ledger.h), not whose tasks are followed:
 *     these are all at and below any group whose mode is not "off". So nobody gets
 *     out of a budget above by a mode of his own.
 *   - Modes change under groups_lock, which is also held while a group is linked:
 *     no group is made between a change and what it means below.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>

#include "group.h"

#define PRICE(name, ...)	BRUMM_PRICE_##name##_NS,

/* Until somebody writes brumm.price of the root. */
const struct ledger_prices group_first_prices = {
	.ns = { LEDGER_KINDS_LIST(PRICE) },
	.living = { LIVING_KINDS_LIST(PRICE) },
};

static void sum_saturating(u64 *to, const u64 *n, int kinds)
{
	int k;

	for (k = 0; k < kinds; k++) {
		if (check_add_overflow(to[k], n[k], &to[k]))
			to[k] = U64_MAX;
	}
}

/* Sum over the children of the root, which has no account of its own. */
static void group_root_counts(struct ledger_state *s)
{
	struct ledger_state child;
	struct brumm_group *g;

	memset(&s->count, 0, sizeof(s->count));
	memset(&s->living, 0, sizeof(s->living));
	mutex_lock(&groups_lock);
	list_for_each_entry(g, &group_root.children, sibling) {
		ledger_get_state(&g->sp.ledger, &child);
		sum_saturating(s->count.n, child.count.n, LEDGER_KINDS);
		sum_saturating(s->living.n, child.living.n, LIVING_KINDS);
	}
	mutex_unlock(&groups_lock);
	s->usage = ledger_cost_all(&s->prices, &s->count, &s->living);
}

/**
 * group_get_state() - what the account of a cgroup says
 * @css: the cgroup's memory css
 * @s: where to; of a cgroup that has no group what it would start with
 *
 * Context: may sleep.
 */
void group_get_state(struct cgroup_subsys_state *css, struct ledger_state *s)
{
	struct brumm_group *g = group_find_css(css);

	ledger_get_state(&g->sp.ledger, s);
	if (!css->parent) {
		group_root_counts(s);
	} else if (g->css_serial != css->serial_nr) {
		memset(&s->count, 0, sizeof(s->count));
		memset(&s->living, 0, sizeof(s->living));
		memset(s->event, 0, sizeof(s->event));
		memset(s->event_local, 0, sizeof(s->event_local));
		s->own_prices = false;
		s->locked = false;
		s->usage = 0;
		s->peak = 0;
		s->low_peak = 0;
		s->max = LEDGER_NO_LIMIT;
		s->high = LEDGER_NO_LIMIT;
	}
	group_put(&g->sp);
}

/* What the reclaims of a cgroup took; zeroes where there is no group. */
void group_get_reclaims(struct cgroup_subsys_state *css,
			struct group_reclaims *r)
{
	struct brumm_group *g = group_tryget(css);

	memset(r, 0, sizeof(*r));
	if (!g)
		return;
	mutex_lock(&g->lock);
	*r = g->reclaims;
	mutex_unlock(&g->lock);
	group_put(&g->sp);
}

/* Drop the prices of @g; the root goes back to those it started with. */
void group_default_prices(struct brumm_group *g)
{
	struct ledger *l = &g->sp.ledger;

	if (group_is_root(g))
		ledger_set_prices(l, &group_first_prices, ~0U);
	else
		ledger_inherit_prices(l);
}

/* Mode */

/* What @g has of the groups above it and of its own. */
static void group_update_mode(struct brumm_group *g)
{
	const struct brumm_group *up = g->parent;
	int mode = g->own_mode;

	lockdep_assert_held(&groups_lock);
	if (mode == GROUP_MODE_INHERIT)
		mode = up ? up->sp.ledger.mode : LEDGER_OFF;
	ledger_set_mode(&g->sp.ledger, mode);
	WRITE_ONCE(g->followed, mode != LEDGER_OFF || (up && up->followed));
}

/* @g has a parent, and is about to be linked below it. */
void group_init_mode(struct brumm_group *g)
{
	g->own_mode = GROUP_MODE_INHERIT;
	group_update_mode(g);
}

/* The next one below @top, parents before children. */
static struct brumm_group *group_next_inside(struct brumm_group *g,
					     const struct brumm_group *top)
{
	lockdep_assert_held(&groups_lock);
	if (!list_empty(&g->children))
		return list_first_entry(&g->children, struct brumm_group,
					sibling);
	for (; g != top; g = g->parent) {
		if (!list_is_last(&g->sibling, &g->parent->children))
			return list_next_entry(g, sibling);
	}
	return NULL;
}

/**
 * group_set_mode() - what brumm.mode says from now on, here and below
 * @top: the group
 * @mode: an &enum ledger_mode, or %GROUP_MODE_INHERIT
 *
 * Context: may sleep; takes groups_lock.
 * Return: what it said until now.
 */
int group_set_mode(struct brumm_group *top, int mode)
{
	struct brumm_group *g;
	int old;

	mutex_lock(&groups_lock);
	old = top->own_mode;
	top->own_mode = mode;
	for (g = top; g; g = group_next_inside(g, top)) {
		group_update_mode(g);
		cond_resched();
	}
	mutex_unlock(&groups_lock);
	return old;
}

/**
 * group_get_mode() - what brumm.mode of a cgroup says
 * @css: the cgroup's memory css
 * @in_force: out: the mode in force
 *
 * Context: may sleep.
 * Return: an &enum ledger_mode, or %GROUP_MODE_INHERIT.
 */
int group_get_mode(struct cgroup_subsys_state *css, enum ledger_mode *in_force)
{
	struct brumm_group *g = group_find_css(css);
	bool own = g->css_serial == css->serial_nr || !css->parent;
	int mode;

	mutex_lock(&groups_lock);
	mode = own ? g->own_mode : GROUP_MODE_INHERIT;
	*in_force = g->sp.ledger.mode;
	mutex_unlock(&groups_lock);
	group_put(&g->sp);
	return mode;
}
