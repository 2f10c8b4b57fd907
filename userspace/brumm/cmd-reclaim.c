// SPDX-License-Identifier: GPL-2.0
/* brumm reclaim: take back, and compare with the prediction. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "take.h"

static const struct argp_child children[] = { { &take_argp, 0, NULL, 0 }, { 0 } };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

static const struct argp argp = {
	.parser = parse,
	.children = children,
	.args_doc = "CGROUP",
	.doc = "Revoke all mappings that a cgroup and those below it sponsor, from "
	       "everybody they were passed on to, and return when that is done."
	       "\vPrints what the prices predicted and what it took, measured in "
	       "the kernel and (with the system call) from outside.",
};

struct job {
	int group;
	int err;
	uint64_t ns;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool done;
};

static void *work(void *arg)
{
	struct job *job = arg;
	uint64_t start = cli_now();
	int err = brumm_group_reclaim(job->group);

	job->ns = cli_now() - start;
	job->err = err;
	pthread_mutex_lock(&job->lock);
	job->done = true;
	pthread_cond_signal(&job->ended);
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

/* Waits; for long work there is a word from time to time on a terminal. */
static int run(struct job *job, uint64_t before)
{
	bool fancy = cli_fancy(stderr), drawn = false;
	struct timespec until;
	pthread_t thread;
	uint64_t left;
	int err;

	err = pthread_create(&thread, NULL, work, job);
	if (err)
		return -err;
	pthread_mutex_lock(&job->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	while (!job->done) {
		until.tv_sec++;
		if (pthread_cond_timedwait(&job->ended, &job->lock, &until) !=
		    ETIMEDOUT || !fancy || !before)
			continue;
		if (!brumm_group_current(job->group, &left) && left <= before) {
			fprintf(stderr, "\r%3u %% done",
				(unsigned int)((before - left) * 100 / before));
			drawn = true;
		}
	}
	pthread_mutex_unlock(&job->lock);
	pthread_join(thread, NULL);
	if (drawn)
		fputs("\r\033[K", stderr);
	return job->err;
}

static int report(const struct take_args *a, const struct job *job, uint64_t before,
		  uint64_t after, bool known, uint64_t predicted,
		  uint64_t measured)
{
	int status = take_status(a, job->ns);
	char t[4][16];

	if (a->group.json) {
		json_t *j = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
			"cgroup", a->group.name,
			"before_ns", cli_json_time(before),
			"after_ns", cli_json_time(after),
			"predicted_ns", known ? cli_json_time(predicted) : json_null(),
			"measured_ns", known ? cli_json_time(measured) : json_null(),
			"wall_ns", cli_json_time(job->ns),
			"limit_ns", cli_json_time(a->limit),
			"within_limit", status == EXIT_FINE);
		int ret = cli_print_json(j);

		return ret ? ret : status;
	}
	printf("%s: expected %s", a->group.name,
	       brumm_format_time(before, t[0], sizeof(t[0])));
	if (known)
		printf(", took %s in the kernel",
		       brumm_format_time(measured, t[1], sizeof(t[1])));
	printf(", %s altogether", brumm_format_time(job->ns, t[2], sizeof(t[2])));
	if (known && measured)
		printf(" (expected / measured %.2f)",
		       (double)predicted / (double)measured);
	if (after)
		printf("; %s is charged again",
		       brumm_format_time(after, t[3], sizeof(t[3])));
	putchar('\n');
	return cli_flush() ? EXIT_ERROR : status;
}

int cmd_reclaim(int argc, char **argv)
{
	struct take_args a = TAKE_ARGS_INIT;
	struct job job = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	uint64_t before = 0, after = 0, predicted = 0, measured = 0;
	bool known;
	int err, ret;

	cli_parse(&argp, argc, argv, &a);
	job.group = take_open(&a, &ret);
	if (job.group < 0)
		return ret;
	err = brumm_group_current(job.group, &before);
	if (!err)
		err = run(&job, before);
	if (err) {
		ret = cli_knob_failed(job.group, a.group.name, "brumm.reclaim", err);
		close(job.group);
		return ret;
	}
	brumm_group_current(job.group, &after);
	known = !brumm_group_stat_get(job.group, "last_reclaim_predicted_ns",
				      &predicted) &&
		!brumm_group_stat_get(job.group, "last_reclaim_measured_ns",
				      &measured);
	ret = report(&a, &job, before, after, known, predicted, measured);
	close(job.group);
	return ret;
}
