/* SPDX-License-Identifier: GPL-2.0 */
/* The servers of a cell: started, placed, and looked at whether they are there. */
#ifndef BRUMM_MC_SERVERS_H
#define BRUMM_MC_SERVERS_H

#include "child.h"
#include "plan.h"

enum { MAX_INSTANCES = 64 };

/**
 * struct server - one memcached
 * @child: what we started: it, or what it is in
 * @pid: its own
 * @cpus: where it is to be
 * @group: its cgroup, by name; empty: ours
 */
struct server_of_cell {
	struct child child;
	pid_t pid;
	cpu_set_t cpus;
	char group[64];
	unsigned int port;
};

struct servers {
	struct server_of_cell server[MAX_INSTANCES];
	size_t count, fanout;
	char partition[64];	/* the cgroup that is one; empty: none */
};

/*
 * Why this machine cannot run the cell: a line in @why, and true. Nothing is
 * changed but that the root cgroup may pass cpuset on.
 */
bool servers_unfit(const struct spec *s, const struct cell *c, char *why,
		   size_t size);

/* 0, or a negative errno and a line in @why. */
int servers_start(struct servers *v, const struct spec *s, const struct cell *c,
		  char *why, size_t size);
void servers_stop(struct servers *v);

/*
 * What was asked for and what is, of each server: an array of
 * { server, what, want, got, ok }. *@good: all are.
 */
json_t *servers_verify(const struct servers *v, const struct cell *c, bool *good);

#endif /* BRUMM_MC_SERVERS_H */
