// SPDX-License-Identifier: GPL-2.0
/*
 * Guarded access. A file that is truncated under its mapping raises SIGBUS
 * just as revoked memory does.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "internal.h"

#define PAGES 8
static size_t page;

struct file {
	int fd;
	char *p;
};

static struct file make(void)
{
	struct file f;

	page = (size_t)sysconf(_SC_PAGESIZE);
	f.fd = memfd_create("guard", MFD_CLOEXEC);
	CHECK(f.fd >= 0);
	CHECK(ftruncate(f.fd, (off_t)(PAGES * page)) == 0);
	f.p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd,
		   0);
	CHECK(f.p != MAP_FAILED);
	return f;
}

static void drop(struct file *f)
{
	munmap(f->p, PAGES * page);
	close(f->fd);
}

static void copies(void)
{
	struct file f = make();
	char buf[64];

	memset(f.p, 'x', PAGES * page);
	CHECK(brumm_read(buf, f.p + 5, sizeof(buf)) == 0);
	CHECK(buf[63] == 'x');
	CHECK(brumm_write(f.p, "abc", 3) == 0);
	CHECK(!memcmp(f.p, "abcx", 4));
	CHECK(brumm_fill(f.p, 0, page) == 0);
	CHECK(f.p[1] == 0);
	CHECK(brumm_read(buf, f.p, 0) == 0);

	CHECK(ftruncate(f.fd, (off_t)page) == 0);
	CHECK(brumm_read(buf, f.p + page, 1) == -EFAULT);
	CHECK(brumm_read(buf, f.p + page - 8, 16) == -EFAULT);
	CHECK(brumm_write(f.p + page, "abc", 3) == -EFAULT);
	CHECK(brumm_fill(f.p, 1, 2 * page) == -EFAULT);
	/* What is still there is still fine, and there is no state left. */
	CHECK(brumm_read(buf, f.p, sizeof(buf)) == 0);
	drop(&f);
}

/* SIGBUS must not stay blocked, or the second fault would kill. */
static void mask_is_kept(void)
{
	struct file f = make();
	sigset_t before, after;
	char c;
	int i;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &before, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK(ftruncate(f.fd, 0) == 0);
	for (i = 0; i < 1000; i++)
		CHECK(brumm_read(&c, f.p, 1) == -EFAULT);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	drop(&f);
}

static char *inner_at;
static int after_inner;

static int touch(void *arg)
{
	*(volatile char *)arg;
	return 7;
}

static int nested_inner(void *arg)
{
	int err = brumm_call_guarded(inner_at, page, touch, arg, NULL);

	after_inner = 1;
	return err;
}

static void nesting(void)
{
	struct file in = make(), out = make();
	void *fault = NULL;

	inner_at = in.p;
	CHECK(ftruncate(in.fd, 0) == 0);
	CHECK(ftruncate(out.fd, 0) == 0);
	/* The inner one catches its own; the outer function goes on. */
	after_inner = 0;
	CHECK(brumm_call_guarded(out.p, page, nested_inner, in.p + 3, &fault) ==
	      -EFAULT);
	CHECK(after_inner == 1);
	CHECK(!fault);
	/* What is the outer one's leaves both. */
	after_inner = 0;
	CHECK(brumm_call_guarded(out.p, page, nested_inner, out.p + 9,
				 &fault) == -EFAULT);
	CHECK(after_inner == 0);
	CHECK(fault == out.p + 9);
	/* And both are gone from the chain. */
	CHECK(brumm_read(&(char){0}, in.p, 1) == -EFAULT);
	CHECK(ftruncate(in.fd, 1) == 0);
	CHECK(brumm_call_guarded(in.p, page, touch, in.p, &fault) == 7);
	CHECK(!fault);
	drop(&in);
	drop(&out);
}

static struct file child_file;

static void fault_outside(void)
{
	char c = 0;

	/* Guarded elsewhere: must not be taken for ours. */
	brumm_call_guarded(&c, 1, touch, child_file.p, NULL);
}

static void fault_unguarded(void)
{
	brumm_guard_init();
	touch(child_file.p);
}

static void sent(void)
{
	brumm_guard_init();
	raise(SIGBUS);
}

static void fault_ignored(void)
{
	signal(SIGBUS, SIG_IGN);
	brumm_guard_init();
	touch(child_file.p);
}

static void sent_ignored(void)
{
	char c;

	signal(SIGBUS, SIG_IGN);
	brumm_guard_init();
	raise(SIGBUS);
	CHECK(brumm_read(&c, child_file.p, 1) == -EFAULT);
}

static void others_die_of_it(void)
{
	int status;

	child_file = make();
	CHECK(ftruncate(child_file.fd, 0) == 0);
	status = in_child(fault_outside);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = in_child(fault_unguarded);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = in_child(sent);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	/* A fault kills whoever ignores the signal, too. */
	status = in_child(fault_ignored);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	CHECK(in_child(sent_ignored) == 0);
	drop(&child_file);
}

static int interrupted_err;
static atomic_uint interrupts;
static char *gone_page;

static void on_alarm(int sig)
{
	char c;

	(void)sig;
	/* A guarded access in a handler that interrupted one. */
	if (brumm_read(&c, gone_page, 1) != -EFAULT)
		interrupted_err = 1;
	interrupts++;
}

static void __attribute__((unused)) in_handlers(void)
{
	struct itimerval it = {{0, 200}, {0, 200}}, off = {0};
	struct file f = make();
	struct sigaction sa = {.sa_handler = on_alarm};
	unsigned long rounds = 0;
	char buf[4096];

	CHECK(ftruncate(f.fd, (off_t)page) == 0);
	gone_page = f.p + page;
	brumm_guard_init();
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	while (interrupts < 500 && rounds < 100000000) {
		CHECK(brumm_read(buf, f.p, page) == 0);
		CHECK(brumm_read(buf, f.p + page, 1) == -EFAULT);
		rounds++;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
	CHECK(interrupts >= 500);
	CHECK(interrupted_err == 0);
	drop(&f);
}

static atomic_bool stop;
static struct file raced;

static void *racer(void *arg)
{
	unsigned long *hits = arg;
	char buf[128];
	int err;

	while (!stop) {
		err = brumm_read(buf, raced.p + 3 * page, sizeof(buf));
		if (err && err != -EFAULT)
			return (void *)1;
		hits[!!err]++;
		err = brumm_write(raced.p + 3 * page, buf, sizeof(buf));
		if (err && err != -EFAULT)
			return (void *)1;
	}
	return NULL;
}

static void threads(void)
{
	unsigned long hits[4][2] = {0};
	pthread_t t[4];
	void *ret;
	int i;

	raced = make();
	stop = false;
	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, racer, hits[i]) == 0);
	for (i = 0; i < 300; i++) {
		CHECK(ftruncate(raced.fd, 0) == 0);
		usleep(500);
		CHECK(ftruncate(raced.fd, (off_t)(PAGES * page)) == 0);
		usleep(500);
	}
	stop = true;
	for (i = 0; i < 4; i++) {
		CHECK(pthread_join(t[i], &ret) == 0);
		CHECK(!ret);
		CHECK(hits[i][0] && hits[i][1]);
	}
	drop(&raced);
}

static int on_alt_stack(void *arg)
{
	return touch(arg);
}

static void alternate_stack(void)
{
	struct file f = make();
	stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536}, now;
	int i;

	CHECK(sigaltstack(&st, NULL) == 0);
	CHECK(ftruncate(f.fd, 0) == 0);
	for (i = 0; i < 3; i++)
		CHECK(brumm_call_guarded(f.p, page, on_alt_stack, f.p, NULL) ==
		      -EFAULT);
	CHECK(sigaltstack(NULL, &now) == 0);
	CHECK(!(now.ss_flags & SS_ONSTACK));
	st.ss_flags = SS_DISABLE;
	sigaltstack(&st, NULL);
	free(st.ss_sp);
	drop(&f);
}

static sigjmp_buf own;
static volatile int own_calls;
static void *volatile own_addr;
static volatile int own_blocked;

static void own_handler(int sig, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)context;
	own_calls++;
	own_addr = info->si_addr;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	own_blocked = sigismember(&mask, sig) && sigismember(&mask, SIGUSR1);
	if (info->si_code > 0)
		siglongjmp(own, 1);
}

static int raise_it(void *arg)
{
	(void)arg;
	return raise(SIGBUS);
}

/* A program with a handler of its own keeps it. */
static void own_handler_stays(void)
{
	struct sigaction sa = {
		.sa_sigaction = own_handler,
		.sa_flags = SA_SIGINFO,
	};
	struct file f = make();
	char c;

	sigaddset(&sa.sa_mask, SIGUSR1);
	sigaction(SIGBUS, &sa, NULL);
	CHECK(ftruncate(f.fd, 0) == 0);
	CHECK(brumm_read(&c, f.p, 1) == -EFAULT);
	CHECK(own_calls == 0);
	if (!sigsetjmp(own, 1))
		touch(f.p + 1);
	CHECK(own_calls == 1);
	CHECK(own_addr == f.p + 1);
	/* With the mask that it asked for. */
	CHECK(own_blocked == 1);
	/* Sent by somebody: not ours either. */
	raise(SIGBUS);
	CHECK(own_calls == 2);
	/* Whatever address such a signal seems to have. */
	CHECK_RET(brumm_call_guarded(NULL, SIZE_MAX, raise_it, NULL, NULL), 0);
	CHECK(own_calls == 3);
	CHECK(brumm_read(&c, f.p, 1) == -EFAULT);
	drop(&f);
}

TEST(copies)
TEST(mask_is_kept)
TEST(nesting)
TEST(others_die_of_it)
TEST(own_handler_stays)
/* ASan takes a lock at siglongjmp(), which the handler has interrupted. */
#ifndef __SANITIZE_ADDRESS__
TEST(in_handlers)
#endif
TEST(threads)
TEST(alternate_stack)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_mask_is_kept),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_others_die_of_it),
		cmocka_unit_test(test_own_handler_stays),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_in_handlers),
#endif
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_alternate_stack),
	};

	return RUN_TAP("guard", tests);
}
