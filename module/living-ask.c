// SPDX-License-Identifier: GPL-2.0
/*
 * The living: what an operation of the calling task would add, asked for before.
 *
 * Contract
 *   - Each function is called where the kernel asks its security modules whether
 *     the task may do it, and returns what living_try_charge() does. 0 for who is
 *     not followed, at the cost of a search in a table.
 *   - What is asked for is at most what the operation itself adds, and the page
 *     tables that the address space may come to need, since afterwards it faults
 *     and nobody is asked: one table for each 512 pages of what it has and has no
 *     tables for yet, and for the new mapping as many as its length can touch. So
 *     one process cannot map more than may be torn down within the budget.
 *   - An exec asks for an ordinary program's mappings beforehand, so that it fails
 *     with an errno; its own mmaps are not asked about, for then it could only be
 *     killed. What a program has beyond that cannot be refused.
 *
 * The hooks do not tell a length: it is in the registers of the system call, which
 * nobody can change once it has begun.
 */
#include <linux/compat.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include <asm/syscall.h>
#include <asm/unistd.h>

#include "living.h"

/* A dynamically linked program with some libraries, when its main() begins. */
#define EXEC_VMAS	32
#define EXEC_TABLES	24

/* System calls that change an address space. */
enum call {
	CALL_OTHER,
	CALL_MMAP,
	CALL_BRK,
	CALL_MREMAP,
	CALL_MPROTECT,
	CALL_AIO,
};

#ifdef CONFIG_IA32_EMULATION
/* The old mmap of 32 bit has its arguments in memory: its length stays unknown. */
static enum call call_of_ia32(int nr)
{
	switch (nr) {
	case __NR_ia32_mmap2:
		return CALL_MMAP;
	case __NR_ia32_brk:
		return CALL_BRK;
	case __NR_ia32_mremap:
		return CALL_MREMAP;
	case __NR_ia32_mprotect:
	case __NR_ia32_pkey_mprotect:
		return CALL_MPROTECT;
	case __NR_ia32_io_setup:
		return CALL_AIO;
	}
	return CALL_OTHER;
}
#endif

/* Which one is being made, and its arguments; none of them in a fault. */
static enum call call_now(unsigned long args[6])
{
	struct pt_regs *regs = current_pt_regs();
	int nr = syscall_get_nr(current, regs);

	syscall_get_arguments(current, regs, args);
#ifdef CONFIG_IA32_EMULATION
	if (in_ia32_syscall())
		return call_of_ia32(nr);
#endif
#ifdef __X32_SYSCALL_BIT
	if (nr > 0)
		nr &= ~__X32_SYSCALL_BIT;
#endif
	switch (nr) {
	case __NR_mmap:
		return CALL_MMAP;
	case __NR_brk:
		return CALL_BRK;
	case __NR_mremap:
		return CALL_MREMAP;
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		return CALL_MPROTECT;
	case __NR_io_setup:
		return CALL_AIO;
	}
	return CALL_OTHER;
}

static bool may_be_followed(void)
{
	return living_is_on() && !(current->flags & PF_KTHREAD);
}

/* The record of the task's address space, if it is followed. */
static struct living *own_mm(void)
{
	return may_be_followed() && current->mm ? living_get(current->mm) : NULL;
}

/* Tables of 512 entries, each for @each pages, that @pages in a row can touch. */
static u64 tables_touched(u64 pages, u64 each)
{
	return (pages + 2 * each - 2) / each;
}

static u64 tables_needed(struct mm_struct *mm, u64 pages)
{
	u64 has = mm_pgtables_bytes(mm) >> PAGE_SHIFT;
	u64 may = READ_ONCE(mm->total_vm) / PTRS_PER_PTE;
	u64 new = 0, each = 1;
	int level;

	for (level = 0; pages && level < 3; level++) {
		each *= PTRS_PER_PTE;
		new += tables_touched(pages, each);
	}
	return new + (may > has ? may - has : 0);
}

/* @vmas and @pages more for the address space of @l, which is put. */
static int ask_mm(struct living *l, unsigned int vmas, u64 pages)
{
	struct living_delta d = {};
	int err;

	living_delta_set(&d, LIVING_VMA, vmas);
	living_delta_set(&d, LIVING_TABLE, tables_needed(current->mm, pages));
	err = living_try_charge(l, &d);
	living_put(l);
	return err;
}

/**
 * living_ask_fork() - a new process or thread
 * @flags: CLONE_*
 */
int living_ask_fork(unsigned long flags)
{
	struct living *l, *about = NULL;
	struct living_delta d = {};
	int err;

	if (!may_be_followed())
		return 0;
	if (flags & CLONE_THREAD) {
		about = living_get(current->signal);
		if (!about)
			return 0;
		living_delta_set(&d, LIVING_THREAD, 1);
	} else {
		living_delta_set(&d, LIVING_PROCESS, 1);
		if (!(flags & CLONE_FILES))
			living_delta_set(&d, LIVING_FD,
					 living_slots_of_current());
	}
	l = flags & CLONE_VM ? NULL : own_mm();
	if (l) {
		/* So that it is not among what the child may come to have. */
		living_settle_claim();
		/* Which pages and tables will be copied is known afterwards. */
		living_mm_kinds(l, &d);
		living_put(l);
	}
	err = living_try_charge(about, &d);
	if (about)
		living_put(about);
	return err;
}

/* Another program. */
int living_ask_exec(void)
{
	struct living_delta d = {};

	if (!may_be_followed())
		return 0;
	living_delta_set(&d, LIVING_MM, 1);
	living_delta_set(&d, LIVING_VMA, EXEC_VMAS);
	living_delta_set(&d, LIVING_TABLE, EXEC_TABLES);
	return living_try_charge(NULL, &d);
}

/**
 * living_ask_mmap() - a new mapping
 * @flags: MAP_*
 * @bytes: of the file, for who maps all of it (shmat)
 *
 * During an exec the new address space has no record yet.
 */
int living_ask_mmap(unsigned long flags, u64 bytes)
{
	struct living *l = own_mm();
	unsigned int vmas = 1;
	unsigned long args[6];

	if (!l)
		return 0;
	if (call_now(args) == CALL_MMAP)
		bytes = args[1];
	/* What is there may be cut in two. */
	if ((flags & MAP_FIXED) &&
	    (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE)
		vmas++;
	return ask_mm(l, vmas, min_t(u64, bytes, TASK_SIZE_MAX) >> PAGE_SHIFT);
}

/* How many pages a brk or mremap adds, at most. */
static u64 pages_added(enum call call, const unsigned long args[6])
{
	unsigned long from, to;

	if (call == CALL_BRK) {
		from = READ_ONCE(current->mm->brk);
		to = args[0];
	} else {
		/* From where it was it may go later, or not at all. */
		from = args[3] & MREMAP_DONTUNMAP ? 0 : args[1];
		to = args[2];
	}
	return to > from ? PAGE_ALIGN(to - from) >> PAGE_SHIFT : 0;
}

/**
 * living_ask_area() - a range of addresses is about to be taken
 *
 * Called by whatever takes one: mmap has asked before, a growing stack is a fault.
 */
int living_ask_area(void)
{
	unsigned long args[6];
	struct living *l;
	enum call call;

	if (!may_be_followed())
		return 0;
	call = call_now(args);
	if (call != CALL_BRK && call != CALL_MREMAP && call != CALL_AIO)
		return 0;
	l = own_mm();
	if (!l)
		return 0;
	if (call == CALL_AIO)
		return ask_mm(l, 1, 1);
	/* A move leaves a hole, and makes one where something was. */
	return ask_mm(l, call == CALL_MREMAP ? 3 : 1, pages_added(call, args));
}

/**
 * living_ask_split() - an mprotect of a mapping, which it may cut
 * @start: of the mapping
 * @end: of the mapping
 */
int living_ask_split(unsigned long start, unsigned long end)
{
	unsigned long args[6], from, to;
	unsigned int cuts;
	struct living *l;

	if (!may_be_followed() || call_now(args) != CALL_MPROTECT)
		return 0;
	from = args[0];
	to = from + PAGE_ALIGN(args[1]);
	cuts = (from > start && from < end) + (to > start && to < end);
	if (!cuts)
		return 0;
	l = own_mm();
	return l ? ask_mm(l, cuts, 0) : 0;
}
