/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: how a file travels
 *
 * The receiver's segment has a ring of slots behind the session's words, and a block of data
 * for each slot. The sender fills block n % SLOTS, then its slot, then raises the receiver's
 * progress to n + 1. The receiver raises the sender's progress when it has stored a block. The
 * sender is at most SLOTS blocks ahead of its progress. The last slot has no data, but the
 * SHA-256 of the whole file. The receiver compares the SHA-256, gives the file its name and
 * answers SESSION_DONE, or answers with the reason of a failure.
 */
#ifndef LIBSCI_TOOLS_TRANSFER_H
#define LIBSCI_TOOLS_TRANSFER_H

#include <assert.h>
#include <stdint.h>

#include <nettle/sha2.h>
#include <nettle/version.h>

#include "session.h"

/* default id of the segment (--id) */
#define TRANSFER_ID		0x5c1f11eu
#define TRANSFER_BLOCK		((size_t)256 << 10)
#define TRANSFER_SLOTS		32u
#define TRANSFER_NAME_MAX	255
#define TRANSFER_UNKNOWN	UINT64_MAX	/* size of a pipe */

#define TRANSFER_BLOCKS_AT	4096u		/* offset in the session's data */
#define TRANSFER_RING	(TRANSFER_BLOCKS_AT + TRANSFER_SLOTS * TRANSFER_BLOCK)

enum { TRANSFER_LAST = 1 };

struct transfer_slot {
	uint32_t len;
	uint32_t flags;			/* 0 or TRANSFER_LAST */
	uint64_t total;			/* with TRANSFER_LAST: bytes of the whole transfer */
	uint8_t digest[SHA256_DIGEST_SIZE];	/* with TRANSFER_LAST */
	uint8_t pad[16];
};

static_assert(sizeof(struct transfer_slot) == 64, "on the wire");
static_assert(TRANSFER_SLOTS * sizeof(struct transfer_slot) <=
	      TRANSFER_BLOCKS_AT, "slots before blocks");

/* The client's bytes in the session's hello. */
struct transfer_hello {
	uint64_t size;			/* bytes, or TRANSFER_UNKNOWN */
	uint32_t mode;			/* permissions */
	uint32_t name_len;		/* 0: the data has no name */
	char name[TRANSFER_NAME_MAX + 1];
};

static_assert(sizeof(struct transfer_hello) == 272, "on the wire");

static inline size_t transfer_slot_at(uint64_t n)
{
	return n % TRANSFER_SLOTS * sizeof(struct transfer_slot);
}

static inline size_t transfer_block_at(uint64_t n)
{
	return TRANSFER_BLOCKS_AT + n % TRANSFER_SLOTS * TRANSFER_BLOCK;
}

#define TRANSFER_HEX	(2 * SHA256_DIGEST_SIZE + 1)

static inline void transfer_digest(struct sha256_ctx *sha,
				   uint8_t digest[SHA256_DIGEST_SIZE])
{
#if NETTLE_VERSION_MAJOR >= 4
	sha256_digest(sha, digest);
#else
	sha256_digest(sha, SHA256_DIGEST_SIZE, digest);
#endif
}

/* ---- progress, on a terminal only (progress.c) ---- */

struct progress {
	char name[64];
	uint64_t total;			/* bytes, or TRANSFER_UNKNOWN */
	uint64_t begin, drawn;		/* ns */
	bool terminal;
};

void progress_begin(struct progress *p, const char *name, uint64_t total);
void progress_step(struct progress *p, uint64_t done);
void progress_end(struct progress *p);

/* Print one line on standard output: bytes, speed and checksum. */
void progress_report(const struct progress *p, const char *verb, uint64_t done,
		     const uint8_t digest[SHA256_DIGEST_SIZE], uint64_t resent);

#endif
