// SPDX-License-Identifier: GPL-2.0
/*
 * The living: descriptors and open files.
 *
 * Contract
 *   - Slots: a descriptor table counts once in each group that has a thread using
 *     it, on the record of one of the processes there. So the slots of a process
 *     come with its fork, and move and die with it, at once.
 *   - Files, by type: a struct file counts once in each group that has it in some
 *     table, however many slots hold it: the last close there pays. This is on
 *     the record of the group. What is on its way (SCM_RIGHTS), registered with
 *     an io_uring, or held by the kernel only, counts nowhere.
 *   - open and close raise no event. So there is one exact look: at all tables of
 *     a group, one after the other. Nothing is kept of it but the sums: no look
 *     depends on an earlier one, and a file that is gone, or another one at the
 *     same address, is no case.
 *   - A reader of the group's files has such a look made. The worker makes one when
 *     a process has come or gone, and in turn; those take at most one part in
 *     FILES_SHARE of its time, however many descriptors there are.
 *   - Without memory for a look all stays as it was, and the group says so.
 *
 * Which task a table belongs to is known only as long as task_lock() keeps
 * task->files: no table is pinned, or else we might be the one who has to close
 * all that is in it. A piece of it is looked at with file_lock held, which keeps
 * the files in their slots, and hence their inodes, dentries and sockets.
 */
#include <linux/dcache.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/net.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <net/sock.h>

#include "compat/files.h"
#include "living.h"
#include "living-map.h"

/* Files that are looked at before the owner may use his table. */
#define FILES_PIECE	128
/* Tables of a process that are found by one walk of its threads. */
#define FILES_BATCH	16
#define FILES_SHARE	64
/* Between two looks of the worker, at least. */
#define FILES_REST	(100 * NSEC_PER_MSEC)

/* What kind a file is */

static enum living_kind anon_kind(const struct dentry *dentry)
{
	static const struct {
		const char *name;
		enum living_kind kind;
	} names[] = {
		{ "[eventfd]", LIVING_EVENTFD },
		{ "[eventpoll]", LIVING_EPOLL },
		{ "[io_uring]", LIVING_URING },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp((const char *)dentry->d_name.name, names[i].name))
			return names[i].kind;
	}
	return LIVING_OTHERFILE;
}

static enum living_kind socket_kind(const struct socket *sock)
{
	const struct sock *sk = READ_ONCE(sock->sk);

	if (!sk)
		return LIVING_SOCKET;
	if (sk->sk_family == AF_UNIX)
		return LIVING_UNIX;
	if ((sk->sk_family == AF_INET || sk->sk_family == AF_INET6) &&
	    (sk->sk_protocol == IPPROTO_TCP || sk->sk_protocol == IPPROTO_MPTCP))
		return LIVING_TCP;
	return LIVING_SOCKET;
}

/* The caller keeps it open. */
static enum living_kind file_kind(struct file *file)
{
	const struct inode *inode = file_inode(file);
	unsigned long magic = inode->i_sb->s_magic;
	umode_t mode = READ_ONCE(inode->i_mode);
	const struct socket *sock;

	if (magic == ANON_INODE_FS_MAGIC)
		return anon_kind(file->f_path.dentry);
	if (magic == PID_FS_MAGIC)
		return LIVING_OTHERFILE;
	if (S_ISREG(mode) || S_ISDIR(mode))
		return LIVING_PLAIN;
	/* A place in the tree only. */
	if (file->f_mode & FMODE_PATH)
		return LIVING_OTHERFILE;
	if (S_ISFIFO(mode))
		return LIVING_PIPE;
	sock = sock_from_file(file);
	return sock ? socket_kind(sock) : LIVING_OTHERFILE;
}

/* Tables */

/**
 * struct files_walk - a look at a group
 * @tables: met so far
 * @files: met so far
 * @kinds: of @files
 * @round: number of the look, see living_next_process()
 */
struct files_walk {
	struct living_map tables;
	struct living_map files;
	u64 kinds[LIVING_KINDS];
	unsigned long round;
};

static void meet_file(struct files_walk *w, struct file *file)
{
	struct living_entry *e = living_map_put(&w->files, file);

	if (e->value)
		return;
	e->value = 1;
	w->kinds[file_kind(file)]++;
}

/* FILES_PIECE files from slot *@at on. Return: is there more? */
static bool walk_slots(struct files_walk *w, struct files_struct *files,
		       unsigned int *at, u64 *used)
{
	struct fdtable *fdt;
	struct file *file;
	unsigned int left = FILES_PIECE;

	lockdep_assert_held(&files->file_lock);
	fdt = files_fdtable(files);
	while (left--) {
		*at = find_next_bit(fdt->open_fds, fdt->max_fds, *at);
		if (*at >= fdt->max_fds)
			return false;
		file = rcu_dereference_check_fdtable(files, fdt->fd[*at]);
		++*at;
		/* A slot that is taken, but not filled yet. */
		if (!file)
			continue;
		++*used;
		meet_file(w, file);
	}
	return true;
}

enum walk_result { WALK_END, WALK_MORE, WALK_LOST };

/* A piece of table @key of @task. WALK_LOST: it is not @task's any more. */
static enum walk_result walk_piece(struct files_walk *w,
				   struct task_struct *task, const void *key,
				   unsigned int *at, u64 *used)
{
	enum walk_result r = WALK_LOST;
	struct files_struct *files;

	task_lock(task);
	files = task->files;
	if (files && files == key) {
		spin_lock(&files->file_lock);
		r = walk_slots(w, files, at, used) ? WALK_MORE : WALK_END;
		spin_unlock(&files->file_lock);
	}
	task_unlock(task);
	return r;
}

/* Another thread of @task's process that uses table @key, pinned, or NULL. */
static struct task_struct *thread_with_table(struct task_struct *task,
					     const void *key)
{
	struct task_struct *t, *found = NULL;

	rcu_read_lock();
	for_each_thread(task, t) {
		if (READ_ONCE(t->files) == key) {
			found = get_task_struct(t);
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/*
 * All of table @key, which @task was seen to use; takes over the reference to it.
 * Who closes it, or leaves it, meanwhile, makes that it counts in part.
 */
static int walk_table(struct files_walk *w, struct task_struct *task,
		      const void *key, u64 *used)
{
	enum walk_result r = WALK_MORE;
	struct task_struct *next;
	unsigned int at = 0;
	int err = 0;

	while (r != WALK_END) {
		if (!living_map_room(&w->files, FILES_PIECE))
			err = -ENOMEM;
		else if (fatal_signal_pending(current))
			err = -EINTR;
		if (err)
			break;
		r = walk_piece(w, task, key, &at, used);
		if (r == WALK_LOST) {
			next = thread_with_table(task, key);
			if (!next)
				break;
			put_task_struct(task);
			task = next;
		}
		cond_resched();
	}
	put_task_struct(task);
	return err;
}

struct found_table {
	const void *key;
	struct task_struct *task;
};

/* Tables of @task's process that were not met yet; the tasks are pinned. */
static unsigned int find_tables(struct files_walk *w, struct task_struct *task,
				struct found_table found[FILES_BATCH])
{
	struct living_entry *e;
	struct task_struct *t;
	unsigned int nr = 0;
	const void *key;

	rcu_read_lock();
	for_each_thread(task, t) {
		key = READ_ONCE(t->files);
		if (!key)
			continue;
		e = living_map_put(&w->tables, key);
		if (e->value)
			continue;
		e->value = 1;
		found[nr].key = key;
		found[nr].task = get_task_struct(t);
		if (++nr == FILES_BATCH)
			break;
	}
	rcu_read_unlock();
	return nr;
}

/* Slots of the tables of @task's process that no process met before uses. */
static int walk_process(struct files_walk *w, struct task_struct *task,
			u64 *used)
{
	struct found_table found[FILES_BATCH];
	unsigned int i, nr;
	int err = 0;

	do {
		if (!living_map_room(&w->tables, FILES_BATCH))
			return -ENOMEM;
		nr = find_tables(w, task, found);
		for (i = 0; i < nr; i++) {
			if (!err)
				err = walk_table(w, found[i].task,
						 found[i].key, used);
			else
				put_task_struct(found[i].task);
		}
		cond_resched();
	} while (!err && nr == FILES_BATCH);
	return err;
}

/* Looks */

static void slots_settle(struct living *l, u64 slots, struct living_due *due)
{
	struct living_truth t = {};

	living_truth_set(&t, LIVING_FD, slots);
	living_lock_record(l);
	living_settle(l, NULL, &t, due);
	living_unlock_record(l);
}

static void files_settle(struct living *l, const struct files_walk *w)
{
	struct living_truth t = {};
	int k;

	for (k = LIVING_PLAIN; k <= LIVING_OTHERFILE; k++)
		living_truth_set(&t, k, w->kinds[k]);
	living_lock_record(l);
	living_settle(l, NULL, &t, NULL);
	living_unlock_record(l);
}

/* One look at a time: or else two would give a table to different processes. */
static int walk_group(struct living *l, struct brumm_group *g)
{
	static atomic_long_t rounds;
	struct files_walk w = { .round = atomic_long_inc_return(&rounds) };
	struct task_struct *task;
	bool spaces = false;
	struct living *p;
	int err = 0;
	u64 used;

	lockdep_assert_held(&g->files_lock);
	while (!err && (p = living_next_process(g, w.round))) {
		used = 0;
		task = living_process_task(p);
		err = walk_process(&w, task, &used);
		spaces |= living_has_spaces(task);
		put_task_struct(task);
		if (!err)
			slots_settle(p, used, NULL);
		living_put(p);
	}
	if (!err) {
		files_settle(l, &w);
		WRITE_ONCE(g->has_spaces, spaces);
	}
	living_map_free(&w.tables);
	living_map_free(&w.files);
	return err;
}

/* The group's last process is gone, and it owns nothing. */
void living_drop_files_if_empty(struct living *l)
{
	const struct brumm_group *g = l->group;
	bool empty;

	living_lock_record(l);
	empty = living_counts_zero(&l->count);
	living_unlock_record(l);
	if (empty && list_empty(&g->processes))
		living_remove(l);
}

static bool files_look_is_due(const struct brumm_group *g, u64 now)
{
	/* Then there is nothing to be looked at. */
	return list_empty(&g->processes) || now >= READ_ONCE(g->files_next);
}

/**
 * living_look_files() - an exact look at the open files of a group
 * @l: the group's record
 * @wait: do it now; or else only if nobody else does, and it is due
 *
 * Context: may sleep.
 */
void living_look_files(struct living *l, bool wait)
{
	u64 begin = ktime_get_ns(), now;
	/* It never changes hands. */
	struct brumm_group *g = l->group;
	int err;

	if (!wait) {
		if (!files_look_is_due(g, begin) ||
		    !mutex_trylock(&g->files_lock))
			return;
	} else if (mutex_lock_killable(&g->files_lock)) {
		return;
	}
	err = walk_group(l, g);
	if (err != -EINTR)
		WRITE_ONCE(g->files_stale, err != 0);
	now = ktime_get_ns();
	WRITE_ONCE(g->files_next,
		   now + max_t(u64, FILES_REST, (now - begin) * FILES_SHARE));
	mutex_unlock(&g->files_lock);
	living_drop_files_if_empty(l);
}

/**
 * living_follow_files() - have a record of what a group has open
 * @g: the group, which has a process
 *
 * Context: may sleep.
 */
void living_follow_files(struct brumm_group *g)
{
	struct living *l = living_get(g);

	if (!l) {
		l = living_make(LIVING_IS_FILES, g, g);
		if (!l)
			return;
		living_mark_dirty(l);
	}
	living_put(l);
}

/**
 * living_refresh_files() - as living_refresh(), for one group
 * @g: the group
 *
 * Context: may sleep.
 * Return: false: there was no memory, what it says is from earlier.
 */
bool living_refresh_files(struct brumm_group *g)
{
	struct living *l;

	if (!list_empty(&g->processes))
		living_follow_files(g);
	l = living_get(g);
	if (!l)
		return true;
	living_look_files(l, true);
	living_put(l);
	return !READ_ONCE(g->files_stale);
}

/* The process of @l comes to its group, or leaves it. Any context. */
void living_mark_files(const struct living *l)
{
	struct living *files;

	rcu_read_lock();
	/* A key only. */
	files = living_find(READ_ONCE(l->group));
	if (files)
		living_mark_dirty(files);
	rcu_read_unlock();
}

/* The task runs not yet, or is current: so its table stays. */
static u64 count_slots(const struct task_struct *task)
{
	const struct files_struct *files = task->files;
	const struct fdtable *fdt;
	u64 nr;

	rcu_read_lock();
	fdt = rcu_dereference(files->fdt);
	nr = bitmap_weight(fdt->open_fds, fdt->max_fds);
	rcu_read_unlock();
	return nr;
}

/**
 * living_quick_files() - charge a table that is new
 * @l: record of its process
 * @task: a task of it, which does not run yet, or which is current
 * @due: a claim that is for it, or NULL
 *
 * A bit is looked at for each pointer that the fork has copied.
 *
 * Context: any but interrupts.
 */
void living_quick_files(struct living *l, const struct task_struct *task,
			struct living_due *due)
{
	if (!task->files)
		return;
	/* One that is shared is its parent's. */
	if (task != current && task->files == current->files)
		return;
	slots_settle(l, count_slots(task), due);
}

/* Slots that a child of the calling task will have. */
u64 living_slots_of_current(void)
{
	return current->files ? count_slots(current) : 0;
}
