// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCIInitialize(), SCITerminate(), and the begin and the end of every call. */

#include "libsci/sisci/library.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "libsci/base/cancel.h"
#include "libsci/fabric/core/fault.h"
#include "libsci/sisci/notify.h"
#include "libsci/sisci/object.h"

struct sci_library sci_lib;

/* This lock lets one SCIInitialize() or SCITerminate() run at a time. */
static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Number of calls in progress. SCITerminate() waits for 0 under idle_lock. */
static _Atomic unsigned int calls;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

/*
 * Number of calls in progress on this thread. It is above 0 in a signal handler that interrupts
 * a call.
 */
static _Thread_local unsigned int depth;

static void call_end(void)
{
	depth--;
	if (atomic_fetch_sub(&calls, 1) <= 1 && !sci_up()) {
		pthread_mutex_lock(&idle_lock);
		pthread_cond_broadcast(&idle);
		pthread_mutex_unlock(&idle_lock);
	}
	sci_cancel_release();
}

sci_error_t sci_enter(unsigned int flags, unsigned int known)
{
	sci_cancel_hold();
	depth++;
	atomic_fetch_add(&calls, 1);
	if (!atomic_load(&sci_lib.up)) {
		call_end();
		return SCI_ERR_NOT_INITIALIZED;
	}
	return flags & ~known ? sci_leave(SCI_ERR_ILLEGAL_FLAG) : SCI_ERR_OK;
}

sci_error_t sci_leave(sci_error_t err)
{
	call_end();
	return err;
}

/*
 * Reset the library in the child of a fork, as if SCIInitialize() had not been called. The
 * fabric's own fork handler closes its descriptors.
 */
static void library_fork_child(void)
{
	atomic_store(&sci_lib.quick, NULL);
	atomic_store(&sci_lib.up, false);
	atomic_store(&calls, 0);
	depth = 0;
	pthread_mutex_init(&lib_lock, NULL);
	pthread_mutex_init(&idle_lock, NULL);
	pthread_cond_init(&idle, NULL);
	sci_objects_fork();
	sci_seq_fork();
	sci_pool_fork();
}

static void library_fork_init(void)
{
	pthread_atfork(NULL, NULL, library_fork_child);
}

static int fabric_join(void)
{
	struct sci_adapter_info info;
	int ret;

	ret = sci_fabric_open(&sci_lib.fabric);
	if (ret)
		return ret;
	sci_lib.ops = sci_lib.fabric->ops;
	ret = sci_lib.ops->query.adapter(sci_lib.fabric, 0, &info);
	if (ret) {
		sci_fabric_close(sci_lib.fabric);
		return ret;
	}
	sci_lib.node = info.node;
	sci_lib.link = sci_lib.ops->query.link(sci_lib.fabric, 0);
	if (sci_lib.link->map == SCI_PIO_MAP_CACHED && !sci_lib.link->cache &&
	    !atomic_load(&sci_fault_enabled))
		atomic_store(&sci_lib.quick, sci_pio_current_copy);
	atomic_store(&sci_lib.up, true);
	return 0;
}

static sci_error_t library_initialize(unsigned int flags)
{
	int ret = 0;

	if (flags)
		return SCI_ERR_ILLEGAL_FLAG;
	pthread_once(&fork_once, library_fork_init);
	sci_cancel_hold();
	pthread_mutex_lock(&lib_lock);
	if (!sci_up())
		ret = fabric_join();
	pthread_mutex_unlock(&lib_lock);
	sci_cancel_release();
	return ret == -EINVAL ? SCI_ERR_ILLEGAL_PARAMETER :
				sci_err(ret, SCI_CTX_NODE);
}

void SCIInitialize(unsigned int flags, sci_error_t *error)
{
	sci_error_t err = library_initialize(flags);

	if (error)
		*error = err;
}
SISCI_EXPORT(SCIInitialize);

static void calls_wait(void)
{
	pthread_mutex_lock(&idle_lock);
	while (atomic_load(&calls))
		pthread_cond_wait(&idle, &idle_lock);
	pthread_mutex_unlock(&idle_lock);
}

static void object_call(void *obj, void *fn)
{
	(*(void (*const *)(void *))fn)(obj);
}

static void fabric_leave(void)
{
	static void (*const cancel[SCI_TYPES])(void *) = {
		[SCI_TYPE_BLOCK] = sci_block_cancel,
		[SCI_TYPE_DMA] = sci_dma_cancel,
		[SCI_TYPE_LINTR] = sci_lintr_cancel,
		[SCI_TYPE_LDINTR] = sci_lintr_cancel,
		[SCI_TYPE_RSEG] = sci_rseg_cancel,
		[SCI_TYPE_LSEG] = sci_lseg_cancel,
	};
	static void (*const destroy[SCI_TYPES])(void *) = {
		[SCI_TYPE_SEQUENCE] = sci_seq_destroy,
		[SCI_TYPE_BLOCK] = sci_block_destroy,
		[SCI_TYPE_DMA] = sci_dma_destroy,
		[SCI_TYPE_MAP] = sci_map_destroy,
		[SCI_TYPE_LINTR] = sci_lintr_destroy,
		[SCI_TYPE_LDINTR] = sci_lintr_destroy,
		[SCI_TYPE_RINTR] = sci_rintr_destroy,
		[SCI_TYPE_RDINTR] = sci_rintr_destroy,
		[SCI_TYPE_RSEG] = sci_rseg_destroy,
		[SCI_TYPE_LSEG] = sci_lseg_destroy,
		[SCI_TYPE_DESC] = sci_desc_destroy,
	};
	unsigned int type;

	/* Refuse new calls, and end the calls that wait. */
	atomic_store(&sci_lib.quick, NULL);
	atomic_store(&sci_lib.up, false);
	sci_lib.ops->rseg.cancel_connect(sci_lib.fabric, NULL);
	for (type = 1; type < SCI_TYPES; type++)
		if (cancel[type])
			sci_for_each(type, object_call, (void *)&cancel[type]);
	calls_wait();
	for (type = 1; type < SCI_TYPES; type++)
		sci_for_each(type, object_call, (void *)&destroy[type]);
	sci_pool_stop();
	sci_fabric_close(sci_lib.fabric);
}

void SCITerminate(void)
{
	/* a thread of the pool, or a signal handler in a call, would wait for itself */
	if (sci_pool_thread() || depth)
		return;
	sci_cancel_hold();
	pthread_mutex_lock(&lib_lock);
	if (sci_up())
		fabric_leave();
	pthread_mutex_unlock(&lib_lock);
	sci_cancel_release();
}
SISCI_EXPORT(SCITerminate);

#define PATIENCE	64u		/* failures before the first pause */
/* first and longest pause after a failure, in microseconds; each failure adds PAUSE_US */
#define PAUSE_US	16u
#define PAUSE_MAX_US	1000u

sci_error_t sci_throttle(sci_error_t err)
{
	static _Thread_local unsigned int failures;
	struct timespec ts = { .tv_sec = 0 };
	unsigned int us;

	if (err != SCI_ERR_NO_SUCH_SEGMENT && err != SCI_ERR_NO_SUCH_INTNO &&
	    err != SCI_ERR_NO_SUCH_NODEID) {
		failures = 0;
		return err;
	}
	if (failures < PATIENCE + PAUSE_MAX_US / PAUSE_US)
		failures++;
	if (failures > PATIENCE) {
		us = (failures - PATIENCE) * PAUSE_US;
		ts.tv_nsec = us * 1000;
		nanosleep(&ts, NULL);
	}
	return err;
}

sci_error_t sci_adapter(unsigned int adapter, struct sci_adapter_info *info)
{
	if (adapter >= SCI_ADAPTER_MAX)
		return SCI_ERR_ILLEGAL_ADAPTERNO;
	return sci_err(sci_lib.ops->query.adapter(sci_lib.fabric, adapter,
						  info), SCI_CTX_NODE);
}

sci_error_t sci_check_adapter(unsigned int adapter)
{
	struct sci_adapter_info info;

	return sci_adapter(adapter, &info);
}

sci_error_t sci_check_node(unsigned int *node)
{
	if (*node == SCI_LOCAL_HOST)
		*node = sci_lib.node;
	return *node && *node <= SCI_NODE_MAX && !(*node % SCI_NODE_STEP) ?
	       SCI_ERR_OK : SCI_ERR_ILLEGAL_NODEID;
}
