// SPDX-License-Identifier: GPL-2.0
/*
 * Guarded access: SIGBUS within a range that the thread has announced becomes
 * an error.
 *
 * Each thread has a chain of guards, innermost first, on its stack. The chain
 * is changed by one store each time, with compiler barriers around it, and so
 * is right at every instruction at which a signal may arrive; a handler that
 * pushes a guard of its own pops it before it returns. The variable is in
 * static TLS (initial-exec), since the other model allocates at first use,
 * which a signal handler must not.
 *
 * sigsetjmp() saves no mask, which would be a system call an access. That is
 * right as the handler runs with SA_NODEFER and an empty mask: the mask in the
 * handler is that of the code which it interrupted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct guard {
	sigjmp_buf env;
	uintptr_t base;
	size_t length;
	struct guard *outer;
	void *volatile fault;
};

static _Thread_local struct guard *volatile innermost
	__attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction previous;
static volatile sig_atomic_t previous_used;

#define barrier() __asm__ __volatile__("" ::: "memory")

/* What the process would do without us. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	bool synchronous = info->si_code > 0;
	sigset_t mask, old;

	if (!(previous.sa_flags & SA_SIGINFO)) {
		if (previous.sa_handler == SIG_IGN && !synchronous)
			return;
		/* A fault cannot be ignored: the kernel kills for it too. */
		if (previous.sa_handler == SIG_DFL ||
		    previous.sa_handler == SIG_IGN)
			goto fatal;
	}
	if (previous.sa_flags & SA_RESETHAND) {
		if (previous_used)
			goto fatal;
		previous_used = 1;
	}
	mask = previous.sa_mask;
	if (!(previous.sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	pthread_sigmask(SIG_BLOCK, &mask, &old);
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(sig, info, context);
	else
		previous.sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return;
fatal:
	/* The instruction faults again, and a core shows where it was. */
	sigaction(sig, &dfl, NULL);
	if (!synchronous)
		raise(sig);
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	struct guard *g;
	int err = errno;

	/* si_code <= 0: somebody sent it, and si_addr means nothing. */
	for (g = info->si_code > 0 ? innermost : NULL; g; g = g->outer) {
		if (addr - g->base >= g->length)
			continue;
		g->fault = info->si_addr;
		innermost = g->outer;
		barrier();
		siglongjmp(g->env, 1);
	}
	pass_on(sig, info, context);
	errno = err;
}

static void install(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_bus_error,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	/* Known before it can be needed. */
	sigaction(SIGBUS, NULL, &previous);
	sigaction(SIGBUS, &sa, &previous);
}

PUBLIC int brumm_guard_init(void)
{
	return -pthread_once(&once, install);
}

PUBLIC int brumm_call_guarded(const void *base, size_t length,
			      int (*fn)(void *arg), void *arg, void **fault)
{
	struct guard g = { .base = (uintptr_t)base, .length = length };
	int ret;

	brumm_guard_init();
	if (fault)
		*fault = NULL;
	if (sigsetjmp(g.env, 0)) {
		if (fault)
			*fault = g.fault;
		return -EFAULT;
	}
	g.outer = innermost;
	barrier();
	innermost = &g;
	barrier();
	ret = fn(arg);
	barrier();
	innermost = g.outer;
	return ret;
}

struct copy {
	void *to;
	const void *from;
	size_t length;
	int byte;
};

static int do_copy(void *arg)
{
	const struct copy *c = arg;

	memcpy(c->to, c->from, c->length);
	return 0;
}

static int do_fill(void *arg)
{
	const struct copy *c = arg;

	memset(c->to, c->byte, c->length);
	return 0;
}

PUBLIC int brumm_read(void *to, const void *from, size_t length)
{
	struct copy c = { .to = to, .from = from, .length = length };

	return brumm_call_guarded(from, length, do_copy, &c, NULL);
}

PUBLIC int brumm_write(void *to, const void *from, size_t length)
{
	struct copy c = { .to = to, .from = from, .length = length };

	return brumm_call_guarded(to, length, do_copy, &c, NULL);
}

PUBLIC int brumm_fill(void *to, int byte, size_t length)
{
	struct copy c = { .to = to, .length = length, .byte = byte };

	return brumm_call_guarded(to, length, do_fill, &c, NULL);
}
