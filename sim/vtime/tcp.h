/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: TCP over Fast Ethernet
 *
 * The hosts of a profile with Ethernet have one more network: full-duplex Ethernet, and TCP in their
 * kernels. The figures of the profile are the times of these steps:
 *
 *	program		a call of a socket: @tcp_call; for each segment @tcp_output, and a copy of
 *			its bytes
 *	sender		the network card reads the packet from memory, as the SCI adapter does
 *	wire		@ether_rate for the frame, with Ethernet's preamble, header, CRC and gap
 *	receiver	the card writes the packet to memory; @tcp_path, which no paper divides
 *	kernel		@tcp_interrupt, @tcp_input, and a checksum of the bytes, on the CPU that runs
 *			no program: the hosts have two
 *	program		@tcp_call and a copy; @tcp_switch before it if the program was asleep
 *
 * A receiver acknowledges more than one full segment at once. It acknowledges fewer bytes with its
 * next segment only. A side has room for @tcp_buffer bytes in each direction, and knows at once how
 * far the other program has read. There is no slow start, no loss, no packet of a connect, and no
 * interrupt for a packet that was sent. The cards do not share their bus with the SCI adapters.
 */
#ifndef SIM_VTIME_TCP_H
#define SIM_VTIME_TCP_H

#include <sys/types.h>
#include <sys/uio.h>

#include "sim/vtime/vtime.h"

struct vt_tcp;				/* one end of a connection */

/*
 * Make Ethernet the only network between the nodes: their SCI adapters have no cables. Call this
 * before the programs start. Return false, after a message: the profile has no Ethernet.
 */
bool vt_ethernet(struct vt_sim *s);

/* Make a connection. Return the end at @a, and the end at @b in @other. Both exist until vt_free(). */
struct vt_tcp *vt_tcp_pair(struct vt_node *a, struct vt_node *b, struct vt_tcp **other);

/*
 * Send or receive without blocking, and charge the time to the program. Return the number of bytes;
 * -EAGAIN; -EPIPE: the other end is closed; vt_tcp_recv() returns 0 at the end of the stream.
 * vt_touch() reports the end of -EAGAIN.
 */
ssize_t vt_tcp_send(struct vt_tcp *t, const struct iovec *iov, size_t n);
ssize_t vt_tcp_recv(struct vt_tcp *t, const struct iovec *iov, size_t n);
bool vt_tcp_readable(const struct vt_tcp *t);
bool vt_tcp_writable(const struct vt_tcp *t);
void vt_tcp_close(struct vt_tcp *t);

/* Return the number of frames that all cards have sent, and of bytes on the wire. */
uint64_t vt_tcp_frames(const struct vt_sim *s);
uint64_t vt_tcp_bytes(const struct vt_sim *s);

/* Limits of the hardware: picoseconds of a packet with @bytes, and bytes a second. */
double vt_tcp_bound_latency(const struct vt_profile *p, size_t bytes);
double vt_tcp_bound_rate(const struct vt_profile *p);

/* ---- sockets.c: the library's sockets ---- */

/* Do the work of the threads of the library's net fabric at @n. Return true if there was any. */
bool vt_sockets_serve(struct vt_node *n);

#endif
