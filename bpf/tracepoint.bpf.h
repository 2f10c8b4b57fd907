/* SPDX-License-Identifier: GPL-2.0 */
/* A handler of a tracepoint's arguments as programs for the two ways to attach. */
#ifndef BRUMM_TRACEPOINT_BPF_H
#define BRUMM_TRACEPOINT_BPF_H

#define TRACEPOINT(name, handler)	TRACEPOINT_AS(name, name, handler)

/* Under another name, where a tracepoint has several programs. */
#define TRACEPOINT_AS(as, name, handler)				\
SEC("tp_btf/" #name)							\
int btf_##as(u64 *ctx)							\
{									\
	return handler(ctx);						\
}									\
SEC("raw_tp/" #name)							\
int raw_##as(u64 *ctx)							\
{									\
	return handler(ctx);						\
}

#endif /* BRUMM_TRACEPOINT_BPF_H */
