// SPDX-License-Identifier: GPL-2.0
/*
 * brumm: predictable clean-up. Load and unload.
 *
 * Contract: the device comes last and goes first. Open windows and gates hold
 * the module; without them nothing is charged to anybody.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>

#include "group.h"
#include "kfuncs.h"
#include "living.h"
#include "mapdb.h"
#include "window.h"

static int __init brumm_init(void)
{
	int err;

	err = mapdb_init();
	if (err)
		return err;
	err = group_init();
	if (err)
		goto mapdb;
	err = living_init();
	if (err)
		goto group;
	err = knobs_init();
	if (err)
		goto living;
	err = device_init();
	if (err)
		goto knobs;
	kfuncs_init();
	return 0;

knobs:
	knobs_exit();
living:
	living_exit();
group:
	group_exit();
mapdb:
	mapdb_exit();
	return err;
}

static void __exit brumm_exit(void)
{
	device_exit();
	knobs_exit();
	living_exit();
	group_exit();
	mapdb_exit();
}

module_init(brumm_init);
module_exit(brumm_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Revocable memory, and a budget of clean-up time per cgroup");
MODULE_ALIAS("devname:brumm");
