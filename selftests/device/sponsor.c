// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: the clean-up of a mapping is charged to the cgroup that the header
 * names, exactly, wherever the mapping goes; only those who may name a sponsor;
 * a budget is never exceeded by what can be refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "proc.h"
#include "tap.h"

static uint64_t sponsor_at(int w, uint64_t page)
{
	struct brumm_query q;

	REQUIRE_OK(dev_query(w, page, 0, &q));
	return q.sponsor;
}

static bool first_at(int w, uint64_t page)
{
	struct brumm_query q;

	REQUIRE_OK(dev_query(w, page, 0, &q));
	return q.state & BRUMM_NODE_FIRST;
}

static void root_pays_nothing(void)
{
	int w = win_with(4), v = win_open(), cg = cg_make("a");
	int to = win_open_in(cg);

	REQUIRE_OK(dev_map(w, 0, 4, v, 0, RWD));
	CHECK_EQ(sponsor_at(v, 0), 0);
	CHECK(!first_at(v, 0));
	/* The first window that belongs to somebody pays. */
	REQUIRE_OK(dev_map(v, 0, 4, to, 0, RWD));
	CHECK_EQ(sponsor_at(to, 0), cg_id(cg));
	CHECK(first_at(to, 0));
	CHECK_COUNTS(cg, 1, 1, 4);
}

static void alloc_is_charged(void)
{
	int cg = cg_make("a"), w = win_open_in(cg);

	CHECK_COUNTS(cg, 0, 0, 0);
	REQUIRE_OK(dev_alloc(w, 0, 16));
	CHECK_EQ(sponsor_at(w, 0), cg_id(cg));
	CHECK(first_at(w, 0));
	CHECK_COUNTS(cg, 1, 1, 16);
	REQUIRE_OK(dev_alloc(w, 16, 1));
	CHECK_COUNTS(cg, 2, 2, 17);
	REQUIRE_OK(dev_unmap_self(w, 0, 16));
	CHECK_COUNTS(cg, 1, 1, 1);
	close(w);
	CHECK_COUNTS(cg, 0, 0, 0);
}

/* The window's cgroup pays, not that of whoever does the ioctl. */
static void window_belongs_to_opener(void)
{
	int a = cg_make("a"), b = cg_make("b"), w = win_open_in(a);

	cg_enter(b);
	REQUIRE_OK(dev_alloc(w, 0, 3));
	cg_leave();
	CHECK_COUNTS(a, 1, 1, 3);
	CHECK_COUNTS(b, 0, 0, 0);
}

static void counted_at_every_level(void)
{
	int top = cg_make("t"), mid = cg_make("t/m"), low = cg_make("t/m/l");
	int other = cg_make("t/o");
	int w = win_open_in(low), v = win_open_in(other);

	REQUIRE_OK(dev_alloc(w, 0, 5));
	REQUIRE_OK(dev_alloc(v, 0, 2));
	CHECK_COUNTS(low, 1, 1, 5);
	CHECK_COUNTS(mid, 1, 1, 5);
	CHECK_COUNTS(other, 1, 1, 2);
	CHECK_COUNTS(top, 2, 2, 7);
	close(w);
	CHECK_COUNTS(top, 1, 1, 2);
	CHECK_COUNTS(mid, 0, 0, 0);
}

struct chain {
	int win[3], sock[3][2];
	uint32_t step;
};

/* C touches what it got, and later finds it gone. */
static void last_holder(void *arg)
{
	struct chain *c = arg;
	int w = win_open_in(cg_make("c"));
	uint32_t *p = win_mmap(w, 4, PROT_READ | PROT_WRITE);

	fd_send(c->sock[0][1], w);
	await(&c->step, 1);
	CHECK_EQ(get(p), 1234);
	put(&c->step, 2);
	await(&c->step, 3);
	CHECK_SIG(peek(p, NULL), SIGBUS);
	put(&c->step, 4);
}

/* A -> B -> C in three cgroups; one chain is cut by C's death, one by A. */
static void chain_pays_once(void)
{
	struct chain *c = shared(sizeof(*c));
	int cg[3] = { cg_make("a"), cg_make("b"), cg_make("c") };
	int a = win_open_in(cg[0]), b = win_open_in(cg[1]), to;
	uint32_t *p;
	pid_t pid;

	REQUIRE_OK(dev_alloc(a, 0, 4));
	p = win_mmap(a, 4, PROT_READ | PROT_WRITE);
	put(p, 1234);
	REQUIRE_OK(dev_map(a, 0, 4, b, 0, RWD));
	CHECK_COUNTS(cg[0], 1, 2, 8);

	/* When C dies its charge goes back. */
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, c->sock[0]));
	pid = spawn(last_holder, c);
	to = fd_recv(c->sock[0][0]);
	REQUIRE_OK(dev_map(b, 0, 2, to, 0, RW));
	CHECK_EQ(sponsor_at(to, 0), cg_id(cg[0]));
	CHECK(!first_at(to, 0));
	close(to);
	CHECK_COUNTS(cg[0], 1, 3, 10);
	put(&c->step, 1);
	await(&c->step, 2);
	kill_and_reap(pid);
	while (dev_count(b, 0))
		sleep_us(1000);
	CHECK_COUNTS(cg[0], 1, 2, 8);

	/* When A unmaps, C gets a SIGBUS and the charge is gone. */
	put(&c->step, 0);
	pid = spawn(last_holder, c);
	to = fd_recv(c->sock[0][0]);
	REQUIRE_OK(dev_map(b, 0, 2, to, 0, RW));
	close(to);
	CHECK_COUNTS(cg[0], 1, 3, 10);
	put(&c->step, 1);
	await(&c->step, 2);
	REQUIRE_OK(dev_unmap(a, 0, 4));
	CHECK_COUNTS(cg[0], 1, 1, 4);
	put(&c->step, 3);
	await(&c->step, 4);
	reap(pid);
	CHECK_COUNTS(cg[1], 0, 0, 0);
	CHECK_COUNTS(cg[2], 0, 0, 0);
}

/* Root may name anybody; the named one pays for all that follows. */
static void explicit_sponsor(void)
{
	int a = cg_make("a"), b = cg_make("b"), c = cg_make("c");
	int src = win_open_in(a), to = win_open_in(b), last = win_open_in(c);

	REQUIRE_OK(dev_alloc(src, 0, 2));
	REQUIRE_OK(dev_map_for(src, 0, 2, to, 0, RWD, c));
	CHECK_EQ(sponsor_at(to, 0), cg_id(c));
	CHECK(first_at(to, 0));
	REQUIRE_OK(dev_map(to, 0, 1, last, 0, R));
	CHECK_EQ(sponsor_at(last, 0), cg_id(c));
	CHECK(!first_at(last, 0));
	CHECK_COUNTS(a, 1, 1, 2);
	CHECK_COUNTS(b, 0, 0, 0);
	CHECK_COUNTS(c, 1, 2, 3);
	REQUIRE_OK(dev_unmap(src, 0, 2));
	CHECK_COUNTS(c, 0, 0, 0);
}

static void drop_capability(int cap)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2];

	REQUIRE(!syscall(SYS_capget, &h, d));
	d[cap / 32].effective &= ~(1U << (cap % 32));
	d[cap / 32].permitted &= ~(1U << (cap % 32));
	REQUIRE(!syscall(SYS_capset, &h, d));
}

/* Every relation of sponsor and target, without the capability. */
static void who_may_name(void)
{
	int top = cg_make("t"), own = cg_make("t/own"), other = cg_make("t/o");
	int alien = cg_make("alien"), other2 = cg_make("t/o2");
	int own2 = cg_make("t/own2");
	int src = win_open_in(alien), mine = win_open_in(own);
	int theirs = win_open_in(other), high = win_open_in(other2);
	/* Nobody can be in a cgroup with others below: so not earlier. */
	int below = cg_make("t/o2/below"), nobodys = win_open();
	int plain = dev_gate(theirs, 0, 100, 0);
	int open_gate = dev_gate(theirs, 0, 100, BRUMM_GATE_SPONSOR);
	int high_gate = dev_gate(high, 0, 100, BRUMM_GATE_SPONSOR);
	int root_gate = dev_gate(nobodys, 0, 100, BRUMM_GATE_SPONSOR);

	REQUIRE(plain >= 0 && open_gate >= 0 && high_gate >= 0 &&
		root_gate >= 0);
	REQUIRE_OK(dev_alloc(src, 0, 1));
	REQUIRE_OK(dev_alloc(mine, 50, 1));
	drop_capability(CAP_SYS_RESOURCE);
	/* Another's window or plain gate: nobody. */
	CHECK_RET(dev_map_for(src, 0, 1, theirs, 0, R, other), -EPERM);
	CHECK_RET(dev_map_for(src, 0, 1, plain, 0, R, other), -EPERM);
	/* A gate that allows it: its window's cgroup and those below. */
	CHECK_OK(dev_map_for(src, 0, 1, open_gate, 0, R, other));
	CHECK_OK(dev_map_for(src, 0, 1, high_gate, 0, R, other2));
	CHECK_OK(dev_map_for(src, 0, 1, high_gate, 1, R, below));
	/* One above would be a way around the budget of the gate's. */
	CHECK_RET(dev_map_for(src, 0, 1, open_gate, 2, R, top), -EPERM);
	CHECK_RET(dev_map_for(src, 0, 1, open_gate, 2, R, below), -EPERM);
	CHECK_RET(dev_map_for(src, 0, 1, open_gate, 2, R, own), -EPERM);
	CHECK_RET(dev_map_for(src, 0, 1, open_gate, 2, R, alien), -EPERM);
	/* The root's window has nobody to speak for. */
	CHECK_RET(dev_map_for(src, 0, 1, root_gate, 0, R, other), -EPERM);
	CHECK_RET(dev_map_for(src, 0, 1, root_gate, 0, R, alien), -EPERM);
	/* The own window. */
	CHECK_OK(dev_map_for(mine, 50, 1, SELF, 0, R, own));
	CHECK_RET(dev_map_for(mine, 50, 1, SELF, 1, R, top), -EPERM);
	CHECK_RET(dev_map_for(mine, 50, 1, SELF, 1, R, own2), -EPERM);
	CHECK_RET(dev_map_for(mine, 50, 1, SELF, 1, R, other), -EPERM);
	CHECK_EQ(dev_nodes(theirs), 1);
	CHECK_EQ(dev_nodes(high), 2);
	CHECK_EQ(dev_nodes(mine), 2);
	CHECK_EQ(dev_nodes(nobodys), 0);
	CHECK_COUNTS(other, 1, 1, 1);
	CHECK_COUNTS(below, 1, 1, 1);
}

static void sponsor_is_checked(void)
{
	int cg = cg_make("a"), w = win_with(1), to = win_open();
	int file = open("/proc/self/status", O_RDONLY), top, fds[2];

	REQUIRE(file >= 0 && !pipe(fds));
	top = open(CG_TOP, O_RDONLY | O_DIRECTORY);
	REQUIRE(top >= 0);
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, -1), -EBADF);
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, 9999), -EBADF);
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, file), -EINVAL);
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, fds[0]), -EINVAL);
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, w), -EINVAL);
	CHECK_EQ(dev_nodes(to), 0);
	/* The root sponsors nothing. */
	CHECK_RET(dev_map_for(w, 0, 1, to, 0, R, top), -EINVAL);
	CHECK_EQ(dev_nodes(to), 0);
	CHECK_OK(dev_map_for(w, 0, 1, to, 1, R, cg));
	CHECK_EQ(sponsor_at(to, 1), cg_id(cg));
}

static void set_prices(int cg, const char *text)
{
	REQUIRE_OK(cg_write(cg, "brumm.price", text));
}

/* 1 us a page and nothing else, so that a budget is a number of pages. */
static void page_prices(int cg)
{
	set_prices(cg, "lookup 0");
	set_prices(cg, "map 0");
	set_prices(cg, "pt 1000");
	set_prices(cg, "deep 0");
}

static void budget_refuses(void)
{
	int cg = cg_make("a"), w = win_open_in(cg), root = win_with(64);

	page_prices(cg);
	REQUIRE_OK(cg_write(cg, "brumm.max", "10"));
	REQUIRE_OK(dev_alloc(w, 0, 6));
	CHECK_RET(dev_alloc(w, 6, 5), -EDQUOT);
	CHECK_EQ(dev_nodes(w), 1);
	CHECK_COUNTS(cg, 1, 1, 6);
	REQUIRE_OK(dev_map(root, 0, 4, w, 6, R));
	CHECK_RET(dev_map(root, 0, 1, w, 10, R), -EDQUOT);
	CHECK_RET(dev_map(w, 0, 1, root, 100, R), -EDQUOT);
	CHECK_EQ(dev_nodes(root), 1);
	CHECK_COUNTS(cg, 2, 2, 10);
	CHECK_EQ(cg_number(cg, "brumm.current"), 10);
	CHECK(cg_key(cg, "brumm.events", "max") >= 3);
	REQUIRE_OK(dev_unmap_self(w, 0, 2));
	CHECK_OK(dev_map(root, 0, 2, w, 10, R));
	CHECK_COUNTS(cg, 3, 3, 10);
}

/* The budget of a level above counts as well. */
static void budget_above_refuses(void)
{
	int top = cg_make("t"), low = cg_make("t/l"), w = win_open_in(low);

	page_prices(top);
	REQUIRE_OK(cg_write(top, "brumm.max", "4"));
	CHECK_RET(dev_alloc(w, 0, 5), -EDQUOT);
	CHECK_COUNTS(low, 0, 0, 0);
	CHECK_COUNTS(top, 0, 0, 0);
	CHECK_OK(dev_alloc(w, 0, 4));
	CHECK_EQ(cg_key(top, "brumm.events.local", "max"), 1);
	CHECK_EQ(cg_key(low, "brumm.events.local", "max"), 0);
}

static void locked_refuses(void)
{
	int cg = cg_make("a"), w = win_open_in(cg), to = win_open();

	REQUIRE_OK(dev_alloc(w, 0, 2));
	REQUIRE_OK(cg_write(cg, "brumm.lock", "1"));
	CHECK_RET(dev_alloc(w, 2, 1), -EBUSY);
	CHECK_RET(dev_map(w, 0, 1, to, 0, R), -EBUSY);
	CHECK_COUNTS(cg, 1, 1, 2);
	CHECK(cg_key(cg, "brumm.events", "locked") >= 2);
	REQUIRE_OK(cg_write(cg, "brumm.lock", "0"));
	CHECK_OK(dev_map(w, 0, 1, to, 0, R));
}

/*
 * A hole in a mapping adds a node: refused to the sponsor himself beyond his
 * budget, charged in any case when somebody upstream makes it.
 */
static void hole_beyond_budget(void)
{
	int a = cg_make("a"), b = cg_make("b");
	int src = win_open_in(a), to = win_open_in(b), own = win_open_in(b);

	set_prices(b, "lookup 0");
	set_prices(b, "map 1000");
	set_prices(b, "pt 0");
	set_prices(b, "deep 0");
	REQUIRE_OK(dev_alloc(src, 0, 9));
	REQUIRE_OK(dev_map_for(src, 0, 9, to, 0, RWD, b));
	REQUIRE_OK(dev_map(to, 0, 9, own, 0, R));
	REQUIRE_OK(cg_write(b, "brumm.max", "2"));
	CHECK_RET(dev_unmap_self(own, 4, 1), -EDQUOT);
	CHECK_EQ(dev_nodes(own), 1);
	/* At an edge it adds none. */
	CHECK_OK(dev_unmap_self(own, 8, 1));
	CHECK_EQ(cg_key(b, "brumm.events", "over"), 0);
	CHECK_OK(dev_unmap(src, 4, 1));
	CHECK_EQ(dev_nodes(to), 2);
	CHECK_EQ(dev_nodes(own), 2);
	/* Each piece of a first node is one. */
	CHECK_COUNTS(b, 2, 4, 8 + 7);
	CHECK(cg_key(b, "brumm.events", "over") > 0);
	CHECK_EQ(cg_number(b, "brumm.current"), 4);
}

static void removed_cgroup_keeps_charge(void)
{
	int top = cg_make("t"), low = cg_make("t/l"), w = win_open_in(low);

	REQUIRE_OK(dev_alloc(w, 0, 7));
	cg_remove("t/l");
	CHECK_COUNTS(top, 1, 1, 7);
	/* Who is in it no more can still map there. */
	CHECK_OK(dev_map(w, 0, 1, SELF, 10, R));
	CHECK_COUNTS(top, 1, 2, 8);
	close(w);
	CHECK_COUNTS(top, 0, 0, 0);
}

static void moved_task_moves_no_charge(void)
{
	int a = cg_make("a"), b = cg_make("b"), w;

	cg_enter(a);
	w = win_open();
	REQUIRE_OK(dev_alloc(w, 0, 3));
	cg_enter(b);
	REQUIRE_OK(dev_map(w, 0, 3, SELF, 10, R));
	CHECK_COUNTS(a, 1, 2, 6);
	CHECK_COUNTS(b, 0, 0, 0);
	cg_leave();
}

static void grant_keeps_charge(void)
{
	int a = cg_make("a"), b = cg_make("b");
	int src = win_open_in(a), to = win_open_in(b);

	REQUIRE_OK(dev_alloc(src, 0, 4));
	REQUIRE_OK(dev_grant(src, 0, 4, to, 0, ALL));
	CHECK_EQ(sponsor_at(to, 0), cg_id(a));
	CHECK_COUNTS(a, 1, 1, 4);
	CHECK_COUNTS(b, 0, 0, 0);
	close(src);
	CHECK_COUNTS(a, 1, 1, 4);
	close(to);
	CHECK_COUNTS(a, 0, 0, 0);
}

static void reclaim_revokes(void)
{
	int a = cg_make("a"), b = cg_make("b");
	int src = win_with(4), to = win_open_in(a), last = win_open_in(b);
	uint32_t *p = win_mmap(last, 4, PROT_READ);

	REQUIRE_OK(dev_map(src, 0, 4, to, 0, RWD));
	REQUIRE_OK(dev_map(to, 0, 4, last, 0, R));
	REQUIRE_OK(dev_alloc(to, 10, 2));
	CHECK_SIG(peek(p, NULL), 0);
	CHECK_COUNTS(a, 2, 3, 10);
	REQUIRE_OK(cg_write(a, "brumm.reclaim", "1"));
	CHECK_COUNTS(a, 0, 0, 0);
	CHECK_EQ(dev_nodes(to), 0);
	CHECK_EQ(dev_nodes(last), 0);
	CHECK_EQ(dev_nodes(src), 1);
	CHECK_SIG(peek(p, NULL), SIGBUS);
}

static const struct tap_case cases[] = {
	{ "the root cgroup sponsors nothing", root_pays_nothing },
	{ "ALLOC is charged to the window's cgroup", alloc_is_charged },
	{ "a window belongs to its opener's cgroup", window_belongs_to_opener },
	{ "charges count at every level up", counted_at_every_level },
	{ "A -> B -> C is charged to A's sponsor until C dies or A unmaps",
	  chain_pays_once },
	{ "an explicit sponsor pays for what follows", explicit_sponsor },
	{ "who may name whom without CAP_SYS_RESOURCE", who_may_name },
	{ "a sponsor must be a cgroup", sponsor_is_checked },
	{ "a budget refuses what exceeds it, exactly", budget_refuses },
	{ "a budget of a level above refuses too", budget_above_refuses },
	{ "a locked budget refuses", locked_refuses },
	{ "a hole beyond the budget", hole_beyond_budget },
	{ "a removed cgroup keeps its charge upstream",
	  removed_cgroup_keeps_charge },
	{ "charges do not move with a task", moved_task_moves_no_charge },
	{ "GRANT keeps who pays", grant_keeps_charge },
	{ "brumm.reclaim revokes all that a cgroup sponsors", reclaim_revokes },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
