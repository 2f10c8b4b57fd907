// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include <brumm/brumm.h>

#include "side.h"

/* Of those who had the CPU, as many are told. */
#define BLAMED		10

static const enum part blamed[3] = { PART_RUN_QUEUE, PART_TEARDOWN, PART_BRUMM };

int side_init(struct side *s, const struct events *e)
{
	*s = (struct side){ .whos = e->whos ? e->whos : 1 };
	s->by = calloc(s->whos, sizeof(*s->by));
	return s->by ? 0 : -ENOMEM;
}

void side_free(struct side *s)
{
	free(s->by);
	s->by = NULL;
}

void side_add(struct side *s, const struct canvas *c, const struct finding *f)
{
	size_t i, k;

	s->n++;
	s->known[f->known]++;
	for (i = 0; i < c->n; i++) {
		const struct piece *p = &c->piece[i];
		uint64_t ns = p->end - p->start;

		s->total_ns += ns;
		s->ns[p->part] += ns;
		for (k = 0; k < 3; k++)
			if (p->part == blamed[k] && p->who && p->who < s->whos)
				s->by[p->who][k] += ns;
	}
}

/* ---- telling -------------------------------------------------------------- */

struct blame {
	uint32_t who;
	enum part part;
	uint64_t ns;
};

static int by_ns(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;

	return x->ns > y->ns ? -1 : x->ns < y->ns;
}

/* The most of all, in order; how many. */
static size_t most_blamed(const struct side *s, struct blame *most)
{
	struct blame *all = malloc(s->whos * 3 * sizeof(*all));
	size_t i, k, n = 0;

	if (!all)
		return 0;
	for (i = 1; i < s->whos; i++) {
		for (k = 0; k < 3; k++)
			if (s->by[i][k])
				all[n++] = (struct blame){ (uint32_t)i, blamed[k],
							   s->by[i][k] };
	}
	if (n)
		qsort(all, n, sizeof(*all), by_ns);
	n = n < BLAMED ? n : BLAMED;
	for (i = 0; i < n; i++)
		most[i] = all[i];
	free(all);
	return n;
}

static double mean(const struct side *s, uint64_t ns)
{
	return s->n ? (double)ns / (double)s->n : 0;
}

json_t *side_json(const struct side *s, const struct events *e)
{
	json_t *parts = json_array(), *by = json_array();
	struct blame most[BLAMED];
	size_t i, n = most_blamed(s, most);

	for (i = 0; i < PARTS; i++)
		json_array_append_new(parts, json_pack("{s:s, s:f, s:I}",
			"name", attr_part_names[i], "ns", mean(s, s->ns[i]),
			"sum_ns", (json_int_t)s->ns[i]));
	for (i = 0; i < n; i++)
		json_array_append_new(by, json_pack("{s:o, s:I, s:s, s:f, s:I}",
			"comm", json_string(e->who[most[i].who].comm) ?: json_string("?"),
			"cgroup", (json_int_t)e->who[most[i].who].cgroup,
			"part", attr_part_names[most[i].part],
			"ns", mean(s, most[i].ns), "sum_ns", (json_int_t)most[i].ns));
	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:{s:I, s:I, s:I}}",
		"n", (json_int_t)s->n, "of", (json_int_t)s->of,
		"total_ns", (json_int_t)s->total_ns,
		"parts", parts, "by", by, "unknown",
			"unsent", (json_int_t)s->known[KNOWN_UNSENT],
			"lost", (json_int_t)s->known[KNOWN_LOST],
			"unseen", (json_int_t)s->known[KNOWN_NOT]);
}

static void print_mean(const struct side *s, uint64_t ns, FILE *f)
{
	double share = s->total_ns ? 100 * (double)ns / (double)s->total_ns : 0;
	char text[16];

	fprintf(f, " %10s %5.1f %%", s->n ? brumm_format_time(
		(uint64_t)(mean(s, ns) + 0.5), text, sizeof(text)) : "-", share);
}

void sides_print(const struct side *outliers, const struct side *normals,
		 const struct events *e, FILE *f)
{
	struct blame most[BLAMED];
	size_t i, n = most_blamed(outliers, most);

	for (i = 0; i < PARTS; i++) {
		if (!outliers->ns[i] && !normals->ns[i])
			continue;
		fprintf(f, "%-16s", attr_part_names[i]);
		print_mean(outliers, outliers->ns[i], f);
		print_mean(normals, normals->ns[i], f);
		fputc('\n', f);
	}
	for (i = 0; i < n; i++) {
		fprintf(f, "%-16s", i ? "" : "who ran instead");
		print_mean(outliers, most[i].ns, f);
		fprintf(f, "  %s (%s)\n", e->who[most[i].who].comm,
			attr_part_names[most[i].part]);
	}
}
