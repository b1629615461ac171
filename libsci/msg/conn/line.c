// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Writing and reading lines: word by word, or in one 64-byte register if the CPU has
 * such registers.
 */

#include "libsci/msg/conn/line.h"

#include <pthread.h>

#include "libsci/base/compiler.h"
#include "libsci/pio/pio.h"

static void words_put(volatile struct msg_line *slot,
		      const struct line_head *head, const void *buf, size_t len,
		      uint64_t id, uint64_t last)
{
	struct msg_line l = { .w = { head->w[0], head->w[1], head->w[2],
				     head->w[3], head->w[4] } };
	unsigned int i;

	line_copy((uint8_t *)&l + head->len, buf, len);
	line_seal(&l, id, last >> 48 & 63, last >> 54 & 3);
	l.w[LINE_WORDS - 1] |= last & 0xff0000000000ull;
	for (i = 0; i < LINE_WORDS - 1; i++)
		sci_store_relaxed(&slot->w[i], l.w[i]);
	sci_store_release(&slot->w[i], l.w[i]);
}

struct line_ops line_ops = { .put = words_put, .get = line_take };

#if defined(__SANITIZE_THREAD__)
#define LINE_WORDS_ONLY	1
#else
#define LINE_WORDS_ONLY	0
#endif

#if defined(__x86_64__)
#include <immintrin.h>

/* The thread sanitizer does not see that these accesses are ordered by the identifiers. */
#define WIDE	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi2"),\
			       no_sanitize("thread")))

#define PAGE	4096u

/*
 * Load @len bytes, 62 at most, from @buf to byte @at of a register. One masked load from @buf - @at
 * is enough. If masked bytes are in an unmapped page, the CPU handles their fault in microcode,
 * which is slow: so no load crosses the pages of @buf.
 */
WIDE static inline __m512i load_at(const void *buf, size_t len, unsigned int at)
{
	uint64_t bytes = _bzhi_u64(~0ull, (unsigned int)len);
	unsigned int offset = (uintptr_t)buf % PAGE;
	__m512i v, next;

	if (!len)
		return _mm512_setzero_si512();
	if (offset >= at && offset - at <= PAGE - LINE_BYTES)
		return _mm512_maskz_loadu_epi8(
			bytes << at, (const void *)((uintptr_t)buf - at));
	if (offset > PAGE - LINE_BYTES && offset + len <= PAGE) {
		uint8_t room[LINE_BYTES] __attribute__((aligned(LINE_BYTES)));

		line_copy(room, buf, len);
		v = _mm512_maskz_loadu_epi8(bytes, room);
	} else {
		v = _mm512_maskz_loadu_epi8(bytes, buf);
	}
	/* shift the register by whole doublewords, then by the remaining bytes */
	next = _mm512_maskz_expand_epi32((__mmask16)(0xfffeu << at / 4), v);
	v = _mm512_maskz_expand_epi32((__mmask16)(0xffffu << at / 4), v);
	return _mm512_or_si512(
		_mm512_sll_epi32(v, _mm_cvtsi32_si128((int)(at % 4 * 8))),
		_mm512_srl_epi32(next, _mm_cvtsi32_si128((int)(32 - at % 4 * 8))));
}

WIDE __hot static void put_wide(volatile struct msg_line *slot,
				const struct line_head *head, const void *buf,
				size_t len, uint64_t id, uint64_t last)
{
	const __m512i top = _mm512_set1_epi64((long long)LINE_ID);
	const __m512i ids = _mm512_set1_epi64((long long)id);
	__m512i v = load_at(buf, len, head->len);
	uint64_t moved;

	/* the header may end within a word, and load_at() has cleared these bytes: combine them */
	if (head->len) {
		v = _mm512_or_si512(v, _mm512_zextsi256_si512(_mm256_set_epi64x(
			(long long)head->w[3], (long long)head->w[2],
			(long long)head->w[1], (long long)head->w[0])));
		v = _mm512_mask_or_epi64(v, 1 << 4, v,
					 _mm512_set1_epi64((long long)head->w[4]));
	}
	moved = _mm512_movepi64_mask(v) & 0x7f;
	v = _mm512_or_si512(_mm512_andnot_si512(top, v), ids);
	v = _mm512_mask_or_epi64(v, 0x80, v, _mm512_set1_epi64(
		(long long)(last | moved << 56)));
	/* x86: earlier stores become visible first */
	sci_compiler_barrier();
	_mm512_store_si512((void *)slot, v);
	sci_compiler_barrier();
}

WIDE __hot static bool get_wide(const volatile struct msg_line *slot, uint64_t id,
				struct msg_line *out)
{
	const __m512i top = _mm512_set1_epi64((long long)LINE_ID);
	__m512i v = _mm512_load_si512((const void *)slot);
	__mmask8 want = id ? 0xff : 0;
	__mmask8 moved;

	if (_mm512_movepi64_mask(v) != want)
		return false;
	/* x86: later loads see the data that the line announces */
	sci_compiler_barrier();
	moved = (__mmask8)((uint64_t)_mm_extract_epi64(
				   _mm512_extracti64x2_epi64(v, 3), 1) >> 56);
	v = _mm512_mask_mov_epi64(_mm512_andnot_si512(top, v),
				  moved & 0x7f,
				  _mm512_or_si512(v, top));
	_mm512_store_si512(out, v);
	return true;
}

static void line_choose(void)
{
	/* the thread sanitizer understands the order of words, but not of 64-byte registers */
	bool wide = sci_pio_width() == SCI_PIO_LINE && !LINE_WORDS_ONLY;

	if (wide && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
		line_ops = (struct line_ops){ put_wide, get_wide };
}
#else
static void line_choose(void)
{
}
#endif

void line_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, line_choose);
}
