// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../brumm/whole.h"
#include "list.h"

struct request_list {
	struct whole file;
	FILE *f;
	const struct events *events;
};

static const char *const known_names[KNOWNS] = {
	[KNOWN_ALL] = "all", [KNOWN_UNSENT] = "unsent", [KNOWN_LOST] = "lost",
	[KNOWN_NOT] = "unseen",
};

int list_open(struct request_list **out, const char *path, const struct events *e)
{
	struct request_list *l;
	unsigned int i;
	int err;

	*out = NULL;
	if (!path)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->events = e;
	err = whole_open(&l->file, path);
	if (err) {
		free(l);
		return err;
	}
	l->f = l->file.f;
	fputs("request,side,known,intended,sent,arrived,read,answered,received,server_port,client_port,tid,cpu",
	      l->f);
	for (i = 0; i < PARTS; i++)
		fprintf(l->f, ",%s", attr_part_names[i]);
	fputs(",by\n", l->f);
	*out = l;
	return 0;
}

/* Who had the CPU for the longest piece of what it waited. */
static const char *worst(const struct request_list *l, const struct canvas *c)
{
	uint64_t longest = 0;
	uint32_t who = 0;
	size_t i;

	for (i = 0; i < c->n; i++) {
		const struct piece *p = &c->piece[i];

		if (p->who && p->who < l->events->whos &&
		    p->end - p->start > longest) {
			longest = p->end - p->start;
			who = p->who;
		}
	}
	return who ? l->events->who[who].comm : "";
}

static void print_name(const char *name, FILE *f)
{
	fputs(",\"", f);
	for (; *name; name++) {
		if (*name == '"')
			fputc('"', f);
		fputc((unsigned char)*name < ' ' ? '?' : *name, f);
	}
	fputs("\"\n", f);
}

void list_add(struct request_list *l, bool outlier, uint64_t request,
	      const struct leg *leg, const struct finding *f, const struct canvas *c)
{
	uint64_t ns[PARTS] = { 0 };
	size_t i;

	if (!l)
		return;
	for (i = 0; i < c->n; i++)
		ns[c->piece[i].part] += c->piece[i].end - c->piece[i].start;
	fprintf(l->f, "%lu,%s,%s,%lu,%lu,%lu,%lu,%lu,%lu,%u,%u,%u,%d", request,
		outlier ? "outlier" : "normal", known_names[f->known],
		leg->intended, leg->sent, f->arrived, f->read, f->answered,
		leg->received, leg->ports >> 16, leg->ports & 0xffff, f->tid,
		f->cpu == NO_CPU ? -1 : (int)f->cpu);
	for (i = 0; i < PARTS; i++)
		fprintf(l->f, ",%lu", ns[i]);
	print_name(worst(l, c), l->f);
}

int list_close(struct request_list *l, bool kept)
{
	int err;

	if (!l)
		return 0;
	err = whole_close(&l->file, kept ? 0 : -ECANCELED);
	free(l);
	return kept ? err : 0;
}
