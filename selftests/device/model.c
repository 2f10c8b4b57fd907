// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "tap.h"

/* Errors that a command may give, as a set: which of them comes first is open. */
struct errors {
	int e[8];
	unsigned int nr;
};

static void may_fail(struct errors *s, int err)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		if (s->e[i] == err)
			return;
	s->e[s->nr++] = err;
}

/* True if it worked. */
static bool agrees(const struct errors *s, int ret, const char *what)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		if (s->e[i] == ret)
			return false;
	if (ret || s->nr)
		tap_fail(__FILE__, __LINE__, "%s gives %s, model: %s", what,
			 tap_result(ret), tap_result(s->nr ? s->e[0] : 0));
	return !ret;
}

void model_init(struct model *m, uint32_t nr, uint32_t pages, const int *win,
		const uint8_t *group)
{
	memset(m, 0, sizeof(*m));
	m->nr = nr;
	m->pages = pages;
	m->win = win;
	m->group = group;
	m->nr_payers = 1;
	m->cell = calloc(nr * pages, sizeof(*m->cell));
	REQUIRE(m->cell);
}

uint8_t model_payer(struct model *m, int cgroup)
{
	REQUIRE(m->nr_payers < MODEL_PAYERS);
	m->payer[m->nr_payers] = cgroup;
	m->payer_id[m->nr_payers] = cg_id(cgroup);
	return m->nr_payers++;
}

/* ---- nodes: runs of cells with one id --------------------------------- */

static bool same_node(struct model *m, uint32_t i, uint32_t j)
{
	return i / m->pages == j / m->pages && m->cell[i].id &&
	       m->cell[i].id == m->cell[j].id;
}

static bool begins(struct model *m, uint32_t i)
{
	return m->cell[i].id && (!(i % m->pages) || !same_node(m, i - 1, i));
}

static uint32_t end_of(struct model *m, uint32_t i)
{
	uint32_t end = i + 1;

	while (end < m->nr * m->pages && same_node(m, i, end))
		end++;
	return end;
}

/* Cells lo .. hi - 1, all of one node, become a node of their own. */
static void cut(struct model *m, uint32_t lo, uint32_t hi)
{
	uint32_t id = m->cell[lo].id, end = end_of(m, lo), i;

	if (!begins(m, lo)) {
		id = ++m->next_id;
		for (i = lo; i < hi; i++)
			m->cell[i].id = id;
	}
	if (hi < end) {
		id = ++m->next_id;
		for (i = hi; i < end; i++)
			m->cell[i].id = id;
	}
}

/* Cut out and handle each run of marked cells of one node. */
static void for_marked(struct model *m, const bool *mark,
		       void (*fn)(struct model *m, uint32_t i, uint32_t arg),
		       uint32_t arg)
{
	uint32_t i, end, k;

	for (i = 0; i < m->nr * m->pages; i = end) {
		end = i + 1;
		if (!mark[i] || !m->cell[i].id)
			continue;
		while (end < m->nr * m->pages && mark[end] &&
		       same_node(m, i, end))
			end++;
		cut(m, i, end);
		for (k = i; k < end; k++)
			fn(m, k, arg);
	}
}

static bool derived_from(struct model *m, uint32_t i, const bool *mark)
{
	int32_t up;

	for (up = m->cell[i].parent; up >= 0; up = m->cell[up].parent)
		if (mark[up])
			return true;
	return false;
}

/* What is derived from a range; with @self the range too. */
static bool *mark_range(struct model *m, uint32_t w, uint32_t page, uint32_t n,
			bool self)
{
	uint32_t total = m->nr * m->pages, i;
	bool *top = calloc(2, total), *mark = top + total;

	REQUIRE(top);
	for (i = 0; i < n; i++)
		top[w * m->pages + page + i] = true;
	for (i = 0; i < total; i++)
		mark[i] = m->cell[i].id && ((self && top[i]) ||
					    derived_from(m, i, top));
	memcpy(top, mark, total);
	return top;
}

static uint32_t count_marked(struct model *m, const bool *mark)
{
	uint32_t i, sum = 0;

	for (i = 0; i < m->nr * m->pages; i++)
		sum += mark[i];
	return sum;
}

static void drop(struct model *m, uint32_t i, uint32_t arg)
{
	(void)arg;
	memset(&m->cell[i], 0, sizeof(m->cell[i]));
}

static void lower(struct model *m, uint32_t i, uint32_t rights)
{
	m->cell[i].rights &= ~rights;
}

/* ---- commands --------------------------------------------------------- */

int model_alloc(struct model *m, uint32_t w, uint32_t page, uint32_t n)
{
	struct model_cell *c = model_at(m, w, page);
	struct errors s = { .nr = 0 };
	uint32_t id = ++m->next_id, i;
	int ret;

	for (i = 0; i < n; i++)
		if (c[i].id)
			may_fail(&s, -EEXIST);
	ret = dev_alloc(m->win[w], page, n);
	if (!agrees(&s, ret, "ALLOC"))
		return ret;
	for (i = 0; i < n; i++) {
		c[i] = (struct model_cell){
			.id = id,
			.parent = -1,
			.frame = ++m->next_frame,
			.rights = ALL,
			.sponsor = m->group[w],
			.first = m->group[w] != 0,
		};
		if (m->mem)
			CHECK_SIG(poke(cell(m->mem[w], page + i, 0),
				       c[i].frame), 0);
	}
	return 0;
}

static bool has_children(struct model *m, const struct model_cell *c)
{
	uint32_t i;

	for (i = 0; i < m->nr * m->pages; i++)
		if (m->cell[i].id && m->cell[i].parent == c - m->cell)
			return true;
	return false;
}

static void expect_map(struct model *m, struct errors *s, uint32_t w,
		       uint32_t from, uint32_t n, uint32_t to_w, uint32_t to,
		       uint32_t rights, uint32_t flags)
{
	uint32_t i;

	if (w == to_w && from < to + n && to < from + n)
		may_fail(s, -EINVAL);
	for (i = 0; i < n; i++) {
		struct model_cell *c = model_at(m, w, from + i);

		if (!c->id) {
			may_fail(s, -ENOENT);
			continue;
		}
		if (rights & ~c->rights)
			may_fail(s, -EACCES);
		if (!(c->rights & D))
			may_fail(s, -EPERM);
		if (c->depth >= BRUMM_MAX_DEPTH && !(flags & BRUMM_MAP_GRANT))
			may_fail(s, -ELOOP);
		/* Or else children would have more rights than their parent. */
		if ((flags & BRUMM_MAP_GRANT) && rights != c->rights &&
		    has_children(m, c))
			may_fail(s, -EINVAL);
		if (model_at(m, to_w, to + i)->id &&
		    !(flags & BRUMM_MAP_REPLACE))
			may_fail(s, -EEXIST);
	}
}

static void derive(struct model *m, uint32_t w, uint32_t from, uint32_t n,
		   uint32_t to_w, uint32_t to, uint32_t rights)
{
	uint32_t i, id = 0, last = 0;

	for (i = 0; i < n; i++) {
		struct model_cell *c = model_at(m, w, from + i);
		struct model_cell *t = model_at(m, to_w, to + i);

		if (c->id != last)
			id = ++m->next_id;
		last = c->id;
		*t = *c;
		t->id = id;
		t->parent = c - m->cell;
		t->rights = rights;
		t->depth = c->depth + 1;
		t->sponsor = c->sponsor ? c->sponsor : m->group[to_w];
		t->first = !c->sponsor && t->sponsor;
	}
}

static void move(struct model *m, uint32_t w, uint32_t from, uint32_t n,
		 uint32_t to_w, uint32_t to, uint32_t rights)
{
	uint32_t i, id = 0, last = 0, k;

	/* The rest of a node that is moved in part is two nodes. */
	for (i = 0; i < n; i = k) {
		struct model_cell *c = model_at(m, w, from + i);

		for (k = i + 1; k < n && c[k - i].id == c->id; k++)
			;
		cut(m, c - m->cell, c - m->cell + k - i);
	}
	for (i = 0; i < n; i++) {
		struct model_cell *c = model_at(m, w, from + i);
		struct model_cell *t = model_at(m, to_w, to + i);

		if (c->id != last)
			id = ++m->next_id;
		last = c->id;
		*t = *c;
		t->id = id;
		t->rights = rights;
		if (!t->sponsor && m->group[to_w]) {
			t->sponsor = m->group[to_w];
			t->first = true;
		}
		memset(c, 0, sizeof(*c));
		for (k = 0; k < m->nr * m->pages; k++)
			if (m->cell[k].id && m->cell[k].parent == c - m->cell)
				m->cell[k].parent = t - m->cell;
	}
}

static bool range_there(struct model *m, uint32_t w, uint32_t from, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!model_at(m, w, from + i)->id)
			return false;
	return true;
}

int model_map(struct model *m, uint32_t w, uint32_t from, uint32_t n,
	      uint32_t to_w, uint32_t to, uint32_t rights, uint32_t flags)
{
	struct errors s = { .nr = 0 };
	int ret;

	expect_map(m, &s, w, from, n, to_w, to, rights, flags);
	ret = dev_map_flags(m->win[w], from, n, m->win[to_w], to, rights,
			    flags);
	if (!s.nr && (flags & BRUMM_MAP_REPLACE)) {
		bool *mark = mark_range(m, to_w, to, n, true);

		for_marked(m, mark, drop, 0);
		free(mark);
		/* The source may have come from there. */
		if (!range_there(m, w, from, n))
			may_fail(&s, -ENOENT);
	}
	if (!agrees(&s, ret, flags & BRUMM_MAP_GRANT ? "GRANT" : "MAP"))
		return ret;
	if (flags & BRUMM_MAP_GRANT)
		move(m, w, from, n, to_w, to, rights);
	else
		derive(m, w, from, n, to_w, to, rights);
	return 0;
}

int model_unmap(struct model *m, uint32_t w, uint32_t page, uint32_t n,
		bool self)
{
	bool *mark = mark_range(m, w, page, n, self);
	struct errors none = { .nr = 0 };
	struct brumm_unmap u;
	int ret;

	ret = dev_unmap_flags(m->win[w], page, n, self ? BRUMM_UNMAP_SELF : 0,
			      0, &u);
	if (agrees(&none, ret, "UNMAP")) {
		CHECK_EQ(u.pages, count_marked(m, mark));
		for_marked(m, mark, drop, 0);
	}
	free(mark);
	return ret;
}

/*
 * Pages that begin a range of their own: others follow the frame before them, as
 * pieces of one node do, and what was derived across them is not cut there.
 */
static bool begins_row(struct model *m, uint32_t w, uint32_t page)
{
	struct model_cell *c = model_at(m, w, page);

	return c->id && (!c[-1].id || c[-1].frame + 1 != c->frame ||
			 c[-1].depth != c->depth || c[-1].sponsor != c->sponsor);
}

static uint32_t reduce_row(struct model *m, uint32_t w, uint32_t page,
			   uint32_t n, bool self, uint32_t rights)
{
	bool *mark = mark_range(m, w, page, n, self);
	uint32_t i, pages;

	/* Who has none of the rights is left alone. */
	for (i = 0; i < m->nr * m->pages; i++)
		mark[i] = mark[i] && (m->cell[i].rights & rights);
	pages = count_marked(m, mark);
	for_marked(m, mark, lower, rights);
	free(mark);
	return pages;
}

int model_reduce(struct model *m, uint32_t w, uint32_t page, uint32_t n,
		 bool self, uint32_t rights)
{
	uint32_t i, k, pages = 0;
	struct errors none = { .nr = 0 };
	struct brumm_unmap u;
	int ret;

	ret = dev_unmap_flags(m->win[w], page, n, BRUMM_UNMAP_RIGHTS |
			      (self ? BRUMM_UNMAP_SELF : 0), rights, &u);
	if (!agrees(&none, ret, "UNMAP of rights"))
		return ret;
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && model_at(m, w, page + k)->id &&
		     !begins_row(m, w, page + k); k++)
			;
		if (model_at(m, w, page + i)->id)
			pages += reduce_row(m, w, page + i, k - i, self,
					    rights);
	}
	CHECK_EQ(u.pages, pages);
	return ret;
}

void model_reset_window(struct model *m, uint32_t w)
{
	bool *mark = mark_range(m, w, 0, m->pages, true);

	for_marked(m, mark, drop, 0);
	free(mark);
}

/* ---- comparison ------------------------------------------------------- */

uint32_t model_nodes(struct model *m, uint32_t w)
{
	uint32_t i, sum = 0;

	for (i = w * m->pages; i < (w + 1) * m->pages; i++)
		sum += begins(m, i);
	return sum;
}

void model_check_counts(struct model *m)
{
	struct cg_counts want[MODEL_PAYERS] = { { 0 } };
	uint32_t i;

	for (i = 0; i < m->nr * m->pages; i++) {
		struct model_cell *c = &m->cell[i];

		if (!c->id)
			continue;
		want[c->sponsor].pt++;
		want[c->sponsor].map += begins(m, i);
		want[c->sponsor].lookup += begins(m, i) && c->first;
	}
	for (i = 1; i < m->nr_payers; i++)
		CHECK_COUNTS(m->payer[i], want[i].lookup, want[i].map,
			     want[i].pt);
}

/* Nodes that have a page derived from lo .. hi - 1. */
static uint32_t descendants(struct model *m, uint32_t lo, uint32_t hi)
{
	uint32_t total = m->nr * m->pages, i, end, k, sum = 0;
	bool *top = calloc(1, total);

	REQUIRE(top);
	memset(top + lo, true, hi - lo);
	for (i = 0; i < total; i = end) {
		end = m->cell[i].id ? end_of(m, i) : i + 1;
		for (k = i; k < end && m->cell[i].id; k++) {
			if (derived_from(m, k, top)) {
				sum++;
				break;
			}
		}
	}
	free(top);
	return sum;
}

static void check_node(struct model *m, uint32_t i, uint32_t end)
{
	struct model_cell *c = &m->cell[i];
	uint32_t w = i / m->pages, page = i % m->pages;
	struct brumm_query q;
	int ret = dev_query(m->win[w], page, BRUMM_QUERY_NEXT |
			    BRUMM_QUERY_COUNT, &q);
	bool bad;

	if (!CHECK_OK(ret))
		return;
	bad = !CHECK_EQ(q.offset, page * PAGE);
	bad |= !CHECK_EQ(q.length, (end - i) * PAGE);
	bad |= !CHECK_EQ(q.rights, c->rights);
	bad |= !CHECK_EQ(q.depth, c->depth);
	bad |= !CHECK_EQ(q.descendants, descendants(m, i, end));
	bad |= !CHECK_EQ(q.sponsor, m->payer_id[c->sponsor]);
	bad |= !CHECK_EQ(!!(q.state & BRUMM_NODE_ROOT), c->parent < 0);
	bad |= !CHECK_EQ(!!(q.state & BRUMM_NODE_FIRST), c->first);
	if (bad)
		tap_diag("that was window %u page %u", w, page);
}

static void check_memory(struct model *m, uint32_t i)
{
	struct model_cell *c = &m->cell[i];
	uint32_t *at = cell(m->mem[i / m->pages], i % m->pages, 0), v;
	int sig = peek(at, &v);

	if (!c->id)
		CHECK_SIG(sig, SIGBUS);
	else if (CHECK_SIG(sig, 0))
		CHECK_EQ(v, c->frame);
	if (c->id && sig == 0)
		CHECK_SIG(poke(at, v), c->rights & W ? 0 : SIGBUS);
}

void model_check(struct model *m)
{
	uint32_t w, i, end;

	for (w = 0; w < m->nr; w++) {
		CHECK_EQ(dev_nodes(m->win[w]), model_nodes(m, w));
		for (i = w * m->pages; i < (w + 1) * m->pages; i = end) {
			end = m->cell[i].id ? end_of(m, i) : i + 1;
			if (m->cell[i].id)
				check_node(m, i, end);
		}
	}
	for (i = 0; m->mem && i < m->nr * m->pages; i++)
		check_memory(m, i);
	model_check_counts(m);
}
