// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "../../brumm/whole.h"
#include "log.h"

struct header {
	char magic[8];
	uint32_t version, record;
	uint64_t records, start, length;
	uint32_t rank, zero[5];
};

struct record {
	uint64_t id, request, intended, sent, received;
	uint16_t server, connection;
	uint8_t op, leg, copy, status;
};

_Static_assert(sizeof(struct header) == 64, "as documented");
_Static_assert(sizeof(struct record) == 48, "as documented");

struct log {
	FILE *f;
	bool text;
	uint64_t records;
};

static void write_record(struct log *l, const struct record *r)
{
	struct record le = {
		htole64(r->id), htole64(r->request), htole64(r->intended),
		htole64(r->sent), htole64(r->received), htole16(r->server),
		htole16(r->connection), r->op, r->leg, r->copy, r->status,
	};

	l->records++;
	if (l->text)
		fprintf(l->f, "%lu,%lu,%lu,%lu,%lu,%u,%u,%u,%u,%u,%u\n", r->id,
			r->request, r->intended, r->sent, r->received, r->server,
			r->connection, r->op, r->leg, r->copy, r->status);
	else
		fwrite(&le, sizeof(le), 1, l->f);
}

static void write_request(struct log *l, const struct config *c,
			  const struct worker *w, uint32_t i,
			  const struct window *window)
{
	const struct plan *p = w->plan;
	const struct request *q = &p->request[i];
	struct record r = { .request = q->number, .intended = q->intended,
			    .op = q->op };
	uint32_t index = plan_copy(p, i, 0);
	const struct copy *copy;

	for (r.leg = 0; r.leg < p->legs; r.leg++) {
		for (r.copy = 0; r.copy < p->copies; r.copy++, index++) {
			copy = &p->copy[index];
			r.id = p->id + index;
			if (i < w->effort.began) {
				if (copy->status == COPY_NONE)
					continue;
				r.server = (uint16_t)(copy->connection % c->servers);
				r.connection = (uint16_t)worker_connection(w, copy->connection);
				r.sent = copy->sent;
				r.received = copy->received;
				r.status = copy->status;
			} else if (r.copy) {
				continue;
			} else {
				/* It was due, but was not come to. */
				r.server = (uint16_t)((q->key + r.leg) % c->servers);
				r.connection = (uint16_t)worker_connection(w,
					q->flow * c->servers + r.server);
				r.sent = 0;
				r.received = window->close;
				r.status = COPY_IN_FLIGHT;
			}
			write_record(l, &r);
		}
	}
}

static void write_header(struct log *l, const struct share *share,
			 const struct window *window)
{
	struct header h = {
		.magic = "brummlog", .version = htole32(1),
		.record = htole32(sizeof(struct record)),
		.records = htole64(l->records), .start = htole64(window->start),
		.length = htole64(window->end - window->start),
		.rank = htole32(share->rank),
	};

	if (l->text)
		fputs("id,request,intended,sent,received,server,connection,op,leg,copy,status\n",
		      l->f);
	else
		fwrite(&h, sizeof(h), 1, l->f);
}

static int write_all(struct log *l, const struct config *c,
		     const struct share *share, const struct worker *w,
		     const struct window *window)
{
	unsigned int t;
	uint32_t i;

	write_header(l, share, window);
	for (t = 0; t < c->threads; t++) {
		const struct plan *p = w[t].plan;

		for (i = 0; i < p->n && p->request[i].intended < window->end; i++)
			write_request(l, c, &w[t], i, window);
	}
	if (!l->text) {	/* now the number is known */
		if (fseek(l->f, 0, SEEK_SET))
			return -errno;
		write_header(l, share, window);
	}
	return 0;
}

static int log_name(char *name, size_t size, const char *path,
		    const struct share *share)
{
	size_t n = strlen(path);
	bool text = n >= 4 && !strcmp(path + n - 4, ".csv");
	int len;

	if (share->ranks == 1)
		len = snprintf(name, size, "%s", path);
	else
		len = snprintf(name, size, "%.*s.%u%s", (int)(text ? n - 4 : n),
			       path, share->rank, text ? ".csv" : "");
	return len < (int)size ? text : -ENAMETOOLONG;
}

int log_write(const char *path, const struct config *c, const struct share *share,
	      const struct worker *w, const struct window *window)
{
	struct log l = { 0 };
	struct whole file;
	char name[PATH_MAX];
	int err = log_name(name, sizeof(name), path, share);

	l.text = err > 0;
	if (err >= 0)
		err = whole_open(&file, name);
	if (!err) {
		l.f = file.f;
		err = whole_close(&file, write_all(&l, c, share, w, window));
	}
	if (err)
		cli_fail(err, "%s", path);
	return err;
}
