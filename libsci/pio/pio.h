/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: programmed I/O
 *
 * These functions store bytes into a mapped segment. A PCI-SCI adapter gathers consecutive stores
 * in 64-byte stream buffers. It sends a full buffer as one packet, and a partly filled buffer as
 * several small packets. So the width and the order of stores decide how many packets the link
 * carries (sci-hardware: write stream buffers; DECK paper: 87.72 Mbyte/s with MMX stores
 * against 49.94 with memcpy). Cacheable memory needs few instructions for short blocks, and
 * non-temporal stores for blocks larger than the last-level cache. An engine, chosen once for
 * the CPU, serves both kinds of memory.
 *
 * The functions do not fail, block, allocate memory or make system calls. Any thread and signal
 * handler may call them at any time, except sci_pio_init(). Before sci_pio_init() a portable
 * engine is in use. The functions access no byte outside of the given ranges, which must not
 * overlap. With a length of 0 both pointers may be NULL.
 */
#ifndef LIBSCI_PIO_PIO_H
#define LIBSCI_PIO_PIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/base/barrier.h"

/* Bytes of a stream buffer, a packet and a short message (sci-hardware). */
#define SCI_PIO_LINE	64

/**
 * enum sci_pio_map - kinds of memory behind a mapping
 * @SCI_PIO_MAP_CACHED: ordinary cacheable memory, shared with processes of
 *                      this host. A write is ordered like plain stores: a
 *                      later sci_store_release() publishes it.
 * @SCI_PIO_MAP_LINES:  window of an adapter, write-combining. Stores are
 *                      weakly ordered until sci_pio_barrier().
 */
enum sci_pio_map {
	SCI_PIO_MAP_CACHED,
	SCI_PIO_MAP_LINES,
};

typedef void sci_pio_copy_fn(void *dst, const void *src, size_t len);
typedef void sci_pio_lines_fn(volatile void *dst, const volatile void *src,
			      size_t lines);

/**
 * struct sci_pio_engine - functions that copy with stores of one width
 * @name:      the value of SCI_PIO that selects the engine
 * @width:     bytes of its widest store; a divisor of SCI_PIO_LINE
 * @supported: returns whether this CPU has the instructions
 * @put_lines: stores whole lines to an aligned @dst, each byte once, in ascending order, by
 *	stores of @width
 * @get_lines: loads whole lines from an aligned @src in the same way
 * @copy:      copies cacheable memory with stores of at most @width, ordered like plain stores
 */
struct sci_pio_engine {
	const char *name;
	unsigned int width;
	bool (*supported)(void);
	sci_pio_lines_fn *put_lines;
	sci_pio_lines_fn *get_lines;
	sci_pio_copy_fn *copy;
};

/*
 * The engine and the copy function in use. Read them with sci_load_relaxed(). While
 * sci_pio_init() changes them, any mix of the old and the new values works.
 */
extern const struct sci_pio_engine *sci_pio_current
	__attribute__((visibility("hidden")));
extern sci_pio_copy_fn *sci_pio_current_copy
	__attribute__((visibility("hidden")));

/**
 * sci_pio_init() - choose the engine
 * @override: name of an engine (the value of SCI_PIO); NULL or empty: the
 *            best that the CPU has, with memcpy() where that measures better
 *
 * Threads that store meanwhile use the old or the new engine. The function may
 * be called again.
 *
 * Return: 0; -EINVAL if there is no engine @override, -EOPNOTSUPP if this CPU
 * lacks it. The best engine is then in use, and the caller may warn.
 */
int sci_pio_init(const char *override);

/**
 * sci_pio_name() - get the name of the engine in use
 *
 * Return: a static string.
 */
const char *sci_pio_name(void);

/**
 * sci_pio_width() - get the width of the widest store of the engine in use
 *
 * Return: bytes; SCI_PIO_LINE: the engine stores a line at once.
 */
unsigned int sci_pio_width(void);

/**
 * sci_pio_engine() - enumerate the engines of this architecture
 * @i: from 0, the best engine first, the portable one last
 *
 * Return: the engine, which the CPU may not support (call its supported()); NULL: @i is
 * beyond the last engine.
 */
const struct sci_pio_engine *sci_pio_engine(unsigned int i);

/**
 * sci_pio_stream_min() - get the length of the shortest block that bypasses the cache
 *
 * sci_pio_init() sets the length to half of the last-level cache: source and destination together
 * then fill the cache.
 *
 * Return: bytes; SIZE_MAX if no engine has non-temporal stores.
 */
size_t sci_pio_stream_min(void);

/**
 * sci_pio_cache_init() - prepare the flushes of the cache
 *
 * Call this function before the other sci_pio_cache functions.
 *
 * Return: false if programs cannot flush the cache of this CPU.
 */
bool sci_pio_cache_init(void);

/**
 * sci_pio_cache_write_back() - start to write lines back to memory
 * @addr: first byte; any alignment
 * @len: bytes; 0: none
 *
 * The lines are in memory after sci_pio_cache_fence().
 */
void sci_pio_cache_write_back(const volatile void *addr, size_t len);
void sci_pio_cache_fence(void);

/**
 * sci_pio_cache_refresh() - write lines back to memory, and drop them
 * @addr: first byte; any alignment
 * @len: bytes; 0: none
 *
 * The next load of a line reads memory.
 */
void sci_pio_cache_refresh(const volatile void *addr, size_t len);

/**
 * sci_pio_step() - get the width of the next access to an adapter's window
 * @addr: address in the window
 * @len:  bytes from there on, not 0
 *
 * A whole line that starts at @addr is one access of SCI_PIO_LINE bytes. Otherwise the width is
 * the largest power of two up to 8 that is naturally aligned and fits (sci-hardware: the adapter
 * sends a stream buffer when it is full, and earlier when the next store is not consecutive).
 * The function has no state, so tests can predict every access of a transfer.
 *
 * Return: bytes, at most @len.
 */
static inline size_t sci_pio_step(uintptr_t addr, size_t len)
{
	size_t n = (addr | 8) & -(addr | 8);

	if (!(addr % SCI_PIO_LINE) && len >= SCI_PIO_LINE)
		return SCI_PIO_LINE;
	while (n > len)
		n /= 2;
	return n;
}

/* Out-of-line parts of sci_pio_write(), sci_pio_read() and sci_pio_line(). */
void sci_pio_put(volatile void *dst, const void *src, size_t len);
void sci_pio_get(void *dst, const volatile void *src, size_t len);
void sci_pio_line_cached(volatile void *dst, const void *src);

/**
 * sci_pio_write() - store a block into a mapped segment
 * @dst: in the map, any alignment
 * @src: private memory, any alignment
 * @len: bytes, also 0
 * @map: kind of the map
 *
 * For SCI_PIO_MAP_LINES every byte is stored exactly once, in ascending order, in the steps of
 * sci_pio_step(). The adapter may change the order of packets (sci-hardware: packets are not
 * ordered between each other).
 */
static inline void sci_pio_write(volatile void *dst, const void *src,
				 size_t len, enum sci_pio_map map)
{
	if (map == SCI_PIO_MAP_CACHED)
		sci_load_relaxed(&sci_pio_current_copy)((void *)dst, src, len);
	else
		sci_pio_put(dst, src, len);
}

/**
 * sci_pio_read() - load a block from a mapped segment
 * @dst: private memory, any alignment
 * @src: in the map, any alignment
 * @len: bytes, also 0
 * @map: kind of the map
 *
 * For SCI_PIO_MAP_LINES every byte is loaded exactly once, in ascending
 * order, in the steps of sci_pio_step(). Each of these loads is a round trip,
 * ten times slower than a write (sci-hardware: remote reads).
 */
static inline void sci_pio_read(void *dst, const volatile void *src,
				size_t len, enum sci_pio_map map)
{
	if (map == SCI_PIO_MAP_CACHED)
		sci_load_relaxed(&sci_pio_current_copy)(dst,
							(const void *)src, len);
	else
		sci_pio_get(dst, src, len);
}

/**
 * sci_pio_line() - store one line, a short message
 * @dst: in the map, 64-byte aligned
 * @src: 64 bytes, any alignment
 * @map: kind of the map
 *
 * For SCI_PIO_MAP_LINES the engine uses its widest stores, so that the line is one packet and
 * arrives whole (sci-hardware). For SCI_PIO_MAP_CACHED the last 8 bytes are a release store: a
 * thread that acquires them sees the rest of the line and all earlier stores. No instruction
 * set promises this for one wide vector store, and such a store is not faster for a poller on
 * another core.
 */
static inline void sci_pio_line(volatile void *dst, const void *src,
				enum sci_pio_map map)
{
	if (map == SCI_PIO_MAP_CACHED)
		sci_pio_line_cached(dst, src);
	else
		sci_load_relaxed(&sci_pio_current)->put_lines(dst, src, 1);
}

/**
 * sci_pio_barrier() - drain the CPU's store buffers
 *
 * Call it after a run of writes to SCI_PIO_MAP_LINES: the writes leave the CPU before any later
 * store. The adapter's own flush and error check come after this barrier.
 */
static inline void sci_pio_barrier(void)
{
	sci_store_barrier();
}

/**
 * sci_pio_crc32c() - compute the CRC-32C of a block in ordinary memory
 * @crc: 0, or the result of the bytes before the block
 *
 * sci_pio_crc32c_table() is the portable function.
 */
uint32_t sci_pio_crc32c(uint32_t crc, const void *data, size_t len);
uint32_t sci_pio_crc32c_table(uint32_t crc, const void *data, size_t len);

#endif
