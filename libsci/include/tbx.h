/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: Madeleine's toolbox
 *
 * Memory, lists, tables, arrays, strings and messages to the user, for programs written
 * for Madeleine III. Containers hold pointers, and never copy or free objects. Failures are
 * fatal: the library prints a text on standard error and calls abort(). Only one thread at a
 * time may use a container.
 */
#ifndef TBX_H
#define TBX_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

typedef enum e_tbx_bool { tbx_false = 0, tbx_true = 1 } tbx_bool_t, *p_tbx_bool_t;
typedef enum e_tbx_flag { tbx_flag_clear = 0, tbx_flag_set = 1 } tbx_flag_t, *p_tbx_flag_t;
typedef size_t tbx_align_t;

#define TBX_UNUSED		__attribute__((unused))
#define TBX_ALIGN(n)		__attribute__((aligned(n)))

/* Macros for locks in structs. They are empty: one thread at a time uses a struct. */
#define TBX_SHARED
#define TBX_INIT_SHARED(p)	((void)(p))
#define TBX_LOCK_SHARED(p)	((void)(p))
#define TBX_UNLOCK_SHARED(p)	((void)(p))

#define tbx_min(a, b)		((a) < (b) ? (a) : (b))
#define tbx_max(a, b)		((a) > (b) ? (a) : (b))

/* ---- failures, and lines on standard error ---- */

void tbx_place(const char *file, int line);	/* set the place of the next failure */
__attribute__((noreturn)) void tbx_failure(const char *text);
__attribute__((noreturn)) void tbx_error(const char *text);
__attribute__((noreturn, format(printf, 1, 2))) void tbx_failuref(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void tbx_disp(const char *fmt, ...);
void tbx_log(const char *fmt, ...);		/* does nothing */

#define TBX_FAILURE	tbx_place(__FILE__, __LINE__), tbx_failure
#define TBX_FAILUREF	tbx_place(__FILE__, __LINE__), tbx_failuref
#define TBX_ERROR	tbx_place(__FILE__, __LINE__), tbx_error	/* with errno's text */

#define DISP			tbx_disp
#define DISP_VAL(s, v)		tbx_disp("%s = %d", s, (int)(v))
#define DISP_STR(s, v)		tbx_disp("%s: %s", s, v)
#define DISP_PTR(s, v)		tbx_disp("%s = %p", s, (const void *)(v))
#define DISP_CHAR(s, v)		tbx_disp("%s = %c", s, (int)(v))
#define WARN			tbx_disp

/* Macros that do something only in debug builds of the original library. */
#define LOG			tbx_log
#define LOG_IN()		((void)0)
#define LOG_OUT()		((void)0)
#define LOG_VAL(s, v)		((void)(v))
#define LOG_STR(s, v)		((void)(v))
#define LOG_PTR(s, v)		((void)(v))
#define LOG_CHAR(s, v)		((void)(v))
#define TRACE			tbx_log
#define TRACE_VAL(s, v)		((void)(v))
#define TRACE_STR(s, v)		((void)(v))
#define TRACE_PTR(s, v)		((void)(v))
#define TRACE_CHAR(s, v)	((void)(v))

/* ---- memory ---- */

void *tbx_alloc(size_t n, size_t size);		/* zeroed; never NULL */
void *tbx_realloc(void *p, size_t n);		/* never NULL */

#define TBX_MALLOC(n)		tbx_alloc(1, n)
#define TBX_CALLOC(k, n)	tbx_alloc(k, n)
#define TBX_REALLOC(p, n)	tbx_realloc(p, n)
#define TBX_FREE(p)		free(p)
#define TBX_FREE2(p)		do { free(p); (p) = NULL; } while (0)

void *tbx_aligned_malloc(size_t n, tbx_align_t align);
void tbx_aligned_free(void *p, tbx_align_t align);

/* A pool of blocks of one size. The program frees all blocks before tbx_malloc_clean(). */
typedef struct s_tbx_memory tbx_memory_t, *p_tbx_memory_t;

void tbx_malloc_init(p_tbx_memory_t *mem, size_t block, long count, const char *name);
void *tbx_malloc(p_tbx_memory_t mem);
void tbx_free(p_tbx_memory_t mem, void *p);
void tbx_malloc_clean(p_tbx_memory_t mem);

char *tbx_strdup(const char *s);
tbx_bool_t tbx_streq(const char *a, const char *b);

/* ---- time ---- */

typedef struct timespec tbx_tick_t, *p_tbx_tick_t;

#define TBX_GET_TICK(t)		clock_gettime(CLOCK_MONOTONIC, &(t))
#define TBX_TIMING_DELAY(a, b)	(((b).tv_sec - (a).tv_sec) * 1e6 + \
				 ((double)(b).tv_nsec - (double)(a).tv_nsec) / 1e3)
/* A difference of two times, in nanoseconds. */
#ifdef __GNUC__
__extension__ typedef long long tbx_ticks_t;
#else
typedef long tbx_ticks_t;
#endif
double tbx_tick2usec(tbx_ticks_t ticks);

/* ---- lists ---- */

typedef struct s_tbx_slist_element {
	struct s_tbx_slist_element *next, *previous;
	void *object;
} tbx_slist_element_t, *p_tbx_slist_element_t;

typedef struct s_tbx_slist {
	TBX_SHARED
	long length;
	p_tbx_slist_element_t head, tail;
	p_tbx_slist_element_t ref;
} tbx_slist_t, *p_tbx_slist_t;

p_tbx_slist_t tbx_slist_nil(void);
void tbx_slist_free(p_tbx_slist_t l);		/* the list must be empty */
void tbx_slist_clear(p_tbx_slist_t l);
void tbx_slist_clear_and_free(p_tbx_slist_t l);
tbx_bool_t tbx_slist_is_nil(p_tbx_slist_t l);
long tbx_slist_get_length(p_tbx_slist_t l);
void tbx_slist_add_at_head(p_tbx_slist_t l, void *o);
void tbx_slist_add_at_tail(p_tbx_slist_t l, void *o);
void *tbx_slist_remove_from_head(p_tbx_slist_t l);
void *tbx_slist_remove_from_tail(p_tbx_slist_t l);
void *tbx_slist_peek_from_head(p_tbx_slist_t l);
void *tbx_slist_peek_from_tail(p_tbx_slist_t l);
void tbx_slist_append(p_tbx_slist_t l, void *o);	/* a queue */
void *tbx_slist_extract(p_tbx_slist_t l);
void tbx_slist_push(p_tbx_slist_t l, void *o);		/* a stack */
void *tbx_slist_pop(p_tbx_slist_t l);
p_tbx_slist_t tbx_slist_dup(p_tbx_slist_t l);
void tbx_slist_merge_after(p_tbx_slist_t dst, p_tbx_slist_t src);
void tbx_slist_merge_before(p_tbx_slist_t dst, p_tbx_slist_t src);
void *tbx_slist_index_get(p_tbx_slist_t l, long i);
void *tbx_slist_index_extract(p_tbx_slist_t l, long i);
/* Move or read the cursor of a list that is not empty. */
void tbx_slist_ref_to_head(p_tbx_slist_t l);
void tbx_slist_ref_to_tail(p_tbx_slist_t l);
void *tbx_slist_ref_get(p_tbx_slist_t l);
tbx_bool_t tbx_slist_ref_forward(p_tbx_slist_t l);	/* false: at the end */
tbx_bool_t tbx_slist_ref_backward(p_tbx_slist_t l);

/* ---- tables by string ---- */

typedef struct s_tbx_htable tbx_htable_t, *p_tbx_htable_t;

p_tbx_htable_t tbx_htable_empty_table(void);
tbx_bool_t tbx_htable_empty(p_tbx_htable_t t);
void tbx_htable_add(p_tbx_htable_t t, const char *key, void *o);
void *tbx_htable_get(p_tbx_htable_t t, const char *key);	/* NULL: no such key */
void *tbx_htable_replace(p_tbx_htable_t t, const char *key, void *o); /* old object */
void *tbx_htable_extract(p_tbx_htable_t t, const char *key);
long tbx_htable_get_size(p_tbx_htable_t t);
p_tbx_slist_t tbx_htable_get_key_slist(p_tbx_htable_t t); /* copies, in insertion order */
void tbx_htable_free(p_tbx_htable_t t);			/* the table must be empty */
void tbx_htable_cleanup_and_free(p_tbx_htable_t t);

/* ---- arrays that grow ---- */

typedef int tbx_darray_index_t, *p_tbx_darray_index_t;
typedef struct s_tbx_darray tbx_darray_t, *p_tbx_darray_t;

p_tbx_darray_t tbx_darray_init(void);
void tbx_darray_free(p_tbx_darray_t d);
long tbx_darray_length(p_tbx_darray_t d);
void *tbx_darray_get(p_tbx_darray_t d, tbx_darray_index_t i);	/* NULL beyond the end */
void tbx_darray_set(p_tbx_darray_t d, tbx_darray_index_t i, void *o);
void tbx_darray_expand_and_set(p_tbx_darray_t d, tbx_darray_index_t i, void *o);
void *tbx_darray_expand_and_get(p_tbx_darray_t d, tbx_darray_index_t i);
void tbx_darray_append(p_tbx_darray_t d, void *o);
/* Iterate over the objects that are not NULL. Return NULL at the end. */
void *tbx_darray_first_idx(p_tbx_darray_t d, p_tbx_darray_index_t i);
void *tbx_darray_next_idx(p_tbx_darray_t d, p_tbx_darray_index_t i);

/* ---- strings ---- */

typedef struct s_tbx_string tbx_string_t, *p_tbx_string_t;

p_tbx_string_t tbx_string_init(void);
p_tbx_string_t tbx_string_init_to_cstring(const char *s);
p_tbx_string_t tbx_string_init_to_int(int i);
p_tbx_string_t tbx_string_init_to_char(int c);
void tbx_string_append_cstring(p_tbx_string_t s, const char *more);
void tbx_string_append_int(p_tbx_string_t s, int i);
void tbx_string_append_uint(p_tbx_string_t s, unsigned int i);
void tbx_string_append_char(p_tbx_string_t s, int c);
void tbx_string_append_string(p_tbx_string_t s, p_tbx_string_t more);
size_t tbx_string_length(p_tbx_string_t s);
char *tbx_string_to_cstring(p_tbx_string_t s);		/* for TBX_FREE() */
char *tbx_string_to_cstring_and_free(p_tbx_string_t s);
void tbx_string_free(p_tbx_string_t s);

#ifdef __cplusplus
}
#endif

#endif
