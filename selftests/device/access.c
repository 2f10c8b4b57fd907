// SPDX-License-Identifier: GPL-2.0
/*
 * Proves: debuggers get as far as the holder himself and no further, and
 * nothing in the kernel can pin a page: a pin would outlive the revoke.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include "dev.h"
#include "proc.h"
#include "tap.h"

struct subject {
	uint32_t *mem;
	uint32_t ready;
	int src, w;
	pid_t pid;
};

/* Pages 0: RW, 1: R, 2: nothing; of another process. */
static void subject(void *arg)
{
	struct subject *s = arg;

	s->mem = win_mmap(s->w, 3, PROT_READ | PROT_WRITE);
	put(&s->ready, 1);
	for (;;)
		pause();
}

static struct subject *subject_start(uint32_t **own)
{
	struct subject *s = shared(sizeof(*s));

	s->src = win_with(3);
	s->w = win_open();
	*own = win_mmap(s->src, 3, PROT_READ | PROT_WRITE);
	put(cell(*own, 0, 0), 100);
	put(cell(*own, 1, 0), 101);
	put(cell(*own, 2, 0), 102);
	REQUIRE_OK(dev_map(s->src, 0, 1, s->w, 0, RW));
	REQUIRE_OK(dev_map(s->src, 1, 1, s->w, 1, R));
	s->pid = spawn(subject, s);
	await(&s->ready, 1);
	return s;
}

static int mem_open(pid_t pid)
{
	char path[50];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR);
	REQUIRE(fd >= 0);
	return fd;
}

/* -1: refused */
static int64_t mem_read(int fd, const uint32_t *at)
{
	uint32_t v;

	if (pread(fd, &v, sizeof(v), (uintptr_t)at) != sizeof(v))
		return -1;
	return v;
}

static bool mem_write(int fd, const uint32_t *at, uint32_t v)
{
	return pwrite(fd, &v, sizeof(v), (uintptr_t)at) == sizeof(v);
}

static void proc_mem(void)
{
	uint32_t *own, across[2] = { 0 };
	struct subject *s = subject_start(&own);
	int fd = mem_open(s->pid);

	CHECK_EQ(mem_read(fd, cell(s->mem, 0, 0)), 100);
	CHECK_EQ(mem_read(fd, cell(s->mem, 1, 0)), 101);
	CHECK_EQ(mem_read(fd, cell(s->mem, 2, 0)), -1);
	/* Across the border of two pages, and into nothing. */
	put(cell(own, 0, 1023), 7);
	CHECK_EQ(pread(fd, across, 8, (uintptr_t)cell(s->mem, 0, 1023)), 8);
	CHECK_EQ(across[0], 7);
	CHECK_EQ(across[1], 101);
	CHECK_EQ(pread(fd, across, 8, (uintptr_t)cell(s->mem, 1, 1023)), 4);

	CHECK(mem_write(fd, cell(s->mem, 0, 0), 200));
	CHECK_EQ(get(cell(own, 0, 0)), 200);
	CHECK(!mem_write(fd, cell(s->mem, 1, 0), 201));
	CHECK_EQ(get(cell(own, 1, 0)), 101);
	CHECK(!mem_write(fd, cell(s->mem, 2, 0), 202));
	CHECK_EQ(get(cell(own, 2, 0)), 102);

	/* Rights that went, and the whole mapping. */
	REQUIRE_OK(dev_unmap_flags(s->src, 0, 1, BRUMM_UNMAP_RIGHTS, W, NULL));
	CHECK(!mem_write(fd, cell(s->mem, 0, 0), 300));
	CHECK_EQ(mem_read(fd, cell(s->mem, 0, 0)), 200);
	REQUIRE_OK(dev_unmap(s->src, 0, 3));
	CHECK_EQ(mem_read(fd, cell(s->mem, 0, 0)), -1);
	CHECK_EQ(mem_read(fd, cell(s->mem, 1, 0)), -1);
	CHECK(!mem_write(fd, cell(s->mem, 0, 0), 300));
	kill_and_reap(s->pid);
}

/* A protection of the mmap that forbids it forbids it to debuggers, too. */
static void proc_mem_of_read_only(void)
{
	int w = win_with(1), fd = mem_open(getpid());
	uint32_t *p = win_mmap(w, 1, PROT_READ);

	CHECK_EQ(mem_read(fd, p), 0);
	CHECK(!mem_write(fd, p, 1));
	CHECK_EQ(*p, 0);
}

static long peek_data(pid_t pid, const uint32_t *at)
{
	errno = 0;
	return ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

static void ptrace_peek_poke(void)
{
	uint32_t *own;
	struct subject *s = subject_start(&own);
	int status;

	REQUIRE(!ptrace(PTRACE_ATTACH, s->pid, NULL, NULL));
	REQUIRE(waitpid(s->pid, &status, 0) == s->pid);
	CHECK_EQ((uint32_t)peek_data(s->pid, cell(s->mem, 0, 0)), 100);
	CHECK_EQ((uint32_t)peek_data(s->pid, cell(s->mem, 1, 0)), 101);
	CHECK_EQ(peek_data(s->pid, cell(s->mem, 2, 0)), -1);
	CHECK_EQ(errno, EIO);
	CHECK_OK(ptrace(PTRACE_POKEDATA, s->pid, cell(s->mem, 0, 0), 200L));
	CHECK_EQ(get(cell(own, 0, 0)), 200);
	CHECK_EQ(ptrace(PTRACE_POKEDATA, s->pid, cell(s->mem, 1, 0), 201L), -1);
	CHECK_EQ(get(cell(own, 1, 0)), 101);
	REQUIRE_OK(dev_unmap(s->src, 0, 3));
	CHECK_EQ(peek_data(s->pid, cell(s->mem, 0, 0)), -1);
	CHECK_EQ(ptrace(PTRACE_POKEDATA, s->pid, cell(s->mem, 0, 0), 1L), -1);
	kill_and_reap(s->pid);
}

/* ---- pins ------------------------------------------------------------- */

static uint32_t *touched(int *w)
{
	uint32_t *p;

	*w = win_with(4);
	p = win_mmap(*w, 4, PROT_READ | PROT_WRITE);
	memset(p, 1, 4 * PAGE);
	return p;
}

static void process_vm(void)
{
	uint32_t *own, v = 0;
	struct subject *s = subject_start(&own);
	struct iovec here = { &v, 4 }, there = { s->mem, 4 };

	/* These pin what they read: refused, as by any device memory. */
	CHECK_EQ(process_vm_readv(s->pid, &here, 1, &there, 1, 0), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(process_vm_writev(s->pid, &here, 1, &there, 1, 0), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(get(own), 100);
	kill_and_reap(s->pid);
}

static void vmsplice_pins(void)
{
	int w, fds[2];
	uint32_t *p = touched(&w);
	struct iovec iov = { p, PAGE };

	REQUIRE(!pipe(fds));
	CHECK_EQ(vmsplice(fds[1], &iov, 1, 0), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(vmsplice(fds[1], &iov, 1, SPLICE_F_GIFT), -1);
	CHECK_EQ(errno, EFAULT);
	/* Copying is fine. */
	CHECK_EQ(write(fds[1], p, 100), 100);
	CHECK_EQ(read(fds[0], p, 100), 100);
}

static void io_uring_buffers(void)
{
	struct io_uring_params par = { 0 };
	int w, ring = syscall(SYS_io_uring_setup, 4, &par);
	uint32_t *p = touched(&w);
	struct iovec iov = { p, 4 * PAGE };

	if (ring < 0)
		tap_skip("no io_uring here: %s", tap_result(-errno));
	CHECK_EQ(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS,
			 &iov, 1), -1);
	CHECK(errno == EFAULT || errno == EOPNOTSUPP);
	close(ring);
}

static void zero_copy_send(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int w, one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), out;
	socklen_t len = sizeof(addr);
	uint32_t *p = touched(&w);

	REQUIRE(!bind(listener, (void *)&addr, len) && !listen(listener, 1));
	REQUIRE(!getsockname(listener, (void *)&addr, &len));
	out = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE(!connect(out, (void *)&addr, len));
	if (setsockopt(out, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		tap_skip("no SO_ZEROCOPY");
	CHECK_EQ(send(out, p, 3 * PAGE, MSG_ZEROCOPY | MSG_DONTWAIT), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(send(out, p, 1000, MSG_DONTWAIT), 1000);
}

static void shared_futex(void)
{
	int w;
	uint32_t *p = touched(&w);
	struct timespec soon = { .tv_nsec = 1000000 };

	/* A shared futex is known by its page, which it must get hold of. */
	CHECK_EQ(syscall(SYS_futex, p, FUTEX_WAIT, *p, &soon, NULL, 0), -1);
	CHECK_EQ(errno, EFAULT);
	/* A private one is known by its address. */
	CHECK_EQ(syscall(SYS_futex, p, FUTEX_WAIT_PRIVATE, *p, &soon, NULL, 0),
		 -1);
	CHECK_EQ(errno, ETIMEDOUT);
}

static void direct_io(void)
{
	static const char *const files[] = {
		"/dev/ram0", "/dev/zram0", "/dev/vda", "/dev/loop0",
	};
	int w, fd = -1;
	uint32_t *p = touched(&w);
	unsigned int i;
	ssize_t n;

	if (system("modprobe -q brd rd_nr=1 rd_size=1024 2>/dev/null"))
		tap_diag("no brd");
	for (i = 0; fd < 0 && i < ARRAY_SIZE(files); i++)
		fd = open(files[i], O_RDWR | O_DIRECT);
	if (fd < 0)
		tap_skip("no file for O_DIRECT");
	n = pread(fd, p, PAGE, 0);
	if (!n)
		tap_skip("an empty device only");
	CHECK_EQ(n, -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(pwrite(fd, p, PAGE, 0), -1);
	CHECK_EQ(errno, EFAULT);
	close(fd);
}

/* System calls copy through the mapping as the process itself would. */
static void system_calls(void)
{
	int a = win_with(2), b = win_open(), zero = open("/dev/zero", O_RDONLY);
	uint32_t *p = win_mmap(b, 3, PROT_READ | PROT_WRITE);
	int null = open("/dev/null", O_WRONLY), fds[2];

	REQUIRE(zero >= 0 && null >= 0 && !pipe(fds));
	REQUIRE_OK(dev_map(a, 0, 1, b, 0, RW));
	REQUIRE_OK(dev_map(a, 1, 1, b, 1, R));
	CHECK_EQ(read(zero, cell(p, 0, 0), PAGE), PAGE);
	CHECK_EQ(read(zero, cell(p, 1, 0), PAGE), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(read(zero, cell(p, 2, 0), PAGE), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(write(fds[1], cell(p, 1, 0), 8), 8);
	CHECK_EQ(write(fds[1], cell(p, 2, 0), 8), -1);
	CHECK_EQ(errno, EFAULT);
	REQUIRE_OK(dev_unmap(a, 0, 2));
	CHECK_EQ(read(zero, cell(p, 0, 0), PAGE), -1);
	CHECK_EQ(errno, EFAULT);
	/* The device's own ioctl reads its request from there as well. */
	CHECK_RET(dev_ioctl(a, BRUMM_IOC_INFO, p), -EFAULT);
}

static void core_dump_has_none(void)
{
	int w = win_with(1), pid, status;

	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		uint32_t *p = win_mmap(w, 1, PROT_READ | PROT_WRITE);

		*p = 1;
		signal(SIGBUS, SIG_DFL);
		raise(SIGQUIT);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
}

static const struct tap_case cases[] = {
	{ "/proc/PID/mem follows rights and revokes", proc_mem },
	{ "/proc/PID/mem of a read-only mmap", proc_mem_of_read_only },
	{ "ptrace peeks and pokes as far as rights go", ptrace_peek_poke },
	{ "process_vm_readv and _writev are refused", process_vm },
	{ "vmsplice is refused, copies are not", vmsplice_pins },
	{ "io_uring registers no buffer", io_uring_buffers },
	{ "MSG_ZEROCOPY is refused", zero_copy_send },
	{ "a shared futex is refused", shared_futex },
	{ "O_DIRECT is refused", direct_io },
	{ "system calls copy as far as rights go", system_calls },
	{ "a process with a window dies with a core dump", core_dump_has_none },
};

int main(int argc, char **argv)
{
	dev_program();
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
