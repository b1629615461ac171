/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the launcher's side of start-up
 *
 * The server keeps the state of each rank, but no processes and descriptors. The program that
 * creates the server passes all received frames to it, and sends the frames that it makes.
 */
#ifndef LIBSCI_TEAM_BOOT_SERVER_H
#define LIBSCI_TEAM_BOOT_SERVER_H

#include "libsci/team/boot_wire.h"

struct boot_server;

/**
 * struct boot_place - where a rank runs
 * @host: number of the machine, from 0
 * @node: number of the node; 0: unknown
 */
struct boot_place {
	unsigned int host;
	unsigned int node;
};

/**
 * boot_send_fn - send a frame
 * @f: f->rank is the receiver, or BOOT_ALL
 *
 * Frames must stay in order. Skip ranks that have ended.
 */
typedef void boot_send_fn(void *arg, const struct boot_frame *f, const void *payload);

/**
 * boot_server_create() - create a server for a job
 * @places: the places of @size ranks; copied
 *
 * The server chooses the job's number and key.
 *
 * Return: 0; -EINVAL: invalid @size; -ENOMEM.
 */
int boot_server_create(struct boot_server **server, const struct boot_place *places,
		       unsigned int size, boot_send_fn *send, void *arg);
void boot_server_destroy(struct boot_server *server);

/**
 * boot_server_frame() - handle a frame from rank @f->rank
 *
 * Return: 0; 1 to 256: the rank asks to abort the job with this exit status (256 for 0); -EPROTO:
 * the rank has violated the protocol, and the caller should end the rank; -ENOMEM.
 */
int boot_server_frame(struct boot_server *server, const struct boot_frame *f,
		      const void *payload);

/**
 * boot_server_ended() - handle the end of a rank's process
 * @failed: the process ended with an error
 *
 * The server reports the rank as dead if it had joined and not left, or if @failed. It ignores
 * another end of the same process.
 */
void boot_server_ended(struct boot_server *server, unsigned int rank, bool failed);

#endif
