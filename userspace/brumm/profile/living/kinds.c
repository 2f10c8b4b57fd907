// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "../../cli.h"
#include "../fit.h"
#include "kinds.h"

const char *const part_names[PARTS] = {
	[PART_TASKS] = "tasks",
	[PART_PAGES] = "pages",
	[PART_FILES] = "files",
	[PART_SPACES] = "namespaces",
};

static bool of_device(const char *name)
{
	int t;

	for (t = 0; t < FIT_TERMS; t++) {
		if (!strcmp(name, fit_names[t]))
			return true;
	}
	return false;
}

static int one(const char *key, uint64_t ns, void *arg)
{
	struct kinds *k = arg;

	if (of_device(key) || k->n == KINDS_MOST)
		return 0;
	snprintf(k->name[k->n], sizeof(k->name[0]), "%s", key);
	k->price[k->n++] = (double)ns;
	return 0;
}

int kinds_read(int group, struct kinds *k)
{
	int err;

	*k = (struct kinds){ 0 };
	err = brumm_group_price(group, one, k);
	k->known = k->n;
	return err < 0 ? err : 0;
}

void kinds_extend(struct kinds *k)
{
	one("anon_page", 0, k);
	one("shmem_page", 0, k);
	one("image", 0, k);
}

int kinds_find(const struct kinds *k, const char *name)
{
	size_t i;

	for (i = 0; i < k->n; i++) {
		if (!strcmp(k->name[i], name))
			return (int)i;
	}
	return -1;
}

void kinds_add(const struct kinds *k, struct counts *c, const char *name,
	       double n)
{
	int i = kinds_find(k, name);

	if (i >= 0)
		c->n[i] += n;
}

double kinds_get(const struct kinds *k, const struct counts *c,
		 const char *name)
{
	int i = kinds_find(k, name);

	return i < 0 ? 0 : c->n[i];
}

void counts_add(struct counts *to, const struct counts *c, double n)
{
	size_t i;

	for (i = 0; i < KINDS_MOST; i++)
		to->n[i] += n * c->n[i];
}

double counts_cost(const struct kinds *k, const double *price,
		   const struct counts *c)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < k->n; i++)
		sum += price[i] * c->n[i];
	return sum;
}

enum part kinds_part(const char *name)
{
	static const char *const tasks[] = { "process", "thread" };
	static const char *const pages[] = { "mm", "vma", "anon", "file", "shmem",
					     "anon_page", "shmem_page", "image",
					     "huge", "table", "swap" };
	size_t len = strlen(name), i;

	for (i = 0; i < ARRAY_SIZE(tasks); i++) {
		if (!strcmp(name, tasks[i]))
			return PART_TASKS;
	}
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		if (!strcmp(name, pages[i]))
			return PART_PAGES;
	}
	return len >= 2 && !strcmp(name + len - 2, "ns") ? PART_SPACES :
							   PART_FILES;
}
