/* SPDX-License-Identifier: GPL-2.0 */
/* What measured times depend on: for the files that keep them. */
#ifndef BRUMM_MACHINE_H
#define BRUMM_MACHINE_H

#include <jansson.h>
#include <stdbool.h>

/*
 * What a price holds for: CPU model and number, microcode, kernel release and
 * build, mitigations, build of the module. An object of strings; what this
 * machine does not tell is null. NULL: no memory.
 */
json_t *machine_fingerprint(void);

/*
 * Names of what differs between two fingerprints, as an array of strings, so
 * that it can be said. NULL: no memory.
 */
json_t *machine_differences(const json_t *a, const json_t *b);

/*
 * The fingerprint, and what else a reader of a result wants to know: clock,
 * virtualised, and lane and mode as the environment says (BRUMM_LANE,
 * BRUMM_MODE).
 */
json_t *machine_describe(void);

#endif /* BRUMM_MACHINE_H */
