/* SPDX-License-Identifier: GPL-2.0 */
/* brumm mc: the commands of the memcached outlier study. */
#ifndef BRUMM_MC_H
#define BRUMM_MC_H

#include "../brumm/cli.h"

int mc_load(int argc, char **argv);
int mc_calc(int argc, char **argv);
int mc_compare(int argc, char **argv);
int mc_study(int argc, char **argv);
int mc_report(int argc, char **argv);
int mc_tenant(int argc, char **argv);

#endif /* BRUMM_MC_H */
