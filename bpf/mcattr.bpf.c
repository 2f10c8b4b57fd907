// SPDX-License-Identifier: GPL-2.0
/*
 * What happens on the CPUs of memcached, event by event, for brumm mc load --attribute.
 *
 * A thread is a server's once it has read from a socket with one of the ports that
 * user space named; a CPU is watched once such a thread ran on it. From then on each
 * slice of time, interrupt, softirq and wait is one record, sent when it ends, with
 * both of its times: user space need not pair anything. All tell their own times, net
 * of nothing; what is within what is for user space to work out.
 *
 * A record that finds no room is counted, and the time from then to the next one that
 * does is sent as lost.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "mcattr.h"
#include "record.bpf.h"
#include "tracepoint.bpf.h"

#define THREADS		4096
#define PORTS		1024
#define TASKS		16384

#define TASK_DEAD	0x80
#define TASK_STOPPED	(0x4 | 0x8)
#define PF_EXITING	0x4
#define SIGNAL_GROUP_EXIT	0x4
#define CLOCK_MONOTONIC	1
#define TLB_REMOTE_SHOOTDOWN	1

char LICENSE[] SEC("license") = "GPL";

/* Set before loading: address of the tick's handler; 0: it tells nothing here. */
const volatile __u64 tick;
/* How much too late a tick is worth telling, ns. */
const volatile __u64 tick_late = 50000;

/* Threads are found out about; and records sent. */
bool active, recording;

/* Threads of servers that found no room. */
__u64 no_room;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS);
	__type(key, u16);
	__type(value, u8);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS);
	__type(key, u32);
	__type(value, struct attr_thread);
} threads SEC(".maps");

/* Operations of the module under way, anybody's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, struct attr_operation);
} operations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct attr_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

static struct attr_cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static u32 current_tid(void)
{
	return (u32)bpf_get_current_pid_tgid();
}

static struct attr_thread *thread_of(u32 tid)
{
	return tid ? bpf_map_lookup_elem(&threads, &tid) : NULL;
}

static struct attr_thread *current_thread(void)
{
	return recording ? thread_of(current_tid()) : NULL;
}

/* Sending */

static void fill(struct attr_record *r, u32 type, u64 start, u64 end, u32 tid, u64 what)
{
	r->start = start;
	r->end = end;
	r->tid = tid;
	r->cpu = bpf_get_smp_processor_id();
	r->type = type;
	r->flags = 0;
	r->what = what;
}

static void lose(struct attr_cpu *c, u64 start)
{
	add(&c->losses, 1);
	if (!c->lost || start < c->lost)
		c->lost = start;
}

/*
 * Room for a record. The ring's own lock must not be told of, while it is taken: that
 * would take it again.
 */
static __always_inline void *reserve(struct attr_cpu *c, const u64 size)
{
	void *room;

	add(&c->busy, 1);
	room = bpf_ringbuf_reserve(&ring, size, 0);
	add(&c->busy, -1ULL);
	return room;
}

/* Tells of what was lost before, until now, if there is room again. */
static bool has_room(struct attr_cpu *c)
{
	struct attr_record *r;

	if (!c->lost)
		return true;
	r = reserve(c, sizeof(*r));
	if (!r)
		return false;
	fill(r, ATTR_LOST, c->lost, bpf_ktime_get_ns(), 0, 0);
	c->lost = 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

static __noinline int send(u32 type, u64 start, u64 end, u32 tid, u64 what)
{
	struct attr_cpu *c = this_cpu();
	struct attr_record *r = NULL;

	if (!c)
		return 0;
	c->seen = end;
	if (has_room(c))
		r = reserve(c, sizeof(*r));
	if (!r) {
		lose(c, start);
		return 0;
	}
	fill(r, type, start, end, tid, what);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static void send_point(u32 type, u32 tid, u64 what)
{
	u64 now = bpf_ktime_get_ns();

	send(type, now, now, tid, what);
}

/* Slices */

static bool is_exiting(struct task_struct *p)
{
	return BPF_CORE_READ(p, flags) & PF_EXITING ||
	       BPF_CORE_READ(p, signal, flags) & SIGNAL_GROUP_EXIT;
}

static u8 state_of(bool preempt, u32 state)
{
	if (preempt || !state)
		return ATTR_RUNNABLE;
	if (state & TASK_DEAD)
		return ATTR_DEAD;
	return state & TASK_STOPPED ? ATTR_STOPPED : ATTR_SLEEPS;
}

static void send_slice(struct attr_cpu *c, struct task_struct *p, u8 flags, u64 now)
{
	struct attr_slice *s = NULL;

	if (has_room(c))
		s = reserve(c, sizeof(*s));
	if (!s) {
		lose(c, c->since);
		return;
	}
	fill(&s->r, ATTR_SLICE, c->since, now, c->tid,
	     BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id));
	s->r.flags = flags;
	s->exits = c->exits;
	s->tgid = BPF_CORE_READ(p, tgid);
	s->pad = 0;
	BPF_CORE_READ_STR_INTO(&s->comm, p, comm);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
}

static __noinline int on_switch(u64 *args)
{
	struct task_struct *prev = (struct task_struct *)args[1];
	struct task_struct *next = (struct task_struct *)args[2];
	u32 out = BPF_CORE_READ(prev, pid), in = BPF_CORE_READ(next, pid);
	struct attr_cpu *c = this_cpu();
	bool server;
	u64 now;

	if (!active || !c)
		return 0;
	now = bpf_ktime_get_ns();
	server = thread_of(out);
	if (server || thread_of(in))
		c->watched = true;
	if (recording && c->watched && out && c->tid == out && c->since)
		send_slice(c, prev, state_of(args[0], args[3]) |
			   (server ? ATTR_SERVER : 0), now);
	c->seen = now;
	c->since = now;
	c->tid = in;
	c->exits = c->watched && in && is_exiting(next) ? now : 0;
	return 0;
}

/* Who is running begins to exit, or is at it. */
static __noinline int on_exit(void)
{
	struct attr_cpu *c = this_cpu();

	if (recording && c && c->watched && !c->exits)
		c->exits = bpf_ktime_get_ns();
	return 0;
}

static __noinline int on_process_exit(u64 *args)
{
	return on_exit();
}

static __noinline int on_waking(u64 *args)
{
	u32 tid = BPF_CORE_READ((struct task_struct *)args[0], pid);

	if (recording && thread_of(tid))
		send_point(ATTR_WAKE, tid, current_tid());
	return 0;
}

/* Interrupts */

static int irq_begin(u32 type)
{
	struct attr_cpu *c = this_cpu();

	if (!recording || !c || !c->watched)
		return 0;
	c->irq_type = type;
	c->flushed = false;
	c->ticked = false;
	c->irqs = 1;
	c->irq = bpf_ktime_get_ns();
	return 0;
}

static int irq_end(void)
{
	struct attr_cpu *c = this_cpu();
	u64 since;

	if (!recording || !c || !c->watched)
		return 0;
	since = c->irq;
	c->irq = 0;
	if (since)
		send(c->flushed ? ATTR_TLB : c->irq_type, since,
		     bpf_ktime_get_ns(), c->tid, 0);
	else if (c->irqs)
		add(&c->orphans, 1);
	return 0;
}

static __noinline int on_irq_entry(u64 *args)
{
	return irq_begin(ATTR_IRQ);
}

static __noinline int on_ipi_entry(u64 *args)
{
	return irq_begin(ATTR_IPI);
}

static __noinline int on_irq_exit(u64 *args)
{
	return irq_end();
}

/*
 * A CPU that asks others to flush tells so with interrupts on, and while its program runs
 * may be asked itself: the kernel leaves out a program that is running already, and the
 * interrupt would pass for one that flushes nothing. So there are two, one after the
 * other. Who flushes, or asks for it, is neither preempted nor interrupted more than once
 * by the same: one of the two is always free, and what the other misses is no loss.
 */
static __noinline int on_tlb_flush(u64 *args)
{
	struct attr_cpu *c = this_cpu();

	if (c && c->irq && (u32)args[0] == TLB_REMOTE_SHOOTDOWN)
		c->flushed = true;
	return 0;
}

static bool is_tick(struct hrtimer *timer)
{
	return tick && (u64)BPF_CORE_READ(timer, function) == tick &&
	       BPF_CORE_READ(timer, base, clockid) == CLOCK_MONOTONIC;
}

/*
 * Nothing of this kernel but interrupts being off keeps a tick away: from when it was
 * due nobody ran here, or somebody who had turned them off. What was seen since then
 * shows that somebody ran.
 */
static __noinline int on_timer(u64 *args)
{
	struct hrtimer *timer = (struct hrtimer *)args[0];
	struct attr_cpu *c = this_cpu();
	u64 due;

	if (!recording || !c || !c->irq || c->ticked || !is_tick(timer))
		return 0;
	c->ticked = true;
	due = BPF_CORE_READ(timer, node.expires);
	if (due < c->seen)
		due = c->seen;
	if (c->irq > due + tick_late)
		send(ATTR_GAP, due, c->irq, c->tid, 0);
	return 0;
}

static __noinline int on_softirq_entry(u64 *args)
{
	struct attr_cpu *c = this_cpu();

	if (!recording || !c || !c->watched)
		return 0;
	c->vector = args[0];
	c->softirq = bpf_ktime_get_ns();
	return 0;
}

static __noinline int on_softirq_exit(u64 *args)
{
	struct attr_cpu *c = this_cpu();
	u64 since;

	if (!recording || !c || !c->watched)
		return 0;
	since = c->softirq;
	c->softirq = 0;
	if (since)
		send(ATTR_SOFTIRQ, since, bpf_ktime_get_ns(), current_tid(),
		     c->vector);
	return 0;
}

/* What the threads of servers wait for */

/* A fault whose end was not told is not one that lasts until now. */
static void forget_fault(struct attr_thread *t)
{
	struct attr_cpu *c = this_cpu();

	if (c && t->fault)
		add(&c->missed, 1);
	t->fault = 0;
}

static int fault_begin(void)
{
	struct attr_thread *t = current_thread();

	if (!t)
		return 0;
	forget_fault(t);
	t->fault = bpf_ktime_get_ns();
	return 0;
}

static int fault_end(void)
{
	struct attr_thread *t = current_thread();

	if (t && t->fault) {
		send(ATTR_FAULT, t->fault, bpf_ktime_get_ns(), current_tid(), 0);
		t->fault = 0;
	}
	return 0;
}

static u32 lock_type(u64 lock)
{
	struct task_struct *p = (struct task_struct *)bpf_get_current_task();
	u64 mm = (u64)BPF_CORE_READ(p, mm);

	return lock == mm + bpf_core_field_offset(struct mm_struct, mmap_lock) ?
	       ATTR_MMAP_LOCK : ATTR_LOCK;
}

/*
 * While it waits for one lock, a thread waits for others: the first one counts. Ends of
 * the ring's lock that the kernel leaves out, within on_contention_end(), are no loss:
 * those that began and did not end here are known.
 */
static __noinline int on_contention_begin(u64 *args)
{
	struct attr_thread *t = current_thread();
	struct attr_cpu *c = this_cpu();

	if (recording && c && c->busy)
		add(&c->nested, 1);
	if (!t || t->lock || !c || c->busy)
		return 0;
	t->lock_type = lock_type(args[0]);
	t->lock_at = args[0];
	t->lock = bpf_ktime_get_ns();
	return 0;
}

static __noinline int on_contention_end(u64 *args)
{
	struct attr_thread *t = current_thread();
	struct attr_cpu *c = this_cpu();
	u64 since;

	if (recording && c && c->busy)
		add(&c->nested, -1ULL);
	if (!t || !t->lock || t->lock_at != args[0] || !c || c->busy)
		return 0;
	since = t->lock;
	t->lock = 0;
	send(t->lock_type, since, bpf_ktime_get_ns(), current_tid(), 0);
	return 0;
}

/* Operations of the module, the outermost of each thread */

static __noinline int on_operation_begin(void)
{
	u32 tid = current_tid();
	struct attr_operation first = { .depth = 1 }, *o;

	if (!recording)
		return 0;
	o = bpf_map_lookup_elem(&operations, &tid);
	if (o && o->depth) {
		o->depth++;
		return 0;
	}
	first.since = bpf_ktime_get_ns();
	bpf_map_update_elem(&operations, &tid, &first, BPF_ANY);
	return 0;
}

static __noinline int on_operation_end(void)
{
	u32 tid = current_tid();
	struct attr_operation *o;

	if (!recording)
		return 0;
	o = bpf_map_lookup_elem(&operations, &tid);
	if (!o || !o->depth || --o->depth)
		return 0;
	send(ATTR_BRUMM, o->since, bpf_ktime_get_ns(), tid, 0);
	return 0;
}

/* Requests and answers */

static bool is_ours(u16 port)
{
	return bpf_map_lookup_elem(&ports, &port);
}

/* A connection of ours as seen by the server, or by the client; 0: none. */
static u32 connection(struct sock *sk, bool *of_server)
{
	u16 here = BPF_CORE_READ(sk, __sk_common.skc_num);
	u16 there = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));

	*of_server = is_ours(here);
	if (*of_server)
		return ATTR_PORTS(here, there);
	return is_ours(there) ? ATTR_PORTS(there, here) : 0;
}

/* The first members of struct tcp_skb_cb, which is in skb->cb. */
struct sequence {
	u32 from;
	u32 to;
};

static __noinline int on_tcp_packet(u64 *args)
{
	struct sk_buff *skb = (struct sk_buff *)args[1];
	struct sequence s = { 0 };
	bool of_server;
	u32 which;

	if (!recording)
		return 0;
	which = connection((struct sock *)args[0], &of_server);
	if (!which)
		return 0;
	bpf_core_read(&s, sizeof(s), &skb->cb);
	if (s.from != s.to)
		send_point(of_server ? ATTR_ARRIVE : ATTR_REPLY, current_tid(), which);
	return 0;
}

static __noinline int on_tcp_read(u64 *args)
{
	static const struct attr_thread none;
	u32 tid = current_tid(), which;
	struct attr_thread *t;
	bool of_server;

	if (!active)
		return 0;
	which = connection((struct sock *)args[0], &of_server);
	if (!which || !of_server)
		return 0;
	t = thread_of(tid);
	if (t) {
		forget_fault(t);
		/* Nor does it wait for a lock: an interrupt did, within on_contention_end(). */
		t->lock = 0;
	} else if (bpf_map_update_elem(&threads, &tid, &none, BPF_ANY)) {
		add(&no_room, 1);
	}
	if (recording)
		send_point(ATTR_RECV, tid, which);
	return 0;
}

/* Bytes behind the headers; 0: none, as in a mere acknowledgement. */
static u32 payload(struct sk_buff *skb)
{
	u32 tcp = BPF_CORE_READ(skb, transport_header);
	u8 *head = BPF_CORE_READ(skb, head), words = 0;
	u32 before = tcp - (u32)(BPF_CORE_READ(skb, data) - head);
	u32 len = BPF_CORE_READ(skb, len);

	/* In the 13th byte: how many words of 4 bytes TCP's header has. */
	bpf_probe_read_kernel(&words, sizeof(words), head + tcp + 12);
	before += (words >> 4) * 4;
	return len > before ? len - before : 0;
}

/* In a softirq it is sent for whoever was interrupted: nobody knows of that. */
static __noinline int on_transmit(u64 *args)
{
	struct sk_buff *skb = (struct sk_buff *)args[0];
	struct sock *sk = BPF_CORE_READ(skb, sk);
	struct attr_cpu *c = this_cpu();
	bool of_server;
	u32 which;

	if (!recording || !sk || !c)
		return 0;
	which = connection(sk, &of_server);
	if (which && of_server && payload(skb))
		send_point(ATTR_SEND, c->softirq ? 0 : current_tid(), which);
	return 0;
}

/* The ways to attach */

TRACEPOINT(sched_switch, on_switch)
TRACEPOINT(sched_waking, on_waking)
TRACEPOINT(sched_process_exit, on_process_exit)
TRACEPOINT(irq_handler_entry, on_irq_entry)
TRACEPOINT(irq_handler_exit, on_irq_exit)
TRACEPOINT(local_timer_entry, on_irq_entry)
TRACEPOINT(local_timer_exit, on_irq_exit)
TRACEPOINT(reschedule_entry, on_ipi_entry)
TRACEPOINT(reschedule_exit, on_irq_exit)
TRACEPOINT(call_function_entry, on_ipi_entry)
TRACEPOINT(call_function_exit, on_irq_exit)
TRACEPOINT(call_function_single_entry, on_ipi_entry)
TRACEPOINT(call_function_single_exit, on_irq_exit)
TRACEPOINT(irq_work_entry, on_ipi_entry)
TRACEPOINT(irq_work_exit, on_irq_exit)
TRACEPOINT(tlb_flush, on_tlb_flush)
TRACEPOINT_AS(tlb_flush_again, tlb_flush, on_tlb_flush)
TRACEPOINT(hrtimer_expire_entry, on_timer)
TRACEPOINT(softirq_entry, on_softirq_entry)
TRACEPOINT(softirq_exit, on_softirq_exit)
TRACEPOINT(contention_begin, on_contention_begin)
TRACEPOINT(contention_end, on_contention_end)
TRACEPOINT(tcp_probe, on_tcp_packet)
TRACEPOINT(tcp_rcv_space_adjust, on_tcp_read)
TRACEPOINT(net_dev_queue, on_transmit)

/* Of the module, whose types need not be known. */
#define OPERATION(name)							\
SEC("raw_tp/brumm_" #name "_begin")					\
int brumm_##name##_begin(u64 *ctx)					\
{									\
	return on_operation_begin();					\
}									\
SEC("raw_tp/brumm_" #name "_end")					\
int brumm_##name##_end(u64 *ctx)					\
{									\
	return on_operation_end();					\
}

OPERATION(unmap)
OPERATION(reduce)
OPERATION(map)
OPERATION(fault)
OPERATION(release)
OPERATION(reclaim)

/* Functions, where they can be had. */
SEC("fentry/do_exit")
int enter_exit(u64 *ctx)
{
	return on_exit();
}

SEC("kprobe/do_exit")
int kprobe_exit(struct pt_regs *ctx)
{
	return on_exit();
}

SEC("fentry/handle_mm_fault")
int enter_fault(u64 *ctx)
{
	return fault_begin();
}

SEC("fexit/handle_mm_fault")
int leave_fault(u64 *ctx)
{
	return fault_end();
}

SEC("kprobe/handle_mm_fault")
int kprobe_fault(struct pt_regs *ctx)
{
	return fault_begin();
}

SEC("kretprobe/handle_mm_fault")
int kretprobe_fault(struct pt_regs *ctx)
{
	return fault_end();
}
