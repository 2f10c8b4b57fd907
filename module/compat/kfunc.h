/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions: functions that BPF programs may call. */
#ifndef BRUMM_COMPAT_KFUNC_H
#define BRUMM_COMPAT_KFUNC_H

#include <linux/btf.h>
#include <linux/btf_ids.h>

/* 6.2, 57e7c169cd6a ("bpf: Add __bpf_kfunc tag for marking kernel functions as kfuncs"). */
#ifndef __bpf_kfunc
#define __bpf_kfunc	__used noinline
#endif

/* 6.9, 6f3189f38a3e ("bpf: treewide: Annotate BPF kfuncs in BTF"). */
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START(name)	BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)	BTF_SET8_END(name)
#endif

#endif /* BRUMM_COMPAT_KFUNC_H */
