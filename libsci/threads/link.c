// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages between nodes that share no memory, and the death of such a node. */

#include <errno.h>
#include <sci/team.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "hosts.h"

#define LINK_HANDLER	SCI_HANDLER_USER
#define CONNECT_MS	30000

static struct {
	__typeof__(&sci_team_open) team_open;
	__typeof__(&sci_team_rank) team_rank;
	__typeof__(&sci_team_size) team_size;
	__typeof__(&sci_team_allgather) allgather;
	__typeof__(&sci_team_allreduce) allreduce;
	__typeof__(&sci_op) op;
	__typeof__(&sci_team_bcast) bcast;
	__typeof__(&sci_ep_open_attr) ep_open;
	__typeof__(&sci_ep_addr) ep_addr;
	__typeof__(&sci_connect) connect;
	__typeof__(&sci_handler_set) handler_set;
	__typeof__(&sci_handler_sendv) sendv;
	__typeof__(&sci_progress) progress;
	__typeof__(&sci_wait_until) wait_until;
	__typeof__(&sci_completions) completions;
	__typeof__(&sci_completions_queued) queued;
	__typeof__(&sci_peer_set_data) set_data;
	__typeof__(&sci_peer_data) data;
} lib;

static struct {
	struct sci_team *team;
	struct sci_ep *ep;
	unsigned int nodes;
	struct sci_peer *peers[NODES_MAX];
	uint32_t ids[NODES_MAX];
	atomic_bool ending;		/* the program ends: deaths are no news */
	atomic_bool informed[NODES_MAX];	/* nodes that know of the end */
	atomic_bool dead[NODES_MAX];
} lnk;

static _Thread_local bool in_handler;

static noreturn void link_exit(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

unsigned int link_nodes(void)
{
	return lnk.nodes;
}

uint32_t link_node_id(unsigned int node)
{
	return lnk.ids[node];
}

/* ---- messages of handlers that wait for room ---- */

struct pending {
	struct pending *next;
	unsigned int node;
	enum link_op op;
	struct link_wire w;
	bool has_page;
	char page[];
};

static struct {
	struct lock lock;		/* no call of the endpoint while a thread holds it */
	struct pending *_Atomic first, *last;	/* handlers add, and link_main() removes */
} pending;

/* Return 0 or -ENOMEM. Context: a handler. */
static int pending_add(unsigned int node, enum link_op op, const struct link_wire *w,
		       const void *page)
{
	struct pending *p = calloc(1, sizeof(*p) + (page ? HOSTS_PAGE : 0));

	if (!p)
		return -ENOMEM;
	*p = (struct pending){ .node = node, .op = op, .w = *w, .has_page = page };
	if (page)
		memcpy(p->page, page, HOSTS_PAGE);
	lock_take(&pending.lock);
	if (atomic_load(&pending.first))
		pending.last->next = p;
	else
		atomic_store(&pending.first, p);
	pending.last = p;
	lock_give(&pending.lock);
	return 0;
}

/* A message stays in the list until it has been sent: so handlers put later messages behind it. */
static void pending_send(void)
{
	struct pending *p;

	while ((p = atomic_load(&pending.first))) {
		link_send(p->node, p->op, &p->w, p->has_page ? p->page : NULL);
		lock_take(&pending.lock);
		atomic_store(&pending.first, p->next);
		lock_give(&pending.lock);
		free(p);
	}
}

/* A handler cannot make progress. It leaves a message for which there is no room to link_main(). */
void link_send(unsigned int node, enum link_op op, const struct link_wire *w, const void *page)
{
	struct iovec iov[2] = {
		{ .iov_base = (void *)(uintptr_t)w, .iov_len = sizeof(*w) },
		{ .iov_base = (void *)(uintptr_t)page, .iov_len = page ? HOSTS_PAGE : 0 },
	};
	int ret = -EAGAIN;

	if (!in_handler || !atomic_load(&pending.first))
		ret = lib.sendv(lnk.peers[node], LINK_HANDLER, op, iov, page ? 2 : 1);
	while (ret == -EAGAIN && !in_handler) {
		lib.progress(lnk.ep);
		ret = lib.sendv(lnk.peers[node], LINK_HANDLER, op, iov, page ? 2 : 1);
	}
	if (ret == -EAGAIN)
		ret = pending_add(node, op, w, page);
	if (!ret || atomic_load(&lnk.ending))
		return;
	/* if the node has died, the event of its death ends the program */
	if (ret != -ENOMEM)
		return;
	world_say("node %u cannot send to node %u: %s: the program ends", node_id(self_node),
		  node_id(node), strerror(-ret));
	link_exit(1);
}

static void link_handle(void *arg, const struct sci_handled *m)
{
	unsigned int from = (unsigned int)(uintptr_t)lib.data(m->peer) - 1;
	const void *page = m->len == sizeof(struct link_wire) + HOSTS_PAGE ?
			   (const char *)m->data + sizeof(struct link_wire) : NULL;
	struct link_wire w;

	(void)arg;
	if (from >= lnk.nodes || m->error || m->len < sizeof(w) || m->tag >= LINK_OPS)
		return;
	memcpy(&w, m->data, sizeof(w));
	in_handler = true;
	if (m->tag == PROGRAM_END && w.value >= 0)
		link_exit(w.value);
	if (m->tag == PROGRAM_END) {
		atomic_store(&lnk.ending, w.value == END_GONE);
		link_send(from, PROGRAM_ENDS, &w, NULL);
	} else if (m->tag == PROGRAM_ENDS) {
		atomic_store(&lnk.informed[from], w.value == END_GONE);
	} else if (m->tag <= PAGE_NEXT) {
		page_handle(from, (enum link_op)m->tag, &w, page);
	} else {
		sleep_handle(from, (enum link_op)m->tag, &w);
	}
	in_handler = false;
}

/* ---- the end ---- */

#define END_MS		1000		/* most time for all nodes to learn of the end */
#define END_ERROR_MS	1		/* ... after an error: for the messages to leave */

static int nodes_informed(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < lnk.nodes; i++)
		if (i != self_node && !atomic_load(&lnk.informed[i]) && !atomic_load(&lnk.dead[i]))
			return -EAGAIN;
	return 0;
}

/*
 * Context: no handler. A node that sees this one end without knowing why takes it for a death. So
 * wait for answers. After an error the others end without an answer.
 */
void link_end(int status)
{
	const struct link_wire w = { .value = status };

	atomic_store(&lnk.ending, true);
	for (unsigned int i = 0; i < lnk.nodes; i++)
		if (i != self_node)
			link_send(i, PROGRAM_END, &w, NULL);
	lib.wait_until(lnk.ep, nodes_informed, NULL, status < 0 ? END_MS : END_ERROR_MS);
}

noreturn void link_leave(void)
{
	link_exit(atomic_load(&lnk.ending) ? 0 : 1);
}

/* Node 0 ends the program when another node has died. */
static void link_died(unsigned int node)
{
	bool ending;

	atomic_store(&lnk.dead[node], true);
	ending = atomic_load(&lnk.ending);
	if (self_node ? node : ending)
		return;
	if (self_node && ending)
		link_exit(0);
	if (self_node < 2)
		world_say("node %u has died: the program ends", node_id(node));
	if (!self_node)
		link_end(1);
	link_exit(1);
}

void link_go_on(void)
{
	const struct link_wire w = { .value = END_NOT };

	atomic_store(&lnk.ending, false);
	for (unsigned int i = 0; i < lnk.nodes; i++) {
		if (i == self_node)
			continue;
		atomic_store(&lnk.informed[i], false);
		if (atomic_load(&lnk.dead[i]))
			link_died(i);
		link_send(i, PROGRAM_END, &w, NULL);
	}
}

static void link_take_events(void)
{
	struct sci_completion c;

	while (lib.completions(lnk.ep, 0, &c, 1) == 1) {
		if (!(c.status.flags & SCI_STATUS_PEER_DOWN))
			continue;
		for (unsigned int i = 0; i < lnk.nodes; i++)
			if (i != self_node && lnk.peers[i] == c.status.peer)
				link_died(i);
	}
}

static int link_needed(void *arg)
{
	(void)arg;
	return lib.queued(lnk.ep) || atomic_load(&pending.first) ? 0 : -EAGAIN;
}

static noreturn void *link_main(void *arg)
{
	(void)arg;
	for (;;) {
		lib.wait_until(lnk.ep, link_needed, NULL, -1);
		pending_send();
		link_take_events();
	}
}

/* ---- start ---- */

#define SYMBOL(member, symbol)						\
	(!(lib.member = (__typeof__(&symbol))dlsym(libsci, #symbol)))

static int libsci_open(void)
{
	void *libsci = library_open("libsci.so.0");

	if (!libsci) {
		world_say("%s", dlerror());
		return -ENOENT;
	}
	memory_find_libsci();
	if (SYMBOL(team_open, sci_team_open) || SYMBOL(team_rank, sci_team_rank) ||
	    SYMBOL(team_size, sci_team_size) || SYMBOL(allgather, sci_team_allgather) ||
	    SYMBOL(allreduce, sci_team_allreduce) || SYMBOL(op, sci_op) ||
	    SYMBOL(bcast, sci_team_bcast) || SYMBOL(ep_open, sci_ep_open_attr) ||
	    SYMBOL(ep_addr, sci_ep_addr) || SYMBOL(connect, sci_connect) ||
	    SYMBOL(handler_set, sci_handler_set) || SYMBOL(sendv, sci_handler_sendv) ||
	    SYMBOL(progress, sci_progress) || SYMBOL(wait_until, sci_wait_until) ||
	    SYMBOL(completions, sci_completions) || SYMBOL(queued, sci_completions_queued) ||
	    SYMBOL(set_data, sci_peer_set_data) || SYMBOL(data, sci_peer_data))
		return -ENOSYS;
	return 0;
}

int link_bcast(void *buf, size_t len)
{
	return lib.bcast(lnk.team, 0, buf, len);
}

int link_agree(int error)
{
	int32_t mine = error, all = 0;
	int ret = lib.allreduce(lnk.team, &mine, &all, 1, lib.op(SCI_OP_MIN, SCI_TYPE_INT32));

	return ret ? ret : all;
}

static int peers_connect(void)
{
	struct sci_addr mine = { 0 }, all[NODES_MAX];
	int ret = lib.ep_addr(lnk.ep, &mine);

	ret = link_agree(ret);
	ret = ret ? ret : lib.allgather(lnk.team, &mine, sizeof(mine), all);
	for (unsigned int i = 0; !ret && i < lnk.nodes; i++) {
		lnk.ids[i] = all[i].node;
		ret = lib.connect(lnk.ep, &all[i], CONNECT_MS, &lnk.peers[i]);
		if (!ret)
			lib.set_data(lnk.peers[i], (void *)(uintptr_t)(i + 1));
	}
	return link_agree(ret);
}

int link_open(void)
{
	struct sci_team_attr team = { .size = sizeof(team), .symmetric_size = 65536 };
	struct sci_ep_attr ep = { .size = sizeof(ep), .name = "sci-threads",
				  .flags = SCI_EP_PEER_EVENTS };
	int ret = libsci_open();

	ret = ret ? ret : lib.team_open(&lnk.team, &team);
	if (ret)
		return ret;
	lnk.nodes = (unsigned int)lib.team_size(lnk.team);
	if (lnk.nodes != world->nodes || (unsigned int)lib.team_rank(lnk.team) != self_node)
		return -EINVAL;
	ret = lib.ep_open(&lnk.ep, &ep);
	ret = ret ? ret : lib.handler_set(lnk.ep, LINK_HANDLER, link_handle, NULL);
	/* this thread answers the other nodes while this node connects */
	if (!ret && !quiet_start(link_main))
		ret = -EAGAIN;
	ret = link_agree(ret);
	return ret ? ret : peers_connect();
}
