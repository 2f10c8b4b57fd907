/* SPDX-License-Identifier: GPL-2.0 */
/*
 * module/os.h for user space: the kernel's names on top of the C library, with
 * more checks than the kernel makes. The compiler is told to read this file
 * first (-include); the include guard then makes module/os.h empty.
 *
 * Lists, trees and interval trees are the kernel's own, see kernel-headers.
 *
 * Two builds. Without SHIM_THREADS everything runs in one thread, and tests
 * may interleave operations as coroutines (shim/fiber.c). With SHIM_THREADS
 * locks and wait queues are those of POSIX threads.
 */
#ifndef BRUMM_OS_H
#define BRUMM_OS_H

#include "shim/base.h"
/* Lists check what they are told to add and to remove. */
#define CONFIG_LIST_HARDENED	1
#define CONFIG_DEBUG_LIST	1
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/rbtree_augmented.h>
#include <linux/interval_tree_generic.h>
#include "shim/lock.h"
#include "shim/mem.h"
#include "shim/sched.h"

/* Nobody listens. */
#define os_begin(op, pages)	((void)(pages))
#define os_end(op, ...)		((void)0)
#define os_tracing()		false

#endif /* BRUMM_OS_H */
