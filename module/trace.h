/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: one pair a sub-operation, Documentation/abi/tracepoints.md. The
 * names have the prefix, as is the rule, since BPF attaches to raw tracepoints by
 * the name alone.
 *
 * All take numbers only, and the same ones: whoever attaches needs no types of
 * this module.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM brumm

#if !defined(BRUMM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define BRUMM_TRACE_H

#include <linux/jump_label.h>
#include <linux/tracepoint.h>

/* On while anybody listens to any of the events. */
DECLARE_STATIC_KEY_FALSE(brumm_tracing);
int brumm_trace_reg(void);
void brumm_trace_unreg(void);

DECLARE_EVENT_CLASS(brumm_begin,
	TP_PROTO(u64 pages),
	TP_ARGS(pages),
	TP_STRUCT__entry(
		__field(u64, pages)
	),
	TP_fast_assign(
		__entry->pages = pages;
	),
	TP_printk("pages=%llu", __entry->pages)
);

DECLARE_EVENT_CLASS(brumm_end,
	TP_PROTO(u64 cgroup, u64 nodes, u64 pages, u64 of, int err),
	TP_ARGS(cgroup, nodes, pages, of, err),
	TP_STRUCT__entry(
		__field(u64, cgroup)
		__field(u64, nodes)
		__field(u64, pages)
		__field(u64, of)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->cgroup = cgroup;
		__entry->nodes = nodes;
		__entry->pages = pages;
		__entry->of = of;
		__entry->err = err;
	),
	TP_printk("cgroup=%llu nodes=%llu pages=%llu of=%llu err=%d",
		  __entry->cgroup, __entry->nodes, __entry->pages, __entry->of,
		  __entry->err)
);

#define BRUMM_TRACE_PAIR(name)						\
DEFINE_EVENT_FN(brumm_begin, brumm_##name##_begin,			\
	TP_PROTO(u64 pages),						\
	TP_ARGS(pages),							\
	brumm_trace_reg, brumm_trace_unreg);				\
DEFINE_EVENT_FN(brumm_end, brumm_##name##_end,				\
	TP_PROTO(u64 cgroup, u64 nodes, u64 pages, u64 of, int err),	\
	TP_ARGS(cgroup, nodes, pages, of, err),				\
	brumm_trace_reg, brumm_trace_unreg)

BRUMM_TRACE_PAIR(unmap);
BRUMM_TRACE_PAIR(reduce);
BRUMM_TRACE_PAIR(lookup);
BRUMM_TRACE_PAIR(zap);
BRUMM_TRACE_PAIR(remove);
BRUMM_TRACE_PAIR(map);
BRUMM_TRACE_PAIR(charge);
BRUMM_TRACE_PAIR(fault);
BRUMM_TRACE_PAIR(release);
BRUMM_TRACE_PAIR(reclaim);
/* Around nothing: what those who attach cost. */
BRUMM_TRACE_PAIR(empty);

#endif /* BRUMM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
