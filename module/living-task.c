// SPDX-License-Identifier: GPL-2.0
/*
 * The living: thread groups, and the events from which all records learn.
 *
 * Contract
 *   - One record stands for a thread group. All its threads are in one memory
 *     cgroup, since memory is not a threaded controller: so a process moves as a
 *     whole, and threads are a number, signal->nr_threads.
 *   - It is charged from fork until the last thread has been released, which
 *     sched_process_free tells a grace period later; a reader who looks meanwhile
 *     finds nr_threads 0 and has it at once.
 *   - An exec by another thread than the leader makes that one the leader; then
 *     the record pins that one, so that its cgroup is looked at.
 *
 * Where the events come from:
 *	sched_process_fork	no lock held; the child does not run yet
 *	sched_process_exec	in the task, without locks
 *	sched_process_free	softirq or an RCU thread: only marks the record
 *	cgroup_attach_task	cgroup_mutex, threadgroup rwsem, and a spinlock
 *				with interrupts off
 *	rss_stat		page-table lock, of any task that maps or unmaps
 *	exit_mmap		mmap_lock for writing, in whatever drops the last user
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/tracepoint.h>

#include "compat/living.h"
#include "living.h"

/* Looks */

/* Charge what there is to @g; NULL: to whom it is charged already. */
static void process_settle(struct living *l, struct brumm_group *g,
			   struct living_due *due)
{
	struct living_truth t = {};
	unsigned int threads;

	living_lock_record(l);
	threads = READ_ONCE(l->task->signal->nr_threads);
	if (threads) {
		living_truth_set(&t, LIVING_PROCESS, 1);
		living_truth_set(&t, LIVING_THREAD, threads - 1);
		living_settle(l, g, &t, due);
	}
	living_unlock_record(l);
	if (!threads)
		living_remove(l);
}

/* A look that does not sleep, which uses up @due. */
void living_quick_process(struct living *l, struct living_due *due)
{
	process_settle(l, NULL, due);
}

/* Charge it to @g; NULL: to nobody, it is not followed any more. */
static void process_move(struct living *l, struct brumm_group *g)
{
	if (g)
		process_settle(l, g, NULL);
	else
		living_remove(l);
}

/* Of the pinned task, which an exec may exchange. */
struct task_struct *living_process_task(struct living *l)
{
	struct task_struct *task;

	living_lock_record(l);
	task = get_task_struct(l->task);
	living_unlock_record(l);
	return task;
}

/* A thread of @task's process that has its memory still, pinned, or NULL. */
static struct task_struct *thread_with_mm(struct task_struct *task)
{
	struct task_struct *t, *found = NULL;

	rcu_read_lock();
	if (likely(READ_ONCE(task->mm))) {
		found = task;
	} else {
		/* A leader that is dead already. */
		for_each_thread(task, t) {
			if (READ_ONCE(t->mm)) {
				found = t;
				break;
			}
		}
	}
	if (found)
		get_task_struct(found);
	rcu_read_unlock();
	return found;
}

/*
 * The memory of @task, pinned, or NULL. We do not become a user of it: as the last
 * one we would have to tear it down, and wait for I/O that a tenant may hold up.
 */
static struct mm_struct *grab_mm_of(struct task_struct *task)
{
	struct mm_struct *mm;

	task_lock(task);
	mm = task->mm;
	if (mm)
		mmgrab(mm);
	task_unlock(task);
	return mm;
}

/*
 * Have a record of the memory of @thread, one of @task's, for an event that had no
 * memory for one. What an exec puts together is told when it is done, as it was
 * claimed: it is in place only between the two changes of in_execve, so that is
 * looked at after the memory.
 */
static void follow_unknown_mm(struct task_struct *task,
			      struct task_struct *thread,
			      struct brumm_group *g)
{
	struct mm_struct *mm = grab_mm_of(thread);

	if (!mm)
		return;
	if (!thread->in_execve && living_owns_mm(task, mm))
		living_follow_mm(mm, g, NULL);
	mmdrop(mm);
}

/*
 * Have a record of the memory of @task, where it belongs: a process whose leader is
 * dead may have moved.
 */
static void follow_mm_of(struct task_struct *task, struct brumm_group *g)
{
	struct task_struct *thread = thread_with_mm(task);
	struct living *l;

	if (!thread)
		return;
	l = living_get(READ_ONCE(thread->mm));
	if (l) {
		if (unlikely(READ_ONCE(l->group) != g))
			living_look_mm(l);
		living_put(l);
	} else {
		follow_unknown_mm(task, thread, g);
	}
	put_task_struct(thread);
}

/*
 * Whose cgroup counts: of a process whose leader is dead that of a living thread,
 * since a move leaves the dead where they are. In an RCU read section.
 */
static struct task_struct *process_mover(struct task_struct *task)
{
	struct task_struct *t;

	if (likely(!(READ_ONCE(task->flags) & PF_EXITING)))
		return task;
	for_each_thread(task, t) {
		if (!(READ_ONCE(t->flags) & PF_EXITING))
			return t;
	}
	return task;
}

static struct brumm_group *process_group(struct task_struct *task)
{
	struct brumm_group *g;

	rcu_read_lock();
	task = get_task_struct(process_mover(task));
	rcu_read_unlock();
	g = living_group_make(task);
	put_task_struct(task);
	return g;
}

/*
 * The group was found without a lock. Where a move came in between, its event may
 * have been overruled by us, who knew less; or a mode that has changed. Then @l is
 * looked at once more; or all are, if it is not there any more.
 */
static void process_look_again(struct living *l, struct task_struct *task,
			       const struct brumm_group *g)
{
	struct brumm_group *now;
	bool wants;

	rcu_read_lock();
	now = living_group_now(process_mover(task), &wants);
	rcu_read_unlock();
	if (unlikely(now != g)) {
		if (g)
			living_mark_dirty(l);
		else
			living_missed();
	}
	if (now)
		group_put(&now->sp);
}

/**
 * living_look_process() - an exact look at a thread group
 * @l: its record
 *
 * Context: may sleep.
 */
void living_look_process(struct living *l)
{
	struct task_struct *task = living_process_task(l);
	bool lives = READ_ONCE(task->signal->nr_threads);
	struct brumm_group *g = NULL;

	if (lives)
		g = process_group(task);
	else
		living_mark_files(l);
	process_move(l, g);
	if (lives)
		process_look_again(l, task, g);
	if (g) {
		follow_mm_of(task, g);
		living_follow_files(g);
		group_put(&g->sp);
	}
	put_task_struct(task);
}

/*
 * @task, which is on its way to be followed or is already: have a record of its
 * process, and of @mm, which the caller keeps, or NULL. @due is for them, or NULL.
 *
 * Of the memory first: who looks at the process has a record of its memory made if
 * there is none, and knows of no @due.
 */
static void task_follow(struct task_struct *task, struct mm_struct *mm,
			struct living_due *due)
{
	struct brumm_group *g;
	struct living *l;
	bool wants;

	g = living_group_now(task, &wants);
	if (wants)
		living_missed();
	if (!g)
		return;
	if (mm && living_owns_mm(task, mm))
		living_follow_mm(mm, g, due);
	l = living_make_due(LIVING_IS_PROCESS, task, g, due);
	if (l) {
		process_settle(l, g, due);
		living_quick_files(l, task, due);
		living_arrived(l);
		living_put(l);
	}
	group_put(&g->sp);
}

/* Events */

static void on_fork(void *data, struct task_struct *parent,
		    struct task_struct *child)
{
	struct living_due due;
	struct living *l;

	if (child->flags & PF_KTHREAD)
		return;
	living_take_claim(parent, &due);
	if (child->signal != parent->signal) {
		task_follow(child, child->mm, &due);
	} else {
		/* No group to be looked up for a further thread. */
		l = living_get(child->signal);
		if (l) {
			process_settle(l, NULL, &due);
			living_put(l);
		}
	}
	living_drop_due(&due);
}

static void on_exec(void *data, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm)
{
	struct task_struct *old = NULL;
	struct living_due due;
	struct living *l;

	living_take_claim(task, &due);
	task_follow(task, task->mm, &due);
	living_drop_due(&due);
	l = living_get(task->signal);
	if (!l)
		return;
	living_lock_record(l);
	if (l->task != task) {
		old = l->task;
		l->task = get_task_struct(task);
	}
	living_unlock_record(l);
	/* The former leader: whoever released it has a reference, too. */
	if (old)
		put_task_struct(old);
	living_put(l);
}

static void on_free(void *data, struct task_struct *task)
{
	struct living *l;

	rcu_read_lock();
	l = living_find(task->signal);
	if (l)
		living_mark_dirty(l);
	/* Its claim. */
	l = living_find(task);
	if (l)
		living_mark_dirty(l);
	rcu_read_unlock();
}

/*
 * All of a thread group, or of a threaded cgroup one thread. What moves is what
 * the records say. @task->mm is a key here, and may be stale: then what has that
 * address now need not even be memory.
 */
static void on_attach(void *data, struct cgroup *to, const char *path,
		      struct task_struct *task, bool threadgroup)
{
	struct mm_struct *mm = READ_ONCE(task->mm);
	struct brumm_group *g;
	struct living *l;
	bool wants;

	if (task->flags & PF_KTHREAD)
		return;
	rcu_read_lock();
	g = living_group_now(process_mover(task), &wants);
	rcu_read_unlock();
	if (wants)
		living_missed();
	l = living_get(task->signal);
	if (l) {
		living_mark_files(l);
		process_move(l, g);
		living_mark_files(l);
		living_put(l);
	} else if (g && READ_ONCE(task->__state) & TASK_NEW) {
		/* The event of its fork is yet to come, with what was claimed. */
		living_missed();
	} else if (g) {
		/* It comes from where nobody is followed. */
		l = living_make(LIVING_IS_PROCESS, task, g);
		if (l) {
			process_settle(l, g, NULL);
			living_mark_dirty(l);
			living_put(l);
		}
	}
	l = living_get(mm ?: (void *)task->signal);
	if (l && mm && l->type == LIVING_IS_MM) {
		/* Not by a vfork child, whose parent stays. */
		if (living_owns_mm(task, l->mm))
			living_moved_mm(l, g);
	} else if (l) {
		living_mark_dirty(l);
	}
	if (l)
		living_put(l);
	if (g)
		group_put(&g->sp);
}

static void on_rss_stat(COMPAT_RSS_STAT_ARGS)
{
	struct living *l;

	rcu_read_lock();
	l = living_find(mm);
	if (l)
		living_rss_changed(l, member);
	rcu_read_unlock();
}

static void on_exit_mmap(void *data, struct mm_struct *mm)
{
	struct living *l = living_get(mm);

	if (!l)
		return;
	living_remove(l);
	living_put(l);
}

static struct event {
	const char *name;
	void *handler;
	struct tracepoint *tp;
} events[] = {
	{ "sched_process_fork", on_fork },
	{ "sched_process_exec", on_exec },
	{ "sched_process_free", on_free },
	{ "cgroup_attach_task", on_attach },
	{ "rss_stat", on_rss_stat },
	{ "exit_mmap", on_exit_mmap },
};

static void event_match(struct tracepoint *tp, void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		if (!strcmp(tp->name, events[i].name))
			events[i].tp = tp;
	}
}

static void events_unregister(unsigned int nr)
{
	while (nr--)
		tracepoint_probe_unregister(events[nr].tp, events[nr].handler,
					    NULL);
	tracepoint_synchronize_unregister();
}

/**
 * living_events_on() - be told of tasks from now on
 *
 * Context: may sleep.
 * Return: 0, -EOPNOTSUPP this kernel lacks a tracepoint, -ENOMEM.
 */
int living_events_on(void)
{
	unsigned int i;
	int err;

	for_each_kernel_tracepoint(event_match, NULL);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		err = -EOPNOTSUPP;
		if (events[i].tp)
			err = tracepoint_probe_register(events[i].tp,
							events[i].handler,
							NULL);
		if (err) {
			pr_err("cannot follow tasks: tracepoint %s (%d)\n",
			       events[i].name, err);
			events_unregister(i);
			return err;
		}
	}
	return 0;
}

/* When this returns, no handler runs. */
void living_events_off(void)
{
	events_unregister(ARRAY_SIZE(events));
}

/* The walk */

/*
 * The first process whose number is at least @nr, pinned, or NULL. There may be
 * any number of threads before it: hence others may run after each.
 */
struct task_struct *living_next_task(pid_t *nr)
{
	struct task_struct *task = NULL;
	struct pid *pid;

	do {
		rcu_read_lock();
		pid = find_ge_pid(*nr, &init_pid_ns);
		if (pid) {
			*nr = pid_nr(pid) + 1;
			task = pid_task(pid, PIDTYPE_TGID);
			if (task)
				get_task_struct(task);
		}
		rcu_read_unlock();
		cond_resched();
	} while (pid && !task);
	return task;
}

/* Find out whether @task is followed, and have a record of it, if so. */
static void meet_process(struct task_struct *task)
{
	struct brumm_group *g = process_group(task);
	struct living *l;

	if (!g)
		return;
	l = living_make(LIVING_IS_PROCESS, task, g);
	if (l) {
		living_look_process(l);
		living_put(l);
	}
	group_put(&g->sp);
}

/**
 * living_walk_tasks() - find every process that is followed and has no record
 *
 * Who forks meanwhile is told by the event; whoever is in the table of pids then,
 * is met here. But not who has never run: the event takes what the parent has
 * claimed for it, which we do not know of.
 *
 * Context: may sleep.
 * Return: was there one that has never run?
 */
bool living_walk_tasks(void)
{
	struct task_struct *task;
	bool unborn = false;
	pid_t nr = 1;

	while ((task = living_next_task(&nr))) {
		if (READ_ONCE(task->__state) & TASK_NEW)
			unborn = true;
		else if (!(task->flags & PF_KTHREAD))
			meet_process(task);
		put_task_struct(task);
	}
	return unborn;
}
