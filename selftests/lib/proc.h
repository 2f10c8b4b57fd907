/* SPDX-License-Identifier: GPL-2.0 */
/* Other processes and threads of a case. */
#ifndef BRUMM_TEST_PROC_H
#define BRUMM_TEST_PROC_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed memory that children share. */
void *shared(size_t bytes);

/* A child that runs @fn and dies with its parent. */
pid_t spawn(void (*fn)(void *arg), void *arg);
/* The same in a cgroup: much faster than to enter one. */
pid_t spawn_in(int cgroup, void (*fn)(void *arg), void *arg);
/* REQUIREs that it ended well. */
void reap(pid_t pid);
void kill_and_reap(pid_t pid);
/* The result of @fn in a child. */
int64_t in_child(int64_t (*fn)(void *arg), void *arg);

pthread_t start(void *(*fn)(void *arg), void *arg);
void join(pthread_t t);
void pin_to_cpu(unsigned int cpu);

/* Words that processes share: no locks, they must survive a killed partner. */
static inline uint32_t get(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static inline void put(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}

static inline uint32_t add(uint32_t *p, uint32_t v)
{
	return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST);
}

/* Waits until *@p is @v. */
void await(const uint32_t *p, uint32_t v);

uint64_t now_ns(void);
void sleep_us(unsigned long us);

void fd_send(int sock, int fd);
int fd_recv(int sock);

#endif /* BRUMM_TEST_PROC_H */
