// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Addresses by which ranks of different clusters reach each other. Each host is a cluster.
 *
 *	--net			each endpoint of a rank listens on a port of its host
 *	--net --failover	... and messages use the fabric of the hosts while it has a link
 *	--net --gateways N	N gateways of each host listen, the ranks do not
 *	--gateways N		N gateways are in the clusters of all hosts, which are on
 *				this machine; no process listens
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "launch.h"
#include "libsci/fabric/core/fabric.h"
#include "tool.h"

int net_prepare(struct launch *l)
{
	uint8_t random[34];

	if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
		tool_error("no random numbers for a key");
		return -1;
	}
	for (unsigned int i = 0; i < 32; i++)
		snprintf(l->net_key + 2 * i, 3, "%02x", random[i]);
	l->net_port = NET_PORT_FIRST + ((unsigned int)random[32] << 8 | random[33]) % NET_PORTS;
	return 0;
}

static const char *net_host(const struct launch_host *h)
{
	static char self[256];

	if (h->name)
		return h->name;
	if (!*self && gethostname(self, sizeof(self) - 1))
		strcpy(self, "localhost");
	return self;
}

/* Return the number of ports for @ranks: each endpoint of a rank listens on a port. */
static unsigned int rank_ports(unsigned int ranks)
{
	return ranks < NET_PORTS_MAX / NET_ENDPOINTS ? ranks * NET_ENDPOINTS : NET_PORTS_MAX;
}

/*
 * Return the number of ports of each host. It suffices for the ranks of a host. It suffices for all
 * ranks, because other programs may use some of the ports, unless the hosts would share ports.
 */
static unsigned int net_ports(const struct launch *l)
{
	unsigned int ports = rank_ports(l->size), share = NET_PORTS / l->nhosts, ranks = 0;

	if (l->gateways)
		return l->gateways;
	if (ports <= share)
		return ports;
	for (unsigned int i = 0; i < l->nhosts; i++)
		if (l->hosts[i].nranks > ranks)
			ranks = l->hosts[i].nranks;
	ports = rank_ports(ranks);
	return ports > share ? ports : share;
}

static unsigned int host_number(const struct launch *l, const struct launch_host *h)
{
	return (unsigned int)(h - l->hosts);
}

/*
 * Return the first port of @h. Hosts have different ports, because two may be names of one machine;
 * but if their ranks need more than NET_PORTS, some hosts have the same ports.
 */
static unsigned int net_port(const struct launch *l, const struct launch_host *h)
{
	unsigned int first = l->net_port - NET_PORT_FIRST + host_number(l, h) * net_ports(l);

	return NET_PORT_FIRST + first % NET_PORTS;
}

/* Print the address on which @h listens, with @ports ports from number @at on. */
static void net_listen_print(const struct launch *l, const struct launch_host *h,
			     unsigned int at, unsigned int ports, FILE *f)
{
	bool plain = !strcmp(l->net, "tcp");

	fprintf(f, "%s%s:%u+%u", plain ? "tcp:" : l->net, plain ? net_host(h) : "",
		net_port(l, h) + at, ports);
}

static bool node_is_known(const struct launch *l, unsigned int rank)
{
	for (unsigned int i = 0; i < rank; i++)
		if (l->places[i].node == l->places[rank].node)
			return true;
	return false;
}

/* Return the node id of gateway @g of @h. Gateways follow the nodes of all ranks. */
static unsigned int gateway_node(const struct launch *l, const struct launch_host *h,
				 unsigned int g)
{
	unsigned int last = 0;

	for (unsigned int i = 0; i < l->size; i++)
		if (l->places[i].node > last)
			last = l->places[i].node;
	if (!l->net)
		h = l->hosts;
	return last + SCI_NODE_STEP * (1 + host_number(l, h) * l->gateways + g);
}

/* Print routes to the nodes of other hosts through the gateways of @of; NULL: of these hosts. */
static void net_via_print(const struct launch *l, const struct launch_host *h,
			  const struct launch_host *of, FILE *f)
{
	for (unsigned int i = 0; i < l->size; i++) {
		const struct launch_host *to = &l->hosts[l->places[i].host];

		if (to == h || node_is_known(l, i))
			continue;
		for (unsigned int g = 0; g < l->gateways; g++)
			fprintf(f, "%u=via:%u,", l->places[i].node,
				gateway_node(l, of ? of : to, g));
	}
}

static void net_peers_print(const struct launch *l, const struct launch_host *h, FILE *f)
{
	for (unsigned int i = 0; i < l->size; i++) {
		const struct launch_host *to = &l->hosts[l->places[i].host];

		if (to == h || node_is_known(l, i))
			continue;
		if (l->failover)
			fprintf(f, "%u=sci,", l->places[i].node);
		fprintf(f, "%u=%s:%u+%u,", l->places[i].node, net_host(to), net_port(l, to),
			net_ports(l));
	}
}

int net_environment(const struct launch *l, const struct launch_host *h, char **env,
		    unsigned int *n)
{
	char *peers = NULL, *listen = NULL;
	size_t len;
	FILE *f = open_memstream(&peers, &len);
	int ret;

	if (!f)
		return -ENOMEM;
	fputs("SCI_NET_PEERS=", f);
	if (l->gateways)
		net_via_print(l, h, h, f);
	else
		net_peers_print(l, h, f);
	ret = fclose(f);
	env[(*n)++] = peers;
	f = open_memstream(&listen, &len);
	if (!f)
		return -ENOMEM;
	fputs("SCI_NET=", f);
	if (l->gateways)
		fputs("sci", f);
	else
		net_listen_print(l, h, 0, net_ports(l), f);
	ret |= fclose(f);
	env[(*n)++] = listen;
	ret |= asprintf(&env[(*n)++], "SCI_NET_KEY=hex:%s", l->net_key) < 0;
	return ret || !peers || !listen ? -ENOMEM : 0;
}

/* ---- gateways ---- */

static void gateway_print(const struct launch *l, const struct launch_host *h,
			  unsigned int g, FILE *f)
{
	fprintf(f, "%u ", gateway_node(l, h, g));
	if (!l->net) {
		fputs("sci -", f);
		for (unsigned int i = 0; i < l->nhosts; i++)
			fprintf(f, " shm:%s-%u", l->own_cluster, i);
		return;
	}
	net_listen_print(l, h, g, 1, f);
	fputc(' ', f);
	net_via_print(l, h, NULL, f);
	for (unsigned int i = 0; i < l->nhosts; i++)
		for (unsigned int k = 0; k < l->gateways && &l->hosts[i] != h; k++)
			fprintf(f, "%u=%s:%u+1,", gateway_node(l, &l->hosts[i], k),
				net_host(&l->hosts[i]), net_port(l, &l->hosts[i]) + k);
	fprintf(f, " shm:%s-%u", l->own_cluster, host_number(l, h));
}

char **net_gateways(const struct launch *l, const struct launch_host *h)
{
	char **all = calloc(l->gateways + 1, sizeof(*all));
	size_t len;

	/* without --net, the first host starts all gateways */
	for (unsigned int g = 0; all && g < l->gateways && (l->net || h == l->hosts); g++) {
		FILE *f = open_memstream(&all[g], &len);

		if (!f)
			break;
		gateway_print(l, h, g, f);
		fclose(f);
	}
	return all;
}
