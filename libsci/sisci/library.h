/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: how a public function is built
 *
 * The public function is three lines around SCI_CALL(), which checks that the
 * library is up and that the flags are known, makes SCITerminate() wait while
 * the call runs, and stores the outcome.  The work is in a static function that
 * returns a sci_error_t.  Only the data path (transfer.c, sequence.c) does not
 * use SCI_CALL(): it looks up handles with sci_peek(), without a reference.
 */
#ifndef LIBSCI_LIBRARY_H
#define LIBSCI_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libsci/fabric/core/fabric.h"
#include "libsci/sisci/export.h"

struct sci_library {
	_Atomic bool up;
	struct sci_fabric *fabric;
	const struct sci_fabric_ops *ops;
	struct sci_link_status *link;	/* link status of adapter 0 */
	/*
	 * The function that stores through any map. NULL if it differs between maps, if
	 * faults are injected, or while the library is not initialised.
	 */
	sci_pio_copy_fn *_Atomic quick;
	unsigned int node;		/* node ID of adapter 0 */
};

extern struct sci_library sci_lib __attribute__((visibility("hidden")));

static inline bool sci_up(void)
{
	return atomic_load_explicit(&sci_lib.up, memory_order_acquire);
}

/**
 * sci_enter() - begin a public call; after SCI_ERR_OK sci_leave() must end the call
 * @flags: flags of the call
 * @known: flags that the function knows
 */
sci_error_t sci_enter(unsigned int flags, unsigned int known);
sci_error_t sci_leave(sci_error_t err);

static inline void sci_set_error(sci_error_t *error, sci_error_t err)
{
	if (error)
		*error = err;
}

/* Evaluate @work only if sci_enter() returns SCI_ERR_OK, and store the result in @err. */
#define SCI_RUN(err, flags, known, work)				\
	do {								\
		(err) = sci_enter(flags, known);			\
		if (!(err))						\
			(err) = sci_leave(work);			\
	} while (0)

/* Do what SCI_RUN() does, and store the result in *@error. @error may be NULL. */
#define SCI_CALL(error, flags, known, work)				\
	do {								\
		sci_error_t err_;					\
									\
		SCI_RUN(err_, flags, known, work);			\
		sci_set_error(error, err_);				\
	} while (0)

/* Kinds of calls: the SISCI code for a -errno of the fabric depends on the call that failed. */
enum sci_context {
	SCI_CTX_CREATE,			/* create a segment */
	SCI_CTX_REGISTER,		/* register a segment's memory */
	SCI_CTX_ATTACH,
	SCI_CTX_CONNECT,
	SCI_CTX_MAP,
	SCI_CTX_INTERRUPT,		/* create an interrupt */
	SCI_CTX_CONNECT_INTERRUPT,
	SCI_CTX_TRIGGER,
	SCI_CTX_WAIT,
	SCI_CTX_NODE,			/* query an adapter or a node */
};

/**
 * sci_err() - return the SISCI code for a result of the fabric
 *
 * The function sets errno if the code is SCI_ERR_SYSTEM.
 */
sci_error_t sci_err(int ret, enum sci_context ctx);

/**
 * sci_throttle() - return the result of a connect, after a pause if connects fail too often
 *
 * Programs repeat a connect without a pause until the peer has created the segment or interrupt.
 * The peer may need this CPU to create it.
 */
sci_error_t sci_throttle(sci_error_t err);

/* Get information about an adapter. Errors: ILLEGAL_ADAPTERNO, NO_SUCH_ADAPTERNO. */
sci_error_t sci_adapter(unsigned int adapter, struct sci_adapter_info *info);

/* Check an adapter's number. Errors: ILLEGAL_ADAPTERNO, NO_SUCH_ADAPTERNO. */
sci_error_t sci_check_adapter(unsigned int adapter);

/* Check a node ID. Replace SCI_LOCAL_HOST by the ID of this node. Error: ILLEGAL_NODEID. */
sci_error_t sci_check_node(unsigned int *node);

#endif
