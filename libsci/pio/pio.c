// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Choice of the engine, the split of a block into lines and ends, and the portable engine. */
#include <errno.h>

#include "engine.h"

#define W	8
#define V	sci_v8
#define TARGET
#define NAME(x)	generic_##x
#include "copy.h"

typedef uint16_t sci_u16 __attribute__((may_alias));
typedef uint32_t sci_u32 __attribute__((may_alias));
typedef uint64_t sci_u64 __attribute__((may_alias));

/* Make one aligned access of type T to the map. Access private memory with memcpy(). */
#define PUT(T)								\
do {									\
	T v_;								\
									\
	memcpy(&v_, s, sizeof(v_));					\
	*(volatile T *)d = v_;						\
} while (0)

#define GET(T)								\
do {									\
	T v_ = *(const volatile T *)s;					\
									\
	memcpy(d, &v_, sizeof(v_));					\
} while (0)

static void step_put(volatile char *d, const char *s, size_t n)
{
	switch (n) {
	case 8:
		PUT(sci_u64);
		break;
	case 4:
		PUT(sci_u32);
		break;
	case 2:
		PUT(sci_u16);
		break;
	default:
		*d = *s;
	}
}

static void step_get(char *d, const volatile char *s, size_t n)
{
	switch (n) {
	case 8:
		GET(sci_u64);
		break;
	case 4:
		GET(sci_u32);
		break;
	case 2:
		GET(sci_u16);
		break;
	default:
		*d = *s;
	}
}

static void generic_put(volatile void *dst, const volatile void *src,
			size_t lines)
{
	volatile char *d = dst;
	const char *s = (const char *)src;

	for (lines *= SCI_PIO_LINE / 8; lines; lines--, d += 8, s += 8)
		PUT(sci_u64);
}

static void generic_get(volatile void *dst, const volatile void *src,
			size_t lines)
{
	char *d = (char *)dst;
	const volatile char *s = src;

	for (lines *= SCI_PIO_LINE / 8; lines; lines--, d += 8, s += 8)
		GET(sci_u64);
}

static bool generic_supported(void)
{
	return true;
}

const struct sci_pio_engine sci_pio_generic = {
	.name = "generic",
	.width = 8,
	.supported = generic_supported,
	.put_lines = generic_put,
	.get_lines = generic_get,
	.copy = generic_copy,
};

/* The engines, the best one first. */
static const struct sci_pio_engine *const engines[] = {
#if defined(__x86_64__)
	&sci_pio_movdir64b,
	&sci_pio_avx512,
	&sci_pio_avx,
	&sci_pio_sse2,
	&sci_pio_mmx,
#elif defined(__aarch64__)
	&sci_pio_neon,
#endif
	&sci_pio_generic,
};

#define NR_ENGINES (sizeof(engines) / sizeof(engines[0]))

const struct sci_pio_engine *sci_pio_current = &sci_pio_generic;
sci_pio_copy_fn *sci_pio_current_copy = generic_copy;
size_t sci_pio_stream_limit = SIZE_MAX;

#if !defined(__x86_64__)
size_t sci_pio_cache_size(void)
{
	return 0;
}

static void libc_copy(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

sci_pio_copy_fn *sci_pio_auto_copy(void)
{
	return libc_copy;
}
#endif

const struct sci_pio_engine *sci_pio_engine(unsigned int i)
{
	return i < NR_ENGINES ? engines[i] : NULL;
}

static const struct sci_pio_engine *engine_find(const char *name)
{
	for (unsigned int i = 0; i < NR_ENGINES; i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}

static const struct sci_pio_engine *engine_best(void)
{
	unsigned int i = 0;

	while (!engines[i]->supported())
		i++;
	return engines[i];
}

int sci_pio_init(const char *override)
{
	const struct sci_pio_engine *engine = NULL;
	size_t cache = sci_pio_cache_size();
	int err = 0;

	if (override && *override) {
		engine = engine_find(override);
		if (!engine)
			err = -EINVAL;
		else if (!engine->supported())
			err = -EOPNOTSUPP;
	}

	sci_store_relaxed(&sci_pio_stream_limit, cache ? cache / 2 : SIZE_MAX);
	if (engine && !err) {
		sci_store_relaxed(&sci_pio_current, engine);
		sci_store_relaxed(&sci_pio_current_copy, engine->copy);
	} else {
		sci_store_relaxed(&sci_pio_current, engine_best());
		sci_store_relaxed(&sci_pio_current_copy, sci_pio_auto_copy());
	}
	return err;
}

const char *sci_pio_name(void)
{
	return sci_load_relaxed(&sci_pio_current)->name;
}

unsigned int sci_pio_width(void)
{
	return sci_load_relaxed(&sci_pio_current)->width;
}

size_t sci_pio_stream_min(void)
{
	return sci_load_relaxed(&sci_pio_stream_limit);
}

void sci_pio_put(volatile void *dst, const void *src, size_t len)
{
	const struct sci_pio_engine *engine;
	volatile char *d = dst;
	const char *s = src;
	size_t n;

	engine = sci_load_relaxed(&sci_pio_current);
	for (; len; d += n, s += n, len -= n) {
		n = sci_pio_step((uintptr_t)d, len);
		if (n == SCI_PIO_LINE) {
			n = len - len % SCI_PIO_LINE;
			engine->put_lines(d, s, n / SCI_PIO_LINE);
		} else {
			step_put(d, s, n);
		}
	}
}

void sci_pio_get(void *dst, const volatile void *src, size_t len)
{
	const struct sci_pio_engine *engine;
	char *d = dst;
	const volatile char *s = src;
	size_t n;

	engine = sci_load_relaxed(&sci_pio_current);
	for (; len; d += n, s += n, len -= n) {
		n = sci_pio_step((uintptr_t)s, len);
		if (n == SCI_PIO_LINE) {
			n = len - len % SCI_PIO_LINE;
			engine->get_lines(d, s, n / SCI_PIO_LINE);
		} else {
			step_get(d, s, n);
		}
	}
}

void sci_pio_line_cached(volatile void *dst, const void *src)
{
	const int last = SCI_PIO_LINE / 8 - 1;
	volatile sci_u64 *d = dst;
	const sci_v8 *s = src;

	SCI_PIO_UNROLL for (int i = 0; i < last; i++)
		sci_store_relaxed(&d[i], s[i]);
	sci_store_release(&d[last], s[last]);
}
