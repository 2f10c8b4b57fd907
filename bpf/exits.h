/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What teardown.bpf.c keeps and sends, for both sides. Includers have the kernel's
 * integer types.
 */
#ifndef BRUMM_EXITS_H
#define BRUMM_EXITS_H

#include "hist.h"

/*
 * Functions of the kernel that a phase is the time of, and where it may stand:
 * X(name, NAME, within, functions). The first of the functions that the kernel has
 * is taken. within: the hooks, as bits, one of which is around it where an exit
 * runs into it; 0: any.
 */
#define EXIT_HOOKS(X)							\
	X(exit, EXIT, 0, "do_exit")					\
	X(mm, MM, 0, "mmput")						\
	X(vma, VMA, IN(MM) | IN(ASYNC), "exit_mmap")			\
	X(zap, ZAP, IN(VMA), "unmap_vmas")				\
	X(tables, TABLES, IN(VMA), "free_pgtables")			\
	X(flush, FLUSH, 0, "tlb_finish_mmu")				\
	X(fd, FD, IN(EXIT), "exit_files")				\
	X(work, WORK, IN(EXIT), "task_work_run")			\
	X(file, FILE, 0, "__fput")					\
	X(ns, NS, IN(EXIT), "exit_nsproxy_namespaces "			\
	  "exit_task_namespaces switch_task_namespaces")		\
	X(mounts, MOUNTS, 0, "cleanup_mnt")				\
	X(init, INIT, IN(EXIT), "zap_pid_ns_processes")			\
	X(release, RELEASE, 0, "release_task")				\
	X(signal, SIGNAL, 0, "cgroup_kill_write")			\
	X(net, NET, 0, "cleanup_net")					\
	X(async, ASYNC, 0, "mmput_async_fn")				\
	X(kill, KILL, 0, "css_killed_work_fn")				\
	X(offline, OFFLINE, 0, "css_release_work_fn")			\
	X(free, FREE, 0, "css_free_rwork_fn")				\
	X(fput, FPUT, 0, "delayed_fput")				\
	X(mntput, MNTPUT, 0, "delayed_mntput")				\
	X(ipc, IPC, 0, "free_ipc")					\
	X(task, TASK, 0, "delayed_put_task_struct")			\
	X(put_net, PUT_NET, 0, "__put_net")				\
	X(empty, EMPTY, 0, "__x64_sys_getpgid")

enum exit_hook {
#define EXIT_HOOK(name, NAME, within, functions) HOOK_##NAME,
	EXIT_HOOKS(EXIT_HOOK)
#undef EXIT_HOOK
	HOOKS_NR,
	/* Not a function: a softirq that came in between. */
	HOOK_SOFTIRQ = HOOKS_NR,
};

/*
 * Phases, X(name, NAME, kind): the kind that brumm.price and the prediction know
 * it by; NULL: of no kind. "memory" is all kinds of pages and their tables: what
 * looks for pages reads tables, and both are freed in one list.
 */
#define EXIT_PHASES(X)							\
	X(process, PROCESS, "process")					\
	X(thread, THREAD, "thread")					\
	X(mm, MM, "mm")							\
	X(vma, VMA, "vma")						\
	X(zap, ZAP, "memory")						\
	X(tables, TABLES, "memory")					\
	X(flush, FLUSH, "memory")					\
	X(fd, FD, "fd")							\
	X(work, WORK, "fd")						\
	X(plain, PLAIN, "plain")					\
	X(eventfd, EVENTFD, "eventfd")					\
	X(pipe, PIPE, "pipe")						\
	X(unix, UNIX, "unix")						\
	X(tcp, TCP, "tcp")						\
	X(socket, SOCKET, "socket")					\
	X(uring, URING, "uring")					\
	X(epoll, EPOLL, "epoll")					\
	X(otherfile, OTHERFILE, "otherfile")				\
	X(ns, NS, "ns")							\
	X(mounts, MOUNTS, "mntns")					\
	X(init, INIT, "pidns")						\
	X(release, RELEASE, "process")					\
	X(release_thread, RELEASE_THREAD, "thread")			\
	X(signal, SIGNAL, "process")					\
	X(net, NET, "netns")						\
	X(ipc, IPC, "ipcns")						\
	X(cgroup, CGROUP, NULL)						\
	X(task, TASK, "process")					\
	X(softirq, SOFTIRQ, NULL)					\
	X(empty, EMPTY, NULL)

enum exit_phase {
#define EXIT_PHASE(name, NAME, kind) PHASE_##NAME,
	EXIT_PHASES(EXIT_PHASE)
#undef EXIT_PHASE
	PHASES_NR,
	/* An exit from do_exit() until its last switch. */
	PHASE_WHOLE = PHASES_NR,
	/* From SIGKILL to do_exit(). */
	PHASE_SIGNALLED,
	/* A leader that is dead, until its threads are. */
	PHASE_SUBTHREADS,
	/* Dead, until the parent has reaped it. */
	PHASE_PARENT,
	/* RCU's softirq, whoever it was for. */
	PHASE_RCU,
	EXIT_STATS_NR,
};

/**
 * enum exit_where - in whose context something was done
 * @WHERE_EXIT: in the exit itself
 * @WHERE_OTHERS: by somebody who lives: who kills, a parent that reaps
 * @WHERE_DEFERRED: later, by a kernel thread or RCU, for the cgroup
 * @WHERE_MACHINE: the same, but for whom cannot be told
 */
enum exit_where {
	WHERE_EXIT,
	WHERE_OTHERS,
	WHERE_DEFERRED,
	WHERE_MACHINE,
	WHERES_NR,
};

/**
 * struct exit_sums - a phase in one context, on one CPU; times in ns
 * @n: how often
 * @cpu: time on a CPU, without phases within
 * @wait: asleep
 * @runq: ready to run, and not running
 * @kids: phases directly within it
 * @last: when the last one ended
 */
struct exit_sums {
	__u64 n;
	__u64 cpu;
	__u64 wait;
	__u64 runq;
	__u64 kids;
	__u64 last;
};

/**
 * struct exit_stats - of one phase, on one CPU
 * @time: CPU time of each, in exits; of a delay: how long it was
 * @sums: by enum exit_where
 * @misplaced: was not where it ought to be
 * @orphans: ends or begins that have no partner
 * @lost: samples that found the ring full
 */
struct exit_stats {
	struct hist time;
	struct exit_sums sums[WHERES_NR];
	__u64 misplaced;
	__u64 orphans;
	__u64 lost;
};

#define EXIT_DEPTH	8	/* a power of two */

/**
 * struct exit_frame - a phase that has begun
 * @cpu: time on a CPU up to now, without that of phases within
 * @wait: asleep
 * @runq: ready, and not running
 * @hook: enum exit_hook
 * @phase: enum exit_phase
 * @kids: phases that have ended directly within it
 */
struct exit_frame {
	__u64 cpu;
	__u64 wait;
	__u64 runq;
	__u32 hook;
	__u32 phase;
	__u32 kids;
	__u32 pad;
};

/**
 * struct exit_task - a task in an exit, or that works for one
 * @start: when it began
 * @mark: up to when its time is accounted for
 * @probe: the probe's own time
 * @cgroup: id
 * @share: of its time that counts, in 65536ths
 * @tgid: its process
 * @where: enum exit_where
 * @depth: of the frame that is current
 * @asleep: not running, and not ready
 * @reaped: it has reaped itself
 * @frame: frame[0] is the exit or the work
 */
struct exit_task {
	__u64 start;
	__u64 mark;
	__u64 probe;
	__u64 cgroup;
	__u64 share;
	__u32 tgid;
	__u32 where;
	__u32 depth;
	__u8 asleep;
	__u8 reaped;
	__u8 pad[2];
	struct exit_frame frame[EXIT_DEPTH];
};

/**
 * struct exit_zombie - dead, and not reaped
 * @died: when
 * @last: when the last of its threads died; 0: it had none
 */
struct exit_zombie {
	__u64 died;
	__u64 last;
};

/**
 * struct exit_sample - one phase of one exit, through the ring; times in ns
 * @end: CLOCK_MONOTONIC
 * @cpu: time on a CPU; of a delay: how long it was
 * @wait: asleep
 * @runq: ready, and not running
 * @cgroup: id
 * @tid: who did it
 * @tgid: of which process
 * @phase: enum exit_phase, or beyond
 * @where: enum exit_where
 */
struct exit_sample {
	__u64 end;
	__u64 cpu;
	__u64 wait;
	__u64 runq;
	__u64 cgroup;
	__u32 tid;
	__u32 tgid;
	__u32 phase;
	__u32 where;
};

#endif /* BRUMM_EXITS_H */
