/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRUMM_MC_MANIFEST_H
#define BRUMM_MC_MANIFEST_H

#include <jansson.h>

/*
 * machine_describe() and what else a latency depends on: governor, interrupts,
 * real-time throttling, versions... @server: the command whose version it is.
 * NULL: no memory.
 */
json_t *manifest_json(const char *server);

#endif /* BRUMM_MC_MANIFEST_H */
