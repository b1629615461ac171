// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci run -n`: options, and the placement of ranks. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "launch.h"
#include "libsci/fabric/core/fabric.h"
#include "run.h"
#include "tool.h"

#define DEFAULT_NODES	16u		/* nodes of a virtual cluster (SCI_NODES) */

/* ---- hosts ---- */

static bool host_is_this_machine(const char *name)
{
	char self[256];

	if (!strcmp(name, "localhost"))
		return true;
	return !gethostname(self, sizeof(self)) && !strcmp(name, self);
}

/* Add "NAME" or "NAME:SLOTS". A repeated name adds slots; without a number, one. */
static void host_add(const struct tool_command *self, struct launch *l, char *word)
{
	char *colon = strrchr(word, ':');
	uint64_t slots = 0;
	struct launch_host *h;

	if (colon) {
		*colon = '\0';
		if (!tool_parse_number(colon + 1, 1, SCI_BOOT_RANKS_MAX, &slots))
			tool_usage(self, "'%s' is no number of slots", colon + 1);
		l->slots_given = true;
	}
	if (!*word || *word == '-')
		tool_usage(self, "'%s' is no name of a host", word);
	for (h = l->hosts; h < l->hosts + l->nhosts; h++)
		if (h->name ? !strcmp(h->name, word) : host_is_this_machine(word))
			break;
	if (h == l->hosts + l->nhosts) {
		l->nhosts++;
		h->name = host_is_this_machine(word) ? NULL : word;
		h->slots = (unsigned int)slots;
	} else {
		h->slots = (h->slots ? h->slots : 1) + (slots ? (unsigned int)slots : 1);
	}
}

static void hosts_parse(const struct tool_command *self, struct launch *l, char *list)
{
	size_t n = 2;
	char *word;

	for (const char *s = list; *s; s++)
		n += *s == ',';
	l->hosts = calloc(n, sizeof(*l->hosts));
	if (!l->hosts)
		exit(tool_error("out of memory"));
	while ((word = strsep(&list, ",")))
		host_add(self, l, word);
}

/* Treat this machine as @n hosts that share no memory: the clusters of --clusters. */
static void clusters_make(const struct tool_command *self, struct launch *l, unsigned int n)
{
	if (l->nhosts > 1)
		tool_usage(self, "--clusters is for one machine: each of --hosts is a cluster");
	if (!l->net && !l->gateways)
		tool_usage(self, "--clusters wants --gateways or --net, by which they are joined");
	l->hosts = calloc(n, sizeof(*l->hosts));
	if (!l->hosts)
		exit(tool_error("out of memory"));
	l->nhosts = n;
	l->clusters = true;
}

/* ---- placement ---- */

/* Divide the ranks among the hosts: by slots, in order, or evenly if no host has slots. */
static int hosts_place(struct launch *l)
{
	unsigned int host = 0, used = 0, slots = 0;

	for (unsigned int i = 0; l->slots_given && i < l->nhosts; i++) {
		l->hosts[i].slots += !l->hosts[i].slots;
		slots += l->hosts[i].slots;
	}
	if (l->slots_given && slots < l->size) {
		tool_error("%u ranks, but the hosts have %u slots (name them as HOST:SLOTS)",
			   l->size, slots);
		return -1;
	}
	for (unsigned int i = 0; i < l->size; i++) {
		if (!l->slots_given) {
			host = (unsigned int)((uint64_t)i * l->nhosts / l->size);
		} else if (used++ == l->hosts[host].slots) {
			host++;
			used = 1;
		}
		l->places[i].host = host;
		l->hosts[host].nranks++;
	}
	return 0;
}

static unsigned int first_node(void)
{
	const char *s = getenv("SCI_NODE");
	unsigned int node;

	return s && tool_parse_node(s, &node) ? node : SCI_NODE_STEP;
}

static int place_node(const struct launch *l, unsigned int h, unsigned int k)
{
	const struct launch_host *host = &l->hosts[h];

	if (!host->nnodes)
		return (int)(first_node() + SCI_NODE_STEP * (h * l->nodes + k));
	if (l->nodes == 1 && getenv("SCI_NODE") && l->nhosts == 1)
		return (int)first_node();
	if (k < host->nnodes)
		return (int)host->nodes[k];
	tool_error("%u nodes, but %s has %u adapters", l->nodes,
		   host->name ? host->name : "this machine", host->nnodes);
	return -1;
}

/* Set the cluster of the job. Between hosts, job_environment() appends "-" and the host's number. */
static int own_cluster_set(struct launch *l, const char *name)
{
	size_t len = strlen(name), suffix = 0;

	if (l->net || l->gateways)
		suffix = (size_t)snprintf(NULL, 0, "-%u", l->nhosts - 1);
	if (!len || len + suffix > TOOL_CLUSTER_MAX) {
		tool_error("the clusters of this job want a name of 1 to %u characters, not '%s'",
			   TOOL_CLUSTER_MAX - (unsigned int)suffix, name);
		return -1;
	}
	memcpy(l->own_cluster, name, len + 1);
	return 0;
}

/*
 * Give a job on virtual nodes a cluster of its own, unless the user names a cluster. Otherwise
 * two jobs would use the same nodes and segments.
 */
static int cluster_place(struct launch *l)
{
	const char *fabric = getenv("SCI_FABRIC");
	unsigned int nodes = (l->nodes + l->gateways) * l->nhosts;
	const char *name = l->cluster;
	char unique[32];
	uint64_t number;

	for (unsigned int i = 0; i < l->nhosts; i++) {
		if (!l->hosts[i].nnodes)
			continue;
		if (!l->gateways)
			return 0;
		tool_error("--gateways is for virtual clusters: set SCI_FABRIC=shm, or start `sci gateway` by hand");
		return -1;
	}
	if (nodes > DEFAULT_NODES && !getenv("SCI_NODES"))
		l->cluster_nodes = nodes;
	if (!name && fabric && !strncmp(fabric, "shm:", 4)) {
		if (!l->gateways)
			return 0;
		name = fabric + 4;
	}
	if (!name) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -1;
		snprintf(unique, sizeof(unique), "job-%016llx", (unsigned long long)number);
		name = unique;
	}
	if (own_cluster_set(l, name))
		return -1;
	if (l->failover) {
		tool_error("--failover wants adapters, or SCI_FABRIC=shm:NAME: each host has a cluster of its own");
		return -1;
	}
	return 0;
}

int launch_place(struct launch *l)
{
	unsigned int k[2] = { 0, 0 };	/* ranks placed on the current host; this host */
	int node;

	l->places = calloc(l->size, sizeof(*l->places));
	if (!l->places) {
		tool_error("out of memory");
		return -1;
	}
	if (hosts_place(l) || cluster_place(l))
		return -1;
	for (unsigned int i = 0; i < l->size; i++) {
		struct boot_place *p = &l->places[i];

		if (p->host != k[1])
			k[0] = 0;
		k[1] = p->host;
		node = place_node(l, p->host, (unsigned int)((uint64_t)k[0]++ * l->nodes /
							     l->hosts[p->host].nranks));
		if (node < 0)
			return -1;
		p->node = (unsigned int)node;
	}
	return 0;
}

/* ---- options ---- */

static void timeout_parse(const struct tool_command *self, struct launch *l)
{
	const char *s = getenv("SCI_HOSTS_TIMEOUT");
	uint64_t n = HOST_TIMEOUT;

	if (s && *s && (!tool_parse_number(s, 0, HOST_TIMEOUT_MAX, &n) ||
			(n && n < HOST_TIMEOUT_MIN)))
		tool_usage(self, "SCI_HOSTS_TIMEOUT wants 0, or %u to %u seconds, not '%s'",
			   HOST_TIMEOUT_MIN, HOST_TIMEOUT_MAX, s);
	l->timeout = (unsigned int)n;
}

int tool_launch(const struct tool_command *self, const struct run_options *o, char **argv)
{
	struct launch_host here = { 0 };
	struct launch l = {
		.size = (unsigned int)o->ranks,
		.nodes = (unsigned int)o->nodes,
		.tag = o->tag,
		.keep = o->keep,
		.pmix = o->pmix,
		.cluster = o->cluster,
		.net = o->net,
		.failover = o->failover,
		.preload = o->preload,
		.gateways = (unsigned int)o->gateways,
		.argv = argv,
		.hosts = &here,
		.nhosts = 1,
	};
	int ret;

	if (l.nodes > l.size)
		tool_usage(self, "%u ranks cannot be on %u nodes", l.size, l.nodes);
	if (o->bind && !strcmp(o->bind, "core"))
		l.bind = true;
	else if (o->bind && strcmp(o->bind, "none"))
		tool_usage(self, "--bind wants core or none, not '%s'", o->bind);
	if (o->hosts) {
		timeout_parse(self, &l);
		l.nhosts = 0;
		hosts_parse(self, &l, (char *)(uintptr_t)o->hosts);
	}
	if (o->clusters)
		clusters_make(self, &l, (unsigned int)o->clusters);
	if (l.pmix && l.nhosts > 1)
		tool_usage(self, "--pmix is for ranks on one machine (mpirun starts them on several)");
	if (l.nhosts > l.size)
		l.nhosts = l.size;
	if (l.net && strcmp(l.net, "tcp") && strncmp(l.net, "tcp:", 4))
		tool_usage(self, "--net wants tcp, tcp:INTERFACE or tcp:PREFIX, not '%s'", l.net);
	if (l.failover && (!l.net || l.gateways))
		tool_usage(self, "--failover wants --net without --gateways");
	if (l.gateways && !l.net && !l.clusters)
		tool_usage(self, "--gateways wants --clusters, or --hosts and --net");
	if ((l.net || l.gateways) && net_prepare(&l))
		return EXIT_CANNOT_RUN;
	ret = launch_front(&l);
	if (l.hosts != &here)
		free(l.hosts);
	return ret;
}
