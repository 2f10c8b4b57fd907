// SPDX-License-Identifier: GPL-2.0
/* What the BPF programs have kept, in figures. */
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
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

static void hist_merge(struct hist *to, const struct hist *h)
{
	unsigned int i;

	to->n += h->n;
	to->sum += h->sum;
	to->squares_low += h->squares_low;
	to->squares_high += h->squares_high;
	if (h->not_min > to->not_min)
		to->not_min = h->not_min;
	if (h->max > to->max)
		to->max = h->max;
	for (i = 0; i < HIST_SLOTS; i++)
		to->slot[i] += h->slot[i];
}

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

/* The value at rank @share * (n - 1), as a quantile of a sorted list has it. */
static double hist_quantile(const struct hist *h, double share)
{
	uint64_t rank = (uint64_t)(share * (double)(h->n - 1) + 0.5), below = 0;
	double least = (double)~h->not_min, most = (double)h->max, v;
	uint32_t i;

	for (i = 0; i < HIST_SLOTS - 1; i++) {
		below += h->slot[i];
		if (below > rank)
			break;
	}
	v = ((double)hist_low(i) + (double)hist_low(i + 1) - 1) / 2;
	if (i == HIST_SLOTS - 1)
		v = most;
	return fmin(fmax(v, least), most);
}

static void summary_of(const struct hist *h, struct summary *s)
{
	double n = (double)h->n, squares;

	*s = (struct summary){ .n = h->n };
	if (!h->n)
		return;
	s->mean = (double)h->sum / n;
	s->min = (double)~h->not_min;
	s->max = (double)h->max;
	s->p50 = hist_quantile(h, 0.5);
	s->p99 = hist_quantile(h, 0.99);
	if (h->n < 2)
		return;
	squares = ldexp((double)h->squares_high, 32) + (double)h->squares_low;
	s->sd = sqrt(fmax(0, squares - n * s->mean * s->mean) / (n - 1));
	s->error = gsl_cdf_tdist_Pinv(0.975, n - 1) * s->sd / sqrt(n);
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

/* Runs that the kernel left out, since the program was running already. */
static uint64_t missed_runs(struct probe *p)
{
	struct bpf_program *prog;
	uint64_t missed = 0;

	bpf_object__for_each_program(prog, p->skel->obj) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (bpf_program__autoload(prog) &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
			missed += info.recursion_misses;
	}
	return missed;
}

static void op_of(struct probe_op *op, uint32_t i, const struct event_stats *st,
		  uint64_t open)
{
	op->name = names[i];
	summary_of(&st->time, &op->time);
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
	r->missed = missed_runs(p) - p->missed + p->skel->bss->unwanted;
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
	p->missed = missed_runs(p);
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
