/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the launcher's side of start-up
 *
 * The server knows what each rank has said, and nothing of processes and descriptors.
 * Its owner gives it the frames that arrive, and sends the frames that it makes.
 */
#ifndef LIBSCI_TEAM_BOOT_SERVER_H
#define LIBSCI_TEAM_BOOT_SERVER_H

#include "libsci/team/boot_wire.h"

struct boot_server;

/**
 * struct boot_place - where a rank is
 * @host: number of the machine, from 0
 * @node: the node, or 0: not known
 */
struct boot_place {
	unsigned int host;
	unsigned int node;
};

/**
 * boot_send_fn - send a frame
 * @f: f->rank is the rank that gets it, or BOOT_ALL
 *
 * Frames must not overtake each other.  Ranks that are gone are skipped.
 */
typedef void boot_send_fn(void *arg, const struct boot_frame *f, const void *payload);

/**
 * boot_server_create() - a server for a job
 * @places: of @size ranks; copied
 *
 * Makes up the job's number and key.
 *
 * Return: 0; -EINVAL: no such size; -ENOMEM.
 */
int boot_server_create(struct boot_server **server, const struct boot_place *places,
		       unsigned int size, boot_send_fn *send, void *arg);
void boot_server_destroy(struct boot_server *server);

/**
 * boot_server_frame() - a frame from rank @f->rank has arrived
 *
 * Return: 0; 1 to 255: the rank asks to abort the job with this exit status;
 * -EPROTO: the rank does not keep to the protocol: end it; -ENOMEM.
 */
int boot_server_frame(struct boot_server *server, const struct boot_frame *f,
		      const void *payload);

/**
 * boot_server_ended() - a rank's process has ended
 *
 * Other ranks are notified of its death if it had joined and not left, or if @failed.
 */
void boot_server_ended(struct boot_server *server, unsigned int rank, bool failed);

uint64_t boot_server_job(const struct boot_server *server);

#endif
