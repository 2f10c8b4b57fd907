// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"

/* Percentiles that are told; the paper's "n % tail latency" is the mean beyond. */
static const double percents[] = { 50, 90, 95, 99, 99.9, 99.99 };

json_t *figure_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *interval_json(struct interval i)
{
	if (!isfinite(i.low) || !isfinite(i.high))
		return json_null();
	return json_pack("[f, f]", i.low, i.high);
}

/* ---- of the service ------------------------------------------------------- */

static json_t *target_json(double op, struct interval at, double target,
			   const struct figures_opts *o)
{
	double exponent = metric_exponent(&o->scale);
	double required = metric_required_op(target, exponent);

	return json_pack("{s:f, s:o, s:o, s:o, s:o}",
		"target", target,
		"required_op", figure_json(required),
		"reduction", figure_json(metric_reduction(op, target, exponent)),
		"reduction_interval", interval_json(
			metric_reduction_interval(at, target, exponent)),
		"requests_to_show", figure_json(
			metric_requests_to_show(required, o->confidence)));
}

json_t *service_json(double op, struct interval at, const struct figures_opts *o)
{
	double exponent = metric_exponent(&o->scale);
	json_t *targets = json_array();
	size_t i;

	for (i = 0; i < o->targets; i++)
		json_array_append_new(targets,
				      target_json(op, at, o->target[i], o));
	return json_pack("{s:I, s:I, s:f, s:o, s:o, s:o}",
		"servers", (json_int_t)o->scale.servers,
		"each", (json_int_t)o->scale.each,
		"exponent", exponent,
		"op", figure_json(metric_service_op(op, exponent)),
		"op_interval", interval_json(metric_service_interval(at, exponent)),
		"targets", targets);
}

json_t *proportion_json(uint64_t m, uint64_t n, const struct figures_opts *o)
{
	struct interval exact = metric_clopper_pearson(m, n, o->confidence);
	double op = metric_op(m, n);

	return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
		"requests", (json_int_t)n, "outliers", (json_int_t)m,
		"op", figure_json(op),
		"wilson", interval_json(metric_wilson(m, n, o->confidence)),
		"clopper_pearson", interval_json(exact),
		"requests_to_know_20_percent", figure_json(
			metric_requests_to_know(op, 0.2, o->confidence)),
		"service", service_json(op, exact, o));
}

/* ---- of runs -------------------------------------------------------------- */

struct pooled {
	const struct load *l;
	size_t runs;
	uint64_t requests, answered, beyond;
	double window_s;
};

static struct over sum_over(const struct pooled *p, size_t t)
{
	struct over o = p->l->threshold[t].all;
	size_t i;

	for (i = 1; i < p->runs; i++) {
		o.low += p->l[i].threshold[t].all.low;
		o.high += p->l[i].threshold[t].all.high;
	}
	return o;
}

static int bootstrap(const struct pooled *p, size_t t, bool upper,
		     const struct figures_opts *o, struct bootstrap *b)
{
	struct run_slices *runs = calloc(p->runs, sizeof(*runs));
	size_t i;
	int err;

	if (!runs)
		return -1;
	for (i = 0; i < p->runs; i++) {
		const struct load_threshold *one = p->l[i].threshold + t;

		runs[i] = (struct run_slices){ upper ? one->high : one->low,
					       p->l[i].slices };
	}
	err = metric_bootstrap(runs, p->runs, 0, o->confidence, o->seed, b);
	free(runs);
	return err;
}

static json_t *throughput_json(const struct pooled *p, struct over over,
			       struct interval at)
{
	double n = (double)p->requests, s = p->window_s;
	struct interval valid = { n * (1 - at.high) / s, n * (1 - at.low) / s };

	return json_pack("{s:o, s:o, s:o, s:o}",
		"offered_per_s", figure_json(n / s),
		"valid_per_s", figure_json((n - (double)over.low) / s),
		"valid_per_s_lower", figure_json((n - (double)over.high) / s),
		"valid_per_s_interval", interval_json(valid));
}

/*
 * The slowest of K, as it was; and as it would be were servers independent. A
 * request that goes to fewer than all servers goes to any: with the mean.
 */
static json_t *fanout_json(const struct pooled *p, size_t t, struct over over)
{
	const struct load *l = p->l;
	double independent, empirical = metric_op(over.low, p->requests);
	double *op = calloc(l->servers + 1, sizeof(*op));
	uint64_t m_all = 0, n_all = 0, m, n;
	size_t i, k;

	if (!op)
		return NULL;
	for (k = 0; k < l->servers; k++) {
		for (i = 0, m = 0, n = 0; i < p->runs && k < p->l[i].servers; i++) {
			m += p->l[i].threshold[t].leg[k].low;
			n += p->l[i].leg_requests[k];
		}
		op[k] = metric_op(m, n);
		m_all += m;
		n_all += n;
	}
	independent = l->fanout == l->servers ? metric_any_op(op, l->servers) :
		metric_service_op(metric_op(m_all, n_all), (double)l->fanout);
	free(op);
	return json_pack("{s:I, s:o, s:o, s:o, s:o}",
		"k", (json_int_t)l->fanout,
		"leg_op", figure_json(metric_op(m_all, n_all)),
		"empirical_op", figure_json(empirical),
		"independent_op", figure_json(independent),
		"empirical_to_independent", figure_json(empirical / independent));
}

static json_t *threshold_json(const struct pooled *p, size_t t,
			      const struct figures_opts *o)
{
	struct over over = sum_over(p, t);
	double op = metric_op(over.low, p->requests);
	struct bootstrap b = { { NAN, NAN }, NAN, NAN, NAN }, up;
	struct interval low, high, exact, at;
	char label[32];

	low = metric_clopper_pearson(over.low, p->requests, o->confidence);
	high = metric_clopper_pearson(over.high, p->requests, o->confidence);
	/*
	 * Bursts make the bootstrap the wider one; with few outliers it knows of
	 * too few bursts, and Clopper and Pearson's is.
	 */
	exact = metric_hull(low, high);
	at = exact;
	if (!bootstrap(p, t, false, o, &b) && !bootstrap(p, t, true, o, &up)) {
		b.interval = metric_hull(b.interval, up.interval);
		at = metric_hull(exact, b.interval);
	}
	snprintf(label, sizeof(label), "%g us", (double)over.t_ns / 1e3);
	return json_pack("{s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"t_ns", (json_int_t)over.t_ns,
		"label", label,
		"requests", (json_int_t)p->requests,
		"outliers", (json_int_t)over.low,
		"outliers_upper", (json_int_t)over.high,
		"op", figure_json(op),
		"op_upper", figure_json(metric_op(over.high, p->requests)),
		"op_interval", interval_json(at),
		"wilson", interval_json(metric_wilson(over.low, p->requests,
						      o->confidence)),
		"clopper_pearson", interval_json(exact),
		"bootstrap", interval_json(b.interval),
		"block_ns", figure_json(b.block * (double)p->l->slice_ns),
		"design_effect", figure_json(b.effect),
		"throughput", throughput_json(p, over, at),
		"service", service_json(op, at, o),
		"fanout", p->l->fanout > 1 ? fanout_json(p, t, over) : json_null());
}

static json_t *value_json(struct tail_value v)
{
	return json_pack("{s:o, s:o}", "ns", figure_json(v.value),
			 "bound", interval_json(v.bound));
}

/* What is beyond the last slot has no time: then there is no figure of it. */
static bool beyond_slots(const struct pooled *p, double percent)
{
	return (double)p->beyond > (double)p->answered * (1 - percent / 100);
}

static json_t *tails_json(const struct pooled *p, const struct tail_slot *slot,
			  size_t slots)
{
	json_t *list = json_array(), *mean;
	size_t i;

	for (i = 0; i < sizeof(percents) / sizeof(*percents); i++) {
		struct tail_value at = metric_percentile(slot, slots, percents[i]);

		mean = p->beyond ? json_null() :
			value_json(metric_tail_mean(slot, slots, percents[i]));
		json_array_append_new(list, json_pack("{s:f, s:o, s:o}",
			"percent", percents[i],
			"percentile", beyond_slots(p, percents[i]) ?
				json_null() : value_json(at),
			"mean_beyond", mean));
	}
	return list;
}

static json_t *statuses_json(const struct pooled *p)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < p->runs; i++)
		json_array_append_new(list, json_string(p->l[i].status));
	return list;
}

json_t *figures_json(const struct load *l, size_t runs,
		     const struct figures_opts *o)
{
	struct pooled p = { .l = l, .runs = runs };
	json_t *thresholds = json_array(), *tails;
	struct tail_slot *slot;
	size_t i, slots;

	for (i = 0; i < runs; i++) {
		p.requests += l[i].requests;
		p.answered += l[i].answered;
		p.beyond += l[i].beyond;
		p.window_s += l[i].window_s;
	}
	slot = load_merge_slots(l, runs, &slots);
	if (!slot) {
		json_decref(thresholds);
		return NULL;
	}
	for (i = 0; i < l->thresholds; i++)
		json_array_append_new(thresholds, threshold_json(&p, i, o));
	tails = tails_json(&p, slot, slots);
	free(slot);
	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o}",
		"runs", (json_int_t)runs,
		"requests", (json_int_t)p.requests,
		"answered", (json_int_t)p.answered,
		"window_s", p.window_s,
		"confidence", o->confidence,
		"status", statuses_json(&p),
		"thresholds", thresholds,
		"tail", tails);
}

const char *figures_differ(const struct load *a, const struct load *b)
{
	size_t i;

	if (a->thresholds != b->thresholds)
		return "other thresholds";
	for (i = 0; i < a->thresholds; i++) {
		if (a->threshold[i].all.t_ns != b->threshold[i].all.t_ns)
			return "other thresholds";
	}
	if (a->fanout != b->fanout || a->servers != b->servers)
		return "another fan-out, or other servers";
	return a->slice_ns != b->slice_ns ? "another interval of the timeline" : NULL;
}
