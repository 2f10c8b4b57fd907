// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../brumm/cli.h"
#include "proto.h"

/* The first line of an answer is never longer. */
#define MAX_LINE	2048

uint32_t proto_key(const struct config *c, uint32_t first, unsigned int j)
{
	uint32_t step = c->servers, low = first % step;
	/* Keys with the same remainder, in turn. */
	uint32_t n = (c->keys - low + step - 1) / step;

	return low + (first / step + j) % n * step;
}

size_t proto_room(const struct config *c, const struct keys *k,
		  const struct request *r)
{
	if (r->op == OP_SET)
		return PROTO_HEAD + k->key[r->key].value;
	return (size_t)PROTO_HEAD * c->multiget;
}

static size_t put(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return n;
}

static size_t write_set(const struct config *c, const struct keys *k,
			uint32_t key, uint64_t id, char *to)
{
	uint32_t size = k->key[key].value;
	char *at = to;

	at += put(at, c->text ? "set " : "ms ");
	at += keys_text(k, key, at);
	if (c->text)
		at += sprintf(at, " 0 0 %u\r\n", size);
	else
		at += sprintf(at, " %u O%lx\r\n", size, id);
	memcpy(at, keys_value(k, key), size);
	at += size;
	at += put(at, "\r\n");
	return (size_t)(at - to);
}

static size_t write_get(const struct config *c, const struct keys *k,
			uint32_t key, uint64_t id, char *to)
{
	unsigned int j;
	char *at = to;

	if (c->text)
		at += put(at, "get");
	for (j = 0; j < c->multiget; j++) {
		at += put(at, c->text ? " " : "mg ");
		at += keys_text(k, proto_key(c, key, j), at);
		if (!c->text)
			at += sprintf(at, " v O%lx\r\n", id);
	}
	if (c->text)
		at += put(at, "\r\n");
	return (size_t)(at - to);
}

size_t proto_write(const struct config *c, const struct keys *k,
		   const struct request *r, uint64_t id, char *to)
{
	if (r->op == OP_SET)
		return write_set(c, k, r->key, id, to);
	return write_get(c, k, r->key, id, to);
}

/* Words of one line. */
struct line {
	const char *at, *end;
};

static bool word(struct line *l, const char **text, size_t *size)
{
	while (l->at < l->end && *l->at == ' ')
		l->at++;
	*text = l->at;
	while (l->at < l->end && *l->at != ' ')
		l->at++;
	*size = (size_t)(l->at - *text);
	return *size > 0;
}

static bool is(const char *text, size_t size, const char *what)
{
	return size == strlen(what) && !memcmp(text, what, size);
}

static bool number(struct line *l, size_t *value)
{
	const char *text;
	size_t size, i;

	if (!word(l, &text, &size) || size > 9)
		return false;
	for (i = 0, *value = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*value = *value * 10 + (size_t)(text[i] - '0');
	}
	return true;
}

/* An opaque token among the flags that are left; others do not matter. */
static bool opaque(struct line *l, struct answer *a)
{
	const char *text;
	size_t size, i;
	char digits[17], *end;

	while (word(l, &text, &size)) {
		if (*text != 'O')
			continue;
		if (size < 2 || size > 17)
			return false;
		for (i = 1; i < size; i++)
			digits[i - 1] = text[i];
		digits[size - 1] = '\0';
		a->id = strtoul(digits, &end, 16);
		a->has_id = true;
		return !*end;
	}
	return true;
}

/* The first line says that a value follows. */
static bool value_line(struct line *l, bool meta, struct answer *a)
{
	size_t flags;

	a->kind = ANSWER_VALUE;
	if (meta)
		return number(l, &a->size) && opaque(l, a);
	return word(l, &a->key, &a->key_size) && number(l, &flags) &&
	       number(l, &a->size);
}

static bool short_line(struct line *l, const char *text, size_t size,
		       struct answer *a)
{
	static const struct {
		const char *word;
		enum answer_kind kind;
		bool meta;
	} known[] = {
		{ "EN", ANSWER_MISS, true },
		{ "HD", ANSWER_STORED, true },
		{ "NS", ANSWER_REFUSED, true },
		{ "END", ANSWER_END, false },
		{ "STORED", ANSWER_STORED, false },
		{ "NOT_STORED", ANSWER_REFUSED, false },
		{ "ERROR", ANSWER_REFUSED, false },
		{ "CLIENT_ERROR", ANSWER_REFUSED, false },
		{ "SERVER_ERROR", ANSWER_REFUSED, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (!is(text, size, known[i].word))
			continue;
		a->kind = known[i].kind;
		return !known[i].meta || opaque(l, a);
	}
	return false;
}

ssize_t proto_parse(const char *data, size_t size, struct answer *a)
{
	size_t limit = size < MAX_LINE ? size : MAX_LINE, n, head, whole;
	const char *end = memmem(data, limit, "\r\n", 2), *text;
	struct line l = { data, end };

	if (!end)
		return size >= MAX_LINE ? -EPROTO : 0;
	*a = (struct answer){ 0 };
	head = (size_t)(end - data) + 2;
	if (!word(&l, &text, &n))
		return -EPROTO;
	if (!is(text, n, "VA") && !is(text, n, "VALUE"))
		return short_line(&l, text, n, a) ? (ssize_t)head : -EPROTO;
	if (!value_line(&l, n == 2, a))
		return -EPROTO;
	whole = head + a->size + 2;
	if (size < whole)
		return 0;
	a->data = data + head;
	return memcmp(a->data + a->size, "\r\n", 2) ? -EPROTO : (ssize_t)whole;
}
