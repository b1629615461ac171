// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/switch/attach.h"
#include "sim/switch/conn.h"
#include "sim/switch/direct.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"

#define DESCRIPTORS	8	/* room for descriptors: more than one is an error */

/* Keep the first descriptor of a frame. Return false if the frame has more descriptors. */
static bool descriptors_take(struct conn *c, struct msghdr *msg)
{
	struct cmsghdr *h;
	bool good = !(msg->msg_flags & MSG_CTRUNC);
	size_t i;
	int fd;

	for (h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= h->cmsg_len; i++) {
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			if (c->memory < 0) {
				c->memory = fd;
				continue;
			}
			close(fd);
			good = false;
		}
	}
	return good;
}

/* Receive a frame as recvmsg() does, but return -EBADF if it has more than one descriptor. */
static ssize_t frame_read(struct conn *c)
{
	struct iovec iov = {
		.iov_base = &c->attach, .iov_len = sizeof(c->attach),
	};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n;

	n = recvmsg(c->watch.fd, &msg,
		    MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	return descriptors_take(c, &msg) ? n : -EBADF;
}

/* Check that all ranges are inside the file, which other processes will map. */
static bool memory_is_valid(const struct conn *c)
{
	const struct frame_attach *a = &c->attach;
	struct stat st;
	uint32_t i;

	if (a->direct != 1 || c->memory < 0 || !a->ranges ||
	    a->ranges > FABRIC_RANGES || fstat(c->memory, &st))
		return false;
	for (i = 0; i < a->ranges; i++) {
		uint64_t address = a->range[i].address, size = a->range[i].size;
		uint64_t offset = a->range[i].offset;

		if (!size || address + size < address ||
		    offset > (uint64_t)st.st_size ||
		    size > (uint64_t)st.st_size - offset)
			return false;
	}
	return true;
}

/* Check the first frame of an adapter. Return 0 or an errno. */
static int frame_check(const struct conn *c, size_t n)
{
	const struct frame_attach *a = &c->attach;

	if (n < offsetof(struct frame_attach, direct) ||
	    a->head.kind != FRAME_ATTACH)
		return EPROTO;
	if (a->version != FABRIC_VERSION)
		return EPROTONOSUPPORT;
	if (n != sizeof(*a) || a->head.value || a->head.reserved || a->reserved)
		return EINVAL;
	if (!node_id_is_valid(a->head.node))
		return EINVAL;
	if (a->direct ? !memory_is_valid(c) : c->memory >= 0)
		return EINVAL;
	return 0;
}

/* Find the node of an id. Without a topology file, add the node if it is new. */
static int node_find_attached(struct fabric *f, uint16_t id, struct node **node)
{
	*node = node_find(f, id);
	if (!*node && f->topology.fixed)
		return ENODEV;
	if (!*node)
		*node = node_join_default(f, id);
	return *node ? 0 : ENOMEM;
}

static int conn_attach(struct conn *c)
{
	struct fabric *f = c->fabric;
	struct node *n;
	int ret = node_find_attached(f, (uint16_t)c->attach.head.node, &n);

	if (ret)
		return ret;
	if (node_there(n)) {
		/* Check the old connection: the loop may not have handled its end yet. */
		if (!conn_dead(n->conn))
			return EEXIST;
		conn_fail(n->conn);
	}
	if (n->conn)
		conn_leave(n->conn);
	c->node = n;
	n->conn = c;
	return 0;
}

static void conn_welcome(struct conn *c)
{
	struct frame frame = { .kind = FRAME_ATTACHED, .node = c->node->id };

	fabric_note(c->fabric, "node %u: attached%s", c->node->id,
		    c->attach.direct ? ", direct" : "");
	conn_send(c, &frame, sizeof(frame), -1);
	node_tell_link(c->node, true);
	direct_came(c->fabric, c);
}

static void conn_refuse(struct conn *c, int error)
{
	struct frame frame = {
		.kind = FRAME_REFUSED, .node = c->attach.head.node,
		.value = (uint32_t)error,
	};

	fabric_note(c->fabric, "node %u: refused: %s", frame.node,
		    strerror(error));
	conn_send(c, &frame, sizeof(frame), -1);
	conn_fail(c);
}

bool attach_frame(struct conn *c)
{
	ssize_t n = frame_read(c);
	int error;

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0 && n != -EBADF) {
		conn_fail(c);
		return false;
	}
	error = n < 0 ? EINVAL : frame_check(c, (size_t)n);
	if (!error)
		error = conn_attach(c);
	if (error)
		conn_refuse(c, error);
	else
		conn_welcome(c);
	return true;
}
