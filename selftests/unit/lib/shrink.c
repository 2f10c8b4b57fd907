// SPDX-License-Identifier: GPL-2.0
/* Delta debugging: which of the operations does it take to fail? */
#include "ops.h"
#include <sys/wait.h>
#include <unistd.h>

static bool fails(const struct op_list *l, unsigned int fail_every)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	SHIM_CHECK(pid >= 0, "fork");
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout) ||
		    !freopen("/dev/null", "w", stderr))
			_exit(2);
		shim_fail_without_trace();
		alarm(20);
		op_list_run(l, fail_every);
		_exit(0);
	}
	SHIM_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	return status != 0;
}

static void without(const struct op_list *l, size_t at, size_t nr,
		    struct op_list *out)
{
	*out = *l;
	memcpy(out->op = malloc(l->nr * sizeof(*l->op)), l->op,
	       at * sizeof(*l->op));
	memcpy(out->op + at, l->op + at + nr, (l->nr - at - nr) * sizeof(*l->op));
	out->nr = l->nr - nr;
}

/* The shortest beginning that fails. */
static void cut_end(struct op_list *l, unsigned int fail_every)
{
	size_t good = 0, bad = l->nr;
	struct op_list part = *l;

	while (bad - good > 1) {
		part.nr = good + (bad - good) / 2;
		if (fails(&part, fail_every))
			bad = part.nr;
		else
			good = part.nr;
	}
	l->nr = bad;
}

void op_list_shrink(struct op_list *l, unsigned int fail_every)
{
	size_t nr, at;

	SHIM_CHECK(fails(l, fail_every), "does not fail");
	cut_end(l, fail_every);
	for (nr = l->nr / 2; nr; nr /= 2) {
		for (at = 0; at + nr <= l->nr;) {
			struct op_list part;

			without(l, at, nr, &part);
			if (fails(&part, fail_every)) {
				free(l->op);
				*l = part;
			} else {
				free(part.op);
				at += nr;
			}
		}
	}
	printf("# shrunk to %zu operations\n", l->nr);
}
