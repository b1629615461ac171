// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The engines of x86-64. Each function is compiled for its own instruction
 * set; the compiler puts vzeroupper where a function with wide registers ends.
 */
#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "engine.h"
#include "libsci/base/compiler.h"

#define W	16
#define V	sci_v16
#define TARGET	__attribute__((target("sse2")))
#define NAME(x)	sse2_##x
#define STREAM(d, s)							\
do {									\
	for (int i_ = 0; i_ < 4; i_++)					\
		_mm_stream_si128((__m128i *)(d) + i_,			\
				 _mm_loadu_si128((const __m128i *)(s) + i_)); \
} while (0)
#include "copy.h"

#define W	32
#define V	sci_v32
#define TARGET	__attribute__((target("avx")))
#define NAME(x)	avx_##x
#define STREAM(d, s)							\
do {									\
	for (int i_ = 0; i_ < 2; i_++)					\
		_mm256_stream_si256((__m256i *)(d) + i_,		\
			_mm256_loadu_si256((const __m256i *)(s) + i_));	\
} while (0)
#include "copy.h"

#define W	64
#define V	sci_v64
#define TARGET	__attribute__((target("avx512f")))
#define NAME(x)	avx512_##x
#define STREAM(d, s)							\
	_mm512_stream_si512((__m512i *)(d), _mm512_loadu_si512(s))
#include "copy.h"

/* This function is in assembly, since compilers turn MMX intrinsics into SSE2 on x86-64. */
static void mmx_lines(volatile void *dst, const volatile void *src,
		      size_t lines)
{
	volatile char *d = dst;
	const volatile char *s = src;

	for (lines *= SCI_PIO_LINE / 8; lines; lines--, d += 8, s += 8)
		__asm__ __volatile__("movq (%1), %%mm0\n\t"
				     "movq %%mm0, (%0)"
				     :: "r"(d), "r"(s) : "mm0", "memory");
	__asm__ __volatile__("emms");
}

static void mmx_copy(void *dst, const void *src, size_t len)
{
	size_t bulk = len - len % SCI_PIO_LINE;

	if (bulk)
		mmx_lines(dst, src, bulk / SCI_PIO_LINE);
	if (len > bulk)
		sci_pio_generic.copy((char *)dst + bulk,
				     (const char *)src + bulk, len - bulk);
}

static __attribute__((target("movdir64b")))
void movdir64b_put(volatile void *dst, const volatile void *src, size_t lines)
{
	char *d = (char *)dst;
	const char *s = (const char *)src;

	for (; lines; lines--, d += SCI_PIO_LINE, s += SCI_PIO_LINE)
		_movdir64b(d, s);
}

/*
 * MOVDIR64B only stores, and always bypasses the cache. Loads, and stores to cacheable
 * memory under SCI_PIO=movdir64b, use the next best instruction.
 */
static void movdir64b_get(volatile void *dst, const volatile void *src,
			  size_t lines)
{
	if (__builtin_cpu_supports("avx512f"))
		avx512_lines(dst, src, lines);
	else
		sse2_lines(dst, src, lines);
}

static void movdir64b_copy(void *dst, const void *src, size_t len)
{
	if (__builtin_cpu_supports("avx512f"))
		avx512_copy(dst, src, len);
	else
		sse2_copy(dst, src, len);
}

/*
 * From REP_MIN bytes on memcpy() may use "rep movsb", which does not read lines that it overwrites
 * completely. But some CPUs execute "rep movsb" up to thirty times slower if the destination is a
 * few bytes (less than REP_BEHIND) after the source, modulo 4 KiB.
 */
#define REP_MIN		2048
#define REP_MAX		(1u << 20)	/* memcpy() uses no "rep movsb" from here on */
#define REP_BEHIND	128u

static inline bool memcpy_is_best(const char *d, const char *s, size_t len)
{
	uintptr_t behind = ((uintptr_t)d - (uintptr_t)s) % 4096;

	return len >= REP_MAX ||
	       (len >= REP_MIN && (!behind || behind >= REP_BEHIND));
}

/*
 * The copy function without an override: vectors of 32 bytes measure best, even if the CPU has
 * wider ones.
 */
static __hot __attribute__((target("avx")))
void avx_auto(void *dst, const void *src, size_t len)
{
	if (avx_copy_ends(dst, src, len))
		return;
	if (len >= sci_load_relaxed(&sci_pio_stream_limit))
		avx_stream(dst, src, len);
	else if (memcpy_is_best(dst, src, len))
		memcpy(dst, src, len);
	else
		avx_copy_loop(dst, src, len);
}

static void sse2_auto(void *dst, const void *src, size_t len)
{
	if (len >= sci_load_relaxed(&sci_pio_stream_limit))
		sse2_stream(dst, src, len);
	else
		memcpy(dst, src, len);
}

static bool movdir64b_supported(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & (1u << 28));
}

static bool avx512_supported(void)
{
	return __builtin_cpu_supports("avx512f");
}

static bool avx_supported(void)
{
	return __builtin_cpu_supports("avx");
}

static bool sse2_supported(void)
{
	return true;	/* every x86-64 CPU has SSE2 */
}

static bool mmx_supported(void)
{
	return __builtin_cpu_supports("mmx");
}

sci_pio_copy_fn *sci_pio_auto_copy(void)
{
	return avx_supported() ? avx_auto : sse2_auto;
}

/*
 * Use CPUID, since libc reports a wrong cache size in some virtual machines. Intel CPUs describe
 * their caches in leaf 4, AMD CPUs in leaf 0x8000001d, in the same format.
 */
size_t sci_pio_cache_size(void)
{
	static const unsigned int leaves[] = { 4, 0x8000001d };
	unsigned int a, b, c, d;
	size_t size, max = 0;

	for (int l = 0; l < 2; l++) {
		for (int i = 0; i < 16; i++) {
			if (!__get_cpuid_count(leaves[l], i, &a, &b, &c, &d) ||
			    !(a & 31))
				break;
			size = ((b >> 22) + 1) * (((b >> 12) & 1023) + 1) *
			       ((b & 4095) + 1) * ((size_t)c + 1);
			max = size > max ? size : max;
		}
	}
	return max;
}

#define ENGINE(n, w, put, get)						\
const struct sci_pio_engine sci_pio_##n = {				\
	.name = #n,							\
	.width = w,							\
	.supported = n##_supported,					\
	.put_lines = put,						\
	.get_lines = get,						\
	.copy = n##_copy,						\
}

ENGINE(mmx, 8, mmx_lines, mmx_lines);
ENGINE(sse2, 16, sse2_lines, sse2_lines);
ENGINE(avx, 32, avx_lines, avx_lines);
ENGINE(avx512, 64, avx512_lines, avx512_lines);
ENGINE(movdir64b, 64, movdir64b_put, movdir64b_get);

#else
typedef int sci_pio_no_x86;	/* ISO C wants a declaration in each file */
#endif
