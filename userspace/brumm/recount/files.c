// SPDX-License-Identifier: GPL-2.0
/* Descriptor tables: /proc/TID/fd, and kcmp for who shares one. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../profile/living/files.h"
#include "recount.h"

/* An order of tables; 0: the same one of the same payer. */
static int compare(const void *a, const void *b)
{
	const struct table *x = a, *y = b;
	long order;

	if (x->payer != y->payer)
		return x->payer < y->payer ? -1 : 1;
	order = syscall(SYS_kcmp, x->tid, y->tid, KCMP_FILES, 0, 0);
	if (order == 1 || order == 2)
		return order == 1 ? -1 : 1;
	/* One is gone. */
	return order ? x->tid - y->tid : 0;
}

static int append(struct tables *t, const struct table *one)
{
	struct table *grown;

	if (t->nr == t->room) {
		t->room = t->room ? 2 * t->room : 64;
		grown = reallocarray(t->one, t->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->one = grown;
	}
	t->one[t->nr++] = *one;
	return 0;
}

int tables_meet(struct tables *t, pid_t pid, ino_t payer)
{
	struct table one = { .payer = payer };
	const struct dirent *d;
	char path[64];
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (!err && dir && (d = readdir(dir))) {
		if (!isdigit(d->d_name[0]))
			continue;
		one.tid = atoi(d->d_name);
		/* Nearly always all threads share the one met last. */
		if (!t->nr || compare(&t->one[t->nr - 1], &one))
			err = append(t, &one);
	}
	if (dir)
		closedir(dir);
	return err;
}

static void add(struct recount *c, const char *kind, uint64_t n)
{
	int k;

	for (k = 0; k < RECOUNT_KINDS; k++)
		if (!strcmp(recount_names[k], kind))
			c->n[k] += n;
}

/* The files of one payer, each once; the list is empty afterwards. */
static void add_files(struct files *f, struct recount *c)
{
	size_t i;

	c->n[RECOUNT_FD] += f->n;
	files_unique(f);
	for (i = 0; i < f->n; i++)
		add(c, f->list[i].type, 1);
	f->n = 0;
}

static bool has_kcmp(void)
{
	return !syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILES, 0, 0);
}

int tables_count(struct tables *t, struct recount *c)
{
	struct files files = { 0 };
	int err = 0, k;
	size_t i;

	if (!has_kcmp()) {
		for (k = RECOUNT_FD; k <= RECOUNT_OTHERFILE; k++)
			c->unknown |= UINT64_C(1) << k;
		return 0;
	}
	if (t->nr)
		qsort(t->one, t->nr, sizeof(*t->one), compare);
	for (i = 0; !err && i < t->nr; i++) {
		if (i && !compare(&t->one[i - 1], &t->one[i]))
			continue;
		if (i && t->one[i - 1].payer != t->one[i].payer)
			add_files(&files, c);
		err = files_of(t->one[i].tid, &files);
		if (err == -ESRCH)
			err = 0;
	}
	add_files(&files, c);
	files_free(&files);
	return err;
}

void tables_free(struct tables *t)
{
	free(t->one);
	*t = (struct tables){ 0 };
}
