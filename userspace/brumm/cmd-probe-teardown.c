// SPDX-License-Identifier: GPL-2.0
/* brumm probe --teardown: where the time of exits goes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "cmd-probe.h"

/* How long what comes after the exits is waited for, ns. */
#define SETTLE		2000000000u

/**
 * struct look - for watch()
 * @a: what is asked for
 * @x: what is attached
 */
struct look {
	struct args *a;
	struct exits *x;
};

static int print_sample(const struct exit_sample *s)
{
	printf("%llu %s %s %llu %llu %llu %llu %u %u\n", s->end,
	       exits_phase_name(s->phase), exits_where_name(s->where), s->cpu,
	       s->wait, s->runq, s->cgroup, s->tid, s->tgid);
	return ferror(stdout) ? -EIO : 0;
}

static int on_sample(void *arg, const struct exit_sample *s)
{
	struct args *a = arg;

	if (!a->json)
		return print_sample(s);
	return json_array_append_new(a->samples,
		json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}",
			  "end_ns", (json_int_t)s->end,
			  "phase", exits_phase_name(s->phase),
			  "where", exits_where_name(s->where),
			  "cpu", (json_int_t)s->cpu, "wait", (json_int_t)s->wait,
			  "runq", (json_int_t)s->runq,
			  "cgroup", (json_int_t)s->cgroup,
			  "tid", (json_int_t)s->tid,
			  "tgid", (json_int_t)s->tgid)) ? -ENOMEM : 0;
}

static int fetch(void *arg, int ms)
{
	struct look *l = arg;

	return exits_samples(l->x, ms, on_sample, l->a);
}

static int look_on(struct args *a, struct exits *x)
{
	struct look l = { a, x };
	int err;

	a->watch.round = a->o.samples ? fetch : NULL;
	a->watch.arg = &l;
	err = watch(&a->watch);
	if (!err)
		exits_settle(x, SETTLE, false);
	exits_stop(x);
	if (!err && a->o.samples)
		err = fetch(&l, 0);
	return err;
}

static int report(const struct args *a, const struct exits_result *r)
{
	json_t *j;

	if (!a->json) {
		exits_print(r, stdout);
		return cli_flush();
	}
	j = exits_json(r);
	if (j) {
		json_object_set_new(j, "cgroup", a->group ? json_string(a->group) :
							    json_null());
		json_object_set_new(j, "exit", a->watch.code < 0 ? json_null() :
					       json_integer(a->watch.code));
		json_object_set(j, "samples", a->samples ?: json_null());
	}
	return cli_print_json(j);
}

static int run(struct args *a, struct exits *x)
{
	struct exits_result r;
	int err, ret;

	probe_announce(a, exits_rung(x));
	if (!a->json && a->o.samples)
		puts("# end_ns phase where cpu wait runq cgroup tid tgid");
	err = look_on(a, x);
	if (!err)
		err = exits_read(x, &r);
	if (err) {
		cli_fail(err, "cannot measure");
		return EXIT_ERROR;
	}
	ret = report(a, &r);
	return ret ? ret : probe_status(a, r.complete);
}

int probe_teardown(struct args *a)
{
	char *why = NULL;
	struct exits *x;
	int err, ret;

	a->x.group = a->o.group;
	a->x.samples = a->o.samples;
	a->x.ring = a->o.ring;
	err = exits_open(&a->x, &x, &why);
	if (err) {
		ret = probe_cannot(a, err, why);
	} else {
		ret = run(a, x);
		exits_close(x);
	}
	free(why);
	return ret;
}
