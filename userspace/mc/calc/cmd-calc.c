// SPDX-License-Identifier: GPL-2.0
/* brumm mc calc: what counts of slow requests mean. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../mc.h"
#include "calc.h"

struct args {
	struct figures_opts opts;
	char **file;
	size_t files;
	uint64_t outliers, requests;
	double op;
	bool has_outliers, has_requests, has_op, paper, json;
};

enum { OPT_SERVERS = 's', OPT_EACH = 'k', OPT_TARGET = 't', OPT_CONFIDENCE = 'c',
       OPT_OUTLIERS = 'm', OPT_REQUESTS = 'n', OPT_OP = 'p', OPT_PAPER = 'P',
       OPT_SEED = 'S', OPT_JSON = 'j' };

static const struct argp_option options[] = {
	{ "outliers", OPT_OUTLIERS, "M", 0, "requests that took too long", 0 },
	{ "requests", OPT_REQUESTS, "N", 0, "all requests", 0 },
	{ "op", OPT_OP, "P", 0, "their proportion, if that is all that is known (9.18% or 0.0918)", 0 },
	{ "servers", OPT_SERVERS, "SC", 0, "servers that a request of the service waits for (1000)", 1 },
	{ "each", OPT_EACH, "K", 0, "containers or virtual machines a server, each asked (1)", 1 },
	{ "target", OPT_TARGET, "P[,P]...", 0, "proportions for the service to reach (10%,5%)", 1 },
	{ "confidence", OPT_CONFIDENCE, "P", 0, "of the intervals (95%)", 1 },
	{ "seed", OPT_SEED, "N", 0, "of the bootstrap (1)", 1 },
	{ "paper", OPT_PAPER, NULL, 0, "the factors of the paper on 10-millisecond computing, and which proportions they come from", 2 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 2 },
	{ 0 },
};

int parse_proportion(const char *text, double *p)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || errno || !isfinite(v))
		return -EINVAL;
	if (!strcmp(end, "%"))
		v /= 100;
	else if (*end)
		return -EINVAL;
	if (v < 0 || v > 1)
		return -EINVAL;
	*p = v;
	return 0;
}

int parse_targets(const char *text, struct figures_opts *o)
{
	char *copy = strdup(text), *rest = copy, *one;
	int err = copy ? 0 : -ENOMEM;
	double p;

	o->targets = 0;
	while (!err && (one = strsep(&rest, ","))) {
		if (o->targets == MAX_TARGETS || parse_proportion(one, &p) ||
		    p <= 0 || p >= 1)
			err = -EINVAL;
		else
			o->target[o->targets++] = p;
	}
	free(copy);
	return err;
}

static uint64_t get_count(struct argp_state *state, const char *text,
			  uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v < least || v > most)
		argp_error(state, "'%s' is not a number from %llu to %llu", text,
			   (unsigned long long)least, (unsigned long long)most);
	return v;
}

static void check(const struct args *a, struct argp_state *state)
{
	int ways = (a->files > 0) + a->has_op + a->paper +
		   (a->has_outliers || a->has_requests);

	if (ways != 1)
		argp_error(state, "either files, or --outliers and --requests, or --op, or --paper");
	if (a->has_outliers != a->has_requests)
		argp_error(state, "--outliers and --requests need each other");
	if (a->outliers > a->requests)
		argp_error(state, "more outliers than requests");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_OUTLIERS:
		a->outliers = get_count(state, arg, 0, INT64_MAX);
		a->has_outliers = true;
		return 0;
	case OPT_REQUESTS:
		a->requests = get_count(state, arg, 1, INT64_MAX);
		a->has_requests = true;
		return 0;
	case OPT_OP:
		if (parse_proportion(arg, &a->op))
			argp_error(state, "'%s' is not a proportion such as 9%% or 0.09", arg);
		a->has_op = true;
		return 0;
	case OPT_SERVERS:
		a->opts.scale.servers = get_count(state, arg, 1, 1000000000);
		return 0;
	case OPT_EACH:
		a->opts.scale.each = get_count(state, arg, 1, 1000000);
		return 0;
	case OPT_TARGET:
		if (parse_targets(arg, &a->opts))
			argp_error(state, "'%s' is not a list of up to %d proportions such as 10%%,5%%",
				   arg, MAX_TARGETS);
		return 0;
	case OPT_CONFIDENCE:
		if (parse_proportion(arg, &a->opts.confidence) ||
		    a->opts.confidence <= 0 || a->opts.confidence >= 1)
			argp_error(state, "'%s' is not a confidence such as 95%%", arg);
		return 0;
	case OPT_SEED:
		a->opts.seed = get_count(state, arg, 0, UINT32_MAX);
		return 0;
	case OPT_PAPER:
		a->paper = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->file = state->argv + state->next;
		a->files = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		check(a, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[FILE...]",
	.doc = "What results of brumm mc load mean: the outlier proportion op(t), valid "
	       "throughput, percentiles and means beyond them, the proportion of a service "
	       "that waits for many servers, and by which factor op has to fall for a "
	       "target. Several files are repeats of one load: their counts are added."
	       "\vIntervals are from the lowest to the highest of Clopper and Pearson's, "
	       "which takes requests for independent, and of a block bootstrap over time, "
	       "which does not. The formulae for a service suppose independent servers. "
	       "Exit code 2: a file is of a run that is partial or not valid.",
};

static int print(const struct args *a, json_t *j,
		 void (*text)(const json_t *, FILE *))
{
	if (a->json || !j)
		return cli_print_json(j);
	text(j, stdout);
	json_decref(j);
	return cli_flush();
}

/* Tells of each run whose figures do not say what they seem to. */
static int tell_status(const struct args *a, const struct load *l)
{
	int status = EXIT_FINE;
	size_t i;

	for (i = 0; i < a->files; i++) {
		if (!strcmp(l[i].status, "valid"))
			continue;
		cli_error("%s: the run is %s: see its reasons", a->file[i],
			  l[i].status);
		status = EXIT_MISSED;
	}
	return status;
}

static int read_all(const struct args *a, struct load *l)
{
	const char *other;
	size_t i;

	for (i = 0; i < a->files; i++) {
		if (load_read(l + i, a->file[i]))
			return EXIT_ERROR;
		other = figures_differ(l, l + i);
		if (other) {
			cli_error("%s and %s cannot be added: %s", a->file[0],
				  a->file[i], other);
			return EXIT_ERROR;
		}
	}
	return EXIT_FINE;
}

static json_t *with_schema(json_t *j, const char *schema)
{
	if (j)
		json_object_set_new(j, "schema", json_string(schema));
	return j;
}

static int calc_files(const struct args *a)
{
	struct load *l = calloc(a->files, sizeof(*l));
	int status, ret;
	size_t i;

	if (!l) {
		cli_fail(ENOMEM, "cannot read");
		return EXIT_ERROR;
	}
	status = read_all(a, l);
	if (!status) {
		ret = print(a, with_schema(figures_json(l, a->files, &a->opts),
					   "brumm-mc-figures/1"), figures_print);
		status = tell_status(a, l);
		status = ret ? ret : status;
	}
	for (i = 0; i < a->files; i++)
		load_free(l + i);
	free(l);
	return status;
}

static json_t *op_json(const struct args *a)
{
	struct interval unknown = { NAN, NAN };

	return json_pack("{s:s, s:f, s:o}", "schema", "brumm-mc-op/1",
			 "op", a->op,
			 "service", service_json(a->op, unknown, &a->opts));
}

int mc_calc(int argc, char **argv)
{
	struct args a = { .opts = FIGURES_OPTS_INIT };

	cli_parse(&argp, argc, argv, &a);
	if (a.paper)
		return print(&a, paper_json(), paper_print);
	if (a.has_op)
		return print(&a, op_json(&a), proportion_print);
	if (a.files)
		return calc_files(&a);
	return print(&a, with_schema(proportion_json(a.outliers, a.requests,
						     &a.opts), "brumm-mc-op/1"),
		     proportion_print);
}
