// SPDX-License-Identifier: GPL-2.0
/* The BPF object: load it, and attach each hook to a function of this kernel. */
#define _GNU_SOURCE
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#define RING_BYTES	(16u << 20)

/* The order matters: the first costs least. */
static const struct rung {
	const char *name;
	bool fentry;
	const char *tracepoints;
} rungs[] = {
	{ "fentry+tp_btf", true, "tp_btf/" },
	{ "fentry+raw_tp", true, "raw_tp/s" },
	{ "kprobe+raw_tp", false, "raw_tp/s" },
};

const char *const exits_rungs[] = { "fentry+tp_btf", "fentry+raw_tp",
				    "kprobe+raw_tp", NULL };

static const struct hook {
	const char *name, *functions;
} hooks[HOOKS_NR] = {
#define HOOK(name, NAME, in, functions) [HOOK_##NAME] = { #name, functions },
	EXIT_HOOKS(HOOK)
#undef HOOK
};

/* Of these only the begin is of interest, or there is no end. */
static bool has_end(unsigned int hook)
{
	return hook != HOOK_EXIT && hook != HOOK_PUT_NET;
}

int exits_hook_by_name(const char *name, size_t len)
{
	int i;

	for (i = 0; i < HOOKS_NR; i++)
		if (strlen(hooks[i].name) == len &&
		    !strncmp(hooks[i].name, name, len))
			return i;
	return -1;
}

static struct bpf_program *program(struct exits *x, const char *what,
				   const char *hook)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", what, hook);
	return bpf_object__find_program_by_name(x->skel->obj, name);
}

/* The first of the functions, a list, that the kernel has; to free. */
static char *find_function(const struct btf *btf, const char *functions)
{
	char *list = strdup(functions), *rest = list, *name, *found = NULL;

	while (list && !found && (name = strsep(&rest, " ")))
		if (btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0)
			found = strdup(name);
	free(list);
	return found;
}

static int aim_hook(struct exits *x, unsigned int i, const struct rung *r)
{
	struct bpf_program *enter = program(x, "enter", hooks[i].name);
	struct bpf_program *leave = program(x, "leave", hooks[i].name);
	bool on = r->fentry && x->hook[i].function;
	int err = 0;

	bpf_program__set_autoload(enter, on);
	bpf_program__set_autoload(leave, on && has_end(i));
	if (on)
		err = bpf_program__set_attach_target(enter, 0, x->hook[i].function);
	if (!err && on && has_end(i))
		err = bpf_program__set_attach_target(leave, 0, x->hook[i].function);
	return err;
}

/* Which function each hook is attached to. */
static int aim(struct exits *x, const struct exits_options *o, const struct rung *r)
{
	struct btf *btf = btf__load_vmlinux_btf();
	unsigned int i;
	int err = 0;

	if (!btf)
		return -errno;
	for (i = 0; i < HOOKS_NR && !err; i++) {
		struct exits_hook *h = &x->hook[i];

		free((char *)h->function);
		h->name = hooks[i].name;
		h->function = find_function(btf, o->function[i] ?: hooks[i].functions);
		h->why_not = h->function ? NULL : "this kernel has no such function";
		err = aim_hook(x, i, r);
	}
	btf__free(btf);
	if (!err && !x->hook[HOOK_EXIT].function)
		err = -EOPNOTSUPP;
	return err;
}

static bool is_tracepoint(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);

	return !strncmp(section, "tp_btf/", 7) || !strncmp(section, "raw_tp/", 7);
}

static bool is_of_rung(const struct exits_options *o, const struct rung *r,
		       const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);

	if (!strcmp(bpf_program__name(prog), "filter_mkdir"))
		return o->group >= 0;
	if (!strcmp(section, "kprobe") || !strcmp(section, "kretprobe"))
		return !r->fentry;
	return !strncmp(section, r->tracepoints, strlen(r->tracepoints));
}

static int open_rung(struct exits *x, const struct exits_options *o,
		     const struct rung *r)
{
	struct bpf_program *prog;

	x->skel = teardown_bpf__open();
	if (!x->skel)
		return -errno;
	x->skel->rodata->filtered = o->group >= 0;
	x->skel->rodata->samples = o->samples;
	x->skel->rodata->self = (uint32_t)getpid();
	if (o->samples)
		bpf_map__set_max_entries(x->skel->maps.ring,
					 o->ring ? o->ring : RING_BYTES);
	bpf_object__for_each_program(prog, x->skel->obj)
		bpf_program__set_autoload(prog, is_of_rung(o, r, prog));
	return aim(x, o, r);
}

static void detach_hook(struct exits *x, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < 2; k++) {
		bpf_link__destroy(x->hook_links[i][k]);
		x->hook_links[i][k] = NULL;
	}
}

void exits_drop(struct exits *x, enum exit_hook hook, const char *why_not)
{
	__atomic_fetch_or(&x->skel->bss->off, 1u << hook, __ATOMIC_SEQ_CST);
	x->hook[hook].why_not = why_not;
	detach_hook(x, hook);
}

static struct bpf_link *attach_function(struct exits *x, unsigned int i, bool end,
					const struct rung *r)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .bpf_cookie = i, .retprobe = end);

	if (r->fentry)
		return bpf_program__attach(program(x, end ? "leave" : "enter",
						   hooks[i].name));
	return bpf_program__attach_kprobe_opts(end ? x->skel->progs.any_leave :
						     x->skel->progs.any_enter,
					       x->hook[i].function, &opts);
}

/* The end first: then no begin is without one. */
static int attach_hook(struct exits *x, unsigned int i, const struct rung *r)
{
	if (has_end(i)) {
		x->hook_links[i][1] = attach_function(x, i, true, r);
		if (!x->hook_links[i][1])
			return -errno;
	}
	x->hook_links[i][0] = attach_function(x, i, false, r);
	return x->hook_links[i][0] ? 0 : -errno;
}

static int attach_hooks(struct exits *x, const struct rung *r)
{
	unsigned int i;
	int err;

	for (i = 0; i < HOOKS_NR; i++) {
		if (!x->hook[i].function)
			continue;
		err = attach_hook(x, i, r);
		/* Without these nothing can be said. */
		if (err && (err == -EPERM || i == HOOK_EXIT))
			return err;
		if (err)
			exits_drop(x, i, "this kernel lets nobody attach there");
	}
	return 0;
}

static int attach_tracepoints(struct exits *x)
{
	struct bpf_program *prog;
	struct bpf_link *link;

	bpf_object__for_each_program(prog, x->skel->obj) {
		if (!bpf_program__autoload(prog) || !is_tracepoint(prog))
			continue;
		if (x->nr_links == EXITS_LINKS)
			return -E2BIG;
		link = bpf_program__attach(prog);
		if (!link)
			return -errno;
		x->links[x->nr_links++] = link;
	}
	return 0;
}

static void detach(struct exits *x)
{
	unsigned int i;

	for (i = 0; i < HOOKS_NR; i++)
		detach_hook(x, i);
	while (x->nr_links)
		bpf_link__destroy(x->links[--x->nr_links]);
}

static void forget(struct exits *x)
{
	unsigned int i;

	if (x->skel)
		detach(x);
	teardown_bpf__destroy(x->skel);
	x->skel = NULL;
	for (i = 0; i < HOOKS_NR; i++) {
		free((char *)x->hook[i].function);
		x->hook[i] = (struct exits_hook){ 0 };
	}
}

static int try_rung(struct exits *x, const struct exits_options *o,
		    const struct rung *r)
{
	int err;

	loader_forget();
	err = open_rung(x, o, r);
	if (!err)
		err = teardown_bpf__load(x->skel);
	if (!err)
		err = attach_tracepoints(x);
	if (!err)
		err = attach_hooks(x, r);
	if (!err)
		err = loader_want(x->skel->maps.wanted, o->group);
	if (err)
		forget(x);
	return err;
}

static int try_rungs(struct exits *x, const struct exits_options *o, char **why)
{
	int err = -EINVAL;
	size_t i;

	for (i = 0; i < sizeof(rungs) / sizeof(rungs[0]); i++) {
		if (o->rung && strcmp(o->rung, rungs[i].name))
			continue;
		err = try_rung(x, o, &rungs[i]);
		x->rung = rungs[i].name;
		if (!err)
			return 0;
		loader_note(why, rungs[i].name, err);
		/* Neither of these is better one rung down. */
		if (err == -EPERM || err == -ENOMEM)
			return err;
	}
	return -EOPNOTSUPP;
}

int exits_open(const struct exits_options *o, struct exits **out, char **why)
{
	libbpf_print_fn_t old;
	double call, error;
	struct exits *x;
	int err;

	*why = NULL;
	err = exits_call_ns(&call, &error);
	if (err)
		return err;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	old = loader_listen();
	err = try_rungs(x, o, why);
	libbpf_set_print(old);
	if (!err)
		err = exits_check(x, call, error);
	if (err) {
		exits_close(x);
		return err;
	}
	x->skel->bss->active = true;
	*out = x;
	return 0;
}

void exits_stop(struct exits *x)
{
	__atomic_store_n(&x->skel->bss->active, false, __ATOMIC_SEQ_CST);
}

const char *exits_rung(const struct exits *x)
{
	return x->rung;
}

void exits_close(struct exits *x)
{
	if (!x)
		return;
	ring_buffer__free(x->ring);
	forget(x);
	free(x);
}
