/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libbrumm: memory that can be shared and taken back, and budgets of what
 * taking it back may cost.
 *
 * Conventions of the whole library
 *   - Functions return 0 (or a descriptor, or a count, where it says so), or a
 *     negative errno value; errno itself is not part of the interface.
 *     brumm_strerror() says what the usual ones mean and what to do.
 *   - Offsets and lengths are in bytes and multiples of the page size; times
 *     are in nanoseconds, in an uint64_t, %BRUMM_NO_LIMIT for "max".
 *   - Descriptors that are returned are close-on-exec and the caller's; they
 *     are closed with close(2). Descriptors passed in stay the caller's.
 *   - Functions are thread-safe unless they say otherwise; one struct
 *     brumm_client, brumm_control or brumm_server is for one thread at a time.
 *
 * The commands of windows, their limits and all their errors are described in
 * <brumm/uapi.h>, which this header includes.
 */
#ifndef BRUMM_H
#define BRUMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <brumm/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** BRUMM_NO_LIMIT - the time that the knobs call "max". */
#define BRUMM_NO_LIMIT	UINT64_MAX

/* ---- errors and times --------------------------------------------------- */

/**
 * brumm_strerror() - what an error of this library means, and the remedy
 * @err: a negative (or positive) errno value
 *
 * Returns a constant string, "reason; remedy" for the usual ones. Never NULL.
 */
const char *brumm_strerror(int err);

/**
 * brumm_parse_time() - read a time as the brumm.* files do
 * @text: decimal digits, perhaps a fraction, perhaps one of the suffixes ns,
 *	us, ms and s, with white space around it; without a suffix they are
 *	microseconds. Or "max".
 * @ns: out: nanoseconds, %BRUMM_NO_LIMIT for max
 *
 * Returns 0; -EINVAL for anything else (signs, garbage behind the number,
 * fractions of a nanosecond); -ERANGE if it does not fit.
 */
int brumm_parse_time(const char *text, uint64_t *ns);

/**
 * brumm_format_time() - for people: "max", "0", "15 ns", "1.25 ms", "12.0 s"
 * @ns: nanoseconds
 * @buf: where to; always terminated
 * @size: its size, 16 is enough
 *
 * Returns @buf. Rounded to three digits; for figures print the nanoseconds.
 */
char *brumm_format_time(uint64_t ns, char *buf, size_t size);

/**
 * brumm_parse_size() - read a size in bytes: digits and perhaps K, M, G or T
 * @text: powers of 1024; white space around it is skipped
 * @bytes: out
 *
 * Returns 0, -EINVAL or -ERANGE.
 */
int brumm_parse_size(const char *text, uint64_t *bytes);

/* ---- windows ------------------------------------------------------------ */

/**
 * brumm_open() - make a window
 * @flags: 0, or O_NONBLOCK for brumm_events()
 *
 * The window belongs to the cgroup of the caller. Returns its descriptor;
 * -ENOENT or -ENXIO: the module is not loaded; -EACCES: no permission on
 * %BRUMM_DEVICE; -EINVAL: another flag.
 */
int brumm_open(int flags);

/**
 * brumm_info() - what this module can do, and whose the window is
 * @window: descriptor of a window
 * @info: out
 */
int brumm_info(int window, struct brumm_info *info);

/**
 * brumm_mmap() - show the first @length bytes of a window in the address space
 * @window: descriptor of a window; it has one such view at most
 * @length: bytes
 * @prot: PROT_READ and perhaps PROT_WRITE, PROT_EXEC
 * @addr: out: where
 *
 * Nothing need be mapped there yet. An access where nothing is mapped, or
 * where it has been revoked, is SIGBUS: see brumm_read(). A child of fork()
 * does not inherit the view.
 */
int brumm_mmap(int window, uint64_t length, int prot, void **addr);

/** brumm_munmap() - end a view as a whole; the window's mappings stay. */
int brumm_munmap(void *addr, uint64_t length);

/** brumm_alloc() - put fresh zeroed frames at a range, with all rights. */
int brumm_alloc(int window, uint64_t offset, uint64_t length);

/**
 * brumm_gate() - make a descriptor that others can map through
 * @window: the window that it opens
 * @offset: start of the range that it opens
 * @length: its length
 * @flags: 0 or %BRUMM_GATE_SPONSOR
 *
 * Returns the descriptor of the gate.
 */
int brumm_gate(int window, uint64_t offset, uint64_t length, uint32_t flags);

/**
 * brumm_map() - derive a mapping
 * @window: where the source is
 * @map: what; its size member is filled in by this function
 *
 *	brumm_map(w, &(struct brumm_map){ .source = 0, .length = 4096,
 *		  .fd = gate, .rights = BRUMM_RIGHT_R });
 */
int brumm_map(int window, const struct brumm_map *map);

/** brumm_grant() - the same with %BRUMM_MAP_GRANT: move it. */
int brumm_grant(int window, const struct brumm_map *map);

/**
 * brumm_unmap() - revoke what was derived from a range, recursively
 * @window: descriptor of a window
 * @offset: start
 * @length: bytes; gaps are fine
 * @flags: 0, or %BRUMM_UNMAP_SELF: and the range itself
 * @done: out: how much that was; or NULL
 *
 * When it returns nobody can reach the memory through what was revoked.
 */
int brumm_unmap(int window, uint64_t offset, uint64_t length, uint32_t flags,
		struct brumm_unmap *done);

/**
 * brumm_reduce() - take rights away and leave the mappings
 * @window: descriptor of a window
 * @offset: start
 * @length: bytes
 * @rights: which to take, of W, X and D
 * @flags: 0, or %BRUMM_UNMAP_SELF: from the range itself too
 * @done: out: how much that was; or NULL
 */
int brumm_reduce(int window, uint64_t offset, uint64_t length, uint32_t rights,
		 uint32_t flags, struct brumm_unmap *done);

/**
 * brumm_query() - what stands at an offset
 * @window: descriptor of a window
 * @offset: where
 * @flags: %BRUMM_QUERY_*
 * @query: out
 *
 * Returns 0 or -ENOENT.
 */
int brumm_query(int window, uint64_t offset, uint32_t flags,
		struct brumm_query *query);

/**
 * brumm_events() - take the revocations that happened in a window
 * @window: descriptor of a window
 * @events: out
 * @n: room, at least 1
 *
 * Returns how many; -EAGAIN with O_NONBLOCK and none there; -EINTR.
 */
int brumm_events(int window, struct brumm_event *events, unsigned int n);

/**
 * brumm_event_wait() - wait until there are some
 * @window: descriptor of a window
 * @timeout_ms: milliseconds, -1: for ever
 *
 * Returns 1 if there are, 0 when the time is over, -EINTR.
 */
int brumm_event_wait(int window, int timeout_ms);

/* ---- guarded access ----------------------------------------------------- */

/*
 * Memory of a window may be revoked at any time, and who touches it then gets
 * SIGBUS. These functions turn that into an error. It works for any mapping
 * that raises SIGBUS (a file that was truncated, for instance).
 *
 * The first call (or brumm_guard_init()) installs a handler for SIGBUS, for
 * the whole process and for good. A SIGBUS that is not within the guarded
 * range of the thread that got it goes to whatever was installed before, and
 * if that is the default, the process dies of it as it should. So:
 *   - A program with a SIGBUS handler of its own installs it first, or has it
 *     call what it replaced.
 *   - SIGBUS must not be blocked in a thread that uses these functions: the
 *     kernel kills a process for a fault whose signal is blocked.
 *   - They may be used in signal handlers, also in one that interrupted one of
 *     them, once brumm_guard_init() has returned. A handler that touches
 *     revocable memory without them may be left by a jump, with its signal
 *     still blocked, if it interrupted a guarded access to the same range.
 *   - The handler runs on the alternate stack if the thread has one, which
 *     must not have SS_AUTODISARM.
 */

/** brumm_guard_init() - install the handler now. Returns 0. */
int brumm_guard_init(void);

/**
 * brumm_read() - copy from memory that may be revoked
 * @to: private memory
 * @from: memory that may be revoked
 * @length: bytes
 *
 * Returns 0, or -EFAULT if a page of it was not there; then @to is undefined.
 * What others write meanwhile may or may not be seen, byte by byte.
 */
int brumm_read(void *to, const void *from, size_t length);

/**
 * brumm_write() - copy into memory that may be revoked
 * @to: memory that may be revoked
 * @from: private memory
 * @length: bytes
 *
 * Returns 0, or -EFAULT; then a part of it may have been written.
 */
int brumm_write(void *to, const void *from, size_t length);

/** brumm_fill() - the same with @length bytes of value @byte. */
int brumm_fill(void *to, int byte, size_t length);

/**
 * brumm_call_guarded() - run a function that may touch revocable memory
 * @base: start of the range that may be revoked
 * @length: its length, bytes
 * @fn: the function
 * @arg: its argument
 * @fault: out: the address that was not there, or NULL; or pass NULL
 *
 * Returns what @fn returns, or -EFAULT when it touched a page of the range
 * that was not there. It is then left by a jump: it must not hold a lock, have
 * allocated something, or be within the C library (except memcpy and the
 * like) when it touches the range. Calls may be nested.
 */
int brumm_call_guarded(const void *base, size_t length, int (*fn)(void *arg),
		       void *arg, void **fault);

/* ---- cgroups and their budgets ------------------------------------------ */

/**
 * brumm_cgroup_mount() - where the cgroup v2 hierarchy is mounted
 * @buf: out: the path
 * @size: size of @buf
 *
 * Returns 0; -ENOENT: nowhere; -ENAMETOOLONG.
 */
int brumm_cgroup_mount(char *buf, size_t size);

/**
 * brumm_group_path() - full path of a cgroup
 * @name: a path below the mount point, with or without a slash in front, as
 *	/proc/PID/cgroup has it; or a full path. Parts named ".." are refused.
 * @buf: out
 * @size: size of @buf
 *
 * Returns 0; -ENOENT no cgroup v2; -EINVAL; -ENAMETOOLONG. The cgroup need not
 * exist.
 */
int brumm_group_path(const char *name, char *buf, size_t size);

/**
 * brumm_group_open() - open a cgroup
 * @name: as for brumm_group_path()
 *
 * Returns a descriptor of its directory, which the functions below take, and
 * brumm_map.sponsor too; -ENOENT; -ENOTDIR: not a cgroup.
 */
int brumm_group_open(const char *name);

/**
 * brumm_group_open_pid() - open the cgroup that a process is in
 * @pid: the process, 0: the caller
 *
 * Returns a descriptor; -ESRCH no such process; -ENOENT no cgroup v2; -EXDEV
 * it is outside of what this process can see (a cgroup namespace). The process
 * may have gone or moved meanwhile; to know that @pid is still who it was,
 * hold a pidfd.
 */
int brumm_group_open_pid(pid_t pid);

/**
 * brumm_group_id() - the number that brumm_query.sponsor and brumm_info.cgroup
 *	know a cgroup by
 * @group: descriptor of a cgroup
 * @id: out
 */
int brumm_group_id(int group, uint64_t *id);

/**
 * brumm_group_name() - path of an open cgroup below the mount point
 * @group: descriptor of a cgroup
 * @buf: out: "/" for the root
 * @size: size of @buf
 *
 * Returns 0; -ENOENT: removed meanwhile; -ENAMETOOLONG.
 */
int brumm_group_name(int group, char *buf, size_t size);

/*
 * The knobs. All return -ENOENT where the cgroup has no such file: the root,
 * a cgroup without the memory controller, or the module is not loaded
 * (brumm_group_why() says which), -EACCES where the caller may not.
 */

/** brumm_group_why() - why has @group no brumm.* files, and the remedy
 * @group: descriptor of a cgroup
 * @buf: out: one sentence
 * @size: size of @buf
 *
 * Returns 0, -EEXIST if it has them.
 */
int brumm_group_why(int group, char *buf, size_t size);

/** brumm_group_max() - the budget, ns; %BRUMM_NO_LIMIT: none. */
int brumm_group_max(int group, uint64_t *ns);
/** brumm_group_set_max() - may be below current: then charges are refused. */
int brumm_group_set_max(int group, uint64_t ns);
/** brumm_group_high() - from where there is an event, ns. */
int brumm_group_high(int group, uint64_t *ns);
/** brumm_group_set_high() - the same, write. */
int brumm_group_set_high(int group, uint64_t ns);
/** brumm_group_current() - expected time of the clean-up now, ns. */
int brumm_group_current(int group, uint64_t *ns);
/** brumm_group_peak() - the highest it has been, ns. */
int brumm_group_peak(int group, uint64_t *ns);

/**
 * brumm_peak_open() - watch the peak from now on
 * @group: descriptor of a cgroup
 *
 * Returns a descriptor: brumm_peak_reset() and brumm_peak_read() of it do not
 * disturb what others see.
 */
int brumm_peak_open(int group);
/** brumm_peak_reset() - let the peak of this descriptor start again. */
int brumm_peak_reset(int peak);
/** brumm_peak_read() - highest since the reset of this descriptor, ns. */
int brumm_peak_read(int peak, uint64_t *ns);

/**
 * brumm_group_lock() - refuse every further charge, here and below
 * @group: descriptor of a cgroup
 * @lock: or permit them again
 */
int brumm_group_lock(int group, bool lock);
/** brumm_group_locked() - is it locked itself (not by one above)? 0 or 1. */
int brumm_group_locked(int group);

/**
 * brumm_group_reclaim() - revoke all that the group sponsors
 * @group: descriptor of a cgroup
 *
 * Returns when it is done. What is charged meanwhile may remain, so lock
 * first.
 */
int brumm_group_reclaim(int group);

/** brumm_each_fn - called with a key and its value; not 0 ends the walk. */
typedef int (*brumm_each_fn)(const char *key, uint64_t value, void *arg);

/**
 * brumm_group_stat() - walk through brumm.stat
 * @group: descriptor of a cgroup
 * @each: called for each line
 * @arg: passed on
 *
 * Returns 0, an error, or what @each returned.
 */
int brumm_group_stat(int group, brumm_each_fn each, void *arg);

/** brumm_group_stat_get() - one value of it; -ENODATA if there is none. */
int brumm_group_stat_get(int group, const char *key, uint64_t *value);

/** BRUMM_EVENTS_LOCAL - only those of the group itself, not of those below. */
#define BRUMM_EVENTS_LOCAL	(1U << 0)

/**
 * struct brumm_group_events - how often something happened
 * @max: refused: the budget would have been exceeded
 * @high: usage rose above brumm.high
 * @locked: refused: locked
 * @over: charged beyond the budget, as it could not be refused
 */
struct brumm_group_events {
	uint64_t max;
	uint64_t high;
	uint64_t locked;
	uint64_t over;
};

/** brumm_group_events() - read them; @flags: 0 or %BRUMM_EVENTS_LOCAL. */
int brumm_group_events(int group, unsigned int flags,
		       struct brumm_group_events *events);

/**
 * brumm_watch_open() - be told of events
 * @group: descriptor of a cgroup
 * @flags: 0 or %BRUMM_EVENTS_LOCAL
 *
 * Returns a descriptor to be polled for POLLPRI. What happens between this
 * call and the first poll is not lost.
 */
int brumm_watch_open(int group, unsigned int flags);

/**
 * brumm_watch_read() - read the counts and arm the descriptor again
 * @watch: of brumm_watch_open()
 * @events: out
 */
int brumm_watch_read(int watch, struct brumm_group_events *events);

/**
 * brumm_watch_wait() - wait for the next event
 * @watch: of brumm_watch_open()
 * @timeout_ms: milliseconds, -1: for ever
 * @events: out: the counts, in any case
 *
 * Returns 1 if there was one, 0 when the time is over, -EINTR.
 */
int brumm_watch_wait(int watch, int timeout_ms,
		     struct brumm_group_events *events);

/**
 * brumm_group_price() - prices in force: own ones or of the nearest ancestor
 * @group: descriptor of a cgroup
 * @each: called with each kind and its price in ns, or NULL
 * @arg: passed on
 *
 * Returns 1 if the group has prices of its own, 0 if it inherits them, an
 * error, or what @each returned.
 */
int brumm_group_price(int group, brumm_each_fn each, void *arg);

/**
 * brumm_group_set_price() - set one price; it holds for what is charged, too
 * @group: descriptor of a cgroup
 * @kind: "lookup", "map", "pt" or "deep"; NULL: inherit all of them again
 * @ns: nanoseconds for one
 *
 * Returns 0; -EINVAL no such kind; -ERANGE beyond 2^40.
 */
int brumm_group_set_price(int group, const char *kind, uint64_t ns);

/** struct brumm_price - @kind as for brumm_group_set_price(), @ns for one */
struct brumm_price {
	const char *kind;
	uint64_t ns;
};

/**
 * brumm_group_set_prices() - set several prices at once, or none of them
 * @group: descriptor of a cgroup
 * @prices: the prices; kinds that are not among them stay as they are
 * @n: how many
 */
int brumm_group_set_prices(int group, const struct brumm_price *prices,
			   unsigned int n);

/*
 * Making cgroups. These use libcgroup (2.0.2 or newer), in the v2 hierarchy.
 */

/**
 * brumm_group_create() - make a cgroup with the memory controller
 * @name: as for brumm_group_path()
 *
 * Turns the controller on in those above it. Returns 0, also if it exists;
 * -EACCES, -ENOENT no cgroup v2, -EBUSY one above has processes of its own,
 * -ENOTSUP no memory controller in the v2 hierarchy.
 */
int brumm_group_create(const char *name);

/** brumm_group_enter() - move a process (0: the caller) into a cgroup. */
int brumm_group_enter(const char *name, pid_t pid);

/**
 * brumm_group_remove() - remove a cgroup without processes and children
 * @name: as for brumm_group_path()
 *
 * Returns 0; -EBUSY: not empty; -ENOENT.
 */
int brumm_group_remove(const char *name);

/** brumm_group_kill() - kill every process in it and below (cgroup.kill). */
int brumm_group_kill(int group);

/*
 * Any file of a cgroup, those of the kernel's own controllers too. -ENOENT: no
 * such file (the controller is not on there), -ENODEV: the cgroup is gone.
 */

/** brumm_group_read() - read a file: as much as fits, terminated. */
int brumm_group_read(int group, const char *file, char *buf, size_t size);

/** brumm_group_write() - write @text to a file. */
int brumm_group_write(int group, const char *file, const char *text);

/**
 * brumm_group_number() - read a number
 * @group: descriptor of a cgroup
 * @file: name of a file
 * @key: of a line "key number", NULL: the file is one number
 * @value: out; %BRUMM_NO_LIMIT for "max"
 *
 * Returns 0; -ENODATA: no such line.
 */
int brumm_group_number(int group, const char *file, const char *key,
		       uint64_t *value);

/* ---- memory service: clients -------------------------------------------- */

/** BRUMM_SERVICE_SOCKET - where clients find it unless told otherwise. */
#define BRUMM_SERVICE_SOCKET	"/run/brumm/memory.sock"
/** BRUMM_CONTROL_SOCKET - where controllers find it. */
#define BRUMM_CONTROL_SOCKET	"/run/brumm/control.sock"

struct brumm_client;

/**
 * struct brumm_allocation - pages that a client holds
 * @handle: number given by the service; never used twice in a connection
 * @offset: where they are, in bytes from the start of the client's gate
 * @length: bytes
 * @rights: %BRUMM_RIGHT_*
 * @reserved: 0
 */
struct brumm_allocation {
	uint64_t handle;
	uint64_t offset;
	uint64_t length;
	uint32_t rights;
	uint32_t reserved;
};

/**
 * brumm_client_open() - connect to a memory service
 * @path: its socket, NULL: %BRUMM_SERVICE_SOCKET
 * @gate: gate into a window of the caller, made with %BRUMM_GATE_SPONSOR; the
 *	service gets a copy
 * @client: out
 *
 * From here on what is allocated is charged to the cgroup that the caller was
 * in when it connected, which must be that of the window.
 *
 * Returns 0; -ECONNREFUSED or -ENOENT: no service there; -EUSERS: it has too
 * many clients; -EPERM: it does not serve this process (in the root cgroup
 * nobody would pay); -EBADF: @gate is none; -ETIMEDOUT.
 */
int brumm_client_open(const char *path, int gate, struct brumm_client **client);

/** brumm_client_close() - disconnect; the service takes all of it back. */
void brumm_client_close(struct brumm_client *client);

/** brumm_client_fd() - the socket: POLLHUP when the service went away. */
int brumm_client_fd(const struct brumm_client *client);

/**
 * brumm_client_alloc() - get zeroed pages
 * @client: of brumm_client_open()
 * @offset: where, in bytes from the start of the gate
 * @length: bytes
 * @rights: %BRUMM_RIGHT_*
 * @handle: out: for brumm_client_free()
 *
 * Returns 0; -EDQUOT over the budget of the cgroup or one above it; -EBUSY a
 * budget is locked; -ENOSPC beyond a limit of the service; -ENOMEM it has no
 * pages left; -EEXIST something is there; -EPERM the window is of another
 * cgroup; -ESTALE the window is gone; -EPIPE the service went away.
 */
int brumm_client_alloc(struct brumm_client *client, uint64_t offset,
		       uint64_t length, uint32_t rights, uint64_t *handle);

/**
 * brumm_client_free() - give pages back, from all they were passed on to
 * @client: of brumm_client_open()
 * @handle: of brumm_client_alloc()
 *
 * Returns 0; -ENOENT no such allocation, perhaps taken back meanwhile; -EPIPE.
 */
int brumm_client_free(struct brumm_client *client, uint64_t handle);

/**
 * brumm_client_list() - what the service holds for this client
 * @client: of brumm_client_open()
 * @after: handle behind which to start, 0 for the first
 * @list: out
 * @n: room
 *
 * Returns how many, 0 behind the last; or an error.
 */
int brumm_client_list(struct brumm_client *client, uint64_t after,
		      struct brumm_allocation *list, unsigned int n);

/* ---- memory service: controllers ---------------------------------------- */

struct brumm_control;

/**
 * struct brumm_service_status - state of a service
 * @pool: bytes that it holds altogether
 * @free: bytes that nobody has
 * @clients: connected
 * @allocations: of all of them
 * @refused: requests refused since it started
 * @dropped: clients disconnected because they broke the protocol
 */
struct brumm_service_status {
	uint64_t pool;
	uint64_t free;
	uint64_t clients;
	uint64_t allocations;
	uint64_t refused;
	uint64_t dropped;
};

/**
 * struct brumm_service_client - one of its clients
 * @session: number of the connection
 * @cgroup: id of the cgroup that pays
 * @bytes: bytes handed out to it
 * @allocations: in so many pieces
 * @pid: who connected
 * @uid: as whom
 */
struct brumm_service_client {
	uint64_t session;
	uint64_t cgroup;
	uint64_t bytes;
	uint64_t allocations;
	int32_t pid;
	uint32_t uid;
};

/**
 * struct brumm_taken - what was taken back
 * @clients: from so many clients
 * @bytes: pages handed out, in bytes
 * @nodes: mappings revoked, with all that had been passed on
 * @ns: time that the service spent in revoking them, measured by it
 */
struct brumm_taken {
	uint64_t clients;
	uint64_t bytes;
	uint64_t nodes;
	uint64_t ns;
};

/**
 * brumm_control_open() - connect to the control socket of a service
 * @path: its socket, NULL: %BRUMM_CONTROL_SOCKET
 * @control: out
 *
 * Returns 0; -EACCES: only root and the service's own user may.
 */
int brumm_control_open(const char *path, struct brumm_control **control);
/** brumm_control_close() - disconnect. */
void brumm_control_close(struct brumm_control *control);
/** brumm_control_status() - read its state. */
int brumm_control_status(struct brumm_control *control,
			 struct brumm_service_status *status);
/** brumm_control_clients() - as brumm_client_list(), by session. */
int brumm_control_clients(struct brumm_control *control, uint64_t after,
			  struct brumm_service_client *list, unsigned int n);
/** brumm_control_allocations() - the allocations of a client. */
int brumm_control_allocations(struct brumm_control *control, uint64_t session,
			      uint64_t after, struct brumm_allocation *list,
			      unsigned int n);
/**
 * brumm_control_nodes() - what stands in the service's window
 * @control: of brumm_control_open()
 * @from: offset from which on, 0 for the first
 * @flags: 0 or %BRUMM_QUERY_COUNT
 * @list: out
 * @n: room
 */
int brumm_control_nodes(struct brumm_control *control, uint64_t from,
			uint32_t flags, struct brumm_query *list,
			unsigned int n);
/**
 * brumm_control_take_back() - take all pages back that a cgroup pays for
 * @control: of brumm_control_open()
 * @cgroup: its id; those below are meant too
 * @taken: out, or NULL
 *
 * The clients stay connected; to keep them from asking for more, lock first.
 * Returns 0, also if there was nothing.
 */
int brumm_control_take_back(struct brumm_control *control, uint64_t cgroup,
			    struct brumm_taken *taken);
/** brumm_control_stop() - take everything back and end the service. */
int brumm_control_stop(struct brumm_control *control);

/* ---- memory service: the service ---------------------------------------- */

struct brumm_server;

/** BRUMM_SERVER_ROOT_CLIENTS - serve clients too that no cgroup with a budget
 * pays for (those in the root cgroup); the service's own cgroup then pays.
 */
#define BRUMM_SERVER_ROOT_CLIENTS	(1U << 0)
/** BRUMM_SERVER_KEEP_CAP - keep CAP_SYS_RESOURCE. Without this flag the
 * thread gives it up, so that the kernel itself verifies for each mapping that
 * the client's window belongs to the cgroup that is to be charged.
 */
#define BRUMM_SERVER_KEEP_CAP		(1U << 1)

/**
 * struct brumm_server_config - how to serve; 0 in a limit: the default
 * @path: socket for clients; an old one is replaced if nobody listens there
 * @control: socket for controllers, NULL: none
 * @flags: %BRUMM_SERVER_*
 * @mode: permissions of @path, 0: 0666
 * @pool: bytes to hand out (64 MiB)
 * @max_clients: connections (256)
 * @max_clients_uid: connections of one user other than root (64)
 * @max_allocations: of one client (1024)
 * @max_bytes: of one client (the pool)
 * @log: called with one line on what is worth to be known, or NULL
 * @log_arg: passed on
 */
struct brumm_server_config {
	const char *path;
	const char *control;
	uint32_t flags;
	uint32_t mode;
	uint64_t pool;
	uint32_t max_clients;
	uint32_t max_clients_uid;
	uint32_t max_allocations;
	uint32_t reserved;
	uint64_t max_bytes;
	void (*log)(const char *line, void *arg);
	void *log_arg;
};

/**
 * brumm_server_open() - allocate the pool and listen
 * @config: how
 * @server: out
 *
 * The pages are charged to the caller's memory cgroup. Errors are those of
 * brumm_open(), brumm_alloc() and of sockets; -EADDRINUSE: a service listens
 * there already.
 */
int brumm_server_open(const struct brumm_server_config *config,
		      struct brumm_server **server);

/**
 * brumm_server_run() - serve until told to stop
 * @server: of brumm_server_open()
 *
 * Runs in the thread that called brumm_server_open(). One request of each
 * client in turn is served; none can hold up the others for longer than the
 * kernel needs for its pages. Returns 0 after brumm_server_stop() or a
 * controller's stop, or an error.
 */
int brumm_server_run(struct brumm_server *server);

/** brumm_server_stop() - end brumm_server_run(); may be called in a signal
 * handler and from other threads.
 */
void brumm_server_stop(struct brumm_server *server);

/** brumm_server_close() - take everything back, remove the sockets. */
void brumm_server_close(struct brumm_server *server);

#ifdef __cplusplus
}
#endif

#endif /* BRUMM_H */
