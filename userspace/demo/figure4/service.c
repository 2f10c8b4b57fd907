// SPDX-License-Identifier: GPL-2.0
/* An unrelated service: lets others pass pages to it, and looks at them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "demo.h"

struct service {
	const struct stage *st;
	int window, gate, listener;
	char *view;
};

static int start(struct service *s)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	void *view;
	int err;

	s->window = brumm_open(O_NONBLOCK);
	if (s->window < 0)
		return s->window;
	err = brumm_mmap(s->window, SERVICE_VIEW * s->st->page, PROT_READ,
			 &view);
	if (err)
		return err;
	s->view = view;
	s->gate = brumm_gate(s->window, 0, GATE_PAGES * s->st->page, 0);
	if (s->gate < 0)
		return s->gate;
	strcpy(sa.sun_path, s->st->service_sock);
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->listener < 0 ||
	    bind(s->listener, (struct sockaddr *)&sa, sizeof(sa)) ||
	    listen(s->listener, 4))
		return -errno;
	return 0;
}

static void hand_gate(void *arg)
{
	struct service *s = arg;
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	fd_send(fd, s->gate);
	close(fd);
}

/* Revoked or not, this does not hurt. */
static void look(struct service *s, uint64_t pages, struct report *r)
{
	uint64_t i, value;
	int err;

	for (i = 0; i < pages; i++) {
		err = brumm_read(&value, s->view + i * s->st->page,
				 sizeof(value));
		if (!err && value != PATTERN(2 * i))
			r->wrong++;
		else if (!err)
			r->done++;
		else if (err == -EFAULT)
			r->gone++;
		else
			r->err = err;
	}
}

static void take_events(struct service *s, struct report *r)
{
	struct brumm_event ev[64];
	int i, n;

	while ((n = brumm_events(s->window, ev, 64)) > 0) {
		for (i = 0; i < n; i++)
			r->bytes += ev[i].length;
		r->done += (uint64_t)n;
	}
	r->err = n == -EAGAIN ? 0 : n;
}

static void obey(void *arg, const struct order *o, struct report *r)
{
	struct service *s = arg;

	if (o->op == SERVICE_READ)
		look(s, o->a < SERVICE_VIEW ? o->a : SERVICE_VIEW, r);
	else if (o->op == SERVICE_EVENTS)
		take_events(s, r);
	else
		r->err = -EINVAL;
}

void service_play(const struct stage *st, int sock)
{
	struct service s = { .st = st };
	int err = start(&s);

	if (!err)
		err = actor_loop(sock, s.listener, hand_gate, obey, &s);
	unlink(st->service_sock);
	_exit(err ? 1 : 0);
}
