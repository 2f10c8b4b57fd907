// SPDX-License-Identifier: GPL-2.0
/*
 * Commits one fault on purpose, named by the parameter, so that the VM runner
 * can be shown to notice it. Most happen while the module is being loaded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "name of the fault, see faults[]");

/* Volatile, for the compiler must not see through what is done here. */
static void *volatile probe_ptr;
static volatile int probe_number = 77;

static int fault_none(void)
{
	return 0;
}

static int fault_refuse(void)
{
	return -EINVAL;
}

/* A reference that nobody returns: the module cannot be removed. */
static int fault_busy(void)
{
	__module_get(THIS_MODULE);
	return 0;
}

static int fault_oops(void)
{
	return *(volatile int *)probe_ptr;
}

static int fault_warn(void)
{
	WARN_ON(probe_number);
	return 0;
}

/* No line anywhere, only the taint. */
static int fault_taint(void)
{
	add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	return 0;
}

static int fault_softlockup(void)
{
	preempt_disable();
	for (;;)
		cpu_relax();
	return 0;
}

static int fault_hungtask(void)
{
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule();
	}
	return 0;
}

static DEFINE_MUTEX(probe_a);
static DEFINE_MUTEX(probe_b);

/* Taken in both orders, one after the other: only lockdep can tell. */
static int fault_lockdep(void)
{
	mutex_lock(&probe_a);
	mutex_lock(&probe_b);
	mutex_unlock(&probe_b);
	mutex_unlock(&probe_a);
	mutex_lock(&probe_b);
	mutex_lock(&probe_a);
	mutex_unlock(&probe_a);
	mutex_unlock(&probe_b);
	return 0;
}

static int fault_atomic(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	msleep(20);
	spin_unlock(&lock);
	return 0;
}

/* Only might_sleep() objects: nothing is scheduled away. */
static int fault_maysleep(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
	return 0;
}

static int fault_rcu(void)
{
	static void __rcu *gp;

	return rcu_dereference(gp) ? 1 : 0;
}

static int fault_uaf(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	probe_ptr = p;
	kfree(p);
	return *(volatile char *)probe_ptr & 0;
}

static int fault_outofbounds(void)
{
	char *p = kmalloc(60, GFP_KERNEL);

	probe_ptr = p;
	if (p)
		((volatile char *)probe_ptr)[61] = 1;
	kfree(p);
	return 0;
}

static int fault_shift(void)
{
	return (1 << probe_number) & 0;
}

/* Several, for a stale pointer on some stack can hide one of them. */
static int fault_leak(void)
{
	int i;

	for (i = 0; i < 16; i++)
		probe_ptr = kmalloc(200, GFP_KERNEL);
	probe_ptr = NULL;
	return 0;
}

static const struct {
	const char *name;
	int (*commit)(void);
} faults[] = {
	{ "none",		fault_none },
	{ "refuse",		fault_refuse },
	{ "busy",		fault_busy },
	{ "oops",		fault_oops },
	{ "warn",		fault_warn },
	{ "taint",		fault_taint },
	{ "softlockup",		fault_softlockup },
	{ "hungtask",		fault_hungtask },
	{ "lockdep",		fault_lockdep },
	{ "atomic",		fault_atomic },
	{ "maysleep",		fault_maysleep },
	{ "rcu",		fault_rcu },
	{ "uaf",		fault_uaf },
	{ "outofbounds",	fault_outofbounds },
	{ "shift",		fault_shift },
	{ "leak",		fault_leak },
	/* Committed on the way out. */
	{ "exitleak",		fault_none },
};

static int __init probe_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!strcmp(fault, faults[i].name)) {
			pr_info("committing fault %s\n", fault);
			return faults[i].commit();
		}
	}
	pr_err("unknown fault %s\n", fault);
	return -ENOENT;
}

static void __exit probe_exit(void)
{
	if (!strcmp(fault, "exitleak"))
		fault_leak();
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("Faults that a test harness must notice");
MODULE_LICENSE("GPL");
