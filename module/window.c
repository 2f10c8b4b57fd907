// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: file, VMA and frames.
 *
 * Contract: a page-table entry of a window exists only where a node says so.
 * Entries are made in one place, the fault handler, under the rwsem that a
 * revoke takes to refuse faults, and made there to the end: nothing is handed
 * to the core to be mapped later. They are removed by mapdb_zap() alone, by way
 * of the window's own address_space; so a VMA may move, or go, at any time.
 *
 * The VMA is VM_PFNMAP | VM_IO: nobody can pin a page of it, and the core
 * flushes the TLB before an unmapped VMA is out of reach of mapdb_zap(). Its
 * protection is fixed at mmap(): a changed one could make an entry writable
 * behind the back of a revoke of rights.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "compat/mm.h"
#include "group.h"
#include "window.h"

#define WINDOW_FS_MAGIC		0x6272756d	/* "brum" */

/* Frames */

/**
 * struct frames_mem - the pages of one ALLOC
 * @nr: how many
 * @pages: each NULL once it is freed
 */
struct frames_mem {
	u32 nr;
	struct page *pages[];
};

static void frames_mem_put(struct frames_mem *mem, u32 frame, u32 nr)
{
	u32 i;

	for (i = frame; i < frame + nr; i++) {
		/* Not __free_page(): KVM may have taken a reference. */
		if (mem->pages[i])
			put_page(mem->pages[i]);
		mem->pages[i] = NULL;
		if (!(i & 1023))
			cond_resched();
	}
}

void frames_mem_free(struct frames_mem *mem)
{
	frames_mem_put(mem, 0, mem->nr);
	kvfree(mem);
}

/*
 * RETRY_MAYFAIL: over a memory limit, say so rather than kill somebody, as
 * with any allocation that its caller can do without.
 */
struct frames_mem *frames_mem_alloc(u32 nr)
{
	const gfp_t gfp = GFP_HIGHUSER | __GFP_ZERO | __GFP_ACCOUNT |
			  __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct frames_mem *mem;
	u32 i;

	mem = kvzalloc(struct_size(mem, pages, nr),
		       GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem->nr = nr;
	for (i = 0; i < nr; i++) {
		mem->pages[i] = alloc_page(gfp);
		if (!mem->pages[i] || fatal_signal_pending(current)) {
			bool nomem = !mem->pages[i];

			frames_mem_free(mem);
			return ERR_PTR(nomem ? -ENOMEM : -EINTR);
		}
		if (!(i & 1023))
			cond_resched();
	}
	return mem;
}

/* What the mapping database asks for */

void mapdb_zap(struct mapdb_space *s, u32 start, u32 pages)
{
	struct window *w = container_of(s, struct window, space);

	unmap_mapping_pages(w->inode->i_mapping, start, pages, false);
}

void mapdb_free_frames(void *priv, u32 frame, u32 pages)
{
	frames_mem_put(priv, frame, pages);
}

void mapdb_free_priv(void *priv)
{
	if (priv)
		frames_mem_free(priv);
}

void mapdb_space_get(struct mapdb_space *s)
{
	refcount_inc(&container_of(s, struct window, space)->refs);
}

void mapdb_space_put(struct mapdb_space *s)
{
	window_put(container_of(s, struct window, space));
}

/* Faults */

static int page_tables_only(pte_t *pte, unsigned long addr, void *data)
{
	return 0;
}

/* Make the page tables, so that nothing is allocated under the rwsem. */
static int make_page_tables(struct vm_area_struct *vma, unsigned long addr)
{
	return apply_to_page_range(vma->vm_mm, addr & PAGE_MASK, PAGE_SIZE,
				   page_tables_only, NULL);
}

/*
 * May a node be shown in this VMA at all? A PROT_EXEC one shows only what may
 * be executed: an entry without the right to execute would fault for ever.
 */
static bool node_fits(const struct mapdb_node *n,
		      const struct vm_area_struct *vma)
{
	return !(vma->vm_flags & VM_EXEC) || (n->rights & BRUMM_RIGHT_X);
}

static struct page *node_page(const struct mapdb_node *n, u32 page)
{
	const struct frames_mem *mem = mapdb_node_frames(n)->priv;

	return mem->pages[n->frame + (page - n->start)];
}

/* The node that serves @page to @vma, or NULL. The space is locked. */
static struct mapdb_node *serving(struct mapdb_space *s,
				  const struct vm_area_struct *vma, pgoff_t page)
{
	struct mapdb_node *n;

	if (page >= WINDOW_PAGES)
		return NULL;
	n = mapdb_find(s, page);
	if (!n || !mapdb_node_serves(n) || !node_fits(n, vma))
		return NULL;
	return n;
}

/* Make the entry. *@payer: id of who pays for the node, 0: nobody, no node. */
static vm_fault_t fault_serve(struct vm_fault *vmf, u64 *payer)
{
	struct vm_area_struct *vma = vmf->vma;
	struct window *w = vma->vm_file->private_data;
	unsigned long flags = vma->vm_flags;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct mapdb_node *n;

	if (make_page_tables(vma, vmf->address))
		return VM_FAULT_OOM;

	down_read(&w->space.lock);
	n = serving(&w->space, vma, vmf->pgoff);
	if (!n)
		goto unlock;
	if (!(n->rights & BRUMM_RIGHT_W)) {
		if (vmf->flags & FAULT_FLAG_WRITE)
			goto unlock;
		flags &= ~VM_WRITE;
	}
	ret = vmf_insert_pfn_prot(vma, vmf->address,
				  page_to_pfn(node_page(n, vmf->pgoff)),
				  vm_get_page_prot(flags));
	if (os_tracing() && mapdb_payer(n))
		*payer = mapdb_payer(n)->id;
unlock:
	up_read(&w->space.lock);
	return ret;
}

static noinline vm_fault_t fault_told(struct vm_fault *vmf)
{
	vm_fault_t ret;
	u64 payer = 0;
	bool made;

	os_begin(fault, 1);
	ret = fault_serve(vmf, &payer);
	made = ret == VM_FAULT_NOPAGE;
	os_end(fault, payer, made, made, 0, made ? 0 : -EFAULT);
	return ret;
}

static vm_fault_t window_fault(struct vm_fault *vmf)
{
	u64 payer;

	if (os_tracing())
		return fault_told(vmf);
	return fault_serve(vmf, &payer);
}

/*
 * A write met an entry that is not writable. Such an entry was made for a node
 * without W, and stays as it is; so it is not this one that is wanted, unless
 * another node has taken its place in between: then look again. Never let the
 * core make it writable, since that happens after the rwsem is dropped.
 */
static vm_fault_t window_pfn_mkwrite(struct vm_fault *vmf)
{
	struct window *w = vmf->vma->vm_file->private_data;
	struct mapdb_node *n;
	bool writable;

	down_read(&w->space.lock);
	n = serving(&w->space, vmf->vma, vmf->pgoff);
	writable = n && (n->rights & BRUMM_RIGHT_W);
	up_read(&w->space.lock);
	return writable ? VM_FAULT_NOPAGE : VM_FAULT_SIGBUS;
}

static void copy_page_part(struct page *page, unsigned int offset, void *buf,
			   int len, bool write)
{
	char *at = kmap_local_page(page);

	if (write)
		memcpy(at + offset, buf, len);
	else
		memcpy(buf, at + offset, len);
	kunmap_local(at);
}

/* For ptrace and /proc/PID/mem: at most to the end of the page. */
static int window_access(struct vm_area_struct *vma, unsigned long addr,
			 void *buf, int len, int write)
{
	pgoff_t page = vma->vm_pgoff + ((addr - vma->vm_start) >> PAGE_SHIFT);
	struct window *w = vma->vm_file->private_data;
	u32 need = write ? BRUMM_RIGHT_W : BRUMM_RIGHT_R;
	unsigned int offset = offset_in_page(addr);
	struct mapdb_node *n;
	int ret = -EACCES;

	if (write && !(vma->vm_flags & VM_WRITE))
		return ret;
	len = min_t(int, len, PAGE_SIZE - offset);
	down_read(&w->space.lock);
	n = serving(&w->space, vma, page);
	if (n && (n->rights & need)) {
		copy_page_part(node_page(n, page), offset, buf, len, write);
		ret = len;
	}
	up_read(&w->space.lock);
	return ret;
}

/* The VMA */

static void window_vma_open(struct vm_area_struct *vma)
{
	struct window *w = vma->vm_file->private_data;

	atomic_inc(&w->vmas);
}

static void window_vma_close(struct vm_area_struct *vma)
{
	struct window *w = vma->vm_file->private_data;

	atomic_dec(&w->vmas);
}

static int window_vma_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static int window_vma_mprotect(struct vm_area_struct *vma, unsigned long start,
			       unsigned long end, unsigned long newflags)
{
	return newflags == vma->vm_flags ? 0 : -EACCES;
}

static const struct vm_operations_struct window_vm_ops = {
	.open = window_vma_open,
	.close = window_vma_close,
	.may_split = window_vma_may_split,
	.mprotect = window_vma_mprotect,
	.fault = window_fault,
	.pfn_mkwrite = window_pfn_mkwrite,
	.access = window_access,
};

static int window_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct window *w = file->private_data;
	u64 end = (u64)vma->vm_pgoff + vma_pages(vma);

	/* VM_SHARED is cleared in shared maps of files not open for writing. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (end > WINDOW_PAGES)
		return -EOVERFLOW;
	if (atomic_cmpxchg(&w->vmas, 0, 1))
		return -EBUSY;
	compat_vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTCOPY |
				 VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &window_vm_ops;
	return 0;
}

/* The file */

static struct vfsmount *window_mnt;
static int window_mnt_users;

static int window_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, WINDOW_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type window_fs = {
	.name = "brumm",
	.owner = THIS_MODULE,
	.init_fs_context = window_fs_init,
	.kill_sb = kill_anon_super,
};

static struct inode *window_inode(void)
{
	struct inode *inode;
	int err;

	err = simple_pin_fs(&window_fs, &window_mnt, &window_mnt_users);
	if (err)
		return ERR_PTR(err);
	inode = alloc_anon_inode(window_mnt->mnt_sb);
	if (IS_ERR(inode))
		simple_release_fs(&window_mnt, &window_mnt_users);
	return inode;
}

static void window_inode_put(struct inode *inode)
{
	iput(inode);
	simple_release_fs(&window_mnt, &window_mnt_users);
}

void window_put(struct window *w)
{
	if (refcount_dec_and_test(&w->refs))
		kfree(w);
}

struct window *window_of_file(struct file *file)
{
	return file->f_op == &window_fops ? file->private_data : NULL;
}

static int window_open(struct inode *inode, struct file *file)
{
	struct mapdb_sponsor *group;
	struct window *w;
	int err;

	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w)
		return -ENOMEM;
	group = group_get_current();
	if (IS_ERR(group)) {
		err = PTR_ERR(group);
		goto free;
	}
	w->inode = window_inode();
	if (IS_ERR(w->inode)) {
		err = PTR_ERR(w->inode);
		goto put_group;
	}
	mapdb_space_init(&w->space, group);
	refcount_set(&w->refs, 1);
	init_rwsem(&w->life);
	window_events_init(&w->events);

	file->private_data = w;
	file->f_mapping = w->inode->i_mapping;
	return nonseekable_open(inode, file);

put_group:
	group_put(group);
free:
	kfree(w);
	return err;
}

/* No descriptor and no VMA is left; gates may be. */
static int window_release(struct inode *inode, struct file *file)
{
	struct window *w = file->private_data;

	down_write(&w->life);
	w->dead = true;
	up_write(&w->life);

	mapdb_release(&w->space);
	mapdb_space_exit(&w->space);
	group_put(w->space.group);
	window_inode_put(w->inode);
	window_put(w);
	return 0;
}

static ssize_t window_read(struct file *file, char __user *buf, size_t len,
			   loff_t *pos)
{
	struct window *w = file->private_data;

	return window_events_read(&w->events, file, buf, len);
}

static __poll_t window_poll(struct file *file, poll_table *wait)
{
	struct window *w = file->private_data;

	return window_events_poll(&w->events, file, wait);
}

const struct file_operations window_fops = {
	.owner = THIS_MODULE,
	.open = window_open,
	.release = window_release,
	.read = window_read,
	.poll = window_poll,
	.mmap = window_mmap,
	.unlocked_ioctl = window_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};
