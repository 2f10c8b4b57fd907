/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one door through which the portable core (mapdb.c, nodes.c, op.c, map.c,
 * grant.c, revoke.c, reclaim.c, told.c, walk.c, ledger.c, ledger-living.c) reaches
 * the kernel. selftests/unit/ builds the same files in user space with an os.h of
 * its own, found first on the include path, that offers these names on top of
 * pthreads, ASan and UBSan.
 *
 * What the core uses: list, rbtree and augmented interval tree, mutex, rwsem,
 * spinlock, wait queue, refcount, kmem_cache, kvmalloc, ktime, RCU, lockdep
 * assertions, overflow checks, tracepoints. Nothing of mm, fs or cgroup.
 */
#ifndef BRUMM_OS_H
#define BRUMM_OS_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
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
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "trace.h"

#ifdef BRUMM_DEBUG
/* Microseconds to wait in a sub-operation. */
extern struct trace_delays {
	unsigned int unmap, reduce, lookup, zap, remove, map, charge, fault,
		     release, reclaim, empty;
} trace_delays;

/*
 * As if it had taken longer. Busy, so that the time is known; a long one sleeps,
 * so that whoever attaches meanwhile need not wait for it.
 */
static inline void os_delay(unsigned int us)
{
	u64 end = ktime_get_ns() + us * 1000ULL;

	if (us > 100000)
		msleep(us / 1000);
	while (us && ktime_get_ns() < end)
		cpu_relax();
}
#endif

/* Let those who wait for a lock that was just dropped have it. */
static inline void os_give_way(void)
{
	usleep_range(20, 50);
}

/*
 * The two events of a sub-operation, by its name in trace.h. In between there
 * may be a wait that a test asks for, see trace.c.
 */
#ifdef BRUMM_DEBUG
#define os_begin(op, asked)						\
	do {								\
		trace_brumm_##op##_begin(asked);			\
		os_delay(trace_delays.op);				\
	} while (0)
#define OS_TRACE_ALWAYS		true
#else
#define os_begin(op, asked)	trace_brumm_##op##_begin(asked)
#define OS_TRACE_ALWAYS		false
#endif
#define os_end(op, ...)		trace_brumm_##op##_end(__VA_ARGS__)

/* Does anybody listen, or want to be delayed? For what only they need. */
static __always_inline bool os_tracing(void)
{
	return OS_TRACE_ALWAYS || static_branch_unlikely(&brumm_tracing);
}

#endif /* BRUMM_OS_H */
