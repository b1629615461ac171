/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: Madeleine
 *
 * The communication library of MPICH/Madeleine ("MPICH/Madeleine: a True Multi-Protocol MPI for
 * High Performance Networks", Aumage, Mercier, Namyst), interface version III. A session is
 * described by a file; mad-run starts its processes. A channel is a set of processes with its own
 * message space. A message consists of blocks. The send mode of a block says when the program may
 * change its buffer. The receive mode says when the receiver needs its bytes.
 *
 * Rules for all calls:
 *  - Failures are fatal: the library prints a text on standard error and calls abort().
 *  - Several threads may make calls at the same time. A connection has one outgoing message at
 *    a time, and a channel has one incoming message: a second thread waits, a second attempt of
 *    the same thread is fatal.
 *  - Both sides name the same blocks in the same order, with the same lengths and modes.
 *  - When a process dies, processes that wait or test for its messages fail. A gateway is such
 *    a process: its death is an error at both ends of the messages that it forwards.
 */
#ifndef MADELEINE_H
#define MADELEINE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tbx.h>
#include <ntbx.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAD_MESSAGE_POLLING	1	/* the library has mad_message_ready() */

#define MAD_ALIGNMENT		4
#define MAD_LENGTH_ALIGNMENT	4
#define MAD_ALIGNED		__attribute__((aligned(MAD_ALIGNMENT)))

/* ---- modes ---- */

typedef enum e_mad_send_mode {
	mad_send_unknown = 0,
	mad_send_SAFER = 1,	/* the buffer may change when mad_pack() returns */
	mad_send_LATER = 2,	/* mad_end_packing() reads the buffer */
	mad_send_CHEAPER = 3	/* the buffer must stay until mad_end_packing() returns */
} mad_send_mode_t, *p_mad_send_mode_t;

typedef enum e_mad_receive_mode {
	mad_receive_unknown = 0,
	mad_receive_EXPRESS = 1,	/* mad_unpack() waits for the bytes */
	mad_receive_CHEAPER = 2	/* mad_end_unpacking() waits for the bytes */
} mad_receive_mode_t, *p_mad_receive_mode_t;

/* Names of the modes in the papers about Madeleine. */
#define send_SAFER		mad_send_SAFER
#define send_LATER		mad_send_LATER
#define send_CHEAPER		mad_send_CHEAPER
#define receive_EXPRESS		mad_receive_EXPRESS
#define receive_CHEAPER		mad_receive_CHEAPER

/* ---- objects ---- */

typedef long mad_channel_id_t, *p_mad_channel_id_t;

typedef enum e_mad_channel_type {
	mad_channel_type_uninitialized = 0,
	mad_channel_type_regular = 1,
	mad_channel_type_forwarding = 2,
	mad_channel_type_virtual = 3,
	mad_channel_type_mux = 4
} mad_channel_type_t, *p_mad_channel_type_t;

typedef enum e_mad_connection_way {
	mad_unknown_connection = 0,
	mad_incoming_connection = 1,
	mad_outgoing_connection = 2
} mad_connection_way_t, *p_mad_connection_way_t;

typedef enum e_mad_connection_nature {
	mad_connection_nature_uninitialized = 0,
	mad_connection_nature_regular = 1,
	mad_connection_nature_direct_virtual = 2,
	mad_connection_nature_indirect_virtual = 3,
	mad_connection_nature_mux = 4
} mad_connection_nature_t, *p_mad_connection_nature_t;

typedef struct s_mad_channel mad_channel_t, *p_mad_channel_t;
typedef struct s_mad_connection mad_connection_t, *p_mad_connection_t;
typedef struct s_mad_madeleine mad_madeleine_t, *p_mad_madeleine_t;

typedef struct s_mad_session {
	TBX_SHARED
	ntbx_process_grank_t process_rank;
	int session_id;
} mad_session_t, *p_mad_session_t;

typedef struct s_mad_directory {
	TBX_SHARED
	p_tbx_slist_t process_slist;		/* p_ntbx_process_t, by global rank */
} mad_directory_t, *p_mad_directory_t;

typedef struct s_mad_settings {
	TBX_SHARED
	tbx_bool_t leonie_dynamic_mode;
} mad_settings_t, *p_mad_settings_t;

typedef struct s_mad_dir_channel {
	TBX_SHARED
	char *name;
	p_ntbx_process_container_t pc;
	p_ntbx_topology_table_t ttable;
} mad_dir_channel_t, *p_mad_dir_channel_t;

struct s_mad_madeleine {
	TBX_SHARED
	p_mad_session_t session;
	p_mad_directory_t dir;
	p_mad_settings_t settings;
	p_tbx_htable_t channel_htable;		/* channels of this process, by name */
	p_tbx_slist_t public_channel_slist;	/* char *: names of the session's channels */
};

struct s_mad_channel {
	TBX_SHARED
	ntbx_process_lrank_t process_lrank;	/* rank of this process */
	mad_channel_type_t type;
	mad_channel_id_t id;
	char *name;
	p_ntbx_process_container_t pc;
	tbx_bool_t not_private;
	p_tbx_darray_t in_connection_darray;	/* by local rank; NULL: none */
	p_tbx_darray_t out_connection_darray;
	unsigned int max_sub;
	unsigned int sub;
	p_mad_dir_channel_t dir_channel;
	struct mad_reception *reception;	/* private to the library */
};

struct s_mad_connection {
	TBX_SHARED
	ntbx_process_lrank_t remote_rank;
	p_mad_channel_t channel;
	mad_connection_way_t way;
	mad_connection_nature_t nature;
	p_mad_connection_t reverse;
	struct mad_stream *stream;		/* private to the library */
};

/* ---- start and end ---- */

typedef struct s_common_attr {
	p_mad_madeleine_t madeleine;
} common_attr_t, *p_common_attr_t;

void common_attr_init(p_common_attr_t attr);

/* Do common_pre_init() and common_post_init(). Collective over the session. @attr may be NULL. */
void common_init(int *argc, char *argv[], p_common_attr_t attr);
void common_pre_init(int *argc, char *argv[], p_common_attr_t attr);
/* Remove the session's arguments from @argv, and open all channels. */
void common_post_init(int *argc, char *argv[], p_common_attr_t attr);

/* Wait until all processes have called common_exit(), and close all channels. */
void common_exit(p_common_attr_t attr);

p_mad_madeleine_t mad_init(int *argc, char **argv);
p_mad_madeleine_t mad_get_madeleine(void);

/* ---- channels ---- */

/* Return a channel. A private channel, or a channel without this process, is a fatal error. */
p_mad_channel_t mad_get_channel(p_mad_madeleine_t m, const char *name);

/* Return sub-channel @sub of a mux channel, up to max_sub - 1; 0: the channel itself. */
p_mad_channel_t mad_get_sub_channel(p_mad_channel_t channel, unsigned int sub);

/* ---- messages ---- */

/* Begin a message. Return NULL if the channel is private or has no connection to rank @to. */
p_mad_connection_t mad_begin_packing(p_mad_channel_t channel, ntbx_process_lrank_t to);

/* Append a block to the message. A block of length 0 has no effect. */
void mad_pack(p_mad_connection_t connection, const void *buf, size_t len,
	      mad_send_mode_t send, mad_receive_mode_t receive);

/* Send the rest of the message. Then the program may reuse all buffers of the message. */
void mad_end_packing(p_mad_connection_t connection);

/* Wait for the next message of any sender. Return NULL if the channel is private. */
p_mad_connection_t mad_begin_unpacking(p_mad_channel_t channel);

/* Begin to receive without waiting. Return NULL: no message, or another thread receives. */
p_mad_connection_t mad_message_ready(p_mad_channel_t channel);

/* Receive the next block of the message. */
void mad_unpack(p_mad_connection_t connection, void *buf, size_t len, mad_send_mode_t send,
		mad_receive_mode_t receive);

/* Wait for all blocks of the message. Then the channel may receive the next message. */
void mad_end_unpacking(p_mad_connection_t connection);

/* ---- blocks that may get lost: these networks lose none ---- */

enum { mad_op_optional_block = 1 };	/* value: permitted loss in percent */
enum { mad_os_lost_block = 1 };

typedef struct s_mad_buffer_slice_parameter {
	void *base;
	size_t offset;
	size_t length;			/* 0: to the end of the block */
	int opcode;
	int value;
} mad_buffer_slice_parameter_t, *p_mad_buffer_slice_parameter_t;

p_mad_buffer_slice_parameter_t mad_alloc_slice_parameter(void);
void mad_free_slice_parameter(p_mad_buffer_slice_parameter_t p);
void mad_free_parameter_slist(p_tbx_slist_t l);	/* frees the elements, too; @l may be NULL */

/* Append a block with parameters, which NULL ends. The library frees the parameters. */
void mad_pack_ext(p_mad_connection_t connection, const void *buf, size_t len,
		  mad_send_mode_t send, mad_receive_mode_t receive, ...);
p_tbx_slist_t mad_unpack_ext(p_mad_connection_t connection, void *buf, size_t len,
			     mad_send_mode_t send, mad_receive_mode_t receive);
p_tbx_slist_t mad_end_unpacking_ext(p_mad_connection_t connection);

/* ---- the session ---- */

void mad_leonie_barrier(void);		/* one thread of each process calls */
/* Print a line on the terminal of mad-run. */
__attribute__((format(printf, 1, 2))) void mad_leonie_print(const char *fmt, ...);
void mad_leonie_beat(void);

#define LDISP			mad_leonie_print
#define LDISP_VAL(s, v)		mad_leonie_print("%s = %d", s, (int)(v))
#define LDISP_STR(s, v)		mad_leonie_print("%s: %s", s, v)
#define LDISP_PTR(s, v)		mad_leonie_print("%s = %p", s, (const void *)(v))
#define LDISP_CHAR(s, v)	mad_leonie_print("%s = %c", s, (int)(v))

#ifdef __cplusplus
}
#endif

#endif
