// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Flushes of the CPU's cache, for memory that other machines map through caches that are not
 * coherent with it.
 */
#include "pio.h"

static uintptr_t line_of(const volatile void *addr)
{
	return (uintptr_t)addr & ~(uintptr_t)(SCI_PIO_LINE - 1);
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define LEAF_CLFLUSHOPT	(1u << 23)
#define LEAF_CLWB	(1u << 24)

/* The instructions that the CPU has, LEAF_*. Before sci_pio_cache_init(): none but CLFLUSH. */
static unsigned int instructions;

bool sci_pio_cache_init(void)
{
	unsigned int a, b, c, d;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		sci_store_relaxed(&instructions, b & (LEAF_CLFLUSHOPT | LEAF_CLWB));
	return true;
}

static __attribute__((target("clwb"))) void lines_clwb(uintptr_t at, uintptr_t end)
{
	for (; at < end; at += SCI_PIO_LINE)
		_mm_clwb((void *)at);
}

static __attribute__((target("clflushopt"))) void lines_clflushopt(uintptr_t at,
								    uintptr_t end)
{
	for (; at < end; at += SCI_PIO_LINE)
		_mm_clflushopt((void *)at);
}

static void lines_flush(uintptr_t at, uintptr_t end)
{
	if (sci_load_relaxed(&instructions) & LEAF_CLFLUSHOPT) {
		lines_clflushopt(at, end);
		return;
	}
	for (; at < end; at += SCI_PIO_LINE)
		_mm_clflush((void *)at);
}

static void lines_write_back(uintptr_t at, uintptr_t end)
{
	if (sci_load_relaxed(&instructions) & LEAF_CLWB)
		lines_clwb(at, end);
	else
		lines_flush(at, end);
}

void sci_pio_cache_fence(void)
{
	_mm_mfence();
}

#elif defined(__aarch64__)

bool sci_pio_cache_init(void)
{
	return true;
}

static void lines_flush(uintptr_t at, uintptr_t end)
{
	for (; at < end; at += SCI_PIO_LINE)
		__asm__ volatile("dc civac, %0" : : "r"(at) : "memory");
}

static void lines_write_back(uintptr_t at, uintptr_t end)
{
	for (; at < end; at += SCI_PIO_LINE)
		__asm__ volatile("dc cvac, %0" : : "r"(at) : "memory");
}

void sci_pio_cache_fence(void)
{
	__asm__ volatile("dsb sy" : : : "memory");
}

#else

bool sci_pio_cache_init(void)
{
	return false;
}

static void lines_flush(uintptr_t at, uintptr_t end)
{
	(void)at;
	(void)end;
}

static void lines_write_back(uintptr_t at, uintptr_t end)
{
	(void)at;
	(void)end;
}

void sci_pio_cache_fence(void)
{
}

#endif

void sci_pio_cache_write_back(const volatile void *addr, size_t len)
{
	lines_write_back(line_of(addr), (uintptr_t)addr + len);
}

void sci_pio_cache_refresh(const volatile void *addr, size_t len)
{
	sci_pio_cache_fence();
	lines_flush(line_of(addr), (uintptr_t)addr + len);
	sci_pio_cache_fence();
}
