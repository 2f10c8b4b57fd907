/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For teardown.bpf.c: which phase a hook is, and whether what somebody does, who is
 * not in an exit, is for one of those that count.
 */
#ifndef BRUMM_EXITS_WORK_BPF_H
#define BRUMM_EXITS_WORK_BPF_H

#include "exits-stack.bpf.h"

#define ANON_INODE_MAGIC 0x09041934
#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10
#define IPPROTO_TCP	6
#define S_IFMT		0170000
#define S_IFSOCK	0140000
#define S_IFREG		0100000
#define S_IFDIR		0040000
#define S_IFIFO		0010000

/* What a hook is about */

static u32 anon_phase(struct file *f)
{
	const unsigned char *name = BPF_CORE_READ(f, f_path.dentry, d_name.name);
	char text[12] = { 0 };

	bpf_probe_read_kernel_str(text, sizeof(text), name);
	if (!bpf_strncmp(text, 9, "[eventfd]"))
		return PHASE_EVENTFD;
	if (!bpf_strncmp(text, 11, "[eventpoll]"))
		return PHASE_EPOLL;
	if (!bpf_strncmp(text, 10, "[io_uring]"))
		return PHASE_URING;
	return PHASE_OTHERFILE;
}

static u32 socket_phase(struct file *f)
{
	struct socket *socket = (struct socket *)BPF_CORE_READ(f, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u32 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (family == AF_UNIX)
		return PHASE_UNIX;
	if ((family == AF_INET || family == AF_INET6) &&
	    BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP)
		return PHASE_TCP;
	return PHASE_SOCKET;
}

static u32 file_phase(struct file *f)
{
	u32 type = BPF_CORE_READ(f, f_inode, i_mode) & S_IFMT;

	if (type == S_IFSOCK)
		return socket_phase(f);
	if (type == S_IFIFO)
		return PHASE_PIPE;
	if (BPF_CORE_READ(f, f_inode, i_sb, s_magic) == ANON_INODE_MAGIC)
		return anon_phase(f);
	return type == S_IFREG || type == S_IFDIR ? PHASE_PLAIN : PHASE_OTHERFILE;
}

static u32 release_phase(struct task_struct *p)
{
	return BPF_CORE_READ(p, pid) == BPF_CORE_READ(p, tgid) ?
	       PHASE_RELEASE : PHASE_RELEASE_THREAD;
}

static __noinline u32 phase_of(u32 hook, u64 arg)
{
	switch (hook) {
	case HOOK_MM:
	case HOOK_ASYNC:
		return PHASE_MM;
	case HOOK_VMA:
		return PHASE_VMA;
	case HOOK_ZAP:
		return PHASE_ZAP;
	case HOOK_TABLES:
		return PHASE_TABLES;
	case HOOK_FLUSH:
		return PHASE_FLUSH;
	case HOOK_FD:
		return PHASE_FD;
	case HOOK_WORK:
	case HOOK_FPUT:
		return PHASE_WORK;
	case HOOK_FILE:
		return file_phase((struct file *)arg);
	case HOOK_NS:
		return PHASE_NS;
	case HOOK_MOUNTS:
	case HOOK_MNTPUT:
		return PHASE_MOUNTS;
	case HOOK_INIT:
		return PHASE_INIT;
	case HOOK_RELEASE:
		return release_phase((struct task_struct *)arg);
	case HOOK_SIGNAL:
		return PHASE_SIGNAL;
	case HOOK_NET:
		return PHASE_NET;
	case HOOK_IPC:
		return PHASE_IPC;
	case HOOK_TASK:
		return PHASE_TASK;
	case HOOK_EMPTY:
		return PHASE_EMPTY;
	default:
		return PHASE_CGROUP;
	}
}

/* Work for those who died, in the context of somebody else */

/* Newer kernels hide the name behind an accessor. */
struct kernfs_node___hidden {
	struct kernfs_node *__parent;
} __attribute__((preserve_access_index));

static u64 cgroup_of_file(struct kernfs_open_file *of)
{
	struct kernfs_node *kn = BPF_CORE_READ(of, kn);
	struct kernfs_node___hidden *hidden = (void *)kn;

	if (bpf_core_field_exists(hidden->__parent))
		return BPF_CORE_READ(hidden, __parent, id);
	return BPF_CORE_READ(kn, parent, id);
}

static u64 cgroup_of_css(struct cgroup_subsys_state *css)
{
	return BPF_CORE_READ(css, cgroup, kn, id);
}

static void *around(u64 member, u64 offset)
{
	return (void *)(member - offset);
}

static struct exit_task *work_for(u32 hook, u64 cgroup, u32 where)
{
	if (checking || !is_wanted(cgroup))
		return NULL;
	return begin(hook, phase_of(hook, 0), where, cgroup);
}

static struct exit_task *work_for_css(u32 hook, u64 work)
{
	struct cgroup_subsys_state *css;

	if (hook == HOOK_FREE)
		css = around(work, bpf_core_field_offset(struct cgroup_subsys_state, destroy_rwork) +
				   bpf_core_field_offset(struct rcu_work, work));
	else
		css = around(work, bpf_core_field_offset(struct cgroup_subsys_state, destroy_work));
	return work_for(hook, cgroup_of_css(css), WHERE_DEFERRED);
}

static struct exit_task *work_for_mm(u32 hook, u64 work)
{
	struct mm_struct *mm = around(work, bpf_core_field_offset(struct mm_struct, async_put_work));
	struct task_struct *owner = BPF_CORE_READ(mm, owner);

	if (!owner)
		return work_for(hook, 0, filtered ? WHERE_MACHINE : WHERE_DEFERRED);
	return work_for(hook, cgroup_of(owner), WHERE_DEFERRED);
}

/* All that are to be cleaned up are so at once: ours is a share of it. */
static struct exit_task *work_for_nets(u32 hook)
{
	u64 all = nets, ours = nets_ours;
	struct exit_task *t;

	if (checking)
		return NULL;
	__sync_fetch_and_add(&nets, -all);
	__sync_fetch_and_add(&nets_ours, -ours);
	if (filtered && !ours)
		return NULL;
	t = begin(hook, PHASE_NET, WHERE_DEFERRED, 0);
	if (t && filtered && ours < all)
		t->share = SHARE_ALL * ours / all;
	return t;
}

static struct exit_task *work_for_all(u32 hook)
{
	if (checking)
		return NULL;
	return begin(hook, phase_of(hook, 0),
		     filtered ? WHERE_MACHINE : WHERE_DEFERRED, 0);
}

/* Somebody without a record: is what he begins for one of ours? */
static __noinline struct exit_task *visit(u32 hook, u64 arg)
{
	struct task_struct *p = (struct task_struct *)arg;

	switch (hook) {
	case HOOK_RELEASE:
		return counts(p) ? begin(hook, release_phase(p), WHERE_OTHERS,
					 cgroup_of(p)) : NULL;
	case HOOK_SIGNAL:
		return work_for(hook, cgroup_of_file((void *)arg), WHERE_OTHERS);
	case HOOK_NET:
		return work_for_nets(hook);
	case HOOK_ASYNC:
		return work_for_mm(hook, arg);
	case HOOK_KILL:
	case HOOK_OFFLINE:
	case HOOK_FREE:
		return work_for_css(hook, arg);
	case HOOK_FPUT:
	case HOOK_MNTPUT:
	case HOOK_IPC:
		return work_for_all(hook);
	case HOOK_EMPTY:
		if (!checking || (u32)(bpf_get_current_pid_tgid() >> 32) != self)
			return NULL;
		return begin(HOOK_EXIT, PHASE_EMPTY, WHERE_EXIT, 0);
	default:
		return NULL;
	}
}

/* What may begin in a task without a record. */
static bool may_visit(u32 hook)
{
	return hook == HOOK_EXIT || hook >= HOOK_RELEASE;
}

#endif /* BRUMM_EXITS_WORK_BPF_H */
