/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups: what the module keeps of a cgroup. One is made when somebody needs
 * it (a window is opened, a knob is written) together with those above it, and
 * goes away when the cgroup is gone and nothing is charged any more. A group
 * holds no reference to its cgroup, so that it never keeps one dying.
 *
 * Only cgroups of the v2 hierarchy that have the memory controller are groups:
 * these are the ones that have brumm.* files. A task in another one belongs to
 * the nearest ancestor that is a group. The root is not one: it sponsors
 * nothing and is NULL wherever a sponsor is meant.
 *
 * A cgroup that loses the memory controller and gets it back starts anew, with
 * another group, as it does with another struct mem_cgroup.
 */
#ifndef BRUMM_GROUP_H
#define BRUMM_GROUP_H

#include <linux/err.h>
#include <linux/kernfs.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>

#include "mapdb.h"

struct cgroup_subsys_state;

/* Bits of brumm_group.notify_files. */
enum {
	GROUP_EVENTS,
	GROUP_EVENTS_LOCAL,
};

/**
 * struct group_reclaims - what reclaims of a group took
 * @nr: how many ran to their end
 * @last_predicted: usage when the last one began, ns
 * @last_measured: what it took, ns
 * @worst_predicted: the same of the one that took longest
 * @worst_measured: and what it took
 */
struct group_reclaims {
	u64 nr;
	u64 last_predicted;
	u64 last_measured;
	u64 worst_predicted;
	u64 worst_measured;
};

/* What brumm.mode of a group says: a mode of its own, or that from above. */
#define GROUP_MODE_INHERIT	-1

#define GROUP_SPACES	(LIVING_NS - LIVING_NETNS + 1)

/**
 * struct brumm_group - a cgroup that somebody needs
 * @sp: what the mapping database knows of it
 * @parent: one level up; holds a reference to it
 * @css_serial: serial number of the memory css: a cgroup with another one has
 *	another group
 * @refs: one while it is in the tree of groups, one of each child, and those
 *	given out
 * @gone: the cgroup is gone: free this when nothing needs it any more
 * @checks: in the list of those to be looked at for that
 * @children: groups below
 * @sibling: in @parent->children
 * @dir: the cgroup's directory
 * @notify: work that notifies who waits for the event files
 * @notify_files: which: bits %GROUP_EVENTS, %GROUP_EVENTS_LOCAL
 * @notified_at: jiffies when it last ran
 * @own_mode: an &enum ledger_mode, or %GROUP_MODE_INHERIT
 * @followed: a mode at or above is not "off": the ledger is told of the tasks
 * @living: records of what tasks of this very group own, see living.h
 * @processes: those of processes
 * @files_lock: of who looks at all of @living, or at what @processes have open
 * @files_next: when the worker may do so next, ns
 * @files_stale: the last look found no memory
 * @has_spaces: one of them uses namespaces that are not those of the boot
 * @spaces: namespaces that only tasks here and below use, by kind from
 *	%LIVING_NETNS on; see living-ns.c
 * @lock: protects @watches and @reclaims
 * @watches: those who reset the peak for themselves
 * @reclaims: see there
 */
struct brumm_group {
	struct mapdb_sponsor sp;
	struct brumm_group *parent;
	u64 css_serial;
	refcount_t refs;
	bool gone;
	struct list_head checks;
	struct list_head children;
	struct list_head sibling;
	struct kernfs_node *dir;
	struct delayed_work notify;
	unsigned long notify_files;
	unsigned long notified_at;
	int own_mode;
	bool followed;
	struct list_head living;
	struct list_head processes;
	struct mutex files_lock;	/* see above */
	u64 files_next;
	bool files_stale;
	bool has_spaces;
	u32 spaces[GROUP_SPACES];
	struct mutex lock;	/* protects what follows */
	struct rb_root watches;
	struct group_reclaims reclaims;
};

/* The root: its ledger has the prices of last resort, and keeps no account. */
extern struct brumm_group group_root;
/* The tree of groups, and what each inherits of the one above. */
extern struct mutex groups_lock;

/* group.c for the knobs. @css is a memory css whose files are there and stay so. */
struct brumm_group *group_get_css(struct cgroup_subsys_state *css);
struct brumm_group *group_find_css(struct cgroup_subsys_state *css);
struct brumm_group *group_tryget(const struct cgroup_subsys_state *css);
struct brumm_group *group_next_below(struct brumm_group *top,
				     struct brumm_group *prev);
bool group_is_root(const struct brumm_group *g);

/* group-state.c */
extern const struct ledger_prices group_first_prices;
void group_get_state(struct cgroup_subsys_state *css, struct ledger_state *s);
void group_get_reclaims(struct cgroup_subsys_state *css,
			struct group_reclaims *r);
void group_default_prices(struct brumm_group *g);
void group_init_mode(struct brumm_group *g);
int group_set_mode(struct brumm_group *g, int mode);
int group_get_mode(struct cgroup_subsys_state *css, enum ledger_mode *in_force);

static inline struct brumm_group *group_of(struct mapdb_sponsor *sp)
{
	return container_of(sp, struct brumm_group, sp);
}

/* Files that are notified. */
#define KNOB_EVENTS		"brumm.events"
#define KNOB_EVENTS_LOCAL	"brumm.events.local"

/* For the rest of the module */

#if BRUMM_QUOTA
/* group.c */
int group_init(void);
void group_exit(void);

/*
 * References keep a group whose cgroup is gone. What is charged keeps it too,
 * so nodes need none.
 */
struct mapdb_sponsor *group_get_current(void);
struct mapdb_sponsor *group_get_fd(int fd);
void group_put(struct mapdb_sponsor *sp);

/* Is @up the same as @sp or above it? */
bool group_is_above(struct mapdb_sponsor *up, struct mapdb_sponsor *sp);

/* knobs.c */
int knobs_init(void);
void knobs_exit(void);
/* Are there brumm.* files? */
bool knobs_present(void);
#else
static inline int group_init(void)
{
	return 0;
}

static inline void group_exit(void)
{
}

static inline struct mapdb_sponsor *group_get_current(void)
{
	return NULL;
}

static inline struct mapdb_sponsor *group_get_fd(int fd)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void group_put(struct mapdb_sponsor *sp)
{
}

static inline bool group_is_above(struct mapdb_sponsor *up,
				  struct mapdb_sponsor *sp)
{
	return false;
}

static inline int knobs_init(void)
{
	return 0;
}

static inline void knobs_exit(void)
{
}

static inline bool knobs_present(void)
{
	return false;
}
#endif

#endif /* BRUMM_GROUP_H */
