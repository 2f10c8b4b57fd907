/* SPDX-License-Identifier: GPL-2.0 */
/* Types, assertions and arithmetic of the kernel, for user space. */
#ifndef SHIM_BASE_H
#define SHIM_BASE_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
typedef long long s64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint8_t u8;
typedef int8_t s8;
typedef unsigned int gfp_t;

#define U8_MAX			((u8)~0U)
#define PAGE_SIZE		4096ul
#define U16_MAX			((u16)~0U)
#define U32_MAX			((u32)~0U)
#define U64_MAX			((u64)~0ULL)
#define S64_MAX			((s64)(U64_MAX >> 1))

#define ERESTARTSYS		512

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

/* What a compiler is told. */
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define noinline		__attribute__((noinline))
#define memset_startat(obj, v, member)					\
	memset((char *)(obj) + offsetof(typeof(*(obj)), member), v,	\
	       sizeof(*(obj)) - offsetof(typeof(*(obj)), member))
#define __must_check		__attribute__((warn_unused_result))
#define __maybe_unused		__attribute__((unused))
#define __packed		__attribute__((packed))
#define __cold			__attribute__((cold))
#define __init
#define __exit
#define __read_mostly
#define __rcu
#define __user
#define __acquires(x)
#define __releases(x)
#define __must_hold(x)
#define fallthrough		__attribute__((fallthrough))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define barrier()		__asm__ __volatile__("" ::: "memory")
#define EXPORT_SYMBOL(x)
#define EXPORT_SYMBOL_GPL(x)
#define IS_ENABLED(x)		(x)
#define __CONCAT_(a, b)		a##b
#define __CONCAT2(a, b)		__CONCAT_(a, b)
#define __UNIQUE_ID(x)		__CONCAT2(__unique_##x, __COUNTER__)

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb()		__atomic_thread_fence(__ATOMIC_RELEASE)
#define data_race(x)		(x)
#define rcu_assign_pointer(p, v)	smp_store_release(&(p), v)
#define rcu_dereference(p)	smp_load_acquire(&(p))
#define rcu_dereference_raw(p)	smp_load_acquire(&(p))
#define rcu_dereference_protected(p, c)	(p)
#define rcu_access_pointer(p)	READ_ONCE(p)
#define RCU_INIT_POINTER(p, v)	WRITE_ONCE(p, v)

#define container_of(ptr, type, member) ({				\
	void *__mptr = (void *)(ptr);					\
	(type *)((char *)__mptr - offsetof(type, member)); })

#define LIST_POISON1		((void *)0x100)
#define LIST_POISON2		((void *)0x122)

/*
 * shim_fail: the test has failed; prints why, what the test wants to tell
 * besides (see shim_on_fail()) and where, and ends the program.
 */
void shim_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
#define SHIM_FAIL(...)		shim_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SHIM_CHECK(cond, ...) do {					\
	if (unlikely(!(cond)))						\
		SHIM_FAIL(__VA_ARGS__);					\
} while (0)

/* Warnings of the kernel are failures here. */
#define WARN_ON(cond) ({						\
	bool __warn = !!(cond);						\
	if (unlikely(__warn))						\
		SHIM_FAIL("WARN_ON(%s)", #cond);			\
	__warn; })
#define WARN_ON_ONCE(cond)	WARN_ON(cond)
#define WARN(cond, fmt, ...) ({						\
	bool __warn = !!(cond);						\
	if (unlikely(__warn))						\
		SHIM_FAIL("WARN(%s): " fmt, #cond, ##__VA_ARGS__);	\
	__warn; })
#define WARN_ONCE(cond, ...)	WARN(cond, __VA_ARGS__)
#define BUG_ON(cond)		((void)WARN_ON(cond))
#define BUG()			BUG_ON(1)
#define VM_WARN_ON_ONCE(cond)	WARN_ON(cond)

#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), #cond)
#define BUILD_BUG_ON_MSG(cond, msg)	_Static_assert(!(cond), msg)

#define printk(...)		((void)0)
#define pr_err(...)		((void)0)
#define pr_warn(...)		((void)0)
#define pr_info(...)		((void)0)
#define pr_debug(...)		((void)0)

/* Arithmetic. */
#define __same_type(a, b)	__builtin_types_compatible_p(typeof(a), typeof(b))
#define min(x, y) ({							\
	typeof(x) __x = (x);						\
	typeof(y) __y = (y);						\
	_Static_assert(__same_type(__x, __y), "min() of two types");	\
	__x < __y ? __x : __y; })
#define max(x, y) ({							\
	typeof(x) __x = (x);						\
	typeof(y) __y = (y);						\
	_Static_assert(__same_type(__x, __y), "max() of two types");	\
	__x > __y ? __x : __y; })
#define min_t(t, x, y)		min((t)(x), (t)(y))
#define max_t(t, x, y)		max((t)(x), (t)(y))
#define min3(x, y, z)		min(min(x, y), z)
#define max3(x, y, z)		max(max(x, y), z)
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define clamp_t(t, v, lo, hi)	min_t(t, max_t(t, v, lo), hi)
#define swap(a, b) do {							\
	typeof(a) __tmp = (a);						\
	(a) = (b);							\
	(b) = __tmp;							\
} while (0)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define div_u64(n, d)		((u64)(n) / (u32)(d))
#define div64_u64(n, d)		((u64)(n) / (u64)(d))
#define check_add_overflow(a, b, d)	__builtin_add_overflow(a, b, d)
#define check_sub_overflow(a, b, d)	__builtin_sub_overflow(a, b, d)
#define check_mul_overflow(a, b, d)	__builtin_mul_overflow(a, b, d)

/* Bitmaps, of one task: not atomic. */
#define BITS_PER_LONG		64
#define BITS_TO_LONGS(n)	DIV_ROUND_UP(n, BITS_PER_LONG)
#define DECLARE_BITMAP(name, bits)	unsigned long name[BITS_TO_LONGS(bits)]

static inline bool test_bit(unsigned long n, const unsigned long *map)
{
	return map[n / BITS_PER_LONG] >> n % BITS_PER_LONG & 1;
}

static inline void __set_bit(unsigned long n, unsigned long *map)
{
	map[n / BITS_PER_LONG] |= BIT(n % BITS_PER_LONG);
}

static inline void __clear_bit(unsigned long n, unsigned long *map)
{
	map[n / BITS_PER_LONG] &= ~BIT(n % BITS_PER_LONG);
}

static inline unsigned long find_next_zero_bit(const unsigned long *map,
					       unsigned long nr,
					       unsigned long n)
{
	while (n < nr && test_bit(n, map))
		n++;
	return n;
}

static inline void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, BITS_TO_LONGS(bits) * sizeof(*map));
}

static inline size_t size_mul(size_t a, size_t b)
{
	size_t r;

	return check_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}

static inline size_t size_add(size_t a, size_t b)
{
	size_t r;

	return check_add_overflow(a, b, &r) ? SIZE_MAX : r;
}

#define array_size(a, b)	size_mul(a, b)
#define flex_array_size(p, member, n)	size_mul(n, sizeof(*(p)->member))
#define struct_size(p, member, n)					\
	size_add(sizeof(*(p)), flex_array_size(p, member, n))

void sort(void *base, size_t num, size_t size,
	  int (*cmp)(const void *, const void *),
	  void (*swap_func)(void *, void *, int));

/* An atomic_t is what the compiler's own atomics make of it. */
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { long counter; } atomic_long_t;

#define ATOMIC_INIT(i)		{ (i) }
#define SHIM_ATOMIC(prefix, type, val)					\
static inline val prefix##_read(const type *v)				\
{									\
	return __atomic_load_n(&v->counter, __ATOMIC_RELAXED);		\
}									\
static inline void prefix##_set(type *v, val i)				\
{									\
	__atomic_store_n(&v->counter, i, __ATOMIC_RELAXED);		\
}									\
static inline val prefix##_add_return(val i, type *v)			\
{									\
	return __atomic_add_fetch(&v->counter, i, __ATOMIC_SEQ_CST);	\
}									\
static inline void prefix##_add(val i, type *v)				\
{									\
	prefix##_add_return(i, v);					\
}									\
static inline void prefix##_sub(val i, type *v)				\
{									\
	prefix##_add_return(-i, v);					\
}									\
static inline void prefix##_inc(type *v)				\
{									\
	prefix##_add_return(1, v);					\
}									\
static inline void prefix##_dec(type *v)				\
{									\
	prefix##_add_return(-1, v);					\
}									\
static inline val prefix##_inc_return(type *v)				\
{									\
	return prefix##_add_return(1, v);				\
}									\
static inline bool prefix##_dec_and_test(type *v)			\
{									\
	return !prefix##_add_return(-1, v);				\
}									\
static inline val prefix##_cmpxchg(type *v, val old, val new)		\
{									\
	__atomic_compare_exchange_n(&v->counter, &old, new, false,	\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);\
	return old;							\
}

SHIM_ATOMIC(atomic, atomic_t, int)
SHIM_ATOMIC(atomic64, atomic64_t, s64)
SHIM_ATOMIC(atomic_long, atomic_long_t, long)

/* refcount_t: leaving zero, or going below it, is a failure at once. */
typedef struct { int refs; } refcount_t;

#define REFCOUNT_INIT(n)	{ (n) }

static inline void refcount_set(refcount_t *r, int n)
{
	__atomic_store_n(&r->refs, n, __ATOMIC_RELAXED);
}

static inline unsigned int refcount_read(const refcount_t *r)
{
	return __atomic_load_n(&r->refs, __ATOMIC_RELAXED);
}

static inline void refcount_add(int n, refcount_t *r)
{
	int old = __atomic_fetch_add(&r->refs, n, __ATOMIC_SEQ_CST);

	SHIM_CHECK(old > 0, "refcount taken at %d: use after free", old);
}

static inline void refcount_inc(refcount_t *r)
{
	refcount_add(1, r);
}

static inline bool refcount_inc_not_zero(refcount_t *r)
{
	int old = __atomic_load_n(&r->refs, __ATOMIC_RELAXED);

	while (old && !__atomic_compare_exchange_n(&r->refs, &old, old + 1,
						   false, __ATOMIC_SEQ_CST,
						   __ATOMIC_RELAXED))
		;
	return old;
}

static inline bool refcount_sub_and_test(int n, refcount_t *r)
{
	int old = __atomic_fetch_sub(&r->refs, n, __ATOMIC_SEQ_CST);

	SHIM_CHECK(old >= n, "refcount underflow: %d - %d", old, n);
	return old == n;
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
	return refcount_sub_and_test(1, r);
}

static inline void refcount_dec(refcount_t *r)
{
	bool zero = refcount_sub_and_test(1, r);

	SHIM_CHECK(!zero, "refcount_dec() reached zero");
}

#endif /* SHIM_BASE_H */
