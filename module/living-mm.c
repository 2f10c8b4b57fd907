// SPDX-License-Identifier: GPL-2.0
/*
 * The living: address spaces.
 *
 * Contract
 *   - An address space belongs to the group of mm->owner, which the kernel hands
 *     on when the owner leaves; a vfork child shares its parent's until it execs.
 *   - Everything is the kernel's own count: rss_stat, map_count, pgtables_bytes,
 *     hugetlb_usage. Only which of the pages are mapped huge has to be walked for,
 *     see living_walk_huge(): entries of the PMD level, in an exact look.
 *   - It is charged until exit_mmap is through, and all of it goes at once.
 *
 * rss_stat comes with each fault (6.2 and later) or each 64th page: then it takes a
 * search in the table and a subtraction. A quick look follows when one counter has
 * gone LIVING_STEP away from what the last look read; it reads the counters at a
 * glance only, since summing them up over many CPUs would cost more than the
 * faults. So between two exact looks a figure may lag by LIVING_STEP pages a
 * counter, and what the kernel's counters lag by.
 */
#include <linux/hugetlb.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "compat/living.h"
#include "living.h"

#define LIVING_STEP	64
/* Tables of the lowest level but one that are walked before others may go on. */
#define WALK_TABLES	64

static_assert(LIVING_RSS == NR_MM_COUNTERS);

static const enum living_kind kind_of_counter[LIVING_RSS] = {
	[MM_FILEPAGES] = LIVING_FILE,
	[MM_ANONPAGES] = LIVING_ANON,
	[MM_SWAPENTS] = LIVING_SWAP,
	[MM_SHMEMPAGES] = LIVING_SHMEM,
};

/* Huge pages */

struct huge_walk {
	struct mm_struct *mm;
	unsigned long at;
	u64 nr[LIVING_RSS];
};

/* By whose counter it is; the huge zero page is nobody's. */
static int huge_counter(pmd_t pmd)
{
	struct folio *folio = page_folio(pmd_page(pmd));

	if (folio_test_anon(folio))
		return MM_ANONPAGES;
	if (!READ_ONCE(folio->mapping))
		return -1;
	return folio_test_swapbacked(folio) ? MM_SHMEMPAGES : MM_FILEPAGES;
}

static bool pmd_is_huge_page(pmd_t pmd)
{
	return pmd_present(pmd) && pmd_trans_huge(pmd);
}

/* The lock keeps the page, which a fault, a split or the OOM reaper may give up. */
static void walk_pmds(struct huge_walk *w, pud_t *pud, unsigned long addr,
		      unsigned long end)
{
	pmd_t *p = pmd_offset(pud, addr);
	spinlock_t *lock;	/* of the table that @p is in */
	int c;

	for (; addr < end; addr += PMD_SIZE, p++) {
		if (!pmd_is_huge_page(READ_ONCE(*p)))
			continue;
		lock = pmd_lock(w->mm, p);
		c = pmd_is_huge_page(*p) ? huge_counter(*p) : -1;
		spin_unlock(lock);
		if (c >= 0)
			w->nr[c]++;
	}
}

/*
 * One PUD's worth of @vma at @addr. Tables of upper levels are freed with the
 * mapping, which mmap_lock keeps; what an entry points to is not looked into.
 */
static void walk_pud(struct huge_walk *w, unsigned long addr,
		     unsigned long end)
{
	pgd_t *pgd = pgd_offset(w->mm, addr);
	p4d_t *p4d;
	pud_t *pud;

	if (pgd_none(*pgd) || unlikely(pgd_bad(*pgd)))
		return;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(*p4d) || unlikely(p4d_bad(*p4d)))
		return;
	pud = pud_offset(p4d, addr);
	if (pud_none(*pud) || unlikely(pud_bad(*pud)))
		return;
	walk_pmds(w, pud, addr & PMD_MASK, end);
}

/* WALK_TABLES from @w->at on. Return: is there more? */
static bool walk_some(struct huge_walk *w)
{
	struct vm_area_struct *vma = find_vma(w->mm, w->at);
	unsigned int left = WALK_TABLES * 8;
	unsigned long end;

	while (vma && left--) {
		w->at = max(w->at, vma->vm_start);
		end = min(vma->vm_end, (w->at & PUD_MASK) + PUD_SIZE);
		/* None fits into a smaller one. */
		if (vma->vm_end - vma->vm_start >= PMD_SIZE &&
		    !is_vm_hugetlb_page(vma))
			walk_pud(w, w->at, end);
		else
			end = vma->vm_end;
		w->at = end;
		if (end >= vma->vm_end)
			vma = find_vma(w->mm, end);
	}
	return vma;
}

/* Count what is mapped huge, by counter. False: the lock is busy. */
static bool living_walk_huge(struct mm_struct *mm, u64 nr[LIVING_RSS])
{
	struct huge_walk w = { .mm = mm };
	bool more;

	do {
		if (!mmap_read_trylock(mm))
			return false;
		more = walk_some(&w);
		mmap_read_unlock(mm);
		cond_resched();
	} while (more);
	memcpy(nr, w.nr, sizeof(w.nr));
	return true;
}

/* May there be any? */
static bool may_have_huge(const struct living *l)
{
	int c;

	for (c = 0; c < LIVING_RSS; c++) {
		if (c != MM_SWAPENTS && (l->huge[c] || l->rss[c] >= HPAGE_PMD_NR))
			return IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE);
	}
	return false;
}

static u64 hugetlb_pages(struct mm_struct *mm)
{
#ifdef CONFIG_HUGETLB_PAGE
	return atomic_long_read(&mm->hugetlb_usage) / HPAGE_PMD_NR;
#else
	return 0;
#endif
}

/* Looks */

/* What @l says of its mm, with @l->rss and @l->huge as they are. */
static void mm_settle(struct living *l, struct brumm_group *g,
		      struct living_due *due)
{
	struct mm_struct *mm = l->mm;
	struct living_truth t = {};
	u64 huge = hugetlb_pages(mm);
	s64 pages;
	int c;

	lockdep_assert_held(&l->lock);
	living_truth_set(&t, LIVING_MM, 1);
	living_truth_set(&t, LIVING_VMA, READ_ONCE(mm->map_count));
	living_truth_set(&t, LIVING_TABLE, mm_pgtables_bytes(mm) >> PAGE_SHIFT);
	for (c = 0; c < LIVING_RSS; c++) {
		pages = l->rss[c] - (s64)l->huge[c] * HPAGE_PMD_NR;
		living_truth_set(&t, kind_of_counter[c], max_t(s64, pages, 0));
		huge += l->huge[c];
	}
	living_truth_set(&t, LIVING_HUGE, huge);
	living_settle(l, g, &t, due);
}

/* Add what the counters have gained at a glance. */
static void mm_glance(struct living *l)
{
	s64 read;
	int c;

	for (c = 0; c < LIVING_RSS; c++) {
		read = compat_mm_counter_read(l->mm, c);
		l->rss[c] += read - l->rss_read[c];
		WRITE_ONCE(l->rss_read[c], read);
	}
}

static void mm_quick(struct living *l, struct brumm_group *g,
		     struct living_due *due)
{
	living_lock_record(l);
	mm_glance(l);
	mm_settle(l, g, due);
	living_unlock_record(l);
}

/* A quick look, which uses up @due. */
void living_quick_mm(struct living *l, struct living_due *due)
{
	mm_quick(l, NULL, due);
}

/* At most what a copy of the address space of @l has, into @d. */
void living_mm_kinds(struct living *l, struct living_delta *d)
{
	int k;

	mm_quick(l, NULL, NULL);
	living_lock_record(l);
	for (k = LIVING_MM; k <= LIVING_SWAP; k++)
		living_delta_set(d, k, l->count.n[k] + l->claimed[k]);
	living_unlock_record(l);
}

/* @kept: what threads have not handed in, see compat_mm_counters_kept() */
static void mm_exact_rss(struct living *l, const s64 kept[LIVING_RSS])
{
	int c;

	lockdep_assert_held(&l->lock);
	for (c = 0; c < LIVING_RSS; c++) {
		WRITE_ONCE(l->rss_read[c], compat_mm_counter_read(l->mm, c));
		l->rss[c] = compat_mm_counter_sum(l->mm, c) + kept[c];
	}
}

/* The group of the owner, made if need be; NULL with *@owned: not followed. */
static struct brumm_group *mm_group(struct mm_struct *mm, bool *owned)
{
	struct brumm_group *g = NULL;
	struct task_struct *owner;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	if (owner)
		get_task_struct(owner);
	rcu_read_unlock();
	*owned = owner;
	if (owner) {
		g = living_group_make(owner);
		put_task_struct(owner);
	}
	return g;
}

/* Nobody but us has it any more: exit_mmap has run without an event. */
static bool mm_is_gone(struct mm_struct *mm)
{
	return !atomic_read(&mm->mm_users) && atomic_read(&mm->mm_count) == 1;
}

/* See process_look_again(). */
static void mm_look_again(struct living *l, const struct brumm_group *g)
{
	struct brumm_group *now;
	bool owned;

	now = mm_group(l->mm, &owned);
	if (unlikely(owned && now != g)) {
		if (g)
			living_mark_dirty(l);
		else
			living_missed();
	}
	if (now)
		group_put(&now->sp);
}

/**
 * living_look_mm() - an exact look at an address space
 * @l: its record
 *
 * Context: may sleep; takes mmap_lock if nobody holds it for writing.
 */
void living_look_mm(struct living *l)
{
	struct brumm_group *g;
	u64 huge[LIVING_RSS];
	s64 kept[LIVING_RSS];
	bool walked, owned;

	if (mm_is_gone(l->mm)) {
		living_remove(l);
		return;
	}
	g = mm_group(l->mm, &owned);
	if (owned && !g) {
		living_remove(l);
		mm_look_again(l, NULL);
		return;
	}
	/*
	 * No user is taken, or else we might be the last. It may be being taken
	 * down: then tables and mappings go with mmap_lock held for writing,
	 * and afterwards there is no mapping left to be found.
	 */
	walked = may_have_huge(l) && living_walk_huge(l->mm, huge);
	compat_mm_counters_kept(l->mm, kept);
	living_lock_record(l);
	if (walked)
		memcpy(l->huge, huge, sizeof(huge));
	mm_exact_rss(l, kept);
	mm_settle(l, g, NULL);
	living_unlock_record(l);
	/* Without an owner it stays where it is. */
	if (g) {
		mm_look_again(l, g);
		group_put(&g->sp);
	}
}

/**
 * living_owns_mm() - is an address space one of a thread's process?
 * @task: the thread
 * @mm: the address space, which the caller keeps
 *
 * Not of a vfork child, which only shares its parent's.
 */
bool living_owns_mm(struct task_struct *task, struct mm_struct *mm)
{
	struct task_struct *owner;
	bool owns;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	owns = owner && same_thread_group(owner, task);
	rcu_read_unlock();
	return owns;
}

/**
 * living_follow_mm() - have a record of an address space
 * @mm: it, which the caller keeps; its users may leave
 * @g: on whose account, if there is none yet: its owner's
 * @due: a claim that is for it, or NULL
 *
 * Context: any but interrupts.
 */
void living_follow_mm(struct mm_struct *mm, struct brumm_group *g,
		      struct living_due *due)
{
	struct living *l = living_get(mm);

	if (l) {
		living_put(l);
		return;
	}
	l = living_make_due(LIVING_IS_MM, mm, g, due);
	if (!l)
		return;
	mm_quick(l, NULL, due);
	living_arrived(l);
	/*
	 * exit_mmap may have come before there was a record. Pairs with the
	 * decrement before it: record first, then the users.
	 */
	smp_mb();
	if (unlikely(!atomic_read(&mm->mm_users)))
		living_remove(l);
	living_put(l);
}

/* The owner of @l is in @g now; NULL: who is not followed. */
void living_moved_mm(struct living *l, struct brumm_group *g)
{
	if (g)
		mm_quick(l, g, NULL);
	else
		living_remove(l);
}

/* One of the counters has changed. Page-table locks are held. */
void living_rss_changed(struct living *l, int member)
{
	s64 read = compat_mm_counter_read(l->mm, member);

	if (abs(read - READ_ONCE(l->rss_read[member])) >= LIVING_STEP)
		mm_quick(l, NULL, NULL);
}
