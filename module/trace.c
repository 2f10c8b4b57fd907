// SPDX-License-Identifier: GPL-2.0
/* The tracepoints themselves, and one key for all: does anybody listen? */
#include <linux/moduleparam.h>

#include "os.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

DEFINE_STATIC_KEY_FALSE(brumm_tracing);

int brumm_trace_reg(void)
{
	static_branch_inc(&brumm_tracing);
	return 0;
}

void brumm_trace_unreg(void)
{
	static_branch_dec(&brumm_tracing);
}

#ifdef BRUMM_DEBUG
/*
 * For tests: a known time in each execution of a sub-operation, which whoever
 * measures has to find there and nowhere else.
 */
struct trace_delays trace_delays;

#define TRACE_DELAY(op)							\
	module_param_named(delay_##op##_us, trace_delays.op, uint, 0600)

TRACE_DELAY(unmap);
TRACE_DELAY(reduce);
TRACE_DELAY(lookup);
TRACE_DELAY(zap);
TRACE_DELAY(remove);
TRACE_DELAY(map);
TRACE_DELAY(charge);
TRACE_DELAY(fault);
TRACE_DELAY(release);
TRACE_DELAY(reclaim);
TRACE_DELAY(empty);
#endif
