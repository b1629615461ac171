/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: networks
 *
 * A network carries the fragments of messages. Fragments of one link arrive in order, at the
 * link of the same channel and sub-channel on the other side. Calls return 0 or -errno. A call
 * that waits for a process, or tests for a message, fails when the process dies.
 */
#ifndef LIBSCI_MADELEINE_NETWORK_H
#define LIBSCI_MADELEINE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mad_world;

/* One direction of a connection through gateways; see rail.h. */
struct mad_way {
	int via;			/* rank of the gateway next to this process */
	uint64_t tag;
	size_t credits;			/* blocks that may be sent now */
	struct way_piece *head, **tail;	/* pieces that wait for credits */
	void **reqs;			/* sends of blocks */
	size_t n, room;
};

struct mad_way *mad_way_new(uint32_t channel, int from, int to, uint32_t sub);

/* The network's part of a connection of one channel. */
struct mad_link {
	int rank;			/* global rank of the peer */
	uint32_t channel;
	uint32_t sub;
	int network;			/* index in session.networks */
	void *peer;			/* private to the network */
	struct mad_way *way;		/* through gateways; NULL: direct */
};

/* The place where the messages of a channel and sub-channel arrive. */
struct mad_inbox {
	uint32_t channel;
	uint32_t sub;
	bool ways;			/* some messages arrive through gateways */
	uint64_t networks;		/* bit mask of the rails that receive messages */
	unsigned int next;		/* process that the next test for a message checks */
	void *slots;			/* private to the network: for several rails */
};

struct mad_net {
	const char *name;

	/* Open the network and exchange addresses; a collective call. */
	int (*open)(struct mad_world *w);
	/* Close the network. Context: no process sends any more. */
	void (*close)(struct mad_world *w);

	/* Connect to process @rank. Context: that process connects to this one at the same time. */
	int (*connect)(struct mad_world *w, int network, int rank);
	/* Forward messages until stop(). Context: all channels are connected. */
	int (*start)(struct mad_world *w);
	void (*stop)(struct mad_world *w);

	/* Send a fragment. @buf may be reused on return. Wait only if there is no memory left. */
	int (*send)(struct mad_world *w, struct mad_link *l, const void *buf, size_t len);
	/* Begin to send a fragment from @buf. The receiver receives it into its final place. */
	int (*isend)(struct mad_world *w, struct mad_link *l, const void *buf, size_t len,
		     void **req);

	/* Wait until all bytes that were sent over a link have left this process. */
	int (*flush)(struct mad_world *w, struct mad_link *l);

	/*
	 * Receive the first fragment of the next message of any sender.
	 * Return: its length; -EAGAIN: there is no message, and @wait is false; another error:
	 * *@rank is a process that has died, or -1.
	 */
	long (*first)(struct mad_world *w, struct mad_inbox *in, void *buf, size_t size,
		      bool wait, int *rank);
	/* Receive the next fragment. Return: its length. */
	long (*recv)(struct mad_world *w, struct mad_link *l, void *buf, size_t size);
	/* Begin to receive a fragment of @len bytes into its final place. */
	int (*irecv)(struct mad_world *w, struct mad_link *l, void *buf, size_t len,
		     void **req);

	/* Wait for a request of irecv(). Return: 0; -EPROTO: another length has arrived. */
	int (*wait)(struct mad_world *w, void *req, size_t len);
	void (*progress)(struct mad_world *w);
};

/* Free an inbox. Context: the networks of the channel are closed. */
void gateway_inbox_free(struct mad_inbox *in);

extern const struct mad_net mad_net_msg;

#endif
