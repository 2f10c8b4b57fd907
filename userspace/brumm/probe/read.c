// SPDX-License-Identifier: GPL-2.0
/* What the BPF programs have kept, in figures. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char *const names[EVENTS_NR] = {
#define NAME(name, NAME) [EVENT_##NAME] = #name,
	EVENTS_TRACED(NAME)
#undef NAME
	[EVENT_REST] = "rest",
};

const char *probe_op_name(uint32_t op)
{
	return op < EVENTS_NR ? names[op] : "?";
}

/* Sums over CPUs */

static void stats_merge(struct event_stats *to, const struct event_stats *st)
{
	hist_merge(&to->time, &st->time);
	to->in_unmap += st->in_unmap;
	to->in_unmap_nr += st->in_unmap_nr;
	to->nodes += st->nodes;
	to->pages += st->pages;
	to->errors += st->errors;
	to->twice += st->twice;
	to->orphans += st->orphans;
	to->several += st->several;
	to->lost += st->lost;
	to->no_room += st->no_room;
}

/* Maps */

/* Begun and not ended, by sub-operation. */
static void count_open(struct probe *p, uint64_t *open)
{
	struct bpf_map *map = p->skel->maps.tasks;
	uint32_t key, *prev = NULL;
	struct event_task t;
	unsigned int i;

	while (!bpf_map__get_next_key(map, prev, &key, sizeof(key))) {
		if (!bpf_map__lookup_elem(map, &key, sizeof(key), &t, sizeof(t), 0)) {
			for (i = 0; i < EVENTS_TRACED_NR; i++)
				open[i] += t.start[i] != 0;
		}
		prev = &key;
	}
}

static void op_of(struct probe_op *op, uint32_t i, const struct event_stats *st,
		  uint64_t open)
{
	op->name = names[i];
	hist_summary(&st->time, &op->time);
	op->sum = st->time.sum;
	op->in_unmap = st->in_unmap;
	op->in_unmap_nr = st->in_unmap_nr;
	op->nodes = st->nodes;
	op->pages = st->pages;
	op->errors = st->errors;
	op->orphans = st->orphans + st->twice;
	op->open = open;
	op->several = st->several;
	op->lost = st->lost;
}

int probe_read(struct probe *p, struct probe_result *r)
{
	size_t nr = (size_t)libbpf_num_possible_cpus(), size, cpu;
	uint64_t open[EVENTS_NR] = { 0 };
	struct event_stats sum, *st;
	uint32_t i;
	int err = 0;

	size = nr * sizeof(*st);
	st = malloc(size);
	if (!st)
		return -ENOMEM;
	*r = (struct probe_result){ .rung = p->rung, .complete = true };
	r->missed = loader_missed(p->skel->obj) - p->missed + p->skel->bss->unwanted;
	count_open(p, open);
	for (i = 0; i < EVENTS_NR && !err; i++) {
		err = bpf_map__lookup_elem(p->skel->maps.stats, &i, sizeof(i),
					   st, size, 0);
		if (err)
			break;
		memset(&sum, 0, sizeof(sum));
		for (cpu = 0; cpu < nr; cpu++)
			stats_merge(&sum, &st[cpu]);
		op_of(&r->op[i], i, &sum, open[i]);
		r->missed += sum.no_room;
		if (r->op[i].lost || r->op[i].orphans || r->op[i].several)
			r->complete = false;
	}
	if (r->missed)
		r->complete = false;
	free(st);
	return err;
}

static int forget_tasks(struct probe *p)
{
	struct bpf_map *map = p->skel->maps.tasks;
	uint32_t key;

	while (!bpf_map__get_next_key(map, NULL, &key, sizeof(key))) {
		int err = bpf_map__delete_elem(map, &key, sizeof(key), 0);

		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

int probe_reset(struct probe *p)
{
	size_t size = (size_t)libbpf_num_possible_cpus() *
		      sizeof(struct event_stats);
	struct event_stats *zero = calloc(1, size);
	uint32_t i;
	int err;

	if (!zero)
		return -ENOMEM;
	probe_pause(p, true);
	err = forget_tasks(p);
	for (i = 0; i < EVENTS_NR && !err; i++)
		err = bpf_map__update_elem(p->skel->maps.stats, &i, sizeof(i),
					   zero, size, BPF_ANY);
	p->missed = loader_missed(p->skel->obj);
	probe_pause(p, false);
	free(zero);
	return err;
}

/* Samples */

static int on_sample(void *ctx, void *data, size_t size)
{
	struct probe *p = ctx;

	return size < sizeof(struct event_sample) ? 0 : p->fn(p->arg, data);
}

int probe_samples(struct probe *p, int timeout_ms,
		  int (*fn)(void *arg, const struct event_sample *s), void *arg)
{
	int ret;

	p->fn = fn;
	p->arg = arg;
	if (!p->ring)
		p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.ring),
					   on_sample, p, NULL);
	if (!p->ring)
		return -errno;
	ret = ring_buffer__poll(p->ring, timeout_ms);
	return ret == -EINTR || ret > 0 ? 0 : ret;
}
