/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Windows: an open /dev/brumm, its offset space, its one VMA and its events.
 */
#ifndef BRUMM_WINDOW_H
#define BRUMM_WINDOW_H

#include <linux/fs.h>
#include <linux/poll.h>

#include "mapdb.h"

#define WINDOW_PAGES		((u32)(BRUMM_WINDOW_BYTES >> PAGE_SHIFT))

/* Revocations that are kept apart until they are read. */
#define WINDOW_EVENTS		64

/**
 * struct window_events - revocations not yet read
 * @lock: protects the ring
 * @reader: one read() at a time
 * @wait: readers and pollers
 * @head: oldest
 * @nr: how many
 * @ring: the events
 */
struct window_events {
	spinlock_t lock;	/* the ring */
	struct mutex reader;	/* one read() at a time */
	wait_queue_head_t wait;
	unsigned int head;
	unsigned int nr;
	struct brumm_event ring[WINDOW_EVENTS];
};

/**
 * struct window - an open /dev/brumm
 * @space: what is mapped where
 * @inode: own inode, for an address_space of its own: what is zapped here
 *	concerns nobody else
 * @vmas: VMAs that show the window; one, or two while it is being moved
 * @refs: the open file, gates, and revokes that touch the space
 * @life: held for reading by who maps through a gate, so that the window is
 *	not released meanwhile; outermost of all locks
 * @dead: released; protected by @life
 * @events: revocations
 */
struct window {
	struct mapdb_space space;
	struct inode *inode;
	atomic_t vmas;
	refcount_t refs;
	struct rw_semaphore life;
	bool dead;
	struct window_events events;
};

/* window.c */
extern const struct file_operations window_fops;
struct window *window_of_file(struct file *file);
void window_put(struct window *w);

/* Fresh frames for mapdb_alloc(); -ENOMEM, -EINTR. */
struct frames_mem *frames_mem_alloc(u32 nr);
void frames_mem_free(struct frames_mem *mem);

/* events.c */
void window_events_init(struct window_events *ev);
ssize_t window_events_read(struct window_events *ev, struct file *file,
			   char __user *buf, size_t len);
__poll_t window_events_poll(struct window_events *ev, struct file *file,
			    poll_table *wait);

/* device.c */
long window_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int device_init(void);
void device_exit(void);

#endif /* BRUMM_WINDOW_H */
