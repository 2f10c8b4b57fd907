// SPDX-License-Identifier: GPL-2.0
/*
 * The dying do the clean-up themselves, so that their scheduling decides who has
 * to wait for it: the least weight first, then few at a time. What the kernel does
 * for many of them in one go is kept out of it, as far as it can be: see
 * Documentation/design/teardown.md.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aside.h"
#include "delay.h"
#include "pacer.h"
#include "place.h"
#include "teardown.h"

#define MS		1000000u
#define FREEZE_WAIT	(1000u * MS)	/* a sleeper in the kernel never freezes */
#define STEP_WAIT	(2000u * MS)	/* nor does it die */
#define BUSY_WAIT	(50u * MS)
#define NOISE_TIME	(1000u * MS)	/* at most, for so many samples: */
#define NOISE_SAMPLES	100u
#define MAX_AT_ONCE	256u		/* descriptors */
#define MAX_ROUNDS	3
#define BIG		(64u << 20)	/* bytes */

/* Returns whether the cgroup as a whole has the least weight now. */
static bool make_idle(struct teardown *t)
{
	int group = t->target.group;
	uint64_t v;

	if (group < 0)
		return false;
	if (!brumm_group_number(group, "cpu.idle", NULL, &v)) {
		/* Who leaves the idle class gets the usual weight. */
		if (v || (!keep_knob(t->keep, "cpu.weight", NULL) &&
			  !keep_knob(t->keep, "cpu.idle", "1")))
			return true;
	}
	return !keep_knob(t->keep, "cpu.weight", "1");
}

static void freeze(struct teardown *t)
{
	uint64_t v, end = cli_now() + FREEZE_WAIT;
	int group = t->target.group, fd;
	char c;

	if (group < 0 || brumm_group_number(group, "cgroup.freeze", NULL, &v) ||
	    v || keep_knob(t->keep, "cgroup.freeze", "1"))
		return;
	t->gentle.frozen = true;
	fd = openat(group, "cgroup.events", O_RDONLY | O_CLOEXEC);
	while (pread(fd, &c, 1, 0),
	       !brumm_group_number(group, "cgroup.events", "frozen", &v) && !v) {
		if (cli_now() > end || teardown_over(t))
			break;
		teardown_wait(t, fd, POLLPRI, 50 * MS);
	}
	close(fd);
}

/*
 * Nobody comes any more but who is being forked right now. The freezer does that,
 * too, but signals all of them in one go, at which the neighbours wait.
 */
static void stop_forks(struct teardown *t)
{
	t->gentle.no_forks = !keep_knob(t->keep, "pids.max", "0");
	if (!t->gentle.no_forks)
		freeze(t);
}

/* CPU time of the group, ns. */
static uint64_t cpu_time(const struct teardown *t)
{
	uint64_t v;

	if (t->target.group < 0 ||
	    brumm_group_number(t->target.group, "cpu.stat", "usage_usec", &v))
		return BRUMM_NO_LIMIT;
	return v * 1000;
}

static void *release(void *arg)
{
	struct sched_param param = { 0 };
	int fd = (int)(intptr_t)arg;
	long ret;

	pthread_setschedparam(pthread_self(), SCHED_IDLE, &param);
	ret = syscall(SYS_process_mrelease, fd, 0);
	close(fd);
	return (void *)ret;
}

/* Not beyond the time of a step, nor what teardown_over() says. */
static bool join(struct teardown *t, pthread_t thread, void **ret)
{
	uint64_t end = cli_now() + STEP_WAIT, next;
	struct timespec at;

	do {
		next = cli_now() + BUSY_WAIT;
		at.tv_sec = (time_t)(next / 1000000000u);
		at.tv_nsec = (long)(next % 1000000000u);
		if (!pthread_clockjoin_np(thread, ret, CLOCK_MONOTONIC, &at))
			return true;
	} while (cli_now() < end && !teardown_over(t));
	return false;
}

/*
 * Frees a big address space from a thread of the idle class here, which the
 * scheduler may stop after any page, and not in a task that the kernel may be
 * waiting for. The lock of that memory may be held for as long as somebody likes
 * who is to be killed later (a file system of his own): then the thread is left to
 * itself, and no other is started.
 */
static void release_memory(struct teardown *t, const struct task *task, int fd)
{
	int own = t->gentle.held ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	pthread_attr_t attr;
	pthread_t thread;
	void *ret;

	if (own < 0)
		return;
	pthread_attr_init(&attr);
	if (t->opts->on_cpus)
		pthread_attr_setaffinity_np(&attr, sizeof(t->opts->cpus),
					    &t->opts->cpus);
	if (pthread_create(&thread, &attr, release, (void *)(intptr_t)own)) {
		close(own);
	} else if (!join(t, thread, &ret)) {
		pthread_detach(thread);
		t->gentle.held = true;
	} else if (!ret) {
		t->gentle.released += task->rss;
	}
	pthread_attr_destroy(&attr);
}

/* A step's processes and their pidfds. */
struct step {
	struct pollfd fds[MAX_AT_ONCE];
	nfds_t n;
	size_t units;
};

/* Opens and kills; false: it is gone. */
static bool kill_one(struct teardown *t, struct step *s, const struct task *task)
{
	int fd = task_open(task);

	if (fd < 0)
		return false;
	if (task->pid == t->target.init ||
	    pidfd_send_signal(fd, SIGKILL, NULL, 0)) {
		close(fd);
		return false;
	}
	if (task->rss >= BIG)
		release_memory(t, task, fd);
	s->fds[s->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return true;
}

/* Children that are dead and that @init, who is to die, has not waited for. */
static size_t count_zombies(const struct tasks *list, const struct task *init)
{
	struct task now;
	size_t i, n = 0;

	for (i = 0; i < list->n; i++)
		if (!task_read(list->list[i].pid, &now) && now.state == 'Z' &&
		    now.born == list->list[i].born && now.ppid == init->pid)
			n++;
	return n;
}

/*
 * Kills from @from on; returns where the next step begins. An init goes alone: with
 * it the kernel kills, and waits for, all that its namespace still has.
 */
static size_t kill_some(struct teardown *t, const struct tasks *list,
			struct step *s, size_t from, size_t units)
{
	const struct task *task;
	size_t more;

	s->n = 0;
	s->units = 0;
	while (from < list->n && s->n < MAX_AT_ONCE) {
		task = &list->list[from];
		more = pacer_units(task->rss);
		if (s->n && (task->init || s->units + more > units))
			break;
		from++;
		if (task->init)
			t->gentle.zombies += count_zombies(list, task);
		if (kill_one(t, s, task))
			s->units += more;
		if (task->init)
			break;
	}
	t->gentle.killed += s->n;
	return from;
}

/*
 * Those that are left take the CPU that the dying need, who are no better than
 * they: then the freezer's burst is the lesser evil.
 */
static void freeze_if_busy(struct teardown *t, uint64_t began, uint64_t cpu)
{
	uint64_t now = cpu_time(t), wall = cli_now() - began;

	if (!t->gentle.frozen && cpu != BRUMM_NO_LIMIT && now != BRUMM_NO_LIMIT &&
	    wall > BUSY_WAIT && now - cpu > wall / 2)
		freeze(t);
}

static void wait_for_step(struct teardown *t, struct step *s, uint64_t began,
			  uint64_t cpu)
{
	uint64_t end = cli_now() + STEP_WAIT;
	struct timespec tick = { .tv_nsec = BUSY_WAIT };
	nfds_t i, left = s->n;

	while (left && cli_now() < end && !teardown_over(t)) {
		ppoll(s->fds, s->n, &tick, NULL);
		for (i = 0; i < s->n; i++) {
			if (s->fds[i].fd < 0 || !s->fds[i].revents)
				continue;
			close(s->fds[i].fd);
			s->fds[i].fd = -1;
			left--;
		}
		if (left)
			freeze_if_busy(t, began, cpu);
	}
	for (i = 0; i < s->n; i++)
		if (s->fds[i].fd >= 0)
			close(s->fds[i].fd);
}

static void note_delay(struct teardown *t, uint64_t delay)
{
	if (t->gentle.worst == BRUMM_NO_LIMIT || delay > t->gentle.worst)
		t->gentle.worst = delay;
}

static void progress(const struct teardown *t, uint64_t *last)
{
	if (t->opts->json || !cli_fancy(stderr) || cli_now() - *last < 500 * MS)
		return;
	*last = cli_now();
	fprintf(stderr, "\r\033[K%zu of %zu processes killed",
		t->gentle.killed, t->tasks.n);
}

static void kill_in_steps(struct teardown *t, const struct tasks *list,
			  struct delay *d)
{
	uint64_t began, work, delay, last = cli_now();
	struct gentle *g = &t->gentle;
	struct step step;
	struct pacer p;
	size_t at = 0;

	pacer_init(&p, t->opts->pace, t->opts->slo);
	while (at < list->n && !teardown_over(t)) {
		began = cli_now();
		work = cpu_time(t);
		at = kill_some(t, list, &step, at, pacer_next(&p));
		wait_for_step(t, &step, began, work);
		/* A delay is known when the delayed one has run. */
		if (d)
			teardown_wait(t, -1, 0, MS);
		delay = d ? delay_take(d) : 0;
		work = work == BRUMM_NO_LIMIT ? cli_now() - began :
		       cpu_time(t) - work;
		pacer_done(&p, step.units, work, cli_now() - began, delay);
		if (d)
			note_delay(t, delay);
		g->steps += step.n != 0;
		if (step.n > g->largest)
			g->largest = step.n;
		progress(t, &last);
		if (p.rest && at < list->n)
			teardown_wait(t, -1, 0, p.rest);
	}
	if (!t->opts->json && cli_fancy(stderr))
		fputs("\r\033[K", stderr);
}

/* The CPUs of the neighbours: those that the dying are kept off, or all. */
static void neighbours(const struct teardown *t, cpu_set_t *set)
{
	cpu_set_t all;
	int cpu;

	CPU_ZERO(&all);
	sched_getaffinity(0, sizeof(all), &all);
	*set = all;
	for (cpu = 0; t->opts->on_cpus && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &t->opts->cpus))
			CPU_CLR(cpu, set);
	if (!CPU_COUNT(set))
		*set = all;
}

static struct delay *start_probe(struct teardown *t)
{
	uint64_t samples, over, end;
	struct delay *d;
	cpu_set_t set;

	if (!t->opts->slo)
		return NULL;
	neighbours(t, &set);
	d = delay_start(&set, t->opts->slo);
	if (!d)
		return NULL;
	end = cli_now() + NOISE_TIME;
	do {
		teardown_wait(t, -1, 0, 20 * MS);
		delay_count(d, &samples, &over);
	} while (samples < NOISE_SAMPLES && cli_now() < end &&
		 !teardown_over(t));
	if (samples)
		t->gentle.noise = delay_take(d);
	return d;
}

/* Those that have come since @known was listed, or with NULL all. */
static bool list_tasks(struct teardown *t, const struct tasks *known, struct tasks *list)
{
	*list = (struct tasks){ 0 };
	if (target_tasks(&t->target, list)) {
		tasks_free(list);
		return false;
	}
	if (known)
		tasks_subtract(list, known);
	tasks_find_inits(list);
	tasks_order(list);
	return true;
}

static void place(struct teardown *t, const struct tasks *tasks, enum place place)
{
	const cpu_set_t *cpus = t->opts->on_cpus ? &t->opts->cpus : NULL;
	json_t *threads = place_look(tasks, cpus, place);

	keep_threads(t->keep, json_incref(threads));
	place_apply(threads, cpus);
	json_decref(threads);
}

void gentle_begin(struct teardown *t)
{
	if (!t->aside && (t->opts->pace || t->opts->slo))
		t->aside = aside_begin();
}

void gentle_end(struct teardown *t)
{
	t->gentle.starved = aside_starved(t->aside);
	aside_end(t->aside);
	t->aside = NULL;
}

void gentle_place(struct teardown *t)
{
	place(t, &t->tasks, PLACE_CPUS);
}

void gentle_kill(struct teardown *t)
{
	struct delay *d = start_probe(t);
	uint64_t samples, over;
	struct tasks list;
	enum place class;
	int round;

	delay_count(d, &samples, &over);
	t->gentle.least_weight = make_idle(t);
	class = t->gentle.least_weight ? PLACE_REALTIME : PLACE_ALL;
	gentle_begin(t);
	aside_again(t->aside);
	stop_forks(t);
	if (list_tasks(t, NULL, &list)) {
		tasks_free(&t->tasks);
		t->tasks = list;
	}
	place(t, &t->tasks, class);
	t->start = cli_now();
	kill_in_steps(t, &t->tasks, d);
	/* Whose fork had gone too far to be refused. */
	for (round = 0; round < MAX_ROUNDS && !teardown_over(t) &&
	     list_tasks(t, &t->tasks, &list) && list.n; round++) {
		place(t, &list, class);
		kill_in_steps(t, &list, d);
		tasks_append(&t->tasks, &list);
	}
	delay_count(d, &t->gentle.samples, &t->gentle.over);
	t->gentle.samples -= samples;
	t->gentle.over -= over;
	if (d)
		delay_stop(d);
}
