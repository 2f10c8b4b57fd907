// SPDX-License-Identifier: GPL-2.0
/*
 * Times of the sub-operations of brumm, from its tracepoints.
 *
 * Each handler is there three times, once for each way to attach; user space
 * loads one of the sets, see userspace/brumm/probe/. All get numbers only, and
 * need no types of the module.
 *
 * What happens between reading the clock at the begin and at the end is the
 * probe's own share in a time: the clock is read as the last thing there, and as
 * the first thing here.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events.h"
#include "record.bpf.h"
#include "wanted.bpf.h"

#define TASKS		16384

char LICENSE[] SEC("license") = "GPL";

/* Set before loading. */
const volatile bool filtered;
const volatile bool samples;

/* Nothing is taken before all is attached, or after it was told to stop. */
bool active;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS_NR);
	__type(key, u32);
	__type(value, struct event_stats);
} stats SEC(".maps");

/* LRU, so that those who died in the middle go by themselves. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, struct event_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

/* What an end says. */
struct end {
	u64 now;
	u64 cgroup;
	u64 nodes;
	u64 pages;
	u64 of;
	s64 err;
};

static const struct event_task no_task;

static struct event_stats *stats_of(u32 op)
{
	return bpf_map_lookup_elem(&stats, &op);
}

static bool is_part(u32 op)
{
	return op == EVENT_LOOKUP || op == EVENT_ZAP || op == EVENT_REMOVE;
}

static void send(struct event_stats *st, u32 op, u64 ns, const struct end *e)
{
	struct event_sample *s = bpf_ringbuf_reserve(&ring, sizeof(*s), 0);

	if (!s) {
		add(&st->lost, 1);
		return;
	}
	s->end = e->now;
	s->ns = ns;
	s->cgroup = e->cgroup;
	s->nodes = e->nodes;
	s->pages = e->pages;
	s->tid = (u32)bpf_get_current_pid_tgid();
	s->op = op;
	s->err = e->err;
	s->pad = 0;
	bpf_ringbuf_submit(s, 0);
}

/* Is the sponsor one that counts? INFO, which fires the empty pair, has none. */
static bool counts(struct event_stats *st, u32 op, const struct end *e)
{
	if (!filtered || op == EVENT_EMPTY)
		return true;
	if (e->cgroup == EVENT_SEVERAL)
		add(&st->several, 1);
	return bpf_map_lookup_elem(&wanted, &e->cgroup);
}

static void record(u32 op, u64 ns, const struct end *e, bool in_unmap)
{
	struct event_stats *st = stats_of(op);

	if (!st || !counts(st, op, e))
		return;
	hist_add(&st->time, ns);
	add(&st->nodes, e->nodes);
	add(&st->pages, e->pages);
	if (in_unmap) {
		add(&st->in_unmap, ns);
		add(&st->in_unmap_nr, 1);
	}
	if (e->err)
		add(&st->errors, 1);
	if (samples)
		send(st, op, ns, e);
}

static __noinline int on_begin(u32 op)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct event_stats *st;
	struct event_task *t;

	if (!active || op >= EVENTS_TRACED_NR)
		return 0;
	t = bpf_map_lookup_elem(&tasks, &tid);
	if (!t) {
		bpf_map_update_elem(&tasks, &tid, &no_task, BPF_ANY);
		t = bpf_map_lookup_elem(&tasks, &tid);
	}
	if (!t) {
		st = stats_of(op);
		if (st)
			add(&st->no_room, 1);
		return 0;
	}
	if (t->start[op]) {
		st = stats_of(op);
		if (st)
			add(&st->twice, 1);
	}
	if (op == EVENT_UNMAP)
		t->parts = 0;
	t->left = 0;
	t->start[op] = bpf_ktime_get_ns();
	return 0;
}

/*
 * How long it took, or the share of this sponsor in it; the last one gets what
 * is left. 0 with *@orphan set: no begin was seen.
 */
static u64 time_taken(struct event_task *t, u32 op, const struct end *e,
		      bool *orphan)
{
	u64 ns;

	*orphan = false;
	if (t->start[op]) {
		ns = e->now > t->start[op] ? e->now - t->start[op] : 0;
		t->start[op] = 0;
		if (e->of <= e->nodes)
			return ns;
		t->left_op = op;
		t->left_ns = ns;
		t->left = e->of;
	} else if (!t->left || t->left_op != op) {
		*orphan = true;
		return 0;
	}
	if (e->nodes >= t->left) {
		t->left = 0;
		return t->left_ns;
	}
	ns = t->left_ns * e->nodes / t->left;
	t->left_ns -= ns;
	t->left -= e->nodes;
	return ns;
}

static __noinline int on_end(u32 op, const struct end *e)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	bool orphan = true, in_unmap = false;
	struct event_stats *st;
	struct event_task *t;
	u64 ns = 0, rest;

	if (!active || !e || op >= EVENTS_TRACED_NR)
		return 0;
	t = bpf_map_lookup_elem(&tasks, &tid);
	if (t)
		ns = time_taken(t, op, e, &orphan);
	if (!t || orphan) {
		st = stats_of(op);
		if (st)
			add(&st->orphans, 1);
		return 0;
	}
	if (is_part(op) && t->start[EVENT_UNMAP]) {
		t->parts += ns;
		in_unmap = true;
	}
	record(op, ns, e, in_unmap);
	if (op == EVENT_UNMAP) {
		rest = ns > t->parts ? ns - t->parts : 0;
		record(EVENT_REST, rest, e, false);
	}
	return 0;
}

/* The ways to attach: arguments in 64 bits each, or a record in memory. */

struct begin_record {
	u64 common;
	u64 pages;
};

struct end_record {
	u64 common;
	u64 cgroup;
	u64 nodes;
	u64 pages;
	u64 of;
	s32 err;
};

static int end_raw(u32 op, const u64 *args)
{
	struct end e = {
		.now = bpf_ktime_get_ns(),
		.cgroup = args[0],
		.nodes = args[1],
		.pages = args[2],
		.of = args[3],
		.err = (s32)args[4],
	};

	return on_end(op, &e);
}

static int end_record(u32 op, const struct end_record *r)
{
	struct end e = {
		.now = bpf_ktime_get_ns(),
		.cgroup = r->cgroup,
		.nodes = r->nodes,
		.pages = r->pages,
		.of = r->of,
		.err = r->err,
	};

	return on_end(op, &e);
}

#define HANDLERS(name, NAME)						\
SEC("tp_btf/brumm_" #name "_begin")					\
int btf_##name##_begin(u64 *ctx)					\
{									\
	return on_begin(EVENT_##NAME);					\
}									\
SEC("tp_btf/brumm_" #name "_end")					\
int btf_##name##_end(u64 *ctx)						\
{									\
	return end_raw(EVENT_##NAME, ctx);				\
}									\
SEC("raw_tp/brumm_" #name "_begin")					\
int raw_##name##_begin(u64 *ctx)					\
{									\
	return on_begin(EVENT_##NAME);					\
}									\
SEC("raw_tp/brumm_" #name "_end")					\
int raw_##name##_end(u64 *ctx)						\
{									\
	return end_raw(EVENT_##NAME, ctx);				\
}									\
SEC("tp/brumm/brumm_" #name "_begin")					\
int rec_##name##_begin(struct begin_record *ctx)			\
{									\
	return on_begin(EVENT_##NAME);					\
}									\
SEC("tp/brumm/brumm_" #name "_end")					\
int rec_##name##_end(struct end_record *ctx)				\
{									\
	return end_record(EVENT_##NAME, ctx);				\
}

EVENTS_TRACED(HANDLERS)
