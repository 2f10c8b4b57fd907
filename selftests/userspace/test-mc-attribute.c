// SPDX-License-Identifier: GPL-2.0
/*
 * Where the time of a request went, from records written by hand: the expected times
 * are worked out beside them on paper. And the painting, against one nanosecond at a
 * time.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "../../userspace/mc/attribute/list.h"
#include "../../userspace/mc/attribute/side.h"

#define SERVER		100u
#define SPINNER		200u
#define PORTS		ATTR_PORTS(11211, 40000)
#define OTHER_PORTS	ATTR_PORTS(11211, 40001)

/* ---- records ---------------------------------------------------------------- */

static void record(struct events *e, unsigned int type, uint64_t start, uint64_t end,
		   uint32_t tid, unsigned int cpu, uint64_t what)
{
	struct attr_record r = { start, end, tid, (uint16_t)cpu, (uint8_t)type, 0, what };

	events_add(e, &r, sizeof(r));
}

static void slice(struct events *e, uint64_t start, uint64_t end, uint32_t tid,
		  unsigned int cpu, unsigned int flags, const char *comm, uint64_t exits)
{
	struct attr_slice s = {
		.r = { start, end, tid, (uint16_t)cpu, ATTR_SLICE, (uint8_t)flags, 7 },
		.exits = exits,
	};

	strcpy(s.comm, comm);
	events_add(e, &s.r, sizeof(s));
}

static void begin(struct events *e)
{
	*e = (struct events){ .most = 1000000 };
}

/*
 * A request that is due at 1000, sent at 1100, there at 1200, and answered at 5350; the
 * client has read that at 5500. The server sleeps from 900 on, is woken at 1210, and
 * gets on CPU 0 at 5000, where it reads at 5050 and sends at 5300.
 */
static const struct leg leg = {
	.intended = 1000, .sent = 1100, .received = 5500, .ports = PORTS,
	.answered = true,
};

static void marks(struct events *e, uint64_t read, uint64_t sent)
{
	record(e, ATTR_ARRIVE, 1200, 1200, 300, 1, PORTS);
	record(e, ATTR_RECV, read, read, SERVER, 0, PORTS);
	record(e, ATTR_SEND, sent, sent, SERVER, 0, PORTS);
	record(e, ATTR_REPLY, 5350, 5350, SERVER, 0, PORTS);
}

static void simple(struct events *e, unsigned int state)
{
	begin(e);
	slice(e, 500, 900, SERVER, 0, ATTR_SERVER | state, "memcached", 0);
	record(e, ATTR_WAKE, 1210, 1210, SERVER, 1, 300);
	slice(e, 5000, 5600, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	marks(e, 5050, 5300);
}

/* ---- what is expected -------------------------------------------------------- */

static void expect(struct events *e, const struct leg *l, enum known known,
		   const uint64_t want[PARTS])
{
	struct canvas c = { 0 };
	struct finding f;
	uint64_t got[PARTS] = { 0 }, sum = 0;
	size_t i;

	events_sort(e);
	explain(e, l, &c, &f);
	assert_int_equal(f.known, known);
	for (i = 0; i < c.n; i++) {
		assert_true(c.piece[i].start < c.piece[i].end);
		assert_int_equal(c.piece[i].start, i ? c.piece[i - 1].end : l->intended);
		got[c.piece[i].part] += c.piece[i].end - c.piece[i].start;
		sum += c.piece[i].end - c.piece[i].start;
	}
	for (i = 0; i < PARTS; i++) {
		if (got[i] != want[i])
			fail_msg("%s is %lu, not %lu", attr_part_names[i], got[i], want[i]);
	}
	assert_int_equal(sum, l->received - l->intended);
	canvas_free(&c);
	events_free(e);
}

#define EXPECT(e, l, known, ...) \
	expect(e, l, known, (const uint64_t[PARTS]){ __VA_ARGS__ })
#define IS(NAME) [PART_##NAME]

static void an_idle_cpu_is_late(void **state)
{
	struct events e;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 3800, IS(SERVER) = 300, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
}

/* The spinner has the CPU from 1000 to 5000; the interrupts take 300 of it. */
static void another_has_the_cpu(void **state)
{
	struct events e;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	slice(&e, 1000, 5000, SPINNER, 0, ATTR_SLEEPS, "spin", 0);
	record(&e, ATTR_IRQ, 2000, 2100, SPINNER, 0, 0);
	record(&e, ATTR_SOFTIRQ, 2100, 2300, SPINNER, 0, 1);
	/* On another CPU, and by somebody else. */
	record(&e, ATTR_IRQ, 3000, 3100, 0, 1, 0);
	record(&e, ATTR_SOFTIRQ, 3000, 3100, 999, 0, 1);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 10, IS(RUN_QUEUE) = 3490, IS(IRQ) = 100,
	       IS(SOFTIRQ) = 200, IS(SERVER) = 300, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
}

/* Woken for an earlier request, which waits, too. */
static void it_was_awake_before(void **state)
{
	struct events e;

	(void)state;
	begin(&e);
	slice(&e, 500, 900, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	record(&e, ATTR_WAKE, 950, 950, SERVER, 1, 300);
	slice(&e, 900, 5000, SPINNER, 0, ATTR_SLEEPS, "spin", 0);
	slice(&e, 5000, 5600, SERVER, 0, ATTR_SERVER, "memcached", 0);
	marks(&e, 5250, 5300);
	record(&e, ATTR_RECV, 5020, 5020, SERVER, 0, OTHER_PORTS);
	record(&e, ATTR_SEND, 5200, 5200, SERVER, 0, OTHER_PORTS);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(RUN_QUEUE) = 3800, IS(QUEUE) = 200, IS(SERVER) = 100, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
}

/* Of 3790 one exits for 1000, and does an operation of the module for 500 of them. */
static void a_teardown_and_the_module(void **state)
{
	struct events e;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	slice(&e, 1000, 2500, SPINNER, 0, ATTR_RUNNABLE, "tenant", 1500);
	slice(&e, 2500, 5000, SPINNER + 1, 0, ATTR_RUNNABLE, "other", 0);
	record(&e, ATTR_BRUMM, 2000, 2700, SPINNER, 1, 0);
	record(&e, ATTR_BRUMM, 3000, 3100, SPINNER + 2, 1, 0);
	record(&e, ATTR_IPI, 1600, 1650, SPINNER, 0, 0);
	record(&e, ATTR_TLB, 2100, 2150, SPINNER, 0, 0);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 10, IS(RUN_QUEUE) = 290 + 2500, IS(TEARDOWN) = 450,
	       IS(BRUMM) = 450, IS(IPI) = 50, IS(TLB) = 50, IS(SERVER) = 300,
	       IS(SEND) = 50, IS(CLIENT_RECEIVE) = 150);
}

/* SIGSTOP until 4000, and 1000 until it runs. */
static void it_is_stopped(void **state)
{
	struct events e;

	(void)state;
	begin(&e);
	slice(&e, 500, 900, SERVER, 0, ATTR_SERVER | ATTR_STOPPED, "memcached", 0);
	record(&e, ATTR_WAKE, 4000, 4000, SERVER, 1, 300);
	slice(&e, 5000, 5600, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	marks(&e, 5050, 5300);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(STOPPED) = 2800, IS(WAKE_UP) = 1000, IS(SERVER) = 300,
	       IS(SEND) = 50, IS(CLIENT_RECEIVE) = 150);
}

/*
 * It runs from 1200 on, reads at 1300, faults from 1400 to 4400, where it sleeps from
 * 1500 to 4000 for the lock of its address space, then waits for the CPU until 4100.
 */
static void within_its_own_work(void **state)
{
	struct events e;

	(void)state;
	begin(&e);
	slice(&e, 1000, 1500, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	record(&e, ATTR_WAKE, 4000, 4000, SERVER, 1, 300);
	slice(&e, 4000, 4100, SPINNER, 0, ATTR_RUNNABLE, "spin", 0);
	slice(&e, 4100, 5600, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	marks(&e, 1300, 5300);
	record(&e, ATTR_FAULT, 1400, 4400, SERVER, 0, 0);
	record(&e, ATTR_MMAP_LOCK, 1450, 4150, SERVER, 0, 0);
	record(&e, ATTR_LOCK, 4600, 4650, SERVER, 0, 0);
	record(&e, ATTR_TLB, 4700, 4800, SERVER, 0, 0);
	record(&e, ATTR_GAP, 4900, 5000, SERVER, 0, 0);
	record(&e, ATTR_IRQ, 4990, 5030, SERVER, 0, 0);
	/* The answer is received in a softirq of the sender; a timer is not the answer. */
	record(&e, ATTR_SOFTIRQ, 5310, 5320, SERVER, 0, 3);
	record(&e, ATTR_SOFTIRQ, 5320, 5330, SERVER, 0, 1);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(PAGE_FAULT) = 50 + 250, IS(MMAP_LOCK) = 50 + 2500 + 50,
	       IS(RUN_QUEUE) = 100, IS(BLOCKED) = 50, IS(TLB) = 100, IS(GAP) = 90,
	       IS(IRQ) = 40, IS(SERVER) = 200 + 200 + 50 + 100 + 270, IS(SEND) = 40,
	       IS(SOFTIRQ) = 10, IS(CLIENT_RECEIVE) = 150);
}

/* It sleeps in the middle of its work, for what is not seen. */
static void it_blocks(void **state)
{
	struct events e;

	(void)state;
	begin(&e);
	slice(&e, 1000, 1500, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	record(&e, ATTR_WAKE, 4000, 4000, SERVER, 1, 300);
	slice(&e, 4000, 5600, SERVER, 1, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	marks(&e, 1300, 5300);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(BLOCKED) = 2500, IS(SERVER) = 1600, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
}

/* No answer came: what is read on the connection is for others. */
static void it_was_given_up(void **state)
{
	struct leg l = leg;
	struct events e;

	(void)state;
	l.answered = false;
	l.received = 4500;
	simple(&e, ATTR_SLEEPS);
	slice(&e, 1000, 5000, SPINNER, 0, ATTR_SLEEPS, "spin", 0);
	record(&e, ATTR_REPLY, 1300, 1300, SERVER, 0, PORTS);
	EXPECT(&e, &l, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 10, IS(RUN_QUEUE) = 3290);
}

/*
 * Sent as a second copy, at 1100, after the first one, at 1030, was not answered. The
 * same server, to be short.
 */
static void a_second_copy_is_faster(void **state)
{
	struct leg l = leg;
	struct events e;

	(void)state;
	l.first = 1030;
	simple(&e, ATTR_SLEEPS);
	EXPECT(&e, &l, KNOWN_ALL, IS(CLIENT_LAG) = 30, IS(HEDGE) = 70, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 3800, IS(SERVER) = 300, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
}

/* Another connection's request, read at 5020, is not answered before ours is read. */
static void it_is_at_another_request(void **state)
{
	struct leg l = leg;
	struct events e;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	record(&e, ATTR_RECV, 5020, 5020, SERVER, 0, OTHER_PORTS);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 3800, IS(QUEUE) = 50, IS(SERVER) = 250, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
	/* And for so long that ours is given up on: since before ours came. */
	l.answered = false;
	begin(&e);
	slice(&e, 900, 9000, SERVER, 0, ATTR_SERVER | ATTR_SLEEPS, "memcached", 0);
	record(&e, ATTR_RECV, 950, 950, SERVER, 0, OTHER_PORTS);
	record(&e, ATTR_ARRIVE, 1200, 1200, 300, 1, PORTS);
	record(&e, ATTR_RECV, 8000, 8000, SERVER, 0, PORTS);
	EXPECT(&e, &l, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(QUEUE) = 4300);
}

/*
 * The server gets on its CPU for 1 of 10 ns, 200,000 times, and another one for the
 * rest: each run is set, and painted, without a look at all before.
 */
static void many_runs(void **state)
{
	const uint64_t n = 200000, end = 1200 + 10 * n;
	struct leg l = leg;
	struct events e;
	uint64_t at;

	(void)state;
	l.received = end;
	l.answered = false;
	begin(&e);
	record(&e, ATTR_ARRIVE, 1200, 1200, 300, 1, PORTS);
	record(&e, ATTR_RECV, 1200, 1200, SERVER, 0, PORTS);
	for (at = 1200; at < end; at += 10) {
		uint32_t who = SPINNER + (uint32_t)(at / 10 % 3);

		slice(&e, at, at + 1, SERVER, 0, ATTR_SERVER | ATTR_RUNNABLE, "memcached", 0);
		slice(&e, at + 1, at + 10, who, 0, ATTR_RUNNABLE, "spin", 0);
	}
	record(&e, ATTR_BRUMM, 2002, 2005, SPINNER + 200 % 3, 0, 0);
	EXPECT(&e, &l, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(SERVER) = n, IS(RUN_QUEUE) = 9 * n - 3, IS(BRUMM) = 3);
}

static void what_is_not_known(void **state)
{
	struct leg l = leg;
	struct events e;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	record(&e, ATTR_LOST, 5400, 9000, 0, 3, 0);
	EXPECT(&e, &leg, KNOWN_LOST, IS(CLIENT_LAG) = 100, IS(UNATTRIBUTED) = 4400);
	simple(&e, ATTR_SLEEPS);
	record(&e, ATTR_LOST, 5500, 9000, 0, 3, 0);
	record(&e, ATTR_LOST, 100, 1100, 0, 0, 0);
	EXPECT(&e, &leg, KNOWN_ALL, IS(CLIENT_LAG) = 100, IS(NETWORK) = 100,
	       IS(WAKE_UP) = 3800, IS(SERVER) = 300, IS(SEND) = 50,
	       IS(CLIENT_RECEIVE) = 150);
	simple(&e, ATTR_SLEEPS);
	l.ports = OTHER_PORTS;
	EXPECT(&e, &l, KNOWN_NOT, IS(CLIENT_LAG) = 100, IS(UNATTRIBUTED) = 4400);
	simple(&e, ATTR_SLEEPS);
	l.sent = 0;
	EXPECT(&e, &l, KNOWN_UNSENT, IS(CLIENT_LAG) = 4500);
}

/* What there is no room for is a time that is not known. */
static void no_room_for_records(void **state)
{
	struct events e;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	e.most = e.nr;
	record(&e, ATTR_IRQ, 2000, 2100, SERVER, 0, 0);
	record(&e, ATTR_IRQ, 1500, 1600, SERVER, 0, 0);
	assert_int_equal(e.refused, 2);
	EXPECT(&e, &leg, KNOWN_LOST, IS(CLIENT_LAG) = 100, IS(UNATTRIBUTED) = 4400);
}

static void who_it_was(void **state)
{
	struct canvas c = { 0 };
	struct finding f;
	struct events e;
	struct side s;
	json_t *j, *by;
	int i;

	(void)state;
	simple(&e, ATTR_SLEEPS);
	slice(&e, 1000, 2210, SPINNER, 0, ATTR_RUNNABLE, "spin", 0);
	slice(&e, 2210, 2310, SPINNER + 1, 0, ATTR_RUNNABLE, "dies", 2210);
	/* Many names, so that their table grows. */
	for (i = 0; i < 1000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		slice(&e, 10000, 10001, 5000, 0, 0, name, 0);
	}
	slice(&e, 2310, 2410, SPINNER + 2, 0, ATTR_RUNNABLE, "spin", 0);
	events_sort(&e);
	assert_int_equal(e.whos, 1 + 3 + 1000);
	assert_int_equal(side_init(&s, &e), 0);
	explain(&e, &leg, &c, &f);
	side_add(&s, &c, &f);
	explain(&e, &leg, &c, &f);
	side_add(&s, &c, &f);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.total_ns, 9000);
	j = side_json(&s, &e);
	by = json_object_get(j, "by");
	assert_int_equal(json_array_size(by), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(by, 0), "comm")), "spin");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(by, 0), "sum_ns")), 2200);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(by, 0), "cgroup")), 7);
	assert_string_equal(json_string_value(json_object_get(json_array_get(by, 1), "part")), "teardown");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(by, 1), "sum_ns")), 200);
	json_decref(j);
	side_free(&s);
	canvas_free(&c);
	events_free(&e);
}

/* ---- painting, one nanosecond at a time --------------------------------------- */

#define LENGTH	300u

struct point {
	enum part part;
	unsigned int cpu, tid;
};

static unsigned int draw(unsigned int n)
{
	return (unsigned int)random() % n;
}

/* What a layer makes of each nanosecond: the first span counts. */
static void paint_points(struct point *p, const struct layer *l,
			 const struct span *s, size_t n)
{
	size_t i, k;

	for (i = 0; i < LENGTH; i++) {
		for (k = 0; k < n; k++) {
			if (i < s[k].start || i >= s[k].end ||
			    !(l->over & 1u << p[i].part) ||
			    (l->by_cpu && p[i].cpu != s[k].cpu) ||
			    (l->by_tid && p[i].tid != s[k].tid))
				continue;
			p[i].part = l->part;
			break;
		}
	}
}

static void compare_points(const struct canvas *c, const struct point *p)
{
	uint64_t at = 0;
	size_t i;

	for (i = 0; i < c->n; i++) {
		assert_int_equal(c->piece[i].start, at);
		for (; at < c->piece[i].end; at++) {
			assert_int_equal(c->piece[i].part, p[at].part);
			assert_int_equal(c->piece[i].cpu, p[at].cpu);
			assert_int_equal(c->piece[i].tid, p[at].tid);
		}
	}
	assert_int_equal(at, LENGTH);
}

static void set_some(struct canvas *c, struct point *p)
{
	struct piece new = { .part = draw(PARTS), .cpu = (uint16_t)draw(2), .tid = draw(2) };
	uint64_t i;

	new.start = draw(LENGTH);
	new.end = new.start + draw((unsigned int)(LENGTH - new.start + 1));
	canvas_set(c, &new);
	for (i = new.start; i < new.end; i++)
		p[i] = (struct point){ new.part, new.cpu, new.tid };
}

struct all {
	const struct span *s;
	size_t n;
};

/* Those that overlap the piece, and maybe more. */
static const struct span *find_some(const void *arg, const struct piece *p, size_t *n)
{
	const struct all *all = arg;
	const struct span *s = all->s;

	for (*n = all->n; *n && s->end <= p->start; (*n)--)
		s++;
	return s;
}

static void layer_some(struct canvas *c, struct point *p)
{
	struct layer l = { .part = draw(PARTS), .over = (unsigned int)random(),
			   .by_cpu = draw(2), .by_tid = draw(2) };
	struct span s[20] = { 0 };
	bool apart = draw(2);
	size_t n = draw(20), i;
	uint64_t at = 0;

	/* In order; one after the other, as those of a CPU are, or not. */
	for (i = 0; i < n; i++) {
		s[i].start = at + draw(20);
		s[i].end = s[i].start + draw(30);
		at = apart ? s[i].end : s[i].start;
		s[i].cpu = (uint16_t)draw(2);
		s[i].tid = draw(2);
	}
	if (draw(2))
		canvas_layer(c, &l, s, n);
	else
		canvas_layer_found(c, &l, find_some, &(struct all){ s, n });
	paint_points(p, &l, s, n);
}

static void layers_as_points(void **state)
{
	struct canvas c = { 0 };
	struct point p[LENGTH];
	unsigned int round, i;

	(void)state;
	srandom(7);
	for (round = 0; round < 2000; round++) {
		canvas_begin(&c, 0, LENGTH, PART_UNATTRIBUTED);
		for (i = 0; i < LENGTH; i++)
			p[i] = (struct point){ PART_UNATTRIBUTED, NO_CPU, 0 };
		for (i = 0; i < 10; i++) {
			if (draw(2))
				set_some(&c, p);
			else
				layer_some(&c, p);
			compare_points(&c, p);
		}
	}
	canvas_free(&c);
}

/* ---- the list ----------------------------------------------------------------- */

static const char *read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

/* By the name of the list that is not whole, there is a link to what is not ours. */
static void the_list_follows_no_link(void **state)
{
	char dir[] = "/tmp/test-mc-attribute-XXXXXX";
	char path[64], temp[64], other[64], text[4096];
	struct request_list *l;
	struct canvas c = { 0 };
	struct finding f;
	struct events e;
	FILE *made;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/list", dir);
	snprintf(temp, sizeof(temp), "%s/list.new", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	made = fopen(other, "we");
	assert_non_null(made);
	fputs("untouched", made);
	fclose(made);
	assert_int_equal(symlink(other, temp), 0);
	simple(&e, ATTR_SLEEPS);
	events_sort(&e);
	explain(&e, &leg, &c, &f);
	assert_int_equal(list_open(&l, path, &e), 0);
	list_add(l, true, 17, &leg, &f, &c);
	assert_int_equal(list_close(l, true), 0);
	assert_string_equal(read_file(other, text, sizeof(text)), "untouched");
	assert_non_null(strstr(read_file(path, text, sizeof(text)),
			       "\n17,outlier,all,1000,1100,1200,5050,5350,5500,11211,40000,100,0,"));
	/* What is not to be kept leaves nothing, and what was there stays. */
	assert_int_equal(list_open(&l, path, &e), 0);
	assert_int_equal(list_close(l, false), 0);
	assert_non_null(strstr(read_file(path, text, sizeof(text)), "\n17,"));
	assert_int_equal(access(temp, F_OK), -1);
	snprintf(temp, sizeof(temp), "%s/none/list", dir);
	assert_int_equal(list_open(&l, temp, &e), -ENOENT);
	unlink(path);
	unlink(other);
	rmdir(dir);
	canvas_free(&c);
	events_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_cpu_is_late),
		cmocka_unit_test(another_has_the_cpu),
		cmocka_unit_test(it_was_awake_before),
		cmocka_unit_test(a_teardown_and_the_module),
		cmocka_unit_test(it_is_stopped),
		cmocka_unit_test(within_its_own_work),
		cmocka_unit_test(it_blocks),
		cmocka_unit_test(it_was_given_up),
		cmocka_unit_test(a_second_copy_is_faster),
		cmocka_unit_test(it_is_at_another_request),
		cmocka_unit_test(many_runs),
		cmocka_unit_test(what_is_not_known),
		cmocka_unit_test(no_room_for_records),
		cmocka_unit_test(who_it_was),
		cmocka_unit_test(layers_as_points),
		cmocka_unit_test(the_list_follows_no_link),
	};

	return RUN_TAP("mc-attribute", tests);
}
