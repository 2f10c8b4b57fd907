// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: events count at the group that they are about and above it, poll and
 * inotify tell of them, and the last one is always told.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <fcntl.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

#define PATIENCE_MS	5000

static void CHECK_EVENT(int cg, const char *key, int64_t local, int64_t all)
{
	if (!CHECK_EQ(cg_key(cg, "brumm.events.local", key), local) ||
	    !CHECK_EQ(cg_key(cg, "brumm.events", key), all))
		tap_diag("event %s", key);
}

static void set_max_ns(int cg, unsigned long long ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%lluns", ns);
	REQUIRE_OK(cg_write(cg, "brumm.max", text));
}

static void max_counts_where_it_is_hit(void)
{
	int top = priced("t"), mid = cg_make("t/m"), low = cg_make("t/m/l");
	int other = cg_make("t/o"), w = win_open_in(low);

	set_max_ns(mid, COST(1, 1, 1));
	REQUIRE_OK(dev_alloc(w, 0, 1));
	CHECK_RET(dev_alloc(w, 1, 1), -EDQUOT);
	CHECK_RET(dev_alloc(w, 1, 1), -EDQUOT);
	CHECK_EVENT(low, "max", 0, 0);
	CHECK_EVENT(mid, "max", 2, 2);
	CHECK_EVENT(top, "max", 0, 2);
	CHECK_EVENT(other, "max", 0, 0);
	/* The lowest limit that is hit answers. */
	set_max_ns(low, COST(1, 1, 1));
	CHECK_RET(dev_alloc(w, 1, 1), -EDQUOT);
	CHECK_EVENT(low, "max", 1, 1);
	CHECK_EVENT(mid, "max", 2, 3);
	CHECK_EVENT(top, "max", 0, 3);
}

static void locked_counts(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);

	REQUIRE_OK(cg_write(low, "brumm.lock", "1"));
	CHECK_RET(dev_alloc(w, 0, 1), -EBUSY);
	CHECK_EVENT(low, "locked", 1, 1);
	CHECK_EVENT(top, "locked", 0, 1);
	CHECK_EVENT(low, "max", 0, 0);
}

static void high_counts_crossings(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);

	REQUIRE_OK(cg_write(top, "brumm.high", "2500us"));
	CHECK_OK(dev_alloc(w, 0, 1));
	CHECK_OK(dev_alloc(w, 1, 1));
	CHECK_EVENT(top, "high", 0, 0);
	CHECK_OK(dev_alloc(w, 2, 1));
	CHECK_EVENT(top, "high", 1, 1);
	CHECK_EVENT(low, "high", 0, 0);
	/* Still above it: no crossing. */
	CHECK_OK(dev_alloc(w, 3, 1));
	CHECK_EVENT(top, "high", 1, 1);
	REQUIRE_OK(dev_unmap_self(w, 1, 3));
	CHECK_OK(dev_alloc(w, 1, 2));
	CHECK_OK(dev_alloc(w, 3, 1));
	CHECK_EVENT(top, "high", 2, 2);
	CHECK_EVENT(top, "max", 0, 0);
}

/* Somebody upstream cuts a mapping in two: the tenant pays for one more. */
static void over_counts(void)
{
	int top = priced("t"), low = cg_make("t/l");
	int w = win_with(3), v = win_open_in(low);

	REQUIRE_OK(dev_map(w, 0, 3, v, 0, RW));
	set_max_ns(top, COST(1, 1, 3));
	CHECK_OK(dev_unmap(w, 1, 1));
	CHECK_EQ(dev_nodes(v), 2);
	CHECK(knob_usage_ns(top) > COST(1, 1, 3));
	CHECK_EVENT(top, "over", 1, 1);
	CHECK_EVENT(low, "over", 0, 0);
	CHECK_EVENT(top, "max", 0, 0);
}

static int watch_file(int cg, const char *file)
{
	int fd = openat(cg, file, O_RDONLY | O_CLOEXEC);
	char text[200];

	REQUIRE(fd >= 0);
	/* Reading arms it. */
	REQUIRE(pread(fd, text, sizeof(text), 0) > 0);
	return fd;
}

static int poll_file(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	int n = poll(&p, 1, ms);

	REQUIRE(n >= 0);
	return n && (p.revents & POLLPRI);
}

static void poll_tells(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);
	int here = watch_file(low, "brumm.events");
	int here_local = watch_file(low, "brumm.events.local");
	int above = watch_file(top, "brumm.events");
	int above_local = watch_file(top, "brumm.events.local");

	CHECK(!poll_file(above, 0));
	REQUIRE_OK(cg_write(low, "brumm.max", "0"));
	CHECK_RET(dev_alloc(w, 0, 1), -EDQUOT);
	CHECK(poll_file(here, PATIENCE_MS));
	CHECK(poll_file(here_local, PATIENCE_MS));
	CHECK(poll_file(above, PATIENCE_MS));
	CHECK(!poll_file(above_local, 100));
	close(here);
	here = watch_file(low, "brumm.events");
	CHECK(!poll_file(here, 100));
	CHECK_RET(dev_alloc(w, 0, 1), -EDQUOT);
	CHECK(poll_file(here, PATIENCE_MS));
}

/* Nobody had a group when the watch began. */
static void poll_before_the_group(void)
{
	int top = cg_make("t"), low = cg_make("t/l"), w;
	int fd = watch_file(top, "brumm.events");

	w = win_open_in(low);
	REQUIRE_OK(cg_write(low, "brumm.lock", "1"));
	CHECK_RET(dev_alloc(w, 0, 1), -EBUSY);
	CHECK(poll_file(fd, PATIENCE_MS));
}

static void last_event_is_told(void)
{
	int cg = cg_make("a"), w = win_open_in(cg);
	int fd = watch_file(cg, "brumm.events");
	char text[200];
	const int nr = amount(20000);
	int seen = 0, told = 0, i;

	REQUIRE_OK(cg_write(cg, "brumm.max", "0"));
	for (i = 0; i < nr; i++)
		CHECK_RET(dev_alloc(w, 0, 1), -EDQUOT);
	while (seen < nr && poll_file(fd, PATIENCE_MS)) {
		REQUIRE(pread(fd, text, sizeof(text) - 1, 0) > 4);
		seen = atoi(text + 4);
		told++;
	}
	CHECK_EQ(seen, nr);
	CHECK(told < 20);
}

static void inotify_tells(void)
{
	int top = priced("t"), low = cg_make("t/l"), w = win_open_in(low);
	char path[64], buf[4096];
	struct pollfd p = { .events = POLLIN };

	p.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	REQUIRE(p.fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/brumm.events", top);
	REQUIRE(inotify_add_watch(p.fd, path, IN_MODIFY) >= 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	REQUIRE_OK(cg_write(low, "brumm.max", "0"));
	CHECK_RET(dev_alloc(w, 0, 1), -EDQUOT);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK(read(p.fd, buf, sizeof(buf)) >=
	      (ssize_t)sizeof(struct inotify_event));
	CHECK(((struct inotify_event *)buf)->mask & IN_MODIFY);
}

/* From the root down to @low's parent. */
static int control(int low, const char *what)
{
	static const char *const up[] = { "../../..", "../..", ".." };
	unsigned int i;
	int dir, ret = 0;

	for (i = 0; i < ARRAY_SIZE(up) && !ret; i++) {
		dir = openat(low, up[i], O_RDONLY | O_DIRECTORY);
		REQUIRE(dir >= 0);
		ret = cg_write(dir, "cgroup.subtree_control", what);
		close(dir);
	}
	return ret;
}

/*
 * The io controller wants the memory controller, so without its files that is
 * still there, and the files are others when they come back.
 */
static void poll_after_the_files_were_away(void)
{
	int top = cg_make("t"), low = cg_make("t/l"), w, fd;

	w = win_open_in(low);
	if (control(low, "+io"))
		tap_skip("no io controller");
	REQUIRE_OK(cg_write(top, "cgroup.subtree_control", "-memory"));
	CHECK(faccessat(low, "brumm.max", F_OK, 0));
	/* Whoever comes now belongs to the one above. */
	close(w);
	w = win_open_in(low);
	REQUIRE_OK(dev_alloc(w, 0, 1));
	CHECK_COUNTS(top, 1, 1, 1);
	REQUIRE_OK(cg_write(top, "cgroup.subtree_control", "+memory"));
	CHECK_COUNTS(low, 0, 0, 0);
	close(w);
	w = win_open_in(low);
	fd = watch_file(low, "brumm.events");
	REQUIRE_OK(cg_write(low, "brumm.lock", "1"));
	CHECK_RET(dev_alloc(w, 0, 1), -EBUSY);
	CHECK(poll_file(fd, PATIENCE_MS));
}

static const struct tap_case cases[] = {
	{ "max counts at the limit that is hit", max_counts_where_it_is_hit },
	{ "locked counts at the group that is locked", locked_counts },
	{ "high counts each time usage rises above it", high_counts_crossings },
	{ "over counts what could not be refused", over_counts },
	{ "poll tells of an event here and above", poll_tells },
	{ "poll tells those who were there before", poll_before_the_group },
	{ "the last of many events is told", last_event_is_told },
	{ "inotify tells of an event", inotify_tells },
	{ "poll works after the files were away",
	  poll_after_the_files_were_away },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
