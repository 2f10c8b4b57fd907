// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: brumm.peak is the highest usage ever, and for who has reset it in his
 * open file the highest since then, whatever others do with theirs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

/* One page each, priced so that usage is a number of ms. */
static int tenant(int *w)
{
	int cg = cg_make("a");

	REQUIRE_OK(cg_write(cg, "brumm.price", "lookup 1ms map 0 pt 0"));
	*w = win_open_in(cg);
	return cg;
}

static void fill(int w, unsigned int nr)
{
	while (nr--)
		REQUIRE_OK(dev_alloc(w, nr, 1));
}

static void drain(int w)
{
	REQUIRE_OK(dev_unmap_self(w, 0, 1000));
}

static int peak_open(int cg)
{
	int fd = openat(cg, "brumm.peak", O_RDWR | O_CLOEXEC);

	REQUIRE(fd >= 0);
	return fd;
}

static int64_t peak(int fd)
{
	char text[40] = "";

	REQUIRE(pread(fd, text, sizeof(text) - 1, 0) > 0);
	return atoll(text) / 1000;
}

static void reset(int fd)
{
	REQUIRE(write(fd, "anything", 8) == 8);
}

static void peak_stays(void)
{
	int w, cg = tenant(&w), fd = peak_open(cg);

	CHECK_EQ(peak(fd), 0);
	fill(w, 5);
	CHECK_EQ(peak(fd), 5);
	drain(w);
	fill(w, 2);
	CHECK_EQ(peak(fd), 5);
	CHECK_EQ(cg_number(cg, "brumm.peak"), 5000);
	CHECK_EQ(cg_number(cg, "brumm.current"), 2000);
}

static void reset_is_of_the_file(void)
{
	int w, cg = tenant(&w), one = peak_open(cg), two = peak_open(cg);

	fill(w, 9);
	drain(w);
	fill(w, 2);
	reset(one);
	CHECK_EQ(peak(one), 2);
	CHECK_EQ(peak(two), 9);
	CHECK_EQ(cg_number(cg, "brumm.peak"), 9000);
	drain(w);
	CHECK_EQ(peak(one), 2);
	fill(w, 6);
	CHECK_EQ(peak(one), 6);
	/* Another one's reset takes nothing away. */
	drain(w);
	fill(w, 1);
	reset(two);
	CHECK_EQ(peak(two), 1);
	CHECK_EQ(peak(one), 6);
	drain(w);
	fill(w, 3);
	CHECK_EQ(peak(two), 3);
	CHECK_EQ(peak(one), 6);
	reset(one);
	CHECK_EQ(peak(one), 3);
	CHECK_EQ(peak(two), 3);
	close(one);
	CHECK_EQ(peak(two), 3);
	one = peak_open(cg);
	CHECK_EQ(peak(one), 9);
}

static void higher_price_lifts_the_peak(void)
{
	int w, cg = tenant(&w);

	fill(w, 2);
	REQUIRE_OK(cg_write(cg, "brumm.price", "lookup 5ms"));
	CHECK_EQ(cg_number(cg, "brumm.current"), 10000);
	CHECK_EQ(cg_number(cg, "brumm.peak"), 10000);
	REQUIRE_OK(cg_write(cg, "brumm.price", "lookup 1us"));
	CHECK_EQ(cg_number(cg, "brumm.current"), 2);
	CHECK_EQ(cg_number(cg, "brumm.peak"), 10000);
}

static void refused_leaves_no_peak(void)
{
	int w, cg = tenant(&w), low = cg_make("a/b"), v = win_open_in(low);

	REQUIRE_OK(cg_write(cg, "brumm.max", "1ms"));
	fill(w, 1);
	CHECK_RET(dev_alloc(v, 0, 1), -EDQUOT);
	CHECK_EQ(cg_number(low, "brumm.peak"), 0);
	CHECK_EQ(cg_number(cg, "brumm.peak"), 1000);
}

static void many_watchers(void)
{
	int w, cg = tenant(&w), fd[500], i;

	for (i = 0; i < 500; i++) {
		fd[i] = peak_open(cg);
		reset(fd[i]);
	}
	fill(w, 4);
	for (i = 0; i < 500; i += 2)
		close(fd[i]);
	drain(w);
	reset(fd[1]);
	for (i = 1; i < 500; i += 2)
		CHECK_EQ(peak(fd[i]), i == 1 ? 0 : 4);
}

/* kernfs closes the file before the cgroup goes. */
static void outlives_the_cgroup(void)
{
	int w, cg = tenant(&w), fd = peak_open(cg);
	char text[40];

	reset(fd);
	close(w);
	cg_remove("a");
	CHECK(pread(fd, text, sizeof(text), 0) < 0 && errno == ENODEV);
	CHECK(write(fd, "1", 1) < 0 && errno == ENODEV);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "the peak stays", peak_stays },
	{ "a reset is of the open file", reset_is_of_the_file },
	{ "a higher price lifts the peak", higher_price_lifts_the_peak },
	{ "what is refused leaves no peak", refused_leaves_no_peak },
	{ "there may be many watchers", many_watchers },
	{ "an open peak outlives the cgroup", outlives_the_cgroup },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
