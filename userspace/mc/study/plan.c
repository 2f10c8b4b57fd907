// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static void name_cell(struct cell *c)
{
	size_t used = 0;
	int i;

	for (i = 0; i < AXES; i++)
		used += (size_t)snprintf(c->name + used, sizeof(c->name) - used,
					 "%s-", c->value[i]);
	snprintf(c->name + used, sizeof(c->name) - used, "r%llu",
		 (unsigned long long)c->repeat);
}

/* The cells of one lane and repeat. */
static struct cell *fill(struct cell *to, const struct spec *s, const char *lane,
			 uint64_t repeat)
{
	size_t at[AXES] = { 0 };
	int i;

	for (;;) {
		to->value[AXIS_LANE] = lane;
		for (i = AXIS_LANE + 1; i < AXES; i++)
			to->value[i] = s->axis[i].item[at[i]];
		to->repeat = repeat;
		name_cell(to++);
		for (i = AXES - 1; i > AXIS_LANE; i--) {
			if (++at[i] < s->axis[i].count)
				break;
			at[i] = 0;
		}
		if (i == AXIS_LANE)
			return to;
	}
}

int cells_make(struct cells *p, const struct spec *s)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	const struct list *lanes = &s->axis[AXIS_LANE];
	char **lane = calloc(lanes->count, sizeof(*lane));
	size_t each = 1, l;
	struct cell *at;
	uint64_t r;
	int i;

	for (i = AXIS_LANE + 1; i < AXES; i++)
		each *= s->axis[i].count;
	p->count = each * lanes->count * s->repeats;
	p->cell = at = calloc(p->count, sizeof(*p->cell));
	if (!rng || !lane || !at) {
		free(lane);
		free(at);
		if (rng)
			gsl_rng_free(rng);
		return -ENOMEM;
	}
	gsl_rng_set(rng, s->seed);
	memcpy(lane, lanes->item, lanes->count * sizeof(*lane));
	for (r = 0; r < s->repeats; r++) {
		gsl_ran_shuffle(rng, lane, lanes->count, sizeof(*lane));
		for (l = 0; l < lanes->count; l++) {
			struct cell *first = at;

			at = fill(first, s, lane[l], r);
			gsl_ran_shuffle(rng, first, each, sizeof(*first));
		}
	}
	gsl_rng_free(rng);
	free(lane);
	return 0;
}

void cells_free(struct cells *p)
{
	free(p->cell);
	*p = (struct cells){ 0 };
}

json_t *cell_axes_json(const struct cell *c)
{
	json_t *j = json_object();
	int i;

	for (i = 0; i < AXES; i++) {
		if (i == AXIS_INSTANCES || i == AXIS_RATE)
			json_object_set_new(j, axis_names[i], json_integer(
				(json_int_t)cell_number(c, (enum axis)i)));
		else
			json_object_set_new(j, axis_names[i],
					    json_string(c->value[i]));
	}
	return j;
}

uint64_t cell_number(const struct cell *c, enum axis axis)
{
	return strtoull(c->value[axis], NULL, 10);
}
