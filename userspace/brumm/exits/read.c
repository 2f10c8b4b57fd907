// SPDX-License-Identifier: GPL-2.0
/* What the BPF programs have kept, in figures. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "internal.h"

/* No step of a removal for so long: there is none any more, ns. */
#define QUIET	50000000u

static const char *const names[EXIT_STATS_NR] = {
#define NAME(name, NAME, kind) [PHASE_##NAME] = #name,
	EXIT_PHASES(NAME)
#undef NAME
	[PHASE_WHOLE] = "whole",
	[PHASE_SIGNALLED] = "signalled",
	[PHASE_SUBTHREADS] = "subthreads",
	[PHASE_PARENT] = "parent",
	[PHASE_RCU] = "rcu",
};

static const char *const kinds[EXIT_STATS_NR] = {
#define KIND(name, NAME, kind) [PHASE_##NAME] = kind,
	EXIT_PHASES(KIND)
#undef KIND
};

const char *exits_phase_name(uint32_t phase)
{
	return phase < EXIT_STATS_NR ? names[phase] : "?";
}

const char *exits_where_name(uint32_t where)
{
	static const char *const where_names[WHERES_NR] = {
		[WHERE_EXIT] = "exit",
		[WHERE_OTHERS] = "others",
		[WHERE_DEFERRED] = "deferred",
		[WHERE_MACHINE] = "machine",
	};

	return where < WHERES_NR ? where_names[where] : "?";
}

/* Sums over CPUs */

static void stats_merge(struct exit_stats *to, const struct exit_stats *st)
{
	unsigned int i;

	hist_merge(&to->time, &st->time);
	for (i = 0; i < WHERES_NR; i++) {
		to->sums[i].n += st->sums[i].n;
		to->sums[i].cpu += st->sums[i].cpu;
		to->sums[i].wait += st->sums[i].wait;
		to->sums[i].runq += st->sums[i].runq;
		to->sums[i].kids += st->sums[i].kids;
		if (st->sums[i].last > to->sums[i].last)
			to->sums[i].last = st->sums[i].last;
	}
	to->misplaced += st->misplaced;
	to->orphans += st->orphans;
	to->lost += st->lost;
}

static size_t stats_size(void)
{
	return (size_t)libbpf_num_possible_cpus() * sizeof(struct exit_stats);
}

int exits_stats(struct exits *x, uint32_t phase, struct exit_stats *sum)
{
	size_t size = stats_size(), i;
	struct exit_stats *st = malloc(size);
	int err;

	if (!st)
		return -ENOMEM;
	err = bpf_map__lookup_elem(x->skel->maps.stats, &phase, sizeof(phase), st,
				   size, 0);
	memset(sum, 0, sizeof(*sum));
	for (i = 0; !err && i < size / sizeof(*st); i++)
		stats_merge(sum, &st[i]);
	free(st);
	return err;
}

static uint64_t count_keys(struct bpf_map *map)
{
	uint32_t key, *prev = NULL;
	uint64_t n = 0;

	while (!bpf_map__get_next_key(map, prev, &key, sizeof(key))) {
		prev = &key;
		n++;
	}
	return n;
}

static void phase_of(struct exits *x, struct exits_phase *p, uint32_t i,
		     const struct exit_stats *st)
{
	unsigned int w;

	p->name = names[i];
	p->kind = kinds[i];
	hist_summary(&st->time, &p->time);
	p->misplaced = st->misplaced;
	p->orphans = st->orphans;
	p->lost = st->lost;
	for (w = 0; w < WHERES_NR; w++) {
		const struct exit_sums *s = &st->sums[w];

		p->sums[w] = *s;
		p->net[w] = fmax(0, (double)s->cpu - (double)s->n * x->cost.inside -
				    (double)s->kids * x->cost.around);
	}
}

int exits_read(struct exits *x, struct exits_result *r)
{
	struct exit_stats st;
	uint32_t i;
	int err = 0;

	*r = (struct exits_result){ .rung = x->rung, .cost = x->cost };
	memcpy(r->hook, x->hook, sizeof(r->hook));
	r->missed = loader_missed(x->skel->obj) - x->missed;
	r->no_room = x->skel->bss->no_room + x->skel->bss->unwanted;
	r->deep = x->skel->bss->too_deep;
	r->open = count_keys(x->skel->maps.tasks);
	r->zombies = count_keys(x->skel->maps.zombies);
	r->nets = x->skel->bss->nets_ours;
	r->complete = !r->missed && !r->no_room && !r->deep && !r->open;
	for (i = 0; i < EXIT_STATS_NR && !err; i++) {
		err = exits_stats(x, i, &st);
		if (err)
			break;
		phase_of(x, &r->phase[i], i, &st);
		if (st.misplaced || st.orphans || st.lost)
			r->complete = false;
	}
	for (i = 0; i < HOOKS_NR; i++)
		if (r->hook[i].why_not && i != HOOK_EMPTY)
			r->complete = false;
	r->probe = r->phase[PHASE_WHOLE].sums[WHERE_EXIT].wait;
	return err;
}

static void empty(struct bpf_map *map)
{
	uint32_t key;

	while (!bpf_map__get_next_key(map, NULL, &key, sizeof(key)))
		if (bpf_map__delete_elem(map, &key, sizeof(key), 0))
			return;
}

/* While nothing is active. */
int exits_reset(struct exits *x)
{
	struct exit_stats *zero = calloc(1, stats_size());
	uint32_t i;
	int err = 0;

	if (!zero)
		return -ENOMEM;
	for (i = 0; i < EXIT_STATS_NR && !err; i++)
		err = bpf_map__update_elem(x->skel->maps.stats, &i, sizeof(i), zero,
					   stats_size(), BPF_ANY);
	free(zero);
	empty(x->skel->maps.zombies);
	x->skel->bss->no_room = 0;
	x->skel->bss->too_deep = 0;
	x->missed = loader_missed(x->skel->obj);
	return err;
}

/* The end */

static uint64_t times(struct exits *x, uint32_t phase)
{
	struct exit_stats st;
	uint64_t n = 0;
	int i;

	if (!exits_stats(x, phase, &st))
		for (i = 0; i < WHERES_NR; i++)
			n += st.sums[i].n;
	return n;
}

/* A reaped task is freed after a grace period. */
static bool tasks_freed(struct exits *x)
{
	return x->hook[HOOK_TASK].why_not || x->hook[HOOK_RELEASE].why_not ||
	       times(x, PHASE_TASK) >= times(x, PHASE_RELEASE) +
				       times(x, PHASE_RELEASE_THREAD);
}

static bool settled(struct exits *x)
{
	return !__atomic_load_n(&x->skel->bss->records, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&x->skel->bss->nets_ours, __ATOMIC_SEQ_CST) &&
	       tasks_freed(x);
}

/*
 * How many steps that takes nobody says: page cache may hold a part of a cgroup for
 * ever. So until there was one, and none any more for a while.
 */
static void settle_groups(struct exits *x, uint64_t until)
{
	uint64_t n = 0, at = cli_now(), now;

	while ((now = cli_now()) < until && !cli_signal()) {
		uint64_t seen = times(x, PHASE_CGROUP);

		if (seen != n)
			at = now;
		n = seen;
		if (n && now - at > QUIET)
			return;
		poll(NULL, 0, 5);
	}
}

void exits_settle(struct exits *x, uint64_t ns, bool removed)
{
	uint64_t until = cli_now() + ns;

	if (removed && !x->hook[HOOK_OFFLINE].why_not)
		settle_groups(x, until);
	while (!settled(x) && cli_now() < until && !cli_signal())
		poll(NULL, 0, 5);
}

/* Samples */

static int on_sample(void *ctx, void *data, size_t size)
{
	struct exits *x = ctx;

	return size < sizeof(struct exit_sample) ? 0 : x->fn(x->arg, data);
}

int exits_samples(struct exits *x, int timeout_ms,
		  int (*fn)(void *arg, const struct exit_sample *s), void *arg)
{
	int ret;

	x->fn = fn;
	x->arg = arg;
	if (!x->ring)
		x->ring = ring_buffer__new(bpf_map__fd(x->skel->maps.ring),
					   on_sample, x, NULL);
	if (!x->ring)
		return -errno;
	ret = ring_buffer__poll(x->ring, timeout_ms);
	return ret == -EINTR || ret > 0 ? 0 : ret;
}
