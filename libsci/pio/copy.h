/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Template of an engine with vectors of one width. Engines include this file, after they define:
 *
 * W           bytes of a vector: 8, 16, 32, 64
 * V           type of a vector
 * TARGET      function attributes that enable the vector instructions
 * NAME(x)     x with the engine's prefix
 * STREAM(d,s) store the 64 bytes at s to the aligned line d, non-temporal;
 *             undefined if there is no such store
 */

/*
 * Copy a block as n vectors from its start and n vectors up to its end, which may overlap. All
 * loads come first, since a load would wait for an earlier store at a distance of 4 KiB.
 */
#define ENDS(T, n)							\
do {									\
	T h_[n], t_[n];							\
									\
	SCI_PIO_UNROLL for (int i = 0; i < (n); i++)			\
		h_[i] = ((const T *)s)[i];				\
	SCI_PIO_UNROLL for (int i = 0; i < (n); i++)			\
		t_[i] = ((const T *)(s + len))[i - (n)];		\
	SCI_PIO_UNROLL for (int i = 0; i < (n); i++)			\
		((volatile T *)d)[i] = h_[i];				\
	SCI_PIO_UNROLL for (int i = 0; i < (n); i++)			\
		((volatile T *)(d + len))[i - (n)] = t_[i];		\
} while (0)

static inline TARGET __attribute__((always_inline))
void NAME(move)(volatile void *d, const volatile void *s, int n)
{
	V v[4];

	SCI_PIO_UNROLL for (int i = 0; i < n; i++)
		v[i] = ((const volatile V *)s)[i];
	SCI_PIO_UNROLL for (int i = 0; i < n; i++)
		((volatile V *)d)[i] = v[i];
}

#if W > 8
static TARGET
void NAME(lines)(volatile void *dst, const volatile void *src, size_t lines)
{
	volatile char *d = dst;
	const volatile char *s = src;

	for (; lines; lines--, d += SCI_PIO_LINE, s += SCI_PIO_LINE)
		NAME(move)(d, s, SCI_PIO_LINE / W);
}
#endif

#ifdef STREAM
/*
 * Copy a block with non-temporal stores. The bytes before the first line boundary and after the
 * last are ordinary stores. The barriers order the non-temporal stores like plain stores.
 */
static TARGET __attribute__((noinline))
void NAME(stream)(char *d, const char *s, size_t len)
{
	size_t head = -(uintptr_t)d % SCI_PIO_LINE;

	memcpy(d, s, head);
	sci_store_barrier();
	for (len -= head, d += head, s += head; len >= SCI_PIO_LINE;
	     len -= SCI_PIO_LINE, d += SCI_PIO_LINE, s += SCI_PIO_LINE)
		STREAM(d, s);
	sci_store_barrier();
	memcpy(d, s, len);
}
#endif

/* Copy more than 16 vectors: unaligned stores at both ends, aligned stores between. */
static inline TARGET __attribute__((always_inline))
void NAME(copy_loop)(char *d, const char *s, size_t len)
{
	char *d_end = d + len;
	size_t head = W - (uintptr_t)d % W;
	V tail[4];

	SCI_PIO_UNROLL for (int i = 0; i < 4; i++)
		tail[i] = ((const V *)(s + len))[i - 4];
	NAME(move)(d, s, 1);
	for (d += head, s += head; (size_t)(d_end - d) > 4 * W;
	     d += 4 * W, s += 4 * W)
		NAME(move)(d, s, 4);
	SCI_PIO_UNROLL for (int i = 0; i < 4; i++)
		((volatile V *)d_end)[i - 4] = tail[i];
}

/*
 * Copy a block of at most 16 vectors; return false for a longer block. The shortest
 * sizes are out of line, because most writes to segments are a line or longer. Up to 64 bytes the
 * vectors are at most 16 bytes wide, because vzeroupper would cost more. The longest class
 * moves four vectors at a time, which measures better than eight.
 */
static inline TARGET __attribute__((always_inline))
bool NAME(copy_ends)(char *d, const char *s, size_t len)
{
	if (__builtin_expect(len <= 16, 0)) {
		sci_pio_copy_short(d, s, len);
	} else if (__builtin_expect(W >= 16 && len <= 32, 0)) {
		ENDS(sci_v16, 1);
	} else if (W >= 16 && len <= 64) {
		ENDS(sci_v16, 2);
	} else if (len <= 2 * W) {
		ENDS(V, 1);
	} else if (len <= 4 * W) {
		ENDS(V, 2);
	} else if (len <= 8 * W) {
		ENDS(V, 4);
	} else if (len <= 16 * W) {
		NAME(move)(d, s, 4);
		NAME(move)(d + 4 * W, s + 4 * W, 4);
		NAME(move)(d + len - 8 * W, s + len - 8 * W, 4);
		NAME(move)(d + len - 4 * W, s + len - 4 * W, 4);
	} else {
		return false;
	}
	return true;
}

static TARGET void NAME(copy)(void *dst, const void *src, size_t len)
{
	if (NAME(copy_ends)(dst, src, len))
		return;
#ifdef STREAM
	if (len >= sci_load_relaxed(&sci_pio_stream_limit)) {
		NAME(stream)(dst, src, len);
		return;
	}
#endif
	NAME(copy_loop)(dst, src, len);
}

#undef ENDS
#undef STREAM
#undef NAME
#undef TARGET
#undef V
#undef W
