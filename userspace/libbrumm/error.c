// SPDX-License-Identifier: GPL-2.0
/* What the errors mean here, and what to do. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "internal.h"

static const struct {
	int err;
	const char *text;
} texts[] = {
	{ EDQUOT, "over the clean-up budget of the cgroup or of one above it; "
		  "raise brumm.max (see brumm show) or give memory back" },
	{ EBUSY, "locked, or in use; for a locked budget write 0 to brumm.lock, "
		 "for a cgroup end its processes first" },
	{ EPERM, "not permitted: the mapping lacks the right to derive, or the "
		 "cgroup is not the caller's to charge; ask the owner for the D "
		 "right, make the gate with BRUMM_GATE_SPONSOR, and open the "
		 "window in the cgroup that shall pay" },
	{ EACCES, "permission denied, or more rights asked for than the source "
		  "has; ask for fewer, or run as who may" },
	{ ENOENT, "nothing there: not mapped (any more), no such cgroup or knob, "
		  "or the module is not loaded; see brumm info" },
	{ ENXIO, "no such device; load the module: modprobe brumm" },
	{ EEXIST, "something is there already; unmap it, or map with "
		  "BRUMM_MAP_REPLACE" },
	{ ELOOP, "derived too often; map from a mapping nearer to the root" },
	{ ESTALE, "the window behind the gate is gone; open a new one" },
	{ EFAULT, "the memory is not there (any more): it was revoked, or never "
		  "mapped; ask its owner" },
	{ EOVERFLOW, "outside of the window or gate; use a smaller offset or "
		     "length" },
	{ ENOTTY, "not a window, or a module that does not know the command; "
		  "see brumm info" },
	{ EOPNOTSUPP, "not known to this module; load one that is as new as the "
		      "library" },
	{ ENOMEM, "no memory left, here or in the service; free some, or raise "
		  "memory.max or the service's pool" },
	{ ENOSPC, "beyond a limit of the memory service; free something, or ask "
		  "its operator" },
	{ EUSERS, "the memory service has too many clients; try later, or raise "
		  "its limit" },
	{ ECONNREFUSED, "nobody listens there; start brumm serve" },
	{ EPIPE, "the memory service went away; connect again" },
	{ EPROTO, "the other side does not speak this protocol; use the same "
		  "version on both sides" },
	{ EADDRINUSE, "a service listens there already; stop it, or use another "
		      "socket" },
	{ EXDEV, "the cgroup is outside of what can be seen from here; run in "
		 "the initial cgroup namespace" },
	{ ERANGE, "the number is too large" },
};

PUBLIC const char *brumm_strerror(int err)
{
	const char *text;
	size_t i;

	if (err < 0 && err != INT32_MIN)
		err = -err;
	for (i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].err == err)
			return texts[i].text;
	text = strerrordesc_np(err);
	return text ? text : "unknown error";
}
