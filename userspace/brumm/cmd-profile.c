// SPDX-License-Identifier: GPL-2.0
/* brumm profile: measure what clean-up takes here, and set prices after it. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli.h"
#include "machine.h"
#include "profile/living/living.h"
#include "profile/prices.h"
#include "profile/result.h"

#define TRIAL_GROUP	"brumm-profile"

enum mode { MODE_PROFILE, MODE_CHECK, MODE_IF_CHANGED };

enum method { METHOD_BEST, METHOD_PROBES, METHOD_FIT };

struct args {
	const char *output;
	enum mode mode;
	enum method method;
	unsigned int states;
	unsigned int repeat;
	double tolerance;
	uint64_t seed;
	bool no_set, json, quick, worst, living, device;
};

enum {
	OPT_OUTPUT = 'o', OPT_JSON = 'j', OPT_QUICK = 'q', OPT_REPEAT = 'r',
	OPT_STATE = 's', OPT_CHECK = 256, OPT_IF_CHANGED, OPT_NO_SET, OPT_SEED,
	OPT_TOLERANCE, OPT_METHOD, OPT_WORST, OPT_LIVING, OPT_DEVICE,
};

static const struct argp_option options[] = {
	{ "output", OPT_OUTPUT, "FILE", 0, "prices file (" PRICES_FILE ")", 0 },
	{ "no-set", OPT_NO_SET, NULL, 0, "write the file only, leave brumm.price as it is", 0 },
	{ "living", OPT_LIVING, NULL, 0, "only what dies with processes; the file keeps its prices of the device", 0 },
	{ "device", OPT_DEVICE, NULL, 0, "only the device; the file keeps its prices of what dies with processes", 0 },
	{ "check", OPT_CHECK, NULL, 0, "do the prices of the file still fit? Exit with 2 if not", 0 },
	{ "if-changed", OPT_IF_CHANGED, NULL, 0, "set the prices of the file, and profile only if it is of another machine or kernel", 0 },
	{ "worst", OPT_WORST, NULL, 0, "set prices that hold wherever a tenant puts its mappings; for the usual shapes they are some times too high", 0 },
	{ "state", OPT_STATE, "STATE", 0, "fresh: right after preparing; idle: after the machine did something else; both (default)", 0 },
	{ "method", OPT_METHOD, "METHOD", 0, "where the terms come from: probes, by BPF in the kernel (default, where possible); fit, to whole operations", 0 },
	{ "repeat", OPT_REPEAT, "N", 0, "runs of each shape (20; with --quick 5)", 0 },
	{ "quick", OPT_QUICK, NULL, 0, "small shapes and few runs", 0 },
	{ "seed", OPT_SEED, "N", 0, "of the random shapes (1)", 0 },
	{ "tolerance", OPT_TOLERANCE, "PERCENT", 0, "with --check: by so much a prediction may be too low (10)", 0 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 0 },
	{ 0 },
};

static unsigned int parse_state(const char *arg, struct argp_state *state)
{
	int s;

	if (!strcmp(arg, "both"))
		return (1u << MEASURE_STATES) - 1;
	for (s = 0; s < MEASURE_STATES; s++) {
		if (!strcmp(arg, measure_states[s]))
			return 1u << s;
	}
	argp_error(state, "'%s' is not a state: fresh, idle or both", arg);
	return 0;
}

static enum method parse_method(const char *arg, struct argp_state *state)
{
	if (!strcmp(arg, "probes"))
		return METHOD_PROBES;
	if (strcmp(arg, "fit"))
		argp_error(state, "'%s' is not a method: probes or fit", arg);
	return METHOD_FIT;
}

static uint64_t parse_number(const char *arg, uint64_t least, uint64_t most,
			     struct argp_state *state)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || n < least || n > most)
		argp_error(state, "'%s' is not a number from %llu to %llu", arg,
			   (unsigned long long)least, (unsigned long long)most);
	return n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_OUTPUT:
		a->output = arg;
		return 0;
	case OPT_NO_SET:
		a->no_set = true;
		return 0;
	case OPT_LIVING:
		a->living = true;
		return 0;
	case OPT_DEVICE:
		a->device = true;
		return 0;
	case OPT_CHECK:
		a->mode = MODE_CHECK;
		return 0;
	case OPT_IF_CHANGED:
		a->mode = MODE_IF_CHANGED;
		return 0;
	case OPT_WORST:
		a->worst = true;
		return 0;
	case OPT_STATE:
		a->states = parse_state(arg, state);
		return 0;
	case OPT_METHOD:
		a->method = parse_method(arg, state);
		return 0;
	case OPT_REPEAT:
		a->repeat = (unsigned int)parse_number(arg, 2, 10000, state);
		return 0;
	case OPT_QUICK:
		a->quick = true;
		return 0;
	case OPT_SEED:
		a->seed = parse_number(arg, 0, UINT32_MAX, state);
		return 0;
	case OPT_TOLERANCE:
		a->tolerance = (double)parse_number(arg, 0, 99, state) / 100;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s'?", arg);
		return 0;
	case ARGP_KEY_END:
		if (a->living && (a->device || a->mode != MODE_PROFILE))
			argp_error(state, "--living goes with none of --device, --check and --if-changed");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure what taking memory back costs on this machine, write the prices "
	       "file, and make its prices those of the root cgroup (brumm.price)."
	       "\vThe old file and prices stay in force until the new ones are complete.",
};

/* ---- measuring ---------------------------------------------------------- */

static void show_progress(size_t done, size_t of)
{
	if (cli_fancy(stderr))
		fprintf(stderr, "\r%3zu %% ", done * 100 / (of ? of : 1));
}

static void end_progress(void)
{
	if (cli_fancy(stderr))
		fputs("\r\033[K", stderr);
}

/* Opens the trial cgroup and locks it against another profile, or says why not. */
static int open_trial(void)
{
	int group, err = brumm_group_create(TRIAL_GROUP);

	if (err) {
		cli_fail(err, "cannot make the cgroup " TRIAL_GROUP);
		return -1;
	}
	group = cli_open_group(TRIAL_GROUP);
	if (group >= 0 && flock(group, LOCK_EX | LOCK_NB)) {
		cli_error("another brumm profile is running; wait for its end");
		close(group);
		return -1;
	}
	return group;
}

static int measure_failed(int err)
{
	if (err == -EINTR) {
		cli_error("interrupted; the prices are as they were");
	} else if (err == -ENOENT || err == -ENXIO) {
		cli_error("the module is not loaded; modprobe brumm");
		return EXIT_UNSUPPORTED;
	} else if (err == -EINVAL) {
		cli_error("the runs do not tell the terms apart; try without --quick, and when the machine does little else");
	} else {
		cli_fail(err, "cannot measure");
	}
	return EXIT_ERROR;
}

/* Again and again while others disturb it, for so long. */
static int run_until_steady(const struct args *a,
			    const struct measure_options *o, struct result *r)
{
	uint64_t start = cli_now(), took, most = a->quick ? 20 : 180;
	int err = measure(o, &r->m);

	took = cli_now() - start;
	if (!err)
		err = result_fit(r);
	while (!err && result_busy(r) &&
	       cli_now() - start + took < most * 1000000000) {
		err = measure_more(o, &r->m);
		if (!err)
			err = result_fit(r);
	}
	return err;
}

static int no_probes(const struct args *a, const struct terms *t)
{
	bool must = a->method == METHOD_PROBES;

	cli_error("no probes here: %s; %s", t->why,
		  must ? "try --method fit" : "the terms are fitted");
	return must ? EXIT_UNSUPPORTED : 0;
}

/* Who wants nothing else is told before all is measured. */
static int try_probes(const struct args *a, struct result *r)
{
	int err;

	if (a->method != METHOD_PROBES || a->mode == MODE_CHECK)
		return 0;
	err = terms_try(&r->terms);
	if (err)
		return measure_failed(err);
	return r->terms.why ? no_probes(a, &r->terms) : 0;
}

/* By probes, on what was measured without; or says why not. */
static int run_probes(const struct args *a, const struct measure_options *o,
		      struct result *r)
{
	int err;

	if (a->method == METHOD_FIT || a->mode == MODE_CHECK)
		return 0;
	err = terms_measure(o, &r->m, &r->terms);
	if (err)
		return measure_failed(err);
	r->probed = !r->terms.why;
	if (r->probed) {
		err = terms_compare(&r->terms, &r->m, r->all.ns);
		return err ? measure_failed(err) : 0;
	}
	return no_probes(a, &r->terms);
}

/* Measures into @r. EXIT_FINE, or what went wrong has been said. */
static int run_trial(const struct args *a, int root, struct result *r)
{
	struct measure_options o = {
		.states = a->states, .repeat = a->repeat, .quick = a->quick,
		.seed = a->seed, .root = root, .progress = show_progress,
	};
	uint64_t now;
	int err;

	o.group = open_trial();
	if (o.group < 0)
		return EXIT_ERROR;
	err = brumm_group_current(o.group, &now);
	if (err) {
		err = cli_knob_failed(o.group, TRIAL_GROUP, "brumm.current",
				      err);
		goto out;
	}
	r->states = a->states;
	err = try_probes(a, r);
	if (err)
		goto out;
	err = run_until_steady(a, &o, r);
	end_progress();
	err = err ? measure_failed(err) : run_probes(a, &o, r);
out:
	/* As long as it is locked: or else it may be another's already. */
	brumm_group_remove(TRIAL_GROUP);
	close(o.group);
	return err;
}

/*
 * Measures the living into @r, if the module has such kinds; otherwise it has
 * none afterwards. EXIT_FINE, or what went wrong has been said.
 */
static int run_living(const struct args *a, int root, struct living_result *r)
{
	struct living_options o = {
		.states = a->states, .quick = a->quick, .root = root,
		.repeat = a->quick ? 2 : 5, .progress = show_progress,
	};
	int err;

	*r = (struct living_result){ 0 };
	if (a->device)
		return EXIT_FINE;
	o.group = open_trial();
	if (o.group < 0)
		return EXIT_ERROR;
	err = living_measure(&o, r);
	end_progress();
	if (err == -EOPNOTSUPP)
		err = 0;
	brumm_group_remove(TRIAL_GROUP);
	close(o.group);
	return err ? measure_failed(err) : EXIT_FINE;
}

/* ---- telling ------------------------------------------------------------ */

static void print_terms(const struct result *r)
{
	int t;

	printf("%-8s %10s %12s %10s %10s %8s %8s %8s\n", "TERM (ns)", "MEAN",
	       "95 % (+-)", "P50", "P99", "FIT", "PRICE", "WORST");
	for (t = 0; t < FIT_TERMS; t++) {
		const struct summary *s = t == FIT_SYSCALL ? &r->m.syscall :
							     &r->terms.term[t];

		printf("%-8s ", fit_names[t]);
		if (r->probed || t == FIT_SYSCALL)
			printf(" %10.1f %12.1f %10.1f %10.1f", s->mean,
			       s->error, s->p50, s->p99);
		else
			printf(" %10.1f %12.1f %10s %10s", r->all.ns[t],
			       r->all.error[t], "-", "-");
		printf(" %8.1f %8.0f %8.0f\n", r->all.ns[t],
		       r->cover.price[t], r->cover.worst[t]);
	}
}

static void print_probes(const struct terms *t)
{
	int k;

	printf("terms by probes (%s%s; lost %llu, missed %llu, orphaned %llu), without their own %.0f ns a pair of events\n",
	       t->rung, t->complete ? "" : ", incomplete",
	       (unsigned long long)t->lost, (unsigned long long)t->missed,
	       (unsigned long long)t->orphans, t->cost.pair);
	for (k = 0; k < FIT_TERMS; k++)
		if (terms_differ(t, k))
			printf("%s: fresh %.1f, idle %.1f ns\n", fit_names[k],
			       t->state[MEASURE_FRESH][k].mean,
			       t->state[MEASURE_IDLE][k].mean);
	printf("their sum / fitted: %.2f to %.2f; / measured: %.2f to %.2f, of %zu shapes\n",
	       t->by_fit.min, t->by_fit.max, t->by_runs.min, t->by_runs.max,
	       t->by_runs.n);
}

static void print_result(const struct result *r)
{
	const struct cover *c = &r->cover;
	size_t i;

	print_terms(r);
	if (r->probed)
		print_probes(&r->terms);
	printf("expected / measured: %.2f (%s, %llu) to %.2f (%s, %llu)\n",
	       c->least, c->dearest->name,
	       (unsigned long long)c->dearest->spec.n, c->most,
	       c->cheapest->name, (unsigned long long)c->cheapest->spec.n);
	printf("wherever the mappings stand, by the worst prices: %.2f to %.2f; in force: %s\n",
	       c->worst_least, c->worst_most, prices_lists[r->set]);
	for (i = 0; i < r->m.nr_flush; i++)
		printf("a page used by %u CPU%s: revoked in %.0f ns (p99 %.0f); with %u others, in %.0f each\n",
		       r->m.flush[i].cpus, r->m.flush[i].cpus > 1 ? "s" : "",
		       r->m.flush[i].ns.mean, r->m.flush[i].ns.p99,
		       MEASURE_TOGETHER - 1, r->m.flush[i].together.mean);
}

static void tell_noise(const struct result *r)
{
	if (result_busy(r))
		cli_error("this machine was busy: %.0f %% of the runs took other times than those that are alike; better prices come when it is not",
			  100 * r->cover.noise);
}

/* ---- modes -------------------------------------------------------------- */

/* Those that were chosen when the file was written, if nobody says otherwise. */
static enum prices_list which_prices(const struct args *a, const json_t *doc)
{
	const char *set = json_string_value(json_object_get(doc, "set"));

	if (a->worst || (set && !strcmp(set, prices_lists[PRICES_WORST])))
		return PRICES_WORST;
	return PRICES_USUAL;
}

static int set_prices(const struct args *a, const json_t *doc, int root)
{
	int err = a->no_set ? 0 : prices_set(doc, which_prices(a, doc), root);

	if (!err && !a->no_set)
		err = living_set(json_object_get(doc, "living"), root);
	if (!err)
		return EXIT_FINE;
	return cli_knob_failed(root, "/", "brumm.price", err);
}

/* What differs between the fingerprint of @doc and this machine's. */
static json_t *changes(const json_t *doc)
{
	json_t *here = machine_fingerprint(), *list;

	list = here ? machine_differences(json_object_get(doc, "fingerprint"),
					  here) : NULL;
	json_decref(here);
	return list;
}

/* The file, if it is of this machine; NULL: it is not, or there is none. */
static json_t *read_own(const char *path)
{
	json_t *doc, *list;

	if (prices_read(path, &doc))
		return NULL;
	list = changes(doc);
	if (!list || json_array_size(list)) {
		json_decref(doc);
		doc = NULL;
	}
	json_decref(list);
	return doc;
}

/* The part of the living: as measured, or as in the file that is replaced. */
static int add_living(const struct args *a, const struct living_result *l,
		      json_t *doc)
{
	json_t *old = NULL, *part;

	if (l->nr) {
		part = living_json(l);
	} else {
		old = read_own(a->output);
		part = json_incref(json_object_get(old, "living"));
		if (!part) {
			json_decref(old);
			return 0;
		}
	}
	json_decref(old);
	return json_object_set_new(doc, "living", part) ? -ENOMEM : 0;
}

static int profile(const struct args *a, enum prices_list set, int root)
{
	struct living_result l = { 0 };
	struct result r = { .set = set };
	json_t *doc = NULL;
	int err = prices_prepare(a->output), ret;

	if (err) {
		cli_fail(err, "cannot write %s", a->output);
		return EXIT_ERROR;
	}
	ret = run_trial(a, root, &r);
	if (!ret)
		ret = run_living(a, root, &l);
	if (ret)
		goto out;
	doc = result_json(&r);
	err = doc ? add_living(a, &l, doc) : -ENOMEM;
	if (!err)
		err = prices_write(a->output, doc);
	if (err) {
		cli_fail(err, "cannot write %s", a->output);
		ret = EXIT_ERROR;
		goto out;
	}
	ret = set_prices(a, doc, root);
	if (a->json)
		ret = cli_print_json(json_incref(doc)) ?: ret;
	else
		print_result(&r);
	if (!a->json && l.nr)
		living_print(&l);
	tell_noise(&r);
out:
	result_free(&r);
	living_free(&l);
	json_decref(doc);
	return ret ? ret : cli_flush();
}

/* The living alone, into a file that has prices of the device. */
static int profile_living(const struct args *a, int root)
{
	json_t *doc = read_own(a->output), *part;
	struct living_result l = { 0 };
	int ret, err;

	if (!doc) {
		cli_error("%s: no prices of this machine and kernel to add to; run brumm profile without --living",
			  a->output);
		return EXIT_ERROR;
	}
	ret = run_living(a, root, &l);
	if (!ret && !l.nr) {
		cli_error("the module that is loaded counts nothing but the device; load that of this version");
		ret = EXIT_UNSUPPORTED;
	}
	if (ret)
		goto out;
	part = living_json(&l);
	err = part && !json_object_set_new(doc, "living", part) ? 0 : -ENOMEM;
	if (!err)
		err = prices_write(a->output, doc);
	if (err) {
		cli_fail(err, "cannot write %s", a->output);
		ret = EXIT_ERROR;
		goto out;
	}
	ret = set_prices(a, doc, root);
	if (a->json)
		ret = cli_print_json(json_incref(doc)) ?: ret;
	else
		living_print(&l);
out:
	living_free(&l);
	json_decref(doc);
	return ret ? ret : cli_flush();
}

static int read_failed(const char *path, int err)
{
	if (err == -ENOENT)
		cli_error("%s: there are no prices yet; run brumm profile", path);
	else if (err == -EBADMSG)
		cli_error("%s: not a prices file, or a damaged one; run brumm profile",
			  path);
	else
		cli_fail(err, "%s", path);
	return EXIT_ERROR;
}

static int if_changed(const struct args *a, int root)
{
	json_t *doc, *list;
	int err = prices_read(a->output, &doc), ret;
	enum prices_list set;
	bool same;

	if (err && err != -ENOENT && err != -EBADMSG)
		return read_failed(a->output, err);
	if (err)
		return profile(a, which_prices(a, NULL), root);
	set = which_prices(a, doc);
	list = changes(doc);
	same = list && !json_array_size(list);
	json_decref(list);
	/* Until there are new ones, those of another machine are a better guess
	 * than those that the module came with.
	 */
	ret = set_prices(a, doc, root);
	json_decref(doc);
	return ret || same ? ret : profile(a, set, root);
}

static int print_check(const struct args *a, const json_t *list,
		       const struct cover *c, bool fits)
{
	json_t *what;
	size_t i;

	if (a->json)
		return cli_print_json(json_pack("{s:b, s:O, s:f, s:f, s:f, s:f}",
			"fits", fits, "changed", list, "least", c->least,
			"most", c->most, "above", c->above,
			"tolerance", a->tolerance));
	json_array_foreach((json_t *)list, i, what)
		printf("changed since: %s\n", json_string_value(what));
	printf("expected / measured: %.2f (%s) to %.2f (%s); at least %.2f is wanted\n",
	       c->least, c->dearest->name, c->most, c->cheapest->name,
	       1 - a->tolerance);
	printf("the prices %s\n", fits ? "fit" :
	       "do not fit; run brumm profile");
	return cli_flush();
}

static int check(const struct args *a, int root)
{
	struct result r = { 0 };
	double price[FIT_TERMS];
	json_t *doc, *list = NULL;
	struct cover c;
	int err = prices_read(a->output, &doc), ret;
	bool fits;

	if (err)
		return read_failed(a->output, err);
	prices_get(doc, PRICES_USUAL, price);
	ret = run_trial(a, root, &r);
	if (ret)
		goto out;
	tell_noise(&r);
	list = changes(doc);
	err = list ? cover_judge(&r.m, price, &c) : -ENOMEM;
	if (err) {
		ret = measure_failed(err);
		goto out;
	}
	fits = !json_array_size(list) && c.least >= 1 - a->tolerance;
	ret = print_check(a, list, &c, fits) ?: fits ? EXIT_FINE : EXIT_MISSED;
out:
	result_free(&r);
	json_decref(list);
	json_decref(doc);
	return ret;
}

int cmd_profile(int argc, char **argv)
{
	struct args a = {
		.output = PRICES_FILE, .states = (1u << MEASURE_STATES) - 1,
		.seed = 1, .tolerance = 0.1,
	};
	int root, ret;

	cli_parse(&argp, argc, argv, &a);
	if (a.mode == MODE_CHECK)
		a.quick = true;
	if (!a.repeat)
		a.repeat = a.quick ? 5 : 20;
	cli_catch_signals();
	root = cli_open_group("/");
	if (root < 0)
		return EXIT_ERROR;
	switch (a.mode) {
	case MODE_CHECK:
		ret = check(&a, root);
		break;
	case MODE_IF_CHANGED:
		ret = if_changed(&a, root);
		break;
	default:
		ret = a.living ? profile_living(&a, root) :
			profile(&a, which_prices(&a, NULL), root);
	}
	close(root);
	return ret;
}
