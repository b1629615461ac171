// SPDX-License-Identifier: GPL-2.0-or-later
/* Copyright (C) 2026 The libsci authors */
/*
 * The cable is a socket to the fabric daemon, which is open while the card is enabled.
 *
 * No function of this file blocks. A queue has the packets for which the socket has no room.
 * When the queue is full, packets are lost, as on any link.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/sockets.h"
#include <sys/un.h>

#include "sci-pci.h"

#define QUEUE		1024u		/* length of the queue, a power of two */
#define RETRY_MS	200
#define BUDGET		256		/* frames handled before other work has its turn */

union any_frame {
	struct frame head;
	struct frame_attach attach;
	struct frame_exports exports;
	struct frame_packet packet;
};

static void link_retry_after(struct sci_card *card, int64_t ms)
{
	timer_mod_ns(card->link.retry,
		     qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + ms * SCALE_MS);
}

/* ---- out ---- */

static void link_readable(void *opaque)
{
	link_receive(opaque);
}

static void link_writable(void *opaque)
{
	link_flush(opaque);
}

static void link_watch(struct sci_card *card)
{
	struct sci_link *l = &card->link;

	qemu_set_fd_handler(l->fd, link_readable, l->queued ? link_writable : NULL, card);
}

/* Send a frame. Return false if the socket has no room. The next read reports other errors. */
static bool frame_send_now(struct sci_link *l, const struct iovec *v, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)v, .msg_iovlen = n };

	return sendmsg(l->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EAGAIN && errno != EINTR && errno != ENOBUFS);
}

static bool link_queue_frame(struct sci_card *card, const struct iovec *v, int n)
{
	struct sci_link *l = &card->link;
	struct queued *q;

	if (l->fd < 0)
		return true;
	if (!l->queued && frame_send_now(l, v, n))
		return true;
	if (l->queued == QUEUE)
		return false;
	if (!l->queue)
		l->queue = g_new(struct queued, QUEUE);
	q = &l->queue[(l->head + l->queued) % QUEUE];
	q->size = iov_to_buf(v, n, 0, q->bytes, sizeof(q->bytes));
	if (!l->queued++)
		link_watch(card);
	return true;
}

void link_flush(struct sci_card *card)
{
	struct sci_link *l = &card->link;
	bool some = l->queued;

	while (l->queued) {
		struct queued *q = &l->queue[l->head % QUEUE];
		struct iovec v = { q->bytes, q->size };

		if (!frame_send_now(l, &v, 1))
			return;
		l->head++;
		l->queued--;
	}
	if (some)
		link_watch(card);
}

void link_send_packet(struct sci_card *card, const struct sim_packet *p)
{
	struct frame head = { .kind = FRAME_PACKET, .node = card->config.node };
	struct iovec v[] = {
		{ &head, sizeof(head) },
		{ (void *)p, MIN(p->size, sizeof(*p)) },
	};

	if (card->link.attached)
		link_queue_frame(card, v, 2);
}

void link_send(struct sci_card *card, const void *frame, size_t size)
{
	struct iovec v = { (void *)frame, size };

	if (card->link.attached && !link_queue_frame(card, &v, 1))
		link_drop(card);
}

/* ---- the connection ---- */

void link_drop(struct sci_card *card)
{
	struct sci_link *l = &card->link;

	if (l->fd < 0)
		return;
	qemu_set_fd_handler(l->fd, NULL, NULL, NULL);
	/* the daemon takes the end of the connection as a proof that the window is unmapped */
	if (card->config.direct)
		window_detached(card);
	close(l->fd);
	l->fd = -1;
	l->attached = l->up = false;
	l->queued = 0;
	if (l->wanted)
		link_retry_after(card, RETRY_MS);
}

void link_tell(struct sci_card *card)
{
	struct sci_link *l = &card->link;

	if (l->told == l->up || !card_begin(card))
		return;
	l->told = l->up;
	sim_adapter_link(card->adapter, l->up);
	card_end(card);
}

static void link_report(struct sci_card *card, const char *what, int error)
{
	if (card->link.error != error)
		warn_report("sci-pci: node %u: %s %s: %s", card->config.node,
			    card->socket, what, strerror(error));
	card->link.error = error;
}

/* Send the first frame, with the descriptor of main memory if the window is direct. */
static bool link_attach(struct sci_card *card)
{
	struct frame_attach attach = {
		.head = { .kind = FRAME_ATTACH, .node = card->config.node },
		.version = FABRIC_VERSION,
		.direct = card->config.direct,
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec v = { &attach, sizeof(attach) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *c;
	Error *error = NULL;
	int fd;

	if (card->config.direct) {
		if (!window_memory(card, &attach, &fd, &error)) {
			error_report_err(error);
			return false;
		}
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(card->link.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void link_connect(void *opaque)
{
	struct sci_card *card = opaque;
	struct sci_link *l = &card->link;
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (!l->wanted || l->fd >= 0 || !card->socket)
		return;
	if (strlen(card->socket) >= sizeof(to.sun_path)) {
		link_report(card, "socket", ENAMETOOLONG);
		return;
	}
	strcpy(to.sun_path, card->socket);
	l->fd = qemu_socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (l->fd < 0) {
		link_report(card, "socket", errno);
		link_retry_after(card, RETRY_MS);
		return;
	}
	qemu_socket_set_nonblock(l->fd);
	if (connect(l->fd, (struct sockaddr *)&to, sizeof(to))) {
		link_report(card, "connect", errno);
		link_drop(card);
		return;
	}
	if (!link_attach(card)) {
		link_drop(card);
		return;
	}
	link_watch(card);
}

/* Connect or disconnect the link. link_tell() reports the result to the model later. */
void link_enable(struct sci_card *card, bool enable)
{
	struct sci_link *l = &card->link;

	l->wanted = enable;
	if (!enable) {
		timer_del(l->retry);
		link_drop(card);
	} else if (l->fd < 0) {
		link_retry_after(card, 0);
	} else {
		/* the link state is the same, but report it to the model again */
		l->told = false;
	}
}

/* ---- in ---- */

/* Return the last descriptor of a message, or -1. Close other descriptors of the message. */
static int fd_take(struct msghdr *m)
{
	struct cmsghdr *c;
	int fd = -1;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t i, n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < n; i++) {
			if (fd >= 0)
				close(fd);
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		}
	}
	return fd;
}

static void packet_receive(struct sci_card *card, const union any_frame *f, size_t size)
{
	const void *packet = (const char *)f + sizeof(f->head);

	size -= sizeof(f->head);
	if (!card_begin(card))
		return;
	if (f->head.kind == FRAME_PACKET)
		sim_adapter_receive(card->adapter, packet, size);
	else
		sim_adapter_no_node(card->adapter, packet, size);
	card_end(card);
}

static void frame_handle(struct sci_card *card, const union any_frame *f, size_t size,
			 int fd)
{
	struct sci_link *l = &card->link;

	switch (f->head.kind) {
	case FRAME_PACKET:
	case FRAME_NO_NODE:
		packet_receive(card, f, size);
		break;
	case FRAME_ATTACHED:
		l->attached = true;
		l->error = 0;
		if (card->config.direct)
			window_attached(card);
		break;
	case FRAME_REFUSED:
		link_report(card, "refuses it", f->head.value);
		link_drop(card);
		break;
	case FRAME_LINK:
		l->up = l->attached && f->head.value;
		link_tell(card);
		break;
	default:
		if (card->config.direct) {
			window_frame(card, f, size, fd);
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* Receive and handle frames, BUDGET at most. */
void link_receive(struct sci_card *card)
{
	struct sci_link *l = &card->link;
	union any_frame f;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	unsigned int i;
	ssize_t n;
	int fd;

	for (i = 0; i < BUDGET && l->fd >= 0; i++) {
		struct iovec v = { &f, sizeof(f) };
		struct msghdr m = {
			.msg_iov = &v,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};

		n = recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			link_drop(card);
			break;
		}
		fd = fd_take(&m);
		if (n >= sizeof(f.head) && !(m.msg_flags & MSG_TRUNC))
			frame_handle(card, &f, n, fd);
		else if (fd >= 0)
			close(fd);
	}
	link_tell(card);
}

void link_init(struct sci_card *card)
{
	card->link.fd = -1;
	card->link.retry = timer_new_ns(QEMU_CLOCK_REALTIME, link_connect, card);
}

void link_exit(struct sci_card *card)
{
	struct sci_link *l = &card->link;

	l->wanted = false;
	link_drop(card);
	timer_free(g_steal_pointer(&l->retry));
	g_free(g_steal_pointer(&l->queue));
}
