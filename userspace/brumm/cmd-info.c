// SPDX-License-Identifier: GPL-2.0
/* brumm info: what works on this machine, and what to do where not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli.h"
#include "counted.h"
#include "guard/guard.h"

enum state { OK, NOTE, MISSING };

struct check {
	const char *name;
	const char *what;	/* it is needed for */
	bool needed;		/* nothing works without it */
	enum state state;
	char found[160];
	const char *remedy;
};

static void set(struct check *c, enum state state, const char *remedy,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void set(struct check *c, enum state state, const char *remedy,
		const char *fmt, ...)
{
	va_list ap;

	c->state = state;
	c->remedy = remedy;
	va_start(ap, fmt);
	vsnprintf(c->found, sizeof(c->found), fmt, ap);
	va_end(ap);
}

/* First line of a file, or NULL. */
static char *slurp(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	char *ok = f ? fgets(buf, (int)size, f) : NULL;

	if (f)
		fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

static bool has_word(const char *text, const char *word, const char *between)
{
	size_t len = strlen(word), n;

	for (; *text; text += n) {
		text += strspn(text, between);
		n = strcspn(text, between);
		if (n == len && !strncmp(text, word, len))
			return true;
	}
	return false;
}

static void check_module(struct check *c)
{
	char version[64];

	if (access("/sys/module/brumm", F_OK))
		set(c, MISSING, "modprobe brumm, or insmod build/RELEASE/brumm.ko",
		    "not loaded");
	else if (slurp("/sys/module/brumm/version", version, sizeof(version)))
		set(c, OK, NULL, "loaded, version %s", version);
	else
		set(c, OK, NULL, "loaded");
}

static void check_device(struct check *c)
{
	struct brumm_info info;
	int fd = brumm_open(0), err;

	if (fd < 0) {
		set(c, MISSING, fd == -EACCES ?
		    "run as root, or give the user access to " BRUMM_DEVICE :
		    "load the module; if it is loaded, see that devtmpfs is mounted on /dev",
		    "cannot be opened: %s", strerror(-fd));
		return;
	}
	err = brumm_info(fd, &info);
	close(fd);
	if (err)
		set(c, MISSING, "use library and module of one version",
		    "does not answer: %s", strerror(-err));
	else if (info.version != BRUMM_VERSION)
		set(c, NOTE, "use library and module of one version",
		    "interface %u, this program was built for %u", info.version,
		    BRUMM_VERSION);
	else
		set(c, OK, NULL, "interface %u, depth up to %u, %u nodes a batch",
		    info.version, info.max_depth, info.batch);
}

static void check_cgroup2(struct check *c)
{
	char path[PATH_MAX];

	if (brumm_cgroup_mount(path, sizeof(path)))
		set(c, MISSING, "boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none /sys/fs/cgroup",
		    "not mounted");
	else
		set(c, OK, NULL, "%.120s", path);
}

static char *root_file(const char *name, char *buf, size_t size)
{
	char path[PATH_MAX], full[PATH_MAX + 64];

	if (brumm_cgroup_mount(path, sizeof(path)))
		return NULL;
	snprintf(full, sizeof(full), "%s/%s", path, name);
	/* An empty file is an empty list. */
	if (access(full, R_OK))
		return NULL;
	if (!slurp(full, buf, size))
		*buf = '\0';
	return buf;
}

static void check_memory(struct check *c)
{
	char text[4096];

	if (!root_file("cgroup.controllers", text, sizeof(text)))
		set(c, MISSING, "mount cgroup v2 first", "no cgroup v2");
	else if (!has_word(text, "memory", " "))
		set(c, MISSING, "it is off (cgroup_disable=memory) or in the v1 hierarchy: boot with systemd.unified_cgroup_hierarchy=1",
		    "not in cgroup v2");
	else if (root_file("cgroup.subtree_control", text, sizeof(text)) &&
		 !has_word(text, "memory", " "))
		set(c, NOTE, "echo +memory > cgroup.subtree_control of the root; brumm and libcgroup do it when they make a cgroup",
		    "there, but off in the cgroups below the root");
	else
		set(c, OK, NULL, "on");
}

static void check_knobs(struct check *c)
{
	char text[4096];

	if (root_file("brumm.price", text, sizeof(text)))
		set(c, OK, NULL, "brumm.* in every cgroup with the memory controller");
	else if (access("/sys/module/brumm", F_OK))
		set(c, MISSING, "load the module", "none");
	else
		set(c, MISSING, "see the kernel log; the module needs kprobes to offer them",
		    "none, although the module is loaded");
}

static void check_kprobes(struct check *c)
{
	char text[64];

	if (slurp("/proc/sys/debug/kprobes-optimization", text, sizeof(text)) ||
	    !access("/sys/kernel/debug/kprobes", F_OK) ||
	    !access("/sys/bus/event_source/devices/kprobe", F_OK))
		set(c, OK, NULL, "there");
	else
		set(c, NOTE, "use a kernel with CONFIG_KPROBES, as Debian's are",
		    "not seen");
}

static void check_lockdown(struct check *c)
{
	char text[128], enforce[8];
	bool strict = slurp("/sys/module/module/parameters/sig_enforce",
			    enforce, sizeof(enforce)) && *enforce == 'Y';

	if (!slurp("/sys/kernel/security/lockdown", text, sizeof(text)))
		strcpy(text, "[none]");
	if (strstr(text, "[none]") && !strict)
		set(c, OK, NULL, "off, unsigned modules may be loaded");
	else
		set(c, NOTE, "sign the module with a key that the kernel trusts (mokutil), or switch Secure Boot off",
		    "%.80s%s", text,
		    strict ? ", modules must be signed" : "");
}

static void check_lsm(struct check *c)
{
	static char remedy[600];
	char boot[512];
	int active = guard_lsm(boot, sizeof(boot));

	snprintf(remedy, sizeof(remedy), "boot with lsm=%s", boot);
	if (active < 0)
		set(c, NOTE, "mount -t securityfs none /sys/kernel/security",
		    "unknown, securityfs is not mounted");
	else if (active)
		set(c, OK, NULL, "active");
	else
		set(c, NOTE, remedy, "not active");
}

static void check_guard(struct check *c)
{
	struct guard_state s;
	int err = guard_read(&s);

	if (err)
		set(c, NOTE, "run as root", "unknown: %s", strerror(-err));
	else if (s.nr == GUARD_NR)
		set(c, OK, NULL, "on, %u hooks", s.nr);
	else if (s.nr)
		set(c, NOTE, "brumm guard", "only %u of %u hooks are attached",
		    s.nr, (unsigned int)GUARD_NR);
	else
		set(c, NOTE, "brumm guard, or systemctl enable --now brumm-guard",
		    "off");
}

static void check_btf(struct check *c)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		set(c, NOTE, "use a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are",
		    "none of the kernel");
	else if (!access("/sys/module/brumm", F_OK) &&
		 access("/sys/kernel/btf/brumm", F_OK))
		set(c, NOTE, "build the module with make, which adds it",
		    "of the kernel, none of the module");
	else
		set(c, OK, NULL, "there");
}

static void check_rights(struct check *c)
{
	if (geteuid())
		set(c, NOTE, "run as root, to load the module and to set budgets",
		    "user %u", (unsigned int)geteuid());
	else
		set(c, OK, NULL, "root");
}

static struct check checks[] = {
	{ .name = "module", .what = "everything", .needed = true },
	{ .name = "device", .what = "windows", .needed = true },
	{ .name = "cgroup v2", .what = "budgets", .needed = true },
	{ .name = "memory controller", .what = "budgets", .needed = true },
	{ .name = "knobs", .what = "budgets", .needed = true },
	{ .name = "kprobes", .what = "loading the module" },
	{ .name = "lockdown", .what = "loading the module" },
	{ .name = "BPF LSM", .what = "refusing fork and mmap" },
	{ .name = "BTF", .what = "probes, refusing fork and mmap" },
	{ .name = "guard", .what = "refusing fork and mmap" },
	{ .name = "rights", .what = "setting budgets" },
};

static void (*const look[ARRAY_SIZE(checks)])(struct check *c) = {
	check_module, check_device, check_cgroup2, check_memory, check_knobs,
	check_kprobes, check_lockdown, check_lsm, check_btf,
	check_guard, check_rights,
};

static const char *const states[] = { "ok", "note", "missing" };

static void print_text(const char *release)
{
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
	bool fancy = cli_fancy(stdout);
	const struct check *c;
	size_t i;

	printf("kernel %s\n", release);
	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		c = &checks[i];
		printf("%s%-8s%s%-18s %s\n", fancy ? colours[c->state] : "",
		       states[c->state], fancy ? "\033[m" : "", c->name,
		       c->found);
		if (c->remedy)
			printf("%-8s%-18s (for %s) %s\n", "", "", c->what,
			       c->remedy);
	}
	counted_print(release);
}

static json_t *make_json(const char *release, bool usable)
{
	json_t *list = json_array();
	const struct check *c;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		c = &checks[i];
		json_array_append_new(list, json_pack(
			"{s:s, s:s, s:b, s:s, s:s, s:o}",
			"name", c->name, "for", c->what, "needed", c->needed,
			"state", states[c->state], "found", c->found,
			"remedy", c->remedy ? json_string(c->remedy) : json_null()));
	}
	return json_pack("{s:s, s:b, s:o, s:o}", "kernel", release, "usable", usable,
			 "checks", list, "counted", counted_json(release));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j':
		*(bool *)state->input = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s': no argument is expected", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Say what works on this machine, and what to do where something does "
	       "not; and how what tasks own is learned on this kernel.\vExit code 4 if something is missing without which nothing works.",
};

int cmd_info(int argc, char **argv)
{
	struct utsname un;
	bool json = false, usable = true;
	size_t i;
	int ret;

	cli_parse(&argp, argc, argv, &json);
	uname(&un);
	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		look[i](&checks[i]);
		usable &= !checks[i].needed || checks[i].state != MISSING;
	}
	if (json) {
		ret = cli_print_json(make_json(un.release, usable));
	} else {
		print_text(un.release);
		ret = cli_flush();
	}
	return ret ? ret : usable ? EXIT_FINE : EXIT_UNSUPPORTED;
}
