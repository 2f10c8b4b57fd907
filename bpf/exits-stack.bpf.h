/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records of tasks in an exit, or that work for one, and their stacks of phases, for
 * teardown.bpf.c: what is kept, and how time gets into it.
 */
#ifndef BRUMM_EXITS_STACK_BPF_H
#define BRUMM_EXITS_STACK_BPF_H

#define IN(NAME)	(1U << HOOK_##NAME)

#include "exits.h"
#include "record.bpf.h"
#include "wanted.bpf.h"

#define TASKS		32768
#define SHARE_ALL	65536

/* Set before loading. */
const volatile bool filtered;
const volatile bool samples;
/* For the check of the hooks: only children of this process count. */
const volatile __u32 self;

/* Nothing is begun before all is attached, or after it was told to stop. */
bool active;
bool checking;
/* Hooks that turned out to be elsewhere, as bits. */
__u32 off;

/* Records: most events of a running machine need no look into the map. */
__u64 records;

/* What makes the figures incomplete. */
__u64 no_room, too_deep;

/* Network namespaces that are to be cleaned up: all, and whose last user we saw. */
__u64 nets, nets_ours;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EXIT_STATS_NR);
	__type(key, u32);
	__type(value, struct exit_stats);
} stats SEC(".maps");

/* Not LRU: who is in it always gets to the end of it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, struct exit_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, struct exit_zombie);
} zombies SEC(".maps");

/* When a process was sent SIGKILL; who survives that, by exec for one, goes by LRU. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, u64);
} killed SEC(".maps");

/* Of a softirq and an RCU callback in it: when it began. */
enum { SINCE_RCU, SINCE_TASK, SINCE_NR };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SINCE_NR);
	__type(key, u32);
	__type(value, u64);
} since SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

static const struct exit_task no_task;

/* Where each hook has to be, of an exit. */
static const u32 within[HOOKS_NR] = {
#define WITHIN(name, NAME, in, functions) [HOOK_##NAME] = in,
	EXIT_HOOKS(WITHIN)
#undef WITHIN
};

static struct exit_stats *stats_of(u32 phase)
{
	return bpf_map_lookup_elem(&stats, &phase);
}

static struct exit_task *task_of(u32 tid)
{
	return bpf_map_lookup_elem(&tasks, &tid);
}

static u32 current_tid(void)
{
	return (u32)bpf_get_current_pid_tgid();
}

static bool is_wanted(u64 cgroup)
{
	return !filtered || bpf_map_lookup_elem(&wanted, &cgroup);
}

static u64 cgroup_of(struct task_struct *p)
{
	return BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
}

/* Does what is done to @p count? */
static bool counts(struct task_struct *p)
{
	if (checking)
		return (u32)(bpf_get_current_pid_tgid() >> 32) == self;
	return is_wanted(cgroup_of(p));
}

/* Results */

static void send(struct exit_stats *st, const struct exit_task *t, u32 phase,
		 u64 end, const struct exit_frame *f)
{
	struct exit_sample *s = bpf_ringbuf_reserve(&ring, sizeof(*s), 0);

	if (!s) {
		add(&st->lost, 1);
		return;
	}
	s->end = end;
	s->cpu = f->cpu;
	s->wait = f->wait;
	s->runq = f->runq;
	s->cgroup = t->cgroup;
	s->tid = current_tid();
	s->tgid = t->tgid;
	s->phase = phase;
	s->where = t->where;
	bpf_ringbuf_submit(s, 0);
}

static u64 share(const struct exit_task *t, u64 ns)
{
	return t->share == SHARE_ALL ? ns : ns * t->share / SHARE_ALL;
}

static __noinline int record(struct exit_task *t, const struct exit_frame *f,
			     u64 now)
{
	u32 phase = f->phase, where = t->where;
	struct exit_stats *st = stats_of(phase);
	struct exit_sums *sums;

	if (!st || where >= WHERES_NR)
		return 0;
	if (where == WHERE_EXIT)
		hist_add(&st->time, f->cpu);
	sums = &st->sums[where];
	add(&sums->n, 1);
	add(&sums->cpu, share(t, f->cpu));
	add(&sums->wait, share(t, f->wait));
	add(&sums->runq, share(t, f->runq));
	add(&sums->kids, f->kids);
	sums->last = now;
	if (samples)
		send(st, t, phase, now, f);
	return 0;
}

/* A time that is not a phase. */
static void record_delay(u32 what, u64 ns)
{
	struct exit_stats *st = stats_of(what);

	if (!st)
		return;
	hist_add(&st->time, ns);
	add(&st->sums[WHERE_EXIT].n, 1);
}

/* The stack */

static struct exit_frame *top(struct exit_task *t)
{
	return &t->frame[t->depth & (EXIT_DEPTH - 1)];
}

static u64 since_mark(const struct exit_task *t, u64 now)
{
	return now > t->mark ? now - t->mark : 0;
}

/* A softirq since @now was read has set the mark already. */
static void account_cpu(struct exit_task *t, u64 now)
{
	if (now <= t->mark)
		return;
	top(t)->cpu += now - t->mark;
	t->mark = now;
}

/*
 * As the last thing of a program: what it took is nobody's. Not what others have
 * taken meanwhile, who have set the mark.
 */
static void go_on(struct exit_task *t)
{
	u64 end = bpf_ktime_get_ns();

	t->probe += since_mark(t, end);
	t->mark = end;
}

static void frame_init(struct exit_frame *f, u32 hook, u32 phase)
{
	f->cpu = 0;
	f->wait = 0;
	f->runq = 0;
	f->hook = hook;
	f->phase = phase;
	f->kids = 0;
}

static bool push(struct exit_task *t, u32 hook, u32 phase)
{
	if (t->depth >= EXIT_DEPTH - 1) {
		add(&too_deep, 1);
		return false;
	}
	/* In this order: a softirq takes the next one. */
	t->depth++;
	frame_init(top(t), hook, phase);
	return true;
}

/* frame[0] stays. */
static void pop(struct exit_task *t, u64 now)
{
	struct exit_frame f = *top(t);

	/* First: what interrupts this is not in what is recorded. */
	if (t->depth) {
		t->depth--;
		top(t)->kids++;
	}
	record(t, &f, now);
}

static void orphan(u32 phase)
{
	struct exit_stats *st = stats_of(phase);

	if (st)
		add(&st->orphans, 1);
}

/* The end of @hook was missed, or its begin. */
static __noinline int pop_to(struct exit_task *t, u32 hook, u64 now)
{
	bool there = false;
	int i;

	for (i = 1; i < EXIT_DEPTH; i++)
		if (i <= t->depth && t->frame[i].hook == hook)
			there = true;
	if (!there)
		return 0;
	for (i = 0; i < EXIT_DEPTH && t->depth; i++) {
		bool is = top(t)->hook == hook;

		if (!is)
			orphan(top(t)->phase);
		pop(t, now);
		if (is)
			break;
	}
	return 0;
}

/* Records */

static struct exit_task *begin(u32 hook, u32 phase, u32 where, u64 cgroup)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = (u32)id;
	struct exit_task *t;

	if (bpf_map_update_elem(&tasks, &tid, &no_task, BPF_NOEXIST)) {
		add(&no_room, 1);
		return NULL;
	}
	t = task_of(tid);
	if (!t)
		return NULL;
	add(&records, 1);
	t->tgid = id >> 32;
	t->where = where;
	t->cgroup = cgroup;
	t->share = SHARE_ALL;
	frame_init(&t->frame[0], hook, phase);
	t->start = bpf_ktime_get_ns();
	t->mark = t->start;
	return t;
}

static void end(u32 tid)
{
	if (!bpf_map_delete_elem(&tasks, &tid))
		__sync_fetch_and_add(&records, -1ULL);
}

#endif /* BRUMM_EXITS_STACK_BPF_H */
