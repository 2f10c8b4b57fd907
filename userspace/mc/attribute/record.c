// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../../brumm/probe/loader.h"
#include "mcattr.skel.h"
#include "record.h"

#define RING_BYTES	(16u << 20)
#define MOST_RECORDS	(4ull << 20)
#define LINKS		80
#define FETCH_NS	20000000
/* How often it is looked in the end whether a record that was begun is there. */
#define LAST_LOOKS	100
#define LOOK_NS		1000000

/* The order matters: the first costs least, and tells most. */
static const struct way {
	const char *name, *tracepoints, *functions[2];
} ways[] = {
	{ "tp_btf+fentry", "tp_btf/", { "fentry/", "fexit/" } },
	{ "tp_btf+kprobe", "tp_btf/", { "kprobe/", "kretprobe/" } },
	{ "raw_tp+fentry", "raw_tp/", { "fentry/", "fexit/" } },
	{ "raw_tp+kprobe", "raw_tp/", { "kprobe/", "kretprobe/" } },
	{ "tp_btf", "tp_btf/", { NULL } },
	{ "raw_tp", "raw_tp/", { NULL } },
};

const char *const recorder_ways[] = {
	"tp_btf+fentry", "tp_btf+kprobe", "raw_tp+fentry", "raw_tp+kprobe", "tp_btf",
	"raw_tp", NULL
};

/* Without one of these tracepoints, what cannot be told; NULL: nothing can. */
static const struct {
	const char *tracepoint, *part;
} needed[] = {
	{ "sched_switch", NULL },
	{ "sched_waking", NULL },
	{ "tcp_probe", NULL },
	{ "tcp_rcv_space_adjust", NULL },
	{ "irq_handler_entry", "irq" },
	{ "local_timer_entry", "irq" },
	{ "call_function_entry", "ipi" },
	{ "tlb_flush", "tlb" },
	{ "softirq_entry", "softirq" },
	{ "contention_begin", "mmap_lock" },
	{ "net_dev_queue", "send" },
	{ "hrtimer_expire_entry", "gap" },
};

/**
 * struct recorder - what is attached, and what came
 * @way: how
 * @missing: names of parts, as keys
 * @positions: two pages of the ring, which begin with how far it was read and written
 * @nested: events that the kernel left out, and that are no loss
 * @fetcher: gets the records while all runs
 * @stop: tells it to end
 */
struct recorder {
	struct mcattr_bpf *skel;
	const struct way *way;
	struct bpf_link *links[LINKS];
	unsigned int nr_links;
	json_t *missing;
	struct ring_buffer *ring;
	char *positions;
	struct events events;
	struct recorder_losses losses;
	uint64_t missed, nested;
	pthread_t fetcher;
	bool fetching, stop;
};

static void miss(struct recorder *r, const char *part)
{
	json_object_set_new(r->missing, part, json_true());
}

/* ---- the tick ------------------------------------------------------------- */

static bool file_has(const char *path, const char *text)
{
	FILE *f = fopen(path, "re");
	char line[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

/* Address of a function of the kernel; 0: it does not say. */
static uint64_t symbol(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[256], one[128];
	uint64_t at, found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %*c %127s", &at, one) == 2 &&
		    !strcmp(one, name))
			found = at;
	if (f)
		fclose(f);
	return found;
}

/* Its handler, where ticks come exactly when they are due. */
static uint64_t tick(void)
{
	if (!file_has("/proc/timer_list", ".hres_active    : 1"))
		return 0;
	return symbol("tick_sched_timer") ?: symbol("tick_nohz_handler");
}

/* ---- attaching ------------------------------------------------------------ */

static bool starts_with(const char *text, const char *with)
{
	return with && !strncmp(text, with, strlen(with));
}

static bool is_of_module(const struct bpf_program *prog)
{
	return starts_with(bpf_program__section_name(prog), "raw_tp/brumm_");
}

static bool is_of_way(const struct bpf_program *prog, const struct way *way)
{
	const char *section = bpf_program__section_name(prog);

	return is_of_module(prog) || starts_with(section, way->tracepoints) ||
	       starts_with(section, way->functions[0]) ||
	       starts_with(section, way->functions[1]);
}

static bool has_tracepoint(const struct btf *btf, const char *name)
{
	char type[96];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
}

/* Loads those programs that can be attached to this kernel. */
static int choose(struct recorder *r, const struct way *way, const struct btf *btf)
{
	struct bpf_program *prog;
	size_t i;

	bpf_object__for_each_program(prog, r->skel->obj) {
		const char *section = bpf_program__section_name(prog);
		bool on = is_of_way(prog, way);

		if (on && !is_of_module(prog) &&
		    starts_with(section, way->tracepoints))
			on = has_tracepoint(btf, strchr(section, '/') + 1);
		bpf_program__set_autoload(prog, on);
	}
	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		if (has_tracepoint(btf, needed[i].tracepoint))
			continue;
		if (!needed[i].part)
			return -EOPNOTSUPP;
		miss(r, needed[i].part);
	}
	if (!way->functions[0])
		miss(r, "page_fault");
	return 0;
}

static int attach(struct recorder *r)
{
	struct bpf_program *prog;
	struct bpf_link *link;

	bpf_object__for_each_program(prog, r->skel->obj) {
		if (!bpf_program__autoload(prog))
			continue;
		if (r->nr_links == LINKS)
			return -E2BIG;
		link = bpf_program__attach(prog);
		/* The module need not be there. */
		if (!link && is_of_module(prog) && errno == ENOENT)
			continue;
		if (!link)
			return -errno;
		r->links[r->nr_links++] = link;
	}
	return 0;
}

static void detach(struct recorder *r)
{
	while (r->nr_links)
		bpf_link__destroy(r->links[--r->nr_links]);
}

static int name_ports(struct recorder *r, const struct recorder_options *o)
{
	uint8_t yes = 1;
	size_t i;
	int err = 0;

	for (i = 0; i < o->ports && !err; i++)
		err = bpf_map__update_elem(r->skel->maps.ports, &o->port[i],
					   sizeof(o->port[i]), &yes, sizeof(yes),
					   BPF_ANY);
	return err;
}

static int try_way(struct recorder *r, const struct recorder_options *o,
		   const struct way *way)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int err;

	loader_forget();
	json_object_clear(r->missing);
	if (!btf)
		return -EOPNOTSUPP;
	r->skel = mcattr_bpf__open();
	err = r->skel ? choose(r, way, btf) : -errno;
	btf__free(btf);
	if (!err) {
		r->skel->rodata->tick = tick();
		if (!r->skel->rodata->tick)
			miss(r, "gap");
		err = bpf_map__set_max_entries(r->skel->maps.ring,
					       o->ring ? o->ring : RING_BYTES);
	}
	if (!err)
		err = mcattr_bpf__load(r->skel);
	if (!err)
		err = name_ports(r, o);
	if (!err)
		err = attach(r);
	if (err) {
		detach(r);
		mcattr_bpf__destroy(r->skel);
		r->skel = NULL;
	}
	return err;
}

static int try_ways(struct recorder *r, const struct recorder_options *o, char **why)
{
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (o->way && strcmp(o->way, ways[i].name))
			continue;
		r->way = &ways[i];
		err = try_way(r, o, &ways[i]);
		if (!err)
			return 0;
		loader_note(why, ways[i].name, err);
		/* Neither of these is better one rung down. */
		if (err == -ENOMEM || (err == -EPERM && geteuid()))
			return err;
	}
	return -EOPNOTSUPP;
}

int recorder_open(const struct recorder_options *o, struct recorder **out, char **why)
{
	libbpf_print_fn_t old;
	struct recorder *r = calloc(1, sizeof(*r));
	int err;

	*why = NULL;
	if (!r)
		return -ENOMEM;
	r->missing = json_object();
	r->events.most = o->most ? o->most : MOST_RECORDS;
	old = loader_listen();
	err = try_ways(r, o, why);
	libbpf_set_print(old);
	if (err) {
		recorder_close(r);
		return err;
	}
	r->skel->bss->active = true;
	*out = r;
	return 0;
}

/* ---- fetching ------------------------------------------------------------- */

static int on_record(void *arg, void *data, size_t size)
{
	struct recorder *r = arg;

	events_add(&r->events, data, size);
	return 0;
}

/* Nobody is woken by a record: that would disturb whom it is about. */
static void *fetch(void *arg)
{
	const struct timespec pause = { .tv_nsec = FETCH_NS };
	struct recorder *r = arg;

	pthread_setname_np(pthread_self(), "brumm-attribute");
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		ring_buffer__consume(r->ring);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static size_t positions_size(void)
{
	return 2 * (size_t)sysconf(_SC_PAGESIZE);
}

/* Two programs look at each flush of the TLB: what one misses, the other has seen. */
static uint64_t missed_by_all(const struct recorder *r)
{
	struct bpf_program *prog;
	uint64_t missed = 0;

	bpf_object__for_each_program(prog, r->skel->obj)
		if (!strstr(bpf_program__section_name(prog), "/tlb_flush"))
			missed += loader_missed_by(prog);
	return missed;
}

int recorder_start(struct recorder *r)
{
	int err, fd = bpf_map__fd(r->skel->maps.ring);

	r->ring = ring_buffer__new(fd, on_record, r, NULL);
	if (!r->ring)
		return -errno;
	r->positions = mmap(NULL, positions_size(), PROT_READ, MAP_SHARED, fd, 0);
	if (r->positions == MAP_FAILED) {
		r->positions = NULL;
		return -errno;
	}
	r->missed = missed_by_all(r);
	err = -pthread_create(&r->fetcher, NULL, fetch, r);
	if (err)
		return err;
	r->fetching = true;
	__atomic_store_n(&r->skel->bss->recording, true, __ATOMIC_SEQ_CST);
	return 0;
}

static bool is_empty(const struct recorder *r)
{
	const uint64_t *read = (const uint64_t *)r->positions;
	const uint64_t *written = (const uint64_t *)(r->positions + positions_size() / 2);

	return __atomic_load_n(read, __ATOMIC_ACQUIRE) ==
	       __atomic_load_n(written, __ATOMIC_ACQUIRE);
}

/* What another CPU has not written to the end, yet, holds up all behind it. */
static void fetch_last(struct recorder *r)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	unsigned int i;

	for (i = 0; i < LAST_LOOKS; i++) {
		ring_buffer__consume(r->ring);
		if (is_empty(r))
			return;
		nanosleep(&pause, NULL);
	}
	r->losses.ring++;
}

/* What still ran on a CPU in the end. */
static void end_slice(struct recorder *r, unsigned int cpu, const struct attr_cpu *c,
		      uint64_t now)
{
	struct attr_slice s = {
		.r = { .start = c->since, .end = now, .tid = c->tid,
		       .cpu = (uint16_t)cpu, .type = ATTR_SLICE },
		.exits = c->exits,
	};
	struct attr_thread state;
	char path[64];
	FILE *f;

	if (!c->watched || !c->tid || !c->since || c->since >= now)
		return;
	if (!bpf_map__lookup_elem(r->skel->maps.threads, &s.r.tid, sizeof(s.r.tid),
				  &state, sizeof(state), 0))
		s.r.flags = ATTR_SERVER;
	snprintf(path, sizeof(path), "/proc/%u/comm", c->tid);
	f = fopen(path, "re");
	if (f && fgets(s.comm, sizeof(s.comm), f))
		s.comm[strcspn(s.comm, "\n")] = 0;
	if (f)
		fclose(f);
	events_add(&r->events, &s.r, sizeof(s));
}

/* What a thread was still at. */
static void end_thread(struct recorder *r, uint32_t tid, uint64_t since,
		       unsigned int type, uint64_t now)
{
	struct attr_record record = {
		.start = since, .end = now, .tid = tid, .type = (uint8_t)type,
	};

	if (since && since < now)
		events_add(&r->events, &record, sizeof(record));
}

static void end_threads(struct recorder *r, uint64_t now)
{
	const struct bpf_map *map = r->skel->maps.threads;
	uint32_t tid, *last = NULL;
	struct attr_thread t;

	while (!bpf_map__get_next_key(map, last, &tid, sizeof(tid))) {
		last = &tid;
		if (bpf_map__lookup_elem(map, &tid, sizeof(tid), &t, sizeof(t), 0))
			continue;
		end_thread(r, tid, t.fault, ATTR_FAULT, now);
		end_thread(r, tid, t.lock, (unsigned int)t.lock_type, now);
	}
}

static void end_operations(struct recorder *r, uint64_t now)
{
	const struct bpf_map *map = r->skel->maps.operations;
	uint32_t tid, *last = NULL;
	struct attr_operation o;

	while (!bpf_map__get_next_key(map, last, &tid, sizeof(tid))) {
		last = &tid;
		if (!bpf_map__lookup_elem(map, &tid, sizeof(tid), &o, sizeof(o), 0) &&
		    o.depth)
			end_thread(r, tid, o.since, ATTR_BRUMM, now);
	}
}

static void end_cpus(struct recorder *r, uint64_t now)
{
	unsigned int nr = (unsigned int)libbpf_num_possible_cpus(), i;
	struct attr_cpu *c = calloc(nr, sizeof(*c));
	uint32_t zero = 0;

	if (!c || bpf_map__lookup_elem(r->skel->maps.cpus, &zero, sizeof(zero), c,
				       nr * sizeof(*c), 0)) {
		r->losses.ring++;
		free(c);
		return;
	}
	for (i = 0; i < nr; i++) {
		struct attr_record lost = { .start = c[i].lost, .end = now,
					    .type = ATTR_LOST };

		end_slice(r, i, &c[i], now);
		if (c[i].lost)
			events_add(&r->events, &lost, sizeof(lost));
		r->losses.ring += c[i].losses;
		r->losses.orphans += c[i].orphans;
		r->losses.missed += c[i].missed;
		r->nested += c[i].nested;
	}
	free(c);
}

void recorder_stop(struct recorder *r)
{
	uint64_t missed, now;

	if (!r->fetching)
		return;
	/* Detaching can take long on a busy machine: that is for the end. */
	__atomic_store_n(&r->skel->bss->recording, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&r->skel->bss->active, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(r->fetcher, NULL);
	r->fetching = false;
	fetch_last(r);
	now = cli_now();
	end_cpus(r, now);
	end_threads(r, now);
	end_operations(r, now);
	missed = missed_by_all(r) - r->missed;
	r->losses.missed += missed > r->nested ? missed - r->nested : 0;
	r->losses.threads = r->skel->bss->no_room;
	r->losses.memory = r->events.refused;
	events_sort(&r->events);
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	recorder_stop(r);
	ring_buffer__free(r->ring);
	if (r->positions)
		munmap(r->positions, positions_size());
	detach(r);
	mcattr_bpf__destroy(r->skel);
	events_free(&r->events);
	json_decref(r->missing);
	free(r);
}

const struct events *recorder_events(const struct recorder *r)
{
	return &r->events;
}

struct recorder_losses recorder_losses(const struct recorder *r)
{
	return r->losses;
}

const char *recorder_way(const struct recorder *r)
{
	return r->way->name;
}

json_t *recorder_missing(const struct recorder *r)
{
	json_t *list = json_array(), *yes;
	const char *part;

	json_object_foreach(r->missing, part, yes)
		json_array_append_new(list, json_string(part));
	return list;
}
