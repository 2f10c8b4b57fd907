// SPDX-License-Identifier: GPL-2.0
#include "ops.h"
#include <stdarg.h>

#define LOG_LINES	30

static char log_lines[LOG_LINES][160];
static unsigned int log_next;
static struct rnd hook_rnd;
bool op_verbose;

const unsigned int op_weights[OP_TYPES] = {
	[OP_ALLOC] = 8, [OP_MAP] = 34, [OP_GRANT] = 10, [OP_UNMAP] = 14,
	[OP_REDUCE] = 8, [OP_QUERY] = 8, [OP_RELEASE] = 1, [OP_RECLAIM] = 1,
	[OP_LIMIT] = 4, [OP_LOCK] = 2, [OP_PRICE] = 2, [OP_TOUCH] = 8,
};

const struct world_config *op_world(u32 variant)
{
	static const int parent[] = { -1, 0, 0, -1 };
	static const int group[] = { -1, 0, 1, 3, 2 };
	static const int nobody[] = { -1, -1, -1 };
	static const struct world_config worlds[OP_WORLDS] = {
		{ .windows = 4, .pages = 12, .groups = 4, .parent = parent,
		  .group = group },
		{ .windows = 3, .pages = 20, .groups = 4, .parent = parent,
		  .group = group },
		{ .windows = 5, .pages = 8, .groups = 4, .parent = parent,
		  .group = group },
		{ .windows = 3, .pages = 10, .groups = 2, .parent = parent,
		  .group = nobody },
	};

	return &worlds[variant % OP_WORLDS];
}

/* Log */

void op_log(const char *fmt, ...)
{
	char *line = log_lines[log_next++ % LOG_LINES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(log_lines[0]), fmt, ap);
	va_end(ap);
	if (op_verbose)
		printf("# %u: %s\n", log_next, line);
}

void op_print_last(void)
{
	unsigned int i = log_next > LOG_LINES ? log_next - LOG_LINES : 0;

	printf("# the last operations, the failing one at the end:\n");
	for (; i < log_next; i++)
		printf("#   %u: %s\n", i + 1, log_lines[i % LOG_LINES]);
}

const char *op_rights(u32 rights)
{
	static char names[16][5];
	char *s = names[rights & 15];

	snprintf(s, 5, "%s%s%s%s", rights & BRUMM_RIGHT_R ? "r" : "",
		 rights & BRUMM_RIGHT_W ? "w" : "",
		 rights & BRUMM_RIGHT_X ? "x" : "",
		 rights & BRUMM_RIGHT_D ? "d" : "");
	return s;
}

/* Dice to operands */

static bool one_in(u32 dice, u32 n)
{
	return dice % n == 0;
}

/* A range; mostly one that starts and ends where a mapping does. */
static void pick_range(const struct model *m, u32 dice, int w, u32 *start,
		       u32 *pages)
{
	u32 p = dice % m->pages, i;

	dice /= m->pages;
	for (i = 0; i < m->pages && !m->page[w][p].used && dice % 8; i++)
		p = (p + 1) % m->pages;
	dice /= 8;
	*start = p;
	*pages = 1 + dice % min(m->pages - p, 6u);
	dice /= 6;
	if (!m->page[w][p].used || dice % 2)
		return;
	dice /= 2;
	/* All of this node, and perhaps the next one too. */
	while (p && m->page[w][p - 1].used &&
	       m->page[w][p - 1].node == m->page[w][p].node && dice % 4)
		p--;
	*pages += *start - p;
	*start = p;
	if (one_in(dice / 4, 3))
		return;
	for (i = p + 1; i < m->pages && m->page[w][i].used; i++)
		if (m->page[w][i].node != m->page[w][p].node)
			break;
	*pages = i - p;
}

static int pick_window(const struct model *m, u32 dice)
{
	return (int)(dice % (u32)m->windows);
}

static u32 pick_rights(u32 dice, u32 have)
{
	static const u32 some[] = {
		BRUMM_RIGHT_R,
		BRUMM_RIGHT_R | BRUMM_RIGHT_D,
		BRUMM_RIGHT_R | BRUMM_RIGHT_W | BRUMM_RIGHT_D,
		BRUMM_RIGHT_R | BRUMM_RIGHT_X | BRUMM_RIGHT_D,
	};

	if (dice % 8 < 5)
		return have;
	if (dice % 8 == 5)
		return some[dice / 8 % 4];
	return (have & some[dice / 8 % 4]) | BRUMM_RIGHT_R;
}

static bool pick_map(const struct model *m, const struct op *op,
		     struct mreq *r)
{
	const u32 *d = op->dice;
	u32 p;

	*r = (struct mreq){ .sw = pick_window(m, d[0]),
			    .tw = pick_window(m, d[1]) };
	pick_range(m, d[2], r->sw, &r->from, &r->pages);
	/* Mostly where there is room. */
	r->to = d[3] % (m->pages - r->pages + 1);
	for (p = 0; p < m->pages && d[4] % 4; p++) {
		u32 i, to = (r->to + p) % (m->pages - r->pages + 1);

		for (i = 0; i < r->pages && !m->page[r->tw][to + i].used; i++)
			;
		if (i < r->pages)
			continue;
		r->to = to;
		break;
	}
	r->rights = pick_rights(d[5], m->page[r->sw][r->from].used ?
				m->page[r->sw][r->from].rights :
				BRUMM_RIGHTS_ALL);
	if (one_in(d[4] / 4, 4))
		r->flags |= BRUMM_MAP_REPLACE;
	if (one_in(d[6], 6)) {
		r->flags |= BRUMM_MAP_SPONSOR;
		r->sponsor = (int)(d[6] / 6 % (u32)m->groups);
	}
	if (op->type == OP_GRANT)
		r->flags |= BRUMM_MAP_GRANT;
	return r->sw != r->tw || r->to + r->pages <= r->from ||
	       r->from + r->pages <= r->to;
}

/* Running */

/* What another CPU does: it touches pages. */
static void fault_hook(void)
{
	if (rnd(&hook_rnd, 4) || !world)
		return;
	world_try_fault((int)rnd(&hook_rnd, (u32)world->nr_windows),
			rnd(&hook_rnd, world->window[0].pages));
}

/* Each returns false if the real one has failed for lack of memory. */
static bool run_alloc(struct model *m, const struct op *op)
{
	int w = pick_window(m, op->dice[0]);
	u32 start, pages;

	pick_range(m, op->dice[2], w, &start, &pages);
	if (op->dice[3] % 4)
		start = op->dice[4] % (m->pages - pages + 1);
	op_log("alloc %d:%u+%u", w, start, pages);
	return both_alloc(m, w, start, pages) != -ENOMEM;
}

static bool run_map(struct model *m, const struct op *op)
{
	struct mreq r;

	if (!pick_map(m, op, &r))
		return true;
	op_log("%s%s %d:%u+%u to %d:%u %s sponsor %d",
	       r.flags & BRUMM_MAP_GRANT ? "grant" : "map",
	       r.flags & BRUMM_MAP_REPLACE ? " replace" : "", r.sw, r.from,
	       r.pages, r.tw, r.to, op_rights(r.rights),
	       r.flags & BRUMM_MAP_SPONSOR ? r.sponsor : -1);
	return both_map(m, &r) != -ENOMEM;
}

static bool run_unmap(struct model *m, const struct op *op)
{
	int w = pick_window(m, op->dice[0]);
	bool self = op->dice[1] % 3;
	u32 start, pages;

	pick_range(m, op->dice[2], w, &start, &pages);
	op_log("unmap %d:%u+%u%s", w, start, pages, self ? " self" : "");
	both_unmap(m, w, start, pages, self);
	return true;
}

static bool run_reduce(struct model *m, const struct op *op)
{
	int w = pick_window(m, op->dice[0]);
	u32 rights = op->dice[3] % 7 + 1;
	bool self = op->dice[1] % 2;
	u32 start, pages;

	/* Of W, X and D; mostly not D, or soon nothing could be derived. */
	rights = rights << 1 & BRUMM_RIGHTS_ALL;
	if (op->dice[4] % 4)
		rights &= ~BRUMM_RIGHT_D;
	rights = rights ?: BRUMM_RIGHT_W;
	pick_range(m, op->dice[2], w, &start, &pages);
	op_log("reduce %d:%u+%u%s by %s", w, start, pages, self ? " self" : "",
	       op_rights(rights));
	return both_reduce(m, w, start, pages, self, rights) != -ENOMEM;
}

static bool run_query(struct model *m, const struct op *op)
{
	int w = pick_window(m, op->dice[0]);
	u32 page = op->dice[1] % m->pages;
	bool next = op->dice[2] % 2, count = op->dice[3] % 2;

	op_log("query %d:%u%s%s", w, page, next ? " next" : "",
	       count ? " count" : "");
	return both_query(m, w, page, next, count) != -ENOMEM;
}

static bool run_release(struct model *m, const struct op *op)
{
	int w = pick_window(m, op->dice[0]);

	op_log("release %d", w);
	both_release(m, w);
	return true;
}

static bool run_reclaim(struct model *m, const struct op *op)
{
	int g = (int)(op->dice[0] % (u32)m->groups);

	op_log("reclaim %d", g);
	both_reclaim(m, g);
	return true;
}

static bool run_limit(struct model *m, const struct op *op)
{
	int g = (int)(op->dice[0] % (u32)m->groups);
	u64 max = LEDGER_NO_LIMIT;

	if (one_in(op->dice[1], 3))
		max = ledger_usage(&world_sponsor(g)->ledger) +
		      op->dice[2] % 30;
	op_log("limit %d to %llu", g, max);
	both_limit(m, g, max);
	return true;
}

static bool run_lock(struct model *m, const struct op *op)
{
	int g = (int)(op->dice[0] % (u32)m->groups);
	bool locked = one_in(op->dice[1], 4);

	op_log("lock %d: %d", g, locked);
	both_lock(m, g, locked);
	return true;
}

static bool run_price(struct model *m, const struct op *op)
{
	int k, g = (int)(op->dice[0] % (u32)(m->groups + 1)) - 1;
	struct ledger_prices p;

	for (k = 0; k < LEDGER_KINDS; k++)
		p.ns[k] = op->dice[1 + k] % 9;
	op_log("price %d", g);
	both_prices(m, g, g >= 0 && one_in(op->dice[4], 2) ? NULL : &p);
	return true;
}

static bool run_touch(struct model *m, const struct op *op)
{
	int w = pick_window(m, op->dice[0]);

	op_log("touch %d", w);
	both_touch(m, w);
	return true;
}

static bool (*const runners[OP_TYPES])(struct model *m, const struct op *op) = {
	[OP_ALLOC] = run_alloc, [OP_MAP] = run_map, [OP_GRANT] = run_map,
	[OP_UNMAP] = run_unmap, [OP_REDUCE] = run_reduce,
	[OP_QUERY] = run_query, [OP_RELEASE] = run_release,
	[OP_RECLAIM] = run_reclaim, [OP_LIMIT] = run_limit,
	[OP_LOCK] = run_lock, [OP_PRICE] = run_price, [OP_TOUCH] = run_touch,
};

void op_random(struct op *op, struct rnd *r)
{
	unsigned int sum = 0, i, dice;

	for (i = 0; i < OP_TYPES; i++)
		sum += op_weights[i];
	dice = rnd(r, sum);
	for (i = 0; dice >= op_weights[i]; i++)
		dice -= op_weights[i];
	op->type = i;
	for (i = 0; i < ARRAY_SIZE(op->dice); i++)
		op->dice[i] = rnd(r, 1u << 30);
}

unsigned long op_failures[OP_TYPES];

bool op_run(struct model *m, const struct op *op, unsigned long fail_at)
{
	struct both_before before;
	bool done, failed;

	both_before(m, &before);
	shim_alloc_fail_at(fail_at);
	done = runners[op->type](m, op);
	failed = shim_alloc_fail_at(0) && fail_at;
	SHIM_CHECK(done || failed, "ENOMEM though there was memory");
	op_failures[op->type] += !done;
	both_check(m, &before);
	return failed;
}

/* Lists */

void op_list_make(struct op_list *l, u64 seed, size_t nr)
{
	struct rnd r;
	size_t i;

	rnd_seed(&r, seed);
	l->seed = seed;
	l->variant = rnd(&r, OP_WORLDS);
	l->nr = nr;
	l->op = malloc(nr * sizeof(*l->op));
	SHIM_CHECK(l->op, "out of memory");
	for (i = 0; i < nr; i++)
		op_random(&l->op[i], &r);
}

void op_list_run(const struct op_list *l, unsigned int fail_every)
{
	const struct world_config *c = op_world(l->variant);
	struct model m;
	unsigned long n;
	size_t i;

	log_next = 0;
	rnd_seed(&hook_rnd, l->seed);
	both_init(&m, c);
	shim_on_preempt(fault_hook);
	for (i = 0; i < l->nr; i++) {
		for (n = 1; fail_every && i % fail_every == 0; n++)
			if (!op_run(&m, &l->op[i], n))
				break;
		if (!fail_every || i % fail_every)
			op_run(&m, &l->op[i], 0);
	}
	shim_on_preempt(NULL);
	world_exit();
}
