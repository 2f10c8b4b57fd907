// SPDX-License-Identifier: GPL-2.0
/*
 * work OUT COMMAND...: do what the tests of the probes look at, and write what was
 * done to OUT, a JSON object: counts by what was called, time as seen from here.
 *
 *	shape N		a window, N pages mapped one by one to another, touched,
 *			made read-only, taken back; then the window itself
 *	foreign N DIR	N pages mapped one by one, at the expense of the cgroup DIR,
 *			and taken back
 *	mixed N DIR	the same, but only every third page is at the expense of DIR
 *	spread N	N pages mapped one by one, and taken back at once
 *	maps N		N times MAP and UNMAP of one page
 *	info N		N times INFO
 *	leave N		N pages mapped one by one, 4 of them taken back; the rest stays
 *			until it is killed
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"

static struct {
	uint64_t map, unmap, reduce, info, windows, faults;
	uint64_t nodes, pages, unmap_ns, map_ns, info_ns;
} done;

static void must(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "work: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static int window(void)
{
	int fd = dev_open();

	must(fd, "open");
	done.windows++;
	return fd;
}

static void map(int from, int to, uint64_t source, uint64_t target)
{
	uint64_t start = now_ns();

	must(dev_map(from, source, 1, to, target, RWD), "map");
	done.map_ns += now_ns() - start;
	done.map++;
}

static void unmap(int w, uint64_t pages, uint32_t flags)
{
	uint64_t start = now_ns();
	struct brumm_unmap u;

	must(dev_unmap_flags(w, 0, pages, flags, 0, &u), "unmap");
	done.unmap_ns += now_ns() - start;
	done.unmap++;
	done.nodes += u.nodes;
	done.pages += u.pages;
}

static void touch(int w, uint64_t pages)
{
	char *at = dev_mmap(w, 0, pages, PROT_READ | PROT_WRITE);
	uint64_t i;

	must(at ? 0 : -errno, "mmap");
	for (i = 0; i < pages; i++) {
		((volatile char *)at)[i * PAGE] = 1;
		done.faults++;
	}
	munmap(at, pages * PAGE);
}

static void fill(int from, int to, uint64_t pages)
{
	uint64_t i;

	must(dev_alloc(from, 0, pages), "alloc");
	for (i = 0; i < pages; i++)
		map(from, to, i, i);
}

static void shape(uint64_t n)
{
	struct brumm_unmap u;
	int w = window(), x = window();

	fill(w, x, n);
	touch(x, n);
	must(dev_unmap_flags(w, 0, n, BRUMM_UNMAP_RIGHTS, W, &u), "reduce");
	done.reduce++;
	unmap(w, n, 0);
	unmap(w, n, BRUMM_UNMAP_SELF);
	close(x);
	close(w);
}

static void foreign(uint64_t n, const char *dir, unsigned int every)
{
	int cgroup = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int w = window(), x = window();
	uint64_t i;

	must(cgroup < 0 ? -errno : 0, dir);
	must(dev_alloc(w, 0, n), "alloc");
	for (i = 0; i < n; i++) {
		if (i % every) {
			map(w, x, i, i);
			continue;
		}
		must(dev_map_for(w, i, 1, x, i, RWD, cgroup), "map");
		done.map++;
	}
	unmap(w, n, 0);
	close(x);
	close(w);
}

static void spread(uint64_t n)
{
	int w = window(), x = window();

	fill(w, x, n);
	unmap(w, n, 0);
	close(x);
	close(w);
}

static void maps(uint64_t n)
{
	int w = window(), x = window();
	uint64_t i;

	must(dev_alloc(w, 0, 1), "alloc");
	for (i = 0; i < n; i++) {
		map(w, x, 0, 0);
		unmap(w, 1, 0);
	}
	close(x);
	close(w);
}

static void info(uint64_t n)
{
	int w = window();
	struct brumm_info i;

	for (; done.info < n; done.info++) {
		uint64_t start = now_ns();

		must(dev_info(w, &i), "info");
		done.info_ns += now_ns() - start;
	}
	close(w);
}

static void leave(uint64_t n)
{
	int w = window(), x = window();

	fill(w, x, n);
	unmap(w, 4, 0);
}

static int report(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return 1;
	fprintf(f, "{\"map\": %" PRIu64 ", \"unmap\": %" PRIu64
		", \"reduce\": %" PRIu64 ", \"info\": %" PRIu64
		", \"windows\": %" PRIu64 ", \"faults\": %" PRIu64
		", \"nodes\": %" PRIu64 ", \"pages\": %" PRIu64
		", \"unmap_ns\": %" PRIu64 ", \"map_ns\": %" PRIu64
		", \"info_ns\": %" PRIu64 ", \"pid\": %d}\n",
		done.map, done.unmap, done.reduce, done.info, done.windows,
		done.faults, done.nodes, done.pages, done.unmap_ns, done.map_ns,
		done.info_ns, getpid());
	return fclose(f) != 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[2] : "";
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;

	if (!strcmp(what, "shape"))
		shape(n);
	else if (!strcmp(what, "foreign") && argc > 4)
		foreign(n, argv[4], 1);
	else if (!strcmp(what, "mixed") && argc > 4)
		foreign(n, argv[4], 3);
	else if (!strcmp(what, "spread"))
		spread(n);
	else if (!strcmp(what, "maps"))
		maps(n);
	else if (!strcmp(what, "info"))
		info(n);
	else if (!strcmp(what, "leave"))
		leave(n);
	else
		return fputs("usage: work OUT shape|foreign|mixed|spread|maps|info|leave N [DIR]\n",
			     stderr), 1;
	if (report(argv[1]))
		return 1;
	if (!strcmp(what, "leave"))
		pause();
	return 0;
}
