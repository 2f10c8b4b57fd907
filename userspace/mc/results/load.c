// SPDX-License-Identifier: GPL-2.0
/*
 * Reads what brumm mc load wrote. Files can be of another version, cut off or
 * altered, so that all sums are done again: a file whose counts do not add up
 * is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "load.h"

#define SCHEMA "brumm-mc-load/1"

struct why {
	char *text;
	size_t size;
};

static int wrong(struct why *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int wrong(struct why *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->text, w->size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int count_of(const json_t *j, const char *key, uint64_t *v, struct why *w)
{
	const json_t *n = json_object_get(j, key);

	if (!json_is_integer(n) || json_integer_value(n) < 0)
		return wrong(w, "%s is no count", key);
	*v = (uint64_t)json_integer_value(n);
	return 0;
}

static int item(const json_t *list, size_t i, uint64_t *v, const char *what,
		struct why *w)
{
	const json_t *n = json_array_get(list, i);

	if (!json_is_integer(n) || json_integer_value(n) < 0)
		return wrong(w, "%s: no count at %zu", what, i);
	*v = (uint64_t)json_integer_value(n);
	return 0;
}

static int parse_over(const json_t *j, uint64_t requests, struct over *o,
		      struct why *w)
{
	uint64_t over, certain, perhaps;

	if (count_of(j, "t_ns", &o->t_ns, w) || count_of(j, "over", &over, w) ||
	    count_of(j, "censored_over", &certain, w) ||
	    count_of(j, "censored_under", &perhaps, w))
		return -EINVAL;
	o->low = over + certain;
	o->high = o->low + perhaps;
	if (o->high > requests)
		return wrong(w, "more over %lu ns than requests",
			     (unsigned long)o->t_ns);
	return 0;
}

static int parse_census(const json_t *tally, uint64_t *requests,
			uint64_t *answered, struct why *w)
{
	const json_t *c = json_object_get(tally, "census");
	uint64_t failed, timed_out, in_flight;

	if (count_of(c, "requests", requests, w) ||
	    count_of(c, "answered", answered, w) ||
	    count_of(c, "failed", &failed, w) ||
	    count_of(c, "timed_out", &timed_out, w) ||
	    count_of(c, "in_flight", &in_flight, w))
		return -EINVAL;
	if (*answered + failed + timed_out + in_flight != *requests)
		return wrong(w, "the census does not add up to %lu requests",
			     (unsigned long)*requests);
	return 0;
}

static int parse_thresholds(struct load *l, const json_t *total, struct why *w)
{
	const json_t *list = json_object_get(total, "thresholds");
	size_t i;
	int err;

	l->thresholds = json_array_size(list);
	if (!l->thresholds)
		return wrong(w, "it has no thresholds");
	l->threshold = calloc(l->thresholds, sizeof(*l->threshold));
	if (!l->threshold)
		return -ENOMEM;
	for (i = 0; i < l->thresholds; i++) {
		struct over *o = &l->threshold[i].all;

		err = parse_over(json_array_get(list, i), l->requests, o, w);
		if (err)
			return err;
		if (i && o->t_ns <= l->threshold[i - 1].all.t_ns)
			return wrong(w, "thresholds are not in rising order");
	}
	return 0;
}

static int parse_slots(struct load *l, const json_t *hist, struct why *w)
{
	const json_t *list = json_object_get(hist, "slots");
	uint64_t bits, n, low, sum = 0;
	size_t i;

	if (count_of(hist, "bits", &bits, w) || count_of(hist, "n", &n, w) ||
	    count_of(hist, "over", &l->beyond, w))
		return -EINVAL;
	if (bits > 30)
		return wrong(w, "a histogram of %lu bits", (unsigned long)bits);
	l->slots = json_array_size(list);
	l->slot = calloc(l->slots + 1, sizeof(*l->slot));
	if (!l->slot)
		return -ENOMEM;
	for (i = 0; i < l->slots; i++) {
		struct tail_slot *s = l->slot + i;
		unsigned int power = 0;

		if (item(json_array_get(list, i), 0, &low, "slots", w) ||
		    item(json_array_get(list, i), 1, &s->n, "slots", w))
			return -EINVAL;
		if (i && (double)low <= s[-1].low)
			return wrong(w, "slots are not in rising order");
		while (low >> (power + bits + 1))
			power++;
		s->low = (double)low;
		s->high = (double)(low + (1ULL << power) - 1);
		sum += s->n;
	}
	if (sum + l->beyond != n || n != l->answered)
		return wrong(w, "the histogram does not have the %lu answers",
			     (unsigned long)l->answered);
	return 0;
}

static int parse_server(struct load *l, const json_t *server, size_t k,
			struct why *w)
{
	const json_t *list = json_object_get(server, "thresholds");
	uint64_t answered;
	size_t i;
	int err;

	err = parse_census(server, &l->leg_requests[k], &answered, w);
	for (i = 0; i < l->thresholds && !err; i++)
		err = parse_over(json_array_get(list, i), l->leg_requests[k],
				 &l->threshold[i].leg[k], w);
	return err;
}

static int parse_servers(struct load *l, struct why *w)
{
	const json_t *list = json_object_get(l->doc, "servers");
	const json_t *fanout = json_object_get(json_object_get(l->doc, "config"),
					       "fanout");
	size_t i;
	int err = 0;

	l->fanout = json_is_integer(fanout) && json_integer_value(fanout) > 1 ?
		(size_t)json_integer_value(fanout) : 1;
	l->servers = json_array_size(list);
	l->leg_requests = calloc(l->servers + 1, sizeof(*l->leg_requests));
	if (!l->leg_requests)
		return -ENOMEM;
	for (i = 0; i < l->thresholds; i++) {
		l->threshold[i].leg = calloc(l->servers + 1,
					     sizeof(*l->threshold[i].leg));
		if (!l->threshold[i].leg)
			return -ENOMEM;
	}
	for (i = 0; i < l->servers && !err; i++)
		err = parse_server(l, json_array_get(list, i), i, w);
	return err;
}

/* The slices of one threshold; their sums are those of the whole. */
static int parse_slices(const struct load *l, const json_t *requests,
			const json_t *counts, struct slice **to, uint64_t want,
			struct why *w)
{
	uint64_t m = 0, n = 0;
	size_t i;

	*to = calloc(l->slices + 1, sizeof(**to));
	if (!*to)
		return -ENOMEM;
	for (i = 0; i < l->slices; i++) {
		struct slice *s = *to + i;

		if (item(requests, i, &s->n, "timeline", w) ||
		    item(counts, i, &s->m, "timeline", w))
			return -EINVAL;
		m += s->m;
		n += s->n;
	}
	if (n != l->requests || m != want)
		return wrong(w, "the timeline does not add up to the total");
	return 0;
}

static int parse_timeline(struct load *l, struct why *w)
{
	const json_t *line = json_object_get(l->doc, "timeline");
	const json_t *requests = json_object_get(line, "requests");
	const json_t *over = json_object_get(line, "over");
	const json_t *upper = json_object_get(line, "over_upper");
	size_t i;
	int err = 0;

	if (!json_is_object(line))
		return wrong(w, "it has no timeline");
	if (count_of(line, "interval_ns", &l->slice_ns, w))
		return -EINVAL;
	l->slices = json_array_size(requests);
	for (i = 0; i < l->thresholds && !err; i++) {
		struct load_threshold *t = l->threshold + i;

		err = parse_slices(l, requests, json_array_get(over, i), &t->low,
				   t->all.low, w);
		if (!err)
			err = parse_slices(l, requests, json_array_get(upper, i),
					   &t->high, t->all.high, w);
	}
	return err;
}

static int parse(struct load *l, struct why *w)
{
	const json_t *total = json_object_get(l->doc, "total");
	const char *schema = json_string_value(json_object_get(l->doc, "schema"));
	uint64_t window;
	int err;

	if (!schema || strcmp(schema, SCHEMA))
		return wrong(w, "its schema is %s, not " SCHEMA, schema ?: "missing");
	l->status = json_string_value(json_object_get(l->doc, "status"));
	if (!l->status)
		return wrong(w, "it has no status");
	if (parse_census(total, &l->requests, &l->answered, w) ||
	    count_of(json_object_get(l->doc, "time"), "window_ns", &window, w))
		return -EINVAL;
	l->window_s = (double)window / 1e9;
	err = parse_thresholds(l, total, w);
	if (!err)
		err = parse_slots(l, json_object_get(total, "intended"), w);
	if (!err)
		err = parse_servers(l, w);
	return err ? err : parse_timeline(l, w);
}

int load_parse(struct load *l, json_t *doc, char *why, size_t size)
{
	struct why w = { why, size };
	int err;

	*l = (struct load){ .doc = json_incref(doc) };
	err = parse(l, &w);
	if (err == -ENOMEM)
		snprintf(why, size, "no memory");
	if (err)
		load_free(l);
	return err;
}

int load_read(struct load *l, const char *path)
{
	json_error_t e;
	json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	char why[160];
	int err;

	*l = (struct load){ 0 };
	if (!doc) {
		cli_error("%s: %s (line %d)", path, e.text, e.line);
		return -EINVAL;
	}
	err = load_parse(l, doc, why, sizeof(why));
	json_decref(doc);
	if (err)
		cli_error("%s: not a result of brumm mc load: %s", path, why);
	return err;
}

void load_free(struct load *l)
{
	size_t i;

	for (i = 0; l->threshold && i < l->thresholds; i++) {
		free(l->threshold[i].leg);
		free(l->threshold[i].low);
		free(l->threshold[i].high);
	}
	free(l->threshold);
	free(l->leg_requests);
	free(l->slot);
	json_decref(l->doc);
	*l = (struct load){ 0 };
}

static int by_low(const void *a, const void *b)
{
	const struct tail_slot *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

struct tail_slot *load_merge_slots(const struct load *l, size_t runs,
				   size_t *count)
{
	struct tail_slot *all;
	size_t i, n = 0, kept = 0;

	for (i = 0; i < runs; i++)
		n += l[i].slots;
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return NULL;
	for (i = 0, n = 0; i < runs; i++) {
		memcpy(all + n, l[i].slot, l[i].slots * sizeof(*all));
		n += l[i].slots;
	}
	qsort(all, n, sizeof(*all), by_low);
	for (i = 0; i < n; i++) {
		if (kept && all[kept - 1].low == all[i].low)
			all[kept - 1].n += all[i].n;
		else
			all[kept++] = all[i];
	}
	*count = kept;
	return all;
}
