// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start and end of the session, channels and connections, and services of the session. */
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "libsci/madeleine/internal.h"

#define SUBS_MAX	256u		/* a mux channel and its sub-channels */
#define BARRIER_MS	1		/* milliseconds between polls in a barrier */

static struct mad_world *the_world;

struct mad_world *mad_world(void)
{
	if (!the_world)
		tbx_failure("Madeleine has not been started");
	return the_world;
}

int mad_world_exchange(struct mad_world *w, const void *mine, size_t len, void *all)
{
	return sci_team_allgather(w->team, mine, len, all);
}

/* Wait for all processes, and make progress: they may wait for messages of this process. */
static void world_barrier(struct mad_world *w)
{
	struct sci_coll *coll;
	int ret = sci_team_ibarrier(w->team, &coll);

	if (!ret)
		while ((ret = sci_coll_wait(coll, BARRIER_MS)) == -ETIMEDOUT)
			w->net->progress(w);
	if (ret)
		tbx_failuref("the processes of the session cannot meet: %s", strerror(-ret));
}

/* ---- connections ---- */

/* Set the network of a link, and the way if the link leads through gateways. */
static void link_route(struct mad_world *w, p_mad_channel_t c, struct mad_link *l,
		       bool outgoing)
{
	const struct def *d = tbx_slist_index_get(w->session->order, c->id);
	p_ntbx_process_t me = tbx_slist_index_get(w->session->processes, w->rank);
	p_ntbx_process_t other = tbx_slist_index_get(w->session->processes, l->rank);
	p_ntbx_process_t *hops, next = other;
	int n;

	hops = tbx_alloc((size_t)d->members->length, sizeof(p_ntbx_process_t));
	n = mad_session_way(d, outgoing ? me : other, outgoing ? other : me, hops);
	if (n > 1) {
		next = outgoing ? hops[0] : hops[n - 2];
		l->way = mad_way_new(l->channel, outgoing ? w->rank : l->rank,
				     outgoing ? l->rank : w->rank, l->sub);
		l->way->via = next->global_rank;
		c->reception->inbox.ways = true;
	}
	l->network = mad_session_network(d, me, next)->index;
	c->reception->inbox.networks |= 1ull << l->network;
	free(hops);
}

static p_mad_connection_t connection_new(p_mad_channel_t c, int lrank,
					 mad_connection_way_t way,
					 mad_connection_nature_t nature)
{
	p_mad_connection_t k = tbx_alloc(1, sizeof(*k));

	k->remote_rank = lrank;
	k->channel = c;
	k->way = way;
	k->nature = nature;
	k->stream = tbx_alloc(1, sizeof(*k->stream));
	mad_gate_init(&k->stream->gate);
	k->stream->link.rank = ntbx_pc_local_to_global(c->pc, lrank);
	k->stream->link.channel = (uint32_t)c->id;
	k->stream->link.sub = c->sub;
	link_route(mad_world(), c, &k->stream->link, way == mad_outgoing_connection);
	return k;
}

static void connections_add(p_mad_channel_t c, int lrank, mad_connection_nature_t nature)
{
	p_mad_connection_t in, out;

	in = connection_new(c, lrank, mad_incoming_connection, nature);
	out = connection_new(c, lrank, mad_outgoing_connection, nature);
	in->reverse = out;
	out->reverse = in;
	tbx_darray_set(c->in_connection_darray, lrank, in);
	tbx_darray_set(c->out_connection_darray, lrank, out);
}

static void connections_free(p_tbx_darray_t d)
{
	for (int i = 0; i < tbx_darray_length(d); i++) {
		p_mad_connection_t k = tbx_darray_get(d, i);

		if (k) {
			mad_stream_free(k->stream);
			free(k);
		}
	}
	tbx_darray_free(d);
}

/* ---- channels ---- */

static p_mad_channel_t channel_new(struct mad_world *w, const char *name, long id,
				   unsigned int sub, p_mad_dir_channel_t dir)
{
	p_mad_channel_t c = tbx_alloc(1, sizeof(*c));

	c->name = tbx_strdup(name);
	c->id = id;
	c->sub = sub;
	c->dir_channel = dir;
	c->pc = dir->pc;
	c->process_lrank = ntbx_pc_global_to_local(c->pc, w->rank);
	c->in_connection_darray = tbx_darray_init();
	c->out_connection_darray = tbx_darray_init();
	tbx_darray_expand_and_set(c->in_connection_darray, c->pc->count - 1, NULL);
	tbx_darray_expand_and_set(c->out_connection_darray, c->pc->count - 1, NULL);
	c->reception = tbx_alloc(1, sizeof(*c->reception));
	mad_gate_init(&c->reception->gate);
	c->reception->inbox.channel = (uint32_t)id;
	c->reception->inbox.sub = sub;
	tbx_slist_append(w->channels, c);
	return c;
}

static p_mad_channel_t sub_channel_new(struct mad_world *w, p_mad_channel_t of, const char *name,
				       unsigned int sub)
{
	p_mad_channel_t c = channel_new(w, name, of->id, sub, of->dir_channel);

	c->type = of->type;
	c->not_private = of->not_private;
	c->max_sub = of->max_sub;
	for (int i = 0; i < c->pc->count; i++)
		if (tbx_darray_get(of->out_connection_darray, i))
			connections_add(c, i, mad_connection_nature_mux);
	return c;
}

static p_mad_dir_channel_t dir_new(const struct def *d)
{
	p_mad_dir_channel_t dir = tbx_alloc(1, sizeof(*dir));
	int n = (int)d->members->length, i = 0;

	dir->name = tbx_strdup(d->name);
	dir->pc = mad_pc_new();
	for (p_tbx_slist_element_t e = d->members->head; e; e = e->next)
		mad_pc_add(dir->pc, e->object);
	dir->ttable = mad_topology_new(n);
	for (p_tbx_slist_element_t a = d->members->head; a; a = a->next, i++) {
		int k = 0;

		for (p_tbx_slist_element_t b = d->members->head; b; b = b->next, k++)
			if (d->kind == DEF_CHANNEL ?
				    mad_session_connected(d, a->object, b->object) : i != k)
				mad_topology_connect(dir->ttable, i, k);
	}
	return dir;
}

static void dir_free(p_mad_dir_channel_t dir)
{
	mad_pc_free(dir->pc);
	mad_topology_free(dir->ttable);
	free(dir->name);
	free(dir);
}

static mad_connection_nature_t channel_get_nature(const struct def *d, p_ntbx_process_t a,
						  p_ntbx_process_t b)
{
	if (d->kind == DEF_CHANNEL)
		return mad_connection_nature_regular;
	if (d->kind == DEF_XCHANNEL)
		return mad_connection_nature_mux;
	return mad_session_connected(d, a, b) ? mad_connection_nature_direct_virtual :
						mad_connection_nature_indirect_virtual;
}

static void channel_connect(struct mad_world *w, p_mad_channel_t c, const struct def *d,
			    p_ntbx_process_t me)
{
	for (int i = 0; i < c->pc->count; i++) {
		p_ntbx_process_t to = ntbx_pc_get_local_process(c->pc, i);
		struct mad_link *link;
		int ret;

		if (!ntbx_topology_table_get(c->dir_channel->ttable, c->process_lrank, i))
			continue;
		connections_add(c, i, channel_get_nature(d, me, to));
		link = &((p_mad_connection_t)tbx_darray_get(c->out_connection_darray, i))
				->stream->link;
		/* a link through gateways uses the connection to the next gateway */
		if (link->way)
			continue;
		ret = w->net->connect(w, link->network, to->global_rank);
		if (ret)
			tbx_failuref("cannot connect to process %d: %s", to->global_rank,
				     strerror(-ret));
	}
}

static void channel_open(struct mad_world *w, const struct def *d, long id,
			 p_ntbx_process_t me)
{
	static const mad_channel_type_t types[] = {
		mad_channel_type_regular, mad_channel_type_virtual, mad_channel_type_mux,
	};
	p_mad_channel_t c = channel_new(w, d->name, id, 0, dir_new(d));
	unsigned int sub = 1;

	c->type = types[d->kind];
	c->not_private = d->user ? tbx_false : tbx_true;
	c->max_sub = d->kind == DEF_XCHANNEL ? SUBS_MAX : 0;
	/* a channel that is part of a virtual channel carries no messages of its own */
	if (!d->user)
		channel_connect(w, c, d, me);
	tbx_htable_add(w->m->channel_htable, d->name, c);
	for (p_tbx_slist_element_t e = d->subs->head; e; e = e->next)
		tbx_htable_add(w->m->channel_htable, e->object,
			       sub_channel_new(w, c, e->object, sub++));
}

static void channels_open(struct mad_world *w)
{
	p_ntbx_process_t me = tbx_slist_index_get(w->session->processes, w->rank);
	long id = 0;

	for (p_tbx_slist_element_t e = w->session->order->head; e; e = e->next, id++) {
		const struct def *d = e->object;

		if (!d->user) {
			tbx_slist_append(w->m->public_channel_slist, tbx_strdup(d->name));
			for (p_tbx_slist_element_t n = d->subs->head; n; n = n->next)
				tbx_slist_append(w->m->public_channel_slist,
						 tbx_strdup(n->object));
		}
		if (mad_session_member(d, me))
			channel_open(w, d, id, me);
	}
}

static void channel_free(p_mad_channel_t c)
{
	connections_free(c->in_connection_darray);
	connections_free(c->out_connection_darray);
	mad_gate_fini(&c->reception->gate);
	gateway_inbox_free(&c->reception->inbox);
	free(c->reception->buf);
	free(c->reception);
	if (!c->sub)
		dir_free(c->dir_channel);
	free(c->name);
	free(c);
}

p_mad_channel_t mad_get_channel(p_mad_madeleine_t m, const char *name)
{
	p_mad_channel_t c = tbx_htable_get(m->channel_htable, name);

	if (!c)
		tbx_failuref("this process is in no channel %s", name);
	if (!c->not_private)
		tbx_failuref("the channel %s is private", name);
	return c;
}

static p_mad_channel_t sub_channel_find(struct mad_world *w, p_mad_channel_t of, unsigned int sub)
{
	for (p_tbx_slist_element_t e = w->channels->head; e; e = e->next) {
		p_mad_channel_t c = e->object;

		if (c->id == of->id && c->sub == sub)
			return c;
	}
	return NULL;
}

p_mad_channel_t mad_get_sub_channel(p_mad_channel_t channel, unsigned int sub)
{
	struct mad_world *w = mad_world();
	p_mad_channel_t c;

	if (channel->type != mad_channel_type_mux || sub >= channel->max_sub)
		tbx_failuref("the channel %s has no sub-channel %u", channel->name, sub);
	pthread_mutex_lock(&w->lock);
	c = sub_channel_find(w, channel, sub);
	if (!c)
		c = sub_channel_new(w, sub_channel_find(w, channel, 0), channel->name, sub);
	pthread_mutex_unlock(&w->lock);
	return c;
}

/* ---- start ---- */

static p_mad_madeleine_t madeleine_new(struct mad_world *w)
{
	p_mad_madeleine_t m = tbx_alloc(1, sizeof(*m));

	m->session = tbx_alloc(1, sizeof(*m->session));
	m->dir = tbx_alloc(1, sizeof(*m->dir));
	m->settings = tbx_alloc(1, sizeof(*m->settings));
	m->session->process_rank = w->rank;
	m->dir->process_slist = tbx_slist_dup(w->session->processes);
	m->channel_htable = tbx_htable_empty_table();
	m->public_channel_slist = tbx_slist_nil();
	return m;
}

static void madeleine_free(p_mad_madeleine_t m)
{
	while (!tbx_slist_is_nil(m->public_channel_slist))
		free(tbx_slist_extract(m->public_channel_slist));
	tbx_slist_free(m->public_channel_slist);
	tbx_htable_cleanup_and_free(m->channel_htable);
	tbx_slist_clear_and_free(m->dir->process_slist);
	free(m->dir);
	free(m->settings);
	free(m->session);
	free(m);
}

static void session_read(struct mad_world *w)
{
	const char *file = getenv("MAD_SESSION");

	if (!file)
		tbx_failure("there is no session: start the program with mad-run SESSION_FILE");
	w->session = mad_session_read(file, getenv("MAD_NET"));
	if (w->session->processes->length != w->size)
		tbx_failuref("%s has %ld processes, but %d were started", file,
			     w->session->processes->length, w->size);
}

void common_attr_init(p_common_attr_t attr)
{
	memset(attr, 0, sizeof(*attr));
}

void common_pre_init(int *argc, char *argv[], p_common_attr_t attr)
{
	struct mad_world *w = tbx_alloc(1, sizeof(*w));
	int ret;

	(void)argc;
	(void)argv;
	if (the_world)
		tbx_failure("Madeleine has been started");
	ret = sci_team_open(&w->team, NULL);
	if (ret)
		tbx_failuref("cannot join the session: %s", strerror(-ret));
	w->rank = sci_team_rank(w->team);
	w->size = sci_team_size(w->team);
	pthread_mutex_init(&w->lock, NULL);
	w->channels = tbx_slist_nil();
	session_read(w);
	w->net = &mad_net_msg;
	ret = w->net->open(w);
	if (ret)
		tbx_failuref("cannot open the network %s: %s", w->net->name, strerror(-ret));
	w->m = madeleine_new(w);
	the_world = w;
	if (attr)
		attr->madeleine = w->m;
}

/*
 * Return how many arguments the session option @arg takes, with itself; 0: @arg is no such option.
 */
static int session_argument(const char *arg)
{
	if (!strcmp(arg, "--mad_leonie") || !strcmp(arg, "--mad_link"))
		return 2;
	return !strcmp(arg, "--mad_dyn_mode") || !strcmp(arg, "-d");
}

static void arguments_remove(int *argc, char *argv[])
{
	int kept = 1;

	for (int i = 1; i < *argc;) {
		int n = session_argument(argv[i]);

		if (!n)
			argv[kept++] = argv[i++];
		else
			i += n;
	}
	*argc = tbx_min(kept, *argc);
	argv[*argc] = NULL;
}

void common_post_init(int *argc, char *argv[], p_common_attr_t attr)
{
	struct mad_world *w = mad_world();
	int ret;

	if (argc && argv && *argc > 0)
		arguments_remove(argc, argv);
	channels_open(w);
	ret = w->net->start(w);
	if (ret)
		tbx_failuref("cannot start to forward messages: %s", strerror(-ret));
	world_barrier(w);
	if (attr)
		attr->madeleine = w->m;
}

void common_init(int *argc, char *argv[], p_common_attr_t attr)
{
	common_pre_init(argc, argv, attr);
	common_post_init(argc, argv, attr);
}

void common_exit(p_common_attr_t attr)
{
	struct mad_world *w = mad_world();

	(void)attr;
	world_barrier(w);
	/* stop gateways first: they would report a process that disconnects as dead */
	w->net->stop(w);
	world_barrier(w);
	w->net->close(w);
	while (!tbx_slist_is_nil(w->channels))
		channel_free(tbx_slist_pop(w->channels));
	tbx_slist_free(w->channels);
	madeleine_free(w->m);
	mad_session_free(w->session);
	the_world = NULL;
	sci_team_close(w->team);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

p_mad_madeleine_t mad_init(int *argc, char **argv)
{
	common_init(argc, argv, NULL);
	return mad_get_madeleine();
}

p_mad_madeleine_t mad_get_madeleine(void)
{
	return mad_world()->m;
}

/* ---- the session ---- */

void mad_leonie_barrier(void)
{
	world_barrier(mad_world());
}

void mad_leonie_beat(void)
{
	mad_world();
}

/* Print a line in one write, so that lines of several processes do not mix. */
void mad_leonie_print(const char *fmt, ...)
{
	char line[1024];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	n = tbx_min(tbx_max(n, 0), (int)sizeof(line) - 2);
	line[n++] = '\n';
	fflush(stdout);
	while (write(STDOUT_FILENO, line, (size_t)n) < 0 && errno == EINTR)
		;
}
