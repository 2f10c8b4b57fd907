// SPDX-License-Identifier: GPL-2.0
/*
 * pair BOUND_US COMMAND [ARG...]: what a neighbour feels while COMMAND runs. An
 * echo server on the first CPU, a client on the second (or both on one) that
 * sends a request each millisecond, come what may: latency counts from when it
 * was to be sent. One line of JSON: before (2 s), during, after (2 s), each with
 * the time of its first request (CLOCK_MONOTONIC), and the first that were late, as
 * [when since then, latency].
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "tap.h"

#define PERIOD		1000000ULL	/* ns */
#define AROUND_US	2000000
#define MAX_REQUESTS	120000
#define MAX_LATE	100

static uint64_t began, latency[MAX_REQUESTS];
static uint32_t sent, stop;
static int sock[2];
static unsigned int cpus[2];

static void pick_cpus(void)
{
	cpu_set_t set;
	unsigned int cpu, n = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	if (n < 2)
		cpus[1] = cpus[0];
}

static void serve(void *arg)
{
	uint32_t i;

	(void)arg;
	pin_to_cpu(cpus[0]);
	while (recv(sock[1], &i, sizeof(i), 0) == sizeof(i))
		if (send(sock[1], &i, sizeof(i), 0) != sizeof(i))
			break;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *sender(void *arg)
{
	uint32_t i;

	(void)arg;
	pin_to_cpu(cpus[1]);
	for (i = 0; i < MAX_REQUESTS && !get(&stop); i++) {
		sleep_until(began + i * PERIOD);
		/* A full socket is a late answer, too: wait for room. */
		if (send(sock[0], &i, sizeof(i), MSG_NOSIGNAL) < 0)
			break;
		put(&sent, i + 1);
	}
	return NULL;
}

static void *receiver(void *arg)
{
	uint32_t i;

	(void)arg;
	pin_to_cpu(cpus[1]);
	while (recv(sock[0], &i, sizeof(i), 0) == sizeof(i))
		latency[i] = now_ns() - (began + i * PERIOD);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of the requests that were to be sent from @from until @to. */
static void tell(const char *phase, uint64_t from, uint64_t to, uint64_t bound)
{
	uint64_t first = (from - began + PERIOD - 1) / PERIOD;
	uint64_t end = (to - began + PERIOD - 1) / PERIOD, n, i, over = 0;

	/* Those never sent or answered are the latest of all. */
	if (end > MAX_REQUESTS)
		end = MAX_REQUESTS;
	n = end > first ? end - first : 0;
	printf("\"%s\": {\"first_ns\": %llu, \"late_ms\": [", phase,
	       (unsigned long long)(began + first * PERIOD));
	for (i = first; i < end; i++) {
		if (latency[i] <= bound)
			continue;
		if (++over <= MAX_LATE)
			printf("%s[%llu, %.1f]", over > 1 ? ", " : "",
			       (unsigned long long)(i - first), latency[i] / 1e6);
	}
	qsort(latency + first, n, sizeof(*latency), by_value);
	printf("], \"requests\": %llu, \"over\": %llu, \"outliers\": %.5f",
	       (unsigned long long)n, (unsigned long long)over,
	       n ? (double)over / (double)n : 0.0);
	if (n)
		printf(", \"p50_us\": %llu, \"p99_us\": %llu",
		       (unsigned long long)latency[first + n / 2] / 1000,
		       (unsigned long long)latency[first + n * 99 / 100] / 1000);
	printf("}");
}

static int run_command(char **argv)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	uint64_t bound, from, end, last;
	pthread_t threads[2];
	pid_t server;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: pair BOUND_US COMMAND [ARG...]\n");
		return 1;
	}
	bound = strtoull(argv[1], NULL, 10) * 1000;
	memset(latency, 0xff, sizeof(latency));
	pick_cpus();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return 1;
	server = spawn(serve, NULL);
	began = now_ns() + 10 * PERIOD;
	threads[0] = start(receiver, NULL);
	threads[1] = start(sender, NULL);
	sleep_us(AROUND_US);
	from = now_ns();
	status = run_command(argv + 2);
	end = now_ns();
	sleep_us(AROUND_US);
	last = began + (uint64_t)get(&sent) * PERIOD;
	put(&stop, 1);
	join(threads[1]);
	sleep_us(500000);
	shutdown(sock[0], SHUT_RDWR);
	join(threads[0]);
	kill_and_reap(server);
	printf("{\"bound_us\": %llu, \"status\": %d, \"took_ms\": %.1f, ",
	       (unsigned long long)bound / 1000, status, (end - from) / 1e6);
	tell("before", began, from, bound);
	printf(", ");
	tell("during", from, end, bound);
	printf(", ");
	tell("after", end, last > end ? last : end, bound);
	printf("}\n");
	return status;
}
