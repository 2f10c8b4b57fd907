// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "../mpi/plugin.h"
#include "ranks.h"

/* Exchanges by which two clocks are compared. */
#define ROUNDS		32
#define JOIN_PATIENCE	(30 * NSEC)
/* mpirun kills a second after it has asked to end. */
#define LAST_PATIENCE	(NSEC / 4)
#define POLL_US		200

enum tag {
	TAG_PING,
	TAG_PONG,
	TAG_OFFSET,
	TAG_READY,
	TAG_GO,
	TAG_RESULT,
	TAG_END,
};

struct offset {
	int64_t ns;
	uint64_t error;
};

/* ---- messages ------------------------------------------------------------ */

static bool given_up(uint64_t *until, uint64_t patience)
{
	uint64_t now = cli_now();

	if (cli_signal() && *until > now + patience)
		*until = now + patience;
	return now >= *until;
}

/* Sends, and waits until the buffer is free. */
static int send_to(struct ranks *r, unsigned int to, enum tag tag,
		   const void *data, size_t size, uint64_t until)
{
	void *handle = r->mpi->send(to, tag, data, size);

	if (!handle)
		return -EIO;
	while (!r->mpi->sent(handle)) {
		if (given_up(&until, LAST_PATIENCE))
			return cli_signal() ? -EINTR : -ETIMEDOUT;
		usleep(POLL_US / 10);
	}
	return 0;
}

/* Waits for a message of this size from anybody. @busy: do not sleep. */
static int receive_from(struct ranks *r, enum tag tag, unsigned int *from,
			void *data, size_t size, uint64_t until, bool busy)
{
	ssize_t n;

	while ((n = r->mpi->waiting(tag, from)) < 0) {
		if (given_up(&until, 0))
			return cli_signal() ? -EINTR : -ETIMEDOUT;
		if (!busy)
			usleep(POLL_US);
	}
	if ((size_t)n != size)
		return -EPROTO;
	return r->mpi->receive(*from, tag, data, size) ? -EIO : 0;
}

/* ---- joining ------------------------------------------------------------- */

/* By Open MPI, and by PMI (MPICH, Slurm). */
static bool launched(void)
{
	static const char *const sizes[] = {
		"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
	};
	const char *value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		value = getenv(sizes[i]);
		if (value && atoi(value) >= 1)
			return true;
	}
	return false;
}

/* Beside the program, as it is built; else where it is installed. */
static void *load(void)
{
	char self[PATH_MAX - 64], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *lib;
	char *slash;

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	snprintf(path, sizeof(path), "%s/" MPI_PLUGIN_FILE, self);
	/* Open MPI loads parts of itself, which look for its symbols. */
	lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (lib)
		return lib;
	snprintf(path, sizeof(path), "%s/../lib/brumm/" MPI_PLUGIN_FILE, self);
	return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static int load_plugin(struct ranks *r)
{
	void *lib = load();
	const char *why = lib ? NULL : dlerror();

	if (lib)
		r->mpi = dlsym(lib, MPI_PLUGIN_SYMBOL);
	if (r->mpi && r->mpi->version == MPI_PLUGIN_VERSION)
		return 0;
	r->mpi = NULL;
	cli_error("no MPI: %s; apt-get install libopenmpi-dev, make user; or use --no-mpi",
		  why ?: MPI_PLUGIN_FILE " is of another version");
	return -ENOSYS;
}

/* How far the clock of another rank is ahead of this one. */
static int compare_clock(struct ranks *r, unsigned int rank)
{
	struct offset best = { 0, UINT64_MAX };
	uint64_t before, after, there, until = cli_now() + JOIN_PATIENCE;
	unsigned int i, from;
	int err;

	for (i = 0; i < ROUNDS; i++) {
		before = cli_now();
		err = send_to(r, rank, TAG_PING, &i, sizeof(i), until);
		if (!err)
			err = receive_from(r, TAG_PONG, &from, &there,
					   sizeof(there), until, true);
		if (err)
			return err;
		after = cli_now();
		if (after - before >= best.error)
			continue;
		best.error = after - before;
		best.ns = (int64_t)(there - (before + (after - before) / 2));
	}
	best.error = (best.error + 1) / 2;
	if (best.error > r->error)
		r->error = best.error;
	return send_to(r, rank, TAG_OFFSET, &best, sizeof(best), until);
}

static int be_compared(struct ranks *r)
{
	uint64_t until = cli_now() + 10 * JOIN_PATIENCE, now;
	unsigned int i, round, from;
	struct offset o;
	int err = 0;

	for (i = 0; i < ROUNDS && !err; i++) {
		err = receive_from(r, TAG_PING, &from, &round, sizeof(round),
				   until, i > 0);
		now = cli_now();
		if (!err)
			err = send_to(r, 0, TAG_PONG, &now, sizeof(now), until);
	}
	if (!err)
		err = receive_from(r, TAG_OFFSET, &from, &o, sizeof(o), until,
				   false);
	if (err)
		return err;
	r->offset = o.ns;
	r->error = o.error;
	return 0;
}

int ranks_open(struct ranks *r, const struct config *c)
{
	unsigned int i;
	int err = 0;

	memset(r, 0, sizeof(*r));
	r->share.ranks = 1;
	if (c->no_mpi || !(c->mpi || launched()))
		return 0;
	if (load_plugin(r))
		return EXIT_UNSUPPORTED;
	if (r->mpi->start(&r->share.rank, &r->share.ranks) ||
	    r->share.ranks > MAX_RANKS) {
		cli_error("MPI cannot start; run it by mpirun");
		return EXIT_ERROR;
	}
	if (r->share.rank)
		err = be_compared(r);
	for (i = 1; !r->share.rank && i < r->share.ranks && !err; i++)
		err = compare_clock(r, i);
	if (err)
		cli_fail(err, "cannot compare the clocks of the ranks");
	return err ? EXIT_ERROR : 0;
}

/* MPI ends with all ranks or never: rank 0 knows whether all are there. */
static bool all_end(struct ranks *r, bool whole)
{
	uint64_t until = cli_now() + JOIN_PATIENCE;
	unsigned int i, from;

	if (r->share.rank)
		return !receive_from(r, TAG_END, &from, &whole, sizeof(whole),
				     until, false) && whole;
	whole = whole && !ranks_missing(r) && !cli_signal();
	for (i = 1; i < r->share.ranks; i++) {
		if (!r->missing[i] &&
		    send_to(r, i, TAG_END, &whole, sizeof(whole), until))
			whole = false;
	}
	return whole;
}

void ranks_close(struct ranks *r, bool whole)
{
	if (r->mpi && all_end(r, whole))
		r->mpi->end();
}

/* ---- starting together --------------------------------------------------- */

static unsigned int expected(const struct ranks *r)
{
	return r->share.ranks - 1 - ranks_missing(r);
}

static int lead_others(struct ranks *r, bool failed, uint64_t lead,
		       uint64_t patience, struct go *go)
{
	uint64_t until = cli_now() + patience;
	bool there[MAX_RANKS] = { false }, bad;
	unsigned int i, from, n;
	int err = 0;

	go->stop = failed;
	for (n = expected(r); n && !err; n--) {
		err = receive_from(r, TAG_READY, &from, &bad, sizeof(bad), until,
				   false);
		if (!err) {
			there[from] = true;
			go->stop |= bad;
		}
	}
	for (i = 1; i < r->share.ranks; i++)
		r->missing[i] |= !there[i];
	go->start = cli_now() + lead;
	for (i = 1; i < r->share.ranks; i++) {
		if (!r->missing[i] &&
		    send_to(r, i, TAG_GO, go, sizeof(*go), cli_now() + NSEC))
			r->missing[i] = true;
	}
	return cli_signal() ? -EINTR : 0;
}

static int follow(struct ranks *r, bool failed, uint64_t patience, struct go *go)
{
	uint64_t until = cli_now() + 2 * patience;
	unsigned int from;
	int err;

	err = send_to(r, 0, TAG_READY, &failed, sizeof(failed), until);
	if (!err)
		err = receive_from(r, TAG_GO, &from, go, sizeof(*go), until,
				   false);
	go->start += (uint64_t)r->offset;
	return err;
}

int ranks_ready(struct ranks *r, bool failed, uint64_t lead, uint64_t patience,
		struct go *go)
{
	if (r->share.rank)
		return follow(r, failed, patience, go);
	if (r->share.ranks > 1)
		return lead_others(r, failed, lead, patience, go);
	go->stop = failed;
	go->start = cli_now() + lead;
	return cli_signal() ? -EINTR : 0;
}

/* ---- results ------------------------------------------------------------- */

int ranks_send(struct ranks *r, const void *data, size_t size)
{
	return send_to(r, 0, TAG_RESULT, data, size, cli_now() + JOIN_PATIENCE);
}

static bool take_one(struct ranks *r, unsigned int from, size_t size,
		     bool (*take)(unsigned int from, const void *data,
				  size_t size, void *arg),
		     void *arg)
{
	void *data = malloc(size + 1);
	bool ok;

	ok = data && !r->mpi->receive(from, TAG_RESULT, data, size) &&
	     take(from, data, size, arg);
	free(data);
	return ok;
}

void ranks_collect(struct ranks *r, uint64_t patience,
		   bool (*take)(unsigned int from, const void *data, size_t size,
				void *arg),
		   void *arg)
{
	uint64_t until = cli_now() + patience;
	bool there[MAX_RANKS] = { false };
	unsigned int i, from, n = expected(r);
	ssize_t size;

	while (n && !given_up(&until, LAST_PATIENCE)) {
		size = r->mpi->waiting(TAG_RESULT, &from);
		if (size < 0) {
			usleep(POLL_US);
			continue;
		}
		there[from] = take_one(r, from, (size_t)size, take, arg);
		n--;
	}
	for (i = 1; i < r->share.ranks; i++)
		r->missing[i] |= !there[i];
}

unsigned int ranks_missing(const struct ranks *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < r->share.ranks; i++)
		n += r->missing[i];
	return n;
}

json_t *ranks_missing_json(const struct ranks *r)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < r->share.ranks; i++) {
		if (r->missing[i])
			json_array_append_new(list, json_integer((json_int_t)i));
	}
	return list;
}
