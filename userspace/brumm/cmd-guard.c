// SPDX-License-Identifier: GPL-2.0
/* brumm guard: refuse what would exceed brumm.max, before it happens. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "guard/guard.h"

enum action { START, STATUS, STOP };

struct args {
	enum action action;
	bool json;
};

static const struct argp_option options[] = {
	{ "status", 's', NULL, 0,
	  "say whether it is on, and what it refused; exit code 1 if it is not", 0 },
	{ "stop", 'x', NULL, 0, "switch it off", 0 },
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 's':
	case 'x':
		if (a->action != START)
			argp_error(state, "only one of --status and --stop");
		a->action = key == 's' ? STATUS : STOP;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s': no argument is expected", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Switch on the guard: fork, exec, mmap and what else makes the clean-up "
	       "of a cgroup take longer is refused, before it happens, where brumm.max "
	       "would be exceeded and brumm.mode says enforce; where it says audit it "
	       "is let through and counted.\vThe guard is in the kernel: it stays on "
	       "until --stop, and the module stays loaded as long. Exit code 4 if this "
	       "kernel does not ask BPF programs.",
};

static const char *state_name(const struct guard_state *s)
{
	if (!s->nr)
		return "off";
	return s->nr == GUARD_NR ? "on" : "partly on";
}

static json_t *count_json(const struct guard_state *s, unsigned long long n)
{
	return s->counted ? json_integer((json_int_t)n) : json_null();
}

static int print_json(const struct guard_state *s)
{
	json_t *hooks = json_array();
	enum guard_hook h;

	for (h = 0; h < GUARD_NR; h++)
		json_array_append_new(hooks, json_pack(
			"{s:s, s:s, s:b, s:s, s:o, s:o}",
			"hook", guard_hooks[h].name,
			"about", guard_hooks[h].what,
			"attached", !!(s->attached & (1u << h)),
			"error", guard_hooks[h].error,
			"refused", count_json(s, s->counts[h].refused),
			"audited", count_json(s, s->counts[h].audited)));
	return cli_print_json(json_pack("{s:s, s:o}", "state", state_name(s),
					"hooks", hooks));
}

static int print_text(const struct guard_state *s)
{
	enum guard_hook h;

	printf("the guard is %s\n", state_name(s));
	if (s->counted)
		printf("%-8s %-8s %10s %10s  %s\n", "hook", "error", "refused",
		       "audited", "about");
	for (h = 0; s->counted && h < GUARD_NR; h++)
		printf("%-8s %-8s %10llu %10llu  %s%s\n", guard_hooks[h].name,
		       guard_hooks[h].error, s->counts[h].refused,
		       s->counts[h].audited, guard_hooks[h].what,
		       s->attached & (1u << h) ? "" : " (not attached)");
	return cli_flush();
}

static int failed(int err, const char *doing)
{
	if (err == -EACCES || err == -EPERM)
		cli_error("the guard cannot be %s: %s; remedy: run it as root, in no container",
			  doing, strerror(-err));
	else
		cli_error("the guard cannot be %s: %s", doing, strerror(-err));
	return EXIT_ERROR;
}

static int show(const struct args *a)
{
	struct guard_state s;
	int err = guard_read(&s), ret;

	if (err)
		return failed(err, "looked at");
	ret = a->json ? print_json(&s) : print_text(&s);
	if (ret)
		return ret;
	return a->action == STATUS && s.nr != GUARD_NR ? EXIT_ERROR : EXIT_FINE;
}

/* Why it did not start. */
static int cannot_start(int err, const char *why)
{
	switch (err) {
	case -ENOENT:
		cli_error("the module is not loaded; remedy: modprobe brumm");
		return EXIT_UNSUPPORTED;
	case -EOPNOTSUPP:
		cli_error("the kernel does not take the guard: %s; remedy: see BTF in brumm info; use module and tools of one version",
			  why ? why : "no reason given");
		return EXIT_UNSUPPORTED;
	}
	return failed(err, "switched on");
}

static int start(const struct args *a)
{
	char boot[512], *why = NULL;
	int err;

	if (!guard_lsm(boot, sizeof(boot))) {
		cli_error("this kernel does not ask BPF programs; remedy: boot it with lsm=%s (Debian: in GRUB_CMDLINE_LINUX of /etc/default/grub, then update-grub)",
			  boot);
		return EXIT_UNSUPPORTED;
	}
	err = guard_on(&why);
	if (err && err != -EALREADY) {
		int ret = cannot_start(err, why);

		free(why);
		return ret;
	}
	free(why);
	return show(a);
}

static int stop(const struct args *a)
{
	int err = guard_off();

	/* What is off already is what was asked for. */
	if (err && err != -ENOENT)
		return failed(err, "switched off");
	return show(a);
}

int cmd_guard(int argc, char **argv)
{
	struct args a = { 0 };

	cli_parse(&argp, argc, argv, &a);
	switch (a.action) {
	case STATUS:
		return show(&a);
	case STOP:
		return stop(&a);
	default:
		return start(&a);
	}
}
