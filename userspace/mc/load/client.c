// SPDX-License-Identifier: GPL-2.0
/* What the client itself did in a run, from what its threads have noted. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../brumm/cli.h"
#include "result.h"

/* Of a thread, so many gaps are tested, spread over the window. */
#define TESTED_GAPS	500

void mark_now(struct mark *m)
{
	clock_pair(&m->mono, &m->raw);
	m->has_cpu = !cpu_time(&m->cpu);
}

static double greatest(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

/* ---- one rank ------------------------------------------------------------ */

/* Gaps between requests as they were sent, against those of the schedule. */
static double test_arrivals(const struct config *c, const struct share *share,
			    const struct worker *w)
{
	const struct plan *p = w->plan;
	uint32_t per = (uint32_t)p->legs * p->copies, i, step, n = 0;
	double gap[TESTED_GAPS], mean;

	if (c->closed || c->arrivals != GAP_EXPONENTIAL || w->effort.began < 2)
		return NAN;
	/* All flows of all ranks are asked equally often. */
	mean = 1e9 / c->rate * (c->connections * share->ranks) / w->flows;
	step = (w->effort.began - 1) / TESTED_GAPS;
	step = step ? step : 1;
	for (i = 1; i < w->effort.began && n < TESTED_GAPS; i += step) {
		uint64_t before = p->copy[(i - 1) * per].sent;
		uint64_t after = p->copy[i * per].sent;

		if (before && after)
			gap[n++] = after > before ? (double)(after - before) : 0;
	}
	return gates_anderson_darling(gap, n, mean);
}

/* Of those that were sent, from then to when they were decided. */
static double sum_of_latencies(const struct worker *w)
{
	const struct plan *p = w->plan;
	uint32_t i, n = w->effort.began * p->legs * p->copies;
	double sum = 0;

	for (i = 0; i < n; i++) {
		const struct copy *copy = &p->copy[i];
		uint64_t decided = copy->received;

		if (copy->status == COPY_NONE || !copy->sent)
			continue;
		if (copy->status == COPY_LATE)	/* with the other one */
			decided = p->copy[i ^ 1].received;
		if (decided > copy->sent)
			sum += (double)(decided - copy->sent);
	}
	return sum;
}

static void count_thread(struct client *k, const struct config *c,
			 const struct share *share, const struct worker *w)
{
	const struct effort *e = &w->effort;
	double length = (double)e->length;

	k->cut += e->cut != 0;
	k->exhausted += e->exhausted;
	k->late += e->late;
	k->backwards += e->backwards;
	k->in_flight += e->in_flight;
	k->latencies += sum_of_latencies(w);
	k->arrivals = greatest(k->arrivals, test_arrivals(c, share, w));
	if (length <= 0)
		return;
	k->busy = greatest(k->busy, 1 - (double)e->idle / length);
	if (e->used.has_run_delay)
		k->run_delay = greatest(k->run_delay,
					(double)e->used.run_delay / length);
}

static json_t *thread_json(const struct worker *w, const struct share *share)
{
	const struct effort *e = &w->effort;

	return json_pack("{s:i, s:i, s:i, s:o, s:o, s:I, s:o, s:I, s:I}",
		"rank", (int)share->rank, "thread", (int)w->index,
		"tid", (int)w->tid,
		"cpu", w->cpu < 0 ? json_null() : json_integer(w->cpu),
		"busy", e->length ? json_real(1 - (double)e->idle /
						  (double)e->length) : json_null(),
		"cpu_ns", (json_int_t)e->used.cpu,
		"run_delay_ns", e->used.has_run_delay ?
			json_integer((json_int_t)e->used.run_delay) : json_null(),
		"involuntary_switches", (json_int_t)e->used.switches,
		"max_in_flight", (json_int_t)e->max_in_flight);
}

static void add_connections(json_t *list, struct client *k,
			    const struct worker *w, const struct share *share)
{
	unsigned int i, port, servers = w->config->servers;
	const struct conn *c;

	for (i = 0; i < w->flows * servers; i++) {
		c = &w->conn[i];
		k->lost += c->lost;
		port = conn_port(c);
		json_array_append_new(list,
			json_pack("{s:i, s:i, s:i, s:i, s:o, s:i}",
				  "rank", (int)share->rank,
				  "thread", (int)w->index,
				  "server", (int)(i % servers),
				  "connection", (int)worker_connection(w, i),
				  "local_port", port ? json_integer((int)port) :
						json_null(),
				  "lost", (int)c->lost));
	}
}

static void count_machine(struct client *k, const struct mark mark[2])
{
	double mono = (double)(mark[1].mono - mark[0].mono);
	double raw = (double)(mark[1].raw - mark[0].raw);
	double all = (double)(mark[1].cpu.all - mark[0].cpu.all);
	struct timespec ts;

	k->drift = raw > 0 ? mono / raw - 1 : NAN;
	k->steal = NAN;
	if (mark[0].has_cpu && mark[1].has_cpu && all > 0)
		k->steal = (double)(mark[1].cpu.steal - mark[0].cpu.steal) / all;
	k->resolution = clock_getres(CLOCK_MONOTONIC, &ts) ? NAN :
			(double)ts.tv_nsec + 1e9 * (double)ts.tv_sec;
}

int load_result_count(struct result *r, const struct worker *w,
		 const struct window *window, const struct mark mark[2])
{
	const struct config *c = r->config;
	struct client *k = &r->client;
	unsigned int t;

	if (counts_alloc(&r->counts, c, c->duration))
		return -ENOMEM;
	r->threads = json_array();
	r->connections = json_array();
	k->window = window->end - window->start;
	k->grace = window->close > window->end ? window->close - window->end : 0;
	k->arrivals = k->busy = k->run_delay = NAN;
	for (t = 0; t < c->threads; t++) {
		counts_add_plan(&r->counts, c, w[t].plan, w[t].effort.began,
				window);
		count_thread(k, c, &r->ranks->share, &w[t]);
		json_array_append_new(r->threads,
				      thread_json(&w[t], &r->ranks->share));
		add_connections(r->connections, k, &w[t], &r->ranks->share);
	}
	count_machine(k, mark);
	return 0;
}

/* ---- several ranks ------------------------------------------------------- */

/* Before the bytes of a result: counts, client, tallies, time line, JSON text. */
struct packed {
	uint64_t magic, size, tallies, line, text;
	uint64_t sent, sent_in_window, hedged, won;
	struct client client;
};

#define MAGIC 0x6272756d6d6d6331ull

static size_t line_size(const struct counts *n)
{
	return n->intervals * counts_columns(n) * sizeof(*n->line);
}

void *load_result_pack(const struct result *r, size_t *size)
{
	const struct counts *n = &r->counts;
	json_t *lists = json_pack("[O, O]", r->threads, r->connections);
	char *text = lists ? json_dumps(lists, JSON_COMPACT) : NULL, *data, *at;
	struct packed p = {
		.magic = MAGIC, .tallies = (1 + n->servers) * sizeof(*n->tally),
		.line = line_size(n), .text = text ? strlen(text) + 1 : 0,
		.sent = n->sent, .sent_in_window = n->sent_in_window,
		.hedged = n->hedged, .won = n->won, .client = r->client,
	};

	json_decref(lists);
	p.size = sizeof(p) + p.tallies + p.line + p.text;
	data = at = text ? malloc(p.size) : NULL;
	if (data) {
		at = mempcpy(at, &p, sizeof(p));
		at = mempcpy(at, n->tally, p.tallies);
		at = mempcpy(at, n->line, p.line);
		memcpy(at, text, p.text);
		*size = p.size;
	}
	free(text);
	return data;
}

static void client_merge(struct client *to, const struct client *from)
{
	to->window = from->window > to->window ? from->window : to->window;
	to->grace = from->grace > to->grace ? from->grace : to->grace;
	to->cut += from->cut;
	to->exhausted += from->exhausted;
	to->unlogged += from->unlogged;
	to->late += from->late;
	to->lost += from->lost;
	to->backwards += from->backwards;
	to->in_flight += from->in_flight;
	to->latencies += from->latencies;
	to->timer_p50 = greatest(to->timer_p50, from->timer_p50);
	to->timer_p99 = greatest(to->timer_p99, from->timer_p99);
	to->arrivals = greatest(to->arrivals, from->arrivals);
	to->busy = greatest(to->busy, from->busy);
	to->run_delay = greatest(to->run_delay, from->run_delay);
	if (fabs(from->drift) > fabs(to->drift))
		to->drift = from->drift;
	to->resolution = greatest(to->resolution, from->resolution);
	to->steal = greatest(to->steal, from->steal);
}

bool load_result_add(unsigned int from, const void *data, size_t size, void *result)
{
	struct result *r = result;
	struct counts n = r->counts;
	const char *at = data;
	struct packed p;
	json_t *lists;

	(void)from;
	if (size < sizeof(p))
		return false;
	memcpy(&p, data, sizeof(p));
	if (p.magic != MAGIC || p.size != size || !p.text ||
	    p.tallies != (1 + n.servers) * sizeof(*n.tally) ||
	    p.line != line_size(&n) || at[size - 1])
		return false;
	at += sizeof(p);
	/* malloc()ed, and all before is a multiple of 8 bytes. */
	n.tally = (struct tally *)at;
	n.line = (uint64_t *)(at + p.tallies);
	n.sent = p.sent;
	n.sent_in_window = p.sent_in_window;
	n.hedged = p.hedged;
	n.won = p.won;
	lists = json_loads(at + p.tallies + p.line, 0, NULL);
	if (!lists)
		return false;
	counts_merge(&r->counts, &n);
	client_merge(&r->client, &p.client);
	json_array_extend(r->threads, json_array_get(lists, 0));
	json_array_extend(r->connections, json_array_get(lists, 1));
	json_decref(lists);
	return true;
}

void load_result_free(struct result *r)
{
	attribution_close(r->attribution);
	counts_free(&r->counts);
	json_decref(r->threads);
	json_decref(r->connections);
}
