// SPDX-License-Identifier: GPL-2.0
/*
 * libbrumm upon the real module: windows, knobs, and the memory service with
 * clients in cgroups of their own. To be run as root where the module is
 * loaded. Each test makes the cgroups that it needs, and removes them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "common.h"
#include "internal.h"

#define TOP	"brumm-test"
#define A	TOP "/a"
#define B	TOP "/b"
#define SVC	TOP "/svc"
#define RW	(BRUMM_RIGHT_R | BRUMM_RIGHT_W)

static uint64_t page;

/* ---- helpers ------------------------------------------------------------ */

static void remove_all(void)
{
	static const char *const all[] = { A, B, SVC, TOP };
	size_t i;
	int fd, n;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		fd = brumm_group_open(all[i]);
		if (fd < 0)
			continue;
		brumm_group_kill(fd);
		close(fd);
		for (n = 0; n < 500 && brumm_group_remove(all[i]) == -EBUSY; n++)
			usleep(10000);
	}
}

static int make(const char *name)
{
	int fd;

	CHECK_RET(brumm_group_create(name), 0);
	fd = brumm_group_open(name);
	CHECK(fd >= 0);
	return fd;
}

static uint64_t current(int group)
{
	uint64_t ns;

	CHECK_RET(brumm_group_current(group, &ns), 0);
	return ns;
}

static void until_zero(int group)
{
	int i;

	for (i = 0; i < 5000 && current(group); i++)
		usleep(1000);
	CHECK(!current(group));
}

struct view {
	int fd;
	char *p;
};

static struct view open_window(uint64_t pages, int prot)
{
	struct view v = { .fd = brumm_open(O_NONBLOCK) };
	void *p;

	CHECK(v.fd >= 0);
	CHECK_RET(brumm_mmap(v.fd, pages * page, prot, &p), 0);
	v.p = p;
	return v;
}

/* ---- windows ------------------------------------------------------------ */

static void windows(void)
{
	struct view a = open_window(16, PROT_READ | PROT_WRITE);
	struct view b = open_window(16, PROT_READ | PROT_WRITE);
	struct brumm_map m = { .length = 4 * page, .target = page };
	struct brumm_unmap done;
	struct brumm_event ev[4];
	struct brumm_query q;
	struct brumm_info info;
	char c = 'x';

	CHECK_RET(brumm_open(O_RDWR), -EINVAL);
	CHECK_RET(brumm_info(a.fd, &info), 0);
	CHECK(info.version == BRUMM_VERSION && info.page_size == page);
	CHECK_RET(brumm_read(&c, a.p, 1), -EFAULT);
	CHECK_RET(brumm_alloc(a.fd, 0, 8 * page), 0);
	CHECK_RET(brumm_alloc(a.fd, page, page), -EEXIST);
	CHECK_RET(brumm_write(a.p, "hello", 5), 0);

	/* Through a gate, with fewer rights than the source has. */
	m.fd = brumm_gate(b.fd, 2 * page, 8 * page, 0);
	m.rights = RW;
	CHECK(m.fd >= 0);
	CHECK_RET(brumm_map(a.fd, &m), 0);
	CHECK_RET(brumm_read(&c, b.p + 3 * page, 1), 0);
	CHECK(c == 'h');
	CHECK_RET(brumm_write(b.p + 3 * page + 1, "E", 1), 0);
	CHECK(a.p[1] == 'E');
	CHECK_RET(brumm_query(b.fd, 0, BRUMM_QUERY_NEXT, &q), 0);
	CHECK(q.offset == 3 * page && q.length == 4 * page && q.depth == 1 &&
	      q.rights == RW);
	CHECK_RET(brumm_query(a.fd, 0, BRUMM_QUERY_COUNT, &q), 0);
	CHECK(q.descendants == 1 && q.state & BRUMM_NODE_ROOT);

	/* Rights, then the mapping; each is an event and a clean error. */
	CHECK_RET(brumm_event_wait(b.fd, 0), 0);
	CHECK_RET(brumm_reduce(a.fd, 0, page, BRUMM_RIGHT_W, 0, &done), 0);
	CHECK(done.nodes >= 1);
	CHECK_RET(brumm_write(b.p + 3 * page, "E", 1), -EFAULT);
	CHECK_RET(brumm_write(b.p + 4 * page, "E", 1), 0);
	CHECK_RET(brumm_read(&c, b.p + 3 * page, 1), 0);
	CHECK_RET(brumm_unmap(a.fd, 0, 8 * page, 0, &done), 0);
	CHECK(done.pages == 4);
	CHECK_RET(brumm_read(&c, b.p + 3 * page, 1), -EFAULT);
	CHECK_RET(brumm_read(&c, a.p, 1), 0);
	CHECK_RET(brumm_event_wait(b.fd, 1000), 1);
	CHECK(brumm_events(b.fd, ev, 4) >= 2);
	CHECK_RET(brumm_events(b.fd, ev, 4), -EAGAIN);

	/* A grant moves. */
	m.rights = BRUMM_RIGHT_R;
	CHECK_RET(brumm_grant(a.fd, &m), 0);
	CHECK_RET(brumm_read(&c, a.p, 1), -EFAULT);
	CHECK_RET(brumm_read(&c, b.p + 3 * page, 1), 0);
	CHECK_RET(brumm_query(a.fd, 0, 0, &q), -ENOENT);
	CHECK_RET(brumm_munmap(b.p, 16 * page), 0);
	close(b.fd);
	m.source = 4 * page;
	CHECK_RET(brumm_map(a.fd, &m), -ESTALE);
}

/* A reader that races with map and revoke sees the content or the error. */
static void races(void)
{
	struct view a = open_window(1, PROT_READ | PROT_WRITE);
	struct view b = open_window(1, PROT_READ);
	struct brumm_map m = { .length = page, .fd = b.fd,
			       .rights = BRUMM_RIGHT_R };
	unsigned long seen[2] = { 0 };
	uint64_t value = 4711;
	pid_t pid;
	int err, i;

	CHECK_RET(brumm_alloc(a.fd, 0, page), 0);
	CHECK_RET(brumm_write(a.p, &value, sizeof(value)), 0);
	/* The window's view is not inherited: the child maps and revokes. */
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < 3000; i++) {
			if (brumm_map(a.fd, &m) ||
			    brumm_unmap(a.fd, 0, page, 0, NULL))
				_exit(1);
		}
		_exit(0);
	}
	while (!waitpid(pid, &i, WNOHANG)) {
		value = 0;
		err = brumm_read(&value, b.p, sizeof(value));
		CHECK(err == -EFAULT || (!err && value == 4711));
		seen[!err]++;
	}
	CHECK_RET(i, 0);
	CHECK(seen[0]);
	CHECK_RET(brumm_read(&value, b.p, sizeof(value)), -EFAULT);
}

/* ---- knobs -------------------------------------------------------------- */

static int price_sum(const char *key, uint64_t value, void *arg)
{
	(void)key;
	*(uint64_t *)arg += value;
	return 0;
}

static void knobs(void)
{
	int top = make(TOP), a = make(A), peak, watch;
	struct brumm_group_events ev;
	uint64_t ns, sum = 0;
	char name[64];

	CHECK_RET(brumm_group_name(a, name, sizeof(name)), 0);
	CHECK(!strcmp(name, "/" A));
	CHECK_RET(brumm_group_max(a, &ns), 0);
	CHECK(ns == BRUMM_NO_LIMIT);
	CHECK_RET(brumm_group_set_max(a, 1234567), 0);
	CHECK_RET(brumm_group_max(a, &ns), 0);
	CHECK(ns == 1234567);
	CHECK_RET(brumm_group_set_max(a, BRUMM_NO_LIMIT), 0);
	CHECK_RET(brumm_group_set_high(a, 999), 0);
	CHECK_RET(brumm_group_high(a, &ns), 0);
	CHECK(ns == 999);
	CHECK_RET(brumm_group_price(a, price_sum, &sum), 0);
	CHECK(sum > 0);
	CHECK_RET(brumm_group_set_price(a, "map", 77777), 0);
	CHECK_RET(brumm_group_price(a, NULL, NULL), 1);
	CHECK_RET(brumm_group_set_price(a, "nonsense", 1), -EINVAL);
	CHECK_RET(brumm_group_set_price(a, NULL, 0), 0);
	CHECK_RET(brumm_group_price(a, NULL, NULL), 0);
	CHECK_RET(brumm_group_locked(a), 0);
	CHECK_RET(brumm_group_lock(a, true), 0);
	CHECK_RET(brumm_group_locked(a), 1);
	CHECK_RET(brumm_group_lock(a, false), 0);
	CHECK_RET(brumm_group_stat_get(a, "usage_ns", &ns), 0);
	CHECK_RET(brumm_group_stat_get(a, "nonsense", &ns), -ENODATA);
	CHECK_RET(brumm_group_why(a, name, sizeof(name)), -EEXIST);

	/* A process in it is refused; who watches is told. */
	CHECK_RET(brumm_group_set_max(a, 0), 0);
	watch = brumm_watch_open(a, 0);
	CHECK(watch >= 0);
	CHECK_RET(brumm_watch_wait(watch, 0, &ev), 0);
	CHECK_RET(brumm_group_enter(A, 0), 0);
	CHECK_RET(brumm_alloc(open_window(1, PROT_READ).fd, 0, page), -EDQUOT);
	CHECK_RET(brumm_watch_wait(watch, 5000, &ev), 1);
	CHECK(ev.max == 1 && !ev.locked);
	CHECK_RET(brumm_group_set_max(a, BRUMM_NO_LIMIT), 0);
	CHECK_RET(brumm_group_lock(a, true), 0);
	CHECK_RET(brumm_alloc(open_window(1, PROT_READ).fd, 0, page), -EBUSY);
	CHECK_RET(brumm_group_lock(a, false), 0);
	CHECK_RET(brumm_group_events(a, BRUMM_EVENTS_LOCAL, &ev), 0);
	CHECK(ev.max == 1 && ev.locked == 1);
	CHECK_RET(brumm_group_events(top, BRUMM_EVENTS_LOCAL, &ev), 0);
	CHECK(!ev.max && !ev.locked);

	/* Charged, reclaimed; the peak of one's own starts anew. */
	CHECK_RET(brumm_alloc(open_window(4, PROT_READ).fd, 0, 4 * page), 0);
	CHECK(current(a) > 0 && current(top) == current(a));
	peak = brumm_peak_open(a);
	CHECK(peak >= 0);
	CHECK_RET(brumm_group_reclaim(a), 0);
	CHECK(!current(a));
	CHECK_RET(brumm_peak_read(peak, &ns), 0);
	CHECK(ns > 0);
	CHECK_RET(brumm_peak_reset(peak), 0);
	CHECK_RET(brumm_peak_read(peak, &ns), 0);
	CHECK(ns == 0);
	CHECK_RET(brumm_group_peak(a, &ns), 0);
	CHECK(ns > 0);
	CHECK_RET(brumm_group_stat_get(a, "reclaims", &ns), 0);
	CHECK(ns == 1);
}

static void no_knobs(void)
{
	int root = brumm_group_open("/");
	char why[256];
	uint64_t ns;

	CHECK(root >= 0);
	CHECK_RET(brumm_group_max(root, &ns), -ENOENT);
	CHECK_RET(brumm_group_why(root, why, sizeof(why)), 0);
	CHECK(strstr(why, "root"));
	CHECK_RET(brumm_group_remove(TOP "/none"), -ENOENT);
	CHECK_RET(brumm_group_create("/"), -EINVAL);
	CHECK_RET(brumm_group_remove("/"), -EBUSY);
	make(TOP);
	CHECK_RET(brumm_group_create(TOP), 0);
	CHECK_RET(brumm_group_enter(TOP, 0), 0);
	CHECK_RET(brumm_group_remove(TOP), -EBUSY);
}

/* ---- memory service ----------------------------------------------------- */

static char sock[64], control_sock[64];

/* A service in its cgroup; returns its pid. */
static pid_t serve(void)
{
	struct brumm_server_config c = {
		.path = sock,
		.control = control_sock,
		.pool = 64 * page,
	};
	struct brumm_server *s;
	int ready[2];
	char x;
	pid_t pid;

	snprintf(sock, sizeof(sock), "/tmp/brumm-test-%d.sock", getpid());
	snprintf(control_sock, sizeof(control_sock), "/tmp/brumm-test-%d.ctl",
		 getpid());
	CHECK_RET(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGALRM, SIG_DFL);
		CHECK_RET(brumm_group_enter(SVC, 0), 0);
		CHECK_RET(brumm_server_open(&c, &s), 0);
		CHECK(write(ready[1], "x", 1) == 1);
		_exit(brumm_server_run(s) ? 1 : 0);
	}
	close(ready[1]);
	CHECK(read(ready[0], &x, 1) == 1);
	close(ready[0]);
	return pid;
}

/* A client in cgroup A, which is what the caller is in from now on. */
static struct brumm_client *be_client(struct view *v)
{
	struct brumm_client *c;
	int gate;

	CHECK_RET(brumm_group_enter(A, 0), 0);
	*v = open_window(64, PROT_READ | PROT_WRITE);
	gate = brumm_gate(v->fd, 0, 64 * page, BRUMM_GATE_SPONSOR);
	CHECK(gate >= 0);
	CHECK_RET(brumm_client_open(sock, gate, &c), 0);
	close(gate);
	return c;
}

static struct brumm_service_status status(void)
{
	struct brumm_service_status st;
	struct brumm_control *c;

	CHECK_RET(brumm_control_open(control_sock, &c), 0);
	CHECK_RET(brumm_control_status(c, &st), 0);
	brumm_control_close(c);
	return st;
}

static void client_pays(void)
{
	int top = make(TOP), a = make(A), svc = make(SVC);
	struct brumm_control *control;
	struct brumm_client *c;
	struct brumm_taken t;
	struct view v;
	uint64_t before, id, h, h2;
	pid_t pid = serve();
	char x;

	(void)top;
	before = current(svc);
	c = be_client(&v);
	CHECK_RET(brumm_client_alloc(c, 0, 8 * page, RW, &h), 0);
	CHECK(current(a) > 0 && current(svc) == before);
	CHECK_RET(brumm_write(v.p, "secret", 6), 0);
	CHECK_RET(brumm_client_alloc(c, page, page, RW, &h2), -EEXIST);
	CHECK_RET(brumm_client_alloc(c, 64 * page, page, RW, &h2), -EOVERFLOW);
	CHECK_RET(brumm_client_alloc(c, 8 * page, page, 64, &h2), -EOPNOTSUPP);
	CHECK(status().free == 56 * page);

	/* Given back, it is clean for the next one. */
	CHECK_RET(brumm_client_free(c, h), 0);
	CHECK(!current(a));
	CHECK_RET(brumm_read(&x, v.p, 1), -EFAULT);
	CHECK_RET(brumm_client_alloc(c, 0, 64 * page, RW, &h), 0);
	for (id = 0; id < 64 * page; id += 64) {
		CHECK_RET(brumm_read(&x, v.p + id, 1), 0);
		CHECK(x == 0);
	}
	CHECK_RET(brumm_client_free(c, h), 0);

	/* Over the budget, and locked. */
	CHECK_RET(brumm_group_set_max(a, 1), 0);
	CHECK_RET(brumm_client_alloc(c, 0, page, RW, &h), -EDQUOT);
	CHECK_RET(brumm_group_set_max(a, BRUMM_NO_LIMIT), 0);
	CHECK_RET(brumm_group_lock(a, true), 0);
	CHECK_RET(brumm_client_alloc(c, 0, page, RW, &h), -EBUSY);
	CHECK_RET(brumm_group_lock(a, false), 0);
	CHECK(status().free == 64 * page);

	/* By the controller. */
	CHECK_RET(brumm_client_alloc(c, 0, 5 * page, RW, &h), 0);
	CHECK_RET(brumm_group_id(a, &id), 0);
	CHECK_RET(brumm_control_open(control_sock, &control), 0);
	CHECK_RET(brumm_control_take_back(control, id, &t), 0);
	CHECK(t.clients == 1 && t.bytes == 5 * page && t.nodes == 1);
	CHECK(!current(a));
	CHECK_RET(brumm_read(&x, v.p, 1), -EFAULT);
	CHECK_RET(brumm_group_id(top, &id), 0);
	CHECK_RET(brumm_client_alloc(c, 0, 5 * page, RW, &h), 0);
	CHECK_RET(brumm_control_take_back(control, id, &t), 0);
	CHECK(t.clients == 1);

	/* The service dies: so does what it gave. */
	CHECK_RET(brumm_client_alloc(c, 0, 5 * page, RW, &h), 0);
	CHECK_RET(kill(pid, SIGKILL), 0);
	CHECK_RET(waitpid(pid, NULL, 0), pid);
	CHECK_RET(brumm_read(&x, v.p, 1), -EFAULT);
	CHECK_RET(brumm_client_alloc(c, 0, page, RW, &h), -EPIPE);
	CHECK(!current(a) && !current(svc));
}

static void client_dies(void)
{
	int a = (make(TOP), make(A)), ready[2];
	struct brumm_client *c;
	struct view v;
	uint64_t h;
	pid_t pid;
	char x;

	make(SVC);
	serve();
	CHECK_RET(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		c = be_client(&v);
		CHECK_RET(brumm_client_alloc(c, 0, 9 * page, RW, &h), 0);
		CHECK(write(ready[1], "x", 1) == 1);
		pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &x, 1) == 1);
	CHECK(current(a) > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	until_zero(a);
	for (x = 0; x < 100 && status().free != 64 * page; x++)
		usleep(10000);
	CHECK(status().free == 64 * page);
	CHECK(status().clients == 0);
}

/* Somebody has another one's window charged: the kernel says no. */
static void impostor(void)
{
	int a = (make(TOP), make(A)), b = make(B), gate;
	struct brumm_client *c;
	struct view v;
	uint64_t h;

	make(SVC);
	serve();
	CHECK_RET(brumm_group_enter(B, 0), 0);
	v = open_window(4, PROT_READ);
	gate = brumm_gate(v.fd, 0, 4 * page, BRUMM_GATE_SPONSOR);
	CHECK(gate >= 0);
	CHECK_RET(brumm_group_enter(A, 0), 0);
	CHECK_RET(brumm_client_open(sock, gate, &c), 0);
	CHECK_RET(brumm_client_alloc(c, 0, page, RW, &h), -EPERM);
	CHECK(!current(a) && !current(b));
	CHECK(status().free == 64 * page);
	brumm_client_close(c);
	/* Nor without the consent that the gate expresses. */
	v = open_window(4, PROT_READ);
	gate = brumm_gate(v.fd, 0, 4 * page, 0);
	CHECK(gate >= 0);
	CHECK_RET(brumm_client_open(sock, gate, &c), 0);
	CHECK_RET(brumm_client_alloc(c, 0, page, RW, &h), -EPERM);
	/* A window is no gate. */
	CHECK_RET(brumm_client_open(sock, v.fd, &c), -EBADF);
}

static int clean(void **state)
{
	(void)state;
	remove_all();
	return 0;
}

TEST(windows)
TEST(races)
TEST(knobs)
TEST(no_knobs)
TEST(client_pays)
TEST(client_dies)
TEST(impostor)

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, clean, clean)
	const struct CMUnitTest tests[] = {
		CASE(windows),	   CASE(races),	      CASE(knobs),
		CASE(no_knobs),	   CASE(client_pays), CASE(client_dies),
		CASE(impostor),
	};

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	return RUN_TAP("real", tests);
}
