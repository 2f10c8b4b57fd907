// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <gsl/gsl_rng.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "attribution.h"
#include "list.h"
#include "record.h"
#include "side.h"

/* Requests that are looked at, drawn from all. */
#define OUTLIERS	10000
#define NORMALS		1000

/**
 * struct attribution - see attribution.h
 * @recorder: NULL: there is none, for the reason @why
 * @explained: the sides are there
 * @interrupted: before all were looked at
 * @unlisted: the list could not be written
 * @nameless: of those that were looked at and sent, by which connection is not known
 */
struct attribution {
	const struct config *config;
	struct recorder *recorder;
	struct request_list *list;
	char *why;
	bool explained, interrupted, unlisted;
	uint64_t nameless;
	struct side outliers, normals;
};

/* ---- recording ------------------------------------------------------------ */

static void cannot(struct attribution *a, int err)
{
	if (!a->why)
		a->why = strdup(strerror(-err));
	if (err == -EPERM)
		cli_error("cannot attribute: not permitted; run it as root (CAP_BPF and CAP_PERFMON)");
	else
		cli_error("cannot attribute: %s", a->why ?: strerror(-err));
}

int attribution_open(const struct config *c, struct attribution **out)
{
	struct recorder_options o = {
		.ring = c->attribute_ring, .way = c->attribute_way,
	};
	struct attribution *a;
	uint16_t port[MAX_SERVERS];
	unsigned int i;
	int err;

	*out = NULL;
	if (!c->attribute)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a) {
		cli_fail(-ENOMEM, "cannot attribute");
		return -ENOMEM;
	}
	*out = a;
	a->config = c;
	for (i = 0; i < c->servers; i++)
		port[i] = server_port(&c->server[i]);
	o.port = port;
	o.ports = c->servers;
	err = recorder_open(&o, &a->recorder, &a->why);
	if (err) {
		cannot(a, err);
		return 0;
	}
	/* Before there is a result to be lost. */
	err = list_open(&a->list, c->attribute_log, recorder_events(a->recorder));
	if (err)
		cli_error("%s: cannot be written: %s", c->attribute_log, strerror(-err));
	return err;
}

void attribution_start(struct attribution *a)
{
	int err = a && a->recorder ? recorder_start(a->recorder) : 0;

	if (!err)
		return;
	list_close(a->list, false);
	a->list = NULL;
	recorder_close(a->recorder);
	a->recorder = NULL;
	cannot(a, err);
}

void attribution_stop(struct attribution *a)
{
	if (a && a->recorder)
		recorder_stop(a->recorder);
}

void attribution_close(struct attribution *a)
{
	if (!a)
		return;
	list_close(a->list, false);
	recorder_close(a->recorder);
	side_free(&a->outliers);
	side_free(&a->normals);
	free(a->why);
	free(a);
}

/* ---- requests ------------------------------------------------------------- */

/* A request: the i-th of a thread. */
struct place {
	const struct worker *w;
	uint32_t i;
};

/**
 * struct sample - of requests, each of which has the same chance to be in it
 * @place: there is room for @most, and @n are there, out of @of
 */
struct sample {
	struct place *place;
	size_t most, n, of;
};

/**
 * struct work - on all requests
 * @signals: came before
 */
struct work {
	struct attribution *a;
	const struct window *window;
	struct canvas canvas;
	gsl_rng *rng;
	unsigned int signals;
	struct place outlier[OUTLIERS], normal[NORMALS];
	struct sample outliers, normals;
};

static struct leg leg_of(const struct work *k, struct place p, struct decision *d)
{
	unsigned int server, port;
	struct leg l;

	if (p.i < p.w->effort.began) {
		*d = request_decision(p.w->plan, p.i);
	} else {
		*d = (struct decision){
			.intended = p.w->plan->request[p.i].intended,
			.received = k->window->close, .connection = UINT16_MAX,
		};
	}
	l = (struct leg){ .intended = d->intended, .first = d->first,
			  .sent = d->sent, .received = d->received,
			  .answered = d->answered };
	if (l.received < l.intended)
		l.received = l.intended;
	if (l.sent && l.sent < l.intended)
		l.sent = l.intended;
	if (l.sent > l.received)
		l.sent = l.received;
	if (d->connection == UINT16_MAX || !d->sent)
		return l;
	server = d->connection % k->a->config->servers;
	port = conn_port_at(&p.w->conn[d->connection], d->sent);
	if (port)
		l.ports = ATTR_PORTS(server_port(&k->a->config->server[server]), port);
	return l;
}

static int look_at(struct work *k, struct place p, struct side *side)
{
	struct decision d;
	struct leg l = leg_of(k, p, &d);
	struct finding f;

	k->a->nameless += l.sent && !l.ports;
	explain(recorder_events(k->a->recorder), &l, &k->canvas, &f);
	if (k->canvas.failed)
		return -ENOMEM;
	side_add(side, &k->canvas, &f);
	list_add(k->a->list, side == &k->a->outliers,
		 p.w->plan->request[p.i].number, &l, &f, &k->canvas);
	return 0;
}

static void draw(struct work *k, struct sample *s, struct place p)
{
	unsigned long at;

	if (s->of++ < s->most) {
		s->place[s->n++] = p;
		return;
	}
	at = gsl_rng_uniform_int(k->rng, s->of);
	if (at < s->most)
		s->place[at] = p;
}

static void draw_from(struct work *k, const struct worker *w)
{
	const struct plan *plan = w->plan;
	struct place p = { w, 0 };
	struct decision d;
	struct leg l;

	for (; p.i < plan->n && plan->request[p.i].intended < k->window->end; p.i++) {
		l = leg_of(k, p, &d);
		if (l.received - l.intended > k->a->config->attribute)
			draw(k, &k->outliers, p);
		else if (d.answered)
			draw(k, &k->normals, p);
	}
}

/* What was looked at when a signal comes is kept. */
static int look_at_sample(struct work *k, const struct sample *s, struct side *side)
{
	size_t i;
	int err = side_init(side, recorder_events(k->a->recorder));

	side->of = s->of;
	for (i = 0; !err && i < s->n; i++) {
		if (cli_signals() != k->signals) {
			k->a->interrupted = true;
			break;
		}
		err = look_at(k, s->place[i], side);
	}
	return err;
}

static int look_at_all(struct work *k, const struct worker *w)
{
	unsigned int t;
	int err;

	for (t = 0; t < k->a->config->threads; t++)
		draw_from(k, &w[t]);
	err = look_at_sample(k, &k->outliers, &k->a->outliers);
	return err ?: look_at_sample(k, &k->normals, &k->a->normals);
}

static int explain_all(struct attribution *a, const struct worker *w,
		       const struct window *window)
{
	struct work *k = calloc(1, sizeof(*k));
	int err = -ENOMEM;

	if (!k)
		return err;
	k->a = a;
	k->window = window;
	k->signals = cli_signals();
	k->outliers = (struct sample){ k->outlier, OUTLIERS, 0, 0 };
	k->normals = (struct sample){ k->normal, NORMALS, 0, 0 };
	k->rng = gsl_rng_alloc(gsl_rng_taus2);
	if (k->rng) {
		gsl_rng_set(k->rng, a->config->seed);
		err = look_at_all(k, w);
		gsl_rng_free(k->rng);
	}
	canvas_free(&k->canvas);
	free(k);
	return err;
}

void attribution_explain(struct attribution *a, const struct worker *w,
			 const struct window *window)
{
	int err;

	if (!a || !a->recorder)
		return;
	err = explain_all(a, w, window);
	if (err)
		cannot(a, err);
	a->explained = !err;
	err = list_close(a->list, a->explained);
	a->list = NULL;
	a->unlisted = err;
	if (err)
		cli_error("%s: cannot be written: %s", a->config->attribute_log,
			  strerror(-err));
}

/* ---- telling -------------------------------------------------------------- */

static bool is_complete(const struct attribution *a)
{
	struct recorder_losses l = recorder_losses(a->recorder);

	return !l.ring && !l.memory && !l.missed && !l.orphans && !l.threads &&
	       !a->nameless && !a->interrupted;
}

int attribution_status(const struct attribution *a)
{
	if (!a)
		return EXIT_FINE;
	if (!a->explained)
		return EXIT_UNSUPPORTED;
	if (a->unlisted)
		return EXIT_ERROR;
	return is_complete(a) ? EXIT_FINE : EXIT_MISSED;
}

static json_t *losses_json(const struct attribution *a)
{
	struct recorder_losses l = recorder_losses(a->recorder);

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}",
		"ring", (json_int_t)l.ring, "memory", (json_int_t)l.memory,
		"missed", (json_int_t)l.missed, "orphans", (json_int_t)l.orphans,
		"threads", (json_int_t)l.threads,
		"connections", (json_int_t)a->nameless);
}

json_t *attribution_json(const struct attribution *a)
{
	const struct events *e;

	if (!a)
		return json_null();
	if (!a->explained)
		return json_pack("{s:s, s:s, s:I}", "status", "none",
			"reason", a->why ?: "no memory",
			"threshold_ns", (json_int_t)a->config->attribute);
	e = recorder_events(a->recorder);
	return json_pack("{s:s, s:n, s:I, s:s, s:o, s:I, s:b, s:o, s:o, s:o}",
		"status", is_complete(a) ? "complete" : "incomplete",
		"reason",
		"threshold_ns", (json_int_t)a->config->attribute,
		"attached", recorder_way(a->recorder),
		"missing", recorder_missing(a->recorder),
		"records", (json_int_t)e->nr,
		"interrupted", a->interrupted,
		"losses", losses_json(a),
		"outliers", side_json(&a->outliers, e),
		"normals", side_json(&a->normals, e));
}

static void print_missing(const struct attribution *a, FILE *f)
{
	json_t *list = recorder_missing(a->recorder), *one;
	size_t i;

	json_array_foreach(list, i, one)
		fprintf(f, "%s%s", i ? ", " : "not to be told here: ",
			json_string_value(one));
	if (json_array_size(list))
		fputc('\n', f);
	json_decref(list);
}

void attribution_print(const struct attribution *a, FILE *f)
{
	struct recorder_losses l;
	char text[16];

	if (!a || !a->explained)
		return;
	l = recorder_losses(a->recorder);
	fprintf(f, "\nwhere the time went%*s %8lu over %-6s %6lu normal\n", 0, "",
		a->outliers.n, brumm_format_time(a->config->attribute, text,
						 sizeof(text)), a->normals.n);
	sides_print(&a->outliers, &a->normals, recorder_events(a->recorder), f);
	print_missing(a, f);
	if (a->outliers.n < a->outliers.of)
		fprintf(f, "%lu of the %lu that took longer were looked at\n",
			a->outliers.n, a->outliers.of);
	if (a->interrupted)
		fputs("incomplete: interrupted before all were looked at\n", f);
	else if (!is_complete(a))
		fprintf(f, "incomplete: lost %lu records, %lu for want of memory; missed %lu events, orphaned %lu, threads %lu, connections %lu; see --attribute-ring\n",
			l.ring, l.memory, l.missed, l.orphans, l.threads, a->nameless);
}
