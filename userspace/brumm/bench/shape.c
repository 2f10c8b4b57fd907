// SPDX-License-Identifier: GPL-2.0
/* Shapes: making them and taking them back. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cli.h"
#include "shape-plan.h"

#define PAGE		4096ull

static void close_view(struct shape_view *v)
{
	if (v->addr)
		brumm_munmap(v->addr, v->pages * PAGE);
	v->addr = NULL;
	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
}

void shape_free(struct shape *s)
{
	unsigned int i;

	if (!s)
		return;
	for (i = 0; s->views && i < s->spec.windows; i++)
		close_view(&s->views[i]);
	free(s->nodes);
	free(s->views);
	free(s->sponsors);
	free(s->first);
	free(s);
}

static int open_view(struct shape_view *v, bool show)
{
	struct brumm_info info;
	void *addr;
	int err;

	v->fd = brumm_open(0);
	if (v->fd < 0)
		return v->fd;
	err = brumm_info(v->fd, &info);
	if (err)
		return err;
	v->group = info.cgroup;
	if (!show || !v->pages)
		return 0;
	err = brumm_mmap(v->fd, v->pages * PAGE, PROT_READ | PROT_WRITE, &addr);
	if (!err)
		v->addr = addr;
	return err;
}

/* A window belongs to the cgroup that its opener is in. */
static int open_views(struct shape *s)
{
	const struct shape_spec *sp = &s->spec;
	unsigned int i;
	int err = 0;

	for (i = 0; i < sp->windows && !err; i++) {
		if (sp->nr_groups)
			err = cli_enter_group(sp->groups[i % sp->nr_groups]);
		if (!err)
			err = open_view(&s->views[i], sp->touch);
	}
	return err;
}

/* Who pays for each node: see Documentation/design/quota.md. */
static void find_sponsors(struct shape *s)
{
	uint64_t i, above;

	for (i = 0; i < s->nr; i++) {
		above = i ? s->sponsors[s->nodes[i].parent] : 0;
		s->sponsors[i] = above ? above :
				 s->views[s->nodes[i].window].group;
		s->first[i] = s->sponsors[i] && !above;
	}
}

int shape_open(struct shape *s)
{
	int home = -1, err, back;

	if (s->spec.nr_groups) {
		home = brumm_group_open_pid(0);
		if (home < 0)
			return home;
	}
	err = open_views(s);
	if (home >= 0) {
		back = cli_enter_group(home);
		err = err ? err : back;
		close(home);
	}
	if (!err)
		find_sponsors(s);
	return err;
}

int shape_base(struct shape *s)
{
	uint64_t start = cli_now();
	int err = brumm_alloc(s->views[0].fd, 0, s->spec.frames * PAGE);

	s->cost.prepare_ns += cli_now() - start;
	return err;
}

int shape_map(struct shape *s, uint64_t i)
{
	const struct shape_node *n = &s->nodes[i + 1];
	const struct shape_node *up = &s->nodes[n->parent];

	return brumm_map(s->views[up->window].fd, &(struct brumm_map){
		.source = (up->start + (uint64_t)n->from) * PAGE,
		.length = n->pages * PAGE,
		.target = n->start * PAGE,
		.fd = n->window == up->window ? -1 : s->views[n->window].fd,
		.rights = BRUMM_RIGHTS_ALL & ~BRUMM_RIGHT_X,
	});
}

int shape_touch(struct shape *s)
{
	uint64_t start = cli_now(), i, page;

	for (i = 0; i < s->nr; i++) {
		const struct shape_node *n = &s->nodes[i];
		volatile char *at = s->views[n->window].addr;

		if (!at)
			return -EINVAL;
		for (page = n->start; page < (uint64_t)n->start + n->pages; page++)
			at[page * PAGE] = 1;
	}
	s->cost.touch_ns += cli_now() - start;
	return 0;
}

int shape_unmap(struct shape *s, uint64_t i)
{
	const struct shape_node *n = &s->nodes[i + 1];

	return brumm_unmap(s->views[n->window].fd, n->start * PAGE,
			   n->pages * PAGE, BRUMM_UNMAP_SELF, NULL);
}

int shape_make(struct shape *s)
{
	uint64_t i, start;
	int err = shape_open(s);

	if (!err)
		err = shape_base(s);
	start = cli_now();
	for (i = 0; i < shape_mappings(s) && !err; i++)
		err = cli_signal() ? -EINTR : shape_map(s, i);
	s->cost.prepare_ns += cli_now() - start;
	s->cost.map_calls += i;
	if (!err && s->spec.touch)
		err = shape_touch(s);
	return err;
}

int shape_window(const struct shape *s, unsigned int i)
{
	return s->views[i].fd;
}

static int unmap_views(struct shape *s, unsigned int nr)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		if (s->views[i].addr)
			err = brumm_munmap(s->views[i].addr,
					   s->views[i].pages * PAGE);
		s->views[i].addr = NULL;
	}
	return err;
}

int shape_reclaim(struct shape *s, enum shape_by by, int group,
		  struct shape_took *took)
{
	struct brumm_unmap done = { 0 };
	struct shape_counts c;
	uint64_t id = 0, start;
	int err = 0;

	if (by == SHAPE_BY_RECLAIM)
		err = brumm_group_id(group, &id);
	if (err)
		return err;
	shape_revoked(s, by, id, &c);
	start = cli_now();
	switch (by) {
	case SHAPE_BY_UNMAP:
	case SHAPE_BY_UNMAP_SELF:
		err = brumm_unmap(s->views[0].fd, 0, s->spec.frames * PAGE,
				  by == SHAPE_BY_UNMAP ? 0 : BRUMM_UNMAP_SELF,
				  &done);
		break;
	case SHAPE_BY_RECLAIM:
		err = brumm_group_reclaim(group);
		break;
	case SHAPE_BY_CLOSE:
		err = unmap_views(s, 1);
		close_view(&s->views[0]);
		break;
	case SHAPE_BY_MUNMAP:
		err = unmap_views(s, s->spec.windows);
		break;
	default:
		err = -EINVAL;
	}
	took->wall_ns = cli_now() - start;
	took->nodes = done.nodes ? done.nodes : c.map;
	took->pages = done.nodes ? done.pages : c.pt;
	return err;
}
