// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run.h"

int run_send(int sock, const struct run_message *m)
{
	return send(sock, m, sizeof(*m), MSG_NOSIGNAL) == sizeof(*m) ? 0 : -errno;
}

int run_receive(int sock, struct run_message *m)
{
	ssize_t n;

	do {
		n = recv(sock, m, sizeof(*m), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	if (n && n != sizeof(*m))
		return -EBADMSG;
	m->where[sizeof(m->where) - 1] = '\0';
	return n > 0;
}

int parse_namespaces(const char *text, int *flags)
{
	static const struct {
		const char *name;
		int flag;
	} known[] = {
		{ "mnt", CLONE_NEWNS }, { "ipc", CLONE_NEWIPC },
		{ "uts", CLONE_NEWUTS }, { "net", CLONE_NEWNET },
		{ "cgroup", CLONE_NEWCGROUP }, { "user", CLONE_NEWUSER },
	};
	size_t i, len;

	*flags = 0;
	for (;;) {
		len = strcspn(text, ",");
		for (i = 0; i < ARRAY_SIZE(known); i++)
			if (len == strlen(known[i].name) &&
			    !strncmp(text, known[i].name, len))
				break;
		if (i == ARRAY_SIZE(known))
			return -EINVAL;
		*flags |= known[i].flag;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

void run_signals(sigset_t *set)
{
	static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT };
	struct sigaction old;
	size_t i;

	sigemptyset(set);
	for (i = 0; i < ARRAY_SIZE(passed); i++)
		/* nohup and the like: what is ignored stays so for all. */
		if (!sigaction(passed[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaddset(set, passed[i]);
}
