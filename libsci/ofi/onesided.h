/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: one-sided transfers and atomics
 *
 * Who asks and who serves are endpoints of the provider; what goes between them
 * are messages with tags, in contexts that programs do not reach:
 *
 *	asks					serves
 *
 *	SFI_REQUEST	what, where, and up to SFI_INLINE_MAX bytes	-->
 *	SFI_BYTES	... longer ones, straight into the region	-->
 *	SFI_REPLY	<--	what was read; an immediate says why not
 *
 * The tag of all three is a number of the asking endpoint's, so that a pair of
 * peer and number names one request. A request is served while its target makes
 * progress, in the order they came, but for SFI_BYTES and replies that are long,
 * which end when they do. It has completed when its reply is here, whatever the
 * completion level: what can go wrong at the target is told.
 *
 * A region that is exported as a segment has its number in its key: peers store to
 * it, load from it, and change single words of it atomically themselves, and the
 * target has no part in it.
 *
 * All that comes from a peer is looked at: it may ask for anything.
 */
#ifndef LIBSCI_OFI_ONESIDED_H
#define LIBSCI_OFI_ONESIDED_H

#include "libsci/ofi/ofi.h"

#define SFI_INLINE_MAX	4096u

/* Keys that the provider gives: exported, the segment's number, a count. */
#define SFI_KEY_EXPORTED	(UINT64_C(1) << 63)
#define SFI_KEY_SEGMENT(key)	((uint32_t)((key) >> 31))
#define SFI_KEY_COUNT		((UINT64_C(1) << 31) - 1)

enum sfi_verb {
	SFI_WRITE,
	SFI_READ,
	SFI_ATOMIC,			/* operands */
	SFI_FETCH,			/* ... and what was there before */
	SFI_COMPARE,			/* ... operands, then comparands */
	SFI_VERBS
};

/* A part of a region of the target's. */
struct sfi_place {
	uint64_t addr;
	uint64_t key;
	uint64_t len;
};

struct sfi_request {
	uint8_t verb;
	uint8_t type;			/* of atomics: enum fi_datatype, */
	uint8_t op;			/* enum fi_op */
	uint8_t places;
	uint8_t apart;			/* what is written is in SFI_BYTES */
	uint8_t reserved[3];
	struct sfi_place place[SFI_RMA_IOV_MAX];	/* those there are */
};

/**
 * struct sfi_ask - what all the calls that ask come to
 * @out: what is written, or operands
 * @compare: comparands
 * @in: for what is read, or was there before
 * @untold: nobody hears of its end, unless it fails
 */
struct sfi_ask {
	enum sfi_verb verb;
	const struct iovec *out, *compare, *in;
	size_t n_out, n_compare, n_in;
	const struct sfi_place *places;
	size_t n_places;
	fi_addr_t peer;
	uint64_t data;
	uint64_t flags;
	void *context;
	enum fi_datatype type;
	enum fi_op op;
	bool untold;
};

/* A region: memory that peers may name by its key. */
struct sfi_mr {
	struct fid_mr fid;
	struct sfi_domain *domain;
	struct hash_node node;		/* by key */
	char *base;
	uint64_t len;
	uint64_t access;
	struct sfi_cntr *writes, *reads; /* by peers; may be NULL */
	unsigned int users;		/* transfers under way */
	bool exported;			/* by the domain's exporter */
};

/* ask.c */
ssize_t sfi_ask(struct sfi_ep *ep, const struct sfi_ask *a);
size_t sfi_length(const struct iovec *iov, size_t n);

/* serve.c */
int sfi_serve_begin(struct sfi_ep *ep);
void sfi_serve_again(struct sfi_ep *ep);
void sfi_refuse(struct sfi_ep *ep);
void sfi_serve_end(struct sfi_ep *ep);

/* mr.c */
int sfi_mr_find(struct sfi_domain *d, const struct sfi_place *p, uint64_t access,
		struct sfi_mr **mr, void **at);
void sfi_mr_exporter(struct sfi_ep *ep);
void sfi_mr_no_exporter(struct sfi_ep *ep);

/* atomic.c */
size_t sfi_atomic_size(enum fi_datatype type);
size_t sfi_atomic_align(enum fi_datatype type);
bool sfi_atomic_valid(enum sfi_verb verb, enum fi_datatype type, enum fi_op op);
int sfi_atomic_apply(enum fi_datatype type, enum fi_op op, void *target,
		     const void *operand, const void *compare, void *before,
		     size_t n);
bool sfi_atomic_direct(enum fi_datatype type, enum fi_op op, const void *operand,
		       const void *compare, struct sci_rmw *rmw);

/* atomic_calls.c */
int sfi_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

#endif
