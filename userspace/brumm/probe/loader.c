// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader.h"

/* What libbpf complained of first, to be told if nothing works. */
static __thread char complaint[256];

static int on_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_WARN && !*complaint)
		vsnprintf(complaint, sizeof(complaint), fmt, ap);
	return 0;
}

libbpf_print_fn_t loader_listen(void)
{
	return libbpf_set_print(on_print);
}

void loader_forget(void)
{
	*complaint = 0;
}

void loader_note(char **why, const char *way, int err)
{
	char *old = *why;

	complaint[strcspn(complaint, "\n")] = 0;
	if (asprintf(why, "%s%s%s: %s%s%s", old ? old : "", old ? "; " : "",
		     way, strerror(-err), *complaint ? ", " : "",
		     complaint) < 0)
		*why = NULL;
	free(old);
}

/* Filter */

static int want(struct bpf_map *wanted, uint64_t id)
{
	uint8_t yes = 1;

	return bpf_map__update_elem(wanted, &id, sizeof(id), &yes, sizeof(yes),
				    BPF_ANY);
}

/*
 * All cgroups below the one whose folder is @dir, which is closed. Those that go
 * meanwhile are no loss; those that come are seen by filter_mkdir().
 */
static int want_below(struct bpf_map *wanted, int dir)
{
	struct dirent *d;
	struct stat st;
	DIR *stream;
	int err = 0, fd;

	if (fstat(dir, &st)) {
		close(dir);
		return 0;
	}
	err = want(wanted, st.st_ino);
	stream = err ? NULL : fdopendir(dir);
	if (!stream) {
		close(dir);
		return err;
	}
	while (!err && (d = readdir(stream))) {
		if (d->d_type != DT_DIR || *d->d_name == '.')
			continue;
		fd = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			err = want_below(wanted, fd);
	}
	closedir(stream);
	return err;
}

int loader_want(struct bpf_map *wanted, int group)
{
	int fd;

	if (group < 0)
		return 0;
	fd = openat(group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : want_below(wanted, fd);
}

uint64_t loader_missed_by(const struct bpf_program *prog)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (!bpf_program__autoload(prog) ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return 0;
	return info.recursion_misses;
}

uint64_t loader_missed(struct bpf_object *obj)
{
	struct bpf_program *prog;
	uint64_t missed = 0;

	bpf_object__for_each_program(prog, obj)
		missed += loader_missed_by(prog);
	return missed;
}
