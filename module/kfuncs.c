// SPDX-License-Identifier: GPL-2.0
/*
 * What the guard's BPF programs call: bpf/guard.bpf.c.
 *
 * Contract
 *   - A function for each operation that can be refused. Negative: refuse, with
 *     whatever errno the operation has for it. 1: it would have been refused, were
 *     it not for the mode. 0: let it through.
 *   - Which programs may call them is root's choice, who may load any: so they do
 *     nothing where a hook of a security module never is, in interrupts or with
 *     interrupts off, and take no pointer.
 *   - A program that is loaded holds the module.
 *   - Where the kernel offers no functions to BPF the module does without.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bpf.h>
#include <linux/module.h>
#include <linux/preempt.h>

#include "compat/kfunc.h"
#include "kfuncs.h"
#include "living.h"

static bool in_hook(void)
{
	return in_task() && !irqs_disabled();
}

__bpf_kfunc int brumm_guard_fork(u64 flags)
{
	return in_hook() ? living_ask_fork(flags) : 0;
}

__bpf_kfunc int brumm_guard_exec(void)
{
	return in_hook() ? living_ask_exec() : 0;
}

__bpf_kfunc int brumm_guard_mmap(u64 flags, u64 bytes)
{
	return in_hook() ? living_ask_mmap(flags, bytes) : 0;
}

__bpf_kfunc int brumm_guard_area(void)
{
	return in_hook() ? living_ask_area() : 0;
}

__bpf_kfunc int brumm_guard_split(u64 start, u64 end)
{
	return in_hook() ? living_ask_split(start, end) : 0;
}

BTF_KFUNCS_START(brumm_guard_ids)
BTF_ID_FLAGS(func, brumm_guard_fork)
BTF_ID_FLAGS(func, brumm_guard_exec)
BTF_ID_FLAGS(func, brumm_guard_mmap)
BTF_ID_FLAGS(func, brumm_guard_area)
BTF_ID_FLAGS(func, brumm_guard_split)
BTF_KFUNCS_END(brumm_guard_ids)

static const struct btf_kfunc_id_set brumm_guard_set = {
	.owner = THIS_MODULE,
	.set = &brumm_guard_ids,
};

/* They go with the module. */
void kfuncs_init(void)
{
	int err;

	err = register_btf_kfunc_id_set(BPF_PROG_TYPE_LSM, &brumm_guard_set);
	if (err)
		pr_warn("nothing can be refused beforehand: this kernel has no functions for BPF (%d)\n",
			err);
}
