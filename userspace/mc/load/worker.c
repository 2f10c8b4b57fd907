// SPDX-License-Identifier: GPL-2.0
/* The loop of a worker, and its thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "worker.h"

#define EVENTS		64
#define CONNECT_LIMIT	(5 * NSEC)
/* Signals and lost connections are looked after at least so often. */
#define LONGEST_SLEEP	(NSEC / 20)

/* ---- connections --------------------------------------------------------- */

int watch_conn(struct worker *w, struct conn *c, int op)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (c->want_out || c->state == CONN_CONNECTING)
		ev.events |= EPOLLOUT;
	ev.data.u32 = (uint32_t)(c - w->conn);
	return epoll_ctl(w->epoll, op, c->fd, &ev) ? -errno : 0;
}

static void try_again(struct worker *w)
{
	unsigned int i;

	if (w->now < w->look)
		return;
	w->look = w->now + LONGEST_SLEEP;
	for (i = 0; i < w->flows * w->config->servers; i++) {
		struct conn *c = &w->conn[i];

		if (c->state != CONN_DOWN || c->retry > w->now)
			continue;
		if (conn_open(c) || watch_conn(w, c, EPOLL_CTL_ADD)) {
			conn_close(c);
			c->retry = w->now + NSEC / 10;
		}
	}
}

static void connected(struct worker *w, struct conn *c)
{
	if (conn_opened(c)) {
		conn_close(c);
		c->retry = w->now + NSEC / 10;
		return;
	}
	watch_conn(w, c, EPOLL_CTL_MOD);
}

static void on_event(struct worker *w, const struct epoll_event *ev)
{
	struct conn *c = &w->conn[ev->data.u32];

	if (c->state == CONN_CONNECTING) {
		if (ev->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			connected(w, c);
		return;
	}
	if (c->state == CONN_UP && (ev->events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		receive(w, c);
	if (c->state == CONN_UP && (ev->events & EPOLLOUT))
		send_flush(w, c);
}

static int await_connection(struct conn *c, uint64_t until)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };
	uint64_t now;

	while (c->state == CONN_CONNECTING) {
		now = cli_now();
		if (now >= until)
			return -ETIMEDOUT;
		if (cli_signal())
			return -EINTR;
		if (poll(&p, 1, 50) > 0)
			return conn_opened(c);
	}
	return 0;
}

static int open_connections(struct worker *w)
{
	unsigned int i, n = w->flows * w->config->servers;
	uint64_t until = cli_now() + CONNECT_LIMIT;
	struct conn *c;
	int err;

	for (i = 0; i < n; i++) {
		c = &w->conn[i];
		do {
			err = conn_open(c);
			if (err == -EAGAIN)	/* a Unix socket's backlog */
				usleep(1000);
		} while (err == -EAGAIN && cli_now() < until);
		if (!err)
			err = await_connection(c, until);
		if (!err)
			err = watch_conn(w, c, EPOLL_CTL_ADD);
		if (err) {
			cli_fail(err, "%s: cannot connect", c->server->name);
			return err;
		}
	}
	return 0;
}

/* ---- what it takes ------------------------------------------------------- */

static void usage_now(struct usage *u)
{
	unsigned long long run, delay;
	struct timespec ts;
	struct rusage r;
	FILE *f;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	u->cpu = (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
	getrusage(RUSAGE_THREAD, &r);
	u->switches = (uint64_t)r.ru_nivcsw;
	f = fopen("/proc/thread-self/schedstat", "re");
	u->has_run_delay = f && fscanf(f, "%llu %llu", &run, &delay) == 2;
	u->run_delay = u->has_run_delay ? delay : 0;
	if (f)
		fclose(f);
}

static void usage_since(struct usage *u, const struct usage *before)
{
	struct usage now;

	usage_now(&now);
	u->cpu = now.cpu - before->cpu;
	u->run_delay = now.run_delay - before->run_delay;
	u->switches = now.switches - before->switches;
	u->has_run_delay = now.has_run_delay && before->has_run_delay;
}

/* ---- the loop ------------------------------------------------------------ */

static void tick(struct worker *w)
{
	uint64_t now = cli_now();

	if (now < w->now)
		w->effort.backwards++;
	w->now = now;
}

static bool over(const struct worker *w)
{
	const struct phase *ph = w->phase;
	bool all = ph->drawn ? w->now >= ph->end : w->next == w->plan->n;

	if (w->now >= ph->end && w->now - ph->end >= ph->grace)
		return true;
	/* What is to come may not be due, yet. */
	return all && !w->open && (ph->end == UINT64_MAX || w->now >= ph->end ||
				   ph->unpaced);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When there is something to do, whatever comes. */
static uint64_t wake_up_at(const struct worker *w, uint64_t *send)
{
	const struct plan *p = w->plan;
	const struct phase *ph = w->phase;
	uint64_t at = w->now + LONGEST_SLEEP;

	*send = UINT64_MAX;
	if (!ph->unpaced && w->next < p->n)
		*send = p->request[w->next].intended;
	if (ph->hedge != UINT64_MAX && w->hedge_next < w->next)
		*send = least(*send, p->request[w->hedge_next].intended + ph->hedge);
	if (w->timeout_next < w->next)
		at = least(at, p->request[w->timeout_next].intended + ph->timeout);
	if (w->now < ph->end)
		at = least(at, ph->end);
	else
		at = least(at, ph->end + ph->grace);
	return at;
}

/* Sleeps until shortly before something is due, then only looks. */
static int await(struct worker *w, struct epoll_event *ev, bool *slept)
{
	uint64_t send, at = wake_up_at(w, &send), spin = w->phase->spin;
	struct timespec ts = { 0 };

	if (send != UINT64_MAX)
		at = least(at, send > spin ? send - spin : 0);
	*slept = at > w->now;
	if (*slept)
		ts.tv_nsec = (long)(at - w->now);	/* below a second */
	return epoll_pwait2(w->epoll, ev, EVENTS, &ts, NULL);
}

static void go_round(struct worker *w)
{
	struct epoll_event ev[EVENTS];
	uint64_t began = w->now, before;
	bool did, slept;
	int i, n;

	did = send_due(w);
	did |= hedge_due(w);
	did |= time_out_due(w);
	tick(w);
	before = w->now;
	n = await(w, ev, &slept);
	tick(w);
	/* Time in which there was nothing to do, asleep or awake. */
	if (slept)
		w->effort.idle += w->now - before;
	else if (!did && n <= 0)
		w->effort.idle += w->now - began;
	for (i = 0; i < n; i++)
		on_event(w, &ev[i]);
	try_again(w);
	tick(w);
}

static void phase_begin(struct worker *w)
{
	unsigned int f;

	w->effort = (struct effort){ 0 };
	w->next = w->timeout_next = w->hedge_next = 0;
	w->open = w->in_flight = 0;
	w->in_flight_since = 0;
	for (f = 0; f < w->flows; f++)
		w->flow[f] = (struct flow){ 0, UINT32_MAX, UINT32_MAX };
}

/* What is left is given up on, now. */
static void phase_end(struct worker *w)
{
	struct plan *p = w->plan;
	uint32_t i, n = w->next * p->legs * p->copies;

	w->effort.began = w->next;
	w->effort.length = w->now - w->phase->start;
	in_flight_change(w, 0, w->now);
	for (i = 0; i < n; i++) {
		if (p->copy[i].status == COPY_IN_FLIGHT)
			p->copy[i].received = w->now;
	}
}

static void run_phase(struct worker *w)
{
	struct usage before;

	phase_begin(w);
	usage_now(&before);
	w->now = cli_now();
	while (w->now < w->phase->start && !cli_signal()) {
		struct epoll_event ev[EVENTS];
		struct timespec ts = { 0, 1000000 };
		int i, n;

		if (w->phase->start - w->now < 1000000)
			ts.tv_nsec = (long)(w->phase->start - w->now);
		/* What comes late from the phase before is not to wait. */
		n = epoll_pwait2(w->epoll, ev, EVENTS, &ts, NULL);
		w->now = cli_now();
		for (i = 0; i < n; i++)
			on_event(w, &ev[i]);
	}
	w->effort = (struct effort){ 0 };
	w->now = cli_now();
	while (!over(w)) {
		if (cli_signal()) {
			w->effort.cut = w->now;
			break;
		}
		go_round(w);
	}
	phase_end(w);
	usage_since(&w->effort.used, &before);
}

static void *thread(void *arg)
{
	struct worker *w = arg;

	w->tid = gettid();
	/* Or the kernel may wake it 50 us later than told. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	for (;;) {
		pthread_barrier_wait(w->barrier);
		if (!w->phase)
			return NULL;
		run_phase(w);
		pthread_barrier_wait(w->barrier);
	}
}

/* ---- from outside -------------------------------------------------------- */

static int worker_alloc(struct worker *w)
{
	const struct config *c = w->config;
	unsigned int i, n;

	w->flows = (c->connections - w->index + c->threads - 1) / c->threads;
	n = w->flows * c->servers;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->conn = calloc(n, sizeof(*w->conn));
	w->flow = calloc(w->flows, sizeof(*w->flow));
	w->rng = gsl_rng_alloc(gsl_rng_taus2);
	if (w->epoll < 0 || !w->conn || !w->flow || !w->rng)
		return -ENOMEM;
	gsl_rng_set(w->rng, c->seed + 1000003ul * (w->share.rank * c->threads +
						   w->index + 1));
	for (i = 0; i < n; i++) {
		w->conn[i].fd = -1;
		w->conn[i].server = &c->server[i % c->servers];
		w->conn[i].udp = w->conn[i].server->transport == TRANSPORT_UDP;
		if (!w->conn[i].udp)
			continue;
		w->conn[i].slot = calloc(65536, sizeof(*w->conn[i].slot));
		if (!w->conn[i].slot)
			return -ENOMEM;
	}
	return 0;
}

static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	cpu_set_t one;
	int err;

	pthread_attr_init(&attr);
	if (w->cpu >= 0) {
		CPU_ZERO(&one);
		CPU_SET(w->cpu, &one);
		pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	}
	err = -pthread_create(&w->thread, &attr, thread, w);
	pthread_attr_destroy(&attr);
	if (err && w->cpu >= 0)
		cli_fail(err, "no thread on CPU %d; see --cpus", w->cpu);
	else if (err)
		cli_fail(err, "cannot start a thread");
	return err;
}

int worker_start(struct worker *w)
{
	int err = worker_alloc(w);

	if (err)
		cli_fail(err, "cannot start a thread");
	if (!err)
		err = open_connections(w);
	return err ? err : start_thread(w);
}

void worker_free(struct worker *w)
{
	unsigned int i;

	for (i = 0; w->conn && i < w->flows * w->config->servers; i++)
		conn_free(&w->conn[i]);
	free(w->conn);
	free(w->flow);
	if (w->rng)
		gsl_rng_free(w->rng);
	if (w->epoll > 0)
		close(w->epoll);
}
