/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TAP for C selftests. A program is a table of named cases:
 *
 *	static void zeroed(void) { CHECK_EQ(value, 0); }
 *	static const struct tap_case cases[] = {
 *		{ "fresh memory is zero", zeroed },
 *	};
 *	TAP_MAIN(cases)
 *
 * Every case runs in a process of its own, the leader of a process group that
 * is killed when the case is over: a crash fails one case, and nothing that it
 * opened survives it. Checks may be made in threads and children as well.
 *
 * Arguments choose cases by a part of their name. Environment:
 *	BRUMM_LONG=1	long variants, see tap_long()
 *	BRUMM_SEED=N	seed of tap_seed(); a random one is printed otherwise
 *	BRUMM_SLOW=N	for slow kernels: time limits times N, quick variants
 *			with an Nth of the rounds
 */
#ifndef BRUMM_TAP_H
#define BRUMM_TAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct tap_case - a behaviour
 * @name: what holds, as a sentence
 * @run: fails by CHECK and REQUIRE, and by dying
 * @seconds: time limit; 0: %TAP_SECONDS
 */
struct tap_case {
	const char *name;
	void (*run)(void);
	unsigned int seconds;
};

#define TAP_SECONDS	120

int tap_main(int argc, char **argv, const struct tap_case *cases, size_t n);

#define TAP_MAIN(cases)							\
	int main(int argc, char **argv)					\
	{								\
		return tap_main(argc, argv, cases,			\
				sizeof(cases) / sizeof(*(cases)));	\
	}

/* Called before the first case; a reason skips the whole program. */
extern const char *(*tap_before_all)(void);
/* Called after each case, when all of its processes are gone. */
extern void (*tap_after_case)(void);

/* The long set? */
bool tap_long(void);
/* quick or long, depending on the set. */
unsigned long tap_pick(unsigned long quick, unsigned long thorough);
uint64_t tap_seed(void);

/* A diagnostic, whole lines even from several processes. */
void tap_diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A failure noted at @file:@line; the case goes on. */
void tap_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Failures of the running case so far, in all of its processes. */
unsigned int tap_failures(void);
/* Ends the process: with REQUIRE the case has failed already. */
void tap_stop(void) __attribute__((noreturn));
void tap_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
/* "-EINVAL" or "5"; valid until the fourth next call of the thread. */
const char *tap_result(long long value);

#define CHECK(cond)							\
	((cond) ? true : (tap_fail(__FILE__, __LINE__, "%s", #cond), false))

#define CHECK_EQ(got, want) __extension__ ({				\
	long long got_ = (got), want_ = (want);				\
	if (got_ != want_)						\
		tap_fail(__FILE__, __LINE__, "%s is %lld, want %lld",	\
			 #got, got_, want_);				\
	got_ == want_;							\
})

/* For results: zero or more is fine, a negative errno is named. */
#define CHECK_RET(got, want) __extension__ ({				\
	long long got_ = (got), want_ = (want);				\
	if (got_ != want_)						\
		tap_fail(__FILE__, __LINE__, "%s is %s, want %s", #got,	\
			 tap_result(got_), tap_result(want_));		\
	got_ == want_;							\
})

#define CHECK_OK(got)	CHECK_RET(got, 0)

#define REQUIRE(cond)							\
	do {								\
		if (!CHECK(cond)) {					\
			tap_diag("errno then: %s",			\
				 tap_result(-errno));			\
			tap_stop();					\
		}							\
	} while (0)

#define REQUIRE_OK(got)							\
	do {								\
		if (!CHECK_OK(got))					\
			tap_stop();					\
	} while (0)

/* Stop when anything has failed: for loops that would repeat it for ever. */
#define STOP_IF_FAILED()						\
	do {								\
		if (tap_failures())					\
			tap_stop();					\
	} while (0)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

#endif /* BRUMM_TAP_H */
