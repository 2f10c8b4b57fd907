/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory: each block is one of the C library, so that AddressSanitizer sees
 * it. Every block is counted, may be made to fail, and remembers by which
 * function it has to be freed.
 */
#ifndef SHIM_MEM_H
#define SHIM_MEM_H

#include "base.h"

#define __GFP_IO		0x40u
#define __GFP_FS		0x80u
#define __GFP_ZERO		0x100u
#define __GFP_DIRECT_RECLAIM	0x400u
#define __GFP_KSWAPD_RECLAIM	0x800u
#define __GFP_NOWARN		0x2000u
#define __GFP_RETRY_MAYFAIL	0x4000u
#define __GFP_NOFAIL		0x8000u
#define __GFP_NORETRY		0x10000u
#define __GFP_ACCOUNT		0x400000u
#define __GFP_RECLAIM		(__GFP_DIRECT_RECLAIM | __GFP_KSWAPD_RECLAIM)
#define GFP_KERNEL		(__GFP_RECLAIM | __GFP_IO | __GFP_FS)
#define GFP_KERNEL_ACCOUNT	(GFP_KERNEL | __GFP_ACCOUNT)
#define GFP_NOFS		(__GFP_RECLAIM | __GFP_IO)
#define GFP_NOWAIT		__GFP_KSWAPD_RECLAIM
#define GFP_ATOMIC		__GFP_KSWAPD_RECLAIM

#define SLAB_ACCOUNT		0x1u
#define SLAB_HWCACHE_ALIGN	0x2u
#define SLAB_TYPESAFE_BY_RCU	0x4u
#define SLAB_RECLAIM_ACCOUNT	0x8u
#define SLAB_PANIC		0x10u

enum shim_kind {
	SHIM_KMALLOC = 1,
	SHIM_KVMALLOC,
	SHIM_CACHE,
};

struct kmem_cache;

void *shim_alloc(size_t size, gfp_t gfp, enum shim_kind kind,
		 struct kmem_cache *cache);
void shim_free(const void *p, unsigned int kinds, struct kmem_cache *cache);

#define kmalloc(size, gfp)	shim_alloc(size, gfp, SHIM_KMALLOC, NULL)
#define kzalloc(size, gfp)	kmalloc(size, (gfp) | __GFP_ZERO)
#define kmalloc_array(n, s, gfp)	kmalloc(size_mul(n, s), gfp)
#define kcalloc(n, s, gfp)	kzalloc(size_mul(n, s), gfp)
#define kvmalloc(size, gfp)	shim_alloc(size, gfp, SHIM_KVMALLOC, NULL)
#define kvzalloc(size, gfp)	kvmalloc(size, (gfp) | __GFP_ZERO)
#define kvmalloc_array(n, s, gfp)	kvmalloc(size_mul(n, s), gfp)
#define kvcalloc(n, s, gfp)	kvzalloc(size_mul(n, s), gfp)
#define kfree(p)		shim_free(p, 1u << SHIM_KMALLOC, NULL)
#define kvfree(p)							\
	shim_free(p, 1u << SHIM_KMALLOC | 1u << SHIM_KVMALLOC, NULL)

struct kmem_cache *kmem_cache_create(const char *name, unsigned int size,
				     unsigned int align, unsigned int flags,
				     void (*ctor)(void *));
void kmem_cache_destroy(struct kmem_cache *c);
unsigned int kmem_cache_size(struct kmem_cache *c);

#define KMEM_CACHE(s, flags)						\
	kmem_cache_create(#s, sizeof(struct s), _Alignof(struct s), flags, NULL)
#define kmem_cache_alloc(c, gfp)					\
	shim_alloc(kmem_cache_size(c), gfp, SHIM_CACHE, c)
#define kmem_cache_zalloc(c, gfp)	kmem_cache_alloc(c, (gfp) | __GFP_ZERO)
#define kmem_cache_free(c, p)	shim_free(p, 1u << SHIM_CACHE, c)

static inline void kmem_cache_free_bulk(struct kmem_cache *c, size_t nr,
					void **p)
{
	while (nr--)
		kmem_cache_free(c, p[nr]);
}

/* RCU: what is freed after a grace period is freed when nobody reads. */
struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
	void *block;
};

void rcu_read_lock(void);
void rcu_read_unlock(void);
bool rcu_read_lock_held(void);
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
void synchronize_rcu(void);
void rcu_barrier(void);
void shim_rcu_free(struct rcu_head *head, void *block);

#define kfree_rcu(p, field)	shim_rcu_free(&(p)->field, p)

/* SRCU: a synchronize waits for the readers that were there before it. */
struct srcu_struct {
	int readers[2];
	int index;
#ifdef SHIM_THREADS
	pthread_mutex_t mutex;
#else
	int busy;
#endif
};

#ifdef SHIM_THREADS
#define SHIM_SRCU_INIT		{ .mutex = PTHREAD_MUTEX_INITIALIZER }
#else
#define SHIM_SRCU_INIT		{ .index = 0 }
#endif
#define DEFINE_SRCU(name)	struct srcu_struct name = SHIM_SRCU_INIT
#define DEFINE_STATIC_SRCU(name)	static DEFINE_SRCU(name)

int init_srcu_struct(struct srcu_struct *s);
void cleanup_srcu_struct(struct srcu_struct *s);
int srcu_read_lock(struct srcu_struct *s);
void srcu_read_unlock(struct srcu_struct *s, int index);
bool srcu_read_lock_held(const struct srcu_struct *s);
void synchronize_srcu(struct srcu_struct *s);

#endif /* SHIM_MEM_H */
