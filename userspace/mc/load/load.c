// SPDX-License-Identifier: GPL-2.0
/*
 * brumm mc load: fill, warm up, wait until nothing is in flight, then the window.
 * The main thread only makes plans, waits, and counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../../brumm/whole.h"
#include "../mc.h"
#include "log.h"
#include "result.h"

#define FILL_LIMIT	(60 * NSEC)
#define FILL_DEPTH	16
/* For one key: a stall is no reason to give all up. */
#define FILL_PATIENCE	(15 * NSEC)
/* To be ready when the phase begins, and per request for what is done until then. */
#define LEAD		(20 * NSEC / 1000)
#define LEAD_REQUEST	10
/* What is spun at most where it is not said, and at least. */
#define MOST_SPIN	200000u
#define LEAST_SPIN	20000u
#define SPARE_FDS	64
/* How much later than rank 0 another one may be. */
#define COLLECT_PATIENCE (10 * NSEC)

enum { PLAN_FILL, PLAN_WARMUP, PLAN_WINDOW, PLANS };

struct run {
	struct config config;
	struct ranks ranks;
	struct keys keys;
	struct worker worker[MAX_THREADS];
	struct plan plan[PLANS][MAX_THREADS];
	pthread_barrier_t barrier;
	struct result result;
	uint64_t spin;
	unsigned int threads;	/* that run */
};

/* ---- setting up ---------------------------------------------------------- */

/* MPI stays where it is: only what is opened from now on is in the other one. */
static int enter_netns(const char *name)
{
	char path[4096];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" :
		 "/run/netns/", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err)
		cli_fail(err, "%s: not a network namespace to enter; see ip netns",
			 path);
	return err;
}

static int need_fds(const struct config *c)
{
	rlim_t need = (rlim_t)c->connections * c->servers + c->threads + SPARE_FDS;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return -errno;
	if (l.rlim_cur >= need)
		return 0;
	l.rlim_cur = l.rlim_max == RLIM_INFINITY || need <= l.rlim_max ?
		     need : l.rlim_max;
	if (l.rlim_cur >= need && !setrlimit(RLIMIT_NOFILE, &l))
		return 0;
	cli_error("%u connections take %lu files, %lu are allowed; ulimit -n %lu",
		  c->connections * c->servers, (unsigned long)need,
		  (unsigned long)l.rlim_max, (unsigned long)need);
	return -EMFILE;
}

/* The n-th of the CPUs given, from the start again if there are fewer. */
static int nth_cpu(const struct config *c, unsigned int n)
{
	int cpu, count = CPU_COUNT(&c->cpus);

	if (!c->pinned || !count)
		return -1;
	n %= (unsigned int)count;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &c->cpus) && !n--)
			return cpu;
	}
	return -1;
}

static void measure_timer(struct run *r)
{
	uint64_t p50, p99;

	timer_overshoot(&p50, &p99);
	r->result.client.timer_p50 = (double)p50;
	r->result.client.timer_p99 = (double)p99;
	r->spin = r->config.spin;
	if (r->spin == UINT64_MAX)
		r->spin = p99 > MOST_SPIN ? MOST_SPIN :
			  p99 < LEAST_SPIN ? LEAST_SPIN : p99;
	r->result.spin = r->spin;
}

static int start_workers(struct run *r)
{
	unsigned int t;
	int err = 0;

	pthread_barrier_init(&r->barrier, NULL, r->config.threads + 1);
	for (t = 0; t < r->config.threads && !err; t++) {
		struct worker *w = &r->worker[t];

		w->config = &r->config;
		w->keys = &r->keys;
		w->share = r->ranks.share;
		w->index = t;
		w->cpu = nth_cpu(&r->config,
				 r->ranks.share.rank * r->config.threads + t);
		w->barrier = &r->barrier;
		err = worker_start(w);
		r->threads += !err;
	}
	return err;
}

static int set_up(struct run *r)
{
	const struct config *c = &r->config;
	int err = c->netns ? enter_netns(c->netns) : 0;

	if (!err)
		err = need_fds(c);
	if (err)
		return err;
	err = keys_make(&r->keys, c);
	if (err == -ERANGE)
		cli_error("%u keys cannot all differ in %u bytes; see --key-size",
			  c->keys, c->key_size.high);
	else if (err)
		cli_fail(err, "%u keys", c->keys);
	if (err)
		return err;
	measure_timer(r);
	return start_workers(r);
}

/* ---- phases -------------------------------------------------------------- */

/* Copies have numbers on the wire that differ between phases too. */
static void name_copies(struct run *r, int which)
{
	unsigned int t;

	for (t = 0; t < r->config.threads; t++) {
		struct plan *p = &r->plan[which][t];

		p->id = (uint64_t)r->ranks.share.rank << 52 | (uint64_t)t << 40 |
			(uint64_t)(PLAN_WINDOW - which) << 38;
		r->worker[t].plan = p;
	}
}

static void shift(struct plan *p, uint64_t start)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		p->request[i].intended += start;
}

/* Runs a phase in all threads, from @ph->start, and waits for its end. */
static void run_phase(struct run *r, int which, const struct phase *ph)
{
	unsigned int t;

	name_copies(r, which);
	for (t = 0; t < r->config.threads; t++) {
		r->worker[t].phase = ph;
		shift(&r->plan[which][t], ph->start);
	}
	pthread_barrier_wait(&r->barrier);
	pthread_barrier_wait(&r->barrier);
}

static uint64_t lead(const struct run *r, int which)
{
	uint64_t n = 0;
	unsigned int t;

	for (t = 0; t < r->config.threads; t++)
		n += r->plan[which][t].n;
	return LEAD + LEAD_REQUEST * n;
}

static int make_plan(struct run *r, int which)
{
	const struct config *c = &r->config;
	struct plan *p = r->plan[which];
	uint64_t length = which == PLAN_WARMUP ? c->warmup : c->duration;
	int err;

	if (which == PLAN_FILL)
		err = schedule_fill(p, c, &r->ranks.share);
	else if (c->closed && !(c->rate > 0))
		err = schedule_open_end(p, c, length);
	else
		/* The warm-up is of the same kind, but not the same. */
		err = schedule_make(p, c, &r->ranks.share,
				    c->seed + (which == PLAN_WARMUP ? 7919 : 0),
				    length);
	if (err)
		cli_fail(err, "the schedule; use a lower rate, a shorter run, or more threads");
	return err;
}

static struct phase load_phase(const struct run *r, uint64_t start, uint64_t length,
			       uint64_t grace, uint64_t hedge)
{
	const struct config *c = &r->config;

	return (struct phase){
		.start = start, .end = start + length, .grace = grace,
		.timeout = c->timeout, .hedge = hedge, .spin = r->spin,
		.depth = c->depth,
		.closed = c->closed, .unpaced = c->closed && !(c->rate > 0),
		.drawn = c->closed && !(c->rate > 0),
	};
}

/* All keys that fall to this rank are stored, or it says why not. */
static int check_fill(const struct run *r)
{
	uint64_t n = 0, bad = 0;
	unsigned int t;
	uint32_t i;

	for (t = 0; t < r->config.threads; t++) {
		const struct plan *p = &r->plan[PLAN_FILL][t];

		for (i = 0; i < p->n * p->legs; i++, n++)
			bad += i >= r->worker[t].effort.began * p->legs ||
			       p->copy[i].status != COPY_STORED;
	}
	if (!bad || cli_signal())
		return cli_signal() ? -EINTR : 0;
	cli_error("%lu of %lu keys could not be stored; has the server enough memory?",
		  bad, n);
	return -EIO;
}

static int fill(struct run *r, const struct go *go)
{
	struct phase ph = {
		.start = go->start, .end = go->start + FILL_LIMIT,
		.timeout = FILL_PATIENCE, .hedge = UINT64_MAX,
		.depth = FILL_DEPTH, .closed = true, .unpaced = true,
	};
	unsigned int i;

	/* More packets than a socket has room for are lost. */
	for (i = 0; i < r->config.servers; i++) {
		if (r->config.server[i].transport == TRANSPORT_UDP)
			ph.depth = 1;
	}

	run_phase(r, PLAN_FILL, &ph);
	return check_fill(r);
}

/* The quantile of the warm-up after which a second copy is to be sent. */
static uint64_t hedge_time(const struct run *r, const struct window *window)
{
	const struct config *c = &r->config;
	struct counts n;
	uint64_t ns = c->hedge;
	unsigned int t;

	if (!(c->hedge_quantile > 0) || counts_alloc(&n, c, c->warmup))
		return ns;
	for (t = 0; t < c->threads; t++)
		counts_add_plan(&n, c, &r->plan[PLAN_WARMUP][t],
				r->worker[t].effort.began, window);
	if (n.tally[0].intended.n)
		ns = mc_hist_quantile(&n.tally[0].intended, c->hedge_quantile);
	counts_free(&n);
	return ns;
}

static int warm_up(struct run *r, const struct go *go, uint64_t *hedge)
{
	struct phase ph = load_phase(r, go->start, r->config.warmup, DRAIN,
				     UINT64_MAX);
	struct window window = { ph.start, ph.end, ph.end };

	run_phase(r, PLAN_WARMUP, &ph);
	*hedge = hedge_time(r, &window);
	return cli_signal() ? -EINTR : 0;
}

static uint64_t realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

/* The window ends for all threads where the first was cut short. */
static struct window window_of(const struct run *r, const struct phase *ph)
{
	struct window w = { ph->start, ph->end, 0 };
	unsigned int t;

	for (t = 0; t < r->config.threads; t++) {
		const struct effort *e = &r->worker[t].effort;
		uint64_t end = e->length + ph->start;

		if (e->cut && e->cut < w.end)
			w.end = e->cut > w.start ? e->cut : w.start;
		if (e->exhausted && end < w.end)
			w.end = end;
		w.close = end > w.close ? end : w.close;
	}
	return w;
}

/* So that others can do something at a time of the window. */
static int announce(const struct run *r, uint64_t start)
{
	FILE *f;
	int err = 0;

	if (!r->config.announce || r->ranks.share.rank)
		return 0;
	f = fopen(r->config.announce, "we");
	if (!f || fprintf(f, "%lu\n", start) < 0)
		err = -errno;
	if (f && fclose(f) && !err)
		err = -errno;
	if (err)
		cli_fail(err, "%s", r->config.announce);
	return err;
}

static int measure(struct run *r, const struct go *go)
{
	struct phase ph = load_phase(r, go->start, r->config.duration,
				     r->config.grace, go->hedge);
	struct result *res = &r->result;
	struct window window;
	struct mark mark[2];
	int err;

	res->hedge = go->hedge;
	res->start = ph.start;
	res->start_realtime = realtime() + (ph.start - cli_now());
	err = announce(r, ph.start);
	if (err)
		return err;
	mark_now(&mark[0]);
	run_phase(r, PLAN_WINDOW, &ph);
	mark_now(&mark[1]);
	attribution_stop(res->attribution);
	window = window_of(r, &ph);
	err = load_result_count(res, r->worker, &window, mark);
	if (err)
		cli_fail(err, "cannot count");
	/* What was counted is right without it. */
	if (!err && r->config.log)
		res->client.unlogged = !!log_write(r->config.log, &r->config,
						   &r->ranks.share, r->worker,
						   &window);
	if (!err)
		attribution_explain(res->attribution, r->worker, &window);
	return err;
}

static void ask_servers(const struct run *r, struct server_stats *stats)
{
	unsigned int i;

	for (i = 0; !r->ranks.share.rank && i < r->config.servers; i++)
		server_stats(&r->config.server[i], &stats[i]);
}

/* A phase that begins when all ranks are ready for it. */
static int ready(struct run *r, int err, int which, uint64_t patience,
		 struct go *go)
{
	if (!err)
		err = make_plan(r, which);
	if (err == -EINTR)
		return err;
	patience += 30 * NSEC;
	if (ranks_ready(&r->ranks, err, lead(r, which), patience, go)) {
		if (!cli_signal())
			cli_error("rank 0 is gone");
		return cli_signal() ? -EINTR : -EIO;
	}
	if (go->stop && !err && r->ranks.share.ranks > 1 && !r->ranks.share.rank)
		cli_error("another rank cannot go on");
	return go->stop ? -EIO : 0;
}

static int run_all(struct run *r)
{
	const struct config *c = &r->config;
	struct go go = { .hedge = c->hedge };
	uint64_t patience = 0;
	int err = set_up(r);

	/* Before the first request, which shows who serves. */
	if (!err)
		err = attribution_open(c, &r->result.attribution);
	if (c->fill) {
		err = ready(r, err, PLAN_FILL, patience, &go);
		if (!err)
			err = fill(r, &go);
		patience = FILL_LIMIT;
	}
	if (c->warmup && err != -EINTR) {
		err = ready(r, err, PLAN_WARMUP, patience, &go);
		if (!err)
			err = warm_up(r, &go, &go.hedge);
		patience = c->warmup + DRAIN;
	}
	if (err == -EINTR)
		return err;
	ask_servers(r, r->result.before);
	attribution_start(r->result.attribution);
	err = ready(r, err, PLAN_WINDOW, patience, &go);
	return err ? err : measure(r, &go);
}

/* ---- telling ------------------------------------------------------------- */

static int write_json(const char *path, const json_t *j)
{
	int err = whole_json(path, j, JSON_INDENT(1));

	if (err)
		cli_fail(err, "%s", path);
	return err;
}

/* What rank 0 could not be told is kept, if there is a place for it. */
static void keep_alone(struct run *r)
{
	char path[4096];
	json_t *j;

	if (!r->config.output)
		return;
	load_result_judge(&r->result);
	j = load_result_json(&r->result);
	snprintf(path, sizeof(path), "%s.rank%u", r->config.output,
		 r->ranks.share.rank);
	if (j && !write_json(path, j))
		cli_error("rank 0 does not answer; what rank %u counted is in %s",
			  r->ranks.share.rank, path);
	json_decref(j);
}

static int follow(struct run *r)
{
	size_t size;
	void *data = load_result_pack(&r->result, &size);
	int err = data ? ranks_send(&r->ranks, data, size) : -ENOMEM;

	/* Alone, it says of itself that the others are missing. */
	if (err) {
		memset(r->ranks.missing, true, r->ranks.share.ranks);
		r->ranks.missing[r->ranks.share.rank] = false;
		keep_alone(r);
	}
	free(data);
	if (r->result.client.unlogged)
		return EXIT_ERROR;
	return err || r->result.client.cut ? EXIT_MISSED : EXIT_FINE;
}

static int tell(struct run *r)
{
	struct result *res = &r->result;
	json_t *j = NULL;
	int status, err = 0;

	if (r->ranks.share.ranks > 1)
		ranks_collect(&r->ranks, COLLECT_PATIENCE, load_result_add, res);
	ask_servers(r, res->after);
	load_result_judge(res);
	status = load_result_status(res);
	if (r->config.json || r->config.output) {
		j = load_result_json(res);
		if (!j)
			err = -ENOMEM;
	}
	if (j && r->config.output)
		err = write_json(r->config.output, j);
	/* What cannot be kept in a file can be read all the same. */
	if (r->config.json)
		return cli_print_json(j) || err ? EXIT_ERROR : status;
	json_decref(j);
	load_result_print(res, stdout);
	if (cli_flush())
		err = -EIO;
	return err ? EXIT_ERROR : status;
}

static void tear_down(struct run *r)
{
	unsigned int t;
	int which;

	if (r->threads == r->config.threads) {
		for (t = 0; t < r->threads; t++)
			r->worker[t].phase = NULL;
		pthread_barrier_wait(&r->barrier);
		for (t = 0; t < r->threads; t++)
			pthread_join(r->worker[t].thread, NULL);
		for (t = 0; t < r->threads; t++)
			worker_free(&r->worker[t]);
		for (which = 0; which < PLANS; which++) {
			for (t = 0; t < r->threads; t++)
				plan_free(&r->plan[which][t]);
		}
	}
	/* Or some wait for others that never began: the process ends them. */
	keys_free(&r->keys);
	load_result_free(&r->result);
}

int mc_load(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof(*r));
	int status, err;
	bool whole;

	if (!r) {
		cli_fail(-ENOMEM, "cannot start");
		return EXIT_ERROR;
	}
	config_parse(&r->config, argc, argv);
	cli_catch_signals();
	status = ranks_open(&r->ranks, &r->config);
	if (status)
		return status;
	if (r->config.attribute && r->ranks.share.ranks > 1) {
		cli_error("--attribute is for one client, without MPI");
		ranks_close(&r->ranks, false);
		return EXIT_ERROR;
	}
	r->result.config = &r->config;
	r->result.ranks = &r->ranks;
	err = run_all(r);
	if (err == -EINTR)
		cli_error("interrupted before the window began; there is no result");
	if (err)
		status = EXIT_ERROR;
	else
		status = r->ranks.share.rank ? follow(r) : tell(r);
	whole = !cli_signal() && (!err || err == -EIO);
	if (r->threads == r->config.threads || !r->threads)
		tear_down(r);
	ranks_close(&r->ranks, whole);
	free(r);
	return status;
}
