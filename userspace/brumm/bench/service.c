// SPDX-License-Identifier: GPL-2.0
/*
 * A chain through a memory service: another process (brumm serve) hands out
 * pages, the tenant passes each on into a second window, and a controller has
 * the service take all of it back. So the figure has in it what the service
 * and the controller need, which the kernel's does not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define RIGHTS (BRUMM_RIGHT_R | BRUMM_RIGHT_W | BRUMM_RIGHT_D)

struct service {
	char dir[64];
	char path[96];		/* for clients */
	char control[96];
	pid_t pid;
};

/* Who has the pages: first in window 0, then in window 1 too. */
struct tenant {
	int window[2];
	char *view[2];
	uint64_t bytes;
	int gate;
	struct brumm_client *client;
};

static void service_exec(const struct bench_env *env, const struct service *s,
			 uint64_t pages, int ready)
{
	char pool[32], most[32];
	char *argv[] = {
		"brumm", "serve", "--socket", (char *)s->path,
		"--control", (char *)s->control, "--pool", pool,
		"--max-allocations", most, "--quiet",
		env->config == BENCH_USED ? NULL : "--serve-unaccounted", NULL,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It belongs to nobody who pays, and runs where there is room. */
	if (env->home >= 0)
		cli_enter_group(env->home);
	bench_unpin(env);
	snprintf(pool, sizeof(pool), "%llu",
		 (unsigned long long)(pages * BENCH_PAGE));
	snprintf(most, sizeof(most), "%llu", (unsigned long long)pages);
	dup2(ready, STDOUT_FILENO);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static int service_start(const struct bench_env *env, struct service *s,
			 uint64_t pages)
{
	char line[8] = "";
	int ready[2];
	ssize_t n;

	s->pid = -1;
	strcpy(s->dir, "/tmp/brumm-bench.XXXXXX");
	if (!mkdtemp(s->dir)) {
		*s->dir = '\0';
		return -errno;
	}
	snprintf(s->path, sizeof(s->path), "%s/memory", s->dir);
	snprintf(s->control, sizeof(s->control), "%s/control", s->dir);
	if (pipe(ready))
		return -errno;
	s->pid = fork();
	if (!s->pid)
		service_exec(env, s, pages, ready[1]);
	close(ready[1]);
	n = s->pid < 0 ? 0 : read(ready[0], line, sizeof(line) - 1);
	close(ready[0]);
	if (n > 0 && !strncmp(line, "ready", 5))
		return 0;
	return cli_signal() ? -EINTR : -ENOMEM;
}

static void service_end(struct service *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGTERM);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (*s->dir) {
		unlink(s->path);
		unlink(s->control);
		rmdir(s->dir);
	}
}

static int tenant_open(struct tenant *t, const struct service *s,
		       uint64_t pages)
{
	unsigned int i;
	void *addr;
	int err = 0;

	t->bytes = pages * BENCH_PAGE;
	for (i = 0; i < 2 && !err; i++) {
		t->window[i] = brumm_open(0);
		err = t->window[i] < 0 ? t->window[i] :
		      brumm_mmap(t->window[i], t->bytes, PROT_READ | PROT_WRITE,
				 &addr);
		if (!err)
			t->view[i] = addr;
	}
	if (err)
		return err;
	t->gate = brumm_gate(t->window[0], 0, t->bytes, BRUMM_GATE_SPONSOR);
	if (t->gate < 0)
		return t->gate;
	return brumm_client_open(s->path, t->gate, &t->client);
}

static void tenant_close(struct tenant *t)
{
	unsigned int i;

	if (t->client)
		brumm_client_close(t->client);
	for (i = 0; i < 2; i++) {
		if (t->view[i])
			brumm_munmap(t->view[i], t->bytes);
		if (t->window[i] >= 0)
			close(t->window[i]);
	}
	if (t->gate >= 0)
		close(t->gate);
}

static int tenant_load(struct tenant *t)
{
	uint64_t at, handle;
	int err = 0;

	for (at = 0; at < t->bytes && !err; at += BENCH_PAGE) {
		err = brumm_client_alloc(t->client, at, BENCH_PAGE, RIGHTS,
					 &handle);
		if (!err)
			err = brumm_map(t->window[0], &(struct brumm_map){
				.source = at, .length = BENCH_PAGE,
				.target = at, .fd = t->window[1],
				.rights = RIGHTS });
		if (!err && cli_signal())
			err = -EINTR;
	}
	return err;
}

static void tenant_touch(struct tenant *t)
{
	uint64_t at;
	unsigned int i;

	for (i = 0; i < 2; i++)
		for (at = 0; at < t->bytes; at += BENCH_PAGE)
			*(volatile char *)(t->view[i] + at) = 1;
}

/* The first mapping of each page is the service's to the tenant. */
static int put_counts(const struct bench_env *env, uint64_t n,
		      const struct shape_counts *before, json_t *r)
{
	struct shape_counts c = { n, 2 * n, 2 * n, n }, now;
	struct shape_counts charged = { 0 };
	int err;

	if (env->config == BENCH_USED)
		charged = c;
	err = bench_put_prediction(env, r, &c, 1);
	if (!err)
		err = bench_put_counts(r, "charged", &charged);
	if (err)
		return err;
	if (!bench_stat(env, &now))
		return json_object_set_new(r, "stat", json_null()) ? -ENOMEM : 0;
	now.lookup -= before->lookup;
	now.map -= before->map;
	now.pt -= before->pt;
	now.deep -= before->deep;
	return bench_put_counts(r, "stat", &now);
}

/* As a controller does it: connect, tell, and wait for the answer. */
static int take_back(const struct bench_env *env, const struct service *s,
		     json_t *r)
{
	struct brumm_control *control;
	struct brumm_taken taken;
	uint64_t start = cli_now(), ns;
	int err = brumm_control_open(s->control, &control);

	if (err)
		return err;
	err = brumm_control_take_back(control, env->id, &taken);
	ns = cli_now() - start;
	brumm_control_close(control);
	if (err)
		return err;
	if (bench_put(r, "reclaim_ns", ns) ||
	    bench_put(r, "service_ns", taken.ns) ||
	    bench_put(r, "nodes", taken.nodes) ||
	    json_object_set_new(r, "by", json_string("take-back")))
		return -ENOMEM;
	return 0;
}

static int run(const struct bench_env *env, const struct service *s,
	       const struct bench_plan *plan, uint64_t n, json_t *r)
{
	struct tenant t = { .window = { -1, -1 }, .gate = -1 };
	struct shape_counts before;
	uint64_t start;
	int err;

	bench_stat(env, &before);
	err = tenant_open(&t, s, n);
	start = cli_now();
	if (!err)
		err = tenant_load(&t);
	if (!err)
		err = bench_put(r, "prepare_ns", cli_now() - start);
	if (!err && plan->touch)
		tenant_touch(&t);
	if (!err)
		err = bench_put(r, "map_calls", 2 * n);
	if (!err)
		err = bench_put(r, "user_bytes", n * BENCH_PAGE);
	if (!err)
		err = bench_put(r, "pages", 2 * n);
	if (!err)
		err = bench_put_nodes(env, r, 2 * n);
	if (!err)
		err = put_counts(env, n, &before, r);
	if (!err)
		err = take_back(env, s, r);
	tenant_close(&t);
	return err;
}

BENCH_RUN(run_service)
{
	struct service s;
	int err;

	/* Without cgroups nobody could be named to take back from. */
	if (env->group < 0)
		return -ENOTSUP;
	err = service_start(env, &s, task->size);
	if (!err)
		err = run(env, &s, plan, task->size, result);
	service_end(&s);
	return err;
}
