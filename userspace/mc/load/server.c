// SPDX-License-Identifier: GPL-2.0
/* Addresses of servers. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "../../brumm/cli.h"
#include "config.h"

#define DEFAULT_PORT	"11211"

static int parse_unix(const char *path, struct server *s)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&s->addr;

	if (!*path || strlen(path) >= sizeof(un->sun_path)) {
		cli_error("'%s': not the path of a Unix socket", path);
		return -EINVAL;
	}
	s->transport = TRANSPORT_UNIX;
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, path);
	s->len = sizeof(*un);
	snprintf(s->name, sizeof(s->name), "unix:%s", path);
	return 0;
}

/* "HOST", "HOST:PORT" or "[HOST]:PORT" into its parts. */
static int split(const char *text, char *host, size_t size, const char **port)
{
	const char *end, *colon = strrchr(text, ':');
	bool bracket = *text == '[';

	if (bracket) {
		end = strchr(++text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		*port = end[1] ? end + 2 : DEFAULT_PORT;
	} else {
		end = colon ? colon : text + strlen(text);
		*port = colon ? colon + 1 : DEFAULT_PORT;
	}
	if (end == text || (size_t)(end - text) >= size || !**port)
		return -EINVAL;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	return 0;
}

static int parse_inet(const char *text, enum transport transport,
		      struct server *s)
{
	bool udp = transport == TRANSPORT_UDP;
	struct addrinfo *list, hints = {
		.ai_socktype = udp ? SOCK_DGRAM : SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV,
	};
	const char *port;
	char host[96];
	int err;

	if (split(text, host, sizeof(host), &port)) {
		cli_error("'%s': not a server; name it HOST:PORT, udp:HOST:PORT or unix:PATH",
			  text);
		return -EINVAL;
	}
	err = getaddrinfo(host, port, &hints, &list);
	if (err) {
		cli_error("%s: %s", text, gai_strerror(err));
		return -EINVAL;
	}
	s->transport = transport;
	memcpy(&s->addr, list->ai_addr, list->ai_addrlen);
	s->len = list->ai_addrlen;
	snprintf(s->name, sizeof(s->name), "%s:%s%s%s:%s", udp ? "udp" : "tcp",
		 strchr(host, ':') ? "[" : "", host, strchr(host, ':') ? "]" : "",
		 port);
	freeaddrinfo(list);
	return 0;
}

uint16_t server_port(const struct server *s)
{
	if (s->addr.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&s->addr)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&s->addr)->sin_port);
}

int server_parse(const char *text, struct server *s)
{
	if (!strncmp(text, "unix:", 5))
		return parse_unix(text + 5, s);
	if (*text == '/')
		return parse_unix(text, s);
	if (!strncmp(text, "udp:", 4))
		return parse_inet(text + 4, TRANSPORT_UDP, s);
	if (!strncmp(text, "tcp:", 4))
		text += 4;
	return parse_inet(text, TRANSPORT_TCP, s);
}
