/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks, with the rules of the mapping database built in: each acquisition is
 * checked against what its task holds already.
 *
 *   - mutex, then rwsem, then spinlocks; never two of one class; outside of all
 *     of them such a mutex as is meant to be held while sleeping;
 *   - between classes of spinlocks the order that was seen first holds for ever
 *     (a small lockdep);
 *   - whoever may sleep (memory, callbacks, waiting, a mutex) holds no lock, or
 *     in the case of a mutex or rwsem no spinlock;
 *   - the work done under one hold is measured, see shim_work_max().
 *
 * A class is an initialisation site, as with lockdep.
 */
#ifndef SHIM_LOCK_H
#define SHIM_LOCK_H

#include <pthread.h>
#include "base.h"

enum shim_rank {
	SHIM_OUTER,		/* a mutex around whole operations */
	SHIM_MUTEX,
	SHIM_RWSEM,
	SHIM_SPIN,
	SHIM_RANKS,
};

struct shim_class {
	const char *name;
	enum shim_rank rank;
	int index;		/* in the order graph, 0: not yet there */
};

struct shim_lock {
	struct shim_class *class;
#ifdef SHIM_THREADS
	pthread_rwlock_t rw;
#else
	struct shim_task *owner;
	int readers;
#endif
};

#define SHIM_HELD	4

/* A thread or coroutine. */
struct shim_task {
	const char *name;
	int nr_held;
	struct shim_held {
		struct shim_lock *lock;
		bool shared;
		unsigned long work;
	} held[SHIM_HELD];
	bool waiting;		/* between prepare_to_wait and schedule */
	bool killed;		/* has a fatal signal pending */
	int rcu;		/* depth of read sections */
	int srcu;
	unsigned long work;	/* basic blocks of the module passed so far */
	struct wait_queue_entry *wait;
};

extern __thread struct shim_task *shim_current;

struct mutex {
	struct shim_lock l;
};

struct rw_semaphore {
	struct shim_lock l;
};

typedef struct spinlock {
	struct shim_lock l;
} spinlock_t;

#define SHIM_LOCK_INIT(lk, rk, text) do {				\
	static struct shim_class __class = { .name = text, .rank = rk };	\
	shim_lock_init(lk, &__class);					\
} while (0)

void shim_lock_init(struct shim_lock *l, struct shim_class *class);
void shim_acquire(struct shim_lock *l, bool shared);
bool shim_try_acquire(struct shim_lock *l, bool shared);
void shim_release(struct shim_lock *l, bool shared);
bool shim_is_held(const struct shim_lock *l, bool write);
void shim_might_sleep(const char *what);
void shim_no_locks(const char *what);

#define mutex_init(m)		SHIM_LOCK_INIT(&(m)->l, SHIM_MUTEX, #m)
#define init_rwsem(s)		SHIM_LOCK_INIT(&(s)->l, SHIM_RWSEM, #s)
#define spin_lock_init(s)	SHIM_LOCK_INIT(&(s)->l, SHIM_SPIN, #s)

#define SHIM_DEFINE_LOCK(name, type, rk)				\
	struct type name;						\
	static void __attribute__((constructor)) __init_##name(void)	\
	{								\
		SHIM_LOCK_INIT(&name.l, rk, #name);			\
	}								\
	extern struct type name
#define DEFINE_MUTEX(name)	SHIM_DEFINE_LOCK(name, mutex, SHIM_MUTEX)
#define DEFINE_SPINLOCK(name)	SHIM_DEFINE_LOCK(name, spinlock, SHIM_SPIN)
#define DECLARE_RWSEM(name)	SHIM_DEFINE_LOCK(name, rw_semaphore, SHIM_RWSEM)

#define mutex_lock(m)		shim_acquire(&(m)->l, false)
#define mutex_lock_killable(m)						\
	(shim_current->killed ? -EINTR : (mutex_lock(m), 0))
#define mutex_trylock(m)	shim_try_acquire(&(m)->l, false)
#define mutex_unlock(m)		shim_release(&(m)->l, false)
#define mutex_is_locked(m)	shim_is_locked(&(m)->l)
#define mutex_destroy(m)	shim_lock_destroy(&(m)->l)
#define down_read(s)		shim_acquire(&(s)->l, true)
#define down_read_trylock(s)	shim_try_acquire(&(s)->l, true)
#define up_read(s)		shim_release(&(s)->l, true)
#define down_write(s)		shim_acquire(&(s)->l, false)
#define down_write_trylock(s)	shim_try_acquire(&(s)->l, false)
#define up_write(s)		shim_release(&(s)->l, false)
#define spin_lock(s)		shim_acquire(&(s)->l, false)
#define spin_trylock(s)		shim_try_acquire(&(s)->l, false)
#define spin_unlock(s)		shim_release(&(s)->l, false)
/* Raw ones differ on a real-time kernel only. */
typedef struct spinlock raw_spinlock_t;
#define raw_spin_lock_init(s)	spin_lock_init(s)
#define raw_spin_lock(s)	spin_lock(s)
#define raw_spin_unlock(s)	spin_unlock(s)
#define raw_spin_lock_irqsave(s, f)	spin_lock_irqsave(s, f)
#define raw_spin_unlock_irqrestore(s, f)	spin_unlock_irqrestore(s, f)
#define spin_lock_bh(s)		spin_lock(s)
#define spin_unlock_bh(s)	spin_unlock(s)
#define spin_lock_irq(s)	spin_lock(s)
#define spin_unlock_irq(s)	spin_unlock(s)
#define spin_lock_irqsave(s, f)	do { (f) = 0; spin_lock(s); } while (0)
#define spin_unlock_irqrestore(s, f)	do { (void)(f); spin_unlock(s); } while (0)

void shim_lock_destroy(struct shim_lock *l);
bool shim_is_locked(struct shim_lock *l);

#define lockdep_is_held(x)	shim_is_held(&(x)->l, false)
#define SHIM_ASSERT_HELD(x, write)					\
	SHIM_CHECK(shim_is_held(&(x)->l, write), "%s is not held", #x)
#define lockdep_assert_held(x)		SHIM_ASSERT_HELD(x, false)
#define lockdep_assert_held_read(x)	SHIM_ASSERT_HELD(x, false)
#define lockdep_assert_held_write(x)	SHIM_ASSERT_HELD(x, true)
#define lockdep_assert_not_held(x)					\
	SHIM_CHECK(!shim_is_held(&(x)->l, false), "%s is held", #x)
#define lockdep_assert(cond)						\
	SHIM_CHECK(cond, "lockdep_assert(%s)", #cond)

/*
 * Wait queues. A waiter notes the number of wake-ups before he looks at his
 * condition and sleeps only until that number changes, so none is lost.
 */
typedef struct wait_queue_head {
	unsigned long wakeups;
	int waiters;
#ifdef SHIM_THREADS
	pthread_mutex_t mutex;
	pthread_cond_t cond;
#endif
} wait_queue_head_t;

struct wait_queue_entry {
	struct wait_queue_head *head;
	unsigned long seen;
};

#define TASK_RUNNING		0
#define TASK_INTERRUPTIBLE	1
#define TASK_UNINTERRUPTIBLE	2
#define TASK_KILLABLE		0x102

void init_waitqueue_head(struct wait_queue_head *wq);
void shim_wake_up(struct wait_queue_head *wq);
bool wq_has_sleeper(struct wait_queue_head *wq);
void prepare_to_wait(struct wait_queue_head *wq, struct wait_queue_entry *e,
		     int state);
void finish_wait(struct wait_queue_head *wq, struct wait_queue_entry *e);
void schedule(void);

#define waitqueue_active(wq)	wq_has_sleeper(wq)
#define wake_up_all(wq)		shim_wake_up(wq)
#define wake_up(wq)		shim_wake_up(wq)
#define DEFINE_WAIT(name)	struct wait_queue_entry name = { NULL, 0 }

#define SHIM_WAIT(wq, cond, state) ({					\
	struct wait_queue_entry __e = { NULL, 0 };			\
	int __ret = 0;							\
	shim_no_locks("wait_event");					\
	for (;;) {							\
		prepare_to_wait(&(wq), &__e, state);			\
		if (cond)						\
			break;						\
		if ((state) != TASK_UNINTERRUPTIBLE && shim_current->killed) { \
			__ret = -ERESTARTSYS;				\
			break;						\
		}							\
		schedule();						\
	}								\
	finish_wait(&(wq), &__e);					\
	__ret; })
#define wait_event(wq, cond)						\
	((void)SHIM_WAIT(wq, cond, TASK_UNINTERRUPTIBLE))
#define wait_event_killable(wq, cond)	SHIM_WAIT(wq, cond, TASK_KILLABLE)
#define wait_event_interruptible(wq, cond)				\
	SHIM_WAIT(wq, cond, TASK_INTERRUPTIBLE)

#endif /* SHIM_LOCK_H */
