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

/* Normal requests that are looked at, drawn from all. */
#define NORMALS		1000

/**
 * struct attribution - see attribution.h
 * @recorder: NULL: there is none, for the reason @why
 * @err: why there is none
 * @explained: the sides are there
 */
struct attribution {
	const struct config *config;
	struct recorder *recorder;
	char *why;
	int err;
	bool explained;
	struct side outliers, normals;
};

/* ---- recording ------------------------------------------------------------ */

static uint16_t port_of(const struct server *s)
{
	if (s->addr.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&s->addr)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&s->addr)->sin_port);
}

static void cannot(struct attribution *a, int err)
{
	a->err = err;
	if (!a->why)
		a->why = strdup(strerror(-err));
	if (err == -EPERM)
		cli_error("cannot attribute: not permitted; run it as root (CAP_BPF and CAP_PERFMON)");
	else
		cli_error("cannot attribute: %s", a->why ?: strerror(-err));
}

struct attribution *attribution_open(const struct config *c)
{
	struct recorder_options o = {
		.ring = c->attribute_ring, .way = c->attribute_way,
	};
	struct attribution *a;
	uint16_t port[MAX_SERVERS];
	unsigned int i;
	int err;

	if (!c->attribute)
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a) {
		cli_fail(-ENOMEM, "cannot attribute");
		return NULL;
	}
	a->config = c;
	for (i = 0; i < c->servers; i++)
		port[i] = port_of(&c->server[i]);
	o.port = port;
	o.ports = c->servers;
	err = recorder_open(&o, &a->recorder, &a->why);
	if (err)
		cannot(a, err);
	return a;
}

void attribution_start(struct attribution *a)
{
	int err = a && a->recorder ? recorder_start(a->recorder) : 0;

	if (!err)
		return;
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
 * struct work - on all requests
 * @normal: places of the sample, @normals of them, out of @seen
 */
struct work {
	struct attribution *a;
	const struct window *window;
	struct canvas canvas;
	struct request_list *list;
	gsl_rng *rng;
	struct place normal[NORMALS];
	size_t normals, seen;
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
	l = (struct leg){ .intended = d->intended, .sent = d->sent,
			  .received = d->received, .answered = d->answered };
	if (l.received < l.intended)
		l.received = l.intended;
	if (l.sent && l.sent < l.intended)
		l.sent = l.intended;
	if (l.sent > l.received)
		l.sent = l.received;
	if (d->connection == UINT16_MAX)
		return l;
	server = d->connection % k->a->config->servers;
	port = conn_port(&p.w->conn[d->connection]);
	if (port)
		l.ports = ATTR_PORTS(port_of(&k->a->config->server[server]), port);
	return l;
}

static int look_at(struct work *k, struct place p, struct side *side)
{
	struct decision d;
	struct leg l = leg_of(k, p, &d);
	struct finding f;

	explain(recorder_events(k->a->recorder), &l, &k->canvas, &f);
	if (k->canvas.failed)
		return -ENOMEM;
	side_add(side, &k->canvas, &f);
	list_add(k->list, side == &k->a->outliers,
		 p.w->plan->request[p.i].number, &l, &f, &k->canvas);
	return 0;
}

/* Every normal request has the same chance to be in the sample. */
static void draw(struct work *k, struct place p)
{
	unsigned long at;

	if (k->seen++ < NORMALS) {
		k->normal[k->normals++] = p;
		return;
	}
	at = gsl_rng_uniform_int(k->rng, k->seen);
	if (at < NORMALS)
		k->normal[at] = p;
}

static int look_at_thread(struct work *k, const struct worker *w)
{
	const struct plan *plan = w->plan;
	struct place p = { w, 0 };
	struct decision d;
	struct leg l;
	int err = 0;

	for (; !err && p.i < plan->n && plan->request[p.i].intended < k->window->end;
	     p.i++) {
		l = leg_of(k, p, &d);
		if (l.received - l.intended > k->a->config->attribute)
			err = look_at(k, p, &k->a->outliers);
		else if (d.answered)
			draw(k, p);
	}
	return err;
}

static int look_at_all(struct work *k, const struct worker *w)
{
	const struct events *e = recorder_events(k->a->recorder);
	int err = side_init(&k->a->outliers, e);
	unsigned int t;
	size_t i;

	if (!err)
		err = side_init(&k->a->normals, e);
	for (t = 0; !err && t < k->a->config->threads; t++)
		err = look_at_thread(k, &w[t]);
	for (i = 0; !err && i < k->normals; i++)
		err = look_at(k, k->normal[i], &k->a->normals);
	return err;
}

int attribution_explain(struct attribution *a, const struct worker *w,
			const struct window *window)
{
	struct work *k;
	int err, listed;

	if (!a || !a->recorder)
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->a = a;
	k->window = window;
	k->rng = gsl_rng_alloc(gsl_rng_taus2);
	if (k->rng)
		gsl_rng_set(k->rng, a->config->seed);
	err = k->rng ? list_open(&k->list, a->config->attribute_log,
				 recorder_events(a->recorder)) : -ENOMEM;
	if (!err)
		err = look_at_all(k, w);
	listed = list_close(k->list, !err);
	a->explained = !err;
	if (err || listed)
		cli_fail(err ?: listed, "%s", listed ? a->config->attribute_log :
						      "cannot attribute");
	gsl_rng_free(k->rng);
	canvas_free(&k->canvas);
	free(k);
	return err ?: listed;
}

/* ---- telling -------------------------------------------------------------- */

static bool is_complete(const struct attribution *a)
{
	struct recorder_losses l = recorder_losses(a->recorder);

	return !l.ring && !l.memory && !l.missed && !l.orphans && !l.threads;
}

int attribution_status(const struct attribution *a)
{
	if (!a)
		return EXIT_FINE;
	if (!a->explained)
		return EXIT_UNSUPPORTED;
	return is_complete(a) ? EXIT_FINE : EXIT_MISSED;
}

static json_t *losses_json(const struct attribution *a)
{
	struct recorder_losses l = recorder_losses(a->recorder);

	return json_pack("{s:I, s:I, s:I, s:I, s:I}",
		"ring", (json_int_t)l.ring, "memory", (json_int_t)l.memory,
		"missed", (json_int_t)l.missed, "orphans", (json_int_t)l.orphans,
		"threads", (json_int_t)l.threads);
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
	return json_pack("{s:s, s:n, s:I, s:s, s:o, s:I, s:o, s:o, s:o}",
		"status", is_complete(a) ? "complete" : "incomplete",
		"reason",
		"threshold_ns", (json_int_t)a->config->attribute,
		"attached", recorder_way(a->recorder),
		"missing", recorder_missing(a->recorder),
		"records", (json_int_t)e->nr,
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
	if (!is_complete(a))
		fprintf(f, "incomplete: lost %lu records, %lu for want of memory; missed %lu events, orphaned %lu, threads %lu; see --attribute-ring\n",
			l.ring, l.memory, l.missed, l.orphans, l.threads);
}
