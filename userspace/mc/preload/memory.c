// SPDX-License-Identifier: GPL-2.0
/*
 * Lets memcached have its items in memory of /dev/brumm: LD_PRELOAD this, and run
 * memcached -e /dev/brumm. memcached opens that file, gives it a length, and maps
 * it shared; a window does all of this but for the length, for which frames are
 * allocated here. Nothing else is changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <brumm/uapi.h>

int ftruncate(int fd, off_t length);
int ftruncate64(int fd, off64_t length);

static int allocate(int fd, uint64_t length)
{
	struct brumm_alloc a = {
		.size = sizeof(a), .offset = 0, .length = length,
	};

	return ioctl(fd, BRUMM_IOC_ALLOC, &a);
}

static int set_length(int fd, uint64_t length, const char *next)
{
	int (*real)(int, off64_t);
	struct stat st;

	if (!fstat(fd, &st) && S_ISCHR(st.st_mode))
		return allocate(fd, length);
	*(void **)&real = dlsym(RTLD_NEXT, next);
	if (real)
		return real(fd, (off64_t)length);
	errno = ENOSYS;
	return -1;
}

__attribute__((visibility("default"))) int ftruncate(int fd, off_t length)
{
	return set_length(fd, (uint64_t)length, "ftruncate");
}

__attribute__((visibility("default"))) int ftruncate64(int fd, off64_t length)
{
	return set_length(fd, (uint64_t)length, "ftruncate64");
}
