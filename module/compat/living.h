/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions: what the living look at. */
#ifndef BRUMM_COMPAT_LIVING_H
#define BRUMM_COMPAT_LIVING_H

#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/sched/signal.h>
#include <linux/version.h>

/* 6.2, f1a7941243c1 ("mm: convert mm's rss stats into percpu_counter"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define COMPAT_RSS_STAT_ARGS	void *data, struct mm_struct *mm, int member

/* At a glance; off by what lies in the parts of the CPUs. */
static inline s64 compat_mm_counter_read(struct mm_struct *mm, int member)
{
	return percpu_counter_read(&mm->rss_stat[member]);
}

static inline s64 compat_mm_counter_sum(struct mm_struct *mm, int member)
{
	return percpu_counter_sum(&mm->rss_stat[member]);
}

static inline void compat_mm_counters_kept(struct mm_struct *mm,
					   s64 kept[NR_MM_COUNTERS])
{
	memset(kept, 0, NR_MM_COUNTERS * sizeof(*kept));
}
#else
#define COMPAT_RSS_STAT_ARGS						\
	void *data, struct mm_struct *mm, int member, long count

static inline s64 compat_mm_counter_read(struct mm_struct *mm, int member)
{
	return atomic_long_read(&mm->rss_stat.count[member]);
}

static inline s64 compat_mm_counter_sum(struct mm_struct *mm, int member)
{
	return compat_mm_counter_read(mm, member);
}

/*
 * What the threads of the owner have not yet handed in: as long as there are
 * threads, so not with a lock.
 */
static inline void compat_mm_counters_kept(struct mm_struct *mm,
					   s64 kept[NR_MM_COUNTERS])
{
	memset(kept, 0, NR_MM_COUNTERS * sizeof(*kept));
#ifdef SPLIT_RSS_COUNTING
	struct task_struct *owner, *t;
	int c;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	if (owner) {
		for_each_thread(owner, t) {
			if (READ_ONCE(t->mm) != mm)
				continue;
			for (c = 0; c < NR_MM_COUNTERS; c++)
				kept[c] += READ_ONCE(t->rss_stat.count[c]);
		}
	}
	rcu_read_unlock();
#endif
}
#endif

/* A real-time kernel allocates nothing where nobody may sleep. */
static inline bool compat_may_allocate(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) || preemptible();
}

/*
 * The last mmdrop() takes spinlocks, on which one sleeps there; but is not for a
 * softirq elsewhere. As mmdrop_sched() has it, which is not for modules.
 */
static inline bool compat_may_mmdrop(void)
{
	return compat_may_allocate();
}

#endif /* BRUMM_COMPAT_LIVING_H */
