/* SPDX-License-Identifier: GPL-2.0 */
/* How what tasks own is learned on this kernel: for brumm info. */
#ifndef BRUMM_COUNTED_H
#define BRUMM_COUNTED_H

#include <jansson.h>

/* @release: of the kernel. */
void counted_print(const char *release);
json_t *counted_json(const char *release);

#endif /* BRUMM_COUNTED_H */
