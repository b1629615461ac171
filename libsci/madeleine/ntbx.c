// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Numbers as text, containers of processes, topologies. */
#include <math.h>

#include "libsci/madeleine/internal.h"

/* ---- numbers ---- */

#define LETTERS	4

static char *text_begin(p_ntbx_pack_buffer_t b, char letter)
{
	memset(b->buffer, 0, sizeof(b->buffer));
	memset(b->buffer, letter, LETTERS);
	return b->buffer + LETTERS;
}

/* Check the letters that name the type of a packed number, and copy the text of the number. */
static void text_get(const ntbx_pack_buffer_t *b, char letter, size_t width, char *text)
{
	for (int i = 0; i < LETTERS; i++)
		if (b->buffer[i] != letter)
			tbx_failuref("a pack buffer begins with %.4s: it holds another type",
				     b->buffer);
	if (b->buffer[LETTERS + width] != '-')
		tbx_failure("a pack buffer holds no number");
	memcpy(text, b->buffer + LETTERS, width);
	text[width] = '\0';
}

#define ROOM	(NTBX_PACK_BUFFER_LEN - LETTERS)

#define NUMBER(name, type, letter, width, format, convert)			\
	void ntbx_pack_##name(type v, p_ntbx_pack_buffer_t b)			\
	{									\
		snprintf(text_begin(b, letter), ROOM, "%*" format "-", width, v); \
	}									\
	type ntbx_unpack_##name(p_ntbx_pack_buffer_t b)				\
	{									\
		char text[ROOM];						\
										\
		text_get(b, letter, width, text);				\
		return (type)convert(text, NULL, 10);				\
	}

NUMBER(int, int, 'i', 11, "d", strtol)
NUMBER(long, long, 'l', 21, "ld", strtol)
NUMBER(unsigned_int, unsigned int, 'I', 10, "u", strtoul)
NUMBER(unsigned_long, unsigned long, 'L', 20, "lu", strtoul)

void ntbx_pack_double(double v, p_ntbx_pack_buffer_t b)
{
	int exponent;
	double mantissa = frexp(v, &exponent);

	snprintf(text_begin(b, 'D'), ROOM, "%11d-%14.11f-", exponent, mantissa);
}

double ntbx_unpack_double(p_ntbx_pack_buffer_t b)
{
	char exponent[ROOM], mantissa[16];

	text_get(b, 'D', 11, exponent);
	memcpy(mantissa, b->buffer + LETTERS + 12, 14);
	mantissa[14] = '\0';
	return ldexp(strtod(mantissa, NULL), (int)strtol(exponent, NULL, 10));
}

/* ---- containers ---- */

static p_ntbx_process_info_t info_at(p_tbx_darray_t d, int i)
{
	return i < 0 ? NULL : tbx_darray_get(d, i);
}

p_ntbx_process_info_t ntbx_pc_get_local(p_ntbx_process_container_t pc,
					ntbx_process_lrank_t l)
{
	return info_at(pc->local_index, l);
}

p_ntbx_process_info_t ntbx_pc_get_global(p_ntbx_process_container_t pc,
					 ntbx_process_grank_t g)
{
	return info_at(pc->global_index, g);
}

ntbx_process_grank_t ntbx_pc_local_to_global(p_ntbx_process_container_t pc,
					     ntbx_process_lrank_t l)
{
	p_ntbx_process_info_t i = ntbx_pc_get_local(pc, l);

	return i ? i->process->global_rank : -1;
}

ntbx_process_lrank_t ntbx_pc_global_to_local(p_ntbx_process_container_t pc,
					     ntbx_process_grank_t g)
{
	p_ntbx_process_info_t i = ntbx_pc_get_global(pc, g);

	return i ? i->local_rank : -1;
}

static tbx_bool_t index_first(p_tbx_darray_t d, int *rank)
{
	return tbx_darray_first_idx(d, rank) ? tbx_true : tbx_false;
}

static tbx_bool_t index_next(p_tbx_darray_t d, int *rank)
{
	return tbx_darray_next_idx(d, rank) ? tbx_true : tbx_false;
}

tbx_bool_t ntbx_pc_first_local_rank(p_ntbx_process_container_t pc,
				    p_ntbx_process_lrank_t l)
{
	return index_first(pc->local_index, l);
}

tbx_bool_t ntbx_pc_next_local_rank(p_ntbx_process_container_t pc, p_ntbx_process_lrank_t l)
{
	return index_next(pc->local_index, l);
}

tbx_bool_t ntbx_pc_first_global_rank(p_ntbx_process_container_t pc,
				     p_ntbx_process_grank_t g)
{
	return index_first(pc->global_index, g);
}

tbx_bool_t ntbx_pc_next_global_rank(p_ntbx_process_container_t pc, p_ntbx_process_grank_t g)
{
	return index_next(pc->global_index, g);
}

ntbx_process_lrank_t ntbx_pc_local_max(p_ntbx_process_container_t pc)
{
	return (int)tbx_darray_length(pc->local_index) - 1;
}

ntbx_process_grank_t ntbx_pc_global_max(p_ntbx_process_container_t pc)
{
	return (int)tbx_darray_length(pc->global_index) - 1;
}

p_ntbx_process_t ntbx_pc_get_local_process(p_ntbx_process_container_t pc,
					   ntbx_process_lrank_t l)
{
	p_ntbx_process_info_t i = ntbx_pc_get_local(pc, l);

	return i ? i->process : NULL;
}

p_ntbx_process_t ntbx_pc_get_global_process(p_ntbx_process_container_t pc,
					    ntbx_process_grank_t g)
{
	p_ntbx_process_info_t i = ntbx_pc_get_global(pc, g);

	return i ? i->process : NULL;
}

void *ntbx_pc_get_local_specific(p_ntbx_process_container_t pc, ntbx_process_lrank_t l)
{
	p_ntbx_process_info_t i = ntbx_pc_get_local(pc, l);

	return i ? i->specific : NULL;
}

void *ntbx_pc_get_global_specific(p_ntbx_process_container_t pc, ntbx_process_grank_t g)
{
	p_ntbx_process_info_t i = ntbx_pc_get_global(pc, g);

	return i ? i->specific : NULL;
}

p_ntbx_process_container_t mad_pc_new(void)
{
	p_ntbx_process_container_t pc = tbx_alloc(1, sizeof(*pc));

	pc->local_index = tbx_darray_init();
	pc->global_index = tbx_darray_init();
	return pc;
}

/* Add @process to a container. Its local rank is the next free one. */
void mad_pc_add(p_ntbx_process_container_t pc, p_ntbx_process_t process)
{
	p_ntbx_process_info_t i = tbx_alloc(1, sizeof(*i));

	i->local_rank = pc->count++;
	i->process = process;
	tbx_darray_append(pc->local_index, i);
	tbx_darray_expand_and_set(pc->global_index, process->global_rank, i);
}

void mad_pc_free(p_ntbx_process_container_t pc)
{
	for (int i = 0; i < pc->count; i++)
		free(tbx_darray_get(pc->local_index, i));
	tbx_darray_free(pc->local_index);
	tbx_darray_free(pc->global_index);
	free(pc);
}

/* ---- topologies ---- */

p_ntbx_topology_element_t ntbx_topology_table_get(p_ntbx_topology_table_t t,
						  ntbx_process_lrank_t src,
						  ntbx_process_lrank_t dst)
{
	if (src < 0 || dst < 0 || src >= t->size || dst >= t->size)
		tbx_failuref("ranks %d and %d of a topology of %d", src, dst, t->size);
	return t->element[src * t->size + dst];
}

p_ntbx_topology_table_t mad_topology_new(int size)
{
	p_ntbx_topology_table_t t = tbx_alloc(1, sizeof(*t));

	t->size = size;
	t->element = tbx_alloc((size_t)size * (size_t)size, sizeof(*t->element));
	return t;
}

void mad_topology_connect(p_ntbx_topology_table_t t, int src, int dst)
{
	if (!t->element[src * t->size + dst])
		t->element[src * t->size + dst] =
			tbx_alloc(1, sizeof(ntbx_topology_element_t));
}

void mad_topology_free(p_ntbx_topology_table_t t)
{
	for (int i = 0; i < t->size * t->size; i++)
		free(t->element[i]);
	free(t->element);
	free(t);
}
