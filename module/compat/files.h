/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions: open files. */
#ifndef BRUMM_COMPAT_FILES_H
#define BRUMM_COMPAT_FILES_H

#include <linux/magic.h>

/*
 * 6.9, cb12fd8e0dab ("pidfd: add pidfs"): a file system of its own, whose inodes
 * may say that they are regular files. Before that it is an anonymous inode.
 */
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC	0x50494446
#endif

#endif /* BRUMM_COMPAT_FILES_H */
