/* SPDX-License-Identifier: GPL-2.0 */
/* A handler of a tracepoint's arguments as programs for the two ways to attach. */
#ifndef BRUMM_TRACEPOINT_BPF_H
#define BRUMM_TRACEPOINT_BPF_H

#define TRACEPOINT(name, handler)					\
SEC("tp_btf/" #name)							\
int btf_##name(u64 *ctx)						\
{									\
	return handler(ctx);						\
}									\
SEC("raw_tp/" #name)							\
int raw_##name(u64 *ctx)						\
{									\
	return handler(ctx);						\
}

#endif /* BRUMM_TRACEPOINT_BPF_H */
