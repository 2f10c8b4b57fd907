// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../cli.h"
#include "../../teardown/tasks.h"
#include "shape.h"

#define STACK	16384u
/* Of what a mix is made for each of its processes. */
#define MIX_THREADS	8
#define MIX_FILES	32
#define MIX_PAGES	256
#define MIX_VMAS	64

static void sleep_for_ever(void) __attribute__((noreturn));

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

/* ---- children ----------------------------------------------------------- */

static void child(struct shape_build *b, bool open,
		  int (*fn)(struct shape_build *b)) __attribute__((noreturn));

static void child(struct shape_build *b, bool open,
		  int (*fn)(struct shape_build *b))
{
	int err = fn ? fn(b) : 0;

	if (write(b->ready[1], &err, sizeof(err)) != sizeof(err))
		_exit(1);
	close(b->ready[0]);
	close(b->ready[1]);
	close(b->out);
	if (!open)
		close_range(0, ~0u, 0);
	sleep_for_ever();
}

/* @flags: of clone(2), 0: it is a fork(). */
static int spawn(struct shape_build *b, unsigned int copies, bool open,
		 unsigned long flags, int (*fn)(struct shape_build *b))
{
	unsigned int i;
	int err = 0;
	pid_t pid;

	for (i = 0; i < copies && !err; i++) {
		pid = flags ? (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL,
					     NULL, NULL, 0UL) : fork();
		if (pid < 0)
			return -errno;
		if (!pid)
			child(b, open, fn);
		b->built.sample = pid;
		b->built.copies++;
		if (read(b->ready[0], &err, sizeof(err)) != sizeof(err))
			err = -EIO;
	}
	return err;
}

int shape_spawn(struct shape_build *b, unsigned int copies,
		int (*fn)(struct shape_build *b))
{
	return spawn(b, copies, false, 0, fn);
}

int shape_spawn_open(struct shape_build *b, unsigned int copies,
		     int (*fn)(struct shape_build *b))
{
	return spawn(b, copies, true, 0, fn);
}

void shape_extra(struct shape_build *b, const char *kind, double n)
{
	struct shape_extra *e = b->built.extra;

	while (*e->kind && strcmp(e->kind, kind))
		e++;
	strncpy(e->kind, kind, sizeof(e->kind) - 1);
	e->n += n;
}

/* ---- processes and threads ---------------------------------------------- */

static int build_one(struct shape_build *b)
{
	(void)b;
	return 0;
}

static int build_sleepers(struct shape_build *b)
{
	return shape_spawn(b, b->n, NULL);
}

static int sleeper(void *arg)
{
	(void)arg;
	sleep_for_ever();
}

/* Processes without an address space of their own. */
static int build_shared(struct shape_build *b)
{
	char *stacks = mmap(NULL, (size_t)b->n * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;
	pid_t pid;

	if (stacks == MAP_FAILED)
		return -errno;
	b->built.shared = true;
	for (i = 0; i < b->n; i++) {
		pid = clone(sleeper, stacks + (size_t)(i + 1) * STACK,
			    CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
		if (pid < 0)
			return -errno;
		b->built.sample = pid;
		b->built.copies++;
	}
	return 0;
}

static void *thread(void *arg)
{
	(void)arg;
	sleep_for_ever();
}

static int make_threads(unsigned int n)
{
	char *stacks = mmap(NULL, (size_t)n * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	unsigned int i;
	pthread_t id;
	int err = 0;

	if (stacks == MAP_FAILED)
		return -errno;
	pthread_attr_init(&attr);
	for (i = 0; i < n && !err; i++) {
		err = pthread_attr_setstack(&attr, stacks + (size_t)i * STACK,
					    STACK);
		if (!err)
			err = pthread_create(&id, &attr, thread, NULL);
	}
	pthread_attr_destroy(&attr);
	return -err;
}

static int build_threads(struct shape_build *b)
{
	return make_threads(b->n);
}

/* Children of one that has touched pages, which they then all map. */
static int build_forked(struct shape_build *b)
{
	unsigned int children = b->n;
	int err;

	b->n = 2 * MIX_PAGES;
	err = shape_anon(b);
	return err ? err : shape_spawn(b, children, NULL);
}

/* Any other program: interpreter, libraries, a heap. */
static int exec_program(struct shape_build *b)
{
	int err = 0;

	/* The leader hears of the exec by the end of the pipe of each. */
	fcntl(b->ready[1], F_SETFD, FD_CLOEXEC);
	err = write(b->ready[1], &err, sizeof(err)) == sizeof(err) ? 0 : -EIO;
	if (!err)
		execlp("sleep", "sleep", "infinity", NULL);
	_exit(127);
}

/* 1: it sleeps; 0: not yet; -EOPNOTSUPP: there is no such program. */
static int asleep(pid_t pid)
{
	struct task t;

	if (task_read(pid, &t) || t.state == 'Z')
		return -EOPNOTSUPP;
	return t.state == 'S' && !strcmp(t.comm, "sleep");
}

static int build_programs(struct shape_build *b)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	unsigned int i;
	int ret = 0;

	b->built.programs = true;
	for (i = 0; i < b->n && ret >= 0; i++) {
		ret = shape_spawn(b, 1, exec_program);
		while (!ret && !(ret = asleep(b->built.sample)))
			nanosleep(&nap, NULL);
	}
	return ret < 0 ? ret : 0;
}

static int mix_one(struct shape_build *b)
{
	int err;

	b->n = MIX_PAGES;
	err = shape_anon(b);
	b->n = MIX_VMAS;
	if (!err)
		err = shape_vma_anon(b);
	b->n = MIX_FILES;
	if (!err)
		err = shape_eventfd(b);
	return err ? err : make_threads(MIX_THREADS);
}

static int build_mix(struct shape_build *b)
{
	int err = shape_spawn_open(b, b->n, mix_one);

	shape_extra(b, "eventfd", (double)b->n * MIX_FILES);
	shape_extra(b, "anon_page", (double)b->n * (MIX_PAGES + MIX_THREADS));
	return err;
}

/* ---- namespaces --------------------------------------------------------- */

static int unshare_net(struct shape_build *b)
{
	(void)b;
	return unshare(CLONE_NEWNET) ? -errno : 0;
}

static int unshare_mnt(struct shape_build *b)
{
	(void)b;
	return unshare(CLONE_NEWNS) ? -errno : 0;
}

static int unshare_ipc(struct shape_build *b)
{
	(void)b;
	return unshare(CLONE_NEWIPC) ? -errno : 0;
}

static int unshare_uts(struct shape_build *b)
{
	(void)b;
	return unshare(CLONE_NEWUTS) ? -errno : 0;
}

static int build_net(struct shape_build *b)
{
	shape_extra(b, "netns", b->n);
	return shape_spawn(b, b->n, unshare_net);
}

static int build_mnt(struct shape_build *b)
{
	shape_extra(b, "mntns", b->n);
	return shape_spawn(b, b->n, unshare_mnt);
}

static int build_ipc(struct shape_build *b)
{
	shape_extra(b, "ipcns", b->n);
	return shape_spawn(b, b->n, unshare_ipc);
}

static int build_uts(struct shape_build *b)
{
	shape_extra(b, "ns", b->n);
	return shape_spawn(b, b->n, unshare_uts);
}

/* Each is the init of its namespace. */
static int build_pid(struct shape_build *b)
{
	shape_extra(b, "pidns", b->n);
	return spawn(b, b->n, false, CLONE_NEWPID, NULL);
}

/* ---- the shapes --------------------------------------------------------- */

const struct living_shape living_shapes[] = {
	{ "one", "", 1, build_one, 0, 1 },
	{ "sleepers", "process", 64, build_sleepers, 0, 1 },
	{ "shared_mm", "process", 128, build_shared, 0, 1 },
	{ "threads", "thread", 128, build_threads, 0, 1 },
	{ "vma_anon", "vma", 4096, shape_vma_anon, 0, 1 },
	{ "vma_file", "vma", 4096, shape_vma_file, 0, 1 },
	{ "vma_touched", "vma", 2048, shape_vma_touched, 0, 1 },
	{ "anon", "anon", 8192, shape_anon, 0, 1 },
	{ "file", "file", 8192, shape_file, 0, 1 },
	{ "shmem", "shmem", 4096, shape_shmem, 0, 1 },
	{ "shmem_again", "shmem", 8192, shape_shmem_again, 0, 1 },
	{ "huge", "huge", 32, shape_huge, 0, 1 },
	{ "tables", "table", 512, shape_tables, 0, 1 },
	{ "tables_deep", "table", 256, shape_tables_deep, 0, 0.7 },
	{ "swap", "swap", 2048, shape_swap, 0, 1 },
	{ "dup", "fd", 4096, shape_dup, 0, 1 },
	{ "inherit", "fd", 4096, shape_inherit, 0, 1 },
	{ "plain", "plain", 1024, shape_plain, 0, 1 },
	{ "eventfd", "eventfd", 1024, shape_eventfd, 0, 1 },
	{ "pipe", "pipe", 1024, shape_pipe, 0, 1 },
	{ "unix", "unix", 1024, shape_unix, 0, 1 },
	{ "tcp", "tcp", 256, shape_tcp, 20, 1 },
	{ "socket", "socket", 512, shape_socket, 20, 1 },
	{ "uring", "uring", 32, shape_uring, 60, 1 },
	{ "epoll", "epoll", 512, shape_epoll, 0, 1 },
	{ "otherfile", "otherfile", 1024, shape_otherfile, 0, 1 },
	{ "netns", "netns", 4, build_net, 300, 1 },
	{ "mntns", "mntns", 16, build_mnt, 60, 1 },
	{ "ipcns", "ipcns", 16, build_ipc, 60, 1 },
	{ "pidns", "pidns", 16, build_pid, 60, 1 },
	{ "utsns", "ns", 32, build_uts, 20, 1 },
	{ "forked", "", 16, build_forked, 0, 1 },
	{ "programs", "", 16, build_programs, 0, 1 },
	{ "mix", "", 8, build_mix, 0, 1 },
};

const size_t living_shapes_nr = ARRAY_SIZE(living_shapes);

/* ---- the leader --------------------------------------------------------- */

/* The first @n of the CPUs that it may use. */
static int confine(unsigned int n)
{
	cpu_set_t set, few;
	int i;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	CPU_ZERO(&few);
	for (i = 0; i < CPU_SETSIZE && n; i++) {
		if (CPU_ISSET(i, &set)) {
			CPU_SET(i, &few);
			n--;
		}
	}
	return sched_setaffinity(0, sizeof(few), &few) ? -errno : 0;
}

/* As many descriptors as root may have. */
static void more_descriptors(void)
{
	struct rlimit r = { 1 << 16, 1 << 16 };

	setrlimit(RLIMIT_NOFILE, &r);
}

void shape_lead(const struct living_shape *s, unsigned int n, int group,
		unsigned int cpus, int out)
{
	struct shape_build b = { .n = n };

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "brumm-shape");
	/* Out of the way of what is closed, and of what is counted. */
	b.out = fcntl(out, F_DUPFD_CLOEXEC, 1000);
	if (b.out < 0)
		_exit(1);
	b.built.error = cli_enter_group(group);
	if (!b.built.error && cpus)
		b.built.error = confine(cpus);
	close_range(0, 999, 0);
	close_range((unsigned int)b.out + 1, ~0u, 0);
	more_descriptors();
	if (!b.built.error && pipe2(b.ready, O_CLOEXEC))
		b.built.error = -errno;
	if (!b.built.error)
		b.built.error = s->build(&b);
	close(b.ready[0]);
	close(b.ready[1]);
	if (write(b.out, &b.built, sizeof(b.built)) != sizeof(b.built))
		_exit(1);
	close(b.out);
	sleep_for_ever();
}
