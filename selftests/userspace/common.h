/* SPDX-License-Identifier: GPL-2.0 */
/* cmocka with what it wants to have included, printing TAP. */
#ifndef TEST_COMMON_H
#define TEST_COMMON_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN_TAP(name, tests)						\
	(cmocka_set_message_output(CM_OUTPUT_TAP),			\
	 cmocka_run_group_tests_name(name, tests, NULL, NULL))

/*
 * cmocka has a handler for SIGBUS of its own, and installs it anew for each
 * test. So what touches revocable memory runs in a child that has none, and
 * says by CHECK what must hold.
 */
#define CHECK(ok)							\
	do {								\
		if (!(ok)) {						\
			fprintf(stderr, "# %s:%d: %s\n", __func__,	\
				__LINE__, #ok);				\
			_exit(1);					\
		}							\
	} while (0)

/* The same for functions that return 0 or -errno, which it shows. */
#define CHECK_RET(call, want)						\
	do {								\
		long ret_ = (call);					\
		if (ret_ != (want)) {					\
			fprintf(stderr, "# %s:%d: %s: %ld, not %ld\n",	\
				__func__, __LINE__, #call, ret_,	\
				(long)(want));				\
			_exit(1);					\
		}							\
	} while (0)

/* Runs @fn in a child; returns its wait status. */
static inline int in_child(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGBUS, SIG_DFL);
		alarm(60);
		fn();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* test_NAME() runs NAME() so. */
#define TEST(name)							\
	static void test_##name(void **state)				\
	{								\
		(void)state;						\
		assert_int_equal(in_child(name), 0);			\
	}

#endif /* TEST_COMMON_H */
