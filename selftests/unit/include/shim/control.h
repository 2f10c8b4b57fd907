/* SPDX-License-Identifier: GPL-2.0 */
/* What tests tell the shim, and ask it. */
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

#include "../os.h"

/* Is called when a test fails, to print what led there. */
void shim_on_fail(void (*fn)(void));
/* To find the functions takes a second. */
void shim_fail_without_trace(void);

/*
 * The n-th allocation from now that may fail does (0: none does). Returns
 * whether the one that was asked for before has failed by now.
 */
bool shim_alloc_fail_at(unsigned long n);
/* Blocks that are allocated at the moment. */
long shim_alloc_live(void);
/* Of which so many are from a kmem_cache. */
long shim_alloc_cached(void);
/* Allocations that could not fail (__GFP_NOFAIL), ever. */
unsigned long shim_alloc_nofail(void);

/*
 * Greatest number of basic blocks of the module (compiled with
 * -fsanitize-coverage=trace-pc) that were passed under one hold of a lock of
 * this rank since the last reset.
 */
unsigned long shim_work_max(enum shim_rank rank);
void shim_work_reset(void);
/* Basic blocks passed by this task so far. */
unsigned long shim_work(void);

/*
 * Called wherever another CPU could do something that this task notices, with
 * the locks that the task holds at that moment held. May take no lock but by
 * try. Runs as a task of its own; not called while it runs.
 */
void shim_on_preempt(void (*fn)(void));

/* Once per thread; the main thread has one already. */
void shim_task_init(struct shim_task *t, const char *name);
/* At the end of a test: nothing is held, nothing left to free. */
void shim_check_idle(void);

/* What the two builds supply, for shim.c. */
void shim_backend_init(struct shim_lock *l);
void shim_backend_destroy(struct shim_lock *l);
bool shim_backend_try(struct shim_lock *l, bool shared);
void shim_backend_acquire(struct shim_lock *l, bool shared);
void shim_backend_release(struct shim_lock *l, bool shared);
void shim_backend_sleep(struct wait_queue_entry *e);
void shim_backend_yield(void);

#ifndef SHIM_THREADS
/*
 * Coroutines. fiber_run() starts all of them and returns when the last has
 * ended; at every preemption point one of the runnable ones goes on, chosen by
 * @seed, another one than before in one of @inverse cases. That none can go on
 * is a deadlock.
 */
struct fiber {
	const char *name;
	void (*fn)(void *arg);
	void *arg;
};

void fiber_run(const struct fiber *fibers, int nr, u64 seed, int inverse);
/* Sleep until ready() says so. */
void shim_block(bool (*ready)(void *arg), void *arg, const char *why);
#endif

#endif /* SHIM_CONTROL_H */
