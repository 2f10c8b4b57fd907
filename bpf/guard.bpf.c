// SPDX-License-Identifier: GPL-2.0
/*
 * The guard: refuses what would make the clean-up of a cgroup take longer than its
 * brumm.max, where the kernel asks its security modules.
 *
 * What an operation would add is found out by the module, and so is whether that
 * may be; here it becomes the operation's own errno, and is counted. Programs of
 * this type are skipped for nobody: unlike those of fmod_ret, of which one that is
 * preempted lets the next task on that CPU go by.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "guard.h"

#define EAGAIN	11
#define ENOMEM	12

char LICENSE[] SEC("license") = "GPL";

extern int brumm_guard_fork(u64 flags) __ksym;
extern int brumm_guard_exec(void) __ksym;
extern int brumm_guard_mmap(u64 flags, u64 bytes) __ksym;
extern int brumm_guard_area(void) __ksym;
extern int brumm_guard_split(u64 start, u64 end) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GUARD_NR);
	__type(key, u32);
	__type(value, struct guard_counts);
} counts SEC(".maps");

static __always_inline void count(u32 hook, bool refused)
{
	struct guard_counts *c = bpf_map_lookup_elem(&counts, &hook);

	if (!c)
		return;
	/* Another task may run here in the middle of it. */
	if (refused)
		__sync_fetch_and_add(&c->refused, 1);
	else
		__sync_fetch_and_add(&c->audited, 1);
}

/* The verifier wants to see a constant. */
#define VERDICT(hook, said, err) ({					\
	int said_ = (said), ret_ = 0;					\
									\
	if (said_) {							\
		count(hook, said_ < 0);					\
		if (said_ < 0)						\
			ret_ = -(err);					\
	}								\
	ret_;								\
})

SEC("lsm/task_alloc")
int BPF_PROG(guard_fork, struct task_struct *task, unsigned long flags)
{
	return VERDICT(GUARD_FORK, brumm_guard_fork(flags), EAGAIN);
}

SEC("lsm/bprm_creds_for_exec")
int BPF_PROG(guard_exec, struct linux_binprm *bprm)
{
	return VERDICT(GUARD_EXEC, brumm_guard_exec(), ENOMEM);
}

SEC("lsm/mmap_file")
int BPF_PROG(guard_mmap, struct file *file, unsigned long reqprot,
	     unsigned long prot, unsigned long flags)
{
	u64 bytes = 0;

	if (file)
		bytes = BPF_CORE_READ(file, f_inode, i_size);
	return VERDICT(GUARD_MMAP, brumm_guard_mmap(flags, bytes), ENOMEM);
}

SEC("lsm/mmap_addr")
int BPF_PROG(guard_area, unsigned long addr)
{
	return VERDICT(GUARD_AREA, brumm_guard_area(), ENOMEM);
}

SEC("lsm/file_mprotect")
int BPF_PROG(guard_split, struct vm_area_struct *vma)
{
	return VERDICT(GUARD_SPLIT,
		       brumm_guard_split(BPF_CORE_READ(vma, vm_start),
					 BPF_CORE_READ(vma, vm_end)), ENOMEM);
}
