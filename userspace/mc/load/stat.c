// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "stat.h"

#define PATIENCE	(2 * NSEC)
#define SLEEPS		64
#define SLEEP		200000u		/* ns */

/* ---- servers ------------------------------------------------------------- */

/* The whole answer to "stats", terminated; false: none. */
static bool ask(const struct server *server, char *text, size_t size)
{
	uint64_t until = cli_now() + PATIENCE;
	struct pollfd p = { .events = POLLIN };
	size_t have = 0;
	ssize_t n = 1;

	p.fd = socket(server->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p.fd < 0)
		return false;
	*text = '\0';
	if (!connect(p.fd, (const struct sockaddr *)&server->addr, server->len) &&
	    send(p.fd, "stats\r\n", 7, MSG_NOSIGNAL) == 7) {
		while (n > 0 && !strstr(text, "END\r\n") && cli_now() < until &&
		       have < size - 1 && !cli_signal()) {
			if (poll(&p, 1, 100) <= 0)
				continue;
			n = recv(p.fd, text + have, size - 1 - have, 0);
			have += n > 0 ? (size_t)n : 0;
			text[have] = '\0';
		}
	}
	close(p.fd);
	return strstr(text, "END\r\n");
}

static int64_t us(const char *seconds)
{
	return (int64_t)(strtod(seconds, NULL) * 1e6 + 0.5);
}

static void take_stat(struct server_stats *s, const char *key, const char *value)
{
	const struct {
		const char *key;
		int64_t *to;
	} known[] = {
		{ "pid", &s->pid }, { "uptime", &s->uptime },
		{ "evictions", &s->evictions }, { "curr_items", &s->items },
		{ "threads", &s->threads }, { "hash_is_expanding", &s->expanding },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(key, known[i].key))
			*known[i].to = strtoll(value, NULL, 10);
	}
	if (!strcmp(key, "version"))
		snprintf(s->version, sizeof(s->version), "%s", value);
	if (!strcmp(key, "rusage_user") || !strcmp(key, "rusage_system"))
		s->rusage_us = (s->rusage_us < 0 ? 0 : s->rusage_us) + us(value);
}

void server_stats(const struct server *server, struct server_stats *s)
{
	char text[16384], *rest = text, *line, key[64], value[64];

	*s = (struct server_stats){
		.pid = -1, .uptime = -1, .evictions = -1, .items = -1,
		.threads = -1, .expanding = -1, .rusage_us = -1,
	};
	/* An answer by UDP takes several packets, of which one may be lost. */
	if (server->transport == TRANSPORT_UDP || !ask(server, text, sizeof(text)))
		return;
	s->known = true;
	while ((line = strsep(&rest, "\n"))) {
		if (sscanf(line, "STAT %63s %63s", key, value) == 2)
			take_stat(s, key, value);
	}
}

static json_t *int_or_null(int64_t v)
{
	return v < 0 ? json_null() : json_integer(v);
}

json_t *server_stats_json(const struct server_stats *s)
{
	if (!s->known)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}",
			 "pid", int_or_null(s->pid),
			 "uptime", int_or_null(s->uptime),
			 "evictions", int_or_null(s->evictions),
			 "curr_items", int_or_null(s->items),
			 "threads", int_or_null(s->threads),
			 "hash_is_expanding", int_or_null(s->expanding),
			 "rusage_us", int_or_null(s->rusage_us),
			 "version", s->version);
}

/* ---- this machine -------------------------------------------------------- */

int cpu_time(struct cpu_time *t)
{
	unsigned long long v[8] = { 0 };
	FILE *f = fopen("/proc/stat", "re");
	int i, n = 0;

	*t = (struct cpu_time){ 0, 0 };
	if (!f)
		return -errno;
	if (!fscanf(f, "cpu"))
		while (n < 8 && fscanf(f, "%llu", &v[n]) == 1)
			n++;
	fclose(f);
	for (i = 0; i < n; i++)
		t->all += v[i];
	t->steal = v[7];
	return n == 8 ? 0 : -ENODATA;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void timer_overshoot(uint64_t *p50, uint64_t *p99)
{
	uint64_t late[SLEEPS], until, now;
	int i, slack = prctl(PR_GET_TIMERSLACK);
	struct timespec ts;

	prctl(PR_SET_TIMERSLACK, 1UL);
	for (i = 0; i < SLEEPS; i++) {
		until = cli_now() + SLEEP;
		ts.tv_sec = (time_t)(until / NSEC);
		ts.tv_nsec = (long)(until % NSEC);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		now = cli_now();
		late[i] = now > until ? now - until : 0;
	}
	prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0UL);
	qsort(late, SLEEPS, sizeof(*late), by_value);
	*p50 = late[SLEEPS / 2];
	*p99 = late[SLEEPS - 1];
}

void clock_pair(uint64_t *mono, uint64_t *raw)
{
	uint64_t best = UINT64_MAX, before, after;
	struct timespec ts;
	int i;

	/* The pair that was read with the least between. */
	for (i = 0; i < 8; i++) {
		before = cli_now();
		clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		after = cli_now();
		if (after - before >= best)
			continue;
		best = after - before;
		*mono = before + best / 2;
		*raw = (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
	}
}
