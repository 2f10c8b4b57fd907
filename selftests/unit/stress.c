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
	unsigned int round, rounds = (unsigned int)tap_pick(3, 100);
	u64 seed = tap_seed();

	for (round = 0; round < rounds; round++)
		run_threads(seed + 100 * round, 4000);
}

static const struct tap_case cases[] = {
	{ "threads at once leave sound structures", threads, 3600 },
};

TAP_MAIN(cases)
