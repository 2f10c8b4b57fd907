// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <string.h>

#include "../../cli.h"
#include "../fit.h"
#include "../prices.h"
#include "forecast.h"

/* ---- what brumm.stat says ----------------------------------------------- */

/* Is @key @name and @end? */
static bool key_is(const char *key, const char *name, const char *end)
{
	size_t len = strlen(name);

	return !strncmp(key, name, len) && !strcmp(key + len, end);
}

static int add_device(const char *key, uint64_t value, void *arg)
{
	uint64_t *sum = arg;
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		if (key_is(key, fit_names[t], "_ns") &&
		    __builtin_add_overflow(*sum, value, sum))
			*sum = BRUMM_NO_LIMIT - 1;
	}
	return 0;
}

uint64_t forecast_device(int group)
{
	uint64_t sum = 0;

	if (group < 0 || brumm_group_stat(group, add_device, &sum))
		return BRUMM_NO_LIMIT;
	return sum;
}

/* What the ledger counts, if it follows the group's tasks. */
struct ledger {
	const struct kinds *kinds;
	struct counts counts;
	bool stale;	/* of files and namespaces it knew more once */
};

static int add_count(const char *key, uint64_t value, void *arg)
{
	struct ledger *l = arg;
	size_t k;

	for (k = 0; k < l->kinds->n; k++) {
		if (key_is(key, l->kinds->name[k], "_count"))
			l->counts.n[k] = (double)value;
	}
	if (!strcmp(key, "living_stale"))
		l->stale = value;
	return 0;
}

static bool read_ledger(int group, const struct kinds *k, struct ledger *l)
{
	char mode[32];

	*l = (struct ledger){ .kinds = k };
	if (group < 0 || brumm_group_read(group, "brumm.mode", mode,
					  sizeof(mode)) < 0 ||
	    !strncmp(mode, "off", 3) || brumm_group_stat(group, add_count, l))
		return false;
	return true;
}

/* ---- what goes beside it ------------------------------------------------- */

/* On how many CPUs may some of them run? */
static unsigned int cpus_of(const struct tasks *list)
{
	cpu_set_t all, one;
	size_t i;

	CPU_ZERO(&all);
	for (i = 0; i < list->n; i++) {
		if (!sched_getaffinity(list->list[i].pid, sizeof(one), &one))
			CPU_OR(&all, &all, &one);
	}
	return (unsigned int)CPU_COUNT(&all);
}

/* What the file has of @what for @kind. */
static double profiled(const json_t *living, const char *what, const char *kind)
{
	return json_number_value(json_object_get(json_object_get(living, what),
						 kind));
}

/*
 * The price of @kind has that of @with in it, on the safe side. Where both can be
 * counted it is split as the profile found it.
 */
static void split_price(struct kinds *k, const json_t *living,
			const char *kind, const char *with)
{
	double all = profiled(living, "prices", kind), scale;
	int i = kinds_find(k, kind), w = kinds_find(k, with);

	if (i < 0 || w < 0 || all <= 0)
		return;
	/* Somebody may have set others. */
	scale = k->price[i] / all;
	k->price[i] = scale * profiled(living, "parts", kind);
	k->price[w] = scale * profiled(living, "parts", with);
}

static void split_prices(struct kinds *k, const json_t *living)
{
	kinds_extend(k);
	split_price(k, living, "anon", "anon_page");
	split_price(k, living, "shmem", "shmem_page");
	split_price(k, living, "mm", "image");
}

/* What only the profile knows. */
static void add_profiled(struct forecast *f, const json_t *living, bool ns)
{
	double n = kinds_get(&f->kinds, &f->counts, "process"), all;
	size_t k;

	if (!living)
		return;
	f->deferred = 0;
	for (k = 0; k < f->kinds.n; k++) {
		all = profiled(living, "parts", f->kinds.name[k]);
		if (all > 0)
			f->deferred += profiled(living, "deferred",
						f->kinds.name[k]) / all *
				       f->kinds.price[k] * f->counts.n[k];
	}
	if (ns)
		f->reaping = n * json_number_value(json_object_get(living,
								   "reap_ns"));
}

static void add_up(struct forecast *f)
{
	double shared;
	size_t k;
	int p;

	for (k = 0; k < f->kinds.n; k++)
		f->part[kinds_part(f->kinds.name[k])] +=
			f->kinds.price[k] * f->counts.n[k];
	f->serial = isnan(f->device) ? 0 : f->device;
	for (p = 0; p < PARTS; p++)
		f->serial += f->part[p];
	shared = f->serial - (isnan(f->deferred) ? 0 : f->deferred);
	if (f->cpus)
		f->wall = fmax(shared / f->cpus,
			       fmax(isnan(f->longest) ? 0 : f->longest,
				    f->reaping));
}

void forecast_make(int group, const struct tasks *list, bool ns,
		   struct forecast *f)
{
	uint64_t device = forecast_device(group);
	json_t *doc = NULL, *living;
	const struct counts *files;
	struct ledger ledger;
	struct kinds plain;
	struct living l;
	bool followed;
	int err, p;

	*f = (struct forecast){
		.device = device == BRUMM_NO_LIMIT ? NAN : (double)device,
		.serial = NAN, .deferred = NAN, .longest = NAN, .ledger = NAN,
		.wall = NAN,
	};
	if (group < 0 || kinds_read(group, &f->kinds))
		f->why = "no brumm.* files there";
	else if (!f->kinds.n)
		f->why = "the module that is loaded prices nothing but the device";
	if (f->why)
		goto unknown;
	followed = read_ledger(group, &f->kinds, &ledger);
	if (followed)
		f->ledger = counts_cost(&f->kinds, f->kinds.price,
					&ledger.counts);
	if (prices_read(PRICES_FILE, &doc))
		doc = NULL;
	living = json_object_get(doc, "living");
	plain = f->kinds;
	split_prices(&f->kinds, living);
	/* A PID namespace need not be all of its cgroup, nor in one. */
	files = followed && !ns && !ledger.stale ? &ledger.counts : NULL;
	err = count_tasks(&f->kinds, list, files, cli_now() + FORECAST_MOST, &l);
	if (!err) {
		f->source = "proc";
		f->files = files ? "ledger" : "proc";
		f->counts = l.all;
		f->longest = l.longest;
	} else if (followed) {
		f->source = f->files = "ledger";
		f->kinds = plain;
		f->counts = ledger.counts;
	} else {
		f->why = err == -ETIME ? "too many processes to look at" :
					 "may not look at the processes";
		goto unknown;
	}
	f->cpus = cpus_of(list);
	add_profiled(f, living, ns);
	add_up(f);
	json_decref(doc);
	return;
unknown:
	json_decref(doc);
	for (p = 0; p < PARTS; p++)
		f->part[p] = NAN;
}

/* ---- telling ------------------------------------------------------------ */

static json_t *ns_json(double ns)
{
	return isnan(ns) ? json_null() : json_integer((json_int_t)(ns + 0.5));
}

static json_t *kinds_json(const struct forecast *f)
{
	json_t *j = json_object();
	size_t k;

	for (k = 0; k < f->kinds.n; k++) {
		if (f->counts.n[k] > 0)
			json_object_set_new(j, f->kinds.name[k],
				json_pack("{s:o, s:o}",
					  "count", ns_json(f->counts.n[k]),
					  "ns", ns_json(f->counts.n[k] *
							f->kinds.price[k])));
	}
	return j;
}

json_t *forecast_json(const struct forecast *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, s:s?, s:o}",
			 "device_ns", ns_json(f->device),
			 "tasks_ns", ns_json(f->part[PART_TASKS]),
			 "pages_ns", ns_json(f->part[PART_PAGES]),
			 "files_ns", ns_json(f->part[PART_FILES]),
			 "namespaces_ns", ns_json(f->part[PART_SPACES]),
			 "serial_ns", ns_json(f->serial),
			 "deferred_ns", ns_json(f->deferred),
			 "longest_ns", ns_json(f->longest),
			 "wall_ns", ns_json(f->wall),
			 "cpus", f->cpus ? json_integer(f->cpus) : json_null(),
			 "ledger_ns", ns_json(f->ledger),
			 "counted_by", f->source,
			 "files_counted_by", f->files, "why_not", f->why,
			 "kinds", kinds_json(f));
}

static const char *text(double ns, char *buf, size_t size)
{
	return brumm_format_time(ns > 0 ? (uint64_t)(ns + 0.5) : 0, buf, size);
}

void forecast_print(const struct forecast *f, FILE *file)
{
	const char *between = ": ";
	char x[16];
	int p;

	if (f->why) {
		fprintf(file, "  expected: nothing is predicted of the processes: %s",
			f->why);
		if (!isnan(f->device))
			fprintf(file, "; device %s", text(f->device, x, sizeof(x)));
		fputc('\n', file);
		return;
	}
	fprintf(file, "  expected work %s", text(f->serial, x, sizeof(x)));
	for (p = 0; p < PARTS; p++) {
		if (f->part[p] <= 0)
			continue;
		fprintf(file, "%s%s %s", between, part_names[p],
			text(f->part[p], x, sizeof(x)));
		between = ", ";
	}
	fprintf(file, "%sdevice %s\n", between,
		text(isnan(f->device) ? 0 : f->device, x, sizeof(x)));
	if (f->deferred > 0)
		fprintf(file, "  of it after the last process is gone %s\n",
			text(f->deferred, x, sizeof(x)));
	if (f->cpus)
		fprintf(file, "  expected time on %u CPU%s %s, without waiting for others\n",
			f->cpus, f->cpus > 1 ? "s" : "",
			text(f->wall, x, sizeof(x)));
}

void forecast_print_kinds(const struct forecast *f, FILE *file)
{
	char x[16];
	size_t k;

	for (k = 0; k < f->kinds.n; k++) {
		if (f->counts.n[k] > 0)
			fprintf(file, "%-10s %10.0f %10.0f %12s\n",
				f->kinds.name[k], f->counts.n[k],
				f->kinds.price[k],
				text(f->counts.n[k] * f->kinds.price[k], x,
				     sizeof(x)));
	}
}
