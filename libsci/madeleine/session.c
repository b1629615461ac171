// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Convert the objects of a session file to processes and channels. */
#include <assert.h>
#include <libgen.h>

#include "libsci/madeleine/internal.h"

#define PROCESSES_MAX	65536

/* ---- networks ---- */

static enum def_topology network_get_topology(struct config *net)
{
	static const char *const names[] = { "default", "empty", "full", "node" };
	struct config *t = mad_config_get(net, "topology");
	const char *type = t ? mad_config_text(mad_config_get(t, "type")) : "default";

	for (int i = 0; type && i < 4; i++)
		if (!strcmp(type, names[i]))
			return (enum def_topology)i;
	mad_config_failure(t, "there is no topology %s", type ? type : "without a type");
}

static void network_hosts(struct network *n, struct config *hosts)
{
	struct config *h;

	for (long i = 0; hosts && (h = mad_config_item(hosts, i)); i++) {
		bool table = h->kind == CONFIG_TABLE;
		const char *name = mad_config_text(table ? mad_config_get(h, "name") : h);
		const char *parameter =
			table ? mad_config_text(mad_config_get(h, "parameter")) : NULL;
		struct network_host *host;

		if (!name)
			mad_config_failure(h, "a host without a name");
		if (!n->hosts)
			n->hosts = tbx_slist_nil();
		host = tbx_alloc(1, sizeof(*host));
		host->name = tbx_strdup(name);
		host->parameter = parameter ? tbx_strdup(parameter) : NULL;
		tbx_slist_append(n->hosts, host);
	}
}

static struct network *network_get(struct session *s, const char *name)
{
	for (p_tbx_slist_element_t e = s->networks->head; e; e = e->next)
		if (!strcmp(((struct network *)e->object)->name, name))
			return e->object;
	return NULL;
}

/* Add a network. A network that is defined twice has the hosts of both definitions. */
static void network_add(struct session *s, struct config *net)
{
	const char *name = mad_config_text(mad_config_get(net, "name"));
	const char *dev = mad_config_text(mad_config_get(net, "dev"));
	struct network *n;

	if (!name || !dev)
		mad_config_failure(net, "a network has a name and a dev");
	n = network_get(s, name);
	if (!n) {
		n = tbx_alloc(1, sizeof(*n));
		n->name = tbx_strdup(name);
		n->index = (int)s->networks->length;
		n->sockets = !strcmp(dev, "tcp") || !strcmp(dev, "udp");
		tbx_slist_append(s->networks, n);
	}
	n->topology = network_get_topology(net);
	network_hosts(n, mad_config_get(net, "hosts"));
}

static void networks_read(struct session *s, const char *file)
{
	struct config *c = mad_config_read(file), *nets = mad_config_get(c, "networks"), *n;

	if (!nets)
		mad_config_failure(c, "a network file has networks");
	for (long i = 0; (n = mad_config_item(nets, i)); i++)
		network_add(s, n);
	mad_config_free(c);
}

/* Read the network files that a session names, relative to the session file. */
static void networks_include(struct session *s, const char *session_file, const char *name)
{
	char *copy = tbx_strdup(session_file), path[4096];

	if (*name == '/')
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), "%s/%s", dirname(copy), name);
	networks_read(s, path);
	free(copy);
}

static void networks_listed(struct session *s, const char *nets)
{
	char *copy = tbx_strdup(nets), *rest = copy, *name;

	while ((name = strsep(&rest, ",")))
		if (*name)
			networks_read(s, name);
	free(copy);
}

static struct network_host *host_at(const struct network *n, long i)
{
	return tbx_slist_index_get(n->hosts, i);
}

static bool network_has(const struct network *n, const char *host)
{
	for (long i = 0; n->hosts && i < n->hosts->length; i++)
		if (!strcmp(host_at(n, i)->name, host))
			return true;
	return !n->hosts;
}

const char *mad_session_parameter(const struct network *n, const char *host)
{
	for (long i = 0; n->hosts && i < n->hosts->length; i++)
		if (host_at(n, i)->parameter && !strcmp(host_at(n, i)->name, host))
			return host_at(n, i)->parameter;
	return NULL;
}

/* ---- processes ---- */

/*
 * Return process @number of @host. The first call creates the process, with the next global rank.
 */
static p_ntbx_process_t process_get(struct session *s, const char *host, int number)
{
	size_t room = strlen(host) + sizeof("[-2147483648]");
	char *name = tbx_alloc(room, 1);
	p_ntbx_process_t p;

	snprintf(name, room, "%s[%d]", host, number);
	p = tbx_htable_get(s->by_name, name);
	if (p)
		goto out;
	if (s->processes->length >= PROCESSES_MAX)
		tbx_failuref("a session has at most %d processes", PROCESSES_MAX);
	p = tbx_alloc(1, sizeof(*p));
	p->global_rank = (int)s->processes->length;
	p->host = tbx_strdup(host);
	p->number = number;
	tbx_slist_append(s->processes, p);
	tbx_htable_add(s->by_name, name, p);
out:
	free(name);
	return p;
}

bool mad_session_member(const struct def *d, const ntbx_process_t *p)
{
	for (p_tbx_slist_element_t e = d->members->head; e; e = e->next)
		if (e->object == p)
			return true;
	return false;
}

static void member_add(struct session *s, struct def *d, const struct config *h, long number)
{
	p_ntbx_process_t p;

	if (number >= PROCESSES_MAX)
		mad_config_failure(h, "process %ld of %s: the number is too large", number,
				   h->text);
	p = process_get(s, h->text, (int)number);
	if (!d)
		return;
	if (mad_session_member(d, p))
		mad_config_failure(h, "process %ld of %s is in %s twice", number, h->text,
				   d->name);
	tbx_slist_append(d->members, p);
}

/* Add the processes of @hosts to the session, and to the channel @d unless it is NULL. */
static void hosts_add(struct session *s, struct def *d, const struct network *n,
		      struct config *hosts)
{
	struct config *h;

	for (long i = 0; (h = mad_config_item(hosts, i)); i++) {
		mad_config_text(h);
		if (n && !network_has(n, h->text))
			mad_config_failure(h, "%s is no host of the network %s", h->text,
					   n->name);
		if (!h->items || !h->items->length)
			member_add(s, d, h, 0);
		for (long k = 0; h->items && k < h->items->length; k++) {
			const struct config *index = tbx_slist_index_get(h->items, k);

			for (long r = index->from; r <= index->to; r++)
				member_add(s, d, h, r);
		}
	}
}

/* ---- channels ---- */

static struct def *def_new(struct session *s, struct config *c, enum def_kind kind)
{
	const char *name = mad_config_text(mad_config_get(c, "name"));
	struct def *d;

	if (!name)
		mad_config_failure(c, "a channel has a name");
	if (tbx_htable_get(s->defs, name))
		mad_config_failure(c, "there is another channel %s", name);
	d = tbx_alloc(1, sizeof(*d));
	d->kind = kind;
	d->name = tbx_strdup(name);
	d->members = tbx_slist_nil();
	d->parts = tbx_slist_nil();
	d->subs = tbx_slist_nil();
	tbx_htable_add(s->defs, name, d);
	tbx_slist_append(s->order, d);
	return d;
}

static void channel_add(struct session *s, struct config *c)
{
	struct def *d = def_new(s, c, DEF_CHANNEL);
	const char *net = mad_config_text(mad_config_get(c, "net"));
	struct config *hosts = mad_config_get(c, "hosts");
	const struct network *n = net ? network_get(s, net) : NULL;

	if (!n)
		mad_config_failure(c, "the channel %s has no network that is defined",
				   d->name);
	if (!hosts)
		mad_config_failure(c, "the channel %s has no hosts", d->name);
	d->network = n;
	hosts_add(s, d, n, hosts);
}

static void part_add(struct session *s, struct def *d, struct config *c)
{
	struct def *part = tbx_htable_get(s->defs, mad_config_text(c));

	/* a part is defined before @d, so that @d itself is the only possible cycle */
	if (!part || part == d || part->kind == DEF_XCHANNEL)
		mad_config_failure(c, "%s is no channel", c->text);
	if (part->user)
		mad_config_failure(c, "the channel %s is used by %s and by %s", part->name,
				   part->user->name, d->name);
	part->user = d;
	tbx_slist_append(d->parts, part);
	for (p_tbx_slist_element_t e = part->members->head; e; e = e->next)
		if (!mad_session_member(d, e->object))
			tbx_slist_append(d->members, e->object);
}

static bool part_has_connection(const struct def *part, p_ntbx_process_t a, p_ntbx_process_t b)
{
	return mad_session_member(part, a) && mad_session_member(part, b) &&
	       mad_session_connected(part, a, b);
}

bool mad_session_connected(const struct def *d, p_ntbx_process_t a, p_ntbx_process_t b)
{
	if (d->kind == DEF_CHANNEL) {
		switch (d->network->topology) {
		case TOPOLOGY_EMPTY:
			return false;
		case TOPOLOGY_FULL:
			return true;
		case TOPOLOGY_NODE:
			return a != b && !strcmp(a->host, b->host);
		case TOPOLOGY_DEFAULT:
			return a != b;
		}
	}
	for (p_tbx_slist_element_t e = d->parts->head; e; e = e->next)
		if (part_has_connection(e->object, a, b))
			return true;
	return false;
}

/* ---- ways ---- */

/* Return the network that all channels of a definition use; NULL: they use several networks. */
static const struct network *network_get_only(const struct def *d)
{
	const struct network *n = d->network;

	for (p_tbx_slist_element_t e = d->parts->head; e; e = e->next) {
		const struct network *m = network_get_only(e->object);

		if (!m || (n && m != n))
			return NULL;
		n = m;
	}
	return n;
}

const struct network *mad_session_network(const struct def *d, p_ntbx_process_t a,
					  p_ntbx_process_t b)
{
	const struct network *n = network_get_only(d);

	for (p_tbx_slist_element_t e = d->parts->head; e && !n; e = e->next)
		if (part_has_connection(e->object, a, b))
			n = mad_session_network(e->object, a, b);
	return n;
}

static long member_index(const struct def *d, const ntbx_process_t *p)
{
	long i = 0;

	for (p_tbx_slist_element_t e = d->members->head; e && e->object != p; e = e->next)
		i++;
	return i;
}

/* Compute the distance of each member to @to: the number of hops, plus 1. */
static void session_distances(const struct def *d, p_ntbx_process_t to, unsigned int *distance)
{
	size_t found = 1;
	p_ntbx_process_t *queue =
		tbx_alloc((size_t)d->members->length, sizeof(p_ntbx_process_t));

	queue[0] = to;
	distance[member_index(d, to)] = 1;
	for (size_t at = 0; at < found; at++) {
		unsigned int next = distance[member_index(d, queue[at])] + 1;
		size_t i = 0;

		for (p_tbx_slist_element_t e = d->members->head; e; e = e->next, i++)
			if (!distance[i] &&
			    mad_session_connected(d, e->object, queue[at])) {
				distance[i] = next;
				queue[found++] = e->object;
			}
	}
	free(queue);
}

/* Choose a member that is connected to @p and nearer to the destination than @p. */
static p_ntbx_process_t hop_choose(const struct def *d, p_ntbx_process_t p,
				   const unsigned int *distance, uint32_t choice)
{
	p_ntbx_process_t *nearer =
		tbx_alloc((size_t)d->members->length, sizeof(p_ntbx_process_t));
	unsigned int of = distance[member_index(d, p)];
	p_ntbx_process_t next;
	size_t i = 0, n = 0;

	for (p_tbx_slist_element_t e = d->members->head; e; e = e->next, i++)
		if (distance[i] + 1 == of && mad_session_connected(d, p, e->object))
			nearer[n++] = e->object;
	assert(n);		/* the distance of @p is that of a nearer member plus 1 */
	next = nearer[choice % n];
	free(nearer);
	return next;
}

/* Return a number that differs between pairs of processes, so that gateways share the pairs. */
static uint32_t pair_number(const ntbx_process_t *from, const ntbx_process_t *to)
{
	uint32_t n = (uint32_t)from->global_rank * 0x9e3779b1u +
		     (uint32_t)to->global_rank * 0x85ebca77u;

	n ^= n >> 15;
	return n * 0x2c1b3c6du >> 16;
}

int mad_session_way(const struct def *d, p_ntbx_process_t from, p_ntbx_process_t to,
		    p_ntbx_process_t *way)
{
	uint32_t choice = pair_number(from, to);
	unsigned int *distance;
	p_ntbx_process_t p = from;
	int hops = 0;

	if (mad_session_connected(d, from, to) || network_get_only(d)) {
		way[0] = to;
		return 1;
	}
	distance = tbx_alloc((size_t)d->members->length, sizeof(*distance));
	session_distances(d, to, distance);
	while (p != to) {
		p = hop_choose(d, p, distance, choice);
		way[hops++] = p;
	}
	free(distance);
	return hops;
}

/* Check that the first member reaches all other members: a pair without a path is an error. */
static void paths_check(const struct def *d, const struct config *c)
{
	size_t n = (size_t)d->members->length, found = 1, at = 0;
	p_ntbx_process_t *queue = tbx_alloc(n, sizeof(p_ntbx_process_t));
	bool *seen = tbx_alloc(n, sizeof(bool));

	queue[0] = tbx_slist_peek_from_head(d->members);
	seen[0] = true;
	for (; at < found; at++) {
		size_t i = 0;

		for (p_tbx_slist_element_t e = d->members->head; e; e = e->next, i++)
			if (!seen[i] && mad_session_connected(d, queue[at], e->object)) {
				seen[i] = true;
				queue[found++] = e->object;
			}
	}
	free(queue);
	free(seen);
	if (found < n)
		mad_config_failure(c, "the channel %s has processes without a path", d->name);
}

static void virtual_add(struct session *s, struct config *c, enum def_kind kind)
{
	struct def *d = def_new(s, c, kind);
	struct config *parts = mad_config_get(c, "channels"), *subs, *p;

	if (!parts)
		mad_config_failure(c, "%s has no channels", d->name);
	for (long i = 0; (p = mad_config_item(parts, i)); i++)
		part_add(s, d, p);
	paths_check(d, c);
	subs = mad_config_get(c, "sub_channels");
	for (long i = 0; subs && (p = mad_config_item(subs, i)); i++) {
		if (kind != DEF_XCHANNEL || tbx_htable_get(s->defs, mad_config_text(p)))
			mad_config_failure(p, "%s is no name of a sub-channel", p->text);
		tbx_slist_append(d->subs, tbx_strdup(p->text));
	}
}

/* ---- the file ---- */

static void processes_each(struct session *s, struct config *list, enum def_kind kind)
{
	struct config *c;

	for (long i = 0; list && (c = mad_config_item(list, i)); i++) {
		if (kind == DEF_CHANNEL)
			channel_add(s, c);
		else
			virtual_add(s, c, kind);
	}
}

static void session_networks(struct session *s, struct config *c, const char *file,
			     const char *nets)
{
	struct config *include = mad_config_get(c, "include"), *name;

	if (!include && !nets)
		mad_config_failure(c, "the session includes no network file");
	for (long i = 0; include && (name = mad_config_item(include, i)); i++)
		networks_include(s, file, mad_config_text(name));
	if (nets)
		networks_listed(s, nets);
}

struct session *mad_session_read(const char *file, const char *nets)
{
	struct config *c = mad_config_read(file), *app, *n;
	struct session *s = tbx_alloc(1, sizeof(*s));
	const char *program;

	s->processes = tbx_slist_nil();
	s->by_name = tbx_htable_empty_table();
	s->networks = tbx_slist_nil();
	s->defs = tbx_htable_empty_table();
	s->order = tbx_slist_nil();
	app = mad_config_get(c, "application");
	n = app ? mad_config_get(app, "networks") : NULL;
	if (!n)
		mad_config_failure(c, "a session file has an application with networks");
	program = mad_config_text(mad_config_get(app, "name"));
	s->program = program ? tbx_strdup(program) : NULL;
	session_networks(s, n, file, nets);
	if (mad_config_get(n, "hosts"))
		hosts_add(s, NULL, NULL, mad_config_get(n, "hosts"));
	processes_each(s, mad_config_get(n, "channels"), DEF_CHANNEL);
	processes_each(s, mad_config_get(n, "vchannels"), DEF_VCHANNEL);
	processes_each(s, mad_config_get(n, "xchannels"), DEF_XCHANNEL);
	if (!s->processes->length)
		mad_config_failure(n, "the session has no process");
	mad_config_free(c);
	return s;
}

static void names_free(p_tbx_slist_t names)
{
	while (names && !tbx_slist_is_nil(names))
		free(tbx_slist_extract(names));
	if (names)
		tbx_slist_free(names);
}

static void networks_free(p_tbx_slist_t networks)
{
	while (!tbx_slist_is_nil(networks)) {
		struct network *n = tbx_slist_extract(networks);

		while (n->hosts && !tbx_slist_is_nil(n->hosts)) {
			struct network_host *h = tbx_slist_extract(n->hosts);

			free(h->name);
			free(h->parameter);
			free(h);
		}
		if (n->hosts)
			tbx_slist_free(n->hosts);
		free(n->name);
		free(n);
	}
	tbx_slist_free(networks);
}

void mad_session_free(struct session *s)
{
	while (!tbx_slist_is_nil(s->order)) {
		struct def *d = tbx_slist_extract(s->order);

		tbx_slist_clear_and_free(d->members);
		tbx_slist_clear_and_free(d->parts);
		names_free(d->subs);
		free(d->name);
		free(d);
	}
	tbx_slist_free(s->order);
	tbx_htable_cleanup_and_free(s->defs);
	networks_free(s->networks);
	while (!tbx_slist_is_nil(s->processes)) {
		p_ntbx_process_t p = tbx_slist_extract(s->processes);

		free(p->host);
		free(p);
	}
	tbx_slist_free(s->processes);
	tbx_htable_cleanup_and_free(s->by_name);
	free(s->program);
	free(s);
}
