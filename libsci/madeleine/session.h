/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sessions
 *
 * The checked contents of a session file: processes, and channels with their members. All
 * processes of a session read the same file, so that they agree without a server.
 */
#ifndef LIBSCI_MADELEINE_SESSION_H
#define LIBSCI_MADELEINE_SESSION_H

#include <stdbool.h>

#include <ntbx.h>

enum def_kind { DEF_CHANNEL, DEF_VCHANNEL, DEF_XCHANNEL };

enum def_topology { TOPOLOGY_DEFAULT, TOPOLOGY_EMPTY, TOPOLOGY_FULL, TOPOLOGY_NODE };

/* A host of a network. @parameter: how processes of the host attach to the network, or NULL. */
struct network_host {
	char *name, *parameter;
};

struct network {
	char *name;
	int index;			/* in session.networks */
	bool sockets;			/* the network's dev is not SCI */
	p_tbx_slist_t hosts;		/* struct network_host; NULL: any host */
	enum def_topology topology;
};

/* A channel of any kind. */
struct def {
	enum def_kind kind;
	char *name;
	p_tbx_slist_t members;		/* p_ntbx_process_t, by local rank */
	p_tbx_slist_t parts;		/* struct def: of a vchannel or xchannel */
	p_tbx_slist_t subs;		/* char *: names of sub-channels of an xchannel */
	const struct network *network;	/* network of a DEF_CHANNEL */
	struct def *user;		/* vchannel or xchannel of which this is a part */
};

struct session {
	char *program;			/* NULL: the file names none */
	p_tbx_slist_t processes;	/* p_ntbx_process_t, by global rank */
	p_tbx_htable_t by_name;		/* processes by "host[number]" */
	p_tbx_slist_t networks;		/* struct network, by index */
	p_tbx_htable_t defs;		/* struct def */
	p_tbx_slist_t order;		/* @defs in the order of the file */
};

/* Read a session file. @nets: further network files, "FILE,FILE", or NULL. Errors are fatal. */
struct session *mad_session_read(const char *file, const char *nets);
void mad_session_free(struct session *s);

/* Return whether @d connects two processes directly, without a gateway. */
bool mad_session_connected(const struct def *d, p_ntbx_process_t a, p_ntbx_process_t b);
bool mad_session_member(const struct def *d, const ntbx_process_t *p);

/* Return the network of @d on which two connected processes reach each other. */
const struct network *mad_session_network(const struct def *d, p_ntbx_process_t a,
					  p_ntbx_process_t b);

/*
 * Compute the way of a message, which is a shortest path. Store the processes after @from, up to
 * and with @to, in @way, which has room for all members. If several processes can be the next
 * gateway, the ranks of @from and @to choose one process, so that these gateways share the pairs.
 * All processes compute the same way. Within one network the way is @to alone. Return: the length
 * of @way.
 */
int mad_session_way(const struct def *d, p_ntbx_process_t from, p_ntbx_process_t to,
		    p_ntbx_process_t *way);

const char *mad_session_parameter(const struct network *n, const char *host);

#endif
