// SPDX-License-Identifier: GPL-2.0
/* Judging a run, and telling what came out of it. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "../../brumm/machine.h"
#include "result.h"

/* ---- judging ------------------------------------------------------------- */

bool load_result_partial(const struct result *r)
{
	return r->client.cut || r->client.exhausted || ranks_missing(r->ranks);
}

/* Sums over the servers of what changed; NAN where one does not say. */
static void judge_servers(const struct result *r, struct facts *f)
{
	unsigned int i;

	f->restarts = f->evictions = 0;
	for (i = 0; i < r->config->servers; i++) {
		const struct server_stats *a = &r->before[i], *b = &r->after[i];

		if (!a->known || !b->known) {
			f->evictions = NAN;
			/* One that answers no more is down. */
			f->restarts += a->known && !r->client.cut;
			continue;
		}
		f->restarts += a->pid != b->pid || b->uptime < a->uptime;
		f->evictions += (double)(b->evictions - a->evictions);
	}
}

void load_result_judge(struct result *r)
{
	const struct config *c = r->config;
	const struct client *k = &r->client;
	const struct tally *t = &r->counts.tally[0];
	const uint64_t *o = t->outcome;
	struct facts f = {
		.interrupted = k->cut || k->exhausted,
		.ranks = r->ranks->share.ranks,
		.reported = r->ranks->share.ranks - ranks_missing(r->ranks),
		.start_error = 2 * (double)r->ranks->error,
		.window = (double)k->window,
		.requests = (double)tally_requests(t),
		.scheduled = c->closed ? NAN : (double)tally_requests(t),
		.sent = (double)r->counts.sent_in_window,
		.rate = c->closed ? NAN : c->rate,
		.late = c->closed ? NAN : (double)t->threshold[0].over_lag,
		.arrivals = k->arrivals, .busy = k->busy,
		.run_delay = k->run_delay, .timer = k->timer_p50,
		.backwards = k->backwards, .drift = k->drift,
		.resolution = k->resolution, .lost = (double)k->lost,
		.errors = (double)(o[OUTCOME_REFUSED] + o[OUTCOME_PROTOCOL] +
				   o[OUTCOME_UNSENT]),
		.misses = c->fill ? (double)t->misses : NAN,
		.asked = (double)(t->hits + t->misses),
		.steal = k->steal,
		.in_flight = k->in_flight, .latencies = k->latencies,
	};

	judge_servers(r, &f);
	gates_judge(&f, r->gate);
}

int load_result_status(const struct result *r)
{
	if (r->client.unlogged)
		return EXIT_ERROR;
	if (load_result_partial(r) || gates_failed(r->gate))
		return EXIT_MISSED;
	return attribution_status(r->attribution);
}

static const char *status_name(const struct result *r)
{
	if (load_result_partial(r))
		return "partial";
	return gates_failed(r->gate) ? "invalid" : "valid";
}

static void unlogged_reason(const struct result *r, char *buf, size_t size)
{
	snprintf(buf, size, "log: %lu of %u ranks could not write it",
		 r->client.unlogged, r->ranks->share.ranks);
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *reasons_json(const struct result *r)
{
	json_t *list = json_array();
	char text[256];
	unsigned int i;

	if (r->client.exhausted)
		json_array_append_new(list,
			json_string("the closed loop was faster than there was room for"));
	if (r->client.unlogged) {
		unlogged_reason(r, text, sizeof(text));
		json_array_append_new(list, json_string(text));
	}
	for (i = 0; i < GATES; i++) {
		if (r->gate[i].verdict != GATE_FAIL)
			continue;
		gate_reason(&r->gate[i], text, sizeof(text));
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *servers_json(const struct result *r)
{
	json_t *list = json_array(), *one;
	unsigned int i;

	for (i = 0; list && i < r->config->servers; i++) {
		one = tally_json(&r->counts.tally[1 + i], r->config);
		if (!one)
			break;
		json_object_set_new(one, "address",
				    json_string(r->config->server[i].name));
		json_object_set_new(one, "stats",
			json_pack("{s:o, s:o}",
				  "before", server_stats_json(&r->before[i]),
				  "after", server_stats_json(&r->after[i])));
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *ranks_json(const struct result *r)
{
	unsigned int ranks = r->ranks->share.ranks;

	return json_pack("{s:i, s:i, s:o, s:I}", "expected", (int)ranks,
			 "reported", (int)(ranks - ranks_missing(r->ranks)),
			 "missing", ranks_missing_json(r->ranks),
			 "start_error_ns", (json_int_t)(2 * r->ranks->error));
}

static json_t *client_json(const struct result *r)
{
	return json_pack("{s:{s:I, s:I}, s:O}",
			 "timer_overshoot_ns",
				"p50", (json_int_t)r->client.timer_p50,
				"p99", (json_int_t)r->client.timer_p99,
			 "threads", r->threads);
}

static json_t *log_json(const struct result *r)
{
	return r->config->log ? json_string(r->client.unlogged ? "failed" : "written") :
				json_null();
}

json_t *load_result_json(const struct result *r)
{
	const struct counts *n = &r->counts;

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:o, s:O, s:o, s:o}",
		"schema", "brumm-mc-load/1", "status", status_name(r),
		"reasons", reasons_json(r),
		"log", log_json(r),
		"config", config_json(r->config, r->hedge, r->spin),
		"machine", machine_describe(),
		"time",
			"start_ns", (json_int_t)r->start,
			"start_realtime_ns", (json_int_t)r->start_realtime,
			"window_ns", (json_int_t)r->client.window,
			"grace_ns", (json_int_t)r->client.grace,
		"ranks", ranks_json(r),
		"total", tally_json(&n->tally[0], r->config),
		"servers", servers_json(r),
		"timeline", line_json(n, r->client.window),
		"copies",
			"sent", (json_int_t)n->sent,
			"hedged", (json_int_t)n->hedged,
			"won", (json_int_t)n->won,
			"late", (json_int_t)r->client.late,
		"client", client_json(r),
		"connections", r->connections,
		"gates", gates_json(r->gate),
		"attribution", attribution_json(r->attribution));
}

/* ---- text ---------------------------------------------------------------- */

static void print_quantiles(const char *name, const struct mc_hist *h, FILE *f)
{
	static const double q[] = { 0.5, 0.9, 0.99, 0.999 };
	char text[16];
	size_t i;

	fprintf(f, "%-24s", name);
	for (i = 0; i < ARRAY_SIZE(q); i++)
		fprintf(f, " %10s", h->n ?
			brumm_format_time(mc_hist_quantile(h, q[i]), text,
					  sizeof(text)) : "-");
	fprintf(f, " %10s\n", h->n ? brumm_format_time(h->max, text,
						       sizeof(text)) : "-");
}

static void print_census(const struct tally *t, FILE *f)
{
	const uint64_t *o = t->outcome;

	fprintf(f, "requests  %lu: answered %lu, failed %lu, timed out %lu, in flight at the end %lu\n",
		tally_requests(t), o[OUTCOME_ANSWERED],
		o[OUTCOME_REFUSED] + o[OUTCOME_LOST] + o[OUTCOME_PROTOCOL] +
		o[OUTCOME_UNSENT], o[OUTCOME_TIMED_OUT], o[OUTCOME_IN_FLIGHT]);
}

static void print_thresholds(const struct result *r, FILE *f)
{
	const struct tally *t = &r->counts.tally[0];
	double n = (double)tally_requests(t);
	const struct over *o = t->threshold;
	char text[16];
	unsigned int i;

	fprintf(f, "\n%-10s %12s %12s %12s %12s\n", "longer", "of requests",
		"at most", "from sending", "sent later");
	for (i = 0; n > 0 && i < r->config->thresholds; i++, o++)
		fprintf(f, "%-10s %11.4f%% %11.4f%% %11.4f%% %11.4f%%\n",
			brumm_format_time(r->config->threshold[i], text,
					  sizeof(text)),
			100 * (double)(o->over + o->censored_over) / n,
			100 * (double)(o->over + o->censored_over +
				       o->censored_under) / n,
			100 * (double)o->over_send / n,
			100 * (double)o->over_lag / n);
}

static void print_gates(const struct result *r, FILE *f)
{
	char text[256];
	unsigned int i;

	fprintf(f, "\n%s\n", status_name(r));
	if (r->client.unlogged) {
		unlogged_reason(r, text, sizeof(text));
		fprintf(f, "  %s\n", text);
	}
	for (i = 0; i < GATES; i++) {
		if (r->gate[i].verdict == GATE_PASS)
			continue;
		if (r->gate[i].verdict == GATE_UNKNOWN) {
			fprintf(f, "  gate %s: not known here\n", r->gate[i].name);
			continue;
		}
		gate_reason(&r->gate[i], text, sizeof(text));
		fprintf(f, "  %s\n", text);
	}
}

void load_result_print(const struct result *r, FILE *f)
{
	const struct tally *t = &r->counts.tally[0];
	double seconds = (double)r->client.window / 1e9;
	unsigned int ranks = r->ranks->share.ranks;

	fprintf(f, "window    %.3f s, %.0f requests a second", seconds,
		seconds > 0 ? (double)tally_requests(t) / seconds : 0);
	if (ranks > 1)
		fprintf(f, ", %u of %u ranks", ranks - ranks_missing(r->ranks),
			ranks);
	fputc('\n', f);
	print_census(t, f);
	fprintf(f, "answers   %lu hits, %lu misses, %lu stored\n", t->hits,
		t->misses, t->stored);
	if (r->config->hedge_text)
		fprintf(f, "copies    %lu sent, %lu hedged, %lu of them answered first\n",
			r->counts.sent, r->counts.hedged, r->counts.won);
	fprintf(f, "\n%-24s %10s %10s %10s %10s %10s\n", "", "p50", "p90", "p99",
		"p99.9", "longest");
	print_quantiles("from the intended time", &t->intended, f);
	print_quantiles("from sending", &t->send, f);
	print_quantiles("sent after it was due", &t->lag, f);
	print_thresholds(r, f);
	attribution_print(r->attribution, f);
	print_gates(r, f);
}
