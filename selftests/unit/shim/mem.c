// SPDX-License-Identifier: GPL-2.0
/* Memory, RCU and SRCU. */
#include "shim/control.h"

#define MAGIC		0x6d75727fu
#define HEADER		32

struct header {
	u32 magic;
	u32 kind;
	struct kmem_cache *cache;
	size_t size;
};

struct kmem_cache {
	const char *name;
	unsigned int size;
	long live;
};

static long live, cached;
static unsigned long nofail;
static unsigned long fail_at;

bool shim_alloc_fail_at(unsigned long n)
{
	bool reached = !fail_at;

	fail_at = n;
	return reached;
}

long shim_alloc_live(void)
{
	return __atomic_load_n(&live, __ATOMIC_SEQ_CST);
}

long shim_alloc_cached(void)
{
	return __atomic_load_n(&cached, __ATOMIC_SEQ_CST);
}

unsigned long shim_alloc_nofail(void)
{
	return __atomic_load_n(&nofail, __ATOMIC_RELAXED);
}

static bool must_fail(gfp_t gfp)
{
	if (gfp & __GFP_NOFAIL) {
		SHIM_CHECK(gfp & __GFP_DIRECT_RECLAIM,
			   "__GFP_NOFAIL where sleeping is not allowed");
		__atomic_add_fetch(&nofail, 1, __ATOMIC_RELAXED);
		return false;
	}
	return fail_at && !--fail_at;
}

void *shim_alloc(size_t size, gfp_t gfp, enum shim_kind kind,
		 struct kmem_cache *cache)
{
	struct header *h;
	char *p;

	if (gfp & __GFP_DIRECT_RECLAIM)
		shim_no_locks("allocation");
	shim_preempt();
	if (must_fail(gfp) || size > SIZE_MAX / 2)
		return NULL;
	h = malloc(HEADER + size);
	SHIM_CHECK(h, "out of memory");
	*h = (struct header){ MAGIC, kind, cache, size };
	p = (char *)h + HEADER;
	memset(p, gfp & __GFP_ZERO ? 0 : 0xa5, size);
	__atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
	if (cache) {
		__atomic_add_fetch(&cache->live, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&cached, 1, __ATOMIC_SEQ_CST);
	}
	return p;
}

void shim_free(const void *ptr, unsigned int kinds, struct kmem_cache *cache)
{
	struct header *h;

	if (!ptr)
		return;
	h = (struct header *)((char *)ptr - HEADER);
	SHIM_CHECK(h->magic == MAGIC, "freed what was not allocated");
	SHIM_CHECK(kinds & 1u << h->kind, "freed by the wrong function");
	SHIM_CHECK(h->cache == cache, "freed to the wrong cache");
	if (h->kind == SHIM_KVMALLOC)
		shim_might_sleep("kvfree");
	if (cache) {
		__atomic_sub_fetch(&cache->live, 1, __ATOMIC_SEQ_CST);
		__atomic_sub_fetch(&cached, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
	memset(h, 0x6b, HEADER + h->size);
	free(h);
}

struct kmem_cache *kmem_cache_create(const char *name, unsigned int size,
				     unsigned int align, unsigned int flags,
				     void (*ctor)(void *))
{
	struct kmem_cache *c;

	(void)align;
	(void)flags;
	SHIM_CHECK(!ctor, "constructors are not supported");
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return NULL;
	c->name = name;
	c->size = size;
	return c;
}

void kmem_cache_destroy(struct kmem_cache *c)
{
	if (!c)
		return;
	SHIM_CHECK(!c->live, "cache '%s' has %ld objects left", c->name, c->live);
	kfree(c);
}

unsigned int kmem_cache_size(struct kmem_cache *c)
{
	return c->size;
}

/* RCU */

static int rcu_readers;
static struct rcu_head *rcu_pending;
static pthread_mutex_t rcu_mutex = PTHREAD_MUTEX_INITIALIZER;

static void rcu_flush(void)
{
	struct rcu_head *head;

	pthread_mutex_lock(&rcu_mutex);
	head = rcu_pending;
	rcu_pending = NULL;
	pthread_mutex_unlock(&rcu_mutex);
	while (head) {
		struct rcu_head *next = head->next;

		if (head->func)
			head->func(head);
		else
			kfree(head->block);
		head = next;
	}
}

static void rcu_flush_if_idle(void)
{
#ifndef SHIM_THREADS
	/* Threads flush at rcu_barrier() only. */
	if (!rcu_readers && rcu_pending)
		rcu_flush();
#endif
}

void rcu_read_lock(void)
{
	shim_current->rcu++;
	__atomic_add_fetch(&rcu_readers, 1, __ATOMIC_SEQ_CST);
}

void rcu_read_unlock(void)
{
	SHIM_CHECK(shim_current->rcu, "rcu_read_unlock() without lock");
	shim_current->rcu--;
	__atomic_sub_fetch(&rcu_readers, 1, __ATOMIC_SEQ_CST);
	rcu_flush_if_idle();
}

bool rcu_read_lock_held(void)
{
	return shim_current->rcu;
}

static void rcu_queue(struct rcu_head *head)
{
	pthread_mutex_lock(&rcu_mutex);
	head->next = rcu_pending;
	rcu_pending = head;
	pthread_mutex_unlock(&rcu_mutex);
	rcu_flush_if_idle();
}

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	head->func = func;
	head->block = NULL;
	rcu_queue(head);
}

void shim_rcu_free(struct rcu_head *head, void *block)
{
	head->func = NULL;
	head->block = block;
	rcu_queue(head);
}

#ifndef SHIM_THREADS
static bool no_rcu_readers(void *unused)
{
	(void)unused;
	return !rcu_readers;
}
#endif

void synchronize_rcu(void)
{
	shim_no_locks("synchronize_rcu");
#ifdef SHIM_THREADS
	while (__atomic_load_n(&rcu_readers, __ATOMIC_SEQ_CST))
		sched_yield();
#else
	shim_block(no_rcu_readers, NULL, "synchronize_rcu");
#endif
}

void rcu_barrier(void)
{
	synchronize_rcu();
	rcu_flush();
}

/* SRCU */

int init_srcu_struct(struct srcu_struct *s)
{
	*s = (struct srcu_struct)SHIM_SRCU_INIT;
	return 0;
}

void cleanup_srcu_struct(struct srcu_struct *s)
{
	SHIM_CHECK(!s->readers[0] && !s->readers[1], "SRCU readers left");
}

int srcu_read_lock(struct srcu_struct *s)
{
	int i = __atomic_load_n(&s->index, __ATOMIC_SEQ_CST);

	SHIM_CHECK(!shim_current->waiting, "SRCU in a wait condition");
	__atomic_add_fetch(&s->readers[i], 1, __ATOMIC_SEQ_CST);
	shim_current->srcu++;
	shim_preempt();
	return i;
}

void srcu_read_unlock(struct srcu_struct *s, int index)
{
	SHIM_CHECK(shim_current->srcu, "srcu_read_unlock() without lock");
	shim_current->srcu--;
	__atomic_sub_fetch(&s->readers[index], 1, __ATOMIC_SEQ_CST);
	shim_preempt();
}

/* There is one that matters. */
bool srcu_read_lock_held(const struct srcu_struct *s)
{
	return shim_current->srcu;
}

#ifndef SHIM_THREADS
static bool srcu_drained(void *arg)
{
	return !*(int *)arg;
}
#endif

static void srcu_drain(struct srcu_struct *s, int i)
{
#ifdef SHIM_THREADS
	while (__atomic_load_n(&s->readers[i], __ATOMIC_SEQ_CST))
		sched_yield();
#else
	shim_block(srcu_drained, &s->readers[i], "synchronize_srcu");
#endif
}

static void srcu_flip(struct srcu_struct *s)
{
	int old = s->index;

	/* A reader that saw the old index late is waited for by the drain. */
	srcu_drain(s, !old);
	__atomic_store_n(&s->index, !old, __ATOMIC_SEQ_CST);
	srcu_drain(s, old);
}

void synchronize_srcu(struct srcu_struct *s)
{
	shim_no_locks("synchronize_srcu");
	SHIM_CHECK(!shim_current->srcu, "synchronize_srcu() in a read section");
#ifdef SHIM_THREADS
	pthread_mutex_lock(&s->mutex);
	srcu_flip(s);
	srcu_flip(s);
	pthread_mutex_unlock(&s->mutex);
#else
	shim_block(srcu_drained, &s->busy, "another synchronize_srcu");
	s->busy = 1;
	srcu_flip(s);
	s->busy = 0;
#endif
}
