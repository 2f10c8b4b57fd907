/* SPDX-License-Identifier: GPL-2.0 */
/* Common to the commands of brumm. */
#ifndef BRUMM_CLI_H
#define BRUMM_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <brumm/brumm.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Exit codes of all tools. */
enum {
	EXIT_FINE = 0,
	EXIT_ERROR = 1,
	EXIT_MISSED = 2,	/* a stated limit or gate was missed */
	EXIT_UNSUPPORTED = 4,	/* not possible on this machine as it is */
};

int cmd_info(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_reclaim(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_take_back(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_baseline(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_reap(int argc, char **argv);
int cmd_recount(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_guard(int argc, char **argv);
int cmd_mc(int argc, char **argv);

/* "brumm COMMAND", for messages. */
extern char cli_name[64];

/* A command: what @run is given begins with its name. */
struct cli_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
};

/**
 * struct cli_commands - commands that one word chooses from
 * @name: what stands before that word
 * @about: a line of the usage
 * @more: behind the usage
 * @list: the commands
 * @nr: how many
 */
struct cli_commands {
	const char *name, *about, *more;
	const struct cli_command *list;
	size_t nr;
};

/* Runs the command that argv[1] names, or tells the usage; the exit code. */
int cli_dispatch(const struct cli_commands *set, int argc, char **argv);

/* Of a command about one cgroup: an argp child with this as its input. */
struct cli_group {
	const char *name;
	bool json;
};

extern const struct argp cli_group_argp;

/* Parses; usage errors end the program with EXIT_ERROR. */
void cli_parse(const struct argp *argp, int argc, char **argv, void *input);
/* The same with flags of argp_parse(), and another code for such errors. */
void cli_parse_as(const struct argp *argp, int argc, char **argv,
		  unsigned int flags, int status, void *input);

/* Messages to stderr; one with an error gets its remedy. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_fail(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Of SIGINT, SIGTERM and SIGHUP: the signal, or 0. System calls return. */
void cli_catch_signals(void);
int cli_signal(void);
/* How many came. */
unsigned int cli_signals(void);

/* May colours and a redrawn screen be used on @f? */
bool cli_fancy(FILE *f);

/* Prints and frees; EXIT_FINE or EXIT_ERROR if it could not be written. */
int cli_print_json(json_t *j);
/* Flushes stdout: EXIT_ERROR if something could not be written. */
int cli_flush(void);

/* NULL (null) stands for BRUMM_NO_LIMIT. */
json_t *cli_json_time(uint64_t ns);

/* CLOCK_MONOTONIC, ns. */
uint64_t cli_now(void);

/* Moves the process into a cgroup, the root too, by its descriptor. */
int cli_enter_group(int group);

/* Opens a cgroup, or says what is wrong and returns -1. */
int cli_open_group(const char *name);

/*
 * Why a knob of @group could not be used: says the reason, and returns the
 * exit code.
 */
int cli_knob_failed(int group, const char *name, const char *knob, int err);

/* Why the control socket at @path could not be used. */
void cli_service_failed(const char *path, int err);

#endif /* BRUMM_CLI_H */
