/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ending a whole group of processes and waiting until nothing of it is left:
 * what brumm reap and brumm run share. Documentation/design/teardown.md.
 */
#ifndef BRUMM_TEARDOWN_H
#define BRUMM_TEARDOWN_H

#include <jansson.h>
#include <sched.h>

#include "../cli.h"
#include "../profile/living/forecast.h"
#include "gentle.h"
#include "keep.h"
#include "target.h"

/**
 * struct teardown_opts - how
 * @limit: what all of it may take, ns
 * @timeout: when to give up waiting, ns
 * @pace: CPU time of a step, ns; 0: all at once
 * @slo: bound of a neighbour's delay, ns; 0: none
 * @cpus: where it runs, if @on_cpus
 * @on_cpus: run it there only
 * @keep: leave the cgroups
 * @json: no words
 */
struct teardown_opts {
	uint64_t limit;
	uint64_t timeout;
	uint64_t pace;
	uint64_t slo;
	cpu_set_t cpus;
	bool on_cpus;
	bool keep;
	bool json;
};

#define TEARDOWN_TIMEOUT	60000000000u
#define TEARDOWN_OPTS_INIT						\
	{ .limit = BRUMM_NO_LIMIT, .timeout = TEARDOWN_TIMEOUT }

/* An argp child of all options but --keep; its input is the struct. */
extern const struct argp teardown_argp;
/* "0-3,7"; 0 or -EINVAL. */
int parse_cpus(const char *text, cpu_set_t *set);
/* The other way round. */
void format_cpus(const cpu_set_t *set, char *buf, size_t size);

struct aside;

enum stage {
	STAGE_KILLED,	/* the last process was told to die */
	STAGE_TASKS,	/* none runs any more */
	STAGE_DEVICE,	/* nothing is charged for device mappings */
	STAGE_MEMORY,	/* memory stopped coming back */
	STAGE_REMOVED,	/* the cgroups are gone */
	STAGES,
};

/**
 * struct snapshot - a cgroup at a time; %BRUMM_NO_LIMIT: not known
 * @memory: memory.current
 * @file: of it page cache
 * @shmem: of it shared memory
 * @cpu: CPU time until then, ns
 * @device: expected time of the device's part, ns
 * @dying: removed cgroups below the parent that hold something
 */
struct snapshot {
	uint64_t memory;
	uint64_t file;
	uint64_t shmem;
	uint64_t cpu;
	uint64_t device;
	uint64_t dying;
};

void snapshot_take(const struct target *t, struct snapshot *s);

struct teardown {
	const struct teardown_opts *opts;
	struct target target;
	struct tasks tasks;		/* at the beginning */
	size_t groups;			/* at the beginning, its own included */
	struct snapshot before, after;
	struct forecast forecast;	/* from the beginning */
	struct gentle gentle;
	struct aside *aside;		/* this here stands aside */
	struct keep *keep;		/* what was changed */
	bool put_back;			/* what an earlier one left was */
	uint64_t start;
	uint64_t at[STAGES];		/* since start; NO_LIMIT: not reached */
	uint64_t reclaimed;		/* device part that outlived the tasks */
	uint64_t reclaim_ns;		/* what the kernel took for that */
	int locked;			/* brumm.lock before; < 0: no module */
	int error;			/* -errno of what failed, see failed */
	const char *failed;
	bool timed_out;
	int sig;			/* that interrupted it */
	json_t *holding;		/* what a time-out found */
};

/* Looks at the target, and says what would be done. */
int teardown_look(struct teardown *t);
/* Does it; the outcome is in the struct. */
void teardown_do(struct teardown *t);
void teardown_free(struct teardown *t);

/* The exit code of what happened. */
int teardown_status(const struct teardown *t);
/* For --json; NULL: no memory. */
json_t *teardown_json(const struct teardown *t);
/* For people. */
void teardown_print(const struct teardown *t, FILE *f);
/* What was found by teardown_look() only. */
json_t *teardown_plan_json(const struct teardown *t);
void teardown_print_plan(const struct teardown *t, FILE *f);

/* Is waiting over: the time, or a signal? */
bool teardown_over(struct teardown *t);
/*
 * Waits for an event of @fd (-1: none), for @ns at most, and not beyond what
 * teardown_over() says.
 */
void teardown_wait(struct teardown *t, int fd, short events, uint64_t ns);

/* stages.c: each waits, and notes when it was reached. */
void stage_tasks(struct teardown *t);
void stage_device(struct teardown *t);
void stage_memory(struct teardown *t);
void stage_remove(struct teardown *t);

/* An array of what still runs and why; NULL: no memory. */
json_t *holders_find(const struct teardown *t);
void holders_print(const json_t *holders, FILE *f);
/* The remedy for a process in @state that waits in @where. */
const char *holder_remedy(char state, const char *where);

#endif /* BRUMM_TEARDOWN_H */
