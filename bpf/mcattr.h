/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What mcattr.bpf.c sends, for both sides. Includers have the kernel's integer types.
 */
#ifndef BRUMM_MCATTR_H
#define BRUMM_MCATTR_H

/*
 * What a record is. Times of the first group are a CPU's, of the second a thread's;
 * the third are points: @start and @end are the same.
 */
enum attr_type {
	ATTR_SLICE,		/* a thread ran: struct attr_slice */
	ATTR_IRQ,		/* of a device, or the timer */
	ATTR_IPI,
	ATTR_TLB,		/* an IPI that flushed the TLB for another CPU */
	ATTR_SOFTIRQ,		/* @what: which */
	ATTR_GAP,		/* the tick was due and did not come */
	ATTR_LOST,		/* records were lost here */

	ATTR_FAULT,		/* page fault */
	ATTR_MMAP_LOCK,		/* waited for the lock of its address space */
	ATTR_LOCK,		/* for another lock of the kernel */
	ATTR_BRUMM,		/* an operation of the module */

	ATTR_WAKE,		/* @tid is woken */
	ATTR_ARRIVE,		/* bytes for the server; @what: ATTR_PORTS() */
	ATTR_RECV,		/* @tid of the server has read them */
	ATTR_SEND,		/* the server passed bytes on to a device */
	ATTR_REPLY,		/* bytes for the client */
	ATTR_TYPES,
};

/* A connection, by the server's port and the client's. */
#define ATTR_PORTS(server, client)	((__u32)(server) << 16 | (__u32)(client))

/* Of a slice: how it ended, and that the thread is a server's. */
enum {
	ATTR_RUNNABLE,
	ATTR_SLEEPS,
	ATTR_STOPPED,		/* by a signal, or a tracer */
	ATTR_DEAD,
	ATTR_STATE = 3,
	ATTR_SERVER = 4,
};

/**
 * struct attr_record - something took from @start to @end, CLOCK_MONOTONIC, ns
 * @tid: whose, or who ran then; 0: nobody
 * @cpu: where
 * @type: enum attr_type
 * @flags: of a slice
 * @what: of a slice the cgroup, else as @type says
 */
struct attr_record {
	__u64 start;
	__u64 end;
	__u32 tid;
	__u16 cpu;
	__u8 type;
	__u8 flags;
	__u64 what;
};

/**
 * struct attr_slice - from one switch of a CPU to the next
 * @r: all the others have
 * @exits: since when the thread was in its exit; 0: it was not
 * @tgid: its process
 * @comm: its name
 */
struct attr_slice {
	struct attr_record r;
	__u64 exits;
	__u32 tgid;
	__u32 pad;
	char comm[16];
};

/**
 * struct attr_cpu - what a CPU is at
 * @since: when @tid was switched to
 * @exits: since when that is in its exit, 0: it is not
 * @irq: when the interrupt began, of type @irq_type; 0: none
 * @softirq: the same, of number @vector
 * @lost: since when records are lost; 0: none
 * @seen: when it was last seen to work
 * @losses: records lost
 * @orphans: ends without a begin
 * @missed: page faults whose end was not told
 * @nested: waits for a lock that began while @busy, and whose end was not told
 * @busy: a record is being made
 * @watched: a server ran here
 * @flushed: the IPI flushes the TLB
 * @ticked: the timer interrupt's lateness has been looked at
 */
struct attr_cpu {
	__u64 since;
	__u64 exits;
	__u64 irq;
	__u64 softirq;
	__u64 lost;
	__u64 seen;
	__u64 losses;
	__u64 orphans;
	__u64 missed;
	__u64 nested;
	__u64 busy;
	__u32 tid;
	__u32 vector;
	__u32 irq_type;
	__u8 watched;
	__u8 flushed;
	__u8 ticked;
	__u8 irqs;
};

/**
 * struct attr_thread - what a thread of a server is at
 * @fault: since when it handles a page fault; 0: it does not
 * @lock: since when it waits for the lock at @lock_at; 0: it does not
 * @lock_type: ATTR_MMAP_LOCK or ATTR_LOCK
 */
struct attr_thread {
	__u64 fault;
	__u64 lock;
	__u64 lock_type;
	__u64 lock_at;
};

/* Since when a thread is in operations of the module, so many within each other. */
struct attr_operation {
	__u64 since;
	__u64 depth;
};

#endif /* BRUMM_MCATTR_H */
