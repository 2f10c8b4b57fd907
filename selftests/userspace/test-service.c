// SPDX-License-Identifier: GPL-2.0
/*
 * The memory service, its clients and those who wish it ill; upon a window
 * that is only made up, so that it needs no module.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "fake-service.h"
#include "rpc.h"

#define POOL (FAKE_PAGES * page)

static uint64_t page;
static struct fake f;
static struct brumm_control *control;

/* Anything that is an anonymous file will do for a gate here. */
static int some_gate(void)
{
	static int gate = -1;

	if (gate < 0)
		gate = eventfd(0, EFD_CLOEXEC);
	return gate;
}

static void start(const struct brumm_server_config *config)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(fake_start(&f, config), 0);
	assert_int_equal(brumm_control_open(f.control, &control), 0);
}

static struct brumm_service_status get_status(void)
{
	struct brumm_service_status st;

	assert_int_equal(brumm_control_status(control, &st), 0);
	return st;
}

/* Until the service has noticed that clients went away. */
static void wait_clients(unsigned int n)
{
	int i;

	for (i = 0; i < 2000 && get_status().clients != n; i++)
		usleep(1000);
	assert_int_equal(get_status().clients, n);
}

static void stop(void)
{
	brumm_control_close(control);
	fake_stop(&f);
	assert_int_equal(f.wrong, 0);
	assert_int_equal(f.mapped, 0);
}

static struct brumm_client *connect_client(void)
{
	struct brumm_client *c = NULL;

	assert_int_equal(brumm_client_open(f.path, some_gate(), &c), 0);
	return c;
}

static void alloc_and_free(void **state)
{
	struct brumm_allocation list[4];
	struct brumm_service_client who;
	struct brumm_query node[2];
	struct brumm_client *c;
	uint64_t a, b, other;

	(void)state;
	start(NULL);
	c = connect_client();
	assert_int_equal(brumm_client_alloc(c, 0, 4 * page, BRUMM_RIGHT_R, &a),
			 0);
	assert_int_equal(brumm_client_alloc(c, 8 * page, page, BRUMM_RIGHT_R,
					    &b), 0);
	assert_int_equal(f.mapped, 5);
	assert_true(a && a != b);
	assert_int_equal(brumm_client_list(c, 0, list, 4), 2);
	assert_int_equal(list[0].handle, a);
	assert_int_equal(list[0].length, 4 * page);
	assert_int_equal(list[1].offset, 8 * page);
	assert_int_equal(brumm_client_list(c, a, list, 4), 1);
	assert_int_equal(brumm_client_list(c, 0, list, 1), 1);
	assert_int_equal(brumm_client_list(c, b, list, 4), 0);
	assert_int_equal(get_status().free, POOL - 5 * page);
	assert_int_equal(brumm_control_clients(control, 0, &who, 1), 1);
	assert_int_equal(who.bytes, 5 * page);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(brumm_control_allocations(control, who.session, 0,
						   list, 4), 2);
	assert_int_equal(brumm_control_allocations(control, who.session + 1, 0,
						   list, 4), -ENOENT);
	assert_int_equal(brumm_control_nodes(control, 0, 0, node, 2), 1);
	assert_int_equal(node[0].length, POOL);
	assert_int_equal(brumm_control_nodes(control, 0, 64, node, 2),
			 -EOPNOTSUPP);

	assert_int_equal(brumm_client_free(c, a), 0);
	assert_int_equal(brumm_client_free(c, a), -ENOENT);
	assert_int_equal(f.mapped, 1);
	/* The last one of the list went and comes again. */
	assert_int_equal(brumm_client_free(c, b), 0);
	assert_int_equal(brumm_client_alloc(c, 0, page, BRUMM_RIGHT_R, &other),
			 0);
	assert_true(other != a && other != b);
	assert_int_equal(brumm_client_list(c, 0, list, 4), 1);
	brumm_client_close(c);
	wait_clients(0);
	assert_int_equal(f.mapped, 0);
	assert_int_equal(get_status().free, POOL);
	stop();
}

static void refusals(void **state)
{
	struct brumm_server_config config = {
		.flags = BRUMM_SERVER_ROOT_CLIENTS,
		.max_allocations = 3,
		.max_bytes = 16 * 4096,
	};
	struct brumm_client *c;
	uint64_t h;
	int i;

	(void)state;
	start(&config);
	c = connect_client();
	assert_int_equal(brumm_client_alloc(c, 0, 0, 1, &h), -EINVAL);
	assert_int_equal(brumm_client_alloc(c, 1, page, 1, &h), -EINVAL);
	assert_int_equal(brumm_client_alloc(c, 0, page + 1, 1, &h), -EINVAL);
	assert_int_equal(brumm_client_alloc(c, 0, 17 * page, 1, &h), -ENOSPC);
	assert_int_equal(brumm_client_alloc(c, 0, UINT64_MAX - page + 1, 1, &h),
			 -EOVERFLOW);
	assert_int_equal(brumm_client_alloc(c, UINT64_MAX - page + 1, page, 1,
					    &h), -EOVERFLOW);
	/* What the kernel says comes through, and nothing is lost by it. */
	f.map_error = -EDQUOT;
	assert_int_equal(brumm_client_alloc(c, 0, page, 1, &h), -EDQUOT);
	f.map_error = 0;
	assert_int_equal(get_status().free, POOL);
	for (i = 0; i < 3; i++)
		assert_int_equal(brumm_client_alloc(c, 0, page, 1, &h), 0);
	assert_int_equal(brumm_client_alloc(c, 0, page, 1, &h), -ENOSPC);
	assert_int_equal(get_status().refused, 8);
	/* Pages that cannot be revoked are never given to anybody else. */
	f.unmap_error = -EIO;
	assert_int_equal(brumm_client_free(c, h), -EIO);
	f.unmap_error = 0;
	assert_int_equal(get_status().pool, POOL - page);
	f.mapped--;
	brumm_client_close(c);
	stop();
}

static void fragments(void **state)
{
	struct brumm_client *c;
	uint64_t h[FAKE_PAGES], all;
	unsigned int i, unmaps;

	(void)state;
	start(NULL);
	c = connect_client();
	for (i = 0; i < FAKE_PAGES; i++)
		assert_int_equal(brumm_client_alloc(c, i * page, page, 1,
						    &h[i]), 0);
	assert_int_equal(brumm_client_alloc(c, 0, page, 1, &all), -ENOSPC);
	for (i = 0; i < FAKE_PAGES; i += 2)
		assert_int_equal(brumm_client_free(c, h[i]), 0);
	f.maps = 0;
	assert_int_equal(brumm_client_alloc(c, 0, POOL / 2, 1, &all), 0);
	assert_int_equal(f.maps, FAKE_PAGES / 2);
	/* All neighbours go at once. */
	unmaps = f.unmaps;
	brumm_client_close(c);
	wait_clients(0);
	assert_int_equal(f.unmaps - unmaps, 1);
	stop();
}

static uint64_t own_cgroup(void)
{
	int fd = brumm_group_open_pid(0);
	uint64_t id = 0;

	assert_true(fd >= 0);
	assert_int_equal(brumm_group_id(fd, &id), 0);
	close(fd);
	return id;
}

static void take_back(void **state)
{
	struct brumm_client *a, *b;
	struct brumm_taken t;
	uint64_t h;

	(void)state;
	start(NULL);
	a = connect_client();
	b = connect_client();
	assert_int_equal(brumm_client_alloc(a, 0, 3 * page, 1, &h), 0);
	assert_int_equal(brumm_client_alloc(b, 0, 2 * page, 1, &h), 0);
	assert_int_equal(brumm_control_take_back(control, 123456789, &t), 0);
	assert_int_equal(t.clients, 0);
	assert_int_equal(f.mapped, 5);
	assert_int_equal(brumm_control_take_back(control, own_cgroup(), &t), 0);
	assert_int_equal(t.clients, 2);
	assert_int_equal(t.bytes, 5 * page);
	assert_int_equal(t.nodes, 2);
	assert_true(t.ns > 0);
	assert_int_equal(f.mapped, 0);
	/* They live on, but what they had is gone. */
	assert_int_equal(brumm_client_free(b, h), -ENOENT);
	assert_int_equal(brumm_client_alloc(b, 0, page, 1, &h), 0);
	brumm_client_close(a);
	brumm_client_close(b);
	stop();
}

static void killed_client(void **state)
{
	struct brumm_client *c;
	uint64_t h;
	int ready[2], status;
	pid_t pid;
	char x;

	(void)state;
	start(NULL);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		c = connect_client();
		if (brumm_client_alloc(c, 0, 7 * page, 1, &h))
			_exit(1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &x, 1), 1);
	assert_int_equal(f.mapped, 7);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	wait_clients(0);
	assert_int_equal(f.mapped, 0);
	close(ready[0]);
	close(ready[1]);
	stop();
}

static int raw(void)
{
	int fd = unix_connect(f.path);

	assert_true(fd >= 0);
	return fd;
}

static int hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[PROTO_MAX_REPLY];
	ssize_t n;

	do {
		if (poll(&p, 1, 10000) <= 0)
			return 0;
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	} while (n > 0);
	return 1;
}

static void send_fds(int fd, const void *buf, size_t len, const int *fds,
		     unsigned int n)
{
	char c[CMSG_SPACE(200 * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = n ? c : NULL,
		.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0,
	};
	struct cmsghdr *h = (void *)c;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(n * sizeof(int));
	if (n)
		memcpy(CMSG_DATA(h), fds, n * sizeof(int));
	assert_true(sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)len);
}

static int reply_error(int fd)
{
	struct proto_reply re = { .error = 1 };
	ssize_t n = recv(fd, &re, sizeof(re), 0);

	return n > 0 ? re.error : 2;
}

static unsigned int open_fds(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < 1024; i++)
		n += fcntl((int)i, F_GETFD) >= 0;
	return n;
}

static void bad_messages(void **state)
{
	struct proto_request rq = {
		.magic = PROTO_MAGIC,
		.version = PROTO_VERSION,
		.op = PROTO_HELLO,
	};
	struct proto_request bad;
	int fds[200], gate = some_gate(), fd, i;
	unsigned int before;
	char big[5000] = { 0 };

	(void)state;
	start(NULL);
	before = open_fds();

	/* Before the HELLO nothing else is answered. */
	fd = raw();
	bad = rq;
	bad.op = PROTO_ALLOC;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), -EPROTO);
	send_fds(fd, &rq, sizeof(rq), NULL, 0);
	assert_int_equal(reply_error(fd), -EBADF);
	send_fds(fd, &rq, sizeof(rq), &gate, 1);
	assert_int_equal(reply_error(fd), 0);
	send_fds(fd, &rq, sizeof(rq), &gate, 1);
	assert_int_equal(reply_error(fd), -EALREADY);
	bad = rq;
	bad.op = 77;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), -EOPNOTSUPP);
	/* A client is no controller. */
	bad.op = PROTO_STOP;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), -EOPNOTSUPP);
	/* Each of these is refused; too many of them end it. */
	bad = rq;
	bad.magic++;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), -EPROTO);
	bad = rq;
	bad.version++;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), -EPROTO);
	bad = rq;
	bad.reserved = 1;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), -EPROTO);
	send_fds(fd, big, 1, NULL, 0);
	assert_int_equal(reply_error(fd), -EPROTO);
	send_fds(fd, big, sizeof(big), NULL, 0);
	assert_int_equal(reply_error(fd), -EPROTO);
	bad = rq;
	bad.op = PROTO_LIST;
	send_fds(fd, &bad, sizeof(bad), &gate, 1);
	assert_int_equal(reply_error(fd), -EPROTO);
	send_fds(fd, big, 1, &gate, 1);
	assert_int_equal(reply_error(fd), -EPROTO);
	for (i = 0; i < 200; i++)
		fds[i] = gate;
	send_fds(fd, &rq, sizeof(rq), fds, 2);
	assert_int_equal(reply_error(fd), -EPROTO);
	send_fds(fd, &rq, sizeof(rq), fds, 200);
	assert_true(hung_up(fd));
	close(fd);
	assert_int_equal(get_status().dropped, 1);

	/* A number that would overflow the list, and a regular file as gate. */
	fd = raw();
	send_fds(fd, &rq, sizeof(rq), &gate, 1);
	assert_int_equal(reply_error(fd), 0);
	bad = rq;
	bad.op = PROTO_LIST;
	bad.arg[1] = UINT64_MAX;
	send_fds(fd, &bad, sizeof(bad), NULL, 0);
	assert_int_equal(reply_error(fd), 0);
	close(fd);
	fd = raw();
	i = open("/dev/null", O_RDONLY | O_CLOEXEC);
	send_fds(fd, &rq, sizeof(rq), &i, 1);
	assert_int_equal(reply_error(fd), -EBADF);
	close(i);
	close(fd);

	/* All that was sent has been closed again, by and by. */
	wait_clients(0);
	for (i = 0; i < 1000 && open_fds() > before; i++)
		usleep(1000);
	/* Fewer, where an earlier test's were still on their way. */
	assert_true(open_fds() <= before);
	stop();
}

/* Who asks and asks but never reads gets disconnected, and only he. */
static void never_reads(void **state)
{
	struct proto_request rq = {
		.magic = PROTO_MAGIC,
		.version = PROTO_VERSION,
		.op = PROTO_HELLO,
	};
	int gate = some_gate(), fd, i;
	struct brumm_client *c;
	uint64_t h;

	(void)state;
	start(NULL);
	c = connect_client();
	fd = raw();
	send_fds(fd, &rq, sizeof(rq), &gate, 1);
	rq.op = PROTO_LIST;
	for (i = 0; i < 100000; i++)
		if (send(fd, &rq, sizeof(rq), MSG_NOSIGNAL) < 0)
			break;
	assert_true(i < 100000);
	assert_int_equal(brumm_client_alloc(c, 0, page, 1, &h), 0);
	close(fd);
	brumm_client_close(c);
	stop();
}

static void limits_of_clients(void **state)
{
	struct brumm_server_config config = {
		.flags = BRUMM_SERVER_ROOT_CLIENTS,
		.max_clients = 3,
	};
	struct brumm_client *c[4];
	int i;

	(void)state;
	start(&config);
	for (i = 0; i < 3; i++)
		c[i] = connect_client();
	assert_int_equal(brumm_client_open(f.path, some_gate(), &c[3]),
			 -EUSERS);
	brumm_client_close(c[0]);
	wait_clients(2);
	c[0] = connect_client();
	for (i = 0; i < 3; i++)
		brumm_client_close(c[i]);
	stop();
}

static void silent_clients(void **state)
{
	int fd;

	(void)state;
	start(NULL);
	fd = raw();
	wait_clients(1);
	assert_true(hung_up(fd));
	wait_clients(0);
	close(fd);
	stop();
}

static void nobody_pays(void **state)
{
	struct brumm_server_config config = { 0 };
	struct brumm_client *c;
	int group = brumm_group_open_pid(0);

	(void)state;
	assert_true(group >= 0);
	if (faccessat(group, "brumm.max", F_OK, 0)) {
		start(&config);
		assert_int_equal(brumm_client_open(f.path, some_gate(), &c),
				 -EPERM);
		stop();
	}
	close(group);
}

static void sockets(void **state)
{
	struct brumm_server_config config = { .path = f.path };
	struct brumm_server *second;
	struct backend b;
	struct brumm_client *c;
	struct stat st;

	(void)state;
	start(NULL);
	b = f.server->backend;
	assert_int_equal(stat(f.control, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	config.pool = POOL;
	assert_int_equal(server_open(&config, &b, &second), -EADDRINUSE);
	/* And the first one was not harmed by that. */
	c = connect_client();
	brumm_client_close(c);
	assert_int_equal(brumm_control_stop(control), 0);
	stop();
	assert_int_equal(stat(f.path, &st), -1);
	assert_int_equal(brumm_client_open(f.path, some_gate(), &c), -ENOENT);
	assert_int_equal(brumm_client_open(NULL, -1, &c), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alloc_and_free),
		cmocka_unit_test(refusals),
		cmocka_unit_test(fragments),
		cmocka_unit_test(take_back),
		cmocka_unit_test(killed_client),
		cmocka_unit_test(bad_messages),
		cmocka_unit_test(never_reads),
		cmocka_unit_test(limits_of_clients),
		cmocka_unit_test(silent_clients),
		cmocka_unit_test(nobody_pays),
		cmocka_unit_test(sockets),
	};

	return RUN_TAP("service", tests);
}
