// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../cli.h"
#include "count.h"
#include "files.h"
#include "spaces.h"

#define KIB_PER_PAGE	4

static FILE *proc_open(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fopen(path, "re");
}

/* Numbers of lines "KEY: NUMBER kB", which @keys are for; of /proc/PID/FILE. */
static int read_keys(pid_t pid, const char *file, const char *const *keys,
		     double *v, size_t n)
{
	FILE *f = proc_open(pid, file);
	char line[256];
	size_t i, len;
	int err;

	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	for (i = 0; i < n; i++)
		v[i] = 0;
	while (fgets(line, sizeof(line), f)) {
		for (i = 0; i < n; i++) {
			len = strlen(keys[i]);
			if (!strncmp(line, keys[i], len) && line[len] == ':')
				v[i] = strtod(line + len + 1, NULL);
		}
	}
	err = ferror(f) ? -ESRCH : 0;
	fclose(f);
	return err;
}

/* Mappings, and files that are mapped. */
static void count_maps(pid_t pid, double *vmas, double *files)
{
	FILE *f = proc_open(pid, "maps");
	unsigned long long ino, last = 0;
	size_t room = 0;
	char *line = NULL;

	*vmas = *files = 0;
	/* Those of a file stand together; the vsyscall page is in no address space. */
	while (f && getline(&line, &room, f) > 0) {
		if (strstr(line, "[vsyscall]"))
			continue;
		++*vmas;
		if (sscanf(line, "%*s %*s %*s %*s %llu", &ino) != 1 || !ino)
			continue;
		*files += ino != last;
		last = ino;
	}
	free(line);
	if (f)
		fclose(f);
}

/* Pages by what they are; in the sums of the kernel huge ones are among them. */
static void count_pages(const struct kinds *k, pid_t pid, double shmem,
			double swap, double tables, struct counts *c)
{
	enum { RSS, ANON, ANON_HUGE, SHMEM_HUGE, FILE_HUGE, ANON_PART,
	       SHMEM_PART, NR };
	static const char *const keys[NR] = {
		[RSS] = "Rss", [ANON] = "Anonymous",
		[ANON_HUGE] = "AnonHugePages", [SHMEM_HUGE] = "ShmemPmdMapped",
		[FILE_HUGE] = "FilePmdMapped", [ANON_PART] = "Pss_Anon",
		[SHMEM_PART] = "Pss_Shmem",
	};
	static const double kib_per_huge = 2048;
	double v[NR];

	kinds_add(k, c, "table", tables / KIB_PER_PAGE);
	kinds_add(k, c, "swap", swap / KIB_PER_PAGE);
	/* The counters of status may be behind by some pages a CPU. */
	if (read_keys(pid, "smaps_rollup", keys, v, NR))
		return;
	kinds_add(k, c, "anon", (v[ANON] - v[ANON_HUGE]) / KIB_PER_PAGE);
	kinds_add(k, c, "shmem", (shmem - v[SHMEM_HUGE]) / KIB_PER_PAGE);
	kinds_add(k, c, "file", (v[RSS] - v[ANON] - shmem - v[FILE_HUGE]) /
				KIB_PER_PAGE);
	kinds_add(k, c, "anon_page", fmax(v[ANON_PART] - v[ANON_HUGE], 0) /
				     KIB_PER_PAGE);
	kinds_add(k, c, "shmem_page", v[SHMEM_PART] / KIB_PER_PAGE);
	kinds_add(k, c, "huge", (v[ANON_HUGE] + v[SHMEM_HUGE] + v[FILE_HUGE]) /
				kib_per_huge);
}

int count_process(const struct kinds *k, pid_t pid, bool image,
		  struct counts *c)
{
	enum { SIZE, THREADS, SHMEM, SWAP, TABLES, NR };
	static const char *const keys[NR] = {
		[SIZE] = "VmSize", [THREADS] = "Threads", [SHMEM] = "RssShmem",
		[SWAP] = "VmSwap", [TABLES] = "VmPTE",
	};
	double v[NR], vmas, mapped;
	int err = read_keys(pid, "status", keys, v, NR);

	if (err)
		return err;
	kinds_add(k, c, "process", 1);
	kinds_add(k, c, "thread", v[THREADS] > 1 ? v[THREADS] - 1 : 0);
	if (v[SIZE] > 0) {
		kinds_add(k, c, "mm", 1);
		count_maps(pid, &vmas, &mapped);
		kinds_add(k, c, "vma", vmas);
		kinds_add(k, c, "image", image ? mapped : 0);
		count_pages(k, pid, v[SHMEM], v[SWAP], v[TABLES], c);
	}
	kinds_add(k, c, "fd", (double)files_slots(pid));
	return 0;
}

/*
 * Where the stack of @pid begins: with random layouts the same only for those
 * that forked from each other and executed nothing since. 0: not known.
 */
static unsigned long long stack_of(pid_t pid)
{
	FILE *f = proc_open(pid, "stat");
	unsigned long long stack = 0;
	char text[1024], *at;
	size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	int field;

	text[len] = '\0';
	/* Behind the name, which may be anything, stands field 3; it is 28. */
	at = strrchr(text, ')');
	for (field = 2; at && field < 28; field++)
		at = strchr(at + 1, ' ');
	if (at)
		stack = strtoull(at + 1, NULL, 10);
	if (f)
		fclose(f);
	return stack;
}

/* Is @pid the first of those that share the files they have mapped? */
static bool first_of_image(pid_t pid, unsigned long long *seen, size_t *n)
{
	unsigned long long stack = stack_of(pid);
	size_t i;

	for (i = 0; i < *n && stack; i++) {
		if (seen[i] == stack)
			return false;
	}
	seen[(*n)++] = stack;
	return true;
}

/* Files and namespaces of @from. */
static void take_files(const struct kinds *k, const struct counts *from,
		       struct counts *to)
{
	enum part part;
	size_t i;

	for (i = 0; i < k->known; i++) {
		part = kinds_part(k->name[i]);
		if (part == PART_FILES || part == PART_SPACES)
			to->n[i] = from->n[i];
	}
}

static int count_files(const struct kinds *k, const struct tasks *list,
		       struct files *files, struct counts *c)
{
	files_count(k, files, c);
	return spaces_count(k, list, c);
}

int count_tasks(const struct kinds *k, const struct tasks *list,
		const struct counts *known, uint64_t until, struct living *l)
{
	int thread = kinds_find(k, "thread"), err = 0;
	unsigned long long *seen = calloc(list->n + 1, sizeof(*seen));
	struct files files = { 0 };
	size_t i, images = 0;
	double alone;
	pid_t pid;

	*l = (struct living){ 0 };
	if (!seen)
		return -ENOMEM;
	for (i = 0; i < list->n && !err; i++) {
		struct counts one = { { 0 } };

		pid = list->list[i].pid;
		if (cli_now() >= until)
			err = -ETIME;
		else
			err = count_process(k, pid,
					    first_of_image(pid, seen, &images),
					    &one);
		if (!err && !known)
			err = files_of(pid, &files);
		if (err == -ESRCH) {
			err = 0;
			continue;
		}
		if (err)
			break;
		l->processes++;
		counts_add(&l->all, &one, 1);
		if (thread >= 0)
			one.n[thread] = 0;
		alone = counts_cost(k, k->price, &one);
		if (alone > l->longest)
			l->longest = alone;
	}
	if (!err && known)
		take_files(k, known, &l->all);
	else if (!err)
		err = count_files(k, list, &files, &l->all);
	files_free(&files);
	free(seen);
	return err;
}
