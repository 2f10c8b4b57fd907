// SPDX-License-Identifier: GPL-2.0
/* Shapes of one address space. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shape.h"

#define PAGE	4096ul
/* What one page-table page maps. */
#define TABLE	(512 * PAGE)
#define HUGE	TABLE
/* What one of the next level maps. */
#define MIDDLE	(512 * TABLE)

static char *map(size_t bytes, int prot, int flags)
{
	return mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* A mapping of every second page differs, so that all stay apart. */
static int split(char *at, unsigned int n, bool touch)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (touch)
			at[i * PAGE] = 1;
		if (i & 1 && mprotect(at + i * PAGE, PAGE, PROT_READ))
			return -errno;
	}
	return 0;
}

int shape_vma_anon(struct shape_build *b)
{
	char *at = map(b->n * PAGE, PROT_READ | PROT_WRITE, 0);

	return at == MAP_FAILED ? -errno : split(at, b->n, false);
}

int shape_vma_touched(struct shape_build *b)
{
	char *at = map(b->n * PAGE, PROT_READ | PROT_WRITE, 0);

	if (at == MAP_FAILED)
		return -errno;
	madvise(at, b->n * PAGE, MADV_NOHUGEPAGE);
	shape_extra(b, "anon_page", b->n);
	return split(at, b->n, true);
}

/* The first page of a file all over again. */
int shape_vma_file(struct shape_build *b)
{
	char *at = map(b->n * PAGE, PROT_NONE, MAP_NORESERVE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned int i;
	int err = 0;

	if (at == MAP_FAILED || fd < 0)
		return -errno;
	for (i = 0; i < b->n && !err; i++) {
		if (mmap(at + i * PAGE, PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			err = -errno;
	}
	close(fd);
	return err;
}

static int touch(char *at, size_t bytes, size_t step)
{
	size_t i;

	for (i = 0; i < bytes; i += step)
		at[i] = 1;
	return 0;
}

int shape_anon(struct shape_build *b)
{
	char *at = map(b->n * PAGE, PROT_READ | PROT_WRITE, 0);

	if (at == MAP_FAILED)
		return -errno;
	madvise(at, b->n * PAGE, MADV_NOHUGEPAGE);
	shape_extra(b, "anon_page", b->n);
	return touch(at, b->n * PAGE, PAGE);
}

/* Pages of a program in the page cache. */
int shape_file(struct shape_build *b)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err = 0;
	size_t left = b->n * PAGE, bytes;
	struct stat st;
	char *at;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	while (left && !err) {
		bytes = ((size_t)st.st_size + PAGE - 1) & ~(PAGE - 1);
		bytes = bytes < left ? bytes : left;
		at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at == MAP_FAILED || madvise(at, bytes, MADV_POPULATE_READ))
			err = -errno;
		left -= bytes;
	}
	close(fd);
	return err;
}

/* @times mappings of one file; its pages go with the last. */
static int map_shared(unsigned int pages, unsigned int times)
{
	int fd = memfd_create("brumm-shape", MFD_CLOEXEC), err = 0;
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)(pages * PAGE)))
		return -errno;
	while (times-- && !err) {
		at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);
		if (at == MAP_FAILED || madvise(at, pages * PAGE,
						MADV_POPULATE_WRITE))
			err = -errno;
	}
	close(fd);
	return err;
}

int shape_shmem(struct shape_build *b)
{
	shape_extra(b, "shmem_page", b->n);
	return map_shared(b->n, 1);
}

int shape_shmem_again(struct shape_build *b)
{
	shape_extra(b, "shmem_page", b->n / 8);
	return map_shared(b->n / 8, 8);
}

static bool has_huge(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char line[64] = "[never]";

	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return f && !strstr(line, "[never]");
}

int shape_huge(struct shape_build *b)
{
	char *at;

	if (!has_huge())
		return -EOPNOTSUPP;
	at = map((b->n + 1) * HUGE, PROT_READ | PROT_WRITE, 0);
	if (at == MAP_FAILED)
		return -errno;
	at = (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
	if (madvise(at, b->n * HUGE, MADV_HUGEPAGE))
		return -errno;
	return touch(at, b->n * HUGE, HUGE);
}

/* The page of zeros, once each @step: tables, and no page of one's own. */
static int read_sparse(unsigned int n, size_t step)
{
	char *at = map((n + 1) * step, PROT_READ, MAP_NORESERVE);
	volatile char *p;
	unsigned int i;

	if (at == MAP_FAILED)
		return -errno;
	/* Or else it is the huge one. */
	madvise(at, (n + 1) * step, MADV_NOHUGEPAGE);
	p = (char *)(((uintptr_t)at + step - 1) & ~(step - 1));
	for (i = 0; i < n; i++)
		(void)p[i * step];
	return 0;
}

int shape_tables(struct shape_build *b)
{
	return read_sparse(b->n, TABLE);
}

/* Two levels each. */
int shape_tables_deep(struct shape_build *b)
{
	return read_sparse(b->n / 2, MIDDLE);
}

int shape_swap(struct shape_build *b)
{
	FILE *f = fopen("/proc/swaps", "re");
	char *at, line[256];
	int lines = 0;

	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	if (lines < 2)
		return -EOPNOTSUPP;
	at = map(b->n * PAGE, PROT_READ | PROT_WRITE, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, b->n * PAGE, MADV_NOHUGEPAGE);
	touch(at, b->n * PAGE, PAGE);
	return madvise(at, b->n * PAGE, MADV_PAGEOUT) ? -errno : 0;
}
