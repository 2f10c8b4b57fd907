// SPDX-License-Identifier: GPL-2.0
/*
 * The dying do the clean-up themselves, so that their scheduling decides who has
 * to wait for it: the least weight first, then few at a time. The freezer keeps
 * the others from forking, or from noticing, meanwhile.
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

#include "delay.h"
#include "pacer.h"
#include "place.h"
#include "teardown.h"

#define MS		1000000u
#define FREEZE_WAIT	(1000u * MS)	/* a sleeper in the kernel never freezes */
#define STEP_WAIT	(2000u * MS)	/* nor does it die */
#define NOISE_TIME	(1000u * MS)	/* at most, for so many samples: */
#define NOISE_SAMPLES	100u
#define MAX_AT_ONCE	256u		/* descriptors */
#define BIG		(64u << 20)	/* bytes */

/* Returns whether the cgroup as a whole has the least weight now. */
static bool make_idle(struct teardown *t)
{
	int group = t->target.group;
	uint64_t v;

	if (group < 0)
		return false;
	if (brumm_group_number(group, "cpu.idle", NULL, &v))
		return !keep_knob(t->keep, "cpu.weight", "1");
	/* Who leaves the idle class gets the usual weight. */
	return v || (!keep_knob(t->keep, "cpu.weight", NULL) &&
		     !keep_knob(t->keep, "cpu.idle", "1"));
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

	pthread_setschedparam(pthread_self(), SCHED_IDLE, &param);
	return (void *)(intptr_t)syscall(SYS_process_mrelease,
					 *(const int *)arg, 0);
}

/*
 * Frees a big address space from a thread of the idle class here, which the
 * scheduler may stop after any page, and not in a task that the kernel may be
 * waiting for.
 */
static void release_memory(struct teardown *t, const struct task *task, int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *ret;

	pthread_attr_init(&attr);
	if (t->opts->on_cpus)
		pthread_attr_setaffinity_np(&attr, sizeof(t->opts->cpus),
					    &t->opts->cpus);
	if (!pthread_create(&thread, &attr, release, &fd)) {
		pthread_join(thread, &ret);
		if (!ret)
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

/* Kills from @from on; returns where the next step begins. */
static size_t kill_some(struct teardown *t, struct step *s, size_t from,
			size_t units)
{
	const struct task *task;
	size_t more;
	int fd;

	s->n = 0;
	s->units = 0;
	for (; from < t->tasks.n && s->n < MAX_AT_ONCE; from++) {
		task = &t->tasks.list[from];
		more = pacer_units(task->rss);
		if (s->units && s->units + more > units)
			break;
		fd = task_open(task);
		if (fd < 0)
			continue;
		if (task->pid == t->target.init ||
		    pidfd_send_signal(fd, SIGKILL, NULL, 0)) {
			close(fd);
			continue;
		}
		if (task->rss >= BIG)
			release_memory(t, task, fd);
		s->fds[s->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		s->units += more;
	}
	t->gentle.killed += s->n;
	return from;
}

static void wait_for_step(struct teardown *t, struct step *s)
{
	uint64_t end = cli_now() + STEP_WAIT;
	struct timespec tick = { .tv_nsec = 50 * MS };
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

static void kill_in_steps(struct teardown *t, struct delay *d)
{
	uint64_t began, work, delay, last = cli_now();
	struct gentle *g = &t->gentle;
	struct step step;
	struct pacer p;
	size_t at = 0;

	pacer_init(&p, t->opts->pace, t->opts->slo);
	while (at < t->tasks.n && !teardown_over(t)) {
		began = cli_now();
		work = cpu_time(t);
		at = kill_some(t, &step, at, pacer_next(&p));
		wait_for_step(t, &step);
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
		if (p.rest && at < t->tasks.n)
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

/* Those that came since the list was made; now nobody comes any more. */
static void list_again(struct teardown *t)
{
	struct tasks list = { 0 };

	if (target_tasks(&t->target, &list)) {
		tasks_free(&list);
		return;
	}
	tasks_order(&list);
	tasks_free(&t->tasks);
	t->tasks = list;
}

static void place(struct teardown *t, enum place place)
{
	const cpu_set_t *cpus = t->opts->on_cpus ? &t->opts->cpus : NULL;
	json_t *threads = place_look(&t->tasks, cpus, place);

	keep_threads(t->keep, json_incref(threads));
	place_apply(threads, cpus);
	json_decref(threads);
}

void gentle_place(struct teardown *t)
{
	place(t, PLACE_CPUS);
}

void gentle_kill(struct teardown *t)
{
	struct delay *d = start_probe(t);
	uint64_t samples, over;

	delay_count(d, &samples, &over);
	t->gentle.least_weight = make_idle(t);
	freeze(t);
	list_again(t);
	place(t, t->gentle.least_weight ? PLACE_REALTIME : PLACE_ALL);
	t->start = cli_now();
	kill_in_steps(t, d);
	delay_count(d, &t->gentle.samples, &t->gentle.over);
	t->gentle.samples -= samples;
	t->gentle.over -= over;
	if (d)
		delay_stop(d);
}
