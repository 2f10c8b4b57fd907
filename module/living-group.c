// SPDX-License-Identifier: GPL-2.0
/*
 * The living: on whose account.
 *
 * Contract: a task belongs to the group of its memory cgroup, or of the nearest
 * one above that has brumm.* files; only if that is followed. Both functions
 * return NULL for who is not, and else a reference.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>

#include "living.h"

/* The memory css of @task that has files; NULL: the root's, or one of v1. */
static struct cgroup_subsys_state *task_group_css(struct task_struct *task)
{
	struct cgroup_subsys_state *css;

	css = task_css_check(task, memory_cgrp_id, true);
	if (css->cgroup->root != &cgrp_dfl_root)
		return NULL;
	while (css->parent && !(READ_ONCE(css->flags) & CSS_VISIBLE))
		css = css->parent;
	return css->parent ? css : NULL;
}

static bool group_has_account(const struct brumm_group *g)
{
	return READ_ONCE(g->followed) && !group_is_root(g);
}

/**
 * living_group_now() - the group of a task, as far as there are groups
 * @task: the task
 * @wants: out: its cgroup has no group yet: the worker has to make one
 *
 * Context: any but hard interrupts.
 */
struct brumm_group *living_group_now(struct task_struct *task, bool *wants)
{
	struct cgroup_subsys_state *css;
	struct brumm_group *g = NULL;

	*wants = false;
	rcu_read_lock();
	css = task_group_css(task);
	if (css) {
		g = group_find_css(css);
		*wants = READ_ONCE(g->followed) && g->css_serial != css->serial_nr;
		if (!group_has_account(g)) {
			group_put(&g->sp);
			g = NULL;
		}
	}
	rcu_read_unlock();
	return g;
}

/**
 * living_group_make() - the group of a task, made if its cgroup has none
 * @task: the task
 *
 * Without memory for a group it is the nearest above.
 *
 * Context: may sleep.
 */
struct brumm_group *living_group_make(struct task_struct *task)
{
	struct cgroup_subsys_state *css = NULL;
	struct brumm_group *g, *made;
	bool wants;

	g = living_group_now(task, &wants);
	if (likely(!wants))
		return g;
	rcu_read_lock();
	css = task_group_css(task);
	if (css && !css_tryget(css))
		css = NULL;
	rcu_read_unlock();
	if (!css)
		return g;
	made = group_get_css(css);
	css_put(css);
	if (IS_ERR(made))
		return g;
	if (g)
		group_put(&g->sp);
	if (group_has_account(made))
		return made;
	group_put(&made->sp);
	return NULL;
}
