// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../results/load.h"
#include "cell.h"
#include "neighbour.h"
#include "servers.h"

#define SELF "/proc/self/exe mc load"

/* What is at work, and what came of it. */
struct work {
	const struct spec *s;
	const struct cell *c;
	struct servers servers;
	struct neighbour neighbour;
	struct child load;
	char announce[64];	/* the file where the load says when it begins */
	json_t *checks, *result;
	const char *status;
	char why[256];
};

/* The status of what an error ended. */
static int failed(struct work *w, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int failed(struct work *w, int err, const char *fmt, ...)
{
	va_list ap;

	w->status = err == -EINTR || cli_signal() ? "interrupted" : "failed";
	if (!*w->why) {
		va_start(ap, fmt);
		vsnprintf(w->why, sizeof(w->why), fmt, ap);
		va_end(ap);
	}
	return err;
}

/* ---- the load ------------------------------------------------------------- */

/* "rate" is for each server; a request that fans out goes to all. */
static char *load_command(const struct work *w)
{
	double rate = (double)cell_number(w->c, AXIS_RATE) *
		      (double)w->servers.count / (double)w->servers.fanout;
	char *text = NULL;
	size_t size = 0, i;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "%s --json --rate=%.0f --seed=%llu", w->s->loader ?: SELF, rate,
		(unsigned long long)(w->s->seed + w->c->repeat));
	if (w->servers.fanout > 1)
		fprintf(f, " --fanout=%zu", w->servers.fanout);
	if (*w->announce)
		fprintf(f, " --announce=%s", w->announce);
	for (i = 0; i < w->s->load.count; i++)
		fprintf(f, " %s", w->s->load.item[i]);
	for (i = 0; i < w->servers.count; i++)
		fprintf(f, " tcp:127.0.0.1:%u", w->servers.server[i].port);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int start_load(struct work *w)
{
	struct child_opts o = CHILD_OPTS_INIT;
	char *text = load_command(w);
	const char *step;
	int err;

	o.argv = text ? split_words(text) : NULL;
	o.out = true;
	free(text);
	if (!o.argv)
		return failed(w, -ENOMEM, "no memory");
	err = child_start(&w->load, &o, &step);
	free(o.argv);
	return err ? failed(w, err, "the load: %s: %s", step, strerror(-err)) : 0;
}

/* A name for the file, which is empty so far. */
static int make_announce(struct work *w)
{
	int fd;

	snprintf(w->announce, sizeof(w->announce), "%s/brumm-mc-XXXXXX",
		 P_tmpdir);
	fd = mkstemp(w->announce);
	if (fd < 0) {
		*w->announce = 0;
		return failed(w, -errno, P_tmpdir ": %s", strerror(errno));
	}
	close(fd);
	return 0;
}

/* It is not reaped: its output is still to be read. */
static bool load_has_ended(const struct work *w)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)w->load.pid, &info,
		      WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* Waits until the load has said when its window begins. */
static int read_start(struct work *w, uint64_t *start)
{
	unsigned long long ns;
	char end = 0;
	int err = 0, n;
	FILE *f;

	for (;;) {
		f = fopen(w->announce, "re");
		n = f ? fscanf(f, "%llu%c", &ns, &end) : 0;
		if (f)
			fclose(f);
		if (n == 2 && end == '\n')
			break;
		if (load_has_ended(w))
			return -ECHILD;
		err = pause_for(5000000);
		if (err)
			return err;
	}
	*start = ns;
	return 0;
}

/* Lets the neighbour act at its time. */
static int act(struct work *w)
{
	uint64_t start = 0, at, now;
	int err = read_start(w, &start);

	if (err == -ECHILD)
		return 0;	/* what the load says is the reason */
	if (err)
		return err;
	at = start + w->s->at;
	now = cli_now();
	if (at > now)
		err = pause_for(at - now);
	return err ? err : neighbour_act(&w->neighbour, w->why, sizeof(w->why));
}

/* What the load printed is what it says it is. */
static int take_result(struct work *w, const char *text, int status)
{
	struct load l;
	char why[160];
	int err;

	w->result = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!w->result)
		return failed(w, -EIO, "the load printed no result (exit code %d)",
			      WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	err = load_parse(&l, w->result, why, sizeof(why));
	if (err)
		return failed(w, err, "the load's result: %s", why);
	if (!strcmp(l.status, "partial"))
		err = failed(w, -EINTR, "the load was cut short");
	load_free(&l);
	return err;
}

/* Was the neighbour at work in the window? */
static int check_window(struct work *w)
{
	const json_t *time = json_object_get(w->result, "time");
	uint64_t start = (uint64_t)json_integer_value(
		json_object_get(time, "start_ns"));
	uint64_t window = (uint64_t)json_integer_value(
		json_object_get(time, "window_ns"));

	if (!strcmp(w->c->value[AXIS_NEIGHBOUR], "none"))
		return 0;
	if (w->neighbour.from >= start &&
	    w->neighbour.from < start + window)
		return 0;
	return failed(w, -ERANGE, "the neighbour acted outside the window: a longer duration, or another [neighbour] at");
}

static int run_load(struct work *w)
{
	bool beside = strcmp(w->c->value[AXIS_NEIGHBOUR], "none");
	int status = 0, err = beside ? make_announce(w) : 0, acted;
	char *text;

	if (!err)
		err = start_load(w);
	if (err)
		return err;
	acted = beside ? act(w) : 0;
	/* There is nothing to wait for. */
	if (acted)
		kill(w->load.pid, SIGTERM);
	text = child_read_all(&w->load, &status);
	err = acted ? failed(w, acted, "the neighbour: %s", strerror(-acted)) :
		take_result(w, text, status);
	free(text);
	return err ? err : check_window(w);
}

/* ---- all of it ------------------------------------------------------------ */

static int run_all(struct work *w)
{
	bool placed;
	int err;

	err = servers_start(&w->servers, w->s, w->c, w->why, sizeof(w->why));
	if (err)
		return failed(w, err, "the servers: %s", strerror(-err));
	w->checks = servers_verify(&w->servers, w->c, &placed);
	if (!placed) {
		w->status = "misplaced";
		snprintf(w->why, sizeof(w->why), "a server is not where it was to be: see checks");
		return -EXDEV;
	}
	err = neighbour_start(&w->neighbour, w->s, w->c, w->why, sizeof(w->why));
	if (err)
		return failed(w, err, "the neighbour: %s", strerror(-err));
	err = run_load(w);
	if (err)
		return err;
	/* What moved away meanwhile spoils it as much. */
	json_decref(w->checks);
	w->checks = servers_verify(&w->servers, w->c, &placed);
	if (!placed) {
		w->status = "misplaced";
		snprintf(w->why, sizeof(w->why), "a server did not stay where it was to be: see checks");
		return -EXDEV;
	}
	w->status = "done";
	return 0;
}

/* What the load attributed, or why it could not; null if it was not asked to. */
static json_t *attribution(const struct work *w)
{
	json_t *a = json_object_get(w->result, "attribution");

	return json_is_object(a) ? a : NULL;
}

static json_t *result_json(const struct work *w)
{
	return json_pack("{s:s, s:s, s:o, s:I, s:s, s:o, s:o, s:O?, s:o, s:O?, s:O?}",
		"schema", CELL_SCHEMA,
		"cell", w->c->name,
		"axes", cell_axes_json(w->c),
		"repeat", (json_int_t)w->c->repeat,
		"status", w->status,
		"reason", *w->why ? json_string(w->why) : json_null(),
		"spec", spec_json(w->s),
		"checks", w->checks,
		"neighbour", w->neighbour.s ? neighbour_json(&w->neighbour) : json_null(),
		"load", w->result,
		"attribution", attribution(w));
}

json_t *cell_skip(const struct spec *s, const struct cell *c)
{
	struct work w = { .s = s, .c = c, .status = "skipped" };

	if (!servers_unfit(s, c, w.why, sizeof(w.why)))
		return NULL;
	return result_json(&w);
}

json_t *cell_run(const struct spec *s, const struct cell *c)
{
	struct work w = { .s = s, .c = c, .load.out = -1, .neighbour.child.out = -1 };
	json_t *j = cell_skip(s, c);

	if (j)
		return j;
	run_all(&w);
	j = result_json(&w);
	child_end(&w.load, 2000000000);
	if (*w.announce)
		unlink(w.announce);
	neighbour_stop(&w.neighbour);
	servers_stop(&w.servers);
	json_decref(w.checks);
	json_decref(w.result);
	return j;
}

bool cell_is_done(const struct spec *s, const struct cell *c,
		  const json_t *result)
{
	const char *status = json_string_value(json_object_get(result, "status"));
	json_t *axes = cell_axes_json(c), *spec = spec_json(s);
	bool same = status && !strcmp(status, "done") &&
		    json_equal(axes, json_object_get(result, "axes")) &&
		    json_equal(spec, json_object_get(result, "spec"));

	json_decref(axes);
	json_decref(spec);
	return same;
}
