// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a window: what was revoked in it.
 *
 * Contract: no revocation goes unnoticed. Neighbouring ones become one event;
 * when the ring is full, the newest event grows to cover what comes and says so
 * (BRUMM_EVENT_MERGED). Adding never sleeps, never fails and allocates nothing,
 * since revokes do it with their locks held.
 */
#include <linux/uaccess.h>

#include "window.h"

void window_events_init(struct window_events *ev)
{
	spin_lock_init(&ev->lock);
	mutex_init(&ev->reader);
	init_waitqueue_head(&ev->wait);
}

static struct brumm_event *event_at(struct window_events *ev, unsigned int i)
{
	return &ev->ring[(ev->head + i) % WINDOW_EVENTS];
}

/* Do both tell the same of ranges that touch? Then @to takes @e in. */
static bool event_append(struct brumm_event *to, const struct brumm_event *e)
{
	if (to->flags != e->flags || to->rights != e->rights)
		return false;
	if (to->offset + to->length == e->offset) {
		to->length += e->length;
		return true;
	}
	if (e->offset + e->length == to->offset) {
		to->offset = e->offset;
		to->length += e->length;
		return true;
	}
	return false;
}

/* Make @to cover @e as well. */
static void event_merge(struct brumm_event *to, const struct brumm_event *e)
{
	u64 end = max(to->offset + to->length, e->offset + e->length);

	to->offset = min(to->offset, e->offset);
	to->length = end - to->offset;
	to->rights |= e->rights;
	/* Whole mappings may be among them: say no less. */
	to->flags = (to->flags & e->flags) | BRUMM_EVENT_MERGED;
}

static void event_add(struct window_events *ev, const struct brumm_event *e)
{
	struct brumm_event *last = event_at(ev, ev->nr - 1);

	lockdep_assert_held(&ev->lock);
	if (ev->nr && event_append(last, e))
		return;
	if (ev->nr == WINDOW_EVENTS)
		event_merge(last, e);
	else
		*event_at(ev, ev->nr++) = *e;
}

void mapdb_event(struct mapdb_space *s, u32 start, u32 pages, u32 rights,
		 bool all)
{
	struct window *w = container_of(s, struct window, space);
	struct window_events *ev = &w->events;
	struct brumm_event e = {
		.offset = (u64)start << PAGE_SHIFT,
		.length = (u64)pages << PAGE_SHIFT,
		.rights = rights,
		.flags = all ? 0 : BRUMM_EVENT_RIGHTS,
	};

	spin_lock(&ev->lock);
	event_add(ev, &e);
	spin_unlock(&ev->lock);
	if (wq_has_sleeper(&ev->wait))
		wake_up_interruptible(&ev->wait);
}

static bool event_take(struct window_events *ev, struct brumm_event *e)
{
	bool some;

	spin_lock(&ev->lock);
	some = ev->nr;
	if (some) {
		*e = *event_at(ev, 0);
		ev->head = (ev->head + 1) % WINDOW_EVENTS;
		ev->nr--;
	}
	spin_unlock(&ev->lock);
	return some;
}

/* Back to where it was, or, if the ring filled up, into the oldest. */
static void event_untake(struct window_events *ev, const struct brumm_event *e)
{
	spin_lock(&ev->lock);
	if (ev->nr == WINDOW_EVENTS) {
		event_merge(event_at(ev, 0), e);
	} else {
		ev->head = (ev->head + WINDOW_EVENTS - 1) % WINDOW_EVENTS;
		ev->nr++;
		*event_at(ev, 0) = *e;
	}
	spin_unlock(&ev->lock);
	/* Somebody else may have seen none meanwhile. */
	wake_up_interruptible(&ev->wait);
}

/* Copy out as many as fit. Return: bytes, 0: there are none. */
static ssize_t events_copy(struct window_events *ev, char __user *buf,
			   size_t len)
{
	struct brumm_event e;
	ssize_t done = 0;

	while (len - done >= sizeof(e) && event_take(ev, &e)) {
		if (copy_to_user(buf + done, &e, sizeof(e))) {
			event_untake(ev, &e);
			return done ?: -EFAULT;
		}
		done += sizeof(e);
	}
	return done;
}

ssize_t window_events_read(struct window_events *ev, struct file *file,
			   char __user *buf, size_t len)
{
	ssize_t ret;

	if (len < sizeof(struct brumm_event))
		return -EINVAL;
	do {
		if (mutex_lock_interruptible(&ev->reader))
			return -ERESTARTSYS;
		ret = events_copy(ev, buf, len);
		mutex_unlock(&ev->reader);
		if (ret)
			return ret;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(ev->wait, READ_ONCE(ev->nr));
	} while (!ret);
	return ret;
}

__poll_t window_events_poll(struct window_events *ev, struct file *file,
			    poll_table *wait)
{
	poll_wait(file, &ev->wait, wait);
	return READ_ONCE(ev->nr) ? EPOLLIN | EPOLLRDNORM : 0;
}
