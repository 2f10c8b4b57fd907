// SPDX-License-Identifier: GPL-2.0
/*
 * The same as interleave.c with real threads, for the compiler's race detector
 * and for orders that coroutines cannot have.
 */
#include "actors.h"
#include <tap.h>

#define THREADS		6

struct thread {
	struct actor actor;
	struct shim_task task;
	const char *name;
	void (*fn)(void *arg);
	pthread_t id;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	shim_task_init(&t->task, t->name);
	t->fn(&t->actor);
	return NULL;
}

static void run_threads(u64 seed, unsigned int steps)
{
	static const struct {
		const char *name;
		void (*fn)(void *arg);
	} kinds[THREADS] = {
		{ "owner 0", actor_owner },
		{ "owner 1", actor_owner },
		{ "worker 0", actor_worker },
		{ "worker 1", actor_worker },
		{ "toucher", actor_toucher },
		{ "control", actor_controller },
	};
	static struct thread thread[THREADS];
	struct world_config c;
	unsigned long done[THREADS];
	int i;

	actors_world(&c, 2, 16);
	world_init(&c);
	for (i = 0; i < THREADS; i++) {
		struct thread *t = &thread[i];

		t->actor = (struct actor){ .steps = steps, .quiet = true,
					   .owned = SHARED_WINDOWS + i };
		rnd_seed(&t->actor.rnd, seed + (u64)i);
		t->name = kinds[i].name;
		t->fn = kinds[i].fn;
		SHIM_CHECK(!pthread_create(&t->id, NULL, thread_main, t),
			   "pthread_create");
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i].id, NULL);
		done[i] = thread[i].actor.done;
	}
	tap_diag("done: owners %lu, %lu; workers %lu, %lu; touched %lu; control %lu",
		 done[0], done[1], done[2], done[3], done[4], done[5]);
	actors_check();
	world_exit();
}

static void threads(void)
{
	unsigned int round, rounds = (unsigned int)tap_pick(3, 20);
	u64 seed = tap_seed();

	for (round = 0; round < rounds; round++)
		run_threads(seed + 100 * round, 4000);
}

/*
 * A charge that fits is never refused because of one that does not, and nobody
 * sees more than the limit.
 */
static struct ledger root, top, leaf[2];
static int stop;

static void *charge_too_much(void *arg)
{
	struct ledger_counts c = { .n = { [LEDGER_PT] = 2000 } };
	struct shim_task task;

	shim_task_init(&task, "too much");
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_RET(ledger_try_charge(&leaf[0], &c), -EDQUOT);
		CHECK(ledger_usage(&top) <= 1000);
	}
	return NULL;
}

static void *reprice(void *arg)
{
	struct ledger_prices p = { .ns = { 1, 1, 1 } };
	struct shim_task task;

	shim_task_init(&task, "prices");
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		p.ns[LEDGER_MAP] ^= 8;
		ledger_set_prices(&root, &p, ~0U);
	}
	return NULL;
}

static void exact_charges(void)
{
	struct ledger_prices p = { .ns = { 1, 1, 1 } };
	struct ledger_counts c = { .n = { [LEDGER_PT] = 1000 } };
	unsigned long i;
	pthread_t id[2];

	ledger_init_root(&root, &p);
	ledger_init(&top, &root);
	ledger_init(&leaf[0], &top);
	ledger_init(&leaf[1], &top);
	ledger_set_max(&top, 1000);
	REQUIRE(!pthread_create(&id[0], NULL, charge_too_much, NULL));
	REQUIRE(!pthread_create(&id[1], NULL, reprice, NULL));
	for (i = 0; i < tap_pick(30000, 1000000); i++) {
		CHECK_OK(ledger_try_charge(&leaf[1], &c));
		CHECK_EQ(ledger_usage(&top), 1000);
		ledger_uncharge(&leaf[1], &c);
		STOP_IF_FAILED();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(id[0], NULL);
	pthread_join(id[1], NULL);
	CHECK(ledger_is_zero(&top));
}

static const struct tap_case cases[] = {
	{ "threads at once leave sound structures", threads, 3600 },
	{ "a charge that fits is not refused for one that does not",
	  exact_charges, 3600 },
};

TAP_MAIN(cases)
