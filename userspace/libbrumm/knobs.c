// SPDX-License-Identifier: GPL-2.0
/* The brumm.* files of a cgroup. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static int get_time(int group, const char *name, uint64_t *ns)
{
	char text[KNOB_MAX];
	int err = knob_read(group, name, text, sizeof(text));

	return err ? err : brumm_parse_time(text, ns);
}

static int set_time(int group, const char *name, uint64_t ns)
{
	char text[32];

	if (ns == BRUMM_NO_LIMIT)
		strcpy(text, "max");
	else
		snprintf(text, sizeof(text), "%" PRIu64 "ns", ns);
	return knob_write(group, name, text);
}

PUBLIC int brumm_group_max(int group, uint64_t *ns)
{
	return get_time(group, "brumm.max", ns);
}

PUBLIC int brumm_group_set_max(int group, uint64_t ns)
{
	return set_time(group, "brumm.max", ns);
}

PUBLIC int brumm_group_high(int group, uint64_t *ns)
{
	return get_time(group, "brumm.high", ns);
}

PUBLIC int brumm_group_set_high(int group, uint64_t ns)
{
	return set_time(group, "brumm.high", ns);
}

PUBLIC int brumm_group_current(int group, uint64_t *ns)
{
	int err = brumm_group_stat_get(group, "usage_ns", ns);

	/* The file brumm.current has whole microseconds. */
	return err == -ENODATA ? get_time(group, "brumm.current", ns) : err;
}

PUBLIC int brumm_group_peak(int group, uint64_t *ns)
{
	return get_time(group, "brumm.peak", ns);
}

PUBLIC int brumm_peak_open(int group)
{
	int fd = openat(group, "brumm.peak", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

PUBLIC int brumm_peak_reset(int peak)
{
	ssize_t n = pwrite(peak, "reset", 5, 0);

	return n < 0 ? -errno : 0;
}

static int reread(int fd, char *buf, size_t size)
{
	int ret;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	ret = fd_read_text(fd, buf, size);
	return ret < 0 ? ret : 0;
}

PUBLIC int brumm_peak_read(int peak, uint64_t *ns)
{
	char text[KNOB_MAX];
	int err = reread(peak, text, sizeof(text));

	return err ? err : brumm_parse_time(text, ns);
}

PUBLIC int brumm_group_lock(int group, bool lock)
{
	return knob_write(group, "brumm.lock", lock ? "1" : "0");
}

PUBLIC int brumm_group_locked(int group)
{
	char text[KNOB_MAX];
	uint64_t v;
	int err = knob_read(group, "brumm.lock", text, sizeof(text));

	if (!err)
		err = parse_u64(text, &v);
	return err ? err : !!v;
}

PUBLIC int brumm_group_reclaim(int group)
{
	return knob_write(group, "brumm.reclaim", "1");
}

PUBLIC int brumm_group_kill(int group)
{
	return knob_write(group, "cgroup.kill", "1");
}

PUBLIC int brumm_group_stat(int group, brumm_each_fn each, void *arg)
{
	char text[KNOB_MAX];
	int err = knob_read(group, "brumm.stat", text, sizeof(text));

	return err ? err : parse_flat(text, each, arg);
}

PUBLIC int brumm_group_stat_get(int group, const char *key, uint64_t *value)
{
	return brumm_group_number(group, "brumm.stat", key, value);
}

static int one_event(const char *key, uint64_t value, void *arg)
{
	struct brumm_group_events *e = arg;

	if (!strcmp(key, "max"))
		e->max = value;
	else if (!strcmp(key, "high"))
		e->high = value;
	else if (!strcmp(key, "locked"))
		e->locked = value;
	else if (!strcmp(key, "over"))
		e->over = value;
	return 0;
}

static const char *events_file(unsigned int flags)
{
	return flags & BRUMM_EVENTS_LOCAL ? "brumm.events.local" :
					    "brumm.events";
}

PUBLIC int brumm_group_events(int group, unsigned int flags,
			      struct brumm_group_events *events)
{
	char text[KNOB_MAX];
	int err;

	if (flags & ~BRUMM_EVENTS_LOCAL)
		return -EINVAL;
	*events = (struct brumm_group_events){ 0 };
	err = knob_read(group, events_file(flags), text, sizeof(text));
	return err ? err : parse_flat(text, one_event, events);
}

PUBLIC int brumm_watch_open(int group, unsigned int flags)
{
	struct brumm_group_events events;
	int fd, err;

	if (flags & ~BRUMM_EVENTS_LOCAL)
		return -EINVAL;
	fd = openat(group, events_file(flags), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* A poll tells of what happened since the last read. */
	err = brumm_watch_read(fd, &events);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

PUBLIC int brumm_watch_read(int watch, struct brumm_group_events *events)
{
	char text[KNOB_MAX];
	int err = reread(watch, text, sizeof(text));

	*events = (struct brumm_group_events){ 0 };
	return err ? err : parse_flat(text, one_event, events);
}

PUBLIC int brumm_watch_wait(int watch, int timeout_ms,
			    struct brumm_group_events *events)
{
	struct pollfd p = { .fd = watch, .events = POLLPRI };
	int ret = poll(&p, 1, timeout_ms);
	int err;

	if (ret < 0)
		return -errno;
	err = brumm_watch_read(watch, events);
	return err ? err : ret && (p.revents & POLLPRI);
}

struct prices {
	brumm_each_fn each;
	void *arg;
	bool own;
};

static int one_price(const char *key, uint64_t value, void *arg)
{
	struct prices *p = arg;

	if (strcmp(key, "own"))
		return p->each ? p->each(key, value, p->arg) : 0;
	p->own = value;
	return 0;
}

PUBLIC int brumm_group_price(int group, brumm_each_fn each, void *arg)
{
	struct prices p = { .each = each, .arg = arg };
	char text[KNOB_MAX];
	int err = knob_read(group, "brumm.price", text, sizeof(text));

	if (!err)
		err = parse_flat(text, one_price, &p);
	return err ? err : p.own;
}

PUBLIC int brumm_group_set_prices(int group, const struct brumm_price *prices,
				  unsigned int n)
{
	char text[KNOB_MAX];
	size_t used = 0;
	unsigned int i;
	int len;

	for (i = 0; i < n; i++) {
		len = snprintf(text + used, sizeof(text) - used,
			       "%s %" PRIu64 "\n", prices[i].kind,
			       prices[i].ns);
		if (len < 0 || (size_t)len >= sizeof(text) - used ||
		    strpbrk(prices[i].kind, " \n"))
			return -EINVAL;
		used += (size_t)len;
	}
	return n ? knob_write(group, "brumm.price", text) : 0;
}

PUBLIC int brumm_group_set_price(int group, const char *kind, uint64_t ns)
{
	struct brumm_price price = { .kind = kind, .ns = ns };

	if (!kind)
		return knob_write(group, "brumm.price", "default");
	return brumm_group_set_prices(group, &price, 1);
}
