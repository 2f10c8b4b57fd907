/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kinds of the living: what dies with the tasks of a cgroup, as the kernel
 * names them in brumm.price. There is no other list of them: a part of this
 * program that counts a kind names it, and kinds that the kernel does not have
 * are counted nowhere.
 */
#ifndef BRUMM_KINDS_H
#define BRUMM_KINDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define KINDS_MOST	64

/**
 * struct kinds - the names, in the order of brumm.price, and prices
 * @n: how many; 0: this kernel's module has none
 * @known: so many of them the kernel knows; behind them are those that only a
 *	prediction tells apart, see kinds_extend()
 * @name: of each
 * @price: of one of it, ns
 */
struct kinds {
	size_t n, known;
	char name[KINDS_MOST][24];
	double price[KINDS_MOST];
};

/* Counts by kind, in the order of a struct kinds. */
struct counts {
	double n[KINDS_MOST];
};

/* What a kind belongs to. */
enum part {
	PART_TASKS,
	PART_PAGES,
	PART_FILES,
	PART_SPACES,
	PARTS,
};

/* "tasks", "pages", "files", "namespaces". */
extern const char *const part_names[PARTS];

/* Those in force in @group; with none of them @k->n is 0. 0 or an error. */
int kinds_read(int group, struct kinds *k);

/*
 * Adds what a price of the kernel has in it, but a prediction sees:
 *
 *	anon_page, shmem_page	a page that goes; "anon" and "shmem" are its mappings
 *	image			a file that is mapped and nowhere else open; a process
 *				has its own until it forks
 */
void kinds_extend(struct kinds *k);

/* Place of @name, -1: there is none. */
int kinds_find(const struct kinds *k, const char *name);

/* Adds @n of @name, if there is such a kind. */
void kinds_add(const struct kinds *k, struct counts *c, const char *name,
	       double n);
/* Of a kind, 0 if there is none. */
double kinds_get(const struct kinds *k, const struct counts *c,
		 const char *name);

/* *@to += @n * *@c */
void counts_add(struct counts *to, const struct counts *c, double n);

/* What @c costs at @price, by kind. */
double counts_cost(const struct kinds *k, const double *price,
		   const struct counts *c);

enum part kinds_part(const char *name);

#endif /* BRUMM_KINDS_H */
