// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "../machine.h"
#include "result.h"

/*
 * A first mapping costs next to nothing where it is one of many in a tree, and
 * that of a tree of its own what finding and leaving the tree costs. It is priced
 * as the latter, so the former must have no say in it.
 */
static int fit_lookup(const struct measure *m, enum measure_state state,
		      struct fit *fit)
{
	struct fit_run *runs;
	struct summary s;
	double *v;
	size_t n, i;

	runs = measure_runs(m, state, true, &n);
	v = calloc(n + 1, sizeof(*v));
	for (i = 0; runs && v && i < n; i++)
		v[i] = (runs[i].ns - fit_predict(fit->ns, &runs[i])) /
		       runs[i].count[FIT_LOOKUP];
	if (runs && v && n) {
		summarise(v, n, &s);
		fit->ns[FIT_LOOKUP] = fmax(0, s.p50);
		fit->error[FIT_LOOKUP] = s.error;
	}
	i = runs && v;
	free(runs);
	free(v);
	return i ? 0 : -ENOMEM;
}

static int fit_state(const struct measure *m, enum measure_state state,
		     struct fit *fit)
{
	const double fixed[FIT_TERMS] = {
		[FIT_SYSCALL] = m->syscall.p50, [FIT_LOOKUP] = 0,
		[FIT_MAP] = NAN, [FIT_PT] = NAN, [FIT_DEEP] = NAN,
	};
	struct fit_run *runs;
	size_t n;
	int err;

	runs = measure_runs(m, state, false, &n);
	err = runs ? fit_terms(runs, n, fixed, fit) : -ENOMEM;
	free(runs);
	return err ? err : fit_lookup(m, state, fit);
}

/* Terms and prices from the runs of @by. */
static int fit_by(struct result *r, const struct measure *by)
{
	int s, err = fit_state(by, MEASURE_STATES, &r->all);

	for (s = 0; s < MEASURE_STATES && !err; s++) {
		if (r->states & 1u << s)
			err = fit_state(by, s, &r->fit[s]);
	}
	return err ? err : cover(&r->m, by, r->all.ns, &r->cover);
}

int result_fit(struct result *r)
{
	int err = fit_by(r, &r->m);
	double noise = r->cover.noise;
	struct measure quickest;

	if (err || !result_busy(r))
		return err;
	/* What most runs have in common is then what disturbed them. */
	err = measure_quickest(&r->m, &quickest);
	if (!err)
		err = fit_by(r, &quickest);
	r->cover.noise = noise;
	measure_free(&quickest);
	return err;
}

bool result_busy(const struct result *r)
{
	return r->cover.noise > COVER_NOISE_MOST;
}

void result_free(struct result *r)
{
	measure_free(&r->m);
	terms_free(&r->terms);
}

static json_t *prices_json(const double price[FIT_TERMS])
{
	json_t *j = json_object();
	int t;

	for (t = 0; t < FIT_TERMS; t++)
		json_object_set_new(j, fit_names[t],
				    json_integer((json_int_t)price[t]));
	return j;
}

/* Of a fit there are a mean and its interval only. */
static json_t *term_json(const struct fit *f, int t)
{
	struct summary s = {
		.n = f->n, .mean = f->ns[t], .error = f->error[t],
		.sd = NAN, .min = NAN, .p50 = NAN, .p99 = NAN, .max = NAN,
	};

	return summary_json(&s, "fit");
}

static json_t *terms_json(const struct result *r, const struct fit *f)
{
	json_t *j = json_object();
	int t;

	for (t = 0; t < FIT_TERMS; t++)
		json_object_set_new(j, fit_names[t], t == FIT_SYSCALL ?
				    summary_json(&r->m.syscall, "timed") :
				    term_json(f, t));
	return j;
}

static json_t *fit_json(const struct fit *f)
{
	return json_pack("{s:I, s:f, s:f, s:f}", "n", (json_int_t)f->n,
			 "spread", f->spread, "least", f->least,
			 "most", f->most);
}

/* ---- probes ------------------------------------------------------------- */

static json_t *probed_terms_json(const struct summary term[FIT_TERMS])
{
	json_t *j = json_object();
	int k;

	for (k = 0; k < FIT_TERMS; k++)
		json_object_set_new(j, fit_names[k],
				    summary_json(&term[k], k == FIT_SYSCALL ?
						 "timed" : "probe"));
	return j;
}

static json_t *parts_json(const struct terms *t)
{
	static const char *const per[TERMS_PARTS] = {
		[PART_LOOKUP] = "node", [PART_ZAP] = "page",
		[PART_REMOVE] = "node", [PART_REST] = "unmap",
		[PART_FIXED] = "unmap", [PART_UNMAP] = "node",
	};
	json_t *j = json_object(), *one;
	int k;

	for (k = 0; k < TERMS_PARTS; k++) {
		one = summary_json(&t->part[k], "probe");
		json_object_set_new(one, "per", json_string(per[k]));
		json_object_set_new(j, terms_parts[k], one);
	}
	return j;
}

/* The terms whose means differ between the states. */
static json_t *differing_json(const struct terms *t)
{
	json_t *list = json_array();
	int k;

	for (k = 0; k < FIT_TERMS; k++)
		if (terms_differ(t, k))
			json_array_append_new(list, json_string(fit_names[k]));
	return list;
}

static json_t *probes_json(const struct result *r)
{
	const struct terms *t = &r->terms;

	if (!r->probed)
		return t->why ? json_pack("{s:s}", "why_not", t->why) :
				json_null();
	return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
			 "attached", t->rung, "complete", t->complete,
			 "missed", (json_int_t)t->missed,
			 "lost", (json_int_t)t->lost,
			 "orphans", (json_int_t)t->orphans,
			 "interrupted", (json_int_t)t->far,
			 "states_differ", differing_json(t),
			 "parts", parts_json(t),
			 "sum_by_fit", summary_json(&t->by_fit, "terms / fitted terms"),
			 "sum_by_runs", summary_json(&t->by_runs, "terms / measured"));
}

static json_t *probe_ns_json(const struct result *r)
{
	const struct probe_cost *c = &r->terms.cost;

	if (!r->probed)
		return json_null();
	return json_pack("{s:f, s:f, s:f}", "inside", c->inside.p50,
			 "pair", c->pair, "pair_error", c->pair_error);
}

/* ---- the rest ----------------------------------------------------------- */

static json_t *states_json(const struct result *r)
{
	json_t *j = json_object();
	int s;

	for (s = 0; s < MEASURE_STATES; s++) {
		if (r->states & 1u << s)
			json_object_set_new(j, measure_states[s],
				json_pack("{s:o, s:o, s:o}",
					  "terms", terms_json(r, &r->fit[s]),
					  "fit", fit_json(&r->fit[s]),
					  "probes", r->probed ?
						probed_terms_json(r->terms.state[s]) :
						json_null()));
	}
	return j;
}

static json_t *flush_json(const struct measure *m)
{
	json_t *list = json_array(), *one;
	size_t i;

	for (i = 0; i < m->nr_flush; i++) {
		one = summary_json(&m->flush[i].ns, "timed");
		json_object_set_new(one, "cpus",
				    json_integer(m->flush[i].cpus));
		json_object_set_new(one, "together",
				    summary_json(&m->flush[i].together,
						 "timed, by mapping"));
		json_array_append_new(list, one);
	}
	return list;
}

static const char *way_name(enum shape_by by)
{
	return by == SHAPE_BY_RECLAIM ? "reclaim" : "unmap";
}

static json_t *cell_json(const struct measure_cell *c)
{
	return json_pack("{s:s, s:I, s:s, s:s, s:b}", "shape", c->name,
			 "n", (json_int_t)c->spec.n, "by", way_name(c->by),
			 "state", measure_states[c->state], "apart", c->apart);
}

static json_t *cover_json(const struct cover *c)
{
	return json_pack("{s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f}",
			 "least", c->least, "most", c->most,
			 "usual_most", c->usual_most, "dearest", cell_json(c->dearest),
			 "cheapest", cell_json(c->cheapest),
			 "spread", c->spread, "p99", c->p99,
			 "above", c->above, "noise", c->noise,
			 "worst_least", c->worst_least,
			 "worst_most", c->worst_most);
}

/*
 * Runs of a shape in short: what the prices say of it, and what it took. By the
 * prices for the worst if it is apart.
 */
static json_t *cells_json(const struct measure *m, const struct cover *cover)
{
	json_t *list = json_array(), *one;
	struct summary s;
	size_t i, k;
	double *v;

	for (i = 0; i < m->nr; i++) {
		const struct measure_cell *c = &m->cells[i];
		const double *price = c->apart ? cover->worst : cover->price;

		v = calloc(c->n + 1, sizeof(*v));
		for (k = 0; v && k < c->n; k++)
			v[k] = fit_predict(price, &c->runs[k]) / c->runs[k].ns;
		summarise(v, v ? c->n : 0, &s);
		free(v);
		one = cell_json(c);
		json_object_set_new(one, "ratio",
				    summary_json(&s, "predicted / measured"));
		json_array_append_new(list, one);
	}
	return list;
}

static const char *state_name(unsigned int states)
{
	if (states == (1u << MEASURE_STATES) - 1)
		return "both";
	return measure_states[states & 1u << MEASURE_FRESH ? MEASURE_FRESH :
							     MEASURE_IDLE];
}

/* Of all runs; the terms are there even if those in force are of probes. */
static json_t *whole_fit_json(const struct result *r)
{
	json_t *j = fit_json(&r->all);

	json_object_set_new(j, "terms", terms_json(r, &r->all));
	return j;
}

json_t *result_json(const struct result *r)
{
	char made[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(made, sizeof(made), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	return json_pack("{s:s, s:o, s:s, s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "schema", PRICES_SCHEMA,
			 "fingerprint", machine_fingerprint(),
			 "made", made, "method", r->probed ? "probes" : "fit",
			 "state", state_name(r->states),
			 "busy", result_busy(r),
			 "set", prices_lists[r->set],
			 prices_lists[PRICES_USUAL], prices_json(r->cover.price),
			 prices_lists[PRICES_WORST], prices_json(r->cover.worst),
			 "terms", r->probed ? probed_terms_json(r->terms.term) :
					      terms_json(r, &r->all),
			 "probe_ns", probe_ns_json(r),
			 "probes", probes_json(r),
			 "fit", whole_fit_json(r),
			 "cover", cover_json(&r->cover),
			 "states", states_json(r),
			 "reclaim", summary_json(&r->m.reclaim, "timed"),
			 "flush", flush_json(&r->m),
			 "shapes", cells_json(&r->m, &r->cover));
}
