/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prices at load, in ns: what cleaning up one of a kind is expected to take
 * until somebody writes brumm.price of the root.
 *
 * They are set on the safe side of what a slow x86-64 server needs, not
 * measured on this machine: `brumm profile` does that and writes the result.
 */
#ifndef BRUMM_PRICES_H
#define BRUMM_PRICES_H

/* Finding the first mapping of a sponsor and starting to revoke there. */
#define BRUMM_PRICE_LOOKUP_NS	1000
/* Unlinking, zapping, uncharging and freeing a node. */
#define BRUMM_PRICE_MAP_NS	400
/* One page of it: page-table entry, TLB entry, frame. */
#define BRUMM_PRICE_PT_NS	100
/* Of what is not derived from the base itself: the way down to it and back. */
#define BRUMM_PRICE_DEEP_NS	400

#endif /* BRUMM_PRICES_H */
