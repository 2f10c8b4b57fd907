// SPDX-License-Identifier: GPL-2.0
/* The memory service: sockets, connections and the loop. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server.h"

/* Bad messages that a client may send before it is disconnected. */
#define MAX_BAD		8
/* Pages that are cleaned before the next look at the sockets. */
#define CLEAN_PAGES	64
/* Connections of controllers. */
#define MAX_CONTROL	16

void server_log(struct brumm_server *s, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (!s->config.log)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->config.log(line, s->config.log_arg);
}

static int pool_zero(void *arg, uint64_t start, uint64_t pages)
{
	struct brumm_server *s = arg;
	int err = s->backend.zero(s->backend.arg, start * s->page,
				  pages * s->page);

	if (err)
		server_log(s, "pages of the pool were revoked, they are lost: %s",
			   strerror(-err));
	return err;
}

/* ---- listening ---------------------------------------------------------- */

/* A socket that nobody listens on is what a service left that was killed. */
static int remove_stale(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = unix_connect(path);
	if (fd >= 0) {
		close(fd);
		return -EADDRINUSE;
	}
	if (fd != -ECONNREFUSED)
		return fd;
	return unlink(path) ? -errno : 0;
}

static int listen_at(struct brumm_server *s, int i, const char *path,
		     mode_t mode)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct epoll_event ev = { .events = EPOLLIN };
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	err = remove_stale(path);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Never more open than it is going to be, whatever the umask. */
	if (fchmod(fd, mode) ||
	    bind(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		err = -errno;
		close(fd);
		return err;
	}
	s->listener[i] = fd;
	ev.data.ptr = &s->listener[i];
	if (chmod(path, mode) || listen(fd, SOMAXCONN) ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	return 0;
}

static void listen_to(struct brumm_server *s, bool on)
{
	struct epoll_event ev = { .events = on ? EPOLLIN : 0 };

	ev.data.ptr = &s->listener[0];
	epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener[0], &ev);
	s->deaf = !on;
}

/* ---- connections -------------------------------------------------------- */

static unsigned int count(struct brumm_server *s, bool control, uid_t uid,
			  unsigned int *of_uid)
{
	unsigned int n = 0;
	struct session *c;

	*of_uid = 0;
	for (c = s->sessions; c; c = c->next) {
		if (c->control != control || c->dead)
			continue;
		n++;
		*of_uid += c->peer.uid == uid;
	}
	return n;
}

static int admit(struct brumm_server *s, struct session *c)
{
	unsigned int n, of_uid;
	int err = peer_identify(c->fd, &c->peer);

	n = count(s, c->control, c->peer.uid, &of_uid);
	if (c->control) {
		/* A controller may well be in no cgroup that we can see. */
		if (c->peer.uid && c->peer.uid != geteuid())
			return -EACCES;
		return n >= MAX_CONTROL ? -EUSERS : 0;
	}
	if (n >= s->config.max_clients ||
	    (c->peer.uid && of_uid >= s->config.max_clients_uid))
		return -EUSERS;
	return err;
}

static void accept_one(struct brumm_server *s, int i)
{
	struct proto_reply re = { .op = PROTO_REFUSED };
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = accept4(s->listener[i], NULL, NULL,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct session *c;

	if (fd < 0) {
		/* No descriptors left: later, instead of now and for ever. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS)
			listen_to(s, false);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->gate = -1;
	c->control = i;
	c->tail = &c->allocations;
	c->since = now_ns();
	re.error = admit(s, c);
	ev.data.ptr = c;
	if (!re.error && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev))
		re.error = -errno;
	if (re.error) {
		s->refused++;
		message_reply(fd, &re, NULL);
		peer_forget(&c->peer);
		close(fd);
		free(c);
		return;
	}
	c->id = ++s->next_session;
	c->next = s->sessions;
	s->sessions = c;
}

static void end(struct brumm_server *s, struct session *c)
{
	struct brumm_taken t = { 0 };

	serve_take_back(s, c, &t);
	if (t.bytes)
		server_log(s,
			   "client %d is gone: took back %llu bytes in %llu us, %llu mappings",
			   (int)c->peer.pid, (unsigned long long)t.bytes,
			   (unsigned long long)t.ns / 1000,
			   (unsigned long long)t.nodes);
	close(c->fd);
	if (c->gate >= 0)
		close_foreign(c->gate);
	peer_forget(&c->peer);
	free(c);
}

/* Ends what is dead, and who connected and then said nothing. */
static void reap(struct brumm_server *s, bool all)
{
	uint64_t now = now_ns();
	struct session **at = &s->sessions, *c;

	while ((c = *at)) {
		if (!c->control && c->gate < 0 &&
		    now - c->since > PROTO_HELLO_S * 1000000000ull)
			c->dead = true;
		if (!c->dead && !all) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		end(s, c);
	}
	if (s->deaf && !all)
		listen_to(s, true);
}

static void drop(struct brumm_server *s, struct session *c)
{
	c->dead = true;
	s->dropped++;
	server_log(s, "client %d broke the protocol: disconnected",
		   (int)c->peer.pid);
}

static void serve_one(struct brumm_server *s, struct session *c)
{
	union {
		uint64_t align;
		char buf[PROTO_MAX_ENTRIES * PROTO_MAX_ENTRY];
	} entries;
	struct proto_request rq = { 0 };
	struct proto_reply re = { 0 };
	enum message m;
	int fd;

	m = message_receive(c->fd, &rq, &fd);
	if (m == MESSAGE_NONE)
		return;
	if (m == MESSAGE_END) {
		c->dead = true;
		return;
	}
	re.op = rq.op;
	re.tag = rq.tag;
	if (m == MESSAGE_BAD || (fd >= 0 && rq.op != PROTO_HELLO)) {
		re.error = -EPROTO;
		c->bad++;
	} else {
		re.error = serve_request(s, c, &rq, fd, &re, entries.buf);
		s->refused += re.error && rq.op == PROTO_ALLOC;
	}
	if (fd >= 0 && fd != c->gate)
		close_foreign(fd);
	if (message_reply(c->fd, &re, entries.buf))
		c->dead = true;
	if (c->bad > MAX_BAD)
		drop(s, c);
}

PUBLIC int brumm_server_run(struct brumm_server *s)
{
	struct epoll_event ev[64];
	bool dirty = false;
	int i, n;

	s->stopping = false;
	while (!s->stopping) {
		n = epoll_wait(s->epoll, ev, ARRAY_SIZE(ev), dirty ? 0 : 1000);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == &s->stop)
				s->stopping = true;
			else if (ev[i].data.ptr == &s->listener[0])
				accept_one(s, 0);
			else if (ev[i].data.ptr == &s->listener[1])
				accept_one(s, 1);
			else
				serve_one(s, ev[i].data.ptr);
		}
		reap(s, false);
		dirty = n > 0 || pool_clean(&s->pool, CLEAN_PAGES);
	}
	return 0;
}

PUBLIC void brumm_server_stop(struct brumm_server *s)
{
	uint64_t one = 1;
	int err = errno;

	while (write(s->stop, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	errno = err;
}

PUBLIC void brumm_server_close(struct brumm_server *s)
{
	if (!s)
		return;
	reap(s, true);
	if (s->listener[0] >= 0) {
		unlink(s->config.path);
		close(s->listener[0]);
	}
	if (s->listener[1] >= 0) {
		unlink(s->config.control);
		close(s->listener[1]);
	}
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->stop >= 0)
		close(s->stop);
	pool_destroy(&s->pool);
	if (s->backend.close)
		s->backend.close(s->backend.arg);
	free((char *)s->config.path);
	free((char *)s->config.control);
	free(s);
}

static int start(struct brumm_server *s)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &s->stop };
	int err;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll < 0 || s->stop < 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->stop, &ev))
		return -errno;
	err = pool_init(&s->pool, s->config.pool / s->page);
	if (!err)
		err = listen_at(s, 0, s->config.path, s->config.mode);
	if (!err && s->config.control)
		err = listen_at(s, 1, s->config.control, 0600);
	return err;
}

#define DEFAULT(field, value) ((field) = (field) ? (field) : (value))

int server_open(const struct brumm_server_config *config,
		const struct backend *backend, struct brumm_server **server)
{
	struct brumm_server *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s) {
		backend->close(backend->arg);
		return -ENOMEM;
	}
	s->config = *config;
	s->backend = *backend;
	s->page = (uint64_t)sysconf(_SC_PAGESIZE);
	s->epoll = s->stop = s->listener[0] = s->listener[1] = -1;
	s->pool.zero = pool_zero;
	s->pool.arg = s;
	DEFAULT(s->config.mode, 0666);
	DEFAULT(s->config.pool, SERVER_POOL);
	DEFAULT(s->config.max_clients, 256);
	DEFAULT(s->config.max_clients_uid, 64);
	DEFAULT(s->config.max_allocations, 1024);
	DEFAULT(s->config.max_bytes, s->config.pool);
	s->config.path = strdup(config->path);
	s->config.control = config->control ? strdup(config->control) : NULL;
	if (s->config.path && (!config->control || s->config.control))
		err = start(s);
	if (err) {
		brumm_server_close(s);
		return err;
	}
	*server = s;
	return 0;
}
