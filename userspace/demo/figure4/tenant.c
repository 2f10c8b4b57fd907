// SPDX-License-Identifier: GPL-2.0
/* The tenant: gets pages, uses them, passes them on, wants too much. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "demo.h"

/* Where in the window the mappings go that the tenant makes for itself. */
#define SELF_PAGE	8192u
#define VIEW_PAGES	32768u

struct tenant {
	const struct stage *st;
	int window, gate, service_gate;
	char *view;
	struct brumm_client *memory;
	uint64_t own, self, shared;	/* pages */
};

static int open_window(struct tenant *t)
{
	void *view;
	int err;

	t->window = brumm_open(0);
	if (t->window < 0)
		return t->window;
	err = brumm_mmap(t->window, VIEW_PAGES * t->st->page,
			 PROT_READ | PROT_WRITE, &view);
	if (err)
		return err;
	t->view = view;
	t->gate = brumm_gate(t->window, 0, SELF_PAGE * t->st->page,
			     BRUMM_GATE_SPONSOR);
	if (t->gate < 0)
		return t->gate;
	return brumm_client_open(t->st->memory_sock, t->gate, &t->memory);
}

/* As after the start; what it held has been taken back, or is now. */
static int start_again(struct tenant *t)
{
	brumm_client_close(t->memory);
	t->memory = NULL;
	t->own = t->self = t->shared = 0;
	return brumm_client_open(t->st->memory_sock, t->gate, &t->memory);
}

static int get_pages(struct tenant *t, uint64_t pages, struct report *r)
{
	uint64_t page = t->st->page, i, value, handle;
	int err;

	err = brumm_client_alloc(t->memory, t->own * page, pages * page,
				 BRUMM_RIGHT_R | BRUMM_RIGHT_W | BRUMM_RIGHT_D,
				 &handle);
	if (err)
		return err;
	for (i = t->own; i < t->own + pages; i++) {
		value = PATTERN(i);
		err = brumm_write(t->view + i * page, &value, sizeof(value));
		if (err)
			return err;
		r->done++;
	}
	t->own += pages;
	return 0;
}

static int map_to_self(struct tenant *t, uint64_t n, struct report *r)
{
	uint64_t page = t->st->page, to, value;
	int err;

	for (; r->done < n; r->done++) {
		to = (SELF_PAGE + t->self++) * page;
		err = brumm_map(t->window, &(struct brumm_map){
			.length = page, .target = to, .fd = -1,
			.rights = BRUMM_RIGHT_R });
		if (!err)
			err = brumm_read(&value, t->view + to, sizeof(value));
		if (err)
			return err;
	}
	return 0;
}

/* The service hands its gate to whoever connects. */
static int meet_service(struct tenant *t)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd;

	if (t->service_gate >= 0)
		return 0;
	strcpy(sa.sun_path, t->st->service_sock);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -errno;
	t->service_gate = fd_receive(fd);
	close(fd);
	return t->service_gate < 0 ? t->service_gate : 0;
}

static int pass_on(struct tenant *t, uint64_t from)
{
	int err;

	if (t->shared == GATE_PAGES)
		return -EOVERFLOW;
	err = brumm_map(t->window, &(struct brumm_map){
		.source = from * t->st->page,
		.length = t->st->page,
		.target = t->shared * t->st->page,
		.fd = t->service_gate,
		.rights = BRUMM_RIGHT_R });
	t->shared += !err;
	return err;
}

static int share(struct tenant *t, uint64_t n, bool same, struct report *r)
{
	int err = meet_service(t);

	while (!err && r->done < n) {
		err = pass_on(t, same ? 0 : 2 * r->done);
		r->done += !err;
	}
	return err;
}

static void obey(void *arg, const struct order *o, struct report *r)
{
	struct tenant *t = arg;

	switch (o->op) {
	case TENANT_CONNECT:
		r->err = open_window(t);
		break;
	case TENANT_AGAIN:
		r->err = start_again(t);
		break;
	case TENANT_ALLOC:
		r->err = get_pages(t, o->a, r);
		break;
	case TENANT_SELF:
		r->err = map_to_self(t, o->a, r);
		break;
	case TENANT_SHARE:
		r->err = share(t, o->a, false, r);
		break;
	case TENANT_OVER:
		r->err = share(t, o->a, true, r);
		break;
	default:
		r->err = -EINVAL;
	}
}

void tenant_play(const struct stage *st, int sock)
{
	struct tenant t = {
		.st = st,
		.window = -1,
		.gate = -1,
		.service_gate = -1,
	};

	_exit(actor_loop(sock, -1, NULL, obey, &t) ? 1 : 0);
}
