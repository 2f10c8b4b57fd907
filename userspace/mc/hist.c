// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>

#include "hist.h"

void mc_hist_add(struct mc_hist *h, uint64_t ns)
{
	if (!h->n || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->n++;
	h->sum += ns;
	if (ns >> MC_HIST_POWERS)
		h->over++;
	else
		h->slot[mc_hist_slot(ns)]++;
}

void mc_hist_merge(struct mc_hist *to, const struct mc_hist *from)
{
	size_t i;

	if (!from->n)
		return;
	if (!to->n || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
	to->over += from->over;
	for (i = 0; i < MC_HIST_SLOTS; i++)
		to->slot[i] += from->slot[i];
}

uint64_t mc_hist_quantile(const struct mc_hist *h, double q)
{
	uint64_t rank = (uint64_t)ceil(q * (double)h->n), seen = 0;
	size_t i;

	if (!h->n)
		return 0;
	for (i = 0; i < MC_HIST_SLOTS; i++) {
		seen += h->slot[i];
		if (seen >= rank)
			return mc_hist_low(i);
	}
	return h->max;
}

static json_t *slots_json(const struct mc_hist *h)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; list && i < MC_HIST_SLOTS; i++) {
		if (h->slot[i] &&
		    json_array_append_new(list,
				json_pack("[I, I]",
					  (json_int_t)mc_hist_low(i),
					  (json_int_t)h->slot[i]))) {
			json_decref(list);
			list = NULL;
		}
	}
	return list;
}

static json_t *ns_or_null(const struct mc_hist *h, uint64_t ns)
{
	return h->n ? json_integer((json_int_t)ns) : json_null();
}

json_t *mc_hist_json(const struct mc_hist *h)
{
	return json_pack("{s:I, s:I, s:o, s:o, s:I, s:i, s:o, s:o, s:o, s:o, s:o}",
			 "n", (json_int_t)h->n, "sum_ns", (json_int_t)h->sum,
			 "min_ns", ns_or_null(h, h->min),
			 "max_ns", ns_or_null(h, h->max),
			 "over", (json_int_t)h->over, "bits", MC_HIST_BITS,
			 "slots", slots_json(h),
			 "p50_ns", ns_or_null(h, mc_hist_quantile(h, 0.5)),
			 "p90_ns", ns_or_null(h, mc_hist_quantile(h, 0.9)),
			 "p99_ns", ns_or_null(h, mc_hist_quantile(h, 0.99)),
			 "p999_ns", ns_or_null(h, mc_hist_quantile(h, 0.999)));
}

/* One [low, count]; the low end has to be that of a slot. */
static int parse_slot(json_t *pair, struct mc_hist *h)
{
	json_int_t low, count;
	size_t slot;

	if (json_unpack(pair, "[I, I!]", &low, &count) || low < 0 ||
	    low >> MC_HIST_POWERS || count <= 0)
		return -EINVAL;
	slot = mc_hist_slot((uint64_t)low);
	if (mc_hist_low(slot) != (uint64_t)low || h->slot[slot])
		return -EINVAL;
	h->slot[slot] = (uint64_t)count;
	h->n += (uint64_t)count;
	return 0;
}

int mc_hist_parse(const json_t *j, struct mc_hist *h)
{
	json_int_t n, sum, over;
	json_t *slots, *min, *max, *pair;
	size_t i;
	int bits;

	memset(h, 0, sizeof(*h));
	if (json_unpack((json_t *)j, "{s:I, s:I, s:o, s:o, s:I, s:i, s:o}",
			"n", &n, "sum_ns", &sum, "min_ns", &min, "max_ns", &max,
			"over", &over, "bits", &bits, "slots", &slots) ||
	    bits != MC_HIST_BITS || !json_is_array(slots) || over < 0 || sum < 0)
		return -EINVAL;
	json_array_foreach(slots, i, pair) {
		if (parse_slot(pair, h))
			return -EINVAL;
	}
	h->over = (uint64_t)over;
	h->n += h->over;
	h->sum = (uint64_t)sum;
	h->min = (uint64_t)json_integer_value(min);
	h->max = (uint64_t)json_integer_value(max);
	return h->n == (uint64_t)n && (!n || json_is_integer(max)) ? 0 : -EINVAL;
}
