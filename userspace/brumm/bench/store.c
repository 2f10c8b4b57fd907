// SPDX-License-Identifier: GPL-2.0
/*
 * Results on their way into a file.
 *
 * While a run is going on, PATH.partial grows by a line a result, each written
 * by one call: kill -9 loses at most the result being written. Its first line
 * is all but the results. At the end the whole object is written beside PATH
 * and takes its place, and the lines go. Without a path all stays in memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../whole.h"
#include "bench.h"

struct bench_store {
	json_t *all;
	json_t *keys;		/* of all results, to find them by */
	char *path;
	char *partial;
	int fd;			/* of the lines; -1: no file */
};

static json_t *list_of(const struct bench_store *s, bool baseline)
{
	return json_object_get(s->all, baseline ? "baselines" : "results");
}

static int write_all(int fd, const char *text, size_t n)
{
	ssize_t done;

	for (; n; text += done, n -= (size_t)done) {
		done = write(fd, text, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return -errno;
	}
	return 0;
}

static int write_line(struct bench_store *s, const json_t *j)
{
	char *text, *line;
	int n, err;

	if (s->fd < 0)
		return 0;
	text = json_dumps(j, JSON_COMPACT);
	if (!text)
		return -ENOMEM;
	n = asprintf(&line, "%s\n", text);
	free(text);
	if (n < 0)
		return -ENOMEM;
	err = write_all(s->fd, line, (size_t)n);
	free(line);
	return err;
}

static int write_head(struct bench_store *s)
{
	json_t *head = json_copy(s->all);
	int err;

	if (!head)
		return -ENOMEM;
	json_object_del(head, "results");
	json_object_del(head, "baselines");
	err = write_line(s, head);
	json_decref(head);
	return err;
}

static int write_result(struct bench_store *s, bool baseline, json_t *result)
{
	json_t *line = json_pack("{s:O}", baseline ? "baseline" : "result",
				 result);
	int err = line ? write_line(s, line) : -ENOMEM;

	json_decref(line);
	return err;
}

/* The lines anew, with all that is there already: what was torn goes. */
int bench_store_start(struct bench_store *s)
{
	char *temporary;
	json_t *result;
	size_t i, b;
	int err;

	if (!s->path)
		return 0;
	if (asprintf(&temporary, "%s.new", s->partial) < 0)
		return -ENOMEM;
	s->fd = whole_create(temporary, O_APPEND);
	err = s->fd < 0 ? s->fd : write_head(s);
	for (b = 0; b < 2; b++)
		json_array_foreach(list_of(s, b), i, result)
			err = err ? err : write_result(s, b, result);
	if (!err && rename(temporary, s->partial))
		err = -errno;
	free(temporary);
	return err;
}

static struct bench_store *store(const char *path)
{
	struct bench_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = -1;
	s->keys = json_object();
	if (path) {
		s->path = strdup(path);
		if (!s->path || asprintf(&s->partial, "%s.partial", path) < 0)
			s->partial = NULL;
		if (!s->partial) {
			bench_store_free(s);
			return NULL;
		}
	}
	return s;
}

void bench_store_free(struct bench_store *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	json_decref(s->all);
	json_decref(s->keys);
	free(s->path);
	free(s->partial);
	free(s);
}

/* Adds the lists of results to what there is, if they are not there. */
static int complete(struct bench_store *s)
{
	bool b;
	int i;

	for (i = 0; i < 2; i++) {
		b = i;
		if (!list_of(s, b) &&
		    json_object_set_new(s->all, b ? "baselines" : "results",
					json_array()))
			return -ENOMEM;
	}
	return 0;
}

/* Takes @head. */
int bench_store_new(const char *path, json_t *head, struct bench_store **to)
{
	struct bench_store *s = store(path);
	int err = s && head ? 0 : -ENOMEM;

	if (!s) {
		json_decref(head);
		return err;
	}
	s->all = head;
	if (!err)
		err = complete(s);
	/* What a run that was killed has left is not ours to overwrite. */
	if (!err && path && !access(s->partial, F_OK))
		err = -EEXIST;
	if (err)
		bench_store_free(s);
	else
		*to = s;
	return err;
}

/* A line of the lines; false: torn, and so the last one. */
static bool take_line(struct bench_store *s, const char *line)
{
	json_t *j = json_loads(line, 0, NULL), *result;
	bool fine = j;

	if (!s->all) {
		s->all = j;
		return fine && !complete(s);
	}
	result = json_object_get(j, "result");
	if (result)
		json_array_append(list_of(s, false), result);
	result = json_object_get(j, "baseline");
	if (result)
		json_array_append(list_of(s, true), result);
	json_decref(j);
	return fine;
}

static int read_lines(struct bench_store *s)
{
	FILE *f = fopen(s->partial, "re");
	char *line = NULL;
	size_t room = 0;

	if (!f)
		return -errno;
	while (getline(&line, &room, f) > 0 && take_line(s, line))
		;
	free(line);
	fclose(f);
	return s->all ? 0 : -EINVAL;
}

static int read_whole(struct bench_store *s)
{
	if (access(s->path, R_OK))
		return -errno;
	s->all = json_load_file(s->path, 0, NULL);
	return s->all ? complete(s) : -EINVAL;
}

static bool is_ours(const json_t *all)
{
	const char *schema = json_string_value(json_object_get(all, "schema"));

	return schema && !strcmp(schema, "brumm-bench/1");
}

struct key {
	char text[128];
};

static struct key key_of(const char *name, uint64_t size, uint64_t cpus,
			 uint64_t repeat)
{
	struct key key;

	snprintf(key.text, sizeof(key.text), "%s %llu %llu %llu", name,
		 (unsigned long long)size, (unsigned long long)cpus,
		 (unsigned long long)repeat);
	return key;
}

static uint64_t number(const json_t *result, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(result, key));
}

static int remember(struct bench_store *s, const json_t *result)
{
	const char *name = json_string_value(json_object_get(result, "bench"));
	struct key key = key_of(name ?: "?", number(result, "size"),
				number(result, "cpus"),
				number(result, "repeat"));

	return json_object_set_new(s->keys, key.text, json_true()) ?
	       -ENOMEM : 0;
}

static int remember_all(struct bench_store *s)
{
	json_t *result;
	size_t i, b;
	int err = 0;

	for (b = 0; b < 2; b++)
		json_array_foreach(list_of(s, b), i, result)
			err = err ? err : remember(s, result);
	return err;
}

/* From the lines if there are some: they are what was written last. */
int bench_store_resume(const char *path, struct bench_store **to)
{
	struct bench_store *s = store(path);
	int err;

	if (!s)
		return -ENOMEM;
	err = read_lines(s);
	if (err == -ENOENT)
		err = read_whole(s);
	if (!err && !is_ours(s->all))
		err = -EINVAL;
	if (!err)
		err = remember_all(s);
	if (err)
		bench_store_free(s);
	else
		*to = s;
	return err;
}

json_t *bench_store_all(const struct bench_store *s)
{
	return s->all;
}

bool bench_store_has(const struct bench_store *s, const struct bench_task *t)
{
	struct key key = key_of(t->bench->name, t->size, t->cpus, t->repeat);

	return json_object_get(s->keys, key.text);
}

/* Takes @result. */
int bench_store_add(struct bench_store *s, bool baseline, json_t *result)
{
	int err = write_result(s, baseline, result);

	if (!err)
		err = remember(s, result);
	if (json_array_append_new(list_of(s, baseline), result))
		err = -ENOMEM;
	return err;
}

/* Says whether all is there, and puts the file in its place. */
int bench_store_end(struct bench_store *s, bool all)
{
	int err = 0;

	if (json_object_set_new(s->all, "complete", json_boolean(all)))
		return -ENOMEM;
	if (!s->path)
		return 0;
	err = whole_json(s->path, s->all, JSON_INDENT(1));
	if (!err)
		unlink(s->partial);
	return err;
}
