// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/brumm: commands and gates.
 *
 * Contract: uapi/brumm.h. Everything a caller hands in is copied once, checked
 * here and turned from bytes into pages; the database below may rely on ranges
 * that lie within their spaces and on flags that it knows.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "group.h"
#include "window.h"

#define MAP_FLAGS	(BRUMM_MAP_GRANT | BRUMM_MAP_REPLACE | \
			 (BRUMM_QUOTA ? BRUMM_MAP_SPONSOR : 0))
#define UNMAP_FLAGS	(BRUMM_UNMAP_SELF | BRUMM_UNMAP_RIGHTS)
#define QUERY_FLAGS	(BRUMM_QUERY_NEXT | BRUMM_QUERY_COUNT)

static_assert(sizeof(struct brumm_info) == 48);
static_assert(sizeof(struct brumm_alloc) == 24);
static_assert(sizeof(struct brumm_gate) == 24);
static_assert(sizeof(struct brumm_map) == 48);
static_assert(sizeof(struct brumm_unmap) == 48);
static_assert(sizeof(struct brumm_query) == 56);
static_assert(sizeof(struct brumm_event) == 24);

/* Ranges and rights */

/* A range of @bytes bytes of a space, in pages. */
static int range_get(u64 offset, u64 length, u64 bytes, u32 *start, u32 *pages)
{
	u64 end;

	if (!length || !PAGE_ALIGNED(offset) || !PAGE_ALIGNED(length))
		return -EINVAL;
	if (check_add_overflow(offset, length, &end) || end > bytes)
		return -EOVERFLOW;
	*start = offset >> PAGE_SHIFT;
	*pages = length >> PAGE_SHIFT;
	return 0;
}

static int rights_check(u32 rights)
{
	if (rights & ~BRUMM_RIGHTS_ALL)
		return -EOPNOTSUPP;
	return rights & BRUMM_RIGHT_R ? 0 : -EINVAL;
}

/* Gates */

/**
 * struct gate - a descriptor to map through
 * @window: whose
 * @start: first page of the range that it opens
 * @pages: how many
 * @flags: BRUMM_GATE_*
 */
struct gate {
	struct window *window;
	u32 start;
	u32 pages;
	u32 flags;
};

static int gate_release(struct inode *inode, struct file *file)
{
	struct gate *gate = file->private_data;

	window_put(gate->window);
	kfree(gate);
	return 0;
}

static const struct file_operations gate_fops = {
	.owner = THIS_MODULE,
	.release = gate_release,
	.llseek = noop_llseek,
};

static long do_gate(struct window *w, void *arg)
{
	const struct brumm_gate *a = arg;
	struct gate *gate;
	u32 start, pages;
	int fd, err;

	if (a->flags & ~BRUMM_GATE_SPONSOR)
		return -EOPNOTSUPP;
	err = range_get(a->offset, a->length, BRUMM_WINDOW_BYTES, &start,
			&pages);
	if (err)
		return err;
	gate = kzalloc(sizeof(*gate), GFP_KERNEL_ACCOUNT);
	if (!gate)
		return -ENOMEM;
	refcount_inc(&w->refs);
	gate->window = w;
	gate->start = start;
	gate->pages = pages;
	gate->flags = a->flags;
	fd = anon_inode_getfd("[brumm-gate]", &gate_fops, gate,
			      O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		window_put(w);
		kfree(gate);
	}
	return fd;
}

/* Targets of a map */

/**
 * struct target - where to map to
 * @file: pinned, or NULL: the caller's own window
 * @window: window
 * @gate: if it is one: the window's life is held
 */
struct target {
	struct file *file;
	struct window *window;
	struct gate *gate;
};

static int target_lock_gate(struct target *t)
{
	struct window *w = t->gate->window;

	down_read(&w->life);
	if (w->dead) {
		up_read(&w->life);
		return -ESTALE;
	}
	t->window = w;
	return 0;
}

static int target_get(struct target *t, struct window *own, int fd)
{
	int err = 0;

	*t = (struct target){ .window = own };
	if (fd == -1)
		return 0;
	t->file = fget(fd);
	if (!t->file)
		return -EBADF;
	t->window = window_of_file(t->file);
	if (t->window) {
		/* Who may change a window, may be mapped to. */
		if (!(t->file->f_mode & FMODE_WRITE))
			err = -EBADF;
	} else if (t->file->f_op == &gate_fops) {
		t->gate = t->file->private_data;
		err = target_lock_gate(t);
	} else {
		err = -EINVAL;
	}
	if (err)
		fput(t->file);
	return err;
}

static void target_put(struct target *t)
{
	if (t->gate)
		up_read(&t->gate->window->life);
	if (t->file)
		fput(t->file);
}

/* Where in the target's space: a gate's range begins at 0. */
static int target_range(const struct target *t, u64 offset, u64 length,
			u32 *start)
{
	u64 bytes = BRUMM_WINDOW_BYTES;
	u32 pages;
	int err;

	if (t->gate)
		bytes = (u64)t->gate->pages << PAGE_SHIFT;
	err = range_get(offset, length, bytes, start, &pages);
	if (!err && t->gate)
		*start += t->gate->start;
	return err;
}

/*
 * May the caller name @sp as sponsor? Whoever is over resources may; others
 * only with the consent of the window that the mapping goes to, and only its
 * own cgroup or one below: a charge there counts in its own budget as well.
 * One above would be a way around that.
 */
static bool sponsor_allowed(const struct target *t, struct window *own,
			    struct mapdb_sponsor *sp)
{
	struct mapdb_sponsor *group = t->window->space.group;
	bool consent = t->gate ? t->gate->flags & BRUMM_GATE_SPONSOR :
				 t->window == own;

	if (consent && group && group_is_above(group, sp))
		return true;
	return capable(CAP_SYS_RESOURCE);
}

static int sponsor_get(const struct brumm_map *a, const struct target *t,
		       struct window *own, struct mapdb_sponsor **sp)
{
	*sp = NULL;
	if (!(a->flags & BRUMM_MAP_SPONSOR))
		return a->sponsor ? -EINVAL : 0;
	*sp = group_get_fd(a->sponsor);
	if (IS_ERR(*sp))
		return PTR_ERR(*sp);
	/* The root sponsors nothing. */
	if (!*sp)
		return -EINVAL;
	if (sponsor_allowed(t, own, *sp))
		return 0;
	group_put(*sp);
	return -EPERM;
}

/* Commands */

static long do_info(struct window *w, void *arg)
{
	struct brumm_info *a = arg;

	*a = (struct brumm_info){
		.size = a->size,
		.version = BRUMM_VERSION,
		.page_size = PAGE_SIZE,
		.max_depth = BRUMM_MAX_DEPTH,
		.batch = MAPDB_BATCH,
		.events = WINDOW_EVENTS,
		.map_flags = MAP_FLAGS,
		.unmap_flags = UNMAP_FLAGS,
		.rights = BRUMM_RIGHTS_ALL,
		.features = knobs_present() ? BRUMM_FEATURE_CGROUP : 0,
		.cgroup = w->space.group ? w->space.group->id : 0,
	};
	return 0;
}

/* Is the range free? Looked at early, to say so before memory is allocated. */
static bool range_free(struct mapdb_space *s, u32 start, u32 pages)
{
	struct mapdb_node *n;
	bool free;

	down_read(&s->lock);
	n = mapdb_find_from(s, start);
	free = !n || n->start >= start + pages;
	up_read(&s->lock);
	return free;
}

static long do_alloc(struct window *w, void *arg)
{
	const struct brumm_alloc *a = arg;
	struct frames_mem *mem;
	u32 start, pages;
	int err;

	if (a->flags)
		return -EOPNOTSUPP;
	err = range_get(a->offset, a->length, BRUMM_WINDOW_BYTES, &start,
			&pages);
	if (err)
		return err;
	if (!range_free(&w->space, start, pages))
		return -EEXIST;
	mem = frames_mem_alloc(pages);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	err = mapdb_alloc(&w->space, start, pages, mem);
	if (err)
		frames_mem_free(mem);
	return err;
}

static bool ranges_overlap(const struct mapdb_map_args *m)
{
	return m->source == m->target && m->from < m->to + m->pages &&
	       m->to < m->from + m->pages;
}

static int map_to(struct window *w, const struct brumm_map *a,
		  const struct target *t, struct mapdb_map_args *m)
{
	int err;

	m->target = &t->window->space;
	err = target_range(t, a->target, a->length, &m->to);
	if (err)
		return err;
	if (ranges_overlap(m))
		return -EINVAL;
	err = sponsor_get(a, t, w, &m->sponsor);
	if (err)
		return err;
	if (a->flags & BRUMM_MAP_GRANT)
		err = mapdb_grant(m);
	else
		err = mapdb_map(m);
	group_put(m->sponsor);
	return err;
}

/* A request, and whether who pays is to be told. */
struct map_args {
	struct brumm_map a;
	struct mapdb_payers *payer;
};

struct unmap_args {
	struct brumm_unmap a;
	struct mapdb_payers *payer;
};

static long do_map(struct window *w, void *arg)
{
	const struct map_args *args = arg;
	const struct brumm_map *a = &args->a;
	struct mapdb_map_args m = {
		.source = &w->space,
		.rights = a->rights,
		.flags = a->flags,
		.payer = args->payer,
	};
	struct target t;
	int err;

	if (a->flags & ~MAP_FLAGS)
		return -EOPNOTSUPP;
	if (a->reserved)
		return -EINVAL;
	err = rights_check(a->rights);
	if (err)
		return err;
	err = range_get(a->source, a->length, BRUMM_WINDOW_BYTES, &m.from,
			&m.pages);
	if (err)
		return err;
	err = target_get(&t, w, a->fd);
	if (err)
		return err;
	err = map_to(w, a, &t, &m);
	target_put(&t);
	return err;
}

static int unmap_rights_check(const struct brumm_unmap *a)
{
	if (a->flags & ~UNMAP_FLAGS)
		return -EOPNOTSUPP;
	if (a->rights & ~BRUMM_RIGHTS_ALL)
		return -EOPNOTSUPP;
	if (!(a->flags & BRUMM_UNMAP_RIGHTS))
		return a->rights ? -EINVAL : 0;
	/* Without R nothing is left: that is an unmap of the whole. */
	return !a->rights || (a->rights & BRUMM_RIGHT_R) ? -EINVAL : 0;
}

static long do_unmap(struct window *w, void *arg)
{
	struct mapdb_unmap_result res = {};
	struct unmap_args *args = arg;
	struct brumm_unmap *a = &args->a;
	bool self = a->flags & BRUMM_UNMAP_SELF;
	u32 start, pages;
	int err;

	err = unmap_rights_check(a);
	if (err)
		return err;
	if (a->reserved)
		return -EINVAL;
	err = range_get(a->offset, a->length, BRUMM_WINDOW_BYTES, &start,
			&pages);
	if (err)
		return err;
	if (a->flags & BRUMM_UNMAP_RIGHTS)
		err = mapdb_reduce(&w->space, start, pages, self, a->rights,
				   &res);
	else
		err = mapdb_unmap(&w->space, &w->space, start, pages, self,
				  &res);
	a->nodes = res.nodes;
	a->pages = res.pages;
	if (os_tracing() && args->payer)
		*args->payer = res.payer;
	return err;
}

static long do_query(struct window *w, void *arg)
{
	struct brumm_query *a = arg;
	struct mapdb_info info;
	u32 start, pages;
	int err;

	if (a->flags & ~QUERY_FLAGS)
		return -EOPNOTSUPP;
	if (a->reserved)
		return -EINVAL;
	err = range_get(a->offset, PAGE_SIZE, BRUMM_WINDOW_BYTES, &start,
			&pages);
	if (err)
		return err;
	err = mapdb_query(&w->space, start, a->flags & BRUMM_QUERY_NEXT,
			  a->flags & BRUMM_QUERY_COUNT, &info);
	if (err)
		return err;
	a->offset = (u64)info.start << PAGE_SHIFT;
	a->length = (u64)info.pages << PAGE_SHIFT;
	a->rights = info.rights;
	a->depth = info.depth;
	a->state = (info.root ? BRUMM_NODE_ROOT : 0) |
		   (info.first ? BRUMM_NODE_FIRST : 0);
	a->descendants = info.descendants;
	a->sponsor = info.sponsor;
	return 0;
}

/* Dispatch */

union command_args {
	u32 size;
	struct brumm_info info;
	struct brumm_alloc alloc;
	struct brumm_gate gate;
	struct map_args map;
	struct unmap_args unmap;
	struct brumm_query query;
};

#define COMMAND(_nr, _struct, _last, _write, _out, _do)			\
	[_IOC_NR(_nr)] = {						\
		.cmd = (_nr),						\
		.size = sizeof(struct _struct),				\
		.min_size = offsetofend(struct _struct, _last),		\
		.write = (_write),					\
		.out = (_out),						\
		.run = (_do),						\
	}

/*
 * @min_size: of version 1, the least a caller can know
 * @write: changes the window
 * @out: hands something back
 */
static const struct command {
	unsigned int cmd;
	size_t size;
	size_t min_size;
	bool write;
	bool out;
	long (*run)(struct window *w, void *arg);
} commands[] = {
	COMMAND(BRUMM_IOC_INFO, brumm_info, cgroup, false, true, do_info),
	COMMAND(BRUMM_IOC_ALLOC, brumm_alloc, length, true, false, do_alloc),
	COMMAND(BRUMM_IOC_GATE, brumm_gate, length, true, false, do_gate),
	COMMAND(BRUMM_IOC_MAP, brumm_map, reserved, true, false, do_map),
	COMMAND(BRUMM_IOC_UNMAP, brumm_unmap, pages, true, true, do_unmap),
	COMMAND(BRUMM_IOC_QUERY, brumm_query, sponsor, false, true, do_query),
};

static const struct command *command_get(unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd);

	if (nr >= ARRAY_SIZE(commands))
		return NULL;
	nr = array_index_nospec(nr, ARRAY_SIZE(commands));
	return commands[nr].cmd == cmd ? &commands[nr] : NULL;
}

/* Run a command for somebody who listens. Out of line: off, it costs a jump. */
static noinline long run_told(const struct command *c, struct window *w,
			      union command_args *args)
{
	struct brumm_map *map = &args->map.a;
	struct brumm_unmap *unmap = &args->unmap.a;
	struct mapdb_payers payer = {};
	u64 pages;
	long ret;

	switch (c->cmd) {
	case BRUMM_IOC_MAP:
		pages = map->length >> PAGE_SHIFT;
		args->map.payer = &payer;
		os_begin(map, pages);
		ret = c->run(w, args);
		os_end(map, payer.cgroup, ret ? 0 : payer.nodes,
		       ret ? 0 : pages, 0, ret);
		break;
	case BRUMM_IOC_UNMAP:
		pages = unmap->length >> PAGE_SHIFT;
		args->unmap.payer = &payer;
		if (unmap->flags & BRUMM_UNMAP_RIGHTS) {
			os_begin(reduce, pages);
			ret = c->run(w, args);
			os_end(reduce, payer.cgroup, ret ? 0 : unmap->nodes,
			       ret ? 0 : unmap->pages, 0, ret);
		} else {
			os_begin(unmap, pages);
			ret = c->run(w, args);
			os_end(unmap, payer.cgroup, ret ? 0 : unmap->nodes,
			       ret ? 0 : unmap->pages, 0, ret);
		}
		break;
	case BRUMM_IOC_INFO:
		os_begin(empty, 0);
		os_end(empty, 0, 0, 0, 0, 0);
		fallthrough;
	default:
		ret = c->run(w, args);
	}
	return ret;
}

long window_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct command *c = command_get(cmd);
	void __user *user = (void __user *)arg;
	union command_args args = {};
	long ret;
	u32 size;
	int err;

	if (!c)
		return -ENOTTY;
	if (c->write && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < c->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(&args, c->size, user, size);
	if (err)
		return err;
	/* Another thread may have changed it since: the first one counts. */
	args.size = size;

	/* Before anything is done, see whether the result can be told. */
	size = min_t(size_t, size, c->size);
	if (c->out && copy_to_user(user, &args, size))
		return -EFAULT;
	if (os_tracing())
		ret = run_told(c, file->private_data, &args);
	else
		ret = c->run(file->private_data, &args);
	if (ret < 0 || !c->out)
		return ret;
	/*
	 * The memory may have gone since. What changed something is done all
	 * the same, and says so: a failure means that nothing has changed.
	 */
	if (copy_to_user(user, &args, size) && !c->write)
		return -EFAULT;
	return ret;
}

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "brumm",
	.fops = &window_fops,
	.mode = 0600,
};

int device_init(void)
{
	return misc_register(&device);
}

void device_exit(void)
{
	misc_deregister(&device);
}
