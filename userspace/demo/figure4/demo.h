/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The paper's Figure 4 with real processes:
 *
 *	controller --- makes the cgroup, starts, locks, kills --+
 *	    |                                                   v
 *	memory service == pages, charged to the tenant ==> tenant (PID namespace)
 *	(brumm serve)                                           |
 *	                               passes some on, still charged to the tenant
 *	                                                        v
 *	                                       service (a cgroup of its own)
 *
 * The controller tells tenant and service what to do by struct order over a
 * socket pair, and gets a struct report for each.
 */
#ifndef FIGURE4_DEMO_H
#define FIGURE4_DEMO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <brumm/brumm.h>

/* What the tenant writes at the start of its page @i. */
#define PATTERN(i)	(0x6272756d6d000000ull + (i))
/* Pages of the service's window that it looks at; the gate is larger. */
#define SERVICE_VIEW	4096u
#define GATE_PAGES	(1u << 20)

enum order_op {
	/* tenant */
	TENANT_CONNECT,		/* to the memory service */
	TENANT_AGAIN,		/* give all back, connect again */
	TENANT_ALLOC,		/* a: pages; writes to each */
	TENANT_SELF,		/* a: map page 0 so often elsewhere, touch it */
	TENANT_SHARE,		/* a: pages, every second one, each by itself */
	TENANT_OVER,		/* a: at most; map page 0 on until refused */
	/* service */
	SERVICE_READ,		/* a: the first so many pages of its window */
	SERVICE_EVENTS,		/* what it was told of revocations */
	/* both */
	ACTOR_END,
};

struct order {
	int op;
	uint64_t a;
};

/**
 * struct report - how it went
 * @err: 0 or -errno of the operation that failed
 * @done: how many went well
 * @gone: SERVICE_READ: pages that were not there
 * @wrong: SERVICE_READ: pages with another content than the tenant's
 * @bytes: SERVICE_EVENTS: revoked
 */
struct report {
	int err;
	uint64_t done;
	uint64_t gone;
	uint64_t wrong;
	uint64_t bytes;
};

/**
 * struct actor - a process that plays a part
 * @pid: as the controller sees it; of a tenant: init of its PID namespace
 * @pidfd: of it
 * @sock: orders and reports
 */
struct actor {
	pid_t pid;
	int pidfd;
	int sock;
};

/* Paths that all of them know. */
struct stage {
	char dir[64];
	char memory_sock[96];
	char control_sock[96];
	char service_sock[96];
	uint64_t page;
};

/* actors.c */
int actor_start(struct actor *a, const char *cgroup, bool pid_namespace,
		void (*play)(const struct stage *st, int sock),
		const struct stage *st);
int actor_order(struct actor *a, int op, uint64_t arg, struct report *r);
void actor_end(struct actor *a);
int memory_start(struct actor *a, const char *cgroup, const char *program,
		 const struct stage *st);

/* tenant.c, service.c: do not return */
void tenant_play(const struct stage *st, int sock);
void service_play(const struct stage *st, int sock);
/* By a socket; the descriptor or -errno */
int fd_receive(int sock);
int fd_send(int sock, int fd);
int actor_loop(int sock, int other, void (*on_other)(void *arg),
	       void (*obey)(void *arg, const struct order *o, struct report *r),
	       void *arg);

/* What the tenant does in every round. */
#define LOAD_PAGES	512u	/* from the memory service, in one piece */
#define LOAD_SELF	1000u	/* mappings of the first of them in its own window */
#define LOAD_SHARED	128u	/* passed on to the service, one by one */

/* controller.c: the scene, and what all steps use */
struct scene {
	struct stage stage;
	struct actor memory, service, tenant;
	struct brumm_control *control;
	int g_top, g_memory, g_service, g_tenant;
	uint64_t price_lookup, price_map, price_pt, price_deep;
};

#define TOP	"brumm-demo"
#define TENANT	TOP "/tenant"

uint64_t current_ns(int group);
int tenant_start(struct scene *s, bool pid_namespace);
int tenant_load(struct scene *s, struct report *r);
bool wait_for_zero(int group);
uint64_t clock_ns(void);

/* profile.c: set the prices of this machine; compare ways to take back */
bool profile(struct scene *s, const char *program);
bool compare(struct scene *s);

/* story.c: what is told on the terminal and written as JSON */
void story_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void story_step(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* States what must hold; a story with one that does not has failed. */
bool story_expect(bool holds, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void story_note(const char *object, const char *key, json_t *value);
void story_time(const char *object, const char *key, uint64_t ns);
json_t *story_object(const char *name);
bool story_failed(void);
int story_write(const char *path);
const char *show_time(uint64_t ns);

#endif /* FIGURE4_DEMO_H */
