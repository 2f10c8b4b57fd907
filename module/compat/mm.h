/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions: memory management. */
#ifndef BRUMM_COMPAT_MM_H
#define BRUMM_COMPAT_MM_H

#include <linux/mm.h>
#include <linux/version.h>

/* 6.3 made vm_flags read-only, bc292ab00f6c ("mm: introduce vma->vm_flags wrappers"). */
static inline void compat_vm_flags_set(struct vm_area_struct *vma,
				       unsigned long flags)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

#endif /* BRUMM_COMPAT_MM_H */
