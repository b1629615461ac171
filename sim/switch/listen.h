/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sockets with a name
 *
 * A daemon locks the file NAME.lock while it runs. If no daemon has the lock of a socket, the
 * socket is that of a dead daemon, and a new daemon replaces it.
 */
#ifndef SIM_SWITCH_LISTEN_H
#define SIM_SWITCH_LISTEN_H

#include <stdbool.h>
#include <sys/un.h>

#include "sim/switch/loop.h"

struct answer;
struct fabric;

struct listener {
	struct watch watch;
	struct fabric *fabric;
	void (*accepted)(struct fabric *f, int fd);
	struct sockaddr_un address;
	char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	int lock;
	bool bound, paused;
};

void listener_init(struct listener *l);

/* Open a listener. @type: SOCK_SEQPACKET or SOCK_STREAM */
bool listener_open(struct fabric *f, struct listener *l, const char *path,
		   int type, void (*accepted)(struct fabric *f, int fd),
		   struct answer *a);
void listener_close(struct listener *l);	/* close it and remove its name */

/* Accept connections again after a lack of descriptors: a descriptor has been closed. */
void listener_resume(struct loop *loop, struct listener *l);

/* Make an address of a path. Return false if @path is too long. */
bool socket_address(struct sockaddr_un *sa, const char *path);

#endif
