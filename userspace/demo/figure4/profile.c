// SPDX-License-Identifier: GPL-2.0
/*
 * The profiling phase, and the comparison of what was expected with what was
 * measured, of which every figure is the median of ROUNDS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"

#define ROUNDS	7
static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t median(uint64_t *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

/* Kernel's own measurement of taking all back that the tenant has. */
static int reclaim(struct scene *s, uint64_t *predicted, uint64_t *measured)
{
	int err = brumm_group_reclaim(s->g_tenant);

	if (!err)
		err = brumm_group_stat_get(s->g_tenant,
					   "last_reclaim_predicted_ns",
					   predicted);
	if (!err)
		err = brumm_group_stat_get(s->g_tenant,
					   "last_reclaim_measured_ns",
					   measured);
	return err;
}

/* What anybody would run; the prices go to a file, and from there into force. */
static int run_profile(const char *program, const char *file)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		execl(program, program, "profile", "--quick", "--method", "fit",
		      "--no-set", "--output", file, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static int set_prices(struct scene *s, json_t *prices)
{
	static const char *const kinds[] = { "lookup", "map", "pt", "deep" };
	enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
	struct brumm_price price[KINDS];
	size_t i;

	for (i = 0; i < KINDS; i++) {
		json_t *ns = json_object_get(prices, kinds[i]);

		if (!json_is_integer(ns))
			return -EINVAL;
		price[i] = (struct brumm_price){
			kinds[i], (uint64_t)json_integer_value(ns)
		};
		story_time("prices", kinds[i], price[i].ns);
	}
	s->price_lookup = price[0].ns;
	s->price_map = price[1].ns;
	s->price_pt = price[2].ns;
	s->price_deep = price[3].ns;
	return brumm_group_set_prices(s->g_top, price, KINDS);
}

bool profile(struct scene *s, const char *program)
{
	char file[sizeof(s->stage.dir) + 16];
	json_t *doc;
	int err;

	story_step("The controller profiles this machine");
	snprintf(file, sizeof(file), "%s/prices.json", s->stage.dir);
	err = run_profile(program, file);
	if (!story_expect(!err, "brumm profile timed the revoke of many shapes of mappings"))
		return false;
	doc = json_load_file(file, 0, NULL);
	unlink(file);
	err = set_prices(s, json_object_get(doc, "prices"));
	json_decref(doc);
	story_say("to take back: a first mapping costs %s, each mapping %s, one passed on %s more, each page %s",
		  show_time(s->price_lookup), show_time(s->price_map),
		  show_time(s->price_deep), show_time(s->price_pt));
	return story_expect(!err, "these are now the prices (brumm.price)");
}

static int take_back(struct scene *s, uint64_t *expected, uint64_t *measured)
{
	struct brumm_taken t;
	uint64_t id;
	int err = brumm_group_id(s->g_tenant, &id);

	*expected = current_ns(s->g_tenant);
	if (!err)
		err = brumm_control_take_back(s->control, id, &t);
	*measured = t.ns;
	return err;
}

static bool compare_one(struct scene *s, const char *name, const char *text,
			int (*how)(struct scene *s, uint64_t *expected,
				   uint64_t *measured))
{
	uint64_t expected[ROUNDS], measured[ROUNDS], e, m;
	struct report r;
	int i, err = 0;

	for (i = 0; i < ROUNDS && !err; i++) {
		err = actor_order(&s->tenant, TENANT_AGAIN, 0, &r);
		if (!err)
			err = r.err;
		if (!err)
			err = tenant_load(s, &r);
		if (!err)
			err = how(s, &expected[i], &measured[i]);
		if (!err && current_ns(s->g_tenant))
			err = -1;
	}
	if (!story_expect(!err, "%s leaves nothing, %d of %d times", text, i,
			  ROUNDS))
		return false;
	e = median(expected);
	m = median(measured);
	story_say("expected %s, measured %s (%s to %s in %d rounds): expected / measured %.2f",
		  show_time(e), show_time(m), show_time(measured[0]),
		  show_time(measured[ROUNDS - 1]), ROUNDS,
		  (double)e / (double)m);
	story_time(name, "expected_ns", e);
	story_time(name, "measured_ns", m);
	story_time(name, "measured_min_ns", measured[0]);
	story_time(name, "measured_max_ns", measured[ROUNDS - 1]);
	story_note(name, "rounds", json_integer(ROUNDS));
	return true;
}

/* The same load, taken back in the two other ways, from a living tenant. */
bool compare(struct scene *s)
{
	bool ok;

	story_step("The same load again, taken back from a tenant that lives on");
	ok = story_expect(!tenant_start(s, false), "another tenant started");
	ok = ok && compare_one(s, "take_back",
			       "the memory service taking its pages back (brumm take-back)",
			       take_back);
	ok = ok && compare_one(s, "reclaim",
			       "the kernel taking all back (brumm.reclaim)",
			       reclaim);
	actor_end(&s->tenant);
	return ok;
}
