/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A stretch of time in which each nanosecond belongs to one part: painted over, layer
 * by layer, so the parts cannot overlap, and add up to the whole.
 */
#ifndef BRUMM_MC_CANVAS_H
#define BRUMM_MC_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What delays a request; Documentation/abi/mc-json.md tells what each is. */
#define ATTR_PARTS(X)							\
	X(CLIENT_LAG, "client_lag")					\
	X(HEDGE, "hedge")						\
	X(NETWORK, "network")						\
	X(WAKE_UP, "wake_up")						\
	X(RUN_QUEUE, "run_queue")					\
	X(TEARDOWN, "teardown")						\
	X(BRUMM, "brumm")						\
	X(IRQ, "irq")							\
	X(SOFTIRQ, "softirq")						\
	X(IPI, "ipi")							\
	X(TLB, "tlb")							\
	X(PAGE_FAULT, "page_fault")					\
	X(MMAP_LOCK, "mmap_lock")					\
	X(BLOCKED, "blocked")						\
	X(STOPPED, "stopped")						\
	X(QUEUE, "queue")						\
	X(SERVER, "server")						\
	X(SEND, "send")							\
	X(GAP, "gap")							\
	X(CLIENT_RECEIVE, "client_receive")				\
	X(UNATTRIBUTED, "unattributed")

enum part {
#define PART(NAME, name) PART_##NAME,
	ATTR_PARTS(PART)
#undef PART
	PARTS,
};

#define PART_BIT(NAME)	(1u << PART_##NAME)

extern const char *const attr_part_names[PARTS];

/**
 * struct span - something that took from @start to @end, ns
 * @tid: the thread that it is about, or that ran meanwhile
 * @cpu: where
 * @type: enum attr_type
 * @flags: of a slice, as struct attr_record
 * @what: as struct attr_record; of a slice, index of who it is
 */
struct span {
	uint64_t start, end;
	uint32_t tid;
	uint16_t cpu;
	uint8_t type, flags;
	uint64_t what;
};

#define NO_CPU	UINT16_MAX

/**
 * struct piece - of a canvas
 * @part: what it counts as
 * @cpu: where the server's thread runs, or waits to; NO_CPU: neither
 * @tid: who is on that CPU; 0: nobody
 * @who: index of who that is, where it is not the server itself; 0: nobody
 */
struct piece {
	uint64_t start, end;
	enum part part;
	uint16_t cpu;
	uint32_t tid;
	uint32_t who;
};

struct canvas {
	struct piece *piece;
	size_t n;
	/* private */
	size_t size;
	struct piece *spare;
	size_t spare_size;
	bool failed;
};

/**
 * struct layer - spans to be painted over what is there
 * @part: what becomes of a piece under a span
 * @over: parts that are painted over, as bits
 * @by_cpu: only pieces with the span's CPU
 * @by_tid: only pieces with the span's thread
 * @matches: only if it says so; NULL: all
 * @paints: changes the piece, which has its new part already; NULL: nothing more
 */
struct layer {
	enum part part;
	unsigned int over;
	bool by_cpu, by_tid;
	bool (*matches)(const struct piece *p, const struct span *s);
	void (*paints)(struct piece *p, const struct span *s);
};

/* All of it @part. */
void canvas_begin(struct canvas *c, uint64_t start, uint64_t end, enum part part);
/* From @start to @end, whatever is there; at once if that is within the last piece. */
void canvas_set(struct canvas *c, const struct piece *p);
/* Spans in the order of their starts; of those that overlap, the first one counts. */
void canvas_layer(struct canvas *c, const struct layer *l, const struct span *s,
		  size_t n);
/* The same, of spans that are looked for, piece by piece. */
typedef const struct span *canvas_find(const void *arg, const struct piece *p, size_t *n);
void canvas_layer_found(struct canvas *c, const struct layer *l, canvas_find *find,
			const void *arg);
void canvas_free(struct canvas *c);

#endif /* BRUMM_MC_CANVAS_H */
