/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Madeleine's network toolbox: numbers as text, ranks, and topologies. */
#ifndef NTBX_H
#define NTBX_H

#include <tbx.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ntbx_success = 0, ntbx_failure = -1 };

/* ---- numbers for peers of any kind ---- */

#define NTBX_PACK_BUFFER_LEN	32

typedef struct s_ntbx_pack_buffer {
	char buffer[NTBX_PACK_BUFFER_LEN];
} ntbx_pack_buffer_t, *p_ntbx_pack_buffer_t;

/* Pack or unpack a number. It is fatal to unpack a type that differs from the packed type. */
void ntbx_pack_int(int v, p_ntbx_pack_buffer_t b);
int ntbx_unpack_int(p_ntbx_pack_buffer_t b);
void ntbx_pack_long(long v, p_ntbx_pack_buffer_t b);
long ntbx_unpack_long(p_ntbx_pack_buffer_t b);
void ntbx_pack_unsigned_int(unsigned int v, p_ntbx_pack_buffer_t b);
unsigned int ntbx_unpack_unsigned_int(p_ntbx_pack_buffer_t b);
void ntbx_pack_unsigned_long(unsigned long v, p_ntbx_pack_buffer_t b);
unsigned long ntbx_unpack_unsigned_long(p_ntbx_pack_buffer_t b);
void ntbx_pack_double(double v, p_ntbx_pack_buffer_t b);
double ntbx_unpack_double(p_ntbx_pack_buffer_t b);

/* ---- processes ---- */

typedef int ntbx_process_grank_t, *p_ntbx_process_grank_t;	/* in the session */
typedef int ntbx_process_lrank_t, *p_ntbx_process_lrank_t;	/* in a channel */

/* A process of the session. */
typedef struct s_ntbx_process {
	ntbx_process_grank_t global_rank;
	char *host;			/* name of the host in the session file */
	int number;			/* number of the process on this host */
} ntbx_process_t, *p_ntbx_process_t;

/* An entry of a process container, for one process. */
typedef struct s_ntbx_process_info {
	ntbx_process_lrank_t local_rank;
	p_ntbx_process_t process;
	void *specific;
} ntbx_process_info_t, *p_ntbx_process_info_t;

typedef struct s_ntbx_process_container {
	p_tbx_darray_t local_index;	/* p_ntbx_process_info_t by local rank */
	p_tbx_darray_t global_index;	/* p_ntbx_process_info_t by global rank */
	int count;
} ntbx_process_container_t, *p_ntbx_process_container_t;

ntbx_process_grank_t ntbx_pc_local_to_global(p_ntbx_process_container_t pc,
					     ntbx_process_lrank_t l);
ntbx_process_lrank_t ntbx_pc_global_to_local(p_ntbx_process_container_t pc,
					     ntbx_process_grank_t g);
tbx_bool_t ntbx_pc_first_local_rank(p_ntbx_process_container_t pc,
				    p_ntbx_process_lrank_t l);
tbx_bool_t ntbx_pc_next_local_rank(p_ntbx_process_container_t pc, p_ntbx_process_lrank_t l);
tbx_bool_t ntbx_pc_first_global_rank(p_ntbx_process_container_t pc,
				     p_ntbx_process_grank_t g);
tbx_bool_t ntbx_pc_next_global_rank(p_ntbx_process_container_t pc,
				    p_ntbx_process_grank_t g);
ntbx_process_lrank_t ntbx_pc_local_max(p_ntbx_process_container_t pc);	/* -1: none */
ntbx_process_grank_t ntbx_pc_global_max(p_ntbx_process_container_t pc);
p_ntbx_process_info_t ntbx_pc_get_local(p_ntbx_process_container_t pc,
					ntbx_process_lrank_t l);
p_ntbx_process_info_t ntbx_pc_get_global(p_ntbx_process_container_t pc,
					 ntbx_process_grank_t g);
p_ntbx_process_t ntbx_pc_get_local_process(p_ntbx_process_container_t pc,
					   ntbx_process_lrank_t l);
p_ntbx_process_t ntbx_pc_get_global_process(p_ntbx_process_container_t pc,
					    ntbx_process_grank_t g);
void *ntbx_pc_get_local_specific(p_ntbx_process_container_t pc, ntbx_process_lrank_t l);
void *ntbx_pc_get_global_specific(p_ntbx_process_container_t pc, ntbx_process_grank_t g);

/* ---- topologies ---- */

typedef struct s_ntbx_topology_element {
	void *specific;
} ntbx_topology_element_t, *p_ntbx_topology_element_t;

typedef struct s_ntbx_topology_table {
	int size;
	p_ntbx_topology_element_t *element;	/* size * size; NULL: not connected */
} ntbx_topology_table_t, *p_ntbx_topology_table_t;

p_ntbx_topology_element_t ntbx_topology_table_get(p_ntbx_topology_table_t t,
						  ntbx_process_lrank_t src,
						  ntbx_process_lrank_t dst);

#ifdef __cplusplus
}
#endif

#endif
