// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: eager or rendezvous, decided at run time
 *
 * A rendezvous begins with a handshake: an RTS to the receiver and a CTS back. An eager message has
 * no handshake, but its bytes are copied twice more, by the sender into the eager ring and by the
 * receiver out of it. SCI_PARAM_EAGER_MAX is the threshold for a near peer. A network of sockets
 * reaches processes of the same machine and machines on another continent, and only measurements at
 * run time tell how far a peer is. So the sender measures its handshakes. A message of up to
 * SCI_PARAM_FAR_EAGER_MAX bytes leaves its handshake out if the handshake would take longer than the
 * copies.
 *
 * A handshake that waits for a late receive takes longer than the way to the peer and back. So the
 * shortest of the last 8 to 16 handshakes counts. If every receive is late, eager messages are the
 * right choice, too: the bytes arrive while the receiver is busy.
 *
 * Messages without handshakes measure nothing. So the last handshake counts for a limited number of
 * messages. Then one message measures again.
 */
#include "libsci/base/host.h"
#include "libsci/msg/proto/proto.h"

#define WINDOW		8u
#define VALID		32u

/*
 * Duration of the two copies. With `sci bench --peer` over the loopback interface, 256 KiB take 75 us
 * with SCI_MSG_EAGER_MAX=262144 and 50 us with a handshake of some 12 us: 145 ns per KiB (Xeon). The
 * value has a margin: near peers keep their handshakes.
 */
#define COPIES_NS_PER_KIB	200u

void handshake_begin(struct sci_req *req)
{
	req->asked_ns = req->peer->params->value[SCI_PARAM_FAR_EAGER_MAX] ? sci_now_ns() : 0;
}

void handshake_end(struct sci_req *req)
{
	struct msg_handshakes *h = &req->peer->handshakes;
	uint64_t ns;

	if (!req->asked_ns)
		return;
	ns = sci_now_ns() - req->asked_ns;
	ns = ns < UINT32_MAX ? ns : UINT32_MAX;
	if (!h->count || ns < h->least)
		h->least = (uint32_t)ns;
	h->left = VALID;
	if (++h->count < WINDOW)
		return;
	h->count = 0;
	h->least_before = h->least;
}

/* Return whether a handshake for the message would take longer than two copies of it. */
bool handshake_takes_longer(const struct sci_req *req)
{
	const struct msg_handshakes *h = &req->peer->handshakes;
	uint32_t ns = h->count && h->least < h->least_before ? h->least : h->least_before;

	return h->left && req->len <= req->peer->params->value[SCI_PARAM_FAR_EAGER_MAX] &&
	       ns > (uint64_t)req->len * COPIES_NS_PER_KIB / 1024;
}

/* Count a message that is eager because a handshake would take longer. */
void handshake_leave_out(struct sci_peer *p)
{
	p->handshakes.left--;
}
