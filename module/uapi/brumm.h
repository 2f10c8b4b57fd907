/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * brumm: memory that can be shared and taken back.
 *
 * The one header that kernel and user space share. open("/dev/brumm") makes a
 * window: an offset space of pages that mmap() shows and that ioctls fill.
 *
 * Rules of every command
 *   - Offsets and lengths are in bytes and multiples of the page size; a
 *     length is at least one page, and offset + length stays within
 *     %BRUMM_WINDOW_BYTES.
 *   - The first member, size, is sizeof() of the structure as the caller knows
 *     it. A shorter one of an older caller is extended with zeroes; a longer
 *     one is accepted while all that the kernel does not know is zero.
 *   - Structures have one layout for 32-bit and 64-bit callers.
 *   - A command that fails has changed nothing, unless it says otherwise.
 *
 * Errors that every command can return
 *   ENOTTY      no such command on this kind of descriptor
 *   EINVAL      understood, but wrong: unaligned, empty, a size too small
 *   EOPNOTSUPP  a flag or right that this kernel does not know
 *   E2BIG       non-zero bytes behind what this kernel knows
 *   EOVERFLOW   offset + length leaves the offset space
 *   EBADF       all but INFO and QUERY: the window is not open for writing
 *   EFAULT      the structure cannot be read or written
 */
#ifndef _UAPI_BRUMM_H
#define _UAPI_BRUMM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** BRUMM_DEVICE - path of the device node. */
#define BRUMM_DEVICE		"/dev/brumm"

/** BRUMM_VERSION - version of this interface, in brumm_info.version. */
#define BRUMM_VERSION		1

/** BRUMM_WINDOW_BYTES - size of a window's offset space, in bytes. */
#define BRUMM_WINDOW_BYTES	(1ULL << 43)

/** BRUMM_MAX_DEPTH - greatest depth in the derivation tree; deeper: ELOOP. */
#define BRUMM_MAX_DEPTH		64

/*
 * Rights of a mapping. A derived mapping has at most its parent's.
 * W, X and D need R. A window that is mmapped PROT_EXEC shows only what has X.
 */
#define BRUMM_RIGHT_R		(1U << 0)	/* may be read */
#define BRUMM_RIGHT_W		(1U << 1)	/* may be written */
#define BRUMM_RIGHT_X		(1U << 2)	/* may be executed */
#define BRUMM_RIGHT_D		(1U << 3)	/* may be derived from */
#define BRUMM_RIGHTS_ALL	(BRUMM_RIGHT_R | BRUMM_RIGHT_W | \
				 BRUMM_RIGHT_X | BRUMM_RIGHT_D)

/**
 * struct brumm_info - what this module can do (BRUMM_IOC_INFO)
 * @size: in: sizeof(struct brumm_info)
 * @version: out: %BRUMM_VERSION of the module
 * @page_size: out: bytes of a page
 * @max_depth: out: %BRUMM_MAX_DEPTH of the module
 * @batch: out: greatest number of tree nodes handled under one lock
 * @events: out: events a window keeps unread before they are merged
 * @map_flags: out: flags that BRUMM_IOC_MAP knows
 * @unmap_flags: out: flags that BRUMM_IOC_UNMAP knows
 * @rights: out: rights that are known
 * @features: out: %BRUMM_FEATURE_* bits
 * @cgroup: out: id of the cgroup the window belongs to, 0: the root, which
 *	sponsors nothing
 */
struct brumm_info {
	__u32 size;
	__u32 version;
	__u32 page_size;
	__u32 max_depth;
	__u32 batch;
	__u32 events;
	__u32 map_flags;
	__u32 unmap_flags;
	__u32 rights;
	__u32 features;
	__u64 cgroup;
};

#define BRUMM_FEATURE_CGROUP	(1U << 0)	/* brumm.* files are there */

/**
 * struct brumm_alloc - fresh frames (BRUMM_IOC_ALLOC)
 * @size: sizeof(struct brumm_alloc)
 * @flags: 0
 * @offset: where in the window, bytes
 * @length: how much, bytes
 *
 * Puts zeroed frames with all rights at the range: the root of a derivation
 * tree. The memory is charged to the caller's memory cgroup, the clean-up to
 * the window's.
 *
 * Errors: EEXIST something stands in the range; ENOMEM; EDQUOT over the
 * budget; EBUSY the budget is locked; EINTR killed meanwhile.
 */
struct brumm_alloc {
	__u32 size;
	__u32 flags;
	__u64 offset;
	__u64 length;
};

/** BRUMM_GATE_SPONSOR - who maps through the gate may name the cgroup of the
 * gate's window, or one below it, as sponsor.
 */
#define BRUMM_GATE_SPONSOR	(1U << 0)

/**
 * struct brumm_gate - a descriptor to map through (BRUMM_IOC_GATE)
 * @size: sizeof(struct brumm_gate)
 * @flags: %BRUMM_GATE_*
 * @offset: start of the range of this window that the gate opens, bytes
 * @length: its length, bytes
 *
 * Returns a new descriptor (close-on-exec). It can be the target of
 * BRUMM_IOC_MAP and nothing else, and is dead once the window is gone.
 *
 * Errors: EMFILE, ENFILE, ENOMEM.
 */
struct brumm_gate {
	__u32 size;
	__u32 flags;
	__u64 offset;
	__u64 length;
};

/** BRUMM_MAP_GRANT - move: the mapping leaves this window; what was derived
 * from it stays derived from it in its new place.
 */
#define BRUMM_MAP_GRANT		(1U << 0)
/** BRUMM_MAP_REPLACE - revoke what stands in the target range beforehand.
 * The new one is charged before the old one goes. When the source is revoked
 * meanwhile, or was derived from what is replaced (ENOENT), the target range is
 * left empty; so it may be when another fills it at the same time.
 */
#define BRUMM_MAP_REPLACE	(1U << 1)
/** BRUMM_MAP_SPONSOR - @sponsor names the cgroup to charge. */
#define BRUMM_MAP_SPONSOR	(1U << 2)

/**
 * struct brumm_map - derive (BRUMM_IOC_MAP)
 * @size: sizeof(struct brumm_map)
 * @flags: %BRUMM_MAP_*
 * @source: start of the range of this window, bytes
 * @length: its length, bytes; mappings must cover it without a gap
 * @target: where in the target window, bytes; for a gate from the start of
 *	its range
 * @fd: the target: a window, or a gate; -1 is this window itself
 * @rights: rights of the new mapping, no more than the source's; R is needed
 * @sponsor: with %BRUMM_MAP_SPONSOR a descriptor of a cgroup v2 directory;
 *	otherwise 0. It needs CAP_SYS_RESOURCE, or that the target is a gate
 *	with %BRUMM_GATE_SPONSOR or the caller's own window and the cgroup is
 *	that window's or one below it (not the root's).
 * @reserved: 0
 *
 * Who pays: @sponsor; or else the sponsor of the source; or else, where the
 * source has none, the cgroup of the target window.
 *
 * All or nothing. Waits while the source range is being revoked by its
 * holder.
 *
 * Errors: ENOENT the source has a gap, or was revoked meanwhile; EACCES more
 * rights than the source has; EPERM the source has no D, or the sponsor is
 * not the caller's to name; EEXIST something stands in the target; ELOOP too
 * deep; EDQUOT over a budget; EBUSY a budget is locked; EBADF @fd or @sponsor
 * is not open; EINVAL @fd is neither window nor gate, or source and target
 * overlap, or a grant takes rights from what something was derived from (use
 * %BRUMM_UNMAP_RIGHTS before) or gives that another sponsor; EOVERFLOW the
 * target leaves the gate; ESTALE the gate's window is gone; ENOMEM; EINTR
 * killed while waiting.
 */
struct brumm_map {
	__u32 size;
	__u32 flags;
	__u64 source;
	__u64 length;
	__u64 target;
	__s32 fd;
	__u32 rights;
	__s32 sponsor;
	__u32 reserved;
};

/** BRUMM_UNMAP_SELF - revoke the range itself too. */
#define BRUMM_UNMAP_SELF	(1U << 0)
/** BRUMM_UNMAP_RIGHTS - take only @rights away; the mappings stay. */
#define BRUMM_UNMAP_RIGHTS	(1U << 1)

/**
 * struct brumm_unmap - revoke (BRUMM_IOC_UNMAP)
 * @size: sizeof(struct brumm_unmap)
 * @flags: %BRUMM_UNMAP_*
 * @offset: start of the range of this window, bytes
 * @length: its length, bytes; gaps are fine
 * @rights: with %BRUMM_UNMAP_RIGHTS the rights to take away, of W, X and D;
 *	otherwise 0
 * @reserved: 0
 * @nodes: out: tree nodes removed or reduced
 * @pages: out: pages of them; as it was if the structure became unwritable
 *	during the call, which does not make a revoke fail
 *
 * When it returns nobody can reach the range's frames through a mapping that
 * was derived from it: no page-table entry, no TLB entry, no fault in flight,
 * no pin. Memory of frames whose root goes is freed. Cannot be interrupted.
 *
 * Errors: EDQUOT, EBUSY: a hole is to be made in a mapping of the same
 * sponsor, and its budget does not allow the node that this adds; ENOMEM only
 * with %BRUMM_UNMAP_RIGHTS.
 */
struct brumm_unmap {
	__u32 size;
	__u32 flags;
	__u64 offset;
	__u64 length;
	__u32 rights;
	__u32 reserved;
	__u64 nodes;
	__u64 pages;
};

/** BRUMM_QUERY_NEXT - the first mapping at or behind @offset. */
#define BRUMM_QUERY_NEXT	(1U << 0)
/** BRUMM_QUERY_COUNT - count descendants (time grows with their number). */
#define BRUMM_QUERY_COUNT	(1U << 1)

#define BRUMM_NODE_ROOT		(1U << 0)	/* of BRUMM_IOC_ALLOC */
#define BRUMM_NODE_FIRST	(1U << 1)	/* first of its sponsor */

/**
 * struct brumm_query - what stands at an offset (BRUMM_IOC_QUERY)
 * @size: sizeof(struct brumm_query)
 * @flags: %BRUMM_QUERY_*
 * @offset: in: bytes; out: start of the mapping
 * @length: out: its length, bytes
 * @rights: out: %BRUMM_RIGHT_*
 * @depth: out: 0 for a root
 * @state: out: %BRUMM_NODE_*
 * @reserved: 0
 * @descendants: out: mappings derived from it, directly or not; 0 without
 *	%BRUMM_QUERY_COUNT
 * @sponsor: out: id of the cgroup that pays, 0: none
 *
 * Errors: ENOENT nothing there.
 */
struct brumm_query {
	__u32 size;
	__u32 flags;
	__u64 offset;
	__u64 length;
	__u32 rights;
	__u32 depth;
	__u32 state;
	__u32 reserved;
	__u64 descendants;
	__u64 sponsor;
};

/** BRUMM_EVENT_RIGHTS - only @rights went; otherwise the whole mapping. */
#define BRUMM_EVENT_RIGHTS	(1U << 0)
/** BRUMM_EVENT_MERGED - more happened than could be kept: something in this
 * range was revoked, perhaps not all of it. Ask BRUMM_IOC_QUERY.
 */
#define BRUMM_EVENT_MERGED	(1U << 1)

/**
 * struct brumm_event - a revocation in this window, by read()
 * @offset: start, bytes
 * @length: bytes
 * @rights: rights that went
 * @flags: %BRUMM_EVENT_*
 *
 * poll() says POLLIN while there are some. read() takes whole events; EINVAL
 * if the buffer holds none, EAGAIN with O_NONBLOCK and none there. What a
 * window's holder revokes himself is no event.
 */
struct brumm_event {
	__u64 offset;
	__u64 length;
	__u32 rights;
	__u32 flags;
};

/* The size is in the structure, not in the command: both can grow. */
#define BRUMM_IOC_TYPE		0xb3
#define BRUMM_IOC_INFO		_IO(BRUMM_IOC_TYPE, 0)
#define BRUMM_IOC_ALLOC		_IO(BRUMM_IOC_TYPE, 1)
#define BRUMM_IOC_GATE		_IO(BRUMM_IOC_TYPE, 2)
#define BRUMM_IOC_MAP		_IO(BRUMM_IOC_TYPE, 3)
#define BRUMM_IOC_UNMAP		_IO(BRUMM_IOC_TYPE, 4)
#define BRUMM_IOC_QUERY		_IO(BRUMM_IOC_TYPE, 5)

#endif /* _UAPI_BRUMM_H */
