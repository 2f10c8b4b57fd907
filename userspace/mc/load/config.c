// SPDX-License-Identifier: GPL-2.0
/* The options of brumm mc load. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "../attribute/record.h"
#include "config.h"

#define MAX_RING	(1u << 30)

enum {
	OPT_RATE = 'r', OPT_DURATION = 'd', OPT_CONNECTIONS = 'c',
	OPT_THREADS = 't', OPT_SEED = 's', OPT_JSON = 'j', OPT_OUTPUT = 'o',
	OPT_CLOSED = 0x100, OPT_DEPTH, OPT_ARRIVALS, OPT_WARMUP, OPT_TIMEOUT,
	OPT_GRACE, OPT_INTERVAL, OPT_SPIN, OPT_CPUS, OPT_TEXT, OPT_KEYS,
	OPT_KEY_SIZE, OPT_VALUE_SIZE, OPT_GETS, OPT_MULTIGET, OPT_FANOUT,
	OPT_HEDGE, OPT_THRESHOLDS, OPT_LOG, OPT_NO_FILL, OPT_NETNS, OPT_MPI,
	OPT_NO_MPI, OPT_ANNOUNCE, OPT_ATTRIBUTE, OPT_ATTRIBUTE_LOG,
	OPT_ATTRIBUTE_RING, OPT_ATTRIBUTE_WAY,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "How many requests, and when:", 1 },
	{ "rate", OPT_RATE, "N", 0, "requests a second, of all ranks (1000)", 1 },
	{ "arrivals", OPT_ARRIVALS, "MODEL", 0, "gaps between them: exponential (default), fixed, or etc", 1 },
	{ "duration", OPT_DURATION, "TIME", 0, "length of the window (10s)", 1 },
	{ "warmup", OPT_WARMUP, "TIME", 0, "the same load before it (1s)", 1 },
	{ "timeout", OPT_TIMEOUT, "TIME", 0, "wait for an answer so long (2s)", 1 },
	{ "grace", OPT_GRACE, "TIME", 0, "await answers after the window so long (1s)", 1 },
	{ "closed", OPT_CLOSED, NULL, 0, "for comparison: a connection waits for its answer before it sends the next request; without --rate as fast as it goes", 1 },
	{ "depth", OPT_DEPTH, "N", 0, "of a closed loop: requests that a connection has under way (1)", 1 },
	{ "seed", OPT_SEED, "N", 0, "of all that is random (1)", 1 },
	{ NULL, 0, NULL, 0, "What they are:", 2 },
	{ "keys", OPT_KEYS, "N", 0, "different keys (10000)", 2 },
	{ "key-size", OPT_KEY_SIZE, "N|A-B|etc", 0, "bytes of a key (etc)", 2 },
	{ "value-size", OPT_VALUE_SIZE, "N|A-B|etc", 0, "bytes of a value (etc)", 2 },
	{ "get-ratio", OPT_GETS, "SHARE", 0, "gets, the others are sets (0.9)", 2 },
	{ "multiget", OPT_MULTIGET, "N", 0, "keys that a get asks for (1)", 2 },
	{ "text", OPT_TEXT, NULL, 0, "the old text protocol, not meta commands", 2 },
	{ "no-fill", OPT_NO_FILL, NULL, 0, "do not store all keys first", 2 },
	{ NULL, 0, NULL, 0, "Where they go:", 3 },
	{ "connections", OPT_CONNECTIONS, "N", 0, "to each server (8)", 3 },
	{ "fanout", OPT_FANOUT, "K", 0, "each request goes to K of the servers, and is answered when all have (1)", 3 },
	{ "hedge", OPT_HEDGE, "TIME|pQ", 0, "send a second copy by another connection, to another server if there is one, after a time, or after a percentile of the warm-up, as p99", 3 },
	{ NULL, 0, NULL, 0, "The client:", 4 },
	{ "threads", OPT_THREADS, "N", 0, "that send and receive (1)", 4 },
	{ "cpus", OPT_CPUS, "LIST", 0, "pin them in turn, as in 0,2-3", 4 },
	{ "spin", OPT_SPIN, "TIME", 0, "poll for so long before a request is due (as long as sleeps are late here)", 4 },
	{ "netns", OPT_NETNS, "NAME|PATH", 0, "connect from this network namespace", 4 },
	{ "mpi", OPT_MPI, NULL, 0, "be a rank of an MPI program (as under mpirun)", 4 },
	{ "no-mpi", OPT_NO_MPI, NULL, 0, "do not, even under mpirun", 4 },
	{ NULL, 0, NULL, 0, "Results:", 5 },
	{ "thresholds", OPT_THRESHOLDS, "TIME,...", 0, "count what takes longer (100us, 200us, ... 1ms, 10ms)", 5 },
	{ "interval", OPT_INTERVAL, "TIME", 0, "of the time line (100ms)", 5 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 5 },
	{ "output", OPT_OUTPUT, "FILE", 0, "JSON into a file, too", 5 },
	{ "log", OPT_LOG, "FILE", 0, "every request into a file, as text if it ends in .csv", 5 },
	{ "announce", OPT_ANNOUNCE, "FILE", 0, "write when the window begins into a file, as soon as that is fixed (ns of CLOCK_MONOTONIC)", 5 },
	{ NULL, 0, NULL, 0, "Who delayed them (needs root, and the servers on this machine):", 6 },
	{ "attribute", OPT_ATTRIBUTE, "TIME", 0, "tell where the time of requests went that took longer, beside normal ones", 6 },
	{ "attribute-log", OPT_ATTRIBUTE_LOG, "FILE", 0, "each of these into a file, as text with commas", 6 },
	{ "attribute-ring", OPT_ATTRIBUTE_RING, "SIZE", 0, "room for records not fetched yet, a power of two (16M)", 6 },
	{ "attribute-way", OPT_ATTRIBUTE_WAY, "WAY", 0, "to attach: tp_btf or raw_tp, with +fentry, +kprobe or nothing (the first that works)", 6 },
	{ 0 },
};

static uint64_t time_arg(struct argp_state *state, const char *arg)
{
	uint64_t ns;

	if (brumm_parse_time(arg, &ns) || ns == BRUMM_NO_LIMIT)
		argp_error(state, "'%s' is not a time, as in 500us, 10ms or 2s", arg);
	return ns;
}

static unsigned int count_arg(struct argp_state *state, const char *arg,
			      unsigned long low, unsigned long high)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || n < low || n > high)
		argp_error(state, "'%s' is not a number from %lu to %lu", arg,
			   low, high);
	return (unsigned int)n;
}

static double real_arg(struct argp_state *state, const char *arg, double low,
		       double high)
{
	char *end;
	double v = strtod(arg, &end);

	if (end == arg || *end || !(v >= low && v <= high))
		argp_error(state, "'%s' is not a number from %g to %g", arg, low,
			   high);
	return v;
}

static void size_arg(struct argp_state *state, const char *arg, uint32_t max,
		     struct size_model *m)
{
	if (size_model_parse(arg, max, m))
		argp_error(state, "'%s' is not a size: N, A-B (from 1 to %u bytes) or etc",
			   arg, max);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void thresholds_arg(struct argp_state *state, const char *arg,
			   struct config *c)
{
	char *copy = strdup(arg), *rest = copy, *one;

	c->thresholds = 0;
	while (copy && (one = strsep(&rest, ","))) {
		if (c->thresholds == MAX_THRESHOLDS)
			argp_error(state, "at most %d thresholds", MAX_THRESHOLDS);
		c->threshold[c->thresholds++] = time_arg(state, one);
	}
	free(copy);
	qsort(c->threshold, c->thresholds, sizeof(*c->threshold), by_value);
}

static void cpus_arg(struct argp_state *state, const char *arg, struct config *c)
{
	unsigned long first, last;
	char *end;

	CPU_ZERO(&c->cpus);
	c->pinned = true;
	do {
		first = last = strtoul(arg, &end, 10);
		if (end != arg && *end == '-') {
			arg = end + 1;
			last = strtoul(arg, &end, 10);
		}
		if (end == arg || (*end && *end != ',') || last < first ||
		    last >= CPU_SETSIZE)
			argp_error(state, "not a list of CPUs, as in 0,2-3");
		for (; first <= last; first++)
			CPU_SET((int)first, &c->cpus);
		arg = end + 1;
	} while (*end);
}

static uint32_t ring_arg(struct argp_state *state, const char *arg)
{
	uint64_t v;

	if (brumm_parse_size(arg, &v) || v < 4096 || v > MAX_RING || v & (v - 1))
		argp_error(state, "'%s' is not a power of two from 4K to 1G", arg);
	return (uint32_t)v;
}

static void way_arg(struct argp_state *state, const char *arg, struct config *c)
{
	const char *const *way = recorder_ways;

	while (*way && strcmp(*way, arg))
		way++;
	if (!*way)
		argp_error(state, "'%s' is not a way to attach", arg);
	c->attribute_way = *way;
}

static void hedge_arg(struct argp_state *state, const char *arg, struct config *c)
{
	c->hedge_text = arg;
	c->hedge_quantile = 0;
	if (*arg == 'p')
		c->hedge_quantile = real_arg(state, arg + 1, 1, 99.999) / 100;
	else
		c->hedge = time_arg(state, arg);
}

static error_t parse_load(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case OPT_RATE:
		c->rate = real_arg(state, arg, 0.1, 1e8);
		return 0;
	case OPT_CLOSED:
		c->closed = true;
		return 0;
	case OPT_DEPTH:
		c->depth = count_arg(state, arg, 1, 1000);
		return 0;
	case OPT_ARRIVALS:
		if (gap_kind_parse(arg, &c->arrivals))
			argp_error(state, "arrivals are exponential, fixed or etc");
		return 0;
	case OPT_DURATION:
		c->duration = time_arg(state, arg);
		return 0;
	case OPT_WARMUP:
		c->warmup = time_arg(state, arg);
		return 0;
	case OPT_TIMEOUT:
		c->timeout = time_arg(state, arg);
		return 0;
	case OPT_GRACE:
		c->grace = time_arg(state, arg);
		return 0;
	case OPT_SEED:
		c->seed = count_arg(state, arg, 0, UINT32_MAX);
		return 0;
	case OPT_KEYS:
		c->keys = count_arg(state, arg, 1, 100000000);
		return 0;
	case OPT_KEY_SIZE:
		size_arg(state, arg, MODEL_MAX_KEY, &c->key_size);
		return 0;
	case OPT_VALUE_SIZE:
		size_arg(state, arg, MODEL_MAX_VALUE, &c->value_size);
		return 0;
	case OPT_GETS:
		c->get_ratio = real_arg(state, arg, 0, 1);
		return 0;
	case OPT_MULTIGET:
		c->multiget = count_arg(state, arg, 1, MAX_MULTIGET);
		return 0;
	case OPT_TEXT:
		c->text = true;
		return 0;
	case OPT_NO_FILL:
		c->fill = false;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* memcached takes a request by UDP in one packet only. */
static void check_udp(struct argp_state *state, const struct config *c)
{
	unsigned int i, key = c->key_size.kind == SIZE_ETC ? MODEL_MAX_KEY :
							    c->key_size.high;

	for (i = 0; i < c->servers; i++) {
		if (c->server[i].transport != TRANSPORT_UDP)
			continue;
		if (c->value_size.kind == SIZE_ETC || c->value_size.high > 1000)
			argp_error(state, "by UDP a value has at most 1000 bytes; see --value-size");
		if (c->multiget > 1 && !c->text)
			argp_error(state, "by UDP --multiget takes --text");
		if ((key + 32) * c->multiget > 1300)
			argp_error(state, "by UDP a request has to fit into a packet; see --key-size and --multiget");
	}
}

/* Connections are told apart by their ports. */
static bool is_alike(const struct server *a, const struct server *b)
{
	return server_port(a) == server_port(b) &&
	       (a->len != b->len || memcmp(&a->addr, &b->addr, a->len));
}

static void check_attribute(struct argp_state *state, const struct config *c)
{
	unsigned int i, k;

	if (!c->attribute && (c->attribute_log || c->attribute_ring || c->attribute_way))
		argp_error(state, "--attribute=TIME: of requests that take longer than what?");
	if (c->attribute && c->mpi)
		argp_error(state, "--attribute is for one client, without MPI");
	for (i = 0; i < c->servers && c->attribute; i++)
		if (c->server[i].transport != TRANSPORT_TCP)
			argp_error(state, "--attribute follows requests by TCP only");
	for (i = 0; i < c->servers && c->attribute; i++)
		for (k = 0; k < i; k++)
			if (is_alike(&c->server[i], &c->server[k]))
				argp_error(state, "--attribute tells servers apart by their ports: %s and %s have the same",
					   c->server[k].name, c->server[i].name);
}

static void check(struct argp_state *state, struct config *c)
{
	if (!c->servers)
		argp_error(state, "which server? HOST:PORT, udp:HOST:PORT or unix:PATH");
	if (c->fanout > c->servers)
		argp_error(state, "--fanout=%u takes as many servers", c->fanout);
	if (c->depth && !c->closed)
		argp_error(state, "--depth is of a closed loop; an open one sends when a request is due");
	if (c->hedge_text && c->closed)
		argp_error(state, "--hedge takes an open loop");
	if (c->hedge_text && c->servers == 1 && c->connections < 2 * c->threads)
		argp_error(state, "--hedge takes two servers, or two connections a thread");
	if (c->hedge_quantile > 0 && !c->warmup)
		argp_error(state, "--hedge=%s takes a warm-up", c->hedge_text);
	if (c->connections < c->threads)
		argp_error(state, "fewer connections than threads");
	if (c->connections * c->servers > 60000)
		argp_error(state, "more than 60000 connections");
	if (!c->duration || !c->interval || !c->timeout)
		argp_error(state, "duration, interval and timeout cannot be 0");
	if (c->duration / c->interval > 1000000)
		argp_error(state, "more than a million intervals");
	check_udp(state, c);
	check_attribute(state, c);
	if (c->mpi && c->no_mpi)
		argp_error(state, "--mpi and --no-mpi");
	c->depth = c->depth ? c->depth : 1;
	if (!c->closed && !c->rate)
		c->rate = 1000;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case OPT_CONNECTIONS:
		c->connections = count_arg(state, arg, 1, 10000);
		return 0;
	case OPT_FANOUT:
		c->fanout = count_arg(state, arg, 1, MAX_SERVERS);
		return 0;
	case OPT_HEDGE:
		hedge_arg(state, arg, c);
		return 0;
	case OPT_THREADS:
		c->threads = count_arg(state, arg, 1, MAX_THREADS);
		return 0;
	case OPT_CPUS:
		cpus_arg(state, arg, c);
		return 0;
	case OPT_SPIN:
		c->spin = time_arg(state, arg);
		return 0;
	case OPT_NETNS:
		c->netns = arg;
		return 0;
	case OPT_MPI:
		c->mpi = true;
		return 0;
	case OPT_NO_MPI:
		c->no_mpi = true;
		return 0;
	case OPT_THRESHOLDS:
		thresholds_arg(state, arg, c);
		return 0;
	case OPT_INTERVAL:
		c->interval = time_arg(state, arg);
		return 0;
	case OPT_JSON:
		c->json = true;
		return 0;
	case OPT_OUTPUT:
		c->output = arg;
		return 0;
	case OPT_LOG:
		c->log = arg;
		return 0;
	case OPT_ANNOUNCE:
		c->announce = arg;
		return 0;
	case OPT_ATTRIBUTE:
		c->attribute = time_arg(state, arg);
		return 0;
	case OPT_ATTRIBUTE_LOG:
		c->attribute_log = arg;
		return 0;
	case OPT_ATTRIBUTE_RING:
		c->attribute_ring = ring_arg(state, arg);
		return 0;
	case OPT_ATTRIBUTE_WAY:
		way_arg(state, arg, c);
		return 0;
	case ARGP_KEY_ARG:
		if (c->servers == MAX_SERVERS)
			argp_error(state, "at most %d servers", MAX_SERVERS);
		if (server_parse(arg, &c->server[c->servers++]))
			exit(EXIT_ERROR);
		return 0;
	case ARGP_KEY_END:
		check(state, c);
		return 0;
	}
	return parse_load(key, arg, state);
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "SERVER...",
	.doc = "Send requests to memcached at times that are fixed before the run, "
	       "whatever becomes of those before (an open loop), and time every one: "
	       "from when it was to be sent, and from when it was. SERVER is HOST:PORT, "
	       "udp:HOST:PORT or unix:PATH."
	       "\vA request without an answer stays in the count. Gates tell whether "
	       "the client, the clock and the servers were what the figures take for "
	       "granted; the exit code is 2 if one failed. Under mpirun, each rank "
	       "is a client, and rank 0 prints what all have counted.",
};

void config_parse(struct config *c, int argc, char **argv)
{
	unsigned int i;

	*c = (struct config){
		.duration = 10 * NSEC, .warmup = NSEC, .timeout = 2 * NSEC,
		.grace = NSEC, .interval = NSEC / 10, .spin = UINT64_MAX,
		.seed = 1, .threads = 1, .connections = 8, .keys = 10000,
		.key_size = { SIZE_ETC, 0, 0 }, .value_size = { SIZE_ETC, 0, 0 },
		.get_ratio = 0.9, .multiget = 1, .fanout = 1, .hedge = UINT64_MAX,
		.thresholds = 11, .fill = true,
	};
	for (i = 0; i < 10; i++)
		c->threshold[i] = (i + 1) * 100000;
	c->threshold[10] = 10000000;
	cli_parse(&argp, argc, argv, c);
}

static json_t *thresholds_json(const struct config *c)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < c->thresholds; i++)
		json_array_append_new(list,
			json_integer((json_int_t)c->threshold[i]));
	return list;
}

static json_t *servers_json(const struct config *c)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < c->servers; i++)
		json_array_append_new(list, json_string(c->server[i].name));
	return list;
}

static json_t *cpus_json(const struct config *c)
{
	json_t *list;
	int cpu;

	if (!c->pinned)
		return json_null();
	list = json_array();
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &c->cpus))
			json_array_append_new(list, json_integer(cpu));
	}
	return list;
}

json_t *config_json(const struct config *c, uint64_t hedge_ns, uint64_t spin_ns)
{
	char key[32], value[32];
	json_t *j;

	j = json_pack("{s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:o, s:i, s:i, s:s}",
		      "servers", servers_json(c),
		      "rate", c->rate > 0 ? json_real(c->rate) : json_null(),
		      "loop", c->closed ? "closed" : "open",
		      "arrivals", gap_kind_name(c->arrivals),
		      "duration_ns", (json_int_t)c->duration,
		      "warmup_ns", (json_int_t)c->warmup,
		      "timeout_ns", (json_int_t)c->timeout,
		      "grace_ns", (json_int_t)c->grace,
		      "interval_ns", (json_int_t)c->interval,
		      "seed", (json_int_t)c->seed,
		      "threads", (int)c->threads, "cpus", cpus_json(c),
		      "connections", (int)c->connections, "depth", (int)c->depth,
		      "protocol", c->text ? "text" : "meta");
	if (!j)
		return NULL;
	json_object_update_new(j, json_pack("{s:I, s:s, s:s, s:f, s:i, s:i, s:b, s:o, s:o, s:I, s:o, s:o}",
		"keys", (json_int_t)c->keys,
		"key_size", size_model_name(&c->key_size, key),
		"value_size", size_model_name(&c->value_size, value),
		"get_ratio", c->get_ratio, "multiget", (int)c->multiget,
		"fanout", (int)c->fanout, "fill", c->fill,
		"hedge_ns", hedge_ns == UINT64_MAX ? json_null() :
			    json_integer((json_int_t)hedge_ns),
		"hedge_after", c->hedge_text ? json_string(c->hedge_text) :
			       json_null(),
		"spin_ns", (json_int_t)spin_ns,
		"netns", c->netns ? json_string(c->netns) : json_null(),
		"thresholds_ns", thresholds_json(c)));
	json_object_set_new(j, "attribute_ns", c->attribute ?
			    json_integer((json_int_t)c->attribute) : json_null());
	return j;
}
