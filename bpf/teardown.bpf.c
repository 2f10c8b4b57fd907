// SPDX-License-Identifier: GPL-2.0
/*
 * Where the time of exits goes: each phase of each exit of the tasks of a cgroup,
 * and what is done for them by others, or later.
 *
 * A task that runs into do_exit() gets a record, with a stack of phases. At each
 * event the time since the last one goes to the phase on top: so the phases are
 * net, and all of them are the whole. A switch to another task divides it further,
 * into time on a CPU, asleep, and ready to run but not running. The record ends
 * with the last switch, from which there is no return. Others get a record for as
 * long as they do something for such a task.
 *
 * Programs may be interrupted by softirqs, whose events are on the same stack, and
 * preempted. What is pushed meanwhile is popped meanwhile; time may then be before
 * the mark, and is taken as none.
 *
 * A program's own time is taken out here: it reads the clock when it begins and
 * when it ends. What is left, getting into the program and out of it, is measured by
 * the empty hook.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "exits-stack.bpf.h"
#include "exits-work.bpf.h"
#include "tracepoint.bpf.h"

#define TASK_DEAD	0x80
#define EXIT_DEAD	0x10
#define RCU_SOFTIRQ	9
#define SIGKILL		9

char LICENSE[] SEC("license") = "GPL";

static void begin_exit(u64 now)
{
	struct task_struct *p = (struct task_struct *)bpf_get_current_task();
	u64 id = bpf_get_current_pid_tgid(), cgroup, *sent;
	u32 tgid = id >> 32;

	if (checking) {
		if (BPF_CORE_READ(p, real_parent, tgid) != self)
			return;
		cgroup = 0;
	} else {
		cgroup = bpf_get_current_cgroup_id();
		if (!is_wanted(cgroup))
			return;
	}
	sent = bpf_map_lookup_elem(&killed, &tgid);
	if (sent)
		record_delay(PHASE_SIGNALLED, now > *sent ? now - *sent : 0);
	begin(HOOK_EXIT, tgid == (u32)id ? PHASE_PROCESS : PHASE_THREAD,
	      WHERE_EXIT, cgroup);
}

/* Dead, and somebody has to reap it. */
static void begin_zombie(u32 tid, u64 now)
{
	struct exit_zombie z = { .died = now };

	bpf_map_update_elem(&zombies, &tid, &z, BPF_ANY);
}

/* @p is reaped; or a thread, for which its dead leader waits, releases itself. */
static void end_zombie(struct task_struct *p, u64 now)
{
	u32 tid = BPF_CORE_READ(p, pid), tgid = BPF_CORE_READ(p, tgid);
	struct exit_zombie *z = bpf_map_lookup_elem(&zombies, &tgid);
	u64 from;

	if (!z)
		return;
	if (tid != tgid) {
		z->last = now;
		return;
	}
	from = z->died;
	if (z->last > from) {
		record_delay(PHASE_SUBTHREADS, z->last - from);
		from = z->last;
	}
	record_delay(PHASE_PARENT, now > from ? now - from : 0);
	bpf_map_delete_elem(&zombies, &tid);
}

static void end_exit(struct exit_task *t, struct task_struct *p, u32 tid, u64 now)
{
	struct exit_frame whole = { 0 };
	struct exit_stats *st;
	int i;

	for (i = 0; i < EXIT_DEPTH && t->depth; i++) {
		if (top(t)->hook != HOOK_SOFTIRQ)
			orphan(top(t)->phase);
		pop(t, now);
	}
	pop(t, now);
	/* By its own reading of the clock, so that the parts can be held against it. */
	whole.cpu = now - t->start;
	whole.wait = t->probe;
	st = stats_of(PHASE_WHOLE);
	if (st) {
		hist_add(&st->time, whole.cpu);
		add(&st->sums[WHERE_EXIT].n, 1);
		add(&st->sums[WHERE_EXIT].cpu, whole.cpu);
		add(&st->sums[WHERE_EXIT].wait, whole.wait);
		st->sums[WHERE_EXIT].last = now;
		if (samples)
			send(st, t, PHASE_WHOLE, now, &whole);
	}
	if (!t->reaped && tid == t->tgid &&
	    !(BPF_CORE_READ(p, exit_state) & EXIT_DEAD))
		begin_zombie(tid, now);
	end(tid);
}

/* RCU: in whatever task a softirq meets */

static u64 *since_of(u32 what)
{
	return bpf_map_lookup_elem(&since, &what);
}

static void record_rcu(u32 what, u32 phase, u32 where)
{
	u64 now = bpf_ktime_get_ns(), *from = since_of(what), ns;
	struct exit_stats *st = stats_of(phase);

	if (!from || !*from || !st)
		return;
	ns = now > *from ? now - *from : 0;
	*from = 0;
	if (where >= WHERES_NR)
		return;
	add(&st->sums[where].n, 1);
	add(&st->sums[where].cpu, ns);
	st->sums[where].last = now;
}

static void begin_rcu(u32 what)
{
	u64 *from = since_of(what);

	if (from)
		*from = bpf_ktime_get_ns();
}

static void begin_task_rcu(u64 head)
{
	struct task_struct *p = around(head, bpf_core_field_offset(struct task_struct, rcu));

	if (!checking && is_wanted(cgroup_of(p)))
		begin_rcu(SINCE_TASK);
}

/* A namespace's last user has gone. */
static void count_net(void)
{
	struct exit_task *t = records ? task_of(current_tid()) : NULL;

	add(&nets, 1);
	if (t && t->where == WHERE_EXIT)
		add(&nets_ours, 1);
}

/* The two ends of a hook */

static bool outside_its_place(const struct exit_task *t, u32 hook)
{
	u32 in = hook < HOOKS_NR ? within[hook] : 0;
	u32 around_it = t->frame[t->depth & (EXIT_DEPTH - 1)].hook;

	/* A softirq may be anywhere. */
	return in && around_it < HOOKS_NR && !(in & (1U << around_it));
}

static __noinline int enter(u32 hook, u64 arg)
{
	struct exit_stats *st;
	struct exit_task *t;
	u64 now;
	u32 phase;

	if ((!records && !(active && may_visit(hook))) || off & (1U << hook))
		return 0;
	now = bpf_ktime_get_ns();
	switch (hook) {
	case HOOK_EXIT:
		if (active)
			begin_exit(now);
		return 0;
	case HOOK_PUT_NET:
		count_net();
		return 0;
	case HOOK_TASK:
		begin_task_rcu(arg);
		return 0;
	}
	t = records ? task_of(current_tid()) : NULL;
	if (hook == HOOK_RELEASE) {
		struct task_struct *p = (struct task_struct *)arg;

		end_zombie(p, now);
		if (t && BPF_CORE_READ(p, pid) == current_tid())
			t->reaped = true;
	}
	if (!t) {
		t = active ? visit(hook, arg) : NULL;
		/* That of a record alone is frame[0]; the empty one has one around it. */
		if (!t || hook != HOOK_EMPTY)
			return 0;
	}
	account_cpu(t, now);
	phase = phase_of(hook, arg);
	if (outside_its_place(t, hook)) {
		st = stats_of(phase);
		if (st)
			add(&st->misplaced, 1);
	}
	push(t, hook, phase);
	go_on(t);
	return 0;
}

static __noinline int leave(u32 hook)
{
	u32 tid = current_tid();
	struct exit_task *t;
	u64 now;

	if (hook == HOOK_TASK) {
		record_rcu(SINCE_TASK, PHASE_TASK, WHERE_DEFERRED);
		return 0;
	}
	if (!records || off & (1U << hook))
		return 0;
	now = bpf_ktime_get_ns();
	t = task_of(tid);
	if (!t)
		return 0;
	account_cpu(t, now);
	if (t->depth && top(t)->hook == hook)
		pop(t, now);
	else if (t->depth)
		pop_to(t, hook, now);
	else if (t->frame[0].hook == hook) {
		pop(t, now);
		end(tid);
		return 0;
	}
	go_on(t);
	return 0;
}

/* Switches, signals and softirqs */

static void switch_out(struct task_struct *prev, bool preempt, u32 state, u64 now)
{
	u32 tid = BPF_CORE_READ(prev, pid);
	struct exit_task *t = task_of(tid);

	if (!t)
		return;
	account_cpu(t, now);
	if (!preempt && state & TASK_DEAD) {
		end_exit(t, prev, tid, now);
		return;
	}
	t->asleep = !preempt && state;
}

static void account_off(struct exit_task *t, u64 now)
{
	if (t->asleep)
		top(t)->wait += since_mark(t, now);
	else
		top(t)->runq += since_mark(t, now);
	t->asleep = false;
	t->mark = now;
}

static __noinline int on_switch(u64 *args)
{
	struct exit_task *t;
	u64 now;

	if (!records)
		return 0;
	now = bpf_ktime_get_ns();
	switch_out((struct task_struct *)args[1], args[0], args[3], now);
	t = task_of(BPF_CORE_READ((struct task_struct *)args[2], pid));
	if (t)
		account_off(t, now);
	return 0;
}

static __noinline int on_wakeup(u64 *args)
{
	struct exit_task *t;

	if (!records)
		return 0;
	t = task_of(BPF_CORE_READ((struct task_struct *)args[0], pid));
	if (t && t->asleep)
		account_off(t, bpf_ktime_get_ns());
	return 0;
}

static __noinline int on_signal(u64 *args)
{
	struct task_struct *p = (struct task_struct *)args[2];
	u64 now;
	u32 tgid;

	if (!active || checking || (u32)args[0] != SIGKILL || !counts(p))
		return 0;
	now = bpf_ktime_get_ns();
	tgid = BPF_CORE_READ(p, tgid);
	bpf_map_update_elem(&killed, &tgid, &now, BPF_NOEXIST);
	return 0;
}

static __noinline int on_softirq_entry(u64 *args)
{
	struct exit_task *t;
	u64 now;

	if (active && !checking && (u32)args[0] == RCU_SOFTIRQ)
		begin_rcu(SINCE_RCU);
	if (!records)
		return 0;
	now = bpf_ktime_get_ns();
	t = task_of(current_tid());
	if (!t)
		return 0;
	account_cpu(t, now);
	push(t, HOOK_SOFTIRQ, PHASE_SOFTIRQ);
	go_on(t);
	return 0;
}

static __noinline int on_softirq_exit(u64 *args)
{
	if ((u32)args[0] == RCU_SOFTIRQ)
		record_rcu(SINCE_RCU, PHASE_RCU, WHERE_MACHINE);
	return leave(HOOK_SOFTIRQ);
}

/* The ways to attach. User space says to which function. */

TRACEPOINT(sched_switch, on_switch)
TRACEPOINT(sched_wakeup, on_wakeup)
TRACEPOINT(signal_generate, on_signal)
TRACEPOINT(softirq_entry, on_softirq_entry)
TRACEPOINT(softirq_exit, on_softirq_exit)

#define HANDLERS(name, NAME, in, functions)				\
SEC("fentry")								\
int enter_##name(u64 *ctx)						\
{									\
	return enter(HOOK_##NAME, ARG_##NAME ? ctx[0] : 0);		\
}									\
SEC("fexit")								\
int leave_##name(u64 *ctx)						\
{									\
	return leave(HOOK_##NAME);					\
}

/* Not every function has an argument, or one that matters. */
#define ARG_EXIT	0
#define ARG_MM		0
#define ARG_VMA		0
#define ARG_ZAP		0
#define ARG_TABLES	0
#define ARG_FLUSH	0
#define ARG_FD		0
#define ARG_WORK	0
#define ARG_FILE	1
#define ARG_NS		0
#define ARG_MOUNTS	0
#define ARG_INIT	0
#define ARG_RELEASE	1
#define ARG_SIGNAL	1
#define ARG_NET		0
#define ARG_ASYNC	1
#define ARG_KILL	1
#define ARG_OFFLINE	1
#define ARG_FREE	1
#define ARG_FPUT	0
#define ARG_MNTPUT	0
#define ARG_IPC		0
#define ARG_TASK	1
#define ARG_PUT_NET	0
#define ARG_EMPTY	0

EXIT_HOOKS(HANDLERS)

/* One for all: the cookie says which hook. */
SEC("kprobe")
int any_enter(struct pt_regs *ctx)
{
	return enter(bpf_get_attach_cookie(ctx), PT_REGS_PARM1(ctx));
}

SEC("kretprobe")
int any_leave(struct pt_regs *ctx)
{
	return leave(bpf_get_attach_cookie(ctx));
}
