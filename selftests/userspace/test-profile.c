// SPDX-License-Identifier: GPL-2.0
/*
 * From timed operations to prices: the fit, upon operations whose terms are
 * known because they were made of them; the prices file; the prediction.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "../../userspace/brumm/machine.h"
#include "../../userspace/brumm/profile/fit.h"
#include "../../userspace/brumm/profile/predict.h"
#include "../../userspace/brumm/profile/prices.h"
#include "../../userspace/brumm/profile/weighted.h"
#include "../../userspace/brumm/stats.h"
#include "../lib/rng.h"

#define RUNS 240

static const double truth[FIT_TERMS] = { 1500, 2100, 640, 97, 350 };

/* The sum of 12 uniform numbers is all but normal. */
static double normal(struct rng *r)
{
	double sum = -6;
	int i;

	for (i = 0; i < 12; i++)
		sum += (double)(rng_next(r) >> 11) / 9007199254740992.0;
	return sum;
}

/* Operations of all shapes; their times are off by @noise, relatively. */
static void synthesise(struct fit_run *runs, const double ns[FIT_TERMS],
		       double noise, uint64_t seed)
{
	struct rng r = { seed };
	int i, t;

	for (i = 0; i < RUNS; i++) {
		runs[i] = (struct fit_run){ .count = {
			[FIT_SYSCALL] = 1,
			[FIT_LOOKUP] = 1 + rng_below(&r, 1 << rng_below(&r, 9)),
			[FIT_MAP] = 1 + rng_below(&r, 1 << rng_below(&r, 12)),
			[FIT_PT] = 1 + rng_below(&r, 1 << rng_below(&r, 14)),
			[FIT_DEEP] = rng_below(&r, 1 << rng_below(&r, 12)),
		} };
		for (t = 0; t < FIT_TERMS; t++)
			runs[i].ns += ns[t] * runs[i].count[t];
		runs[i].ns *= 1 + noise * normal(&r);
	}
}

static void assert_near(double got, double want, double rel)
{
	if (fabs(got - want) > rel * fabs(want))
		fail_msg("%g is not %g within %g", got, want, rel);
}

static void exact(void **state)
{
	struct fit_run runs[RUNS];
	struct fit f;
	int t;

	(void)state;
	synthesise(runs, truth, 0, 1);
	assert_int_equal(fit_terms(runs, RUNS, NULL, &f), 0);
	for (t = 0; t < FIT_TERMS; t++)
		assert_near(f.ns[t], truth[t], 1e-6);
	assert_int_equal(f.n, RUNS);
	assert_near(f.least, 1, 1e-6);
	assert_near(f.most, 1, 1e-6);
}

/* One in eight took many times as long: something else ran. */
static void outliers(void **state)
{
	struct fit_run runs[RUNS];
	struct fit f;
	int i;

	(void)state;
	synthesise(runs, truth, 0.02, 2);
	for (i = 0; i < RUNS; i += 8)
		runs[i].ns *= 2 + i % 5;
	assert_int_equal(fit_terms(runs, RUNS, NULL, &f), 0);
	/* Least squares are half too high; a lookup is a small part of most. */
	assert_near(f.ns[FIT_LOOKUP], truth[FIT_LOOKUP], 0.12);
	assert_near(f.ns[FIT_MAP], truth[FIT_MAP], 0.06);
	assert_near(f.ns[FIT_PT], truth[FIT_PT], 0.06);
	assert_true(f.most > 1.9);
	assert_true(f.spread > 0.01 && f.spread < 0.04);
}

/* The truth lies in the 95 % interval in about 95 of 100 cases. */
static void intervals(void **state)
{
	int seed, t, inside = 0, of = 0;
	struct fit_run runs[RUNS];
	struct fit f;

	(void)state;
	for (seed = 0; seed < 100; seed++) {
		synthesise(runs, truth, 0.05, 1000 + (uint64_t)seed);
		assert_int_equal(fit_terms(runs, RUNS, NULL, &f), 0);
		for (t = 0; t < FIT_TERMS; t++, of++)
			inside += fabs(f.ns[t] - truth[t]) <= f.error[t];
	}
	assert_true(inside >= of * 90 / 100);
	assert_true(inside <= of * 99 / 100);
}

/* A term below zero would let a budget grow by using it. */
static void non_negative(void **state)
{
	static const double odd[FIT_TERMS] = { 1500, 900, 800, -0.5, 0 };
	struct fit_run runs[RUNS];
	struct fit f;
	int t;

	(void)state;
	synthesise(runs, odd, 0.001, 3);
	assert_int_equal(fit_terms(runs, RUNS, NULL, &f), 0);
	assert_true(f.ns[FIT_PT] == 0);
	for (t = 0; t < FIT_TERMS; t++)
		assert_true(f.ns[t] >= 0);
	assert_near(f.ns[FIT_MAP], 800, 0.05);
}

static void fixed_term(void **state)
{
	double fixed[FIT_TERMS] = { 1700, NAN, NAN, NAN, NAN };
	struct fit_run runs[RUNS];
	struct fit f;

	(void)state;
	synthesise(runs, truth, 0, 4);
	assert_int_equal(fit_terms(runs, RUNS, fixed, &f), 0);
	assert_true(f.ns[FIT_SYSCALL] == 1700);
	assert_near(f.ns[FIT_MAP], truth[FIT_MAP], 0.02);
}

static void cannot_tell(void **state)
{
	struct fit_run runs[RUNS];
	struct fit f;
	int i;

	(void)state;
	synthesise(runs, truth, 0.01, 5);
	assert_int_equal(fit_terms(runs, FIT_TERMS, NULL, &f), -EINVAL);
	for (i = 0; i < RUNS; i++)
		runs[i].count[FIT_PT] = 2 * runs[i].count[FIT_MAP];
	assert_int_equal(fit_terms(runs, RUNS, NULL, &f), -EINVAL);
}

/* By hand: of 1 .. 5. */
static void summaries(void **state)
{
	double v[] = { 5, 1, 4, 2, 3 };
	struct summary s, again;
	json_t *j;

	(void)state;
	summarise(v, 5, &s);
	assert_near(s.mean, 3, 1e-12);
	assert_near(s.sd, 1.5811388300841898, 1e-12);
	assert_near(s.error, 1.9632431614775, 1e-6);	/* 2.776445 sd / root 5 */
	assert_near(s.p50, 3, 1e-12);
	assert_near(s.p99, 4.96, 1e-12);
	assert_near(s.max, 5, 1e-12);
	j = summary_json(&s, "hand");
	assert_int_equal(summary_parse(j, &again), 0);
	assert_near(again.mean, 3, 1e-12);
	assert_near(again.error, s.error, 1e-9);
	json_decref(j);

	summarise(v, 0, &s);
	j = summary_json(&s, "hand");
	assert_true(json_is_null(json_object_get(j, "mean")));
	assert_true(json_is_null(json_object_get(j, "p99")));
	json_decref(j);
}

/* ---- many at once -------------------------------------------------------- */

/* By hand: one thing of 10, and three of 20 on average. */
static void weights(void **state)
{
	struct weighted w = { 0 };
	struct summary s;

	(void)state;
	assert_int_equal(weighted_summarise(&w, &s), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(weighted_add(&w, 20, 3), 0);
	assert_int_equal(weighted_add(&w, 10, 1), 0);
	assert_int_equal(weighted_add(&w, 1000, 0), 0);
	assert_int_equal(weighted_add(&w, 1000, NAN), 0);
	assert_int_equal(weighted_summarise(&w, &s), 0);
	assert_int_equal(s.n, 2);
	assert_near(s.mean, 17.5, 1e-12);
	assert_near(s.min, 10, 1e-12);
	assert_near(s.p50, 20, 1e-12);
	assert_near(s.p99, 20, 1e-12);
	assert_near(s.max, 20, 1e-12);
	assert_near(s.sd, 7.5, 1e-12);		/* root of 2 (7.5^2 + 7.5^2) / 4 */
	assert_near(s.error, 47.648266, 1e-6);	/* 12.706205 root(225) / 4 */
	weighted_free(&w);
}

/* What was interrupted is in the percentiles, not in the mean. */
static void interrupted(void **state)
{
	struct weighted w = { 0 };
	struct summary s;
	int i;

	(void)state;
	for (i = 0; i < 300; i++)
		assert_int_equal(weighted_add(&w, i % 50 ? 10 : 101, 2), 0);
	assert_int_equal(weighted_summarise(&w, &s), 6);
	assert_near(s.mean, 10, 1e-12);
	assert_near(s.sd, 0, 1e-9);
	assert_near(s.p50, 10, 1e-12);
	assert_near(s.p99, 101, 1e-12);
	assert_near(s.max, 101, 1e-12);
	weighted_free(&w);
}

/* Things that vary each for itself by 12, measured 1 .. 40 at once. */
static void one_of_many(void **state)
{
	struct weighted w = { 0 };
	struct rng r = { 6 };
	struct summary s;
	int i, k, n;

	(void)state;
	for (i = 0; i < 4000; i++) {
		double sum = 0;

		n = 1 + (int)rng_below(&r, 40);
		for (k = 0; k < n; k++)
			sum += 100 + 12 * normal(&r);
		assert_int_equal(weighted_add(&w, sum / n, n), 0);
	}
	assert_int_equal(weighted_summarise(&w, &s), 0);
	assert_near(s.mean, 100, 0.003);
	assert_near(s.sd, 12, 0.06);
	/* 1.96 * 12 / root of the things, some 82,000 */
	assert_near(s.error, 0.082, 0.1);
	weighted_free(&w);
}

/* ---- the prices file ---------------------------------------------------- */

static json_t *make_doc(int map)
{
	return json_pack("{s:s, s:{s:s}, s:{s:i, s:i, s:i, s:i, s:i}, s:{s:f}, s:{s:{s:i, s:f, s:f}}}",
			 "schema", PRICES_SCHEMA,
			 "fingerprint", "cpu", "x",
			 "prices", "syscall", 1000, "lookup", 2000, "map", map,
			 "pt", 10, "deep", 50,
			 "cover", "p99", 1.1,
			 "terms", "map", "n", 100, "mean", 90.0, "sd", 30.0);
}

static void read_text(const char *path, const char *text, int want)
{
	json_t *doc;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(prices_read(path, &doc), want);
	if (!want)
		json_decref(doc);
}

static void file(void **state)
{
	char dir[] = "/tmp/brumm-prices-XXXXXX", path[64], deep[64];
	double ns[FIT_TERMS];
	json_t *doc, *in;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/made/prices.json", dir);
	assert_int_equal(prices_read(path, &in), -ENOENT);
	doc = make_doc(100);
	assert_int_equal(prices_write(path, doc), 0);
	assert_int_equal(prices_read(path, &in), 0);
	assert_true(json_equal(doc, in));
	json_decref(in);
	json_decref(doc);

	/* What cannot be replaced stays: here the new name is that of a folder. */
	snprintf(deep, sizeof(deep), "%s/made/taken", dir);
	assert_int_equal(mkdir(deep, 0755), 0);
	doc = make_doc(200);
	assert_true(prices_write(deep, doc) < 0);
	assert_int_equal(prices_read(path, &in), 0);
	assert_int_equal(prices_get(in, PRICES_USUAL, ns), 0);
	assert_true(ns[FIT_MAP] == 100);
	assert_int_equal(prices_get(in, PRICES_WORST, ns), -EBADMSG);
	json_decref(in);
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(prices_write(path, doc), 0);
	json_decref(doc);

	read_text(path, "", -EBADMSG);
	read_text(path, "{\"schema\": \"brumm-prices/1\"", -EBADMSG);
	read_text(path, "[]", -EBADMSG);
	read_text(path, "{\"schema\": \"brumm-prices/2\", \"fingerprint\": {}, \"prices\": {\"syscall\": 1, \"lookup\": 1, \"map\": 1, \"pt\": 1, \"deep\": 1}}",
		  -EBADMSG);
	read_text(path, "{\"schema\": \"brumm-prices/1\", \"fingerprint\": {}, \"prices\": {\"syscall\": 1, \"lookup\": 1, \"map\": -1, \"pt\": 1, \"deep\": 1}}",
		  -EBADMSG);
	/* What costs nothing is bounded by no budget. */
	read_text(path, "{\"schema\": \"brumm-prices/1\", \"fingerprint\": {}, \"prices\": {\"syscall\": 1, \"lookup\": 1, \"map\": 1, \"pt\": 0, \"deep\": 1}}",
		  -EBADMSG);
	read_text(path, "{\"schema\": \"brumm-prices/1\", \"fingerprint\": {}, \"prices\": {\"syscall\": 1, \"lookup\": 1, \"map\": 1}}",
		  -EBADMSG);
	read_text(path, "{\"schema\": \"brumm-prices/1\", \"fingerprint\": {}, \"prices\": {\"syscall\": 1, \"lookup\": 1, \"map\": 1, \"pt\": 1, \"deep\": 1}}",
		  0);
	/* Nothing of a write is left but the file. */
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/made", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* 10 lookups, 100 maps, 1000 pages at 2000, 100 and 10 ns; maps vary by 30 ns. */
static void prediction(void **state)
{
	const double count[FIT_TERMS] = { 0, 10, 100, 1000 };
	const double price[FIT_TERMS] = { 0, 2000, 100, 10 };
	json_t *doc = make_doc(100);
	struct prediction p;

	(void)state;
	assert_int_equal(predict(doc, count, price, &p), 0);
	assert_true(p.known);
	assert_near(p.sd, 300, 1e-9);
	assert_near(p.p99, 40000 * 1.1 + 2.3263478740408408 * 300, 1e-9);
	assert_near(p.syscall, 1000, 1e-9);
	assert_true(p.worst == 0);
	json_object_set_new(doc, "worst", json_pack("{s:i, s:i, s:i, s:i, s:i}",
						    "syscall", 1000, "lookup", 2500,
						    "map", 300, "pt", 10, "deep", 1));
	assert_int_equal(predict(doc, count, price, &p), 0);
	assert_near(p.worst, 65000, 1e-9);
	json_object_set_new(json_object_get(doc, "worst"), "map", json_integer(1));
	assert_int_equal(predict(doc, count, price, &p), 0);
	assert_near(p.worst, 40000, 1e-9);

	/* Whole operations that never took longer do not lower it. */
	json_object_set_new(json_object_get(doc, "cover"), "p99",
			    json_real(0.9));
	assert_int_equal(predict(doc, count, price, &p), 0);
	assert_near(p.p99, 40000 + 2.3263478740408408 * 300, 1e-9);
	json_object_del(doc, "cover");
	assert_int_equal(predict(doc, count, price, &p), -EBADMSG);
	json_decref(doc);
}

/* 3 CPUs are as many as 4: one mapping 500 ns more, of many together 20. */
static void flushes(void **state)
{
	json_t *doc = json_pack("{s:[{s:i, s:i, s:{s:i}}, {s:i, s:i, s:{s:i}}, {s:i, s:i, s:{s:i}}]}",
				"flush",
				"cpus", 1, "p50", 1000, "together", "p50", 300,
				"cpus", 2, "p50", 1200, "together", "p50", 310,
				"cpus", 4, "p50", 1500, "together", "p50", 320);
	struct flush f;

	(void)state;
	assert_int_equal(predict_flush(doc, 100, 1, &f), 0);
	assert_int_equal(f.cpus, 1);
	assert_true(f.mean == 0 && f.worst == 0);
	assert_int_equal(predict_flush(doc, 100, 3, &f), 0);
	assert_int_equal(f.cpus, 4);
	assert_near(f.mean, 2000, 1e-12);
	assert_near(f.worst, 50000, 1e-12);
	/* More than there were: as far as it is known. */
	assert_int_equal(predict_flush(doc, 100, 64, &f), 0);
	assert_int_equal(f.cpus, 4);
	json_object_clear(doc);
	assert_int_equal(predict_flush(doc, 100, 2, &f), -EBADMSG);
	json_decref(doc);
}

static void fingerprints(void **state)
{
	json_t *a = machine_fingerprint(), *b = json_deep_copy(a), *list;

	(void)state;
	assert_non_null(a);
	assert_true(json_is_string(json_object_get(a, "release")));
	list = machine_differences(a, b);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	json_object_set_new(b, "microcode", json_string("0xffffffff"));
	json_object_del(b, "module");
	json_object_set_new(b, "newer", json_string("key"));
	list = machine_differences(a, b);
	assert_int_equal(json_array_size(list), 3);
	json_decref(list);
	json_decref(a);
	json_decref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact), cmocka_unit_test(outliers),
		cmocka_unit_test(intervals), cmocka_unit_test(non_negative),
		cmocka_unit_test(fixed_term), cmocka_unit_test(cannot_tell),
		cmocka_unit_test(summaries), cmocka_unit_test(weights),
		cmocka_unit_test(interrupted), cmocka_unit_test(one_of_many),
		cmocka_unit_test(file),
		cmocka_unit_test(prediction), cmocka_unit_test(flushes),
		cmocka_unit_test(fingerprints),
	};

	return RUN_TAP("profile", tests);
}
