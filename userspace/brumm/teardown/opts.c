// SPDX-License-Identifier: GPL-2.0
/* Options of what ends a group of processes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "teardown.h"

#define DEFAULT_STEP	1000000u	/* ns */

enum { OPT_LIMIT = 'l', OPT_TIMEOUT = 't', OPT_CPUS = 'c', OPT_PACE = 0x100,
       OPT_SLO };

static const struct argp_option options[] = {
	{ "limit", OPT_LIMIT, "TIME", 0, "exit with 2 if it takes longer (5ms)", 1 },
	{ "timeout", OPT_TIMEOUT, "TIME", 0, "give up waiting after TIME (60s), and say what holds", 1 },
	{ "pace", OPT_PACE, "TIME", OPTION_ARG_OPTIONAL, "kill in steps of TIME (1ms) of CPU time, with rests", 1 },
	{ "slo", OPT_SLO, "TIME", 0, "kill in steps so that a neighbour is delayed by TIME (1ms) at most", 1 },
	{ "cpus", OPT_CPUS, "LIST", 0, "run it on these CPUs only (0-3,7)", 1 },
	{ 0 },
};

static bool read_number(const char **text, int *n)
{
	char *end;
	long v;

	if (**text < '0' || **text > '9')
		return false;
	v = strtol(*text, &end, 10);
	if (v >= CPU_SETSIZE)
		return false;
	*text = end;
	*n = (int)v;
	return true;
}

int parse_cpus(const char *text, cpu_set_t *set)
{
	int from, to;

	CPU_ZERO(set);
	for (;;) {
		if (!read_number(&text, &from))
			return -EINVAL;
		to = from;
		if (*text == '-') {
			text++;
			if (!read_number(&text, &to) || to < from)
				return -EINVAL;
		}
		for (; from <= to; from++)
			CPU_SET(from, set);
		if (!*text || !strcmp(text, "\n"))
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

void format_cpus(const cpu_set_t *set, char *buf, size_t size)
{
	int cpu, from;
	size_t n = 0;

	buf[0] = '\0';
	for (cpu = 0; cpu < CPU_SETSIZE && n < size; cpu++) {
		if (!CPU_ISSET(cpu, set))
			continue;
		for (from = cpu; cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, set); cpu++)
			;
		n += (size_t)snprintf(buf + n, size - n, from == cpu ? "%s%d" : "%s%d-%d",
				      n ? "," : "", from, cpu);
	}
}

static void get_cpus(struct argp_state *state, struct teardown_opts *o,
		     const char *arg)
{
	cpu_set_t may, both;

	if (parse_cpus(arg, &o->cpus))
		argp_error(state, "'%s' is not a list of CPUs, such as 0-3,7", arg);
	CPU_ZERO(&may);
	sched_getaffinity(0, sizeof(may), &may);
	CPU_AND(&both, &may, &o->cpus);
	if (!CPU_COUNT(&both))
		argp_error(state, "none of the CPUs %s may be used here", arg);
	o->cpus = both;
	o->on_cpus = true;
}

static void get_time(struct argp_state *state, const char *arg, bool positive,
		     uint64_t *ns)
{
	if (brumm_parse_time(arg, ns) ||
	    (positive && (!*ns || *ns == BRUMM_NO_LIMIT)))
		argp_error(state, "'%s' is not a time%s", arg,
			   positive ? " to work with, such as 1ms" : "");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct teardown_opts *o = state->input;

	switch (key) {
	case OPT_LIMIT:
		get_time(state, arg, false, &o->limit);
		return 0;
	case OPT_TIMEOUT:
		get_time(state, arg, false, &o->timeout);
		return 0;
	case OPT_PACE:
		o->pace = DEFAULT_STEP;
		if (arg)
			get_time(state, arg, true, &o->pace);
		return 0;
	case OPT_SLO:
		get_time(state, arg, true, &o->slo);
		return 0;
	case OPT_CPUS:
		get_cpus(state, o, arg);
		return 0;
	case ARGP_KEY_END:
		if (o->pace && o->slo)
			argp_error(state, "--pace or --slo, not both");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp teardown_argp = { .options = options, .parser = parse };
