// SPDX-License-Identifier: GPL-2.0
/* Parsing, ordering and pacing of teardowns. */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/stat.h>

#include "../../userspace/brumm/run/run.h"
#include "../../userspace/brumm/teardown/pacer.h"
#include "../../userspace/brumm/teardown/place.h"
#include "../../userspace/brumm/teardown/teardown.h"

#define MS	1000000u

static void stat_lines(void **state)
{
	static const char rest[] =
		" 7 42 42 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 4 0 987654 1000000 25 18446744073709551615 1 2 3 4 5 6 7 8 9 10 11 12 17 3 50 2 0 0 0\n";
	char text[400];
	struct task t;

	(void)state;
	snprintf(text, sizeof(text), "42 (a) R (b c) S%s", rest);
	assert_true(task_parse(text, &t));
	assert_int_equal(t.pid, 42);
	assert_int_equal(t.ppid, 7);
	assert_int_equal(t.state, 'S');
	assert_int_equal(t.threads, 4);
	assert_int_equal(t.policy, SCHED_RR);
	assert_int_equal(t.born, 987654);
	assert_int_equal(t.rss, 25 * sysconf(_SC_PAGESIZE));
	assert_string_equal(t.comm, "a) R (b c");
	snprintf(text, sizeof(text), "42 (\xff\n\033) D%s", rest);
	assert_true(task_parse(text, &t));
	assert_string_equal(t.comm, "???");
	snprintf(text, sizeof(text), "42 (%0100d) D%s", 0, rest);
	assert_true(task_parse(text, &t));
	assert_int_equal(strlen(t.comm), sizeof(t.comm) - 1);
	assert_false(task_parse("", &t));
	assert_false(task_parse("42 (x) S 7", &t));
	assert_false(task_parse("42 )x( S 7 1", &t));
}

static void own_process(void **state)
{
	struct task t;
	int fd;

	(void)state;
	assert_int_equal(task_read(getpid(), &t), 0);
	assert_int_equal(t.ppid, getppid());
	assert_true(t.rss > 0);
	fd = task_open(&t);
	assert_true(fd >= 0);
	close(fd);
	/* The same number, another process. */
	t.born--;
	assert_int_equal(task_open(&t), -ESRCH);
	assert_int_equal(task_read(0x7fffffff, &t), -ESRCH);
}

static void order(void **state)
{
	/* 1 <- 2 <- 3 <- 9, 1 <- 8; 20 and 21 each other's parent */
	struct task list[] = {
		{ .pid = 1, .ppid = 100 }, { .pid = 9, .ppid = 3 },
		{ .pid = 2, .ppid = 1 },   { .pid = 20, .ppid = 21 },
		{ .pid = 8, .ppid = 1 },   { .pid = 21, .ppid = 20 },
		{ .pid = 3, .ppid = 2 },
	};
	struct tasks t = { .list = list, .n = ARRAY_SIZE(list) };
	size_t i, j;

	(void)state;
	tasks_order(&t);
	for (i = 0; i < t.n; i++)
		for (j = i + 1; j < t.n; j++)
			if (list[i].pid < 20)
				assert_int_not_equal(list[j].ppid, list[i].pid);
	assert_int_equal(list[t.n - 1].pid, 1);
	tasks_order(&(struct tasks){ 0 });
}

static void inits(void **state)
{
	/* 2 <- init 3 <- 4 <- init 5 <- 6; 9 came into 3's namespace from outside */
	struct task list[] = {
		{ .pid = 2, .ppid = 1, .late = 3 },
		{ .pid = 3, .ppid = 2, .init = 2, .late = 4 },
		{ .pid = 4, .ppid = 3, .late = 5 },
		{ .pid = 9, .ppid = 1 },
		{ .pid = 5, .ppid = 4, .init = 3, .late = 6 },
		{ .pid = 6, .ppid = 5 },
	};
	static const pid_t want[] = { 6, 9, 5, 4, 3, 2 };
	struct tasks t = { .list = list, .n = ARRAY_SIZE(list) };
	size_t i;

	(void)state;
	tasks_order(&t);
	for (i = 0; i < t.n; i++)
		assert_int_equal(list[i].pid, want[i]);
}

static void newcomers(void **state)
{
	struct task then[] = { { .pid = 7, .born = 1 }, { .pid = 2, .born = 1 } };
	struct task now[] = {
		{ .pid = 2, .born = 1 }, { .pid = 3, .born = 2 }, { .pid = 7, .born = 3 },
	};
	struct tasks known = { .list = then, .n = ARRAY_SIZE(then) };
	struct tasks t = { .list = now, .n = ARRAY_SIZE(now) }, all = { 0 }, some;

	(void)state;
	tasks_subtract(&t, &known);
	assert_int_equal(t.n, 2);
	assert_int_equal(now[0].pid, 3);
	/* The same number, another process. */
	assert_int_equal(now[1].pid, 7);
	assert_int_equal(now[1].born, 3);
	some.list = calloc(1, sizeof(*some.list));
	assert_non_null(some.list);
	some.list->pid = 4;
	some.n = some.room = 1;
	tasks_append(&all, &some);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.list[0].pid, 4);
	assert_null(some.list);
	tasks_free(&all);
	tasks_subtract(&all, &known);
}

static void cpu_lists(void **state)
{
	static const char *const bad[] = { "", ",", "1,", "-1", "1-", "2-1", "a",
					   "1 2", "0x1", "1024", "1--2" };
	cpu_set_t set;
	size_t i;

	(void)state;
	assert_int_equal(parse_cpus("0-2,5\n", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 4);
	assert_true(CPU_ISSET(0, &set) && CPU_ISSET(2, &set) && CPU_ISSET(5, &set));
	assert_int_equal(parse_cpus("1023", &set), 0);
	assert_true(CPU_COUNT(&set) == 1 && CPU_ISSET(1023, &set));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (!parse_cpus(bad[i], &set))
			fail_msg("'%s' is a list of CPUs", bad[i]);
}

static void namespaces(void **state)
{
	int flags;

	(void)state;
	assert_int_equal(parse_namespaces("mnt,user", &flags), 0);
	assert_int_equal(flags, CLONE_NEWNS | CLONE_NEWUSER);
	assert_int_equal(parse_namespaces("ipc,uts,net,cgroup", &flags), 0);
	assert_int_equal(flags, CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
			 CLONE_NEWCGROUP);
	assert_int_equal(parse_namespaces("", &flags), -EINVAL);
	assert_int_equal(parse_namespaces("mnt,", &flags), -EINVAL);
	assert_int_equal(parse_namespaces("mn", &flags), -EINVAL);
	assert_int_equal(parse_namespaces("pid", &flags), -EINVAL);
}

/* A machine on which a unit takes @cost, whatever the pacer does. */
static size_t settle(struct pacer *p, uint64_t cost, uint64_t delay)
{
	size_t n = 0;
	int i;

	for (i = 0; i < 50; i++) {
		n = pacer_next(p);
		pacer_done(p, n, n * cost, n * cost, delay);
	}
	return n;
}

static void pace(void **state)
{
	struct pacer p;

	(void)state;
	pacer_init(&p, 1 * MS, 0);
	assert_int_equal(pacer_next(&p), 1);
	assert_int_equal(settle(&p, 100000, 0), 10);
	/* The rest is as long as the step. */
	assert_int_equal(p.rest, 1 * MS);
	/* What takes longer than a step is still done, one at a time. */
	assert_int_equal(settle(&p, 5 * MS, 0), 1);
	assert_true(settle(&p, 0, 0) >= 1);
	/* Nor is a first step that seems to cost nothing taken at its word. */
	pacer_init(&p, 1 * MS, 0);
	pacer_done(&p, 1, 1, 1 * MS, 0);
	assert_int_equal(pacer_next(&p), 2);
	pacer_init(&p, 1 * MS, 0);
	pacer_done(&p, 1, 0, 1 * MS, 0);
	assert_int_equal(pacer_next(&p), 1);
	assert_true(pacer_units(0) == 1 && pacer_units(5u << 20) == 6);
}

static void pace_by_delay(void **state)
{
	struct pacer p;
	size_t fine, worse;

	(void)state;
	pacer_init(&p, 0, 10 * MS);
	assert_true(p.step < 10 * MS);
	fine = settle(&p, 100000, 1 * MS);
	/* What fits into half of the bound, and not more, however well it goes. */
	assert_int_equal(fine, 50);
	assert_int_equal(p.rest, 0);
	/* Neither more nor less between a quarter of the bound and half of it. */
	assert_int_equal(settle(&p, 100000, 4 * MS), fine);
	worse = settle(&p, 100000, 30 * MS);
	assert_int_equal(worse, 1);
	assert_true(p.rest >= 10 * MS);
	assert_int_equal(settle(&p, 100000, 1 * MS), 50);
}

static void remedies(void **state)
{
	(void)state;
	assert_non_null(strstr(holder_remedy('D', "request_wait_answer [<0>] fuse_simple_request"),
			       "FUSE"));
	assert_non_null(strstr(holder_remedy('D', "percpu_rwsem_wait"), "fsfreeze"));
	assert_non_null(strstr(holder_remedy('D', "msleep"), "uninterruptibly"));
	assert_non_null(strstr(holder_remedy('S', "zap_pid_ns_processes"), "init"));
	assert_non_null(holder_remedy('?', ""));
}

#define NOBODY	65534

/* Of a user who has a session in @dir, and no other rights. */
static void log_in(char *dir, const char *of_another)
{
	CHECK(mkdtemp(dir));
	CHECK(!chdir(dir));
	if (!getuid()) {
		/* Only root can give away what is found there. */
		CHECK(!mkdir(of_another, 0755));
		CHECK(!chown(dir, NOBODY, NOBODY));
		CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
	}
}

/* The outcome of the only file that is there; "": of none. */
static const char *left(void)
{
	static char outcome[16];
	json_t *done = json_array(), *j;

	CHECK_RET(keep_restore_left(NULL, done), 0);
	CHECK(json_array_size(done) <= 1);
	j = json_object_get(json_array_get(done, 0), "outcome");
	snprintf(outcome, sizeof(outcome), "%s", json_string_value(j) ?: "");
	json_decref(done);
	return outcome;
}

/* What becomes of notes of cgroup 1, which no cgroup below the root has. */
static void note_is(const char *text, const char *want, bool stays)
{
	static const char path[] = "brumm/reap/cgroup-1";
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	if (strcmp(left(), want)) {
		fprintf(stderr, "# %s: not %s\n", text, want);
		_exit(1);
	}
	CHECK(!access(path, F_OK) == stays);
	CHECK(!stays || !unlink(path));
}

static void notes_left(void)
{
	char dir[] = "/tmp/brumm-notes-XXXXXX";
	struct target t = { .group = -1, .init_fd = -1, .init = 1, .ns = 1 };
	bool root = !getuid(), cgroups;
	int fd = brumm_group_open("/");
	struct keep *k;

	cgroups = fd >= 0;
	if (cgroups)
		close(fd);
	log_in(dir, "brumm");
	CHECK(dup2(open("/dev/null", O_RDWR), STDIN_FILENO) == STDIN_FILENO);
	unsetenv("XDG_RUNTIME_DIR");
	CHECK_RET(keep_open(&t, &k), -ENOENT);
	keep_close(k);
	/* Where there is no file, no other is closed. */
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	if (root) {
		CHECK_RET(keep_restore_left(NULL, NULL), -EPERM);
		CHECK(!rmdir("brumm"));
	}
	CHECK_RET(keep_open(&t, &k), 0);
	CHECK(!access("brumm/reap/pidns-1", F_OK));
	keep_close(k);
	CHECK(access("brumm/reap/pidns-1", F_OK));
	CHECK(!chmod("brumm", 0775));
	CHECK_RET(keep_restore_left(NULL, NULL), -EPERM);
	CHECK(!chmod("brumm", 0755) && !chmod("brumm/reap", 0702));
	CHECK_RET(keep_restore_left(NULL, NULL), -EPERM);
	CHECK(!chmod("brumm/reap", 0700));

	note_is("", "", false);
	note_is("{\"name\":\"/no/such", "", false);
	note_is("not JSON\n", "failed", true);
	note_is("{\"file\":\"pids.max\",\"old\":\"max\",\"set\":\"0\"}\n", "failed", true);
	note_is("{\"name\":\"/no/such\",\"cgroup_ns\":1}\n", "failed", true);
	note_is("{\"name\":\"/no/such\"}\n", cgroups ? "gone" : "failed", !cgroups);
	CHECK(!rmdir("brumm/reap") && !rmdir("brumm") && !rmdir(dir));
}
TEST(notes_left)

static bool runs_on(const cpu_set_t *set)
{
	cpu_set_t now;

	CHECK(!sched_getaffinity(0, sizeof(now), &now));
	return CPU_EQUAL(&now, set);
}

static void affinities(void)
{
	struct task me;
	struct tasks list = { .list = &me, .n = 1 };
	cpu_set_t all, one, other;
	json_t *threads;
	int cpu;

	CHECK_RET(task_read(getpid(), &me), 0);
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	if (CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&one);
	for (cpu = 0; !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	CPU_XOR(&other, &all, &one);
	threads = place_look(&list, &one, PLACE_CPUS);
	place_apply(threads, &one);
	CHECK(runs_on(&one));
	CHECK_RET(place_restore(threads), 0);
	CHECK(runs_on(&all));
	/* What somebody else has changed since stays. */
	place_apply(threads, &one);
	CHECK(!sched_setaffinity(0, sizeof(other), &other));
	CHECK_RET(place_restore(threads), 0);
	CHECK(runs_on(&other));
	json_decref(threads);
}
TEST(affinities)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_lines), cmocka_unit_test(own_process),
		cmocka_unit_test(order),      cmocka_unit_test(inits),
		cmocka_unit_test(newcomers),  cmocka_unit_test(cpu_lists),
		cmocka_unit_test(namespaces), cmocka_unit_test(pace),
		cmocka_unit_test(pace_by_delay), cmocka_unit_test(remedies),
		cmocka_unit_test(test_notes_left), cmocka_unit_test(test_affinities),
	};

	return RUN_TAP("teardown", tests);
}
