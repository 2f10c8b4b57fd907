// SPDX-License-Identifier: GPL-2.0
/* What both builds share: failing, lock rules, waiting, work counted. */
#include "shim/control.h"
#include <sanitizer/common_interface_defs.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

static struct shim_task main_task = { .name = "main" };
static struct shim_task hook_task = { .name = "preempt hook" };
__thread struct shim_task *shim_current;

static void (*fail_hook)(void);
static bool fail_trace = true;
static void (*preempt_hook)(void);
static bool in_hook;
static unsigned long work_max[SHIM_RANKS];

/* order[a] has bit b: a lock of class b was taken while one of a was held. */
#define MAX_CLASSES	32
static u32 order[MAX_CLASSES];
static const char *class_name[MAX_CLASSES];
static int nr_classes;
static pthread_mutex_t class_mutex = PTHREAD_MUTEX_INITIALIZER;

static void __attribute__((constructor(101))) shim_start(void)
{
	shim_current = &main_task;
	setvbuf(stdout, NULL, _IOLBF, 0);
}

void shim_task_init(struct shim_task *t, const char *name)
{
	*t = (struct shim_task){ .name = name };
	shim_current = t;
}

/* Failing */

void shim_on_fail(void (*fn)(void))
{
	fail_hook = fn;
}

void shim_fail_without_trace(void)
{
	fail_trace = false;
}

void shim_fail(const char *file, int line, const char *fmt, ...)
{
	static int failing;
	va_list ap;

	if (__atomic_exchange_n(&failing, 1, __ATOMIC_SEQ_CST))
		_exit(1);
	printf("# FAILED in task '%s' at %s:%d: ", shim_current->name, file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (fail_hook)
		fail_hook();
	fflush(stdout);
	if (fail_trace)
		__sanitizer_print_stack_trace();
	_exit(1);
}

/* Preemption */

void shim_on_preempt(void (*fn)(void))
{
	preempt_hook = fn;
}

void shim_preempt(void)
{
	struct shim_task *me = shim_current;

	if (preempt_hook && !in_hook) {
		in_hook = true;
		shim_current = &hook_task;
		preempt_hook();
		SHIM_CHECK(!hook_task.nr_held, "the hook kept a lock");
		shim_current = me;
		in_hook = false;
	}
	if (me != &hook_task)
		shim_backend_yield();
}

void cond_resched(void)
{
	shim_might_sleep("cond_resched");
	shim_preempt();
}

u64 ktime_get_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

/* Work: a basic block of the module, counted by the compiler. */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	if (shim_current)
		shim_current->work++;
}

unsigned long shim_work(void)
{
	return shim_current->work;
}

unsigned long shim_work_max(enum shim_rank rank)
{
	return __atomic_load_n(&work_max[rank], __ATOMIC_RELAXED);
}

void shim_work_reset(void)
{
	memset(work_max, 0, sizeof(work_max));
}

static void work_note(enum shim_rank rank, unsigned long work)
{
	unsigned long old = shim_work_max(rank);

	while (work > old &&
	       !__atomic_compare_exchange_n(&work_max[rank], &old, work, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Lock rules */

static int class_index(struct shim_class *c)
{
	int i = __atomic_load_n(&c->index, __ATOMIC_ACQUIRE);

	if (i)
		return i;
	pthread_mutex_lock(&class_mutex);
	if (!c->index) {
		SHIM_CHECK(nr_classes + 1 < MAX_CLASSES, "too many lock classes");
		class_name[++nr_classes] = c->name;
		__atomic_store_n(&c->index, nr_classes, __ATOMIC_RELEASE);
	}
	i = c->index;
	pthread_mutex_unlock(&class_mutex);
	return i;
}

/* Which classes were ever taken below this one, directly or not. */
static u32 classes_below(int i)
{
	u32 seen = 0;
	u32 todo = order[i];

	while (todo & ~seen) {
		int next = __builtin_ctz(todo & ~seen);

		seen |= 1u << next;
		todo |= order[next];
	}
	return seen;
}

static void check_order(struct shim_lock *outer, struct shim_lock *inner)
{
	int o = class_index(outer->class);
	int i = class_index(inner->class);

	SHIM_CHECK(outer != inner, "'%s' taken twice", inner->class->name);
	SHIM_CHECK(o != i, "two locks '%s' at once", inner->class->name);
	SHIM_CHECK(outer->class->rank < inner->class->rank ||
		   (outer->class->rank == SHIM_SPIN &&
		    inner->class->rank == SHIM_SPIN),
		   "'%s' taken inside '%s'", inner->class->name,
		   outer->class->name);
	if (__atomic_load_n(&order[o], __ATOMIC_RELAXED) & 1u << i)
		return;
	pthread_mutex_lock(&class_mutex);
	SHIM_CHECK(!(classes_below(i) & 1u << o),
		   "'%s' inside '%s', but it was the other way round before",
		   class_name[i], class_name[o]);
	__atomic_or_fetch(&order[o], 1u << i, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&class_mutex);
}

static void check_acquire(struct shim_lock *l)
{
	struct shim_task *me = shim_current;
	int i;

	SHIM_CHECK(l->class, "lock is not initialised");
	for (i = 0; i < me->nr_held; i++)
		check_order(me->held[i].lock, l);
	if (l->class->rank == SHIM_SPIN)
		return;
	SHIM_CHECK(!me->rcu, "'%s' in an RCU read section", l->class->name);
	SHIM_CHECK(!me->waiting, "'%s' taken in the condition of a wait_event",
		   l->class->name);
}

/* Mutexes that are held over whole operations, and so over sleeping. */
static bool is_outer(const struct shim_class *c)
{
	return c->rank == SHIM_MUTEX && !strcmp(c->name, "&sp->reclaim");
}

void shim_might_sleep(const char *what)
{
	struct shim_task *me = shim_current;
	int i;

	for (i = 0; i < me->nr_held; i++)
		SHIM_CHECK(me->held[i].lock->class->rank != SHIM_SPIN,
			   "%s under spinlock '%s'", what,
			   me->held[i].lock->class->name);
	SHIM_CHECK(!me->rcu, "%s in an RCU read section", what);
}

void shim_no_locks(const char *what)
{
	struct shim_task *me = shim_current;
	int i;

	for (i = 0; i < me->nr_held; i++)
		SHIM_CHECK(me->held[i].lock->class->rank == SHIM_OUTER,
			   "%s with '%s' held", what,
			   me->held[i].lock->class->name);
	shim_might_sleep(what);
}

void shim_lock_init(struct shim_lock *l, struct shim_class *class)
{
	memset(l, 0, sizeof(*l));
	if (is_outer(class))
		class->rank = SHIM_OUTER;
	l->class = class;
	shim_backend_init(l);
}

void shim_lock_destroy(struct shim_lock *l)
{
	shim_backend_destroy(l);
	l->class = NULL;
}

static void hold(struct shim_lock *l, bool shared)
{
	struct shim_task *me = shim_current;

	SHIM_CHECK(me->nr_held < SHIM_HELD, "too many locks held");
	me->held[me->nr_held++] = (struct shim_held){
		.lock = l, .shared = shared, .work = me->work,
	};
}

void shim_acquire(struct shim_lock *l, bool shared)
{
	check_acquire(l);
	if (l->class->rank != SHIM_SPIN)
		shim_might_sleep(l->class->name);
	shim_preempt();
	shim_backend_acquire(l, shared);
	hold(l, shared);
}

bool shim_try_acquire(struct shim_lock *l, bool shared)
{
	SHIM_CHECK(l->class, "lock is not initialised");
	if (!shim_backend_try(l, shared))
		return false;
	hold(l, shared);
	return true;
}

void shim_release(struct shim_lock *l, bool shared)
{
	struct shim_task *me = shim_current;
	enum shim_rank rank = l->class->rank;
	int i;

	for (i = me->nr_held - 1; i >= 0; i--)
		if (me->held[i].lock == l)
			break;
	SHIM_CHECK(i >= 0, "'%s' released, but not held", l->class->name);
	SHIM_CHECK(me->held[i].shared == shared,
		   "'%s' released in the other mode", l->class->name);
	work_note(rank, me->work - me->held[i].work);
	me->nr_held--;
	memmove(&me->held[i], &me->held[i + 1],
		(size_t)(me->nr_held - i) * sizeof(me->held[0]));
	shim_backend_release(l, shared);
	shim_preempt();
}

bool shim_is_held(const struct shim_lock *l, bool write)
{
	struct shim_task *me = shim_current;
	int i;

	for (i = 0; i < me->nr_held; i++)
		if (me->held[i].lock == l)
			return !write || !me->held[i].shared;
	return false;
}

/* Waiting */

void prepare_to_wait(struct wait_queue_head *wq, struct wait_queue_entry *e,
		     int state)
{
	(void)state;
	if (!e->head) {
		e->head = wq;
		__atomic_add_fetch(&wq->waiters, 1, __ATOMIC_SEQ_CST);
	}
	e->seen = __atomic_load_n(&wq->wakeups, __ATOMIC_SEQ_CST);
	shim_current->wait = e;
	shim_current->waiting = true;
}

void finish_wait(struct wait_queue_head *wq, struct wait_queue_entry *e)
{
	if (e->head)
		__atomic_sub_fetch(&wq->waiters, 1, __ATOMIC_SEQ_CST);
	e->head = NULL;
	shim_current->wait = NULL;
	shim_current->waiting = false;
}

void schedule(void)
{
	struct wait_queue_entry *e = shim_current->wait;

	shim_current->waiting = false;
	shim_no_locks("schedule");
	SHIM_CHECK(e, "schedule() without a wait queue");
	shim_backend_sleep(e);
}

bool wq_has_sleeper(struct wait_queue_head *wq)
{
	return __atomic_load_n(&wq->waiters, __ATOMIC_SEQ_CST);
}

/* Lists */

bool __list_add_valid_or_report(struct list_head *new, struct list_head *prev,
				struct list_head *next)
{
	SHIM_CHECK(prev && next && next->prev == prev && prev->next == next,
		   "list_add: the list is corrupt");
	SHIM_CHECK(new != prev && new != next, "list_add: is in the list");
	return true;
}

bool __list_del_entry_valid_or_report(struct list_head *entry)
{
	SHIM_CHECK(entry->next && entry->next != LIST_POISON1 &&
		   entry->prev && entry->prev != LIST_POISON2,
		   "list_del: is in no list");
	SHIM_CHECK(entry->prev->next == entry && entry->next->prev == entry,
		   "list_del: the list is corrupt");
	return true;
}

/* Sorting: not stable, as the kernel's. */

static void sift(char *base, size_t i, size_t n, size_t size,
		 int (*cmp)(const void *, const void *), char *tmp)
{
	size_t child;

	for (; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n &&
		    cmp(base + child * size, base + (child + 1) * size) < 0)
			child++;
		if (cmp(base + i * size, base + child * size) >= 0)
			return;
		memcpy(tmp, base + i * size, size);
		memcpy(base + i * size, base + child * size, size);
		memcpy(base + child * size, tmp, size);
	}
}

void sort(void *base, size_t num, size_t size,
	  int (*cmp)(const void *, const void *),
	  void (*swap_func)(void *, void *, int))
{
	char tmp[256];
	size_t i;

	(void)swap_func;
	SHIM_CHECK(size <= sizeof(tmp), "sort: element too large");
	for (i = num / 2; i-- > 0;)
		sift(base, i, num, size, cmp, tmp);
	for (i = num; i-- > 1;) {
		memcpy(tmp, base, size);
		memcpy(base, (char *)base + i * size, size);
		memcpy((char *)base + i * size, tmp, size);
		sift(base, 0, i, size, cmp, tmp);
	}
}
