/* SPDX-License-Identifier: GPL-2.0 */
/* A memory service in a thread, upon a window that is only made up. */
#ifndef FAKE_SERVICE_H
#define FAKE_SERVICE_H

#include "server.h"

#define FAKE_PAGES 64

struct fake {
	struct brumm_server *server;
	char dir[64];
	char path[96];
	char control[96];
	/* Read by tests when the server is known to be idle. */
	volatile int map_error;
	volatile int unmap_error;
	volatile unsigned int maps, unmaps, zeroed, mapped, wrong;
};

int fake_start(struct fake *f, const struct brumm_server_config *config);
void fake_stop(struct fake *f);

#endif /* FAKE_SERVICE_H */
