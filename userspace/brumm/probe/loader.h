/* SPDX-License-Identifier: GPL-2.0 */
/* What all BPF objects need: why they do not load, whom they count, what was missed. */
#ifndef BRUMM_PROBE_LOADER_H
#define BRUMM_PROBE_LOADER_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdint.h>

/* Keeps libbpf's complaints instead of printing them; what to set again later. */
libbpf_print_fn_t loader_listen(void);
/* Forgets them. */
void loader_forget(void);
/* Adds that @way failed with @err, and what libbpf said, to *@why. */
void loader_note(char **why, const char *way, int err);

/*
 * Fills the filter @wanted with @group and all cgroups below it; nothing if it is
 * negative. When filter_mkdir() is attached, so that no new one is overlooked.
 */
int loader_want(struct bpf_map *wanted, int group);

/* Runs that the kernel left out, since the program was running already. */
uint64_t loader_missed(struct bpf_object *obj);
/* The same of one program. */
uint64_t loader_missed_by(const struct bpf_program *prog);

#endif /* BRUMM_PROBE_LOADER_H */
