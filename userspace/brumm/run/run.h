/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Running a command in a cgroup so that nothing of it stays. Three processes:
 * brumm run itself, an init inside (the first of the PID namespace, if there is
 * one), which starts the command; and a guard outside that tears the cgroup
 * down should brumm run be killed. Documentation/design/teardown.md.
 */
#ifndef BRUMM_RUN_H
#define BRUMM_RUN_H

#include <signal.h>

#include "../teardown/teardown.h"

/* What went wrong before the command could say anything, as env(1) has it. */
enum {
	RUN_OWN_ERROR = 125,
	RUN_NOT_EXECUTABLE = 126,
	RUN_NOT_FOUND = 127,
};

/**
 * struct run - what to run, and how
 * @opts: of the teardown
 * @name: of the cgroup
 * @max: budget, ns, if @has_max
 * @high: the same for brumm.high
 * @pidns: in a PID namespace
 * @ns: CLONE_NEW* of the other namespaces
 * @argv: the command
 * @json: where the report goes as JSON; "-": to stderr; NULL: in words
 * @quiet: no report in words
 *
 * @group: descriptor of the cgroup
 * @self: pidfd of brumm run
 * @terminal: the command is to have the terminal
 * @mask: signals that were blocked at the start
 */
struct run {
	struct teardown_opts opts;
	const char *name;
	uint64_t max, high;
	bool has_max, has_high;
	bool pidns;
	int ns;
	char **argv;
	const char *json;
	bool quiet;

	int group;
	int self;
	bool terminal;
	sigset_t mask;
};

/* "mnt,ipc": CLONE_NEW* into @flags; 0 or -EINVAL. */
int parse_namespaces(const char *text, int *flags);

/* Signals that are passed on to the command, but those that are ignored. */
void run_signals(sigset_t *set);

/* Messages between brumm run and its init. */
enum run_kind {
	RUN_GO,		/* down: it is in its cgroup, begin */
	RUN_SIGNAL,	/* down: for the command; value: the signal */
	RUN_FAILED,	/* up: value: errno, where: what failed */
	RUN_STOPPED,	/* up: the command was stopped */
	RUN_ENDED,	/* up: the command ended; value: its wait status */
};

struct run_message {
	enum run_kind kind;
	int value;
	bool foreground;	/* RUN_SIGNAL: it gets the terminal back */
	char where[32];
};

int run_send(int sock, const struct run_message *m);
/* 1; 0 at the end, or a negative errno. */
int run_receive(int sock, struct run_message *m);

/* group.c: 0, or RUN_OWN_ERROR when all is said. */
int run_make_group(struct run *r);
void run_remove_group(struct run *r);

/* init.c */
void init_main(const struct run *r, int sock) __attribute__((noreturn));

/* spaces.c: what the namespaces need from inside; 0 or -errno and @where. */
int spaces_enter(const struct run *r, const char **where);
/* The user namespace's maps, written from outside. */
int spaces_map_users(const struct run *r, pid_t pid);

/* guard.c: its pid or a negative errno; it waits for the end of r->self. */
pid_t guard_start(const struct run *r);
void guard_end(pid_t guard);

/*
 * supervise.c: starts the init and waits for the command. The exit code so
 * far; @status is the wait status, -1: it did not run.
 */
int supervise(struct run *r, int *status);

#endif /* BRUMM_RUN_H */
