// SPDX-License-Identifier: GPL-2.0
/* brumm predict: what cleaning up after a cgroup is expected to take. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "profile/living/forecast.h"
#include "profile/prices.h"
#include "profile/predict.h"

struct args {
	struct cli_group group;
	const char *prices;
	unsigned int cpus;
};

enum { OPT_PRICES = 'p', OPT_CPUS = 'c' };

static const struct argp_option options[] = {
	{ "prices", OPT_PRICES, "FILE", 0, "prices file, for what is not in brumm.price (" PRICES_FILE ")", 0 },
	{ "cpus", OPT_CPUS, "N", 0, "what it takes more if N CPUs have used the memory: they have to flush their TLBs", 0 },
	{ 0 },
};

static const struct argp_child children[] = { { &cli_group_argp, 0, NULL, 0 }, { 0 } };

static unsigned int parse_cpus(const char *arg, struct argp_state *state)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (*arg < '0' || *arg > '9' || *end || !n || n > CPU_SETSIZE)
		argp_error(state, "'%s' is not a number of CPUs", arg);
	return (unsigned int)n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->group;
		return 0;
	case OPT_PRICES:
		a->prices = arg;
		return 0;
	case OPT_CPUS:
		a->cpus = parse_cpus(arg, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP",
	.doc = "What taking back all that a cgroup and those below it sponsor is expected "
	       "to take: by kind, on average and in the 99th of 100 cases, beside what "
	       "the last and the worst reclaim took; and what ending their processes is, "
	       "as CPU time and on the clock."
	       "\vThe 99th percentile needs a prices file (brumm profile). It is of the "
	       "work itself: time in which the CPU does something else is not in it.",
};

/* What the kernel says of the cgroup. */
struct known {
	double count[FIT_TERMS];
	double price[FIT_TERMS];
	uint64_t usage, reclaims;
	uint64_t last[2], worst[2];	/* predicted, measured */
	bool has_reclaims;
};

static int one_price(const char *kind, uint64_t ns, void *arg)
{
	struct known *k = arg;
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		if (!strcmp(kind, fit_names[t]))
			k->price[t] = (double)ns;
	}
	return 0;
}

static bool count_of(const char *key, int t)
{
	size_t len = strlen(fit_names[t]);

	return !strncmp(key, fit_names[t], len) && !strcmp(key + len, "_count");
}

static int one_figure(const char *key, uint64_t value, void *arg)
{
	struct known *k = arg;
	const struct {
		const char *key;
		uint64_t *to;
	} figures[] = {
		{ "reclaims", &k->reclaims },
		{ "last_reclaim_predicted_ns", &k->last[0] },
		{ "last_reclaim_measured_ns", &k->last[1] },
		{ "worst_reclaim_predicted_ns", &k->worst[0] },
		{ "worst_reclaim_measured_ns", &k->worst[1] },
	};
	size_t i;
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		if (count_of(key, t))
			k->count[t] = (double)value;
	}
	for (i = 0; i < ARRAY_SIZE(figures); i++) {
		if (!strcmp(key, figures[i].key))
			*figures[i].to = value;
	}
	k->has_reclaims |= !strcmp(key, "reclaims");
	return 0;
}

static int read_known(int group, struct known *k)
{
	int err = brumm_group_price(group, one_price, k);

	return err < 0 ? err : brumm_group_stat(group, one_figure, k);
}

/* ---- telling ------------------------------------------------------------ */

static json_t *ns_or_null(double ns, bool known)
{
	return known ? json_integer((json_int_t)(ns + 0.5)) : json_null();
}

static json_t *kinds_json(const struct known *k)
{
	json_t *j = json_object();
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		if (t != FIT_SYSCALL)
			json_object_set_new(j, fit_names[t],
				json_pack("{s:I, s:I, s:I}",
					  "count", (json_int_t)k->count[t],
					  "price_ns", (json_int_t)k->price[t],
					  "ns", (json_int_t)(k->count[t] *
							     k->price[t])));
	}
	return j;
}

static json_t *reclaim_json(const struct known *k, const uint64_t pair[2])
{
	if (!k->reclaims)
		return json_null();
	return json_pack("{s:o, s:o}", "predicted_ns", cli_json_time(pair[0]),
			 "measured_ns", cli_json_time(pair[1]));
}

static json_t *flush_json(const struct flush *f)
{
	if (!f->cpus)
		return json_null();
	return json_pack("{s:I, s:I, s:I}", "cpus", (json_int_t)f->cpus,
			 "mean_ns", (json_int_t)f->mean,
			 "worst_ns", (json_int_t)f->worst);
}

static int print_json(const struct args *a, const struct known *k,
		      const struct prediction *p, const struct flush *f,
		      const struct forecast *processes)
{
	return cli_print_json(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o}",
		"cgroup", a->group.name,
		"kinds", kinds_json(k),
		"mean_ns", cli_json_time(k->usage),
		"p99_ns", ns_or_null(p->p99, p->known),
		"worst_ns", ns_or_null(p->worst, p->worst > 0),
		"sd_ns", ns_or_null(p->sd, p->known),
		"syscall_ns", ns_or_null(p->syscall, p->known),
		"flush", flush_json(f),
		"reclaims", (json_int_t)k->reclaims,
		"last", reclaim_json(k, k->last),
		"worst", reclaim_json(k, k->worst),
		"processes", forecast_json(processes)));
}

static void print_reclaim(const char *which, const uint64_t pair[2])
{
	char t[2][16];

	printf("%s reclaim: expected %s, took %s", which,
	       brumm_format_time(pair[0], t[0], sizeof(t[0])),
	       brumm_format_time(pair[1], t[1], sizeof(t[1])));
	if (pair[1])
		printf(" (expected / measured %.2f)",
		       (double)pair[0] / (double)pair[1]);
	putchar('\n');
}

static int print_text(const struct known *k, const struct prediction *p,
		      const struct flush *f, const struct forecast *processes)
{
	char text[16], worst[16], label[40];
	int t;

	printf("%-8s %12s %10s %12s\n", "KIND", "COUNT", "PRICE (ns)", "TIME");
	for (t = 0; t < FIT_TERMS; t++) {
		if (t != FIT_SYSCALL)
			printf("%-8s %12.0f %10.0f %12s\n", fit_names[t],
			       k->count[t], k->price[t],
			       brumm_format_time((uint64_t)(k->count[t] *
							    k->price[t]),
						 text, sizeof(text)));
	}
	printf("%-32s %12s\n", "expected",
	       brumm_format_time(k->usage, text, sizeof(text)));
	if (p->known) {
		printf("%-32s %12s\n", "in 99 of 100 cases no more than",
		       brumm_format_time((uint64_t)p->p99, text, sizeof(text)));
		if (p->worst > 0)
			printf("%-32s %12s\n", "wherever its mappings stand",
			       brumm_format_time((uint64_t)p->worst, text,
						 sizeof(text)));
		printf("%-32s %12s\n", "each system call of the caller",
		       brumm_format_time((uint64_t)p->syscall, text,
					 sizeof(text)));
	}
	if (f->cpus) {
		snprintf(label, sizeof(label), "more if %u CPUs have used it",
			 f->cpus);
		printf("%-32s %12s; wherever they stand %s\n", label,
		       brumm_format_time((uint64_t)f->mean, text, sizeof(text)),
		       brumm_format_time((uint64_t)f->worst, worst,
					 sizeof(worst)));
	}
	if (k->reclaims) {
		print_reclaim("last", k->last);
		print_reclaim("worst", k->worst);
	} else if (k->has_reclaims) {
		puts("no reclaim yet");
	}
	puts("\nIf its processes were ended:");
	forecast_print_kinds(processes, stdout);
	forecast_print(processes, stdout);
	return cli_flush();
}

int cmd_predict(int argc, char **argv)
{
	struct args a = { .prices = PRICES_FILE };
	struct prediction p = { 0 };
	struct known k = { 0 };
	struct flush f = { 0 };
	struct tasks list = { 0 };
	struct forecast processes;
	json_t *doc = NULL;
	int group, err;

	cli_parse(&argp, argc, argv, &a);
	group = cli_open_group(a.group.name);
	if (group < 0)
		return EXIT_ERROR;
	err = read_known(group, &k);
	k.usage = forecast_device(group);
	if (err) {
		err = cli_knob_failed(group, a.group.name, "brumm.stat", err);
		close(group);
		return err;
	}
	err = tasks_of_group(group, &list);
	if (err)
		cli_fail(err, "cannot list the processes");
	forecast_make(group, &list, false, &processes);
	tasks_free(&list);
	close(group);
	err = prices_read(a.prices, &doc);
	if (!err)
		err = predict(doc, k.count, k.price, &p);
	if (err)
		cli_error("%s: %s; the 99th percentile is unknown, run brumm profile",
			  a.prices, err == -ENOENT ? "there is none" :
						     "not a usable prices file");
	else if (a.cpus && predict_flush(doc, k.count[FIT_MAP], a.cpus, &f))
		cli_error("%s: does not say what a flush takes; run brumm profile",
			  a.prices);
	json_decref(doc);
	return a.group.json ? print_json(&a, &k, &p, &f, &processes) :
			      print_text(&k, &p, &f, &processes);
}
