// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: a window's holder learns of every revocation in it by poll and read,
 * of none that he made himself, and that too many are merged and not lost.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"
#include "tap.h"

static void nonblock(int w)
{
	REQUIRE(!fcntl(w, F_SETFL, fcntl(w, F_GETFL) | O_NONBLOCK));
}

static int readable(int w)
{
	struct pollfd p = { .fd = w, .events = POLLIN };

	REQUIRE(poll(&p, 1, 0) >= 0);
	return p.revents & POLLIN;
}

/* Length in events, or a negative errno. */
static int take(int w, struct brumm_event *e, unsigned int room)
{
	ssize_t n = read(w, e, room * sizeof(*e));

	if (n < 0)
		return -errno;
	CHECK_EQ(n % sizeof(*e), 0);
	return n / sizeof(*e);
}

static void told_by_read(void)
{
	struct brumm_event e[4];
	int a = win_with(8), b = win_open();

	nonblock(b);
	CHECK(!readable(b));
	CHECK_RET(take(b, e, 4), -EAGAIN);
	REQUIRE_OK(dev_map(a, 0, 8, b, 100, RW));
	CHECK(!readable(b));
	REQUIRE_OK(dev_unmap(a, 2, 3));
	CHECK(readable(b));
	CHECK_EQ(take(b, e, 4), 1);
	CHECK_EQ(e[0].offset, 102 * PAGE);
	CHECK_EQ(e[0].length, 3 * PAGE);
	CHECK_EQ(e[0].rights, RW);
	CHECK_EQ(e[0].flags, 0);
	CHECK(!readable(b));
	CHECK_RET(take(b, e, 4), -EAGAIN);
}

static void told_of_rights(void)
{
	struct brumm_event e[4];
	int a = win_with(2), b = win_open();

	nonblock(b);
	REQUIRE_OK(dev_map(a, 0, 2, b, 0, RWD));
	REQUIRE_OK(dev_unmap_flags(a, 0, 1, BRUMM_UNMAP_RIGHTS, W | X, NULL));
	CHECK_EQ(take(b, e, 4), 1);
	CHECK_EQ(e[0].offset, 0);
	CHECK_EQ(e[0].length, PAGE);
	CHECK_EQ(e[0].rights, W);
	CHECK_EQ(e[0].flags, BRUMM_EVENT_RIGHTS);
}

static void own_doing_is_none(void)
{
	struct brumm_event e;
	int a = win_with(2), b = win_open();

	nonblock(a);
	nonblock(b);
	REQUIRE_OK(dev_map(a, 0, 2, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 0, 2, SELF, 10, RWD));
	REQUIRE_OK(dev_unmap_flags(b, 0, 1, BRUMM_UNMAP_RIGHTS |
				   BRUMM_UNMAP_SELF, W, NULL));
	REQUIRE_OK(dev_unmap_self(b, 0, 2));
	CHECK_RET(take(b, &e, 1), -EAGAIN);
	REQUIRE_OK(dev_unmap_self(a, 0, 2));
	CHECK_RET(take(a, &e, 1), -EAGAIN);
}

static void told_of_close(void)
{
	struct brumm_event e[4];
	int a = win_with(2), b = win_open(), c = win_open();

	nonblock(c);
	REQUIRE_OK(dev_map(a, 0, 2, b, 0, RWD));
	REQUIRE_OK(dev_map(b, 1, 1, c, 7, R));
	close(b);
	CHECK_EQ(take(c, e, 4), 1);
	CHECK_EQ(e[0].offset, 7 * PAGE);
	CHECK_EQ(e[0].length, PAGE);
}

static void whole_events_only(void)
{
	struct brumm_event e[4];
	int a = win_with(8), b = win_open(), i;

	nonblock(b);
	for (i = 0; i < 8; i += 2)
		REQUIRE_OK(dev_map(a, i, 1, b, i, R));
	for (i = 0; i < 8; i += 2)
		REQUIRE_OK(dev_unmap(a, i, 1));
	CHECK_EQ(read(b, e, sizeof(*e) - 1), -1);
	CHECK_RET(-errno, -EINVAL);
	CHECK_EQ(read(b, e, 0), -1);
	CHECK_RET(-errno, -EINVAL);
	CHECK_EQ(read(b, e, 2 * sizeof(*e) + 5), 2 * sizeof(*e));
	CHECK_EQ(e[0].offset, 0);
	CHECK_EQ(e[1].offset, 2 * PAGE);
	/* A buffer that cannot be written to loses no event. */
	CHECK_EQ(read(b, (void *)PAGE, sizeof(*e)), -1);
	CHECK_RET(-errno, -EFAULT);
	CHECK_EQ(take(b, e, 4), 2);
	CHECK_EQ(e[0].offset, 4 * PAGE);
	CHECK_EQ(e[1].offset, 6 * PAGE);
}

/* Every page that was revoked is in some event, however many there were. */
static void merged_not_lost(void)
{
	struct brumm_event e;
	struct brumm_info info;
	int a = win_open(), b = win_open(), got = 0, merged = 0, ret;
	unsigned int n, i, missing = 0;
	unsigned char *seen;

	REQUIRE_OK(dev_info(b, &info));
	n = 3 * info.events;
	seen = calloc(n, 1);
	nonblock(b);
	REQUIRE_OK(dev_alloc(a, 0, 2 * n));
	for (i = 0; i < n; i++)
		REQUIRE_OK(dev_map(a, 2 * i, 1, b, 2 * i, R));
	for (i = 0; i < n; i++)
		REQUIRE_OK(dev_unmap(a, 2 * i, 1));
	while ((ret = take(b, &e, 1)) > 0) {
		got++;
		merged += !!(e.flags & BRUMM_EVENT_MERGED);
		for (i = 0; i < n; i++)
			if (e.offset <= 2 * i * PAGE &&
			    e.offset + e.length > 2 * i * PAGE)
				seen[i] = 1;
	}
	CHECK_RET(ret, -EAGAIN);
	CHECK(got <= (int)info.events + 1);
	CHECK(merged > 0);
	for (i = 0; i < n; i++)
		missing += !seen[i];
	CHECK_EQ(missing, 0);
	/* Afterwards events are exact again. */
	REQUIRE_OK(dev_map(a, 0, 1, b, 5, R));
	REQUIRE_OK(dev_unmap(a, 0, 1));
	CHECK_EQ(take(b, &e, 1), 1);
	CHECK_EQ(e.offset, 5 * PAGE);
	CHECK_EQ(e.flags, 0);
}

struct sleeper {
	int w;
	uint32_t woken;
	struct brumm_event e;
};

static void *read_blocking(void *arg)
{
	struct sleeper *s = arg;

	CHECK_EQ(take(s->w, &s->e, 1), 1);
	put(&s->woken, 1);
	return NULL;
}

static void *poll_blocking(void *arg)
{
	struct sleeper *s = arg;
	struct epoll_event ev = { .events = EPOLLIN }, out;
	int ep = epoll_create1(0);

	REQUIRE(!epoll_ctl(ep, EPOLL_CTL_ADD, s->w, &ev));
	CHECK_EQ(epoll_wait(ep, &out, 1, -1), 1);
	CHECK(out.events & EPOLLIN);
	close(ep);
	put(&s->woken, 1);
	return NULL;
}

static void wakes(void *(*wait)(void *))
{
	int a = win_with(1), b = win_open();
	struct sleeper s = { .w = b };
	pthread_t t;

	REQUIRE_OK(dev_map(a, 0, 1, b, 3, R));
	t = start(wait, &s);
	sleep_us(200000);
	CHECK_EQ(get(&s.woken), 0);
	REQUIRE_OK(dev_unmap(a, 0, 1));
	join(t);
	CHECK_EQ(get(&s.woken), 1);
}

static void wakes_reader(void)
{
	wakes(read_blocking);
}

static void wakes_poller(void)
{
	wakes(poll_blocking);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *read_interrupted(void *arg)
{
	struct sleeper *s = arg;

	CHECK_RET(take(s->w, &s->e, 1), -EINTR);
	return NULL;
}

static void signal_ends_read(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sleeper s = { .w = win_open() };
	pthread_t t;

	sigaction(SIGUSR1, &sa, NULL);
	t = start(read_interrupted, &s);
	sleep_us(200000);
	pthread_kill(t, SIGUSR1);
	join(t);
}

static const struct tap_case cases[] = {
	{ "a revocation is told exactly, once", told_by_read },
	{ "a loss of rights is told with the rights that went",
	  told_of_rights },
	{ "what the holder revokes himself is no event", own_doing_is_none },
	{ "the end of a window upstream is told", told_of_close },
	{ "read takes whole events and loses none", whole_events_only },
	{ "too many events are merged, none is lost", merged_not_lost },
	{ "a blocked read is woken", wakes_reader },
	{ "a blocked epoll_wait is woken", wakes_poller },
	{ "a signal ends a blocked read", signal_ends_read },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
