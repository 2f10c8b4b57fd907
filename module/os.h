/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one door through which the portable core (mapdb.c, map.c, grant.c,
 * revoke.c, reclaim.c, walk.c, ledger.c) reaches the kernel. selftests/unit/ builds the same files
 * in user space with an os.h of its own, found first on the include path,
 * that offers these names on top of pthreads, ASan and UBSan.
 *
 * What the core uses: list, rbtree and augmented interval tree, mutex, rwsem,
 * spinlock, wait queue, refcount, kmem_cache, kvmalloc, ktime, RCU, lockdep
 * assertions, overflow checks. Nothing of mm, fs or cgroup.
 */
#ifndef BRUMM_OS_H
#define BRUMM_OS_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/interval_tree_generic.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/rbtree_augmented.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/wait.h>

/* Let those who wait for a lock that was just dropped have it. */
static inline void os_give_way(void)
{
	usleep_range(20, 50);
}

#endif /* BRUMM_OS_H */
