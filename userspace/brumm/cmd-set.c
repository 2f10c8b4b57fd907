// SPDX-License-Identifier: GPL-2.0
/* brumm set: write knobs of a cgroup. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

struct args {
	char **words;
	int n;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_ARGS:
		a->words = state->argv + state->next;
		a->n = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		if (a->n < 3 || a->n % 2 == 0)
			argp_error(state, "a cgroup, and pairs of a key and a value");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "CGROUP KEY VALUE [KEY VALUE]...",
	.doc = "Set knobs of a cgroup, in this order, until one fails."
	       "\v"
	       "CGROUP is a path below the cgroup mount point, or a full path.\n\n"
	       "  max TIME     budget: what would exceed it is refused\n"
	       "  high TIME    crossing it is an event, nothing is refused\n"
	       "  lock 0|1     1: every further charge is refused\n"
	       "  mode MODE    off, audit, enforce or inherit: whether what tasks own counts\n"
	       "  price.KIND TIME  expected time for one lookup, map, pt or deep\n"
	       "  price default    inherit the prices\n\n"
	       "TIME is like 5000 (microseconds; of a price nanoseconds), 250us, 1.5ms or max.",
};

struct knob {
	const char *key;
	int (*set)(int group, uint64_t ns);
};

static const struct knob limits[] = {
	{ "max", brumm_group_set_max },
	{ "high", brumm_group_set_high },
};

/* Prices are in ns, where all other times are in us. */
static int parse_price(const char *value, uint64_t *ns)
{
	char text[64];
	size_t digits = strspn(value, "0123456789");

	if (digits && !value[digits] && digits < sizeof(text) - 3) {
		snprintf(text, sizeof(text), "%sns", value);
		value = text;
	}
	return brumm_parse_time(value, ns);
}

static int set_price(int group, const char *key, const char *value)
{
	uint64_t ns;
	int err;

	if (!strcmp(key, "price"))
		return strcmp(value, "default") ?
			       -EINVAL :
			       brumm_group_set_price(group, NULL, 0);
	err = parse_price(value, &ns);
	return err ? err : brumm_group_set_price(group, key + 6, ns);
}

static int set_lock(int group, const char *value)
{
	if (strcmp(value, "0") && strcmp(value, "1"))
		return -EINVAL;
	return brumm_group_lock(group, *value == '1');
}

/* Returns 1 for a key that there is not. */
static int set_one(int group, const char *key, const char *value)
{
	uint64_t ns;
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		if (strcmp(key, limits[i].key))
			continue;
		err = brumm_parse_time(value, &ns);
		return err ? err : limits[i].set(group, ns);
	}
	if (!strcmp(key, "lock"))
		return set_lock(group, value);
	if (!strcmp(key, "mode"))
		return brumm_group_write(group, "brumm.mode", value);
	if (!strcmp(key, "price") || !strncmp(key, "price.", 6))
		return set_price(group, key, value);
	return 1;
}

int cmd_set(int argc, char **argv)
{
	struct args a = { 0 };
	char knob[64];
	const char *key;
	int i, err, group, ret = EXIT_FINE;

	cli_parse(&argp, argc, argv, &a);
	group = cli_open_group(a.words[0]);
	if (group < 0)
		return EXIT_ERROR;
	for (i = 1; i < a.n && ret == EXIT_FINE; i += 2) {
		/* The name of the file will do as well. */
		key = a.words[i];
		if (!strncmp(key, "brumm.", 6))
			key += 6;
		err = set_one(group, key, a.words[i + 1]);
		if (err > 0) {
			cli_error("no key '%s'; there are max, high, lock, mode, price and price.KIND",
				  key);
			ret = EXIT_ERROR;
		} else if (err) {
			snprintf(knob, sizeof(knob), "brumm.%.*s",
				 (int)strcspn(key, "."), key);
			ret = cli_knob_failed(group, a.words[0], knob, err);
		}
	}
	if (ret != EXIT_FINE && i > 3)
		cli_error("what was given before '%s' is set", a.words[i - 2]);
	close(group);
	return ret;
}
