// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of brumm mc load that need no server: histogram, models, schedule,
 * protocol, counting, gates.
 */
#define _GNU_SOURCE
#include <math.h>
#include <netinet/in.h>
#include <poll.h>

#include "common.h"
#include "../../userspace/brumm/cli.h"
#include "../../userspace/mc/load/conn.h"
#include "../../userspace/mc/load/gates.h"
#include "../../userspace/mc/load/keys.h"
#include "../../userspace/mc/load/proto.h"
#include "../../userspace/mc/load/tally.h"

#define SAMPLES	20000

/* ---- histogram ----------------------------------------------------------- */

static void slots_hold_what_they_should(void **state)
{
	uint64_t v = 0, low, next;
	size_t slot;

	(void)state;
	while (v < 1ULL << MC_HIST_POWERS) {
		slot = mc_hist_slot(v);
		assert_true(slot < MC_HIST_SLOTS);
		low = mc_hist_low(slot);
		next = mc_hist_low(slot + 1);
		assert_true(low <= v && v < next);
		/* The middle is within 0.1 % of all that is in it. */
		assert_true((double)(next - 1 - low) / 2 <= 0.001 * (double)low);
		v += v / 700 + 1;
	}
	assert_true(mc_hist_low(MC_HIST_SLOTS) == 1ULL << MC_HIST_POWERS);
}

static void merging_loses_nothing(void **state)
{
	struct mc_hist *part = calloc(8, sizeof(*part));
	struct mc_hist *all = calloc(2, sizeof(*all));
	uint64_t v = 12345;
	unsigned int i;

	(void)state;
	for (i = 0; i < SAMPLES; i++) {
		v = v * 6364136223846793005u + 1442695040888963407u;
		/* From a few ns to more than there is a slot for. */
		mc_hist_add(&part[i % 8], v >> (24 + i % 36));
		mc_hist_add(&all[0], v >> (24 + i % 36));
	}
	for (i = 0; i < 8; i++)
		mc_hist_merge(&all[1], &part[i]);
	assert_true(all[0].over > 0);
	assert_memory_equal(&all[0], &all[1], sizeof(*all));
	free(part);
	free(all);
}

static void json_holds_all_of_it(void **state)
{
	struct mc_hist *h = calloc(2, sizeof(*h));
	json_t *j;

	(void)state;
	mc_hist_add(&h[0], 3);
	mc_hist_add(&h[0], 100001);
	mc_hist_add(&h[0], 1ULL << 40);
	j = mc_hist_json(&h[0]);
	assert_int_equal(mc_hist_parse(j, &h[1]), 0);
	assert_memory_equal(&h[0], &h[1], sizeof(*h));
	json_object_set_new(j, "n", json_integer(4));
	assert_int_equal(mc_hist_parse(j, &h[1]), -EINVAL);
	json_decref(j);
	free(h);
}

static void quantiles_are_ranks(void **state)
{
	struct mc_hist *h = calloc(1, sizeof(*h));
	uint64_t i;

	(void)state;
	assert_int_equal(mc_hist_quantile(h, 0.5), 0);
	for (i = 1; i <= 1000; i++)
		mc_hist_add(h, i);
	assert_int_equal(mc_hist_quantile(h, 0.5), 500);
	assert_int_equal(mc_hist_quantile(h, 0.99), 990);
	assert_int_equal(mc_hist_quantile(h, 0.999), 999);
	assert_int_equal(mc_hist_quantile(h, 1), 1000);
	free(h);
}

/* ---- models -------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/*
 * Greatest distance of the samples' distribution from F, at steps where those of
 * whole numbers end. 1.95 / sqrt(n) is exceeded once in a thousand.
 */
static void assert_distribution(double *v, size_t n, double (*f)(double))
{
	double worst = 0, d;
	size_t i;

	qsort(v, n, sizeof(*v), by_value);
	for (i = 0; i < n; i++) {
		if (i + 1 < n && v[i + 1] == v[i])
			continue;
		d = fabs((double)(i + 1) / (double)n - f(v[i]));
		worst = d > worst ? d : worst;
	}
	if (worst >= 1.95 / sqrt((double)n))
		print_message("# distance %g\n", worst);
	assert_true(worst < 1.95 / sqrt((double)n));
}

/* F of ETC's key sizes: GEV(30.7984, 8.20449, 0.078688), rounded. */
static double key_cdf(double x)
{
	return exp(-pow(1 + 0.078688 * (x + 0.5 - 30.7984) / 8.20449,
			-1 / 0.078688));
}

/* F of value sizes: the table of the paper, then GP(15, 214.476, 0.348238). */
static double value_cdf(double x)
{
	static const double share[] = {
		0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065,
		0.00606, 0.00023, 0.00837, 0.00837, 0.08989, 0.00092, 0.00326,
		0.01980,
	};
	double sum = 0, all = 0;
	size_t i;

	for (i = 0; i < sizeof(share) / sizeof(*share); i++) {
		all += share[i];
		if ((double)i <= x)
			sum += share[i];
	}
	if (x < 15)
		return sum;
	return all + (1 - all) * (1 - pow(1 + 0.348238 * (x + 1 - 15) / 214.476,
					  -1 / 0.348238));
}

static double exponential_cdf(double x)
{
	return 1 - exp(-x);
}

static double gap_cdf(double x)
{
	return 1 - pow(1 + 0.154971 * x / 16.0292, -1 / 0.154971);
}

static void models_are_those_of_the_papers(void **state)
{
	struct size_model etc = { SIZE_ETC, 0, 0 };
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_taus2);
	double *v = calloc(SAMPLES, sizeof(*v));
	size_t i;

	(void)state;
	gsl_rng_set(rng, 5);
	for (i = 0; i < SAMPLES; i++)
		v[i] = model_key_size(&etc, rng);
	assert_distribution(v, SAMPLES, key_cdf);
	for (i = 0; i < SAMPLES; i++) {
		v[i] = model_value_size(&etc, rng);
		assert_true(v[i] >= 1);		/* what has no byte gets one */
	}
	assert_distribution(v, SAMPLES, value_cdf);
	for (i = 0; i < SAMPLES; i++)
		v[i] = model_gap(GAP_EXPONENTIAL, rng);
	assert_distribution(v, SAMPLES, exponential_cdf);
	for (i = 0; i < SAMPLES; i++)
		v[i] = model_gap(GAP_ETC, rng);
	assert_distribution(v, SAMPLES, gap_cdf);
	free(v);
	gsl_rng_free(rng);
}

static void sizes_are_parsed(void **state)
{
	struct size_model m;

	(void)state;
	assert_int_equal(size_model_parse("10", 250, &m), 0);
	assert_int_equal(m.low, 10);
	assert_int_equal(m.high, 10);
	assert_int_equal(size_model_parse("10-20", 250, &m), 0);
	assert_int_equal(m.high, 20);
	assert_int_equal(size_model_parse("etc", 250, &m), 0);
	assert_int_equal(m.kind, SIZE_ETC);
	assert_int_equal(size_model_parse("0", 250, &m), -ERANGE);
	assert_int_equal(size_model_parse("251", 250, &m), -ERANGE);
	assert_int_equal(size_model_parse("20-10", 250, &m), -EINVAL);
	assert_int_equal(size_model_parse("1x", 250, &m), -EINVAL);
	assert_int_equal(size_model_parse("-1", 250, &m), -EINVAL);
}

/* ---- schedule ------------------------------------------------------------ */

static struct config plain_config(void)
{
	return (struct config){
		.servers = 1, .rate = 2000, .duration = 2 * NSEC, .seed = 3,
		.threads = 1, .connections = 16, .depth = 1, .keys = 1000,
		.key_size = { SIZE_ETC, 0, 0 }, .value_size = { SIZE_ETC, 0, 0 },
		.get_ratio = 0.9, .multiget = 1, .fanout = 1,
		.hedge = UINT64_MAX, .interval = NSEC / 10,
		.threshold = { 100000, 1000000 }, .thresholds = 2,
	};
}

static const struct request *nth_of(const struct plan *plan, unsigned int n,
				    uint64_t number, const struct plan **of)
{
	unsigned int p;
	uint32_t i;

	for (p = 0; p < n; p++) {
		for (i = 0; i < plan[p].n; i++) {
			if (plan[p].request[i].number == number) {
				*of = &plan[p];
				return &plan[p].request[i];
			}
		}
	}
	return NULL;
}

/* Eight ranks with 2 connections each send what one with 16 does. */
static void ranks_share_one_schedule(void **state)
{
	struct config c = plain_config(), part = c;
	struct plan one = { 0 }, eight[8] = { 0 };
	const struct request *a, *b;
	const struct plan *of;
	unsigned int r;
	uint64_t n = 0;
	uint32_t i;

	(void)state;
	part.connections = 2;
	assert_int_equal(schedule_make(&one, &c, &(struct share){ 0, 1 }, 3,
				       c.duration), 0);
	for (r = 0; r < 8; r++) {
		assert_int_equal(schedule_make(&eight[r], &part,
					       &(struct share){ r, 8 }, 3,
					       c.duration), 0);
		n += eight[r].n;
	}
	/* The rate is met exactly, whatever the gaps are. */
	assert_int_equal(one.n, 4000);
	assert_int_equal(n, 4000);
	for (i = 0; i < one.n; i++) {
		a = &one.request[i];
		b = nth_of(eight, 8, a->number, &of);
		assert_non_null(b);
		assert_int_equal(a->intended, b->intended);
		assert_int_equal(a->key, b->key);
		assert_int_equal(a->op, b->op);
	}
	plan_free(&one);
	for (r = 0; r < 8; r++)
		plan_free(&eight[r]);
}

static void equal_gaps_are_equal(void **state)
{
	struct config c = plain_config();
	struct plan p = { 0 };
	uint64_t gap;
	uint32_t i;

	(void)state;
	c.arrivals = GAP_FIXED;
	assert_int_equal(schedule_make(&p, &c, &(struct share){ 0, 1 }, 3,
				       c.duration), 0);
	assert_int_equal(p.n, 4000);
	for (i = 1; i < p.n; i++) {
		gap = p.request[i].intended - p.request[i - 1].intended;
		assert_in_range(gap, 499999, 500001);
	}
	assert_in_range(p.request[0].intended, 249999, 250001);
	plan_free(&p);
}

static void random_gaps_are_exponential(void **state)
{
	struct config c = plain_config();
	struct plan p = { 0 };
	double *gap;
	uint32_t i;

	(void)state;
	c.rate = 10000;
	assert_int_equal(schedule_make(&p, &c, &(struct share){ 0, 1 }, 3,
				       c.duration), 0);
	gap = calloc(p.n, sizeof(*gap));
	for (i = 1; i < p.n; i++)
		gap[i - 1] = (double)(p.request[i].intended -
				      p.request[i - 1].intended) / 1e5;
	assert_distribution(gap, p.n - 1, exponential_cdf);
	free(gap);
	plan_free(&p);
}

/* ---- protocol ------------------------------------------------------------ */

static void keys_all_differ(void **state)
{
	struct config c = plain_config();
	char a[MODEL_MAX_KEY], b[MODEL_MAX_KEY];
	struct keys k;
	size_t n;

	(void)state;
	c.key_size = (struct size_model){ SIZE_RANGE, 1, 3 };
	assert_int_equal(keys_make(&k, &c), 0);
	n = keys_text(&k, 1, a);
	assert_int_equal(n, keys_text(&k, 257, b));
	assert_memory_not_equal(a, b, n);
	keys_free(&k);
	c.key_size.high = 2;
	assert_int_equal(keys_make(&k, &c), -ERANGE);
}

static void answers_are_taken_apart(void **state)
{
	static const struct {
		const char *text;
		int kind;
		size_t size;
		uint64_t id;
	} good[] = {
		{ "VA 3 O1f\r\nabc\r\n", ANSWER_VALUE, 3, 0x1f },
		{ "VA 3 s3 Ob\r\nabc\r\n", ANSWER_VALUE, 3, 0xb },
		{ "VA 0\r\n\r\n", ANSWER_VALUE, 0, 0 },
		{ "VALUE key 0 2\r\n\r\n\r\n", ANSWER_VALUE, 2, 0 },
		{ "EN\r\n", ANSWER_MISS, 0, 0 },
		{ "EN O7\r\n", ANSWER_MISS, 0, 7 },
		{ "END\r\n", ANSWER_END, 0, 0 },
		{ "HD O7\r\n", ANSWER_STORED, 0, 7 },
		{ "STORED\r\n", ANSWER_STORED, 0, 0 },
		{ "NS O9\r\n", ANSWER_REFUSED, 0, 9 },
		{ "SERVER_ERROR out of memory\r\n", ANSWER_REFUSED, 0, 0 },
		{ "CLIENT_ERROR bad\r\n", ANSWER_REFUSED, 0, 0 },
		{ "ERROR\r\n", ANSWER_REFUSED, 0, 0 },
	};
	struct answer a;
	size_t i, n, len;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		len = strlen(good[i].text);
		for (n = 0; n < len; n++)
			assert_int_equal(proto_parse(good[i].text, n, &a), 0);
		assert_int_equal(proto_parse(good[i].text, len, &a), len);
		assert_int_equal(a.kind, good[i].kind);
		assert_int_equal(a.size, good[i].size);
		assert_int_equal(a.id, good[i].id);
	}
}

static void nonsense_is_no_answer(void **state)
{
	static const char *const bad[] = {
		"\r\n", "hello\r\n", "VA\r\n", "VA x\r\n", "VA -1\r\n",
		"VA 1 Oxyz\r\n", "VA 99999999999\r\n", "VALUE key 0\r\n",
		"VA 1\r\nabc\r\n", "HD Ozz\r\n", "HD O\r\n",
		"HD O12345678901234567\r\n", "STOREDX\r\n",
	};
	struct answer a;
	char *endless;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(proto_parse(bad[i], strlen(bad[i]), &a), -EPROTO);
	endless = malloc(5000);
	memset(endless, 'x', 5000);
	assert_int_equal(proto_parse(endless, 100, &a), 0);
	assert_int_equal(proto_parse(endless, 5000, &a), -EPROTO);
	free(endless);
}

static void keys_of_a_get_are_of_one_server(void **state)
{
	struct config c = plain_config();
	uint32_t key;
	unsigned int j;

	(void)state;
	c.servers = 3;
	c.keys = 100;
	for (key = 0; key < 100; key++) {
		assert_int_equal(proto_key(&c, key, 0), key);
		for (j = 0; j < 40; j++) {
			assert_true(proto_key(&c, key, j) < 100);
			assert_int_equal(proto_key(&c, key, j) % 3, key % 3);
		}
	}
}

/* ---- counting ------------------------------------------------------------ */

/* A plan by hand: what becomes of each request is known. */
static void outcomes_are_counted(void **state)
{
	struct request request[] = {
		{ .intended = 1000 }, { .intended = 2000, .op = OP_SET },
		{ .intended = 3000 }, { .intended = 4000 }, { .intended = 5000 },
		{ .intended = 6000 }, { .intended = NSEC * 2 + 1000 },
	};
	struct copy copy[] = {
		/* Exactly 100 us: not longer. */
		{ .sent = 1000, .received = 101000, .hits = 1 },
		{ .sent = 2000, .received = 102001, .status = COPY_STORED },
		/* Sent late: longer from the intended time only. */
		{ .sent = 150000, .received = 200000, .hits = 1 },
		{ .sent = 4000, .received = NSEC, .status = COPY_TIMED_OUT },
		{ .sent = 0, .received = 6000, .status = COPY_UNSENT },
	};
	struct plan p = { .request = request, .copy = copy, .n = 7, .legs = 1,
			  .copies = 1 };
	struct window window = { 1000, 2 * NSEC + 1000, 2 * NSEC + 1000 };
	struct config c = plain_config();
	const struct over *o;
	struct counts n;

	(void)state;
	assert_int_equal(counts_alloc(&n, &c, c.duration), 0);
	/* The sixth was due and was not come to; the seventh is not of the window. */
	counts_add_plan(&n, &c, &p, 5, &window);
	assert_int_equal(tally_requests(&n.tally[0]), 6);
	assert_int_equal(n.tally[0].outcome[OUTCOME_ANSWERED], 3);
	assert_int_equal(n.tally[0].outcome[OUTCOME_TIMED_OUT], 1);
	assert_int_equal(n.tally[0].outcome[OUTCOME_UNSENT], 1);
	assert_int_equal(n.tally[0].outcome[OUTCOME_IN_FLIGHT], 1);
	o = &n.tally[0].threshold[0];
	assert_int_equal(o->over, 2);
	assert_int_equal(o->over_send, 1);
	assert_int_equal(o->over_lag, 1);
	assert_int_equal(o->censored_over, 2);
	assert_int_equal(o->censored_under, 1);
	assert_int_equal(n.tally[0].intended.n, 3);
	assert_int_equal(n.tally[0].lag.n, 4);
	assert_int_equal(n.tally[0].stored, 1);
	assert_int_equal(n.tally[0].hits, 2);
	assert_int_equal(n.sent, 4);
	assert_int_equal(counts_line(&n, LINE_REQUESTS)[0], 6);
	assert_int_equal(counts_line(&n, LINE_CENSORED)[0], 3);
	assert_int_equal(counts_line(&n, LINE_OVER)[0], 4);
	assert_int_equal(counts_line(&n, LINE_OVER + 1)[0], 5);
	counts_free(&n);
}

/* Two servers: the slower leg counts; of two copies the faster one. */
static void legs_and_copies_are_merged(void **state)
{
	struct request request[] = { { .intended = 1000 }, { .intended = 2000 } };
	struct copy copy[] = {
		{ .sent = 1000, .received = 51000, .hits = 1 },
		{ .status = COPY_NONE },
		{ .sent = 2000, .received = 900000, .connection = 1,
		  .status = COPY_LATE },
		{ .sent = 20000, .received = 201000, .connection = 0, .hits = 1 },
		{ .sent = 2000, .received = 3000, .hits = 1 },
		{ .status = COPY_NONE },
		{ .sent = 2000, .received = 70000, .connection = 1,
		  .status = COPY_LOST },
		{ .status = COPY_NONE },
	};
	struct plan p = { .request = request, .copy = copy, .n = 2, .legs = 2,
			  .copies = 2 };
	struct window window = { 1000, 2 * NSEC, 2 * NSEC };
	struct config c = plain_config();
	struct decision d;
	struct counts n;

	(void)state;
	c.servers = c.fanout = 2;
	assert_int_equal(counts_alloc(&n, &c, c.duration), 0);
	counts_add_plan(&n, &c, &p, 2, &window);
	assert_int_equal(tally_requests(&n.tally[0]), 2);
	assert_int_equal(n.tally[0].outcome[OUTCOME_ANSWERED], 1);
	assert_int_equal(n.tally[0].outcome[OUTCOME_LOST], 1);
	assert_int_equal(n.tally[0].intended.max, 200000);
	assert_int_equal(n.tally[0].send.max, 199000);
	assert_int_equal(n.tally[1].intended.max, 50000);
	assert_int_equal(n.tally[2].intended.max, 200000);
	assert_int_equal(n.tally[2].outcome[OUTCOME_LOST], 1);
	assert_int_equal(n.hedged, 1);
	assert_int_equal(n.won, 1);
	assert_int_equal(n.sent, 5);
	counts_free(&n);
	/* Decided by the second copy of the second leg. */
	d = request_decision(&p, 0);
	assert_true(d.answered);
	assert_int_equal(d.intended, 1000);
	assert_int_equal(d.first, 2000);
	assert_int_equal(d.sent, 20000);
	assert_int_equal(d.received, 201000);
	assert_int_equal(d.connection, 0);
	/* By the first, and only one. */
	d = request_decision(&p, 1);
	assert_false(d.answered);
	assert_int_equal(d.first, 2000);
	assert_int_equal(d.sent, 2000);
	assert_int_equal(d.connection, 1);
}

/* It comes up at 100, and after it was lost again at 200, by another port. */
static void a_connection_was_another_one(void **state)
{
	struct conn_name name[] = { { 100, 4000 }, { 200, 4001 } };
	struct conn c = { .fd = -1, .name = name, .names = 2 }, none = { .fd = -1 };

	(void)state;
	assert_int_equal(conn_port_at(&c, 99), 0);
	assert_int_equal(conn_port_at(&c, 100), 4000);
	assert_int_equal(conn_port_at(&c, 199), 4000);
	assert_int_equal(conn_port_at(&c, 200), 4001);
	assert_int_equal(conn_port_at(&c, UINT64_MAX), 4001);
	assert_int_equal(conn_port_at(&none, 100), 0);
}

/* Connected twice to a socket that we hear at: each time by the port that it sees. */
static void a_connection_remembers_its_ports(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, seen;
	struct server server = { .transport = TRANSPORT_TCP, .len = sizeof(at) };
	struct conn c = { .fd = -1, .server = &server };
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(at);
	int heard = socket(AF_INET, SOCK_STREAM, 0), fd;
	uint64_t before = cli_now();
	size_t i;

	(void)state;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(heard, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(heard, 2), 0);
	assert_int_equal(getsockname(heard, (struct sockaddr *)&at, &len), 0);
	memcpy(&server.addr, &at, sizeof(at));
	assert_int_equal(server_port(&server), ntohs(at.sin_port));
	for (i = 1; i <= 2; i++) {
		assert_int_equal(conn_open(&c), 0);
		p.fd = c.fd;
		if (c.state == CONN_CONNECTING) {
			assert_int_equal(poll(&p, 1, 10000), 1);
			assert_int_equal(conn_opened(&c), 0);
		}
		len = sizeof(seen);
		fd = accept(heard, (struct sockaddr *)&seen, &len);
		assert_true(fd >= 0);
		assert_int_equal(c.names, i);
		assert_int_equal(conn_port_at(&c, cli_now()), ntohs(seen.sin_port));
		conn_close(&c);
		close(fd);
	}
	assert_int_equal(conn_port_at(&c, before - 1), 0);
	assert_int_equal(conn_port_at(&c, c.name[1].since - 1), c.name[0].port);
	conn_free(&c);
	close(heard);
}

/* ---- gates --------------------------------------------------------------- */

static struct facts good_facts(void)
{
	return (struct facts){
		.ranks = 1, .reported = 1, .window = 1e10, .requests = 20000,
		.scheduled = 20000, .sent = 20000, .rate = 2000, .arrivals = 1,
		.busy = 0.1, .timer = 6e4, .drift = 1e-6, .resolution = 1,
		.asked = 18000, .in_flight = 1e9, .latencies = 1e9,
	};
}

/* The gate of that name, and no other, fails. */
static void only_fails(const struct facts *f, const char *name)
{
	struct gate gate[GATES];
	unsigned int i, failed = 0;
	const char *which = "none";

	gates_judge(f, gate);
	for (i = 0; i < GATES; i++) {
		if (gate[i].verdict == GATE_FAIL) {
			failed++;
			which = gate[i].name;
		}
	}
	assert_string_equal(which, name);
	assert_int_equal(failed, strcmp(name, "none") != 0);
	assert_int_equal(gates_failed(gate), failed != 0);
}

#define FAILS(name, ...)						\
	do {								\
		struct facts f = good_facts();				\
		f.__VA_ARGS__;						\
		only_fails(&f, name);					\
	} while (0)

static void every_gate_can_fail(void **state)
{
	struct facts good = good_facts();

	(void)state;
	only_fails(&good, "none");
	FAILS("complete", interrupted = true);
	FAILS("ranks", reported = 0);
	FAILS("start", start_error = 2e6);
	FAILS("window", requests = 999);
	FAILS("rate", sent = 19799);
	FAILS("rate", rate = 2021);
	FAILS("lag", late = 201);
	FAILS("arrivals", arrivals = 6.1);
	FAILS("busy", busy = 0.81);
	FAILS("run-delay", run_delay = 0.06);
	FAILS("timer", timer = 2e6);
	FAILS("clock", backwards = 1);
	FAILS("clock", drift = -0.002);
	FAILS("clock", resolution = 4e6);
	FAILS("connections", lost = 1);
	FAILS("errors", errors = 1);
	FAILS("hits", misses = 181);
	FAILS("server", restarts = 1);
	FAILS("server", evictions = 1);
	FAILS("steal", steal = 0.02);
	FAILS("little", in_flight = 1.03e9);
	FAILS("little", in_flight = 0.97e9);
	/* Nor does what is within the limit. */
	FAILS("none", sent = 19801);
	FAILS("none", late = 200);
}

static void short_windows_fail(void **state)
{
	struct facts f = good_facts();

	(void)state;
	f.window = 0.9e9;
	f.requests = f.scheduled = f.sent = 1800;
	only_fails(&f, "window");
}

static void what_is_unknown_fails_nothing(void **state)
{
	struct facts f = good_facts();
	struct gate gate[GATES];
	json_t *j;
	size_t i;

	(void)state;
	f.arrivals = f.run_delay = f.steal = f.misses = f.evictions = NAN;
	only_fails(&f, "none");
	gates_judge(&f, gate);
	j = gates_json(gate);
	assert_int_equal(json_array_size(j), GATES);
	for (i = 0; i < GATES; i++) {
		json_t *g = json_array_get(j, i);

		if (!strcmp(gate[i].name, "steal")) {
			assert_true(json_is_null(json_object_get(g, "value")));
			assert_string_equal(json_string_value(json_object_get(
				g, "verdict")), "unknown");
		}
	}
	json_decref(j);
}

/* -n - sum (2i - 1)(ln F(x_i) + ln(1 - F(x_{n+1-i}))) / n, straight from there. */
static void anderson_darling_is_the_formula(void **state)
{
	double v[64], sum = 0;
	int i, n = 64;

	(void)state;
	for (i = 1; i <= n; i++)
		v[i - 1] = -log(1 - (i - 0.5) / n) * (1 + 0.2 * i / n);
	for (i = 1; i <= n; i++)
		sum += (2 * i - 1) * (log(1 - exp(-v[i - 1])) +
				      log(1 - (1 - exp(-v[n - i]))));
	assert_true(fabs(gates_anderson_darling(v, 64, 1) - (-n - sum / n)) < 1e-9);
	assert_true(isnan(gates_anderson_darling(v, 49, 1)));
	/* Equal gaps are anything but exponential; those above nearly are. */
	assert_true(gates_anderson_darling(v, 64, 1.1) < 2.5);
	for (i = 0; i < n; i++)
		v[i] = 1;
	assert_true(gates_anderson_darling(v, 64, 1) > 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_hold_what_they_should),
		cmocka_unit_test(merging_loses_nothing),
		cmocka_unit_test(json_holds_all_of_it),
		cmocka_unit_test(quantiles_are_ranks),
		cmocka_unit_test(models_are_those_of_the_papers),
		cmocka_unit_test(sizes_are_parsed),
		cmocka_unit_test(ranks_share_one_schedule),
		cmocka_unit_test(equal_gaps_are_equal),
		cmocka_unit_test(random_gaps_are_exponential),
		cmocka_unit_test(keys_all_differ),
		cmocka_unit_test(answers_are_taken_apart),
		cmocka_unit_test(nonsense_is_no_answer),
		cmocka_unit_test(keys_of_a_get_are_of_one_server),
		cmocka_unit_test(outcomes_are_counted),
		cmocka_unit_test(legs_and_copies_are_merged),
		cmocka_unit_test(a_connection_was_another_one),
		cmocka_unit_test(a_connection_remembers_its_ports),
		cmocka_unit_test(every_gate_can_fail),
		cmocka_unit_test(short_windows_fail),
		cmocka_unit_test(what_is_unknown_fails_nothing),
		cmocka_unit_test(anderson_darling_is_the_formula),
	};

	return RUN_TAP("mc-load", tests);
}
