// SPDX-License-Identifier: GPL-2.0
/*
 * Single Frame on several CPUs at once. Independent: processes, each with a
 * frame and a window of its own. Shared: threads of one process on one frame
 * and one window. n mappings are split among them; they start together, and
 * each works on a CPU of its own.
 *
 * How many CPUs there really are is measured beside it, since a virtual one, or
 * one with other work, may be less: right before they map and right after they
 * have, all take the same number of turns in a loop that touches nothing, and the
 * time of that is a part of the result. On CPUs of their own it does not depend on
 * how many of them do so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SPIN_TURNS	10000000u

struct worker {
	uint64_t start, mapped, unmap, end;
	uint64_t spin;
	int err;
};

/* In memory that processes share. */
struct team {
	pthread_barrier_t barrier;
	unsigned int nr;
	struct worker workers[];
};

static struct team *team_new(unsigned int nr)
{
	size_t size = sizeof(struct team) + nr * sizeof(struct worker);
	pthread_barrierattr_t attr;
	struct team *t = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	t->nr = nr;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&t->barrier, &attr, nr);
	pthread_barrierattr_destroy(&attr);
	return t;
}

static void team_free(struct team *t)
{
	munmap(t, sizeof(*t) + t->nr * sizeof(struct worker));
}

/* What the CPU is worth, together with those of the others. */
static void spin(struct team *t, struct worker *w)
{
	volatile unsigned int turns = SPIN_TURNS;
	uint64_t start;

	pthread_barrier_wait(&t->barrier);
	start = cli_now();
	while (turns)
		turns--;
	w->spin += cli_now() - start;
}

/* Mappings @from.. of the shape, then all wait for each other. */
static void map_part(struct team *t, struct worker *w, struct shape *s,
		     uint64_t from, uint64_t to)
{
	spin(t, w);
	pthread_barrier_wait(&t->barrier);
	w->start = cli_now();
	for (; from < to && !w->err; from++)
		w->err = shape_map(s, from);
	w->mapped = cli_now();
	spin(t, w);
	pthread_barrier_wait(&t->barrier);
	w->unmap = w->end = cli_now();
}

static void take_back(struct worker *w, struct shape *s)
{
	struct shape_took took;

	if (!w->err)
		w->err = shape_reclaim(s, SHAPE_BY_UNMAP, -1, &took);
	w->end = cli_now();
}

static int put_times(const struct bench_env *env, const struct team *t,
		     const struct bench_task *task,
		     const struct shape_counts *c, json_t *r)
{
	uint64_t start = UINT64_MAX, mapped = 0, unmap = UINT64_MAX, end = 0;
	uint64_t spun = 0;
	unsigned int i;
	int err = 0;

	for (i = 0; i < t->nr; i++) {
		const struct worker *w = &t->workers[i];

		err = err ? err : w->err;
		start = w->start < start ? w->start : start;
		mapped = w->mapped > mapped ? w->mapped : mapped;
		unmap = w->unmap < unmap ? w->unmap : unmap;
		end = w->end > end ? w->end : end;
		spun = w->spin > spun ? w->spin : spun;
	}
	if (err)
		return err;
	if (bench_put(r, "spin_ns", spun) ||
	    bench_put(r, "prepare_ns", mapped - start) ||
	    bench_put(r, "reclaim_ns", end - unmap) ||
	    bench_put(r, "total_ns", mapped - start + end - unmap) ||
	    bench_put(r, "map_calls", task->size) ||
	    bench_put(r, "user_bytes", c->lookup * BENCH_PAGE) ||
	    bench_put_nodes(env, r, task->size + c->lookup) ||
	    bench_put(r, "pages", c->pt) ||
	    json_object_set_new(r, "by", json_string("unmap")))
		return -ENOMEM;
	/* Serial work: what it takes if they do not disturb each other. */
	return bench_put_prediction(env, r, c, c->lookup);
}

static uint64_t share(uint64_t n, unsigned int i, unsigned int nr)
{
	return n * i / nr;
}

static int make_part(struct shape **s, uint64_t n)
{
	int err = shape_plan(&(struct shape_spec){
		.kind = SHAPE_SINGLE_FRAME, .n = n }, s);

	if (!err)
		err = shape_open(*s);
	return err ? err : shape_base(*s);
}

/* The parent waits for all, so a child must not stop at a barrier alone. */
static void independent_child(const struct bench_env *env, struct team *t,
			      unsigned int i, uint64_t size, bool fifo)
{
	struct worker *w = &t->workers[i];
	uint64_t n = share(size, i + 1, t->nr) - share(size, i, t->nr);
	struct shape *s = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_pin(env->cpus[i]);
	w->err = fifo ? bench_fifo() : 0;
	if (!w->err)
		w->err = make_part(&s, n);
	map_part(t, w, s, 0, n);
	take_back(w, s);
	_exit(0);
}

/* Waits for all. If one dies, the others would wait for it at the barrier. */
static int reap(const pid_t *pids, unsigned int nr)
{
	unsigned int i, left = nr;
	int status, err = 0;

	while (left) {
		pid_t pid = waitpid(-1, &status, 0);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return -errno;
		left--;
		if (err || (WIFEXITED(status) && !WEXITSTATUS(status)))
			continue;
		err = -ECHILD;
		for (i = 0; i < nr; i++)
			if (pids[i] != pid)
				kill(pids[i], SIGKILL);
	}
	return err;
}

BENCH_RUN(run_independent)
{
	struct shape_counts c = { task->cpus, task->size, task->size, 0 };
	struct team *t = team_new(task->cpus);
	pid_t *pids = calloc(task->cpus, sizeof(*pids));
	unsigned int i, k;
	int err = t && pids ? 0 : -ENOMEM;

	if (!err && task->size < task->cpus)
		err = -EINVAL;
	for (i = 0; i < task->cpus && !err; i++) {
		pids[i] = fork();
		if (!pids[i])
			independent_child(env, t, i, task->size, plan->fifo);
		if (pids[i] < 0)
			err = -errno;
	}
	if (t && pids && err)
		for (k = 0; k + 1 < i; k++)
			kill(pids[k], SIGKILL);
	if (t && pids && i) {
		int ended = reap(pids, err ? i - 1 : i);

		err = err ? err : ended;
	}
	if (!err)
		err = put_times(env, t, task, &c, result);
	free(pids);
	if (t)
		team_free(t);
	return err;
}

struct thread {
	pthread_t id;
	struct team *team;
	struct shape *shape;
	unsigned int cpu;
	unsigned int nr;
	bool fifo;
	uint64_t from, to;
};

static void *shared_thread(void *arg)
{
	struct thread *th = arg;
	struct worker *w = &th->team->workers[th->nr];

	bench_pin(th->cpu);
	w->err = th->fifo ? bench_fifo() : 0;
	map_part(th->team, w, th->shape, th->from, th->to);
	if (!th->nr)
		take_back(w, th->shape);
	return NULL;
}

static int run_threads(const struct bench_env *env, struct team *t,
		       struct shape *s, uint64_t size, bool fifo)
{
	struct thread *threads = calloc(t->nr, sizeof(*threads));
	unsigned int i;
	int err = 0;

	if (!threads)
		return -ENOMEM;
	for (i = 0; i < t->nr; i++) {
		threads[i] = (struct thread){
			.team = t, .shape = s, .cpu = env->cpus[i], .nr = i,
			.fifo = fifo,
			.from = share(size, i, t->nr),
			.to = share(size, i + 1, t->nr),
		};
		err = pthread_create(&threads[i].id, NULL, shared_thread,
				     &threads[i]);
		if (!err)
			continue;
		/* The others wait at the barrier for ever. */
		cli_fail(err, "cannot start a thread");
		_exit(EXIT_ERROR);
	}
	for (i = 0; i < t->nr; i++)
		pthread_join(threads[i].id, NULL);
	free(threads);
	return 0;
}

BENCH_RUN(run_shared)
{
	struct shape_counts c = { 1, task->size, task->size, 0 };
	struct team *t = team_new(task->cpus);
	struct shape *s = NULL;
	int err = t ? make_part(&s, task->size) : -ENOMEM;

	if (!err)
		err = run_threads(env, t, s, task->size, plan->fifo);
	if (!err)
		err = put_times(env, t, task, &c, result);
	shape_free(s);
	if (t)
		team_free(t);
	return err;
}
