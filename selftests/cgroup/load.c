// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: the module comes and goes without a trace while cgroups are made and
 * removed and knobs are read, written, watched and held open; and it is not
 * removed while a window is there. Runs without the module; BRUMM_KO is its
 * file. The runner looks at the kernel afterwards.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cg.h"
#include "dev.h"
#include "knob.h"
#include "proc.h"
#include "tap.h"

static int load(void)
{
	int fd = open(getenv("BRUMM_KO"), O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "brumm", O_NONBLOCK) ? -errno : 0;
}

/* Windows and readers of /sys/module hold it for a moment only. */
static int unload_soon(void)
{
	int tries, ret = 0;

	for (tries = 0; tries < 2000; tries++) {
		ret = unload();
		if (ret != -EWOULDBLOCK)
			break;
		sleep_us(1000);
	}
	return ret;
}

/* Between two steps of a load, so that the loads do not just starve us. */
static void breathe(void)
{
	sleep_us(1000);
}

/* Makes and removes cgroups, with whatever knobs they happen to have. */
static void churn(void *arg)
{
	unsigned int i;
	char name[40], text[4096];
	int cg;

	for (i = 0;; i++) {
		snprintf(name, sizeof(name), "%lu/%u", (uintptr_t)arg, i % 5);
		cg = cg_make(name);
		cg_write(cg, "brumm.max", "5ms");
		cg_read(cg, "brumm.stat", text, sizeof(text));
		cg_write(cg, "brumm.reclaim", "1");
		cg_remove(name);
		close(cg);
		breathe();
	}
}

/* Uses all knobs of a cgroup that stays. */
static void turn(void *arg)
{
	static const char *const knobs[][2] = {
		{ "brumm.max", "7" },		{ "brumm.high", "max" },
		{ "brumm.price", "map 5" },	{ "brumm.price", "default" },
		{ "brumm.lock", "0" },		{ "brumm.reclaim", "1" },
		{ "brumm.peak", "1" },		{ "brumm.events", NULL },
		{ "brumm.events.local", NULL },	{ "brumm.current", NULL },
		{ "brumm.stat", NULL },
	};
	int cg = cg_make("stays");
	char text[4096];
	unsigned int i;

	(void)arg;
	for (i = 0;; i++) {
		const char *const *knob = knobs[i % ARRAY_SIZE(knobs)];

		cg_read(cg, knob[0], text, sizeof(text));
		if (knob[1])
			cg_write(cg, knob[0], knob[1]);
		breathe();
	}
}

/* Has files open, polls them and has a peak of its own when they go. */
static void hold(void *arg)
{
	int cg = cg_make("held");
	struct pollfd p[2];
	char text[200];

	(void)arg;
	for (;;) {
		p[0].fd = openat(cg, "brumm.peak", O_RDWR);
		p[1].fd = openat(cg, "brumm.events", O_RDONLY);
		p[0].events = p[1].events = POLLPRI;
		if (write(p[0].fd, "1", 1) == 1 &&
		    read(p[1].fd, text, sizeof(text)) > 0)
			poll(p, 2, 5000);
		close(p[0].fd);
		close(p[1].fd);
		breathe();
	}
}

/* Opens windows whenever there is a device. */
static void use(void *arg)
{
	int w;

	(void)arg;
	cg_enter(cg_make("used"));
	for (;;) {
		w = open(BRUMM_DEVICE, O_RDWR | O_CLOEXEC);
		if (w >= 0) {
			dev_alloc(w, 0, 4);
			dev_map(w, 0, 4, SELF, 8, RW);
			close(w);
		}
		breathe();
	}
}

static int64_t dying(void)
{
	int root = open(CG_TOP, O_RDONLY | O_DIRECTORY);
	int64_t nr = cg_key(root, "cgroup.stat", "nr_dying_descendants");

	close(root);
	return nr;
}

static void comes_and_goes(void)
{
	static void (*const loads[])(void *) = {
		churn, churn, turn, hold, use,
	};
	const char *text = getenv("BRUMM_ROUNDS");
	unsigned int rounds = text ? strtoul(text, NULL, 10) : 25;
	int64_t before = dying();
	pid_t pid[ARRAY_SIZE(loads)];
	int cg = cg_make("stays"), tries;
	uint64_t start = now_ns(), in = 0, out = 0, then;
	unsigned int i;

	cg_make("held");
	cg_make("used");
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		pid[i] = spawn(loads[i], (void *)(uintptr_t)i);
	for (i = 0; i < rounds; i++) {
		then = now_ns();
		REQUIRE_OK(load());
		in += now_ns() - then;
		CHECK(!faccessat(cg, "brumm.max", F_OK, 0));
		sleep_us(i % 5 * 10000);
		then = now_ns();
		REQUIRE_OK(unload_soon());
		out += now_ns() - then;
		CHECK(faccessat(cg, "brumm.max", F_OK, 0));
		STOP_IF_FAILED();
	}
	tap_diag("%u rounds in %llu s; %llu ms to load, %llu to unload",
		 rounds, (unsigned long long)((now_ns() - start) / 1000000000),
		 (unsigned long long)(in / rounds / 1000000),
		 (unsigned long long)(out / rounds / 1000000));
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		kill_and_reap(pid[i]);
	cg_sweep();
	for (tries = 0; dying() > before && tries < 500; tries++)
		sleep_us(20000);
	CHECK(dying() <= before);
}

static void stays_for_a_window(void)
{
	int w;

	REQUIRE_OK(load());
	w = win_open();
	CHECK_RET(unload(), -EWOULDBLOCK);
	close(w);
	CHECK_OK(unload_soon());
}

/* Charges of removed cgroups, and limits of living ones, go with it. */
static void forgets_everything(void)
{
	int cg, low, w;

	REQUIRE_OK(load());
	cg = priced("t");
	low = cg_make("t/l");
	w = win_open_in(low);
	REQUIRE_OK(dev_alloc(w, 0, 5));
	cg_remove("t/l");
	REQUIRE_OK(cg_write(cg, "brumm.max", "5ms"));
	CHECK_COUNTS(cg, 1, 1, 5);
	close(w);
	REQUIRE_OK(unload_soon());
	REQUIRE_OK(load());
	CHECK_KNOB(cg, "brumm.max", "max");
	CHECK_EQ(cg_key(cg, "brumm.price", "own"), 0);
	REQUIRE_OK(unload_soon());
	cg_sweep();
}

static const struct tap_case cases[] = {
	{ "it comes and goes under load", comes_and_goes, 1000 },
	{ "it stays for an open window", stays_for_a_window },
	{ "it forgets everything", forgets_everything },
};

static const char *module_known(void)
{
	return getenv("BRUMM_KO") ? NULL : "BRUMM_KO is not set";
}

int main(int argc, char **argv)
{
	tap_before_all = module_known;
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
