// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the test guest.
 *
 * It stays the only init of the guest from the first instruction to power-off,
 * so that nothing of the host's user space has to work for a verdict to come
 * out. It reports on a serial port of its own (RESULT_TTY), one statement a
 * line; the host takes the absence of the last statement ("end") as a failure.
 * It judges nothing: it states facts, and the host compares them with what was
 * expected.
 *
 * Output of the command, and at the end the kernel log, travel on virtio ports
 * named in find_ports(). They are not ttys, so nothing is translated.
 *
 * /brumm/conf in the initramfs holds the orders, NUL-terminated "key=value"
 * records: see parse_conf().
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define RESULT_TTY	"/dev/ttyS1"
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"
#define MAX_WORDS	4096
#define RMMOD_WAIT_MS	3000

enum port { PORT_OUT, PORT_ERR, PORT_LOG, NR_PORTS };

static const char *const port_names[NR_PORTS] = {
	"brumm.stdout", "brumm.stderr", "brumm.log",
};

static struct {
	const char *cwd, *out, *module, *module_name, *module_args;
	const char *modules_dir, *release, *hostname;
	bool kmemleak, keep_module, merge;
	char *load[64], *tmpfs[8], *argv[MAX_WORDS], *env[MAX_WORDS];
	int n_load, n_tmpfs, n_arg, n_env, cpus;
} conf;

static int result_fd = -1;
static int port_fd[NR_PORTS] = { -1, -1, -1 };

/* ---- statements ------------------------------------------------------- */

static void write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		buf += n;
		len -= n;
	}
}

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	write_all(result_fd >= 0 ? result_fd : STDERR_FILENO, line, n);
}

static void __attribute__((noreturn)) power_off(void)
{
	if (result_fd >= 0)
		tcdrain(result_fd);
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* A guest that cannot be set up is the runner's problem, not the kernel's. */
#define die(fmt, ...) do {						\
	say("error " fmt ": %s", ##__VA_ARGS__, strerror(errno));	\
	power_off();							\
} while (0)

/* ---- small helpers ---------------------------------------------------- */

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int err;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return n < 0 ? -1 : 0;
}

static char *read_file(const char *path, size_t *len)
{
	size_t size = 0, room = 65536;
	char *buf = malloc(room);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 || !buf) {
		free(buf);
		return NULL;
	}
	while ((n = read(fd, buf + size, room - size - 1)) > 0) {
		size += n;
		if (room - size < 4096)
			buf = realloc(buf, room *= 2);
	}
	close(fd);
	buf[size] = '\0';
	if (len)
		*len = size;
	return buf;
}

static sigset_t child_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return set;
}

static void mkdirs(const char *path)
{
	char buf[4096];
	char *p;

	snprintf(buf, sizeof(buf), "%s", path);
	for (p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(buf, 0755);
		*p = '/';
	}
	mkdir(buf, 0755);
}

static void must_mount(const char *src, const char *dir, const char *type,
		       unsigned long flags, const char *data)
{
	mkdirs(dir);
	if (mount(src, dir, type, flags, data))
		die("mount %s (%s) on %s", src, type, dir);
}

/* For what a small kernel may lack: the command finds out if it needs it. */
static void try_mount(const char *type, const char *dir, const char *data)
{
	mkdir(dir, 0755);
	mount(type, dir, type, 0, data);
}

/* ---- orders ----------------------------------------------------------- */

static void parse_record(char *key)
{
	char *val = strchr(key, '=');

	if (!val)
		return;
	*val++ = '\0';
	if (!strcmp(key, "arg") && conf.n_arg < MAX_WORDS - 1)
		conf.argv[conf.n_arg++] = val;
	else if (!strcmp(key, "env") && conf.n_env < MAX_WORDS - 1)
		conf.env[conf.n_env++] = val;
	else if (!strcmp(key, "load") && conf.n_load < 64)
		conf.load[conf.n_load++] = val;
	else if (!strcmp(key, "tmpfs") && conf.n_tmpfs < 8)
		conf.tmpfs[conf.n_tmpfs++] = val;
	else if (!strcmp(key, "cwd"))
		conf.cwd = val;
	else if (!strcmp(key, "out"))
		conf.out = val;
	else if (!strcmp(key, "module"))
		conf.module = val;
	else if (!strcmp(key, "module_name"))
		conf.module_name = val;
	else if (!strcmp(key, "module_args"))
		conf.module_args = val;
	else if (!strcmp(key, "modules_dir"))
		conf.modules_dir = val;
	else if (!strcmp(key, "release"))
		conf.release = val;
	else if (!strcmp(key, "hostname"))
		conf.hostname = val;
	else if (!strcmp(key, "cpus"))
		conf.cpus = atoi(val);
	else if (!strcmp(key, "kmemleak"))
		conf.kmemleak = true;
	else if (!strcmp(key, "keep_module"))
		conf.keep_module = true;
	else if (!strcmp(key, "merge"))
		conf.merge = true;
	else
		say("error unknown order %s", key);
}

static void parse_conf(void)
{
	size_t len;
	char *buf = read_file("/brumm/conf", &len);
	char *p;

	if (!buf)
		die("read /brumm/conf");
	for (p = buf; p < buf + len; ) {
		char *next = p + strlen(p) + 1;

		parse_record(p);
		p = next;
	}
}

/* ---- set-up ----------------------------------------------------------- */

static void open_result(void)
{
	struct termios tio;

	result_fd = open(RESULT_TTY, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (result_fd < 0)
		return;
	if (!tcgetattr(result_fd, &tio)) {
		cfmakeraw(&tio);
		cfsetspeed(&tio, B115200);
		tcsetattr(result_fd, TCSANOW, &tio);
	}
}

static int load_module(const char *path, const char *args)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret, err;

	if (fd < 0)
		return -1;
	ret = syscall(SYS_finit_module, fd, args, 0);
	err = errno;
	close(fd);
	errno = err;
	return ret && errno != EEXIST ? -1 : 0;
}

static int open_port(const char *name, int mode)
{
	char path[512], dev[300];
	struct dirent *de;
	int fd = -1;
	DIR *dir = opendir("/sys/class/virtio-ports");

	if (!dir)
		return -1;
	while (fd < 0 && (de = readdir(dir))) {
		size_t len;
		char *text;

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
			 de->d_name);
		text = read_file(path, &len);
		if (text && len && !strncmp(text, name, len - 1) &&
		    strlen(name) == len - 1) {
			snprintf(dev, sizeof(dev), "/dev/%s", de->d_name);
			fd = open(dev, mode | O_CLOEXEC);
		}
		free(text);
	}
	closedir(dir);
	return fd;
}

/* The ports come up asynchronously, some time after the driver is there. */
static int wait_port(const char *name, int mode)
{
	long deadline = now_ms() + 20000;
	int fd;

	while ((fd = open_port(name, mode)) < 0) {
		if (now_ms() > deadline) {
			errno = ENODEV;
			die("virtio port %s", name);
		}
		sleep_ms(5);
	}
	return fd;
}

/*
 * The host writes to the control port when the time is up: then show what is
 * blocked and what the CPUs do. A thread, for the rest of us may be stuck in
 * the removal of the module, and a process would be killed with the command's.
 */
static void *answer_host(void *arg)
{
	int fd = (int)(long)arg;
	char order;

	while (read(fd, &order, 1) == 1) {
		write_file("/proc/sysrq-trigger", "w");
		write_file("/proc/sysrq-trigger", "l");
		say("dumped");
	}
	return NULL;
}

static void find_ports(void)
{
	pthread_t thread;
	long control;
	int i;

	for (i = 0; i < NR_PORTS; i++)
		port_fd[i] = wait_port(port_names[i], O_WRONLY);
	control = wait_port("brumm.control", O_RDONLY);
	if (pthread_create(&thread, NULL, answer_host, (void *)control))
		die("start a thread");
}

/*
 * The runner has an emulated kernel boot on one CPU: see kernel_args(). Bringing
 * up the others takes a while and is done beside the rest of the set-up.
 */
static pid_t start_cpus(void)
{
	pid_t child = fork();
	char path[64];
	int i;

	if (child < 0)
		die("fork");
	if (child)
		return child;
	for (i = 1; i < conf.cpus; i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/online", i);
		if (write_file(path, "1")) {
			say("error bring up CPU %d: %s", i, strerror(errno));
			_exit(1);
		}
	}
	_exit(0);
}

/*
 * The host's root, read-only, below a tmpfs that takes all writes; then make
 * it ours. The switch is a move and a chroot, not a pivot_root: the initramfs
 * cannot be pivoted away.
 */
static void enter_root(void)
{
	static const char *const keep[] = { "/proc", "/sys", "/dev" };
	char to[64];
	unsigned int i;

	must_mount("brumm-root", "/lower", "9p", MS_RDONLY,
		   "trans=virtio,version=9p2000.L,msize=512000,cache=loose");
	must_mount("tmpfs", "/upper", "tmpfs", 0, "mode=755,size=75%");
	mkdirs("/upper/data");
	mkdirs("/upper/work");
	must_mount("overlay", "/root", "overlay", 0,
		   "lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work");
	for (i = 0; i < sizeof(keep) / sizeof(*keep); i++) {
		snprintf(to, sizeof(to), "/root%s", keep[i]);
		mkdir(to, 0755);
		if (mount(keep[i], to, NULL, MS_MOVE, NULL))
			die("move %s into the new root", keep[i]);
	}
	if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		die("switch to the new root");
}

static void mount_shared(void)
{
	char dir[300];

	if (conf.out)
		must_mount("brumm-out", conf.out, "9p", 0,
			   "trans=virtio,version=9p2000.L,msize=512000,cache=mmap");
	if (conf.modules_dir) {
		snprintf(dir, sizeof(dir), "/lib/modules/%s", conf.release);
		must_mount(conf.modules_dir, dir, NULL, MS_BIND, NULL);
	}
}

static void mount_kernel_interfaces(void)
{
	char *modprobe = read_file("/proc/sys/kernel/modprobe", NULL);
	int i;

	/* A file system that is missing, or wants more, must not start modprobe. */
	write_file("/proc/sys/kernel/modprobe", "\n");

	for (i = 0; i < conf.n_tmpfs; i++)
		must_mount("tmpfs", conf.tmpfs[i], "tmpfs", 0,
			   strcmp(conf.tmpfs[i], "/tmp") ? "mode=755" : "mode=1777");
	mkdir("/run/lock", 01777);
	must_mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	must_mount("devpts", "/dev/pts", "devpts", 0,
		   "ptmxmode=0666,mode=0620,gid=5");
	try_mount("mqueue", "/dev/mqueue", NULL);
	try_mount("debugfs", "/sys/kernel/debug", NULL);
	try_mount("tracefs", "/sys/kernel/tracing", NULL);
	try_mount("securityfs", "/sys/kernel/security", NULL);
	try_mount("bpf", "/sys/fs/bpf", "mode=700");
	if (modprobe)
		write_file("/proc/sys/kernel/modprobe", modprobe);
	free(modprobe);
	if (symlink("/proc/self/fd", "/dev/fd") ||
	    symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") ||
	    symlink("/proc/self/fd/2", "/dev/stderr"))
		die("make /dev/fd and its friends");
}

static void setup_cgroups(void)
{
	static const char *const ctrl[] = {
		"+memory", "+pids", "+cpu", "+cpuset", "+io",
	};
	unsigned int i;

	must_mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	for (i = 0; i < sizeof(ctrl) / sizeof(*ctrl); i++)
		if (write_file("/sys/fs/cgroup/cgroup.subtree_control", ctrl[i]) &&
		    strcmp(ctrl[i], "+io"))
			die("enable the cgroup controller %s", ctrl[i] + 1);
}

static void setup_host(void)
{
	struct rlimit files = { 1024, 1 << 20 };
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		ifr.ifr_flags = IFF_UP | IFF_RUNNING;
		if (ioctl(fd, SIOCSIFFLAGS, &ifr))
			die("bring up the loopback interface");
		close(fd);
	}
	if (sethostname(conf.hostname, strlen(conf.hostname)))
		die("set the host name");
	setrlimit(RLIMIT_NOFILE, &files);
	/* From here on every kernel message goes to the console. */
	klogctl(8, NULL, 8);
}

/* ---- the command ------------------------------------------------------ */

static void __attribute__((noreturn)) exec_command(int out, int err)
{
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (null > 2)
		close(null);
	if (chdir(conf.cwd)) {
		dprintf(2, "vm init: cannot enter %s: %s\n", conf.cwd,
			strerror(errno));
		_exit(127);
	}
	execvpe(conf.argv[0], conf.argv, conf.env);
	dprintf(2, "vm init: cannot run %s: %s\n", conf.argv[0],
		strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/*
 * One round of relaying; true while there may be more to come right now. fds[2]
 * tells of dead children: no timed wake-ups, they would disturb measurements.
 */
static bool relay(struct pollfd *fds, int timeout)
{
	char buf[65536];
	struct signalfd_siginfo info;
	bool more = false;
	int i;

	if (poll(fds, 3, timeout) <= 0)
		return false;
	if (fds[2].revents)
		more = read(fds[2].fd, &info, sizeof(info)) > 0;
	for (i = 0; i < 2; i++) {
		ssize_t n;

		if (fds[i].fd < 0 || !fds[i].revents)
			continue;
		n = read(fds[i].fd, buf, sizeof(buf));
		if (n > 0) {
			write_all(port_fd[i], buf, n);
			more = true;
		} else if (n == 0) {
			close(fds[i].fd);
			fds[i].fd = -1;
		}
	}
	return more;
}

/*
 * Pipes, not the ports themselves: a port can be opened once only, and shell
 * scripts do write to /dev/stderr.
 */
static int run_command(void)
{
	int out[2], err[2] = { -1, -1 }, status = 0;
	struct pollfd fds[3];
	pid_t child, pid;
	bool done = false;
	sigset_t chld = child_signal();

	fds[2] = (struct pollfd){
		.fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK),
		.events = POLLIN,
	};
	if (fds[2].fd < 0)
		die("signalfd");
	if (pipe2(out, O_CLOEXEC) || (!conf.merge && pipe2(err, O_CLOEXEC)))
		die("make a pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child)
		exec_command(out[1], conf.merge ? out[1] : err[1]);
	close(out[1]);
	close(err[1]);
	fds[0] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = err[0], .events = POLLIN };
	while (!done) {
		int st;

		relay(fds, -1);
		while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
			if (pid == child) {
				status = st;
				done = true;
			}
		}
	}
	/* What it left running must not keep the module in use. */
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		relay(fds, 0);
	while (relay(fds, 0))
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* ---- checks ----------------------------------------------------------- */

static void say_number(const char *key, const char *path)
{
	char *text = read_file(path, NULL);

	if (text)
		say("%s %s", key, strtok(text, "\n"));
	free(text);
}

static void say_debug_locks(void)
{
	char *text = read_file("/proc/lockdep_stats", NULL);
	char *p = text ? strstr(text, "debug_locks:") : NULL;

	if (p)
		say("debug_locks %d", atoi(p + strlen("debug_locks:")));
	free(text);
}

static void kmemleak_order(const char *order)
{
	if (write_file(KMEMLEAK, order))
		die("kmemleak %s (is it in this kernel, and on?)", order);
}

/*
 * An object counts as leaked when a scan finds it unreferenced and it was five
 * seconds old when that scan began; hence two scans, far enough apart.
 */
static void kmemleak_check(const char *when)
{
	long start = now_ms();
	size_t len;
	char *text;

	kmemleak_order("scan");
	if (now_ms() - start < 6000)
		sleep_ms(6000 - (now_ms() - start));
	kmemleak_order("scan");
	text = read_file(KMEMLEAK, &len);
	if (!text)
		die("read %s", KMEMLEAK);
	say("kmemleak_%s %zu", when, len);
	if (len) {
		dprintf(port_fd[PORT_LOG], "@@kmemleak %s\n", when);
		write_all(port_fd[PORT_LOG], text, len);
	}
	free(text);
	/* The same leak must not be told twice. */
	kmemleak_order("clear");
}

static bool module_loaded(void)
{
	char path[300];

	snprintf(path, sizeof(path), "/sys/module/%s", conf.module_name);
	return !access(path, F_OK);
}

static void remove_module(void)
{
	long deadline = now_ms() + RMMOD_WAIT_MS;

	/* A test may have removed it itself. */
	while (module_loaded()) {
		if (!syscall(SYS_delete_module, conf.module_name, O_NONBLOCK))
			break;
		/* The last close of a file may still be on its way. */
		if ((errno != EAGAIN && errno != EBUSY) || now_ms() > deadline) {
			say("rmmod_failed %s", strerror(errno));
			break;
		}
		sleep_ms(20);
	}
}

/* Raw records: the host wants the sequence numbers, to notice lost ones. */
static void send_kernel_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char rec[8192];
	ssize_t n;

	if (fd < 0)
		die("open /dev/kmsg");
	dprintf(port_fd[PORT_LOG], "@@kmsg\n");
	for (;;) {
		n = read(fd, rec, sizeof(rec));
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		write_all(port_fd[PORT_LOG], rec, n);
	}
	close(fd);
	dprintf(port_fd[PORT_LOG], "@@end\n");
}

static void check(void)
{
	if (conf.kmemleak)
		kmemleak_check("loaded");
	if (conf.module && !conf.keep_module) {
		remove_module();
		if (conf.kmemleak)
			kmemleak_check("removed");
	}
	say_number("taint", "/proc/sys/kernel/tainted");
	say_number("warn_count", "/sys/kernel/warn_count");
	say_number("oops_count", "/sys/kernel/oops_count");
	say_debug_locks();
	send_kernel_log();
}

int main(void)
{
	sigset_t chld = child_signal();
	int i, code, status;
	pid_t cpus;

	/* Before there is a thread, which could take the signal and drop it. */
	sigprocmask(SIG_BLOCK, &chld, NULL);
	must_mount("proc", "/proc", "proc", 0, NULL);
	must_mount("sysfs", "/sys", "sysfs", 0, NULL);
	must_mount("devtmpfs", "/dev", "devtmpfs", 0, "mode=755");
	open_result();
	say("stage init");
	parse_conf();
	for (i = 0; i < conf.n_load; i++)
		if (load_module(conf.load[i], ""))
			die("load %s", conf.load[i]);
	say("stage drivers");
	find_ports();
	cpus = start_cpus();
	enter_root();
	say("stage root");
	mount_kernel_interfaces();
	mount_shared();
	say("stage mounts");
	setup_cgroups();
	setup_host();
	if (waitpid(cpus, &status, 0) != cpus || status)
		power_off();
	if (conf.kmemleak) {
		/* clear forgets what was reported, so have it reported first. */
		kmemleak_order("scan");
		kmemleak_order("clear");
	}
	if (conf.module && load_module(conf.module, conf.module_args)) {
		say("insmod_failed %s", strerror(errno));
		conf.module = NULL;
	} else {
		say("stage command");
		code = run_command();
		say("exit %d", code);
	}
	check();
	say("end");
	power_off();
}
