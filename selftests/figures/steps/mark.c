// SPDX-License-Identifier: GPL-2.0
/*
 * Put in front of a program by LD_PRELOAD: marks (mark.h) around those of its
 * system calls that STEPS_OF names: "munmap" (of STEPS_BYTES and more) or the
 * number of an ioctl. "check": around a loop of STEPS_LOOP instructions, to see
 * what the plugin makes of it.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mark.h"

#define begin()	__asm__ volatile(MARK_BEGIN_ASM ::: "memory")
#define end()	__asm__ volatile(MARK_END_ASM ::: "memory")

static bool munmaps, checks;
static unsigned long command;
static size_t least;

static void loop(void)
{
	unsigned long turns = STEPS_LOOP / 2;

	begin();
	__asm__ volatile("1:\tdec %0\n\tjnz 1b" : "+r" (turns));
	end();
}

__attribute__((constructor)) static void start(void)
{
	const char *of = getenv("STEPS_OF"), *bytes = getenv("STEPS_BYTES");

	if (!of)
		return;
	munmaps = !strcmp(of, "munmap");
	checks = !strcmp(of, "check");
	command = strtoul(of, NULL, 0);
	if (bytes)
		least = strtoul(bytes, NULL, 0);
	if (checks)
		loop();
}

/* What a child does counts with what its parent does, which ends last. */
__attribute__((destructor)) static void stop(void)
{
	if (munmaps || checks || command)
		__asm__ volatile(MARK_NEXT_ASM ::: "memory");
}

int ioctl(int fd, unsigned long cmd, ...)
{
	va_list ap;
	void *arg;
	long ret;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd != command)
		return (int)syscall(SYS_ioctl, fd, cmd, arg);
	begin();
	ret = syscall(SYS_ioctl, fd, cmd, arg);
	end();
	return (int)ret;
}

int munmap(void *addr, size_t size)
{
	long ret;

	if (!munmaps || size < least)
		return (int)syscall(SYS_munmap, addr, size);
	begin();
	ret = syscall(SYS_munmap, addr, size);
	end();
	return (int)ret;
}
