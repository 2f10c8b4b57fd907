// SPDX-License-Identifier: GPL-2.0
/*
 * Whether each hook is where it ought to be, and what it costs.
 *
 * A function may have the right name and never be called, since the compiler put
 * its body where it was called from; or do something else on another kernel. So
 * some children die here, whose exits are known: how often each hook is met, and
 * within which other, tells.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cli.h"
#include "internal.h"

#define CHILDREN	3
#define SERIES		25
#define CALLS		20

/* Not getpgid() itself: the library may know the answer. */
int exits_call_ns(double *ns, double *error)
{
	double series[SERIES];
	struct summary s;
	unsigned int i, k;

	for (i = 0; i < SERIES; i++) {
		uint64_t start = cli_now();

		for (k = 0; k < CALLS; k++)
			if (syscall(SYS_getpgid, 0) < 0)
				return -errno;
		series[i] = (double)(cli_now() - start) / CALLS;
	}
	summarise(series, SERIES, &s);
	/* The median: in one or the other somebody else has the CPU. */
	*ns = s.p50;
	*error = s.p50 - s.min;
	return 0;
}

/* The record that the empty hook made for this process. */
static int end_of_calls(struct exits *x, struct exit_task *t)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	int err = bpf_map__lookup_elem(x->skel->maps.tasks, &tid, sizeof(tid), t,
				       sizeof(*t), 0);

	if (err)
		return err;
	__atomic_fetch_sub(&x->skel->bss->records, 1, __ATOMIC_SEQ_CST);
	return bpf_map__delete_elem(x->skel->maps.tasks, &tid, sizeof(tid), 0);
}

static int measure_cost(struct exits *x, double call, double call_error)
{
	struct exits_cost *c = &x->cost;
	struct exit_stats st;
	double with, error;
	struct exit_task t;
	struct summary s;
	int err;

	if (x->hook[HOOK_EMPTY].why_not) {
		*c = (struct exits_cost){ NAN, NAN, NAN, NAN };
		return 0;
	}
	err = exits_call_ns(&with, &error);
	if (!err)
		err = end_of_calls(x, &t);
	if (!err)
		err = exits_stats(x, PHASE_EMPTY, &st);
	if (err)
		return err;
	hist_summary(&st.time, &s);
	c->inside = s.p50;
	c->pair = fmax(0, with - call);
	c->pair_error = error + call_error;
	c->around = s.n ? fmax(0, c->pair - c->inside - (double)t.probe / (double)s.n) : 0;
	exits_drop(x, HOOK_EMPTY, "used to measure the probe's cost");
	return 0;
}

/* The exit of a PID namespace's init, where that is allowed. */
static pid_t start_child(bool *init)
{
	pid_t pid = -1;

	if (*init)
		pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID, NULL, NULL,
				     NULL, 0UL);
	if (pid < 0) {
		*init = false;
		pid = fork();
	}
	if (!pid)
		_exit(0);
	return pid;
}

static int run_children(bool *init)
{
	unsigned int i;

	*init = true;
	for (i = 0; i < CHILDREN; i++) {
		pid_t pid = start_child(init);

		if (pid < 0)
			return -errno;
		while (waitpid(pid, NULL, 0) < 0)
			if (errno != EINTR)
				return -errno;
	}
	return 0;
}

/* Those that each exit meets, and how often at least and at most. */
static const struct {
	enum exit_hook hook;
	enum exit_phase phase;
	unsigned int least, most;
} expected[] = {
	{ HOOK_EXIT, PHASE_PROCESS, 1, 1 },
	{ HOOK_MM, PHASE_MM, 1, 1 },
	{ HOOK_VMA, PHASE_VMA, 1, 1 },
	{ HOOK_ZAP, PHASE_ZAP, 1, 1 },
	{ HOOK_TABLES, PHASE_TABLES, 1, 1 },
	{ HOOK_FLUSH, PHASE_FLUSH, 1, 2 },
	{ HOOK_FD, PHASE_FD, 1, 1 },
	{ HOOK_WORK, PHASE_WORK, 1, 3 },
	{ HOOK_NS, PHASE_NS, 1, 1 },
	{ HOOK_INIT, PHASE_INIT, 1, 1 },
	{ HOOK_RELEASE, PHASE_RELEASE, 1, 1 },
};

static uint64_t times(const struct exit_stats *st)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < WHERES_NR; i++)
		n += st->sums[i].n;
	return n;
}

static int check_children(struct exits *x, bool init)
{
	struct exit_stats st;
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		enum exit_hook hook = expected[i].hook;

		if (x->hook[hook].why_not || (hook == HOOK_INIT && !init))
			continue;
		err = exits_stats(x, expected[i].phase, &st);
		if (err)
			return err;
		if (!times(&st))
			exits_drop(x, hook, "no exit calls this function");
		else if (st.misplaced)
			exits_drop(x, hook, "it is called from somewhere else");
		else if (times(&st) < CHILDREN * expected[i].least ||
			 times(&st) > CHILDREN * expected[i].most)
			exits_drop(x, hook, "not called once in an exit");
	}
	return x->hook[HOOK_EXIT].why_not ? -EOPNOTSUPP : 0;
}

int exits_check(struct exits *x, double call_ns, double call_error)
{
	bool init;
	int err;

	x->skel->bss->checking = true;
	x->skel->bss->active = true;
	err = measure_cost(x, call_ns, call_error);
	if (!err)
		err = run_children(&init);
	x->skel->bss->active = false;
	if (!err)
		err = check_children(x, init);
	if (!err)
		err = exits_reset(x);
	x->skel->bss->checking = false;
	return err;
}
