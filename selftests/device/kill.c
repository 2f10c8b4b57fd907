// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: whoever is killed, wherever he is, leaves nothing behind: no mapping
 * at others, no charge, no object, no window. The checks at the end of a case
 * (lib/dev.c) count what is left.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "rng.h"
#include "tap.h"

enum role { OWNER, MIDDLE, RECEIVER, GATE_HOLDER, CONTROLLER, ROLES };

#define PAGES	64

/* Descriptors of everybody's windows, handed round by sockets. */
struct party {
	int cg[ROLES];
	int sock[ROLES][2];
	uint32_t ready;
	uint64_t seed;
};

struct member {
	struct party *party;
	enum role role;
};

/* What the others opened: window or gate. -1: not come yet. */
struct view {
	int own, peer[ROLES];
	uint32_t *mem;
	struct rng g;
};

static void map_something(struct view *v, int to)
{
	uint32_t n = 1 + rng_below(&v->g, 8);
	uint32_t flags = rng_once_in(&v->g, 4) ? BRUMM_MAP_REPLACE : 0;

	if (rng_once_in(&v->g, 8))
		flags |= BRUMM_MAP_GRANT;
	dev_map_flags(v->own, rng_below(&v->g, PAGES), n, to,
		      rng_below(&v->g, PAGES), ALL, flags);
}

static void touch_something(struct view *v)
{
	uint32_t *p = cell(v->mem, rng_below(&v->g, PAGES), 0);

	if (rng_once_in(&v->g, 2))
		poke(p, 1);
	else
		peek(p, NULL);
}

static void act(struct view *v, enum role role, struct party *p)
{
	uint32_t page = rng_below(&v->g, PAGES), n = 1 + rng_below(&v->g, 16);
	int to = v->peer[rng_below(&v->g, ROLES)];
	struct brumm_query q;

	switch (rng_below(&v->g, 10)) {
	case 0:
		dev_alloc(v->own, page, n);
		break;
	case 1:
		dev_unmap(v->own, page, n);
		break;
	case 2:
		dev_unmap_self(v->own, page, n);
		break;
	case 3:
		dev_unmap_flags(v->own, page, n, BRUMM_UNMAP_RIGHTS, W, NULL);
		break;
	case 4:
		dev_query(v->own, page, BRUMM_QUERY_NEXT | BRUMM_QUERY_COUNT,
			  &q);
		break;
	case 5:
		if (role == CONTROLLER)
			cg_write(p->cg[rng_below(&v->g, ROLES)],
				 "brumm.reclaim", "1");
		break;
	case 6:
		touch_something(v);
		break;
	default:
		map_something(v, to);
	}
}

static void member(void *arg)
{
	struct member *m = arg;
	struct party *p = m->party;
	struct view v = { .g.s = p->seed + m->role };
	int i;

	v.own = win_open();
	v.mem = win_mmap(v.own, PAGES, PROT_READ | PROT_WRITE);
	if (m->role == OWNER)
		dev_alloc(v.own, 0, PAGES);
	/* Everybody else gets my window, the gate holder only gates. */
	for (i = 0; i < ROLES; i++) {
		int gate = i == GATE_HOLDER ?
			   dev_gate(v.own, 0, PAGES, BRUMM_GATE_SPONSOR) : -1;

		fd_send(p->sock[i][1], gate >= 0 ? gate : v.own);
		if (gate >= 0)
			close(gate);
	}
	for (i = 0; i < ROLES; i++)
		v.peer[i] = fd_recv(p->sock[m->role][0]);
	for (i = 0; i < ROLES; i++) {
		close(p->sock[i][0]);
		close(p->sock[i][1]);
	}
	add(&p->ready, 1);
	for (;;)
		act(&v, m->role, p);
}

static void round_of_deaths(struct rng *g, struct party *p)
{
	struct member m[ROLES];
	pid_t pid[ROLES];
	int i, left = ROLES;

	p->ready = 0;
	p->seed = rng_next(g);
	for (i = 0; i < ROLES; i++)
		REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, p->sock[i]));
	for (i = 0; i < ROLES; i++) {
		m[i] = (struct member){ p, i };
		pid[i] = spawn_in(p->cg[i], member, &m[i]);
	}
	for (i = 0; i < ROLES; i++) {
		close(p->sock[i][0]);
		close(p->sock[i][1]);
	}
	/* One in ten is killed while they get to know each other. */
	if (!rng_once_in(g, 10))
		await(&p->ready, ROLES);
	while (left) {
		i = rng_below(g, ROLES);
		if (!pid[i])
			continue;
		sleep_us(rng_below(g, 4000));
		if (rng_once_in(g, 2)) {
			kill_and_reap(pid[i]);
		} else {
			/* Do not wait: the next one dies meanwhile. */
			kill(pid[i], SIGKILL);
		}
		pid[i] = 0;
		left--;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void nothing_charged(struct party *p)
{
	int i, tries;

	for (tries = 0; module_refs() > 0 && tries < 5000; tries++)
		sleep_us(2000);
	CHECK_EQ(module_refs(), 0);
	for (i = 0; i < ROLES; i++)
		CHECK_COUNTS(p->cg[i], 0, 0, 0);
}

static void at_random_points(void)
{
	static const char *const names[ROLES] = {
		"owner", "middle", "receiver", "gate", "controller",
	};
	/* Five deaths each. */
	unsigned long rounds = tap_pick(30, 200), i;
	struct rng g = { tap_seed() };
	struct party *p = shared(sizeof(*p));
	char path[40];

	for (i = 0; i < ROLES; i++) {
		snprintf(path, sizeof(path), "t/%s", names[i]);
		p->cg[i] = cg_make(path);
	}
	for (i = 0; i < rounds; i++) {
		if (i % 50 == 49)
			tap_diag("%lu rounds", i + 1);
		round_of_deaths(&g, p);
		nothing_charged(p);
		STOP_IF_FAILED();
	}
}

/* Killed in the middle of one long command. */
struct slow {
	int a, b;
	uint64_t nodes;
	uint32_t ready;
	void (*run)(struct slow *s);
};

static void slow_child(void *arg)
{
	struct slow *s = arg;

	put(&s->ready, 1);
	s->run(s);
}

static void slow_unmap(struct slow *s)
{
	dev_unmap(s->a, 0, 1);
}

static void slow_count(struct slow *s)
{
	for (;;)
		dev_count(s->a, 0);
}

static void slow_alloc(struct slow *s)
{
	int w = win_open();

	(void)s;
	for (;;) {
		dev_alloc(w, 0, 20000);
		dev_unmap_self(w, 0, 20000);
	}
}

static void slow_map(struct slow *s)
{
	for (;;) {
		dev_map(s->b, 0, s->nodes, s->b, 1 << 24, RWD);
		dev_unmap_self(s->b, 1 << 24, s->nodes);
	}
}

static void slow_grant(struct slow *s)
{
	uint64_t from = 0, to = 1 << 24;

	for (;;) {
		uint64_t t = from;

		dev_grant(s->b, from, s->nodes, s->b, to, RWD);
		from = to;
		to = t;
	}
}

static void slow_reduce(struct slow *s)
{
	dev_unmap_flags(s->a, 0, 1, BRUMM_UNMAP_RIGHTS, W, NULL);
}

static void in_a_long(void (*run)(struct slow *s))
{
	unsigned long rounds = tap_pick(5, 20), i, k;
	struct rng g = { tap_seed() };
	struct slow *s = shared(sizeof(*s));

	for (i = 0; i < rounds; i++) {
		pid_t pid;

		s->run = run;
		s->nodes = 2000;
		s->a = win_with(1);
		s->b = win_open();
		for (k = 0; k < s->nodes; k++)
			REQUIRE_OK(dev_map(s->a, 0, 1, s->b, k, RWD));
		put(&s->ready, 0);
		pid = spawn(slow_child, s);
		await(&s->ready, 1);
		sleep_us(rng_below(&g, 5000));
		kill_and_reap(pid);
		/* Whatever it left undone can be undone. */
		REQUIRE_OK(dev_unmap_self(s->a, 0, 1));
		CHECK_EQ(dev_nodes(s->b), 0);
		close(s->a);
		close(s->b);
		STOP_IF_FAILED();
	}
}

static void in_a_long_unmap(void)
{
	in_a_long(slow_unmap);
}

static void in_a_long_count(void)
{
	in_a_long(slow_count);
}

static void in_a_long_alloc(void)
{
	in_a_long(slow_alloc);
}

static void in_a_long_map(void)
{
	in_a_long(slow_map);
}

static void in_a_long_grant(void)
{
	in_a_long(slow_grant);
}

static void in_a_long_reduce(void)
{
	in_a_long(slow_reduce);
}

static const struct tap_case cases[] = {
	{ "kill -9 of everybody at random points", at_random_points, 1800 },
	{ "kill -9 during UNMAP of many", in_a_long_unmap, 300 },
	{ "kill -9 during UNMAP of rights of many", in_a_long_reduce, 300 },
	{ "kill -9 during a long QUERY", in_a_long_count, 300 },
	{ "kill -9 during a large ALLOC", in_a_long_alloc, 300 },
	{ "kill -9 during MAP of many nodes", in_a_long_map, 300 },
	{ "kill -9 during GRANT of many nodes", in_a_long_grant, 300 },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
