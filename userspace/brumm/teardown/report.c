// SPDX-License-Identifier: GPL-2.0
/* What is told of a teardown, to people and to programs. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "teardown.h"

static const struct {
	const char *key, *what;
} stages[STAGES] = {
	[STAGE_KILLED] = { "killed_ns", "all told to die" },
	[STAGE_TASKS] = { "tasks_ns", "processes gone" },
	[STAGE_DEVICE] = { "device_ns", "device mappings back" },
	[STAGE_MEMORY] = { "memory_ns", "memory back" },
	[STAGE_REMOVED] = { "removed_ns", "cgroup removed" },
};

static json_t *count(uint64_t v)
{
	return cli_json_time(v);
}

static const char *bytes(uint64_t v, char *buf, size_t size)
{
	if (v == BRUMM_NO_LIMIT)
		snprintf(buf, size, "?");
	else if (v >= 10u << 20)
		snprintf(buf, size, "%llu MiB", (unsigned long long)(v >> 20));
	else
		snprintf(buf, size, "%llu KiB", (unsigned long long)(v >> 10));
	return buf;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a == BRUMM_NO_LIMIT || b == BRUMM_NO_LIMIT || a < b ?
	       BRUMM_NO_LIMIT : a - b;
}

static uint64_t total(const struct teardown *t)
{
	uint64_t all = 0;
	int i;

	for (i = 0; i < STAGES; i++)
		if (t->at[i] != BRUMM_NO_LIMIT && t->at[i] > all)
			all = t->at[i];
	return all;
}

static bool gentle(const struct teardown *t)
{
	return t->opts->pace || t->opts->slo;
}

/*
 * Without steps the exits would have run on all CPUs that they may use at
 * once: at best their CPU time divided by those.
 */
static uint64_t unpaced(const struct teardown *t)
{
	uint64_t cpu = minus(t->after.cpu, t->before.cpu);
	cpu_set_t set = t->opts->cpus;
	uint64_t n;

	if (!t->opts->on_cpus && sched_getaffinity(0, sizeof(set), &set))
		return BRUMM_NO_LIMIT;
	n = (uint64_t)CPU_COUNT(&set);
	if (n > t->tasks.n)
		n = t->tasks.n;
	return !n || cpu == BRUMM_NO_LIMIT ? BRUMM_NO_LIMIT : cpu / n;
}

/* What the steps cost. Where CPU time was stolen that is nothing. */
static uint64_t longer(const struct teardown *t, uint64_t plain)
{
	uint64_t all = t->at[STAGE_TASKS];

	if (all == BRUMM_NO_LIMIT || plain == BRUMM_NO_LIMIT)
		return BRUMM_NO_LIMIT;
	return all > plain ? all - plain : 0;
}

/*
 * Expected / measured: of what the processes do in their own context. What is
 * done later by kernel threads is in neither.
 */
static double ratio(const struct teardown *t)
{
	uint64_t cpu = minus(t->after.cpu, t->before.cpu);
	const struct forecast *f = &t->forecast;
	double later = isnan(f->deferred) ? 0 : f->deferred;

	return cpu == BRUMM_NO_LIMIT || !cpu ? NAN :
					       (f->serial - later) / (double)cpu;
}

static json_t *stages_json(const struct teardown *t)
{
	json_t *j = json_object();
	int i;

	for (i = 0; i < STAGES; i++)
		json_object_set_new(j, stages[i].key, cli_json_time(t->at[i]));
	return j;
}

static json_t *gentle_json(const struct teardown *t)
{
	const struct gentle *g = &t->gentle;
	uint64_t plain = unpaced(t);

	if (!gentle(t))
		return json_null();
	return json_pack("{s:o, s:o, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o}",
			 "pace_ns", t->opts->pace ? count(t->opts->pace) : json_null(),
			 "slo_ns", t->opts->slo ? count(t->opts->slo) : json_null(),
			 "least_weight", (int)g->least_weight, "no_forks", (int)g->no_forks,
			 "frozen", (int)g->frozen, "starved", (int)g->starved,
			 "steps", (json_int_t)g->steps,
			 "largest_step", (json_int_t)g->largest,
			 "killed_in_steps", (json_int_t)g->killed,
			 "zombies", (json_int_t)g->zombies,
			 "released_bytes", (json_int_t)g->released,
			 "noise_ns", count(g->noise),
			 "worst_delay_ns", count(g->worst),
			 "delays", (json_int_t)g->samples,
			 "delays_over_slo", (json_int_t)g->over,
			 "unpaced_estimate_ns", count(plain),
			 "longer_ns", count(longer(t, plain)));
}

static json_t *memory_json(const struct teardown *t)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}",
			 "before_bytes", count(t->before.memory),
			 "left_bytes", count(t->after.memory),
			 "left_file_bytes", count(t->after.file),
			 "left_shmem_bytes", count(t->after.shmem),
			 "dying_cgroups_beside", count(t->after.dying));
}

static json_t *device_json(const struct teardown *t)
{
	if (t->locked < 0)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}",
			 "expected_ns", count(t->before.device),
			 "outlived_tasks_ns", count(t->reclaimed),
			 "reclaim_measured_ns", count(t->reclaim_ns),
			 "left_ns", count(t->after.device));
}

json_t *teardown_plan_json(const struct teardown *t)
{
	const struct target *g = &t->target;

	return json_pack("{s:s?, s:o, s:s, s:I, s:I, s:o, s:o}",
			 "cgroup", *g->name ? g->name : NULL,
			 "init", g->init ? json_integer(g->init) : json_null(),
			 "by", g->init ? "init" : "cgroup.kill",
			 "processes", (json_int_t)t->tasks.n,
			 "cgroups", (json_int_t)t->groups,
			 "memory_bytes", count(t->before.memory),
			 "predicted", forecast_json(&t->forecast));
}

json_t *teardown_json(const struct teardown *t)
{
	int status = teardown_status(t);
	json_t *j = teardown_plan_json(t);
	json_t *more = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:b, s:b, s:o, s:s?, s:O?}",
		"stages", stages_json(t),
		"wall_ns", cli_json_time(total(t)),
		"exit_cpu_ns", count(minus(t->after.cpu, t->before.cpu)),
		"predicted_by_measured", isnan(ratio(t)) ? json_null() :
						json_real(ratio(t)),
		"memory", memory_json(t), "device", device_json(t),
		"gentle", gentle_json(t), "restored", (int)t->put_back,
		"limit_ns", cli_json_time(t->opts->limit),
		"within_limit", status == EXIT_FINE,
		"timed_out", (int)t->timed_out,
		"signal", t->sig ? json_integer(t->sig) : json_null(),
		"failed", t->failed, "holding", t->holding);

	if (!j || !more || json_object_update(j, more)) {
		json_decref(j);
		j = NULL;
	}
	json_decref(more);
	return j;
}

static void print_head(const struct teardown *t, FILE *f)
{
	char b[24];

	if (t->target.init)
		fprintf(f, "PID namespace of %d", (int)t->target.init);
	else
		fprintf(f, "%s", t->target.name);
	fprintf(f, ": %zu processes", t->tasks.n);
	if (t->groups > 1)
		fprintf(f, " in %zu cgroups", t->groups);
	if (t->before.memory != BRUMM_NO_LIMIT)
		fprintf(f, ", %s", bytes(t->before.memory, b, sizeof(b)));
	fputc('\n', f);
	forecast_print(&t->forecast, f);
}

void teardown_print_plan(const struct teardown *t, FILE *f)
{
	print_head(t, f);
	if (t->target.init && t->target.group < 0)
		fputs("would kill that init, and with it all of the namespace; no cgroup is its own, so only the processes are waited for\n", f);
	else if (t->target.init)
		fprintf(f, "would kill that init, and with it all of the namespace; %s stays\n",
			t->target.name);
	else
		fprintf(f, "would kill all of them by cgroup.kill%s\n",
			t->opts->keep ? "; the cgroup stays" : ", and remove the cgroup");
}

static void print_stages(const struct teardown *t, FILE *f)
{
	char x[16];
	int i;

	for (i = 0; i < STAGES; i++)
		if (t->at[i] != BRUMM_NO_LIMIT)
			fprintf(f, "  %-22s%s\n", stages[i].what,
				brumm_format_time(t->at[i], x, sizeof(x)));
}

static void print_figures(const struct teardown *t, FILE *f)
{
	uint64_t cpu = minus(t->after.cpu, t->before.cpu);
	char x[3][16], b[2][24];

	if (cpu != BRUMM_NO_LIMIT)
		fprintf(f, "  CPU time of the exits %s",
			brumm_format_time(cpu, x[0], sizeof(x[0])));
	if (cpu != BRUMM_NO_LIMIT && !isnan(ratio(t)))
		fprintf(f, "; expected / measured %.2f", ratio(t));
	if (cpu != BRUMM_NO_LIMIT)
		fputc('\n', f);
	if (t->after.memory != BRUMM_NO_LIMIT && t->after.memory)
		fprintf(f, "  %s of memory left, page cache %s: charged until it is needed elsewhere\n",
			bytes(t->after.memory, b[0], sizeof(b[0])),
			bytes(t->after.file, b[1], sizeof(b[1])));
	if (t->reclaimed && t->reclaimed != BRUMM_NO_LIMIT)
		fprintf(f, "  device: expected %s, of it %s outlived the processes; taken back in %s\n",
			brumm_format_time(t->before.device, x[0], sizeof(x[0])),
			brumm_format_time(t->reclaimed, x[1], sizeof(x[1])),
			t->reclaim_ns == BRUMM_NO_LIMIT ? "?" :
			brumm_format_time(t->reclaim_ns, x[2], sizeof(x[2])));
}

static void print_gentle(const struct teardown *t, FILE *f)
{
	const struct gentle *g = &t->gentle;
	uint64_t plain = unpaced(t), all = t->at[STAGE_TASKS];
	char x[3][16];

	fprintf(f, "  %zu steps, %zu processes at most in one%s%s%s%s\n", g->steps,
		g->largest, g->least_weight ? ", least CPU weight" : ", idle class",
		g->no_forks ? ", no forks" : "", g->frozen ? ", frozen" : "",
		g->starved ? ", not from the idle class: that got no CPU" : "");
	if (g->zombies)
		fprintf(f, "  an init had %zu children that it had not waited for: the kernel does so in one go, at which others wait\n",
			g->zombies);
	if (plain != BRUMM_NO_LIMIT && all != BRUMM_NO_LIMIT)
		fprintf(f, "  %s until the processes were gone, at once at least %s: %s longer\n",
			brumm_format_time(all, x[0], sizeof(x[0])),
			brumm_format_time(plain, x[1], sizeof(x[1])),
			brumm_format_time(longer(t, plain), x[2], sizeof(x[2])));
	if (!t->opts->slo || g->noise == BRUMM_NO_LIMIT)
		return;
	fprintf(f, "  a neighbour's delay: worst %s, %llu of %llu above %s; worst before %s\n",
		g->worst == BRUMM_NO_LIMIT ? "?" :
		brumm_format_time(g->worst, x[0], sizeof(x[0])),
		(unsigned long long)g->over, (unsigned long long)g->samples,
		brumm_format_time(t->opts->slo, x[1], sizeof(x[1])),
		brumm_format_time(g->noise, x[2], sizeof(x[2])));
	if (g->noise > t->opts->slo)
		fputs("  the bound is below what this machine has anyway: no pace can hold it\n", f);
}

static void print_end(const struct teardown *t, FILE *f)
{
	char x[16];

	if (t->failed)
		fprintf(f, "  stopped: %s: %s\n", t->failed, brumm_strerror(t->error));
	if (t->timed_out)
		fprintf(f, "  not done after %s; this is left:\n",
			brumm_format_time(t->opts->timeout, x, sizeof(x)));
	if (t->holding)
		holders_print(t->holding, f);
	if (t->sig && t->at[STAGE_KILLED] == BRUMM_NO_LIMIT)
		fprintf(f, "  interrupted: %zu of %zu processes were killed, the others run on as they were\n",
			t->gentle.killed, t->tasks.n);
	else if (t->sig)
		fputs("  interrupted: all were told to die, and were not waited for\n", f);
	if (teardown_status(t) == EXIT_MISSED)
		fprintf(f, "  longer than the limit of %s\n",
			brumm_format_time(t->opts->limit, x, sizeof(x)));
}

void teardown_print(const struct teardown *t, FILE *f)
{
	print_head(t, f);
	print_stages(t, f);
	print_figures(t, f);
	if (gentle(t))
		print_gentle(t, f);
	print_end(t, f);
}
