// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start and end of DECK, and the calls that the team implements. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/thread.h"
#include "libsci/deck/internal.h"

static struct deck_world *_Atomic the_world;

struct deck_world *deck_world(void)
{
	return atomic_load_explicit(&the_world, memory_order_acquire);
}

static int world_exchange_addresses(struct deck_world *w)
{
	struct deck_ends mine;
	int ret;

	ret = sci_ep_addr(w->port, &mine.port);
	ret = ret ? ret : sci_ep_addr(w->service.ep, &mine.service);
	if (ret)
		return ret;
	w->ends = calloc((size_t)w->size, sizeof(*w->ends));
	return w->ends ? sci_team_allgather(w->team, &mine, sizeof(mine), w->ends) : -ENOMEM;
}

static size_t limit_read_environment(void)
{
	const char *text = getenv("DECK_MSG_BUF_LIMIT");
	char *end;
	unsigned long long n;

	if (!text || *text < '0' || *text > '9')
		return DECK_MSG_BUF_LIMIT;
	n = strtoull(text, &end, 10);
	return *end ? DECK_MSG_BUF_LIMIT : (size_t)n;
}

static void world_start(struct deck_world *w)
{
	w->limit = limit_read_environment();
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->find_lock, NULL);
	sci_cond_init(&w->find_cond);
	list_init(&w->boxes);
	list_init(&w->found);
	list_init(&w->chunks);
	list_init(&w->kept);
}

static void world_free(struct deck_world *w)
{
	deck_bufs_free(w);
	if (w->service.ep)
		sci_ep_close(w->service.ep);
	if (w->port)
		sci_ep_close(w->port);
	free(w->ends);
	pthread_cond_destroy(&w->find_cond);
	pthread_mutex_destroy(&w->find_lock);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int world_open(struct deck_world *w)
{
	int ret;

	w->rank = sci_team_rank(w->team);
	w->size = sci_team_size(w->team);
	ret = sci_ep_open(&w->port, 0, 0);
	ret = ret ? ret : sci_ep_open(&w->service.ep, 0, 0);
	ret = ret ? ret : world_exchange_addresses(w);
	return ret ? ret : deck_service_start(w);
}

int deck_init(int *argc, char ***argv)
{
	struct deck_world *w;
	int ret;

	(void)argc;
	(void)argv;
	if (deck_world())
		return -EALREADY;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	world_start(w);
	ret = sci_team_open(&w->team, NULL);
	ret = ret ? ret : world_open(w);
	if (!ret) {
		atomic_store_explicit(&the_world, w, memory_order_release);
		return 0;
	}
	sci_team_close(w->team);
	world_free(w);
	return ret;
}

static bool world_is_in_use(struct deck_world *w)
{
	bool used;

	pthread_mutex_lock(&w->find_lock);
	pthread_mutex_lock(&w->lock);
	used = !list_empty(&w->boxes) || !list_empty(&w->found) || w->exported;
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->find_lock);
	return used;
}

int deck_done(void)
{
	struct deck_world *w = deck_world();
	struct sci_team *team;
	int ret, closed;

	if (!w)
		return -ENOTCONN;
	if (world_is_in_use(w))
		return -EBUSY;
	team = w->team;
	ret = sci_team_barrier(team);
	atomic_store_explicit(&the_world, NULL, memory_order_release);
	/*
	 * the service stops after the close, which waits until the other processes leave: if the
	 * barrier has failed, they may still ask for names
	 */
	closed = sci_team_close(team);
	deck_service_stop(w);
	world_free(w);
	return ret ? ret : closed;
}

/*
 * Wait for a collective call, and make progress: other processes may make the call only after they
 * have retrieved a message of this process.
 */
static int coll_wait(struct deck_world *w, struct sci_coll *coll)
{
	unsigned int looks = 0;
	int ret;

	do
		ret = sci_coll_wait(coll, deck_requests_poll(w, NULL, &looks));
	while (ret == -EAGAIN || ret == -ETIMEDOUT);
	return ret;
}

static int world_barrier(struct deck_world *w)
{
	struct sci_coll *coll;
	int ret = sci_team_ibarrier(w->team, &coll);

	return ret ? ret : coll_wait(w, coll);
}

static int world_bcast(struct deck_world *w, int root, void *buf, size_t len)
{
	struct sci_coll *coll;
	int ret = sci_team_ibcast(w->team, root, buf, len, &coll);

	return ret ? ret : coll_wait(w, coll);
}

/* Define the call @name, which returns @value, an expression with the world @w. */
#define WORLD_CALL(name, parameters, value)			\
	int name(parameters)					\
	{							\
		struct deck_world *w = deck_world();		\
								\
		return w ? (value) : -ENOTCONN;			\
	}

WORLD_CALL(deck_rank, void, w->rank)
WORLD_CALL(deck_size, void, w->size)
WORLD_CALL(deck_node, int rank, sci_team_node(w->team, rank))
WORLD_CALL(deck_nodes, void, sci_team_nodes(w->team))
WORLD_CALL(deck_barrier, void, world_barrier(w))

int deck_broadcast(deck_msg_t *msg, int root)
{
	struct deck_world *w = deck_world();
	void *buf, *whole = NULL;
	uint64_t length;
	int ret;

	if (!w)
		return -ENOTCONN;
	if (!msg)
		return -EINVAL;
	length = msg->length;
	ret = world_bcast(w, root, &length, sizeof(length));
	if (ret)
		return ret;
	/* the other processes wait until this one has taken part with the whole message */
	if (length > msg->size) {
		whole = malloc(length);
		if (!whole)
			return -ENOMEM;
	}
	buf = whole ? whole : msg->buf;
	ret = length ? world_bcast(w, root, buf, length) : 0;
	if (whole && !ret) {
		memcpy(msg->buf, whole, msg->size);
		length = msg->size;
	}
	free(whole);
	msg->length = ret ? 0 : length;
	msg->at = 0;
	msg->source = ret ? -1 : root;
	return ret || !whole ? ret : -EMSGSIZE;
}
