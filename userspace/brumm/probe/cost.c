// SPDX-License-Identifier: GPL-2.0
/* What the probe itself costs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <brumm/brumm.h>

#include "../cli.h"
#include "internal.h"

/* Turns of attached, not, not, attached: what drifts concerns both alike. */
#define TURNS	4
#define CALLS	500

/* Mean time of an INFO, ns; it has one pair of events. */
static int call_ns(int fd, double *ns)
{
	struct brumm_info info = { .size = sizeof(info) };
	uint64_t start = 0;
	int i;

	/* Code that was just patched is slow at first. */
	for (i = -10; i < CALLS; i++) {
		if (!i)
			start = cli_now();
		if (ioctl(fd, BRUMM_IOC_INFO, &info))
			return -errno;
	}
	*ns = (double)(cli_now() - start) / CALLS;
	return 0;
}

static int calls_detached(struct probe *p, int fd, double ns[2])
{
	int err, again;

	probe_detach(p);
	err = call_ns(fd, &ns[0]);
	if (!err)
		err = call_ns(fd, &ns[1]);
	again = probe_attach(p);
	return err ? err : again;
}

static int measure(struct probe *p, int fd, struct probe_cost *c)
{
	double diff[TURNS], on[2], off[2];
	struct summary s;
	unsigned int i;
	int err = 0;

	for (i = 0; i < TURNS && !err; i++) {
		err = call_ns(fd, &on[0]);
		if (!err)
			err = calls_detached(p, fd, off);
		if (!err)
			err = call_ns(fd, &on[1]);
		diff[i] = (on[0] + on[1] - off[0] - off[1]) / 2;
	}
	if (err)
		return err;
	summarise(diff, TURNS, &s);
	c->pair = s.mean;
	c->pair_error = s.error;
	return 0;
}

int probe_cost(struct probe *p, struct probe_cost *c)
{
	int fd = open(BRUMM_DEVICE, O_RDWR | O_CLOEXEC), err;
	struct probe_result r;

	if (fd < 0)
		return -errno;
	err = measure(p, fd, c);
	close(fd);
	if (!err)
		err = probe_read(p, &r);
	if (!err)
		c->inside = r.op[EVENT_EMPTY].time;
	return err;
}
