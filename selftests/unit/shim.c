// SPDX-License-Identifier: GPL-2.0
/*
 * Does the shim notice? Each wrong thing is done in a child, which must end
 * with the message that belongs to it.
 */
#include "world.h"
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

static struct mutex mutex;
static struct rw_semaphore rwsem, rwsem2;
static spinlock_t spin, spin2;
static wait_queue_head_t wq;

static void init_locks(void)
{
	mutex_init(&mutex);
	init_rwsem(&rwsem);
	init_rwsem(&rwsem2);
	spin_lock_init(&spin);
	spin_lock_init(&spin2);
	init_waitqueue_head(&wq);
}

static void must_fail(void (*fn)(void), const char *message)
{
	char text[4096];
	int fd[2], status;
	ssize_t n, got = 0;
	pid_t pid;

	REQUIRE(!pipe(fd));
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		dup2(fd[1], STDOUT_FILENO);
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		shim_fail_without_trace();
		init_locks();
		fn();
		_exit(0);
	}
	close(fd[1]);
	while ((n = read(fd[0], text + got, sizeof(text) - 1 - (size_t)got)) > 0)
		got += n;
	text[got] = '\0';
	close(fd[0]);
	waitpid(pid, &status, 0);
	CHECK(status != 0);
	if (!strstr(text, message))
		tap_fail(__FILE__, __LINE__, "no '%s' in: %.200s", message, text);
}

static void mutex_in_rwsem(void)
{
	down_read(&rwsem);
	mutex_lock(&mutex);
}

static void rwsem_in_spin(void)
{
	spin_lock(&spin);
	down_read(&rwsem);
}

static void two_mutexes(void)
{
	struct mutex m[2];
	int i;

	for (i = 0; i < 2; i++) {
		mutex_init(&m[i]);
		mutex_lock(&m[i]);
	}
}

static void twice(void)
{
	mutex_lock(&mutex);
	mutex_lock(&mutex);
}

static void spins_both_ways(void)
{
	spin_lock(&spin);
	spin_lock(&spin2);
	spin_unlock(&spin2);
	spin_unlock(&spin);
	spin_lock(&spin2);
	spin_lock(&spin);
}

static void not_held(void)
{
	spin_unlock(&spin);
}

static void other_mode(void)
{
	down_read(&rwsem);
	up_write(&rwsem);
}

static void assert_write(void)
{
	down_read(&rwsem);
	lockdep_assert_held_write(&rwsem);
}

static void order(void)
{
	must_fail(mutex_in_rwsem, "taken inside");
	must_fail(rwsem_in_spin, "taken inside");
	must_fail(two_mutexes, "two locks");
	must_fail(twice, "taken twice");
	must_fail(spins_both_ways, "the other way round");
	must_fail(not_held, "but not held");
	must_fail(other_mode, "in the other mode");
	must_fail(assert_write, "is not held");
}

static void alloc_in_mutex(void)
{
	mutex_lock(&mutex);
	kfree(kmalloc(1, GFP_KERNEL));
}

static void zap_in_rwsem(void)
{
	down_write(&rwsem);
	shim_no_locks("mapdb_zap");
}

static void resched_in_spin(void)
{
	spin_lock(&spin);
	cond_resched();
}

static void mutex_in_rcu(void)
{
	rcu_read_lock();
	mutex_lock(&mutex);
}

static bool takes_mutex(void)
{
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	return true;
}

static void lock_in_condition(void)
{
	wait_event(wq, takes_mutex());
}

static void nofail_atomic(void)
{
	kfree(kmalloc(1, GFP_ATOMIC | __GFP_NOFAIL));
}

static void sleeping(void)
{
	must_fail(alloc_in_mutex, "allocation with");
	must_fail(zap_in_rwsem, "mapdb_zap with");
	must_fail(resched_in_spin, "under spinlock");
	must_fail(mutex_in_rcu, "RCU read section");
	must_fail(lock_in_condition, "in the condition of a wait_event");
	must_fail(nofail_atomic, "where sleeping is not allowed");
}

static void wait_for_nothing(void)
{
	wait_event(wq, false);
}

static void sync_in_reader(void)
{
	struct srcu_struct s = SHIM_SRCU_INIT;

	srcu_read_lock(&s);
	synchronize_srcu(&s);
}

static void lock_and_wait(void *arg)
{
	(void)arg;
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	wait_event(wq, false);
}

static void all_wait(void)
{
	const struct fiber f[] = {
		{ "one", lock_and_wait, NULL },
		{ "two", lock_and_wait, NULL },
	};

	fiber_run(f, 2, 1, 2);
}

static void waiting(void)
{
	must_fail(wait_for_nothing, "would wait for ever");
	must_fail(sync_in_reader, "in a read section");
	must_fail(all_wait, "deadlock");
}

static void double_free(void)
{
	void *p = kmalloc(8, GFP_KERNEL);

	kfree(p);
	kfree(p);
}

static void wrong_free(void)
{
	kfree(kvmalloc(8, GFP_KERNEL));
}

static void cache_left(void)
{
	struct kmem_cache *c = kmem_cache_create("x", 8, 8, 0, NULL);

	if (kmem_cache_alloc(c, GFP_KERNEL))
		kmem_cache_destroy(c);
}

static void ref_from_zero(void)
{
	refcount_t r = REFCOUNT_INIT(0);

	refcount_inc(&r);
}

static void corrupt_list(void)
{
	struct list_head head = LIST_HEAD_INIT(head), item;

	list_add(&item, &head);
	list_del(&item);
	list_del(&item);
}

static void warn(void)
{
	WARN_ON_ONCE(1 + 1 == 2);
}

static void memory(void)
{
	must_fail(double_free, "AddressSanitizer");
	must_fail(wrong_free, "by the wrong function");
	must_fail(cache_left, "has 1 objects left");
	must_fail(ref_from_zero, "use after free");
	must_fail(corrupt_list, "list");
	must_fail(warn, "WARN_ON");
}

static void failing(void)
{
	void *p[3];
	int i;

	shim_alloc_fail_at(2);
	for (i = 0; i < 3; i++)
		p[i] = kmalloc(8, GFP_KERNEL);
	CHECK(p[0] && !p[1] && p[2]);
	CHECK(shim_alloc_fail_at(1));
	CHECK((p[1] = kmalloc(8, GFP_KERNEL | __GFP_NOFAIL)) != NULL);
	CHECK(!shim_alloc_fail_at(0));
	CHECK_EQ(shim_alloc_live(), 3);
	for (i = 0; i < 3; i++)
		kfree(p[i]);
	CHECK_EQ(shim_alloc_live(), 0);
}

/* Coroutines: each order of two critical sections occurs, none overlaps. */
static int inside, entered;

static void enter(void *arg)
{
	mutex_lock(&mutex);
	CHECK_EQ(inside++, 0);
	shim_preempt();
	if (!entered++)
		*(int *)arg = 1;
	inside--;
	mutex_unlock(&mutex);
}

static void fibers(void)
{
	int first[2], wins[2] = { 0, 0 }, seed, i;

	init_locks();
	for (seed = 0; seed < 100; seed++) {
		const struct fiber f[] = {
			{ "one", enter, &first[0] },
			{ "two", enter, &first[1] },
		};

		entered = 0;
		memset(first, 0, sizeof(first));
		fiber_run(f, 2, (u64)seed, 2);
		for (i = 0; i < 2; i++)
			wins[i] += first[i];
	}
	tap_diag("who was first: %d, %d", wins[0], wins[1]);
	CHECK(wins[0] > 10 && wins[1] > 10);
}

static int by_value(const void *x, const void *y)
{
	return *(const int *)x - *(const int *)y;
}

static void sorting(void)
{
	struct rnd r;
	int v[40], i, n;

	rnd_seed(&r, 1);
	for (n = 0; n < 40; n++) {
		for (i = 0; i < n; i++)
			v[i] = (int)rnd(&r, 20);
		sort(v, (size_t)n, sizeof(v[0]), by_value, NULL);
		for (i = 1; i < n; i++)
			CHECK(v[i - 1] <= v[i]);
	}
}

static const struct tap_case cases[] = {
	{ "lock order is checked", order },
	{ "sleeping where that is forbidden", sleeping },
	{ "waiting for what never comes", waiting },
	{ "memory, references, lists and warnings", memory },
	{ "allocations fail when they are told to", failing },
	{ "coroutines meet in every order", fibers },
	{ "sorting", sorting },
};

TAP_MAIN(cases)
