// SPDX-License-Identifier: GPL-2.0
/*
 * brumm mc tenant: who is torn down beside memcached, or storms. It grows until
 * it is what was asked for or is refused, says so in one line, and stays.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../mc.h"

#define PAGE 4096ull

struct args {
	uint64_t processes, memory, mappings, threads;
	const char *storm;
};

enum { OPT_PROCESSES = 'p', OPT_MEMORY = 'm', OPT_MAPPINGS = 'M',
       OPT_THREADS = 't', OPT_STORM = 's' };

static const struct argp_option options[] = {
	{ "processes", OPT_PROCESSES, "N", 0, "sleeping processes (300)", 0 },
	{ "memory", OPT_MEMORY, "SIZE", 0, "of all of them together, in pages of 4 KiB (0)", 0 },
	{ "mappings", OPT_MAPPINGS, "N", 0, "mappings of a page of /dev/brumm, as far as the budget goes (0)", 0 },
	{ "storm", OPT_STORM, "KIND", 0, "do not sleep: fork (short processes, one after the other), or mprotect (change the rights of a page that other threads use)", 0 },
	{ "threads", OPT_THREADS, "N", 0, "of a storm (2)", 0 },
	{ 0 },
};

static uint64_t get_number(struct argp_state *state, const char *arg)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || v > 100000000)
		argp_error(state, "'%s' is not a number up to 100000000", arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_PROCESSES:
		a->processes = get_number(state, arg);
		return 0;
	case OPT_MEMORY:
		if (brumm_parse_size(arg, &a->memory))
			argp_error(state, "'%s' is not a size such as 64M", arg);
		return 0;
	case OPT_MAPPINGS:
		a->mappings = get_number(state, arg);
		return 0;
	case OPT_THREADS:
		a->threads = get_number(state, arg);
		if (!a->threads || a->threads > 1024)
			argp_error(state, "from 1 to 1024 threads");
		return 0;
	case OPT_STORM:
		if (strcmp(arg, "fork") && strcmp(arg, "mprotect"))
			argp_error(state, "'%s' is no storm: fork or mprotect", arg);
		a->storm = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument '%s'", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "A neighbour of memcached for brumm mc study: sleeping processes with "
	       "memory and mappings, or a storm. It grows till it is as large as asked "
	       "for, or is refused; prints one line of JSON, and stays until it is "
	       "killed. Run it in a cgroup of its own: brumm run --name t -- brumm mc tenant.",
};

/* ---- a large one ---------------------------------------------------------- */

static int touch(uint64_t bytes)
{
	char *p;

	if (!bytes)
		return 0;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, bytes, MADV_NOHUGEPAGE);
	memset(p, 1, bytes);
	return 0;
}

/*
 * Each touches its share and tells by a byte. A child that is not a leaf would
 * hold what its parent had; so all are children of the first.
 */
static uint64_t spread(uint64_t n, uint64_t bytes, int *refused)
{
	uint64_t i, grown = 0;
	int ready[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC)) {
		*refused = errno;
		return 0;
	}
	for (i = 0; i < n; i++) {
		pid = fork();
		if (pid < 0) {
			*refused = errno;
			break;
		}
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (touch(bytes) || write(ready[1], &byte, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
	}
	close(ready[1]);
	while (grown < i && read(ready[0], &byte, 1) == 1)
		grown++;
	close(ready[0]);
	return grown;
}

/* One page, mapped again and again into a window of ours. */
static uint64_t map_pages(uint64_t n, int *refused)
{
	int from = n ? brumm_open(0) : -1, to, err;
	struct brumm_map map = { .length = PAGE, .rights = BRUMM_RIGHT_R };
	uint64_t i;

	if (!n)
		return 0;
	to = brumm_open(0);
	err = from < 0 ? from : to < 0 ? to : brumm_alloc(from, 0, PAGE);
	map.fd = to;
	for (i = 0; i < n && !err; i++) {
		/* Not adjacent, so that each is a node. */
		map.target = 2 * i * PAGE;
		err = brumm_map(from, &map);
	}
	if (err)
		*refused = -err;
	return err ? i - (i > 0) : i;
}

static int grow(const struct args *a)
{
	int no_map = 0, no_fork = 0;
	uint64_t mappings = map_pages(a->mappings, &no_map), processes;

	processes = spread(a->processes, a->processes ?
			   a->memory / a->processes : 0, &no_fork);
	printf("{\"processes\": %llu, \"mappings\": %llu, \"fork_refused\": \"%s\", \"map_refused\": \"%s\"}\n",
	       (unsigned long long)processes, (unsigned long long)mappings,
	       no_fork ? strerrorname_np(no_fork) : "",
	       no_map ? strerrorname_np(no_map) : "");
	if (cli_flush())
		return EXIT_ERROR;
	for (;;)
		pause();
}

/* ---- storms --------------------------------------------------------------- */

static atomic_ulong rounds;

static void *fork_on(void *arg)
{
	pid_t pid;

	(void)arg;
	for (;;) {
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		else
			sched_yield();
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

/*
 * Each change of rights interrupts all CPUs on which a thread of ours runs: but only
 * of a page that was written to, or there is nothing to be flushed.
 */
static void *change_on(void *arg)
{
	for (;;) {
		mprotect(arg, PAGE, PROT_READ);
		(void)*(volatile char *)arg;
		mprotect(arg, PAGE, PROT_READ | PROT_WRITE);
		*(volatile char *)arg = 1;
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static int storm(const struct args *a)
{
	pthread_t thread;
	uint64_t i;
	char *pages;
	int err;

	/* One for each thread, which may not be written to by the others. */
	pages = mmap(NULL, a->threads * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED) {
		cli_fail(errno, "mmap");
		return EXIT_ERROR;
	}
	for (i = 0; i < a->threads; i++) {
		err = pthread_create(&thread, NULL, *a->storm == 'f' ? fork_on :
				     change_on, pages + i * PAGE);
		if (err) {
			cli_fail(err, "pthread_create");
			return EXIT_ERROR;
		}
	}
	printf("{\"storm\": \"%s\", \"threads\": %llu}\n", a->storm,
	       (unsigned long long)a->threads);
	if (cli_flush())
		return EXIT_ERROR;
	for (;;)
		pause();
}

int mc_tenant(int argc, char **argv)
{
	struct args a = { .processes = 300, .threads = 2 };

	cli_parse(&argp, argc, argv, &a);
	return a.storm ? storm(&a) : grow(&a);
}
