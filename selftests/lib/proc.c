// SPDX-License-Identifier: GPL-2.0
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "tap.h"

void *shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED);
	return p;
}

static pid_t run_child(pid_t pid, pid_t parent, void (*fn)(void *arg),
		       void *arg)
{
	REQUIRE(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fn(arg);
	_exit(0);
}

pid_t spawn(void (*fn)(void *arg), void *arg)
{
	pid_t parent = getpid();

	return run_child(fork(), parent, fn, arg);
}

pid_t spawn_in(int cgroup, void (*fn)(void *arg), void *arg)
{
	struct clone_args a = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = cgroup,
	};
	pid_t parent = getpid();

	return run_child(syscall(SYS_clone3, &a, sizeof(a)), parent, fn, arg);
}

void reap(pid_t pid)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		tap_diag("child died of signal %d", WTERMSIG(status));
	REQUIRE(status == 0);
}

void kill_and_reap(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, &status, 0) == pid);
}

struct call {
	int64_t (*fn)(void *arg);
	void *arg;
	int64_t result;
};

static void run_call(void *arg)
{
	struct call *c = arg;

	c->result = c->fn(c->arg);
}

int64_t in_child(int64_t (*fn)(void *arg), void *arg)
{
	struct call *c = shared(sizeof(*c));
	int64_t result;

	*c = (struct call){ .fn = fn, .arg = arg };
	reap(spawn(run_call, c));
	result = c->result;
	munmap(c, sizeof(*c));
	return result;
}

pthread_t start(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	REQUIRE(!pthread_create(&t, NULL, fn, arg));
	return t;
}

void join(pthread_t t)
{
	REQUIRE(!pthread_join(t, NULL));
}

void pin_to_cpu(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	REQUIRE(!sched_setaffinity(0, sizeof(set), &set));
}

void await(const uint32_t *p, uint32_t v)
{
	unsigned int spins = 0;

	while (get(p) != v)
		if (++spins > 100)
			sched_yield();
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void sleep_us(unsigned long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

union fd_message {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

void fd_send(int sock, int fd)
{
	union fd_message m = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &m,
		.msg_controllen = sizeof(m),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	REQUIRE(sendmsg(sock, &msg, 0) == 1);
}

int fd_recv(int sock)
{
	union fd_message m;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &m,
		.msg_controllen = sizeof(m),
	};
	struct cmsghdr *c;
	int fd;

	REQUIRE(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1);
	c = CMSG_FIRSTHDR(&msg);
	REQUIRE(c && c->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}
