/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The guard: BPF programs that refuse what would exceed brumm.max. They stay in
 * the kernel without a process, as links that are pinned in a BPF file system.
 */
#ifndef BRUMM_GUARD_GUARD_H
#define BRUMM_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "../../../bpf/guard.h"

#define GUARD_FS	"/sys/fs/bpf"
#define GUARD_DIR	GUARD_FS "/brumm"

struct guard_hook_info {
	const char *name;	/* its pin, too */
	const char *program;
	const char *error;	/* of a refusal, as errno's name */
	const char *what;
};

extern const struct guard_hook_info guard_hooks[GUARD_NR];

/**
 * struct guard_state - what is there
 * @attached: bit per hook
 * @nr: how many
 * @counted: @counts are valid
 */
struct guard_state {
	unsigned int attached;
	unsigned int nr;
	bool counted;
	struct guard_counts counts[GUARD_NR];
};

/* 0; -EACCES: not for this user, or another error. */
int guard_read(struct guard_state *s);

/*
 * Attaches all hooks and pins them; what an earlier run has left half done is
 * replaced. 0, -EALREADY, -EPERM, -ENOENT the module is not loaded, -EOPNOTSUPP, or
 * another error; *@why, to be freed: what the kernel had against it, or NULL.
 */
int guard_on(char **why);

/* Detaches, and returns when no hook runs any more. 0, -ENOENT: there was none. */
int guard_off(void);

/*
 * Is BPF among the security modules? -ENOENT: securityfs does not say. @boot: what
 * lsm= on the kernel's command line should be, if it is not.
 */
int guard_lsm(char *boot, size_t room);

#endif /* BRUMM_GUARD_GUARD_H */
