// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* CRC-32C (Castagnoli), by the SSE4.2 instruction or by a table. */

#include "libsci/pio/pio.h"

#include <pthread.h>
#include <string.h>

#define POLY	0x82f63b78u	/* reflected */

static uint32_t table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
	for (unsigned int i = 0; i < 256; i++) {
		uint32_t v = i;

		for (int k = 0; k < 8; k++)
			v = v >> 1 ^ (v & 1 ? POLY : 0);
		table[i] = v;
	}
}

uint32_t sci_pio_crc32c_table(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	pthread_once(&once, table_make);
	crc = ~crc;
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 255];
	return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2")))
static uint32_t crc_sse42(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t v = (uint32_t)~crc, w;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&w, p, 8);
		v = __builtin_ia32_crc32di(v, w);
	}
	for (; len; len--)
		v = __builtin_ia32_crc32qi((uint32_t)v, *p++);
	return ~(uint32_t)v;
}
#endif

uint32_t sci_pio_crc32c(uint32_t crc, const void *data, size_t len)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return crc_sse42(crc, data, len);
#endif
	return sci_pio_crc32c_table(crc, data, len);
}
