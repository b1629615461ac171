/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Code that the engines share. An access that the compiler must neither split, merge nor move
 * is volatile. A volatile access also keeps the compiler from turning a loop into memcpy().
 */
#ifndef LIBSCI_PIO_ENGINE_H
#define LIBSCI_PIO_ENGINE_H

#include <string.h>

#include "pio.h"

/* Vector types that may have any alignment and may alias objects of any type. */
#define SCI_PIO_VECTOR(n) __attribute__((vector_size(n), may_alias, aligned(1)))
typedef uint64_t sci_v8 __attribute__((may_alias, aligned(1)));
typedef uint64_t sci_v16 SCI_PIO_VECTOR(16);
typedef uint64_t sci_v32 SCI_PIO_VECTOR(32);
typedef uint64_t sci_v64 SCI_PIO_VECTOR(64);

/* gcc -O2 unrolls short loops only with this pragma; clang -O2 needs no pragma. */
#if defined(__clang__)
#define SCI_PIO_UNROLL
#else
#define SCI_PIO_UNROLL	_Pragma("GCC unroll 8")
#endif

extern const struct sci_pio_engine sci_pio_generic;
extern const struct sci_pio_engine sci_pio_neon;
extern const struct sci_pio_engine sci_pio_mmx;
extern const struct sci_pio_engine sci_pio_sse2;
extern const struct sci_pio_engine sci_pio_avx;
extern const struct sci_pio_engine sci_pio_avx512;
extern const struct sci_pio_engine sci_pio_movdir64b;

/* The value of sci_pio_stream_min(). Read it with sci_load_relaxed(). */
extern size_t sci_pio_stream_limit;

/*
 * Each architecture defines two functions. sci_pio_cache_size() returns the bytes of the last-level
 * cache; 0: unknown. sci_pio_auto_copy() returns the copy function to use without SCI_PIO.
 */
size_t sci_pio_cache_size(void);
sci_pio_copy_fn *sci_pio_auto_copy(void);

/*
 * Copy up to 16 bytes as two halves that overlap. A copy of one word of 1, 2, 4 or 8 bytes stores it
 * once: after a first store a receiver may have handled the word and stored another value.
 */
static inline __attribute__((always_inline))
void sci_pio_copy_short(char *d, const char *s, size_t len)
{
	uint64_t a8, b8;
	uint32_t a4, b4;
	uint16_t a2, b2;

	if (len >= 8) {
		memcpy(&a8, s, 8);
		memcpy(&b8, s + len - 8, 8);
		if (len > 8)
			memcpy(d, &a8, 8);
		memcpy(d + len - 8, &b8, 8);
	} else if (len >= 4) {
		memcpy(&a4, s, 4);
		memcpy(&b4, s + len - 4, 4);
		if (len > 4)
			memcpy(d, &a4, 4);
		memcpy(d + len - 4, &b4, 4);
	} else if (len >= 2) {
		memcpy(&a2, s, 2);
		memcpy(&b2, s + len - 2, 2);
		if (len > 2)
			memcpy(d, &a2, 2);
		memcpy(d + len - 2, &b2, 2);
	} else if (len) {
		*d = *s;
	}
}

#endif
