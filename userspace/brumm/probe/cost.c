// SPDX-License-Identifier: GPL-2.0
/* What the probe itself costs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <brumm/brumm.h>

#include "../cli.h"
#include "internal.h"

/* Turns of attached, not, not, attached: what drifts concerns both alike. */
#define TURNS	4
#define SERIES	25
#define CALLS	20

/*
 * Time of an INFO, ns; it has one pair of events. The median of short series: in
 * one or the other somebody else has the CPU.
 */
static int call_ns(int fd, double *ns)
{
	struct brumm_info info = { .size = sizeof(info) };
	double series[SERIES];
	struct summary s;
	unsigned int i, k;

	for (i = 0; i < SERIES; i++) {
		uint64_t start = cli_now();

		for (k = 0; k < CALLS; k++) {
			if (ioctl(fd, BRUMM_IOC_INFO, &info))
				return -errno;
		}
		series[i] = (double)(cli_now() - start) / CALLS;
	}
	summarise(series, SERIES, &s);
	*ns = s.p50;
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

/* What the pairs of events within an unmap cost it, beyond what they contain. */
static double nested(const struct probe_result *r, double each)
{
	uint64_t pairs = r->op[EVENT_LOOKUP].in_unmap_nr +
			 r->op[EVENT_ZAP].in_unmap_nr +
			 r->op[EVENT_REMOVE].in_unmap_nr;

	return (double)pairs * each;
}

double probe_net(const struct probe_result *r, const struct probe_cost *c,
		 enum event_op op)
{
	const struct summary *s = &r->op[op].time;
	double n = (double)s->n, inside = c->inside.p50, extra = 0;

	if (!s->n)
		return NAN;
	if (op == EVENT_UNMAP)
		extra = nested(r, c->pair);
	else if (op == EVENT_REST)
		extra = nested(r, c->pair - inside);
	return fmax(0, s->mean - inside - extra / n);
}
