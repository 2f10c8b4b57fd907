// SPDX-License-Identifier: GPL-2.0
/* Address spaces: /proc/PID/smaps is exact, also where the counters lag. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "recount.h"

#define PAGE_KB	4
#define HUGE_KB	2048

/* One mapping, in kB. */
struct mapping {
	bool shmem;
	uint64_t rss, anon, anon_huge, shmem_huge, file_huge, hugetlb;
};

static void add(struct recount *c, const struct mapping *m)
{
	uint64_t huge = m->anon_huge + m->shmem_huge + m->file_huge;
	uint64_t other = m->rss - m->anon - m->shmem_huge - m->file_huge;

	c->n[RECOUNT_ANON] += (m->anon - m->anon_huge) / PAGE_KB;
	c->n[m->shmem ? RECOUNT_SHMEM : RECOUNT_FILE] += other / PAGE_KB;
	c->n[RECOUNT_HUGE] += (huge + m->hugetlb) / HUGE_KB;
}

/* Is what is mapped at @range of @pid in a tmpfs, as anonymous shared memory is? */
static bool is_shmem(pid_t pid, const char *range)
{
	char path[96];
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%s", pid, range);
	return !statfs(path, &fs) && fs.f_type == TMPFS_MAGIC;
}

static bool field(const char *line, const char *key, uint64_t *kb)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) || line[len] != ':')
		return false;
	*kb += strtoull(line + len + 1, NULL, 10);
	return true;
}

static void read_fields(const char *line, struct mapping *m)
{
	if (!field(line, "Rss", &m->rss) && !field(line, "Anonymous", &m->anon) &&
	    !field(line, "AnonHugePages", &m->anon_huge) &&
	    !field(line, "ShmemPmdMapped", &m->shmem_huge) &&
	    !field(line, "FilePmdMapped", &m->file_huge) &&
	    !field(line, "Shared_Hugetlb", &m->hugetlb))
		field(line, "Private_Hugetlb", &m->hugetlb);
}

static int read_smaps(pid_t pid, struct recount *c)
{
	char path[64], *line = NULL, range[64];
	struct mapping m = { 0 };
	bool some = false;
	size_t room = 0;
	FILE *f;
	int at;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (getline(&line, &room, f) > 0) {
		at = 0;
		if (sscanf(line, "%63[0-9a-f-] %*4[rwxps-] %*x %*x:%*x %*u%n",
			   range, &at) < 1 || !at) {
			read_fields(line, &m);
			continue;
		}
		if (some)
			add(c, &m);
		/* The kernel's own, which is nobody's mapping. */
		some = !strstr(line + at, "[vsyscall]");
		c->n[RECOUNT_VMA] += some;
		m = (struct mapping){ .shmem = is_shmem(pid, range) };
	}
	if (some)
		add(c, &m);
	free(line);
	fclose(f);
	return 0;
}

static int read_status(pid_t pid, struct recount *c)
{
	uint64_t table = 0, swap = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (fgets(line, sizeof(line), f))
		if (!field(line, "VmPTE", &table))
			field(line, "VmSwap", &swap);
	fclose(f);
	c->n[RECOUNT_TABLE] += table / PAGE_KB;
	c->n[RECOUNT_SWAP] += swap / PAGE_KB;
	return 0;
}

int recount_mm(pid_t pid, struct recount *c)
{
	int err = read_smaps(pid, c);

	c->n[RECOUNT_MM]++;
	return err ? err : read_status(pid, c);
}
