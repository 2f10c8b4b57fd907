// SPDX-License-Identifier: GPL-2.0
/* The build with POSIX threads. */
#include "shim/control.h"
#include <sched.h>

void shim_backend_init(struct shim_lock *l)
{
	pthread_rwlock_init(&l->rw, NULL);
}

void shim_backend_destroy(struct shim_lock *l)
{
	pthread_rwlock_destroy(&l->rw);
}

bool shim_is_locked(struct shim_lock *l)
{
	if (pthread_rwlock_trywrlock(&l->rw))
		return true;
	pthread_rwlock_unlock(&l->rw);
	return false;
}

bool shim_backend_try(struct shim_lock *l, bool shared)
{
	return !(shared ? pthread_rwlock_tryrdlock(&l->rw) :
			  pthread_rwlock_trywrlock(&l->rw));
}

void shim_backend_acquire(struct shim_lock *l, bool shared)
{
	if (shared)
		pthread_rwlock_rdlock(&l->rw);
	else
		pthread_rwlock_wrlock(&l->rw);
}

void shim_backend_release(struct shim_lock *l, bool shared)
{
	(void)shared;
	pthread_rwlock_unlock(&l->rw);
}

/* On few CPUs threads seldom meet unless they are made to. */
void shim_backend_yield(void)
{
	static __thread unsigned int calls;

	if (++calls % 16 == 0)
		sched_yield();
}

void init_waitqueue_head(struct wait_queue_head *wq)
{
	memset(wq, 0, sizeof(*wq));
	pthread_mutex_init(&wq->mutex, NULL);
	pthread_cond_init(&wq->cond, NULL);
}

void shim_wake_up(struct wait_queue_head *wq)
{
	pthread_mutex_lock(&wq->mutex);
	__atomic_add_fetch(&wq->wakeups, 1, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&wq->cond);
	pthread_mutex_unlock(&wq->mutex);
}

void shim_backend_sleep(struct wait_queue_entry *e)
{
	struct wait_queue_head *wq = e->head;

	pthread_mutex_lock(&wq->mutex);
	while (__atomic_load_n(&wq->wakeups, __ATOMIC_SEQ_CST) == e->seen)
		pthread_cond_wait(&wq->cond, &wq->mutex);
	pthread_mutex_unlock(&wq->mutex);
}

void shim_check_idle(void)
{
	SHIM_CHECK(!shim_current->nr_held, "a lock is still held");
	rcu_barrier();
}

/* Read by the race detector: the first race ends the test. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "halt_on_error=1:exitcode=66";
}
