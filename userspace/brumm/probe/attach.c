// SPDX-License-Identifier: GPL-2.0
/* The BPF object: load it, attach it, and whom it counts. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brumm/brumm.h>

#include "internal.h"

#define RING_BYTES	(16u << 20)

/* The order matters: the first has types checked, the last works without BTF. */
static const struct rung {
	const char *name;
	const char *section;
} rungs[] = {
	{ "tp_btf", "tp_btf/" },
	{ "raw_tp", "raw_tp/brumm_" },
	{ "tracepoint", "tp/" },
};

const char *const probe_rungs[] = { "tp_btf", "raw_tp", "tracepoint", NULL };

static bool is_filter(const struct bpf_program *prog)
{
	return !strcmp(bpf_program__name(prog), "filter_mkdir");
}

static bool is_of_rung(const struct bpf_program *prog, const struct rung *r)
{
	return !strncmp(bpf_program__section_name(prog), r->section,
			strlen(r->section));
}

/* Load and attach */

static struct probe_bpf *open_rung(const struct probe_options *o,
				   const struct rung *r)
{
	struct probe_bpf *skel = probe_bpf__open();
	struct bpf_program *prog;

	if (!skel)
		return NULL;
	skel->rodata->filtered = o->group >= 0;
	skel->rodata->samples = o->samples;
	if (o->samples)
		bpf_map__set_max_entries(skel->maps.ring,
					 o->ring ? o->ring : RING_BYTES);
	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, is_filter(prog) ?
						o->group >= 0 :
						is_of_rung(prog, r));
	return skel;
}

void probe_detach(struct probe *p)
{
	while (p->nr_links)
		bpf_link__destroy(p->links[--p->nr_links]);
}

int probe_attach(struct probe *p)
{
	struct bpf_program *prog;
	struct bpf_link *link;

	bpf_object__for_each_program(prog, p->skel->obj) {
		if (!bpf_program__autoload(prog))
			continue;
		if (p->nr_links == PROBE_LINKS) {
			probe_detach(p);
			return -E2BIG;
		}
		link = bpf_program__attach(prog);
		if (!link) {
			int err = -errno;

			probe_detach(p);
			return err;
		}
		p->links[p->nr_links++] = link;
	}
	return 0;
}

static int try_rung(struct probe *p, const struct probe_options *o,
		    const struct rung *r)
{
	int err;

	loader_forget();
	p->skel = open_rung(o, r);
	if (!p->skel)
		return -errno;
	err = probe_bpf__load(p->skel);
	if (!err)
		err = probe_attach(p);
	/* After the filter is attached, so that no cgroup is overlooked. */
	if (!err)
		err = loader_want(p->skel->maps.wanted, o->group);
	if (err) {
		probe_detach(p);
		probe_bpf__destroy(p->skel);
		p->skel = NULL;
	}
	return err;
}

int probe_open(const struct probe_options *o, struct probe **out, char **why)
{
	libbpf_print_fn_t old = loader_listen();
	struct probe *p = calloc(1, sizeof(*p));
	int err = -EINVAL;
	size_t i;

	*why = NULL;
	if (!p)
		return -ENOMEM;
	if (access(BRUMM_DEVICE, F_OK)) {
		free(p);
		return -ENOENT;
	}
	for (i = 0; i < sizeof(rungs) / sizeof(rungs[0]); i++) {
		if (o->rung && strcmp(o->rung, rungs[i].name))
			continue;
		err = try_rung(p, o, &rungs[i]);
		if (!err)
			break;
		loader_note(why, rungs[i].name, err);
		/* Neither of these is better one rung down. */
		if (err == -EPERM || err == -ENOMEM)
			break;
	}
	libbpf_set_print(old);
	if (err) {
		if (err != -EPERM && err != -ENOMEM)
			err = -EOPNOTSUPP;
		free(p);
		return err;
	}
	p->rung = rungs[i].name;
	p->skel->bss->active = true;
	*out = p;
	return 0;
}

void probe_pause(struct probe *p, bool pause)
{
	__atomic_store_n(&p->skel->bss->active, !pause, __ATOMIC_SEQ_CST);
}

const char *probe_rung(const struct probe *p)
{
	return p->rung;
}

void probe_close(struct probe *p)
{
	if (!p)
		return;
	probe_detach(p);
	ring_buffer__free(p->ring);
	probe_bpf__destroy(p->skel);
	free(p);
}
