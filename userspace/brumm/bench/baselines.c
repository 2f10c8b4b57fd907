// SPDX-License-Identifier: GPL-2.0
/*
 * What Linux itself offers for taking memory back. All with pages that were
 * written to, so that each has a page-table entry.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* One mapping of @size bytes. */
struct area {
	int fd;			/* memfd; -1: anonymous, private */
	char *addr;
	uint64_t size;
	uint64_t prepare_ns;
	int64_t kernel;
};

static int area_map(struct area *a)
{
	uint64_t i;

	a->addr = mmap(NULL, a->size, PROT_READ | PROT_WRITE,
		       a->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
		       a->fd, 0);
	if (a->addr == MAP_FAILED)
		return -errno;
	/* Per page is what is compared. */
	madvise(a->addr, a->size, MADV_NOHUGEPAGE);
	for (i = 0; i < a->size; i += BENCH_PAGE)
		*(volatile char *)(a->addr + i) = 1;
	return 0;
}

static int area_file(struct area *a)
{
	a->fd = memfd_create("brumm-bench", MFD_CLOEXEC);
	if (a->fd < 0 || ftruncate(a->fd, (off_t)a->size))
		return -errno;
	return 0;
}

static int area_make(struct area *a, const struct bench_env *env,
		     uint64_t pages, bool file)
{
	uint64_t start;
	int err = 0;

	*a = (struct area){ .fd = -1, .size = pages * BENCH_PAGE };
	a->kernel = bench_kernel_bytes(env);
	start = cli_now();
	if (file)
		err = area_file(a);
	if (!err)
		err = area_map(a);
	a->prepare_ns = cli_now() - start;
	return err;
}

static void area_free(struct area *a)
{
	if (a->addr && a->addr != MAP_FAILED)
		munmap(a->addr, a->size);
	if (a->fd >= 0)
		close(a->fd);
}

/* Memory is read before it goes, @ns taken while it goes. */
static int put_memory(const struct bench_env *env, const struct area *a,
		      json_t *r)
{
	int64_t now = bench_kernel_bytes(env);
	bool known = a->kernel >= 0 && now >= a->kernel;

	if (bench_put(r, "prepare_ns", a->prepare_ns) ||
	    bench_put(r, "user_bytes", a->size) ||
	    json_object_set_new(r, "kernel_bytes", known ?
				json_integer(now - a->kernel) : json_null()))
		return -ENOMEM;
	return 0;
}

static int put_time(json_t *r, const struct bench_task *task, uint64_t ns,
		    const char *by)
{
	if (bench_put(r, "pages", task->size) ||
	    bench_put(r, "reclaim_ns", ns) ||
	    json_object_set_new(r, "map_calls", json_null()) ||
	    json_object_set_new(r, "counts", json_null()) ||
	    json_object_set_new(r, "predicted_ns", json_null()) ||
	    json_object_set_new(r, "by", json_string(by)))
		return -ENOMEM;
	return 0;
}

static int by_munmap(struct area *a)
{
	int err = munmap(a->addr, a->size) ? -errno : 0;

	a->addr = NULL;
	return err;
}

/* The last of it: the memory is freed, too. */
static int by_drop(struct area *a)
{
	int err = by_munmap(a);

	close(a->fd);
	a->fd = -1;
	return err;
}

static int by_punch(struct area *a)
{
	return fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 (off_t)a->size) ? -errno : 0;
}

static int by_madvise(struct area *a)
{
	return madvise(a->addr, a->size, MADV_DONTNEED) ? -errno : 0;
}

static int run_area(const struct bench_env *env, const struct bench_task *task,
		    bool file, int (*take)(struct area *a), const char *by,
		    json_t *r)
{
	struct area a;
	uint64_t start, ns = 0;
	int err = area_make(&a, env, task->size, file);

	if (!err)
		err = put_memory(env, &a, r);
	if (!err) {
		start = cli_now();
		err = take(&a);
		ns = cli_now() - start;
	}
	area_free(&a);
	return err ? err : put_time(r, task, ns, by);
}

BENCH_RUN(run_munmap_memfd)
{
	(void)plan;
	return run_area(env, task, true, by_munmap, "munmap", result);
}

BENCH_RUN(run_free_memfd)
{
	(void)plan;
	return run_area(env, task, true, by_drop, "munmap and close", result);
}

BENCH_RUN(run_punch_hole)
{
	(void)plan;
	return run_area(env, task, true, by_punch, "fallocate", result);
}

BENCH_RUN(run_madvise)
{
	(void)plan;
	return run_area(env, task, false, by_madvise, "madvise", result);
}

/* Somebody who has the pages, and says so, or why not. */
static void victim(const struct bench_env *env, uint64_t pages, bool file,
		   int tell)
{
	struct area a;
	int err;

	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = area_make(&a, env, pages, file);
	if (write(tell, &err, sizeof(err)) == sizeof(err))
		while (1)
			pause();
	_exit(1);
}

static int victim_start(const struct bench_env *env, uint64_t pages, bool file,
			pid_t *pid)
{
	int tell[2], err = 0;

	if (pipe2(tell, O_CLOEXEC))
		return -errno;
	*pid = fork();
	if (!*pid)
		victim(env, pages, file, tell[1]);
	if (*pid < 0)
		err = -errno;
	close(tell[1]);
	if (!err && read(tell[0], &err, sizeof(err)) != sizeof(err))
		err = -EINTR;
	close(tell[0]);
	if (err && *pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	return err;
}

static int await(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* In the root cgroup memory is that of the machine, and not told. */
static int put_victim(const struct bench_env *env, int64_t before,
		      uint64_t prepare_ns, uint64_t pages, json_t *r)
{
	struct area a = { .prepare_ns = prepare_ns, .kernel = before,
			  .size = pages * BENCH_PAGE };

	return put_memory(env, &a, r);
}

BENCH_RUN(run_kill)
{
	int64_t kernel = bench_kernel_bytes(env);
	uint64_t start = cli_now(), ns;
	pid_t pid;
	int err = victim_start(env, task->size, true, &pid);

	(void)plan;
	if (err)
		return err;
	err = put_victim(env, kernel, cli_now() - start, task->size, result);
	start = cli_now();
	kill(pid, SIGKILL);
	if (!err)
		err = await(pid);
	ns = cli_now() - start;
	return err ? err : put_time(result, task, ns, "kill");
}

/* From the signal until the memory is free; that it is dead comes later. */
static int mrelease(int pidfd, pid_t pid, uint64_t *ns)
{
	uint64_t start = cli_now();
	int err = 0;

	if (kill(pid, SIGKILL))
		return -errno;
	/* No such process: it was faster and has freed it all itself. */
	if (syscall(SYS_process_mrelease, pidfd, 0) && errno != ESRCH)
		err = errno == ENOSYS ? -ENOTSUP : -errno;
	*ns = cli_now() - start;
	return err;
}

BENCH_RUN(run_mrelease)
{
	int64_t kernel = bench_kernel_bytes(env);
	uint64_t start = cli_now(), ns = 0;
	pid_t pid;
	int pidfd, err = victim_start(env, task->size, false, &pid);

	(void)plan;
	if (err)
		return err;
	err = put_victim(env, kernel, cli_now() - start, task->size, result);
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		err = -errno;
	if (!err)
		err = mrelease(pidfd, pid, &ns);
	kill(pid, SIGKILL);
	await(pid);
	if (pidfd >= 0)
		close(pidfd);
	return err ? err : put_time(result, task, ns, "process_mrelease");
}

/* The same entries as of many_frames, without a mapping database. */
BENCH_RUN(run_zap)
{
	struct shape_spec spec = {
		.kind = SHAPE_RANGE, .n = 1, .frames = (task->size + 1) / 2,
		.touch = true,
	};
	struct bench_task pages = *task;
	struct shape *s = NULL;
	struct shape_cost cost;
	struct shape_took took;
	int err = shape_plan(&spec, &s);

	(void)env;
	(void)plan;
	if (!err)
		err = shape_make(s);
	if (!err) {
		shape_cost(s, &cost);
		err = shape_reclaim(s, SHAPE_BY_MUNMAP, -1, &took);
	}
	if (!err && (bench_put(result, "prepare_ns",
			       cost.prepare_ns + cost.touch_ns) ||
		     bench_put(result, "user_bytes", cost.frames * BENCH_PAGE) ||
		     json_object_set_new(result, "kernel_bytes", json_null())))
		err = -ENOMEM;
	shape_free(s);
	if (err)
		return err;
	pages.size = cost.pages;
	return put_time(result, &pages, took.wall_ns, "munmap");
}
