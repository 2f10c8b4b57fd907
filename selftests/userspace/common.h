/* SPDX-License-Identifier: GPL-2.0 */
/* cmocka with what it wants to have included, printing TAP. */
#ifndef TEST_COMMON_H
#define TEST_COMMON_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RUN_TAP(name, tests)						\
	(cmocka_set_message_output(CM_OUTPUT_TAP),			\
	 cmocka_run_group_tests_name(name, tests, NULL, NULL))

#endif /* TEST_COMMON_H */
