// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: pairs
 *
 * Two processes that import segments of each other have two connections. A pair keeps one: the
 * connection of the segment with the lower (node, id). Its owner is the lower process, and its
 * importer is the upper process:
 *
 *	1. The upper process lets its bell receive triggers on the connection that stays, and sends
 *	   SHM_PAIR on the other connection.
 *	2. The lower process sends SHM_MERGE as its last message on the other connection, and then
 *	   sends its triggers on the connection that stays.
 *	3. The upper process receives SHM_MERGE and closes the other connection. It sends all later
 *	   messages on the connection that stays.
 *	4. The lower process has read the other connection to its end, and closes it.
 *
 * The lower process takes step 2 after its own shm_pair() and SHM_PAIR. An end of one object
 * before step 3 is a message on the connection of this object, as without a pair. The upper process
 * reads the other connection before it handles the end of the connection that stays: SHM_MERGE
 * precedes that end.
 *
 * After the merge the segment and the import end together. The type of a message tells which of
 * the two it is for: SHM_NOTIFY and SHM_CUT are for the import, SHM_TRIGGER is for the bell.
 *
 * Each process merges only connections to one process. So a peer that lies about a step can only
 * lose its own triggers, and the notice of its own end.
 */

#include "libsci/fabric/shm/shm.h"

#include <sys/epoll.h>
#include <sys/socket.h>

static void pair_unlink(struct shm_conn *conn, struct sci_rseg *r)
{
	conn->pair = NULL;
	r->pair = NULL;
	r->merged = false;
}

/* Take step 2. If the message cannot be sent, both connections stay. */
static void pair_merge(struct sci_rseg *r)
{
	const struct shm_msg msg = { .type = SHM_MERGE };

	if (!r->pair || r->pair_stays || !r->pair_asked ||
	    shm_send(r->conn, &msg, NULL, 0))
		return;
	/* the peer's service thread sees the hang-up */
	shutdown(r->conn, SHUT_WR);
	r->pair_moved = true;
}

/* Handle SHM_PAIR, which may come before shm_pair(). */
void shm_pair_asked(struct sci_rseg *r)
{
	r->pair_asked = true;
	pair_merge(r);
}

/* Take step 4. Return false if the other connection ends for another reason. */
bool shm_pair_done(struct sci_rseg *r)
{
	if (!r->pair || !r->pair_moved)
		return false;
	shm_rseg_hang_up(r);
	r->merged = true;
	return true;
}

/* Take step 3. Return false if there is no such pair. */
bool shm_pair_merged(struct shm_conn *conn)
{
	if (!conn->pair || !conn->pair->pair_stays || conn->pair->merged)
		return false;
	shm_bell_leave(conn);
	sci_fd_close(&conn->port->shm->svc, conn->fd);
	conn->fd = -1;
	conn->pair->merged = true;
	return true;
}

/* Take step 1. */
static int pair_ask(struct shm_conn *conn, struct sci_rseg *r)
{
	const struct shm_msg msg = { .type = SHM_PAIR };
	int ret = shm_bell_add(conn->bell, r->conn);

	if (ret)
		return ret;
	ret = shm_send(conn->fd, &msg, NULL, 0);
	if (ret)
		shm_bell_remove(conn->bell, r->conn);
	else
		sci_watch_events(&r->shm->svc, r->conn, EPOLLRDHUP);
	return ret;
}

static struct shm_conn *only_importer(struct sci_lseg *s)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &s->port.conns) {
		struct shm_conn *conn = container_of(pos, struct shm_conn, link);

		if (conn->role == SHM_IMPORTER && s->flags & SCI_LSEG_ONCE)
			return conn;
	}
	return NULL;
}

int shm_pair(struct sci_lseg *s, struct sci_rseg *r)
{
	struct shm *shm = s->shm;
	struct shm_conn *conn;
	int ret = -EINVAL;

	pthread_mutex_lock(&shm->svc.lock);
	conn = only_importer(s);
	if (conn && conn->bell && !conn->pair && !r->pair && r->conn >= 0 &&
	    conn->pid && conn->pid == r->pid && conn->node == r->node &&
	    (r->node != shm->node || r->id != s->id)) {
		r->pair_stays = r->node < shm->node || (r->node == shm->node && r->id < s->id);
		ret = r->pair_stays ? pair_ask(conn, r) : 0;
	}
	if (!ret) {
		conn->pair = r;
		r->pair = conn;
		pair_merge(r);
	}
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

/* The owner's connection ends. End the import as well if it has no other connection. */
void shm_pair_conn_end(struct shm_conn *conn, bool orderly)
{
	struct sci_rseg *r = conn->pair;
	bool merged = r && r->merged;

	if (!r)
		return;
	if (merged) {
		shm_rseg_hang_up(r);
	} else if (r->pair_stays) {
		shm_bell_remove(conn->bell, r->conn);
		sci_watch_events(&r->shm->svc, r->conn, EPOLLIN);
	}
	pair_unlink(conn, r);
	if (merged)
		shm_rseg_ended(r, orderly ? SCI_EVENT_DISCONNECT : SCI_EVENT_LOST);
}

/* An import ends. End the owner's connection as well if the two are merged. */
void shm_pair_import_end(struct sci_rseg *r, bool orderly)
{
	struct shm_conn *conn = r->pair;
	bool merged = r->merged;

	if (!conn)
		return;
	pair_unlink(conn, r);
	if (!merged)
		return;
	/* the owner of the segment gets no event if this process has disconnected the import */
	if (atomic_load(&r->status.gone))
		shm_conn_gone(conn, orderly);
	else
		shm_conn_close(conn);
}
