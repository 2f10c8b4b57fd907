// SPDX-License-Identifier: GPL-2.0
/* What is told of exits, to people and to programs. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../cli.h"
#include "exits.h"

/**
 * struct kind - what phases of one kind took; CPU time is net
 * @name: as brumm.price has it
 * @n: how often its first phase was met
 * @cpu: CPU time in exits, ns
 * @wait: asleep
 * @runq: ready, and not running
 * @others: CPU time of others
 * @deferred: CPU time of what came later
 */
struct kind {
	const char *name;
	uint64_t n;
	double cpu, wait, runq, others, deferred;
};

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *sums_json(const struct exit_sums *s, double net)
{
	if (!s->n)
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:I, s:I, s:I}",
			 "n", (json_int_t)s->n, "cpu", (json_int_t)s->cpu,
			 "net", real(net), "wait", (json_int_t)s->wait,
			 "runq", (json_int_t)s->runq,
			 "last_ns", (json_int_t)s->last);
}

static json_t *phase_json(const struct exits_phase *p)
{
	json_t *j = summary_json(&p->time, "probe");
	unsigned int w;

	if (!j)
		return NULL;
	json_object_set_new(j, "kind", p->kind ? json_string(p->kind) : json_null());
	for (w = 0; w < WHERES_NR; w++)
		json_object_set_new(j, exits_where_name(w),
				    sums_json(&p->sums[w], p->net[w]));
	json_object_set_new(j, "orphans", json_integer((json_int_t)p->orphans));
	json_object_set_new(j, "misplaced", json_integer((json_int_t)p->misplaced));
	json_object_set_new(j, "lost", json_integer((json_int_t)p->lost));
	return j;
}

static json_t *hooks_json(const struct exits_result *r)
{
	json_t *j = json_array();
	unsigned int i;

	for (i = 0; i < HOOKS_NR; i++)
		if (i != HOOK_EMPTY)
			json_array_append_new(j, json_pack("{s:s, s:s?, s:s?}",
				"hook", r->hook[i].name,
				"function", r->hook[i].function,
				"why_not", r->hook[i].why_not));
	return j;
}

/* The whole of the exits, and the same as the sum of the parts. */
static json_t *exits_of(const struct exits_result *r)
{
	const struct exits_phase *whole = &r->phase[PHASE_WHOLE];
	uint64_t cpu = 0, wait = 0, runq = 0;
	double net = 0;
	unsigned int i;

	for (i = 0; i < PHASES_NR; i++) {
		cpu += r->phase[i].sums[WHERE_EXIT].cpu;
		wait += r->phase[i].sums[WHERE_EXIT].wait;
		runq += r->phase[i].sums[WHERE_EXIT].runq;
		net += r->phase[i].net[WHERE_EXIT];
	}
	return json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:I}",
			 "n", (json_int_t)whole->time.n,
			 "whole", (json_int_t)whole->sums[WHERE_EXIT].cpu,
			 "cpu", (json_int_t)cpu, "net", real(net),
			 "wait", (json_int_t)wait, "runq", (json_int_t)runq,
			 "probe", (json_int_t)r->probe);
}

/* Kinds */

static struct kind *kind_of(struct kind *list, const struct exits_phase *p)
{
	while (list->name && strcmp(list->name, p->kind))
		list++;
	if (!list->name) {
		list->name = p->kind;
		list->n = p->sums[WHERE_EXIT].n + p->sums[WHERE_OTHERS].n +
			  p->sums[WHERE_DEFERRED].n;
	}
	return list;
}

/* Ended by one without a name. */
static void kinds_of(const struct exits_result *r, struct kind list[PHASES_NR + 1])
{
	unsigned int i, w;

	memset(list, 0, (PHASES_NR + 1) * sizeof(*list));
	for (i = 0; i < PHASES_NR; i++) {
		const struct exits_phase *p = &r->phase[i];
		struct kind *k;

		if (!p->kind)
			continue;
		k = kind_of(list, p);
		k->cpu += p->net[WHERE_EXIT];
		k->others += p->net[WHERE_OTHERS];
		k->deferred += p->net[WHERE_DEFERRED];
		for (w = 0; w < WHERE_MACHINE; w++) {
			k->wait += (double)p->sums[w].wait;
			k->runq += (double)p->sums[w].runq;
		}
	}
}

json_t *exits_kinds_json(const struct exits_result *r)
{
	struct kind list[PHASES_NR + 1], *k;
	json_t *j = json_object();

	kinds_of(r, list);
	for (k = list; k->name; k++)
		json_object_set_new(j, k->name, json_pack(
			"{s:I, s:o, s:o, s:o, s:o, s:o}",
			"n", (json_int_t)k->n, "cpu_ns", real(k->cpu),
			"others_cpu_ns", real(k->others),
			"deferred_cpu_ns", real(k->deferred),
			"wait_ns", real(k->wait), "runq_ns", real(k->runq)));
	return j;
}

json_t *exits_json(const struct exits_result *r)
{
	json_t *phases = json_object();
	unsigned int i;

	for (i = 0; i < EXIT_STATS_NR; i++)
		if (i != PHASE_EMPTY)
			json_object_set_new(phases, r->phase[i].name,
					    phase_json(&r->phase[i]));
	return json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}}",
			 "schema", "brumm-exits/1", "attached", r->rung,
			 "complete", r->complete,
			 "missed", (json_int_t)r->missed,
			 "no_room", (json_int_t)r->no_room,
			 "deep", (json_int_t)r->deep,
			 "open", (json_int_t)r->open,
			 "zombies", (json_int_t)r->zombies,
			 "nets_pending", (json_int_t)r->nets,
			 "hooks", hooks_json(r), "exits", exits_of(r),
			 "phases", phases, "kinds", exits_kinds_json(r),
			 "probe_ns", "inside", real(r->cost.inside),
			 "around", real(r->cost.around),
			 "pair", real(r->cost.pair),
			 "pair_error", real(r->cost.pair_error));
}

/* For people */

static const char *time_text(double ns, char *buf, size_t size)
{
	if (!isfinite(ns))
		return "-";
	return brumm_format_time((uint64_t)(ns + 0.5), buf, size);
}

static void print_row(const char *name, const char *where, const double *v, size_t n,
		      uint64_t count, FILE *f)
{
	char t[16];
	size_t i;

	fprintf(f, "%-15s%-9s%9" PRIu64, name, where, count);
	for (i = 0; i < n; i++)
		fprintf(f, " %9s", time_text(v[i], t, sizeof(t)));
	fputc('\n', f);
}

static void print_phase(const struct exits_phase *p, unsigned int w, FILE *f)
{
	const struct exit_sums *s = &p->sums[w];
	double n = (double)s->n;
	const double v[] = { p->net[w], (double)s->wait, (double)s->runq, p->net[w] / n,
			     w == WHERE_EXIT ? p->time.p99 : NAN,
			     w == WHERE_EXIT ? p->time.max : NAN };

	if (s->n)
		print_row(p->name, exits_where_name(w), v, ARRAY_SIZE(v), s->n, f);
}

static void print_delay(const struct exits_phase *p, const char *what, FILE *f)
{
	char t[3][16];

	if (p->time.n)
		fprintf(f, "%s: %zu times, mean %s, p99 %s, longest %s\n", what, p->time.n,
			time_text(p->time.mean, t[0], sizeof(t[0])),
			time_text(p->time.p99, t[1], sizeof(t[1])),
			time_text(p->time.max, t[2], sizeof(t[2])));
}

static void print_troubles(const struct exits_result *r, FILE *f)
{
	uint64_t orphans = 0, misplaced = 0, lost = 0;
	unsigned int i;

	for (i = 0; i < EXIT_STATS_NR; i++) {
		orphans += r->phase[i].orphans;
		misplaced += r->phase[i].misplaced;
		lost += r->phase[i].lost;
	}
	for (i = 0; i < HOOKS_NR; i++)
		if (r->hook[i].why_not && i != HOOK_EMPTY)
			fprintf(f, "not measured apart: %s%s%s: %s\n", r->hook[i].name,
				r->hook[i].function ? " by " : "",
				r->hook[i].function ?: "", r->hook[i].why_not);
	fprintf(f, "attached by %s; missed %" PRIu64 ", orphaned %" PRIu64
		", misplaced %" PRIu64 ", no room %" PRIu64 ", not ended %" PRIu64
		", not reaped %" PRIu64 ", samples lost %" PRIu64 "\n",
		r->rung, r->missed, orphans, misplaced, r->no_room + r->deep,
		r->open, r->zombies, lost);
	if (isfinite(r->cost.pair))
		fprintf(f, "CPU is without the probe, which costs a phase %.0f ns (+/- %.0f)\n",
			r->cost.pair, r->cost.pair_error);
}

void exits_print(const struct exits_result *r, FILE *f)
{
	unsigned int i, w;

	fprintf(f, "%-24s%9s %9s %9s %9s %9s %9s %9s\n", "phase", "n", "CPU",
		"asleep", "run queue", "CPU each", "p99", "max");
	for (w = 0; w < WHERES_NR; w++)
		for (i = 0; i < PHASES_NR; i++)
			print_phase(&r->phase[i], w, f);
	print_phase(&r->phase[PHASE_RCU], WHERE_MACHINE, f);
	print_delay(&r->phase[PHASE_WHOLE], "an exit, from the begin to the last switch", f);
	print_delay(&r->phase[PHASE_SIGNALLED], "from SIGKILL to the exit", f);
	print_delay(&r->phase[PHASE_SUBTHREADS], "dead, until its threads were", f);
	print_delay(&r->phase[PHASE_PARENT], "dead, until its parent reaped it", f);
	print_troubles(r, f);
}

void exits_print_kinds(const struct exits_result *r, FILE *f)
{
	struct kind list[PHASES_NR + 1], *k;

	kinds_of(r, list);
	fprintf(f, "  %-24s%9s %9s %9s %9s %9s %9s\n", "measured", "n", "CPU",
		"by others", "deferred", "asleep", "run queue");
	for (k = list; k->name; k++) {
		const double v[] = { k->cpu, k->others, k->deferred, k->wait, k->runq };

		if (k->n || k->cpu > 0) {
			fputs("  ", f);
			print_row(k->name, "", v, ARRAY_SIZE(v), k->n, f);
		}
	}
}
