// SPDX-License-Identifier: GPL-2.0
/*
 * The build with one thread: locks are flags, and coroutines stand for CPUs.
 * Every lock operation, allocation and callback is a point where another one
 * may go on; which one does depends on the seed alone, so that a race that was
 * found once is found again.
 */
#include "shim/control.h"
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <ucontext.h>

#define MAX_FIBERS	16
#define STACK_BYTES	(256 * 1024)
/* More than any run takes: they keep each other from getting on. */
#define MAX_YIELDS	20000000

struct context {
	struct fiber fiber;
	struct shim_task task;
	ucontext_t uc;
	char *stack;
	void *fake_stack;
	bool (*ready)(void *arg);	/* NULL: runnable */
	void *arg;
	const char *why;
	bool done;
};

static struct context contexts[MAX_FIBERS];
static int nr_contexts;
static struct context *running;
static ucontext_t main_uc;
static void *main_fake_stack;
static const void *main_stack;
static size_t main_stack_size;
static u64 random_state;
static int switch_inverse;
static unsigned long yields;

static u64 next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static bool can_go_on(struct context *c)
{
	if (c->done)
		return false;
	if (c->ready && !c->ready(c->arg))
		return false;
	c->ready = NULL;
	return true;
}

static void deadlock(void)
{
	int i;

	for (i = 0; i < nr_contexts; i++)
		if (!contexts[i].done)
			printf("# '%s' waits for %s\n", contexts[i].fiber.name,
			       contexts[i].why);
	SHIM_FAIL("deadlock");
}

static struct context *pick(void)
{
	int first = (int)(next_random() % (u64)nr_contexts);
	int i;

	for (i = 0; i < nr_contexts; i++) {
		struct context *c = &contexts[(first + i) % nr_contexts];

		if (can_go_on(c))
			return c;
	}
	return NULL;
}

static void switch_to(struct context *to)
{
	struct context *from = running;
	struct shim_task *task = shim_current;

	if (to == from)
		return;
	running = to;
	shim_current = &to->task;
	__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, STACK_BYTES);
	swapcontext(&from->uc, &to->uc);
	__sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
	shim_current = task;
}

static void end_fiber(void)
{
	struct context *from = running;
	struct context *to;
	int left = 0, i;

	SHIM_CHECK(!shim_current->nr_held, "coroutine ended with a lock held");
	from->done = true;
	for (i = 0; i < nr_contexts; i++)
		left += !contexts[i].done;
	if (!left) {
		running = NULL;
		__sanitizer_start_switch_fiber(NULL, main_stack, main_stack_size);
		setcontext(&main_uc);
	}
	to = pick();
	if (!to)
		deadlock();
	running = to;
	shim_current = &to->task;
	__sanitizer_start_switch_fiber(NULL, to->stack, STACK_BYTES);
	setcontext(&to->uc);
}

static void fiber_entry(void)
{
	__sanitizer_finish_switch_fiber(NULL, main_stack ? NULL : &main_stack,
					main_stack ? NULL : &main_stack_size);
	running->fiber.fn(running->fiber.arg);
	end_fiber();
}

static void make_fiber(struct context *c, const struct fiber *f)
{
	memset(c, 0, sizeof(*c));
	c->fiber = *f;
	c->task.name = f->name;
	c->stack = malloc(STACK_BYTES);
	SHIM_CHECK(c->stack, "out of memory");
	getcontext(&c->uc);
	c->uc.uc_stack.ss_sp = c->stack;
	c->uc.uc_stack.ss_size = STACK_BYTES;
	makecontext(&c->uc, fiber_entry, 0);
}

void fiber_run(const struct fiber *fibers, int nr, u64 seed, int inverse)
{
	struct shim_task *task = shim_current;
	int i;

	SHIM_CHECK(nr > 0 && nr <= MAX_FIBERS && !running, "fiber_run");
	random_state = seed * 2 + 1;
	switch_inverse = inverse;
	yields = 0;
	nr_contexts = nr;
	main_stack = NULL;
	for (i = 0; i < nr; i++)
		make_fiber(&contexts[i], &fibers[i]);
	running = pick();
	shim_current = &running->task;
	__sanitizer_start_switch_fiber(&main_fake_stack, running->stack,
				       STACK_BYTES);
	swapcontext(&main_uc, &running->uc);
	__sanitizer_finish_switch_fiber(main_fake_stack, NULL, NULL);
	shim_current = task;
	for (i = 0; i < nr; i++)
		free(contexts[i].stack);
	nr_contexts = 0;
}

void shim_block(bool (*ready)(void *arg), void *arg, const char *why)
{
	struct context *to;

	if (ready(arg))
		return;
	SHIM_CHECK(running, "would wait for ever: %s", why);
	running->ready = ready;
	running->arg = arg;
	running->why = why;
	to = pick();
	if (!to)
		deadlock();
	switch_to(to);
}

void shim_backend_yield(void)
{
	struct context *to;

	if (!running)
		return;
	SHIM_CHECK(yields++ < MAX_YIELDS, "livelock");
	if (next_random() % (u64)switch_inverse)
		return;
	to = pick();
	if (to)
		switch_to(to);
}

/* Locks */

struct want {
	struct shim_lock *lock;
	bool shared;
};

static bool available(void *arg)
{
	const struct want *w = arg;

	return !w->lock->owner && (w->shared || !w->lock->readers);
}

void shim_backend_init(struct shim_lock *l)
{
	(void)l;
}

void shim_backend_destroy(struct shim_lock *l)
{
	SHIM_CHECK(!shim_is_locked(l), "'%s' destroyed while held",
		   l->class->name);
}

bool shim_is_locked(struct shim_lock *l)
{
	return l->owner || l->readers;
}

bool shim_backend_try(struct shim_lock *l, bool shared)
{
	struct want w = { l, shared };

	if (!available(&w))
		return false;
	if (shared)
		l->readers++;
	else
		l->owner = shim_current;
	return true;
}

void shim_backend_acquire(struct shim_lock *l, bool shared)
{
	struct want w = { l, shared };

	while (!shim_backend_try(l, shared))
		shim_block(available, &w, l->class->name);
}

void shim_backend_release(struct shim_lock *l, bool shared)
{
	if (shared)
		l->readers--;
	else
		l->owner = NULL;
}

/* Wait queues */

void init_waitqueue_head(struct wait_queue_head *wq)
{
	memset(wq, 0, sizeof(*wq));
}

void shim_wake_up(struct wait_queue_head *wq)
{
	wq->wakeups++;
}

static bool woken(void *arg)
{
	const struct wait_queue_entry *e = arg;

	return e->head->wakeups != e->seen;
}

void shim_backend_sleep(struct wait_queue_entry *e)
{
	shim_block(woken, e, "a wake-up");
}

void shim_check_idle(void)
{
	SHIM_CHECK(!shim_current->nr_held, "a lock is still held");
	SHIM_CHECK(!shim_current->rcu && !shim_current->srcu,
		   "still in a read section");
	rcu_barrier();
}
