/* SPDX-License-Identifier: GPL-2.0 */
/* Tasks, time and signals. */
#ifndef SHIM_SCHED_H
#define SHIM_SCHED_H

#include "lock.h"

typedef s64 ktime_t;

u64 ktime_get_ns(void);
#define ktime_get()		((ktime_t)ktime_get_ns())
#define local_clock()		ktime_get_ns()
#define ktime_to_ns(t)		((s64)(t))
#define ktime_sub(a, b)		((a) - (b))

#define current			shim_current
#define fatal_signal_pending(t)	((t)->killed)
#define signal_pending(t)	((t)->killed)
#define might_sleep()		shim_might_sleep("might_sleep")
#define need_resched()		1

void cond_resched(void);
#define cpu_relax()		shim_preempt()

void shim_preempt(void);
#define os_give_way()	shim_preempt()

#endif /* SHIM_SCHED_H */
