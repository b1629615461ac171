/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: one-sided transfers and atomics
 *
 * The initiator sends a request to a handler of the target (SFI_HANDLER). Both are endpoints of this
 * provider. They also exchange tagged messages in contexts that programs cannot use:
 *
 *	initiator				target
 *
 *	request		operation, places, up to SFI_INLINE_MAX bytes	-->
 *	SFI_BYTES	longer data of a write, straight into the region -->
 *	SFI_REPLY	<--	the bytes of a read; an immediate is an error
 *
 * The tag of these three messages is a number that the initiator chooses, so a peer and a tag
 * identify a request. The target executes requests in order while it makes progress. SFI_BYTES and
 * long replies end later, when all bytes have arrived. A request completes with its reply at every
 * completion level: the reply reports errors of the target.
 *
 * The key of a region that is exported as a segment contains the segment's number. Peers access
 * this region directly, by stores, loads and atomics on single words, without the target.
 *
 * The target checks all contents of the messages of a peer.
 */
#ifndef LIBSCI_OFI_ONESIDED_H
#define LIBSCI_OFI_ONESIDED_H

#include "libsci/ofi/ofi.h"

#define SFI_HANDLER	SCI_HANDLER_LIBRARY
#define SFI_INLINE_MAX	4096u

/* Keys of the provider: exported bit, segment number, counter. */
#define SFI_KEY_EXPORTED	(UINT64_C(1) << 63)
#define SFI_KEY_SEGMENT(key)	((uint32_t)((key) >> 31))
#define SFI_KEY_COUNT		((UINT64_C(1) << 31) - 1)

enum sfi_verb {
	SFI_WRITE,
	SFI_READ,
	SFI_ATOMIC,			/* request with operands */
	SFI_FETCH,			/* the reply also has the old values */
	SFI_COMPARE,			/* as SFI_FETCH; operands, then comparands */
	SFI_VERBS
};

/* A part of a region of the target. */
struct sfi_place {
	uint64_t addr;
	uint64_t key;
	uint64_t len;
};

struct sfi_request {
	uint8_t verb;
	uint8_t type;			/* atomics: enum fi_datatype */
	uint8_t op;			/* enum fi_op */
	uint8_t places;
	uint8_t apart;			/* the bytes of the write are in SFI_BYTES */
	uint8_t has_data;		/* 8 bytes of FI_REMOTE_CQ_DATA follow the places */
	uint8_t reserved[2];
	struct sfi_place place[SFI_RMA_IOV_MAX];	/* @places of them are sent */
};

/* Longest request, in bytes. */
#define SFI_REQUEST_MAX	(sizeof(struct sfi_request) + sizeof(uint64_t) + SFI_INLINE_MAX)

_Static_assert(SFI_REQUEST_MAX <= SCI_HANDLER_MAX && 2 * SFI_ATOMIC_MAX <= SFI_INLINE_MAX,
	       "a request fits into a message to a handler");

/**
 * struct sfi_ask - the arguments of all one-sided calls
 * @out: bytes to write, or operands
 * @compare: comparands
 * @in: buffer for the bytes of a read, or for the values before an atomic
 * @untold: report only an error
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

/* A memory region. Requests of peers name the region by its key. */
struct sfi_mr {
	struct fid_mr fid;
	struct sfi_domain *domain;
	struct hash_node node;		/* by key */
	char *base;
	uint64_t len;
	uint64_t access;
	struct sfi_cntr *writes, *reads; /* transfers by peers; may be NULL */
	unsigned int users;		/* transfers in flight */
	bool exported;			/* by domain->exporter */
	bool closing;			/* no request finds the region any more */
};

/* rma_initiator.c */
ssize_t sfi_ask(struct sfi_ep *ep, const struct sfi_ask *a);
size_t sfi_length(const struct iovec *iov, size_t n);

/* rma_target.c */
void sfi_serve_begin(struct sfi_ep *ep);
void sfi_serve_transfers(struct sfi_ep *ep);
void sfi_serve_end(struct sfi_ep *ep);
void sfi_serve_free(struct sfi_ep *ep);
void sfi_write_event(struct sfi_ep *ep, const struct sci_status *st);

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
