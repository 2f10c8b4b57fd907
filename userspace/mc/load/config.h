/* SPDX-License-Identifier: GPL-2.0 */
/* What a run is asked to do: the options, checked. */
#ifndef BRUMM_MC_CONFIG_H
#define BRUMM_MC_CONFIG_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "model.h"

#define MAX_THRESHOLDS	64
#define MAX_SERVERS	64
#define MAX_THREADS	256
#define MAX_MULTIGET	100
#define NSEC		1000000000ull

enum transport {
	TRANSPORT_TCP,
	TRANSPORT_UNIX,
	TRANSPORT_UDP,
};

struct server {
	char name[128];		/* "tcp:host:port", as it is printed */
	enum transport transport;
	struct sockaddr_storage addr;
	socklen_t len;
};

/**
 * struct config - all options of a run
 * @rate: requests a second over all ranks; 0: a closed loop as fast as it goes
 * @connections: to each server, of each rank
 * @depth: requests that a connection of a closed loop has under way
 * @fanout: servers that each request goes to
 * @hedge_quantile: send a second copy after this quantile of the warm-up; 0: see
 *	@hedge
 * @hedge: the same after a time, ns; UINT64_MAX: never
 * @spin: poll instead of sleeping for so long before a request is due, ns;
 *	UINT64_MAX: as long as sleeps are late here
 * @pinned: threads are, in turn, to @cpus
 * @attribute: tell where the time of requests went that took longer, ns; 0: of none
 * @attribute_ring: room for records, bytes; 0: the default
 */
struct config {
	struct server server[MAX_SERVERS];
	unsigned int servers;
	double rate;
	bool closed;
	enum gap_kind arrivals;
	uint64_t duration, warmup, timeout, grace, interval, spin;
	uint64_t seed;
	unsigned int threads, connections, depth;
	bool pinned;
	cpu_set_t cpus;
	bool text;
	uint32_t keys;
	struct size_model key_size, value_size;
	double get_ratio;
	unsigned int multiget, fanout;
	double hedge_quantile;
	uint64_t hedge;
	const char *hedge_text;
	uint64_t threshold[MAX_THRESHOLDS];
	unsigned int thresholds;
	bool fill, json, mpi, no_mpi;
	const char *log, *output, *announce, *netns;
	uint64_t attribute;
	uint32_t attribute_ring;
	const char *attribute_log, *attribute_way;
};

/* Parses the command line; ends the program if it is not one. */
void config_parse(struct config *c, int argc, char **argv);

/* "tcp:HOST:PORT" and the like, resolved; says what is wrong, -EINVAL. */
int server_parse(const char *text, struct server *s);
/* Of TCP or UDP. */
uint16_t server_port(const struct server *s);

/* For results; NULL: no memory. @hedge_ns: after how long, as it was used. */
json_t *config_json(const struct config *c, uint64_t hedge_ns, uint64_t spin_ns);

#endif /* BRUMM_MC_CONFIG_H */
