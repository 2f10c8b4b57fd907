/* SPDX-License-Identifier: GPL-2.0 */
/* The guard's hooks, for its programs and for who loads them. */
#ifndef BRUMM_GUARD_H
#define BRUMM_GUARD_H

/*
 * X(NAME, "name", errno of a refusal, "what is asked about"); the program is
 * guard_name.
 */
#define GUARD_HOOKS(X)							\
	X(FORK, fork, EAGAIN, "fork, clone")				\
	X(EXEC, exec, ENOMEM, "execve")					\
	X(MMAP, mmap, ENOMEM, "mmap, shmat")				\
	X(AREA, area, ENOMEM, "brk, mremap, io_setup")			\
	X(SPLIT, split, ENOMEM, "mprotect of a part of a mapping")

#define GUARD_HOOK_ENUM(name, ...)	GUARD_##name,
enum guard_hook {
	GUARD_HOOKS(GUARD_HOOK_ENUM)
	GUARD_NR,
};

/**
 * struct guard_counts - of a hook, since the guard was switched on
 * @refused: operations
 * @audited: those that would have been refused, but for the mode audit
 */
struct guard_counts {
	unsigned long long refused;
	unsigned long long audited;
};

#endif /* BRUMM_GUARD_H */
