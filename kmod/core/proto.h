/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: messages between kernels
 *
 * Control packets are 64 bytes: a header that the session layer (session.h)
 * owns, and one message.  The session delivers messages once and in order, or
 * reports that the node is lost.  All integers are little-endian.
 *
 * A handle names a connection at the side that receives the message; it is
 * valid only for the node that it was given to.
 *
 *	importer                           exporter
 *	CONNECT(id, credentials)     ->
 *	                             <-    REPLY(status, handle, base, length)
 *	DISCONNECT(handle)           ->                   orderly, or died
 *	                             <-    LEFT(handle)   the importer was removed
 *	                             <-    NOTIFY(handle) the importer shall disconnect
 *	                             <-    CUT(handle)    the importer is cut off
 *	CUT_ACK(handle)              ->                   the importer's maps are revoked
 *
 * Interrupts use the same messages, and CONNECT has their number. TRIGGER(handle) is a trigger.
 * A trigger with data is DATA(handle, total) with as many bytes as fit, and MORE with the rest;
 * DATA_REPLY ends it.
 *
 * A kernel trusts the user and group ids and SCI_MSG_OVERRIDES that other kernels send, as NFS
 * with sec=sys does. It trusts other kernels in nothing else.
 */
#ifndef SCI_PROTO_H
#define SCI_PROTO_H

#include <linux/build_bug.h>
#include <linux/types.h>

#define SCI_MESSAGE_SIZE	48

enum sci_message_type {
	SCI_MSG_CONNECT = 1,
	SCI_MSG_REPLY,
	SCI_MSG_DISCONNECT,
	SCI_MSG_NOTIFY,
	SCI_MSG_CUT,
	SCI_MSG_CUT_ACK,
	SCI_MSG_TRIGGER,
	SCI_MSG_DATA,
	SCI_MSG_MORE,
	SCI_MSG_DATA_REPLY,
	SCI_MSG_PING,
	SCI_MSG_PONG,
	SCI_MSG_LEFT,
};

/* Kinds of objects that a client connects to: struct sci_msg_connect.kind */
enum sci_connect_kind {
	SCI_KIND_SEGMENT,
	SCI_KIND_INTR,
	SCI_KIND_DATA_INTR,
	SCI_KIND_GROUP,			/* a member of a broadcast group */
};

#define SCI_MSG_GROUPS		7

/* struct sci_msg_connect.flags: the process has CAP_DAC_OVERRIDE */
#define SCI_MSG_OVERRIDES	0x01

struct sci_msg_connect {
	u8 type;
	u8 kind;			/* enum sci_connect_kind */
	u8 groups;			/* number of valid entries of .group */
	u8 flags;
	__le32 handle;			/* the importer's handle */
	__le32 id;			/* id of the segment, or number of the interrupt */
	__le32 uid;
	__le32 gid;
	__le32 group[SCI_MSG_GROUPS];
};
static_assert(sizeof(struct sci_msg_connect) == SCI_MESSAGE_SIZE);

struct sci_msg_reply {
	u8 type;
	u8 access;			/* granted: 4 read, 2 write */
	__le16 error;			/* enum sci_proto_error */
	__le32 handle;			/* the importer's handle */
	__le32 exporter;		/* the exporter's handle */
	__le32 reserved;
	__le64 length;
	__le64 base;
	__le64 group;			/* SCI_KIND_GROUP: serial number of the group, not 0 */
	u8 pad[8];
};
static_assert(sizeof(struct sci_msg_reply) == SCI_MESSAGE_SIZE);

/* DISCONNECT, LEFT, NOTIFY, CUT, CUT_ACK, TRIGGER, DATA_REPLY, PING, PONG */
struct sci_msg_simple {
	u8 type;
	u8 died;			/* DISCONNECT: the process died */
	__le16 error;			/* DATA_REPLY */
	__le32 handle;
	__le16 cookie;			/* DATA_REPLY: the cookie of DATA */
	u8 pad[38];
};
static_assert(sizeof(struct sci_msg_simple) == SCI_MESSAGE_SIZE);

#define SCI_MSG_DATA_BYTES	36

struct sci_msg_data {
	u8 type;			/* DATA or MORE */
	u8 bytes;			/* number of bytes in .data */
	__le16 cookie;			/* DATA: repeated in the reply */
	__le32 handle;
	__le32 total;			/* DATA: bytes of the whole trigger */
	u8 data[SCI_MSG_DATA_BYTES];
};
static_assert(sizeof(struct sci_msg_data) == SCI_MESSAGE_SIZE);

/* Errors of replies. They have their own numbers, since errno differs between architectures. */
enum sci_proto_error {
	SCI_PROTO_OK,
	SCI_PROTO_NOENT,
	SCI_PROTO_ACCES,
	SCI_PROTO_USERS,
	SCI_PROTO_NOMEM,
	SCI_PROTO_NOBUFS,
	SCI_PROTO_NOTCONN,
	SCI_PROTO_INVAL,
};

#endif
