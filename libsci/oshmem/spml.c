// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The spml component: start, end, puts and gets. */

#include "libsci/oshmem/oshmem.h"

#include <limits.h>
#include <unistd.h>

#include <opal/runtime/opal_progress.h>
#include <opal/util/output.h>
#include <oshmem/info/info.h>
#include <oshmem/mca/memheap/base/base.h>
#include <oshmem/runtime/runtime.h>

#include "libsci/base/thread.h"

#define SERVE_MS	2u		/* interval of progress calls of the thread */
#define SPML_TAG	1		/* Open MPI itself sends with tag 0 */

struct sci_team *oshmem_team;

/* ---- progress for PEs that loads and stores do not reach ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	pthread_t thread;
	bool runs;
	bool stop;
} serve = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *serve_run(void *arg)
{
	pthread_mutex_lock(&serve.lock);
	while (!serve.stop) {
		struct timespec end = sci_deadline(SERVE_MS);

		sci_team_progress(arg);
		sci_cond_wait(&serve.stopped, &serve.lock, SERVE_MS, &end);
	}
	pthread_mutex_unlock(&serve.lock);
	return NULL;
}

static int serve_progress(void)
{
	sci_team_progress(oshmem_team);
	return 0;
}

/* If a PE is far, make progress in Open MPI's waits, and while the program makes no calls. */
static int serve_start(void)
{
	const struct sci_team_view *view = (const struct sci_team_view *)oshmem_team;
	bool far = false;
	int ret;

	for (size_t i = 0; i < view->ranks; i++)
		far |= view->shift[i] == 1;
	if (!far)
		return 0;
	sci_cond_init(&serve.stopped);
	serve.stop = false;
	ret = sci_thread_start(&serve.thread, serve_run, oshmem_team, "sci-oshmem");
	serve.runs = !ret;
	return ret ? ret : opal_progress_register(serve_progress);
}

static void serve_stop(void)
{
	if (!serve.runs)
		return;
	opal_progress_unregister(serve_progress);
	pthread_mutex_lock(&serve.lock);
	serve.stop = true;
	pthread_cond_signal(&serve.stopped);
	pthread_mutex_unlock(&serve.lock);
	pthread_join(serve.thread, NULL);
	pthread_cond_destroy(&serve.stopped);
	serve.runs = false;
}

/* ---- start and end ---- */

static int spml_enable(bool enable)
{
	(void)enable;
	return OSHMEM_SUCCESS;
}

static int spml_add_procs(oshmem_group_t *group, size_t n)
{
	(void)group;
	if (n != (size_t)sci_team_size(oshmem_team) ||
	    oshmem_my_proc_id() != sci_team_rank(oshmem_team)) {
		opal_output(0, "sci: Open MPI has %zu PEs, the team %d (start the program by mpirun or `sci run --pmix`)",
			    n, sci_team_size(oshmem_team));
		return OSHMEM_ERROR;
	}
	/* All contexts are the team. Open MPI takes NULL for an invalid context. */
	oshmem_ctx_default = (shmem_ctx_t)oshmem_team;
	return oshmem_result(serve_start());
}

static int spml_del_procs(oshmem_group_t *group, size_t n)
{
	(void)group;
	(void)n;
	serve_stop();
	return OSHMEM_SUCCESS;
}

static int spml_finalize(void)
{
	serve_stop();
	sci_team_close(oshmem_team);
	oshmem_team = NULL;
	return OSHMEM_SUCCESS;
}

/* ---- memory ---- */

static bool segment_is_static(void *addr)
{
	uint32_t i = (uint32_t)memheap_find_segnum(addr, oshmem_my_proc_id());

	return i != MEMHEAP_SEG_INVALID && memheap_find_seg((int)i)->type == MAP_SEGMENT_STATIC;
}

static int segment_share(void *addr, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	/* Open MPI may take a mapped heap for static variables. */
	if (sci_team_ptr_any(oshmem_team, addr, sci_team_rank(oshmem_team)))
		return 0;
	if (!segment_is_static(addr)) {
		opal_output(0, "sci: the heap is from another sshmem component (remove the parameter sshmem)");
		return -EINVAL;
	}
	return sci_team_register(oshmem_team, addr, (size + page - 1) & ~(page - 1));
}

static sshmem_mkey_t *spml_register(void *addr, size_t size, uint64_t id, int *count)
{
	sshmem_mkey_t *key = calloc(1, sizeof(*key));
	int ret = key ? segment_share(addr, size) : -ENOMEM;

	(void)id;
	if (ret) {
		opal_output(0, "sci: cannot share %zu bytes at %p: %s", size, addr, strerror(-ret));
		free(key);
		return NULL;
	}
	key->va_base = addr;
	key->u.key = (uint64_t)MAP_SEGMENT_SHM_INVALID;
	*count = 1;
	return key;
}

static int spml_deregister(sshmem_mkey_t *key)
{
	free(key);
	return OSHMEM_SUCCESS;
}

static void *spml_ptr(const void *addr, sshmem_mkey_t *key, int pe)
{
	(void)key;
	return sci_team_ptr_any(oshmem_team, addr, pe);
}

/* ---- contexts ---- */

static int spml_quiet(shmem_ctx_t ctx)
{
	(void)ctx;
	return oshmem_result(sci_team_quiet(oshmem_team));
}

static int spml_fence(shmem_ctx_t ctx)
{
	(void)ctx;
	return oshmem_result(sci_team_fence(oshmem_team));
}

static int spml_ctx_create(long options, shmem_ctx_t *ctx)
{
	(void)options;
	*ctx = (shmem_ctx_t)oshmem_team;
	return OSHMEM_SUCCESS;
}

static void spml_ctx_destroy(shmem_ctx_t ctx)
{
	spml_quiet(ctx);
}

/* ---- puts and gets ---- */

static int spml_put(shmem_ctx_t ctx, void *dst, size_t len, void *src, int pe)
{
	(void)ctx;
	return oshmem_result(sci_team_put(oshmem_team, dst, src, len, pe));
}

static int spml_put_nb(shmem_ctx_t ctx, void *dst, size_t len, void *src, int pe, void **handle)
{
	(void)ctx;
	(void)handle;
	return oshmem_result(sci_team_put_nbi(oshmem_team, dst, src, len, pe));
}

static int spml_get(shmem_ctx_t ctx, void *src, size_t len, void *dst, int pe)
{
	(void)ctx;
	return oshmem_result(sci_team_get(oshmem_team, dst, src, len, pe));
}

static int spml_get_nb(shmem_ctx_t ctx, void *src, size_t len, void *dst, int pe, void **handle)
{
	(void)ctx;
	(void)handle;
	return oshmem_result(sci_team_get_nbi(oshmem_team, dst, src, len, pe));
}

/* Put a part of @src to each PE, and then add 1 to its counter. */
static int spml_put_all_nb(void *dst, const void *src, size_t len, long *counter)
{
	int me = sci_team_rank(oshmem_team), n = sci_team_size(oshmem_team), ret = 0;

	for (int i = 0; !ret && i < n; i++) {
		int pe = (me + i) % n;

		ret = sci_team_put_signal_nbi(oshmem_team, (char *)dst + (size_t)me * len,
					      (const char *)src + (size_t)pe * len, len,
					      (uint64_t *)counter, 1, SCI_SIGNAL_ADD, pe);
	}
	return oshmem_result(ret);
}

/* ---- messages, which some of Open MPI's collective calls use ---- */

static int spml_send(void *buf, size_t len, int pe, mca_spml_base_put_mode_t mode)
{
	(void)mode;
	return len > INT_MAX || PMPI_Send(buf, (int)len, MPI_BYTE, pe, SPML_TAG, oshmem_comm_world) ?
	       OSHMEM_ERROR : OSHMEM_SUCCESS;
}

static int spml_recv(void *buf, size_t len, int pe)
{
	return len > INT_MAX || PMPI_Recv(buf, (int)len, MPI_BYTE, pe, SPML_TAG, oshmem_comm_world,
					  MPI_STATUS_IGNORE) ? OSHMEM_ERROR : OSHMEM_SUCCESS;
}

/* ---- the component ---- */

static mca_spml_base_module_t spml_module = {
	.spml_add_procs = spml_add_procs,
	.spml_del_procs = spml_del_procs,
	.spml_enable = spml_enable,
	.spml_register = spml_register,
	.spml_deregister = spml_deregister,
	.spml_oob_get_mkeys = mca_spml_base_oob_get_mkeys,
	.spml_ctx_create = spml_ctx_create,
	.spml_ctx_destroy = spml_ctx_destroy,
	.spml_put = spml_put,
	.spml_put_nb = spml_put_nb,
	.spml_get = spml_get,
	.spml_get_nb = spml_get_nb,
	.spml_recv = spml_recv,
	.spml_send = spml_send,
	.spml_wait = mca_spml_base_wait,
	.spml_wait_nb = mca_spml_base_wait_nb,
	.spml_test = mca_spml_base_test,
	.spml_fence = spml_fence,
	.spml_quiet = spml_quiet,
	.spml_rmkey_unpack = mca_spml_base_rmkey_unpack,
	.spml_rmkey_free = mca_spml_base_rmkey_free,
	.spml_rmkey_ptr = spml_ptr,
	.spml_memuse_hook = mca_spml_base_memuse_hook,
	.spml_put_all_nb = spml_put_all_nb,
};

static mca_spml_base_module_t *spml_init(int *priority, bool progress_threads, bool threads)
{
	struct sci_team_attr attr = {
		.size = sizeof(attr),
		/* sshmem.c extends it by Open MPI's heap, whose alignment it cannot have */
		.symmetric_size = (size_t)sysconf(_SC_PAGESIZE),
	};
	int ret = sci_team_open(&oshmem_team, &attr);

	(void)progress_threads;
	(void)threads;
	if (ret) {
		opal_output(0, "sci: cannot join the other PEs: %s", strerror(-ret));
		return NULL;
	}
	*priority = OSHMEM_PRIORITY;
	return &spml_module;
}

__attribute__((visibility("default")))
mca_spml_base_component_t mca_spml_sci_component = {
	.spmlm_version = {
		MCA_SPML_BASE_VERSION_2_0_0,
		.mca_component_name = "sci",
		MCA_BASE_MAKE_VERSION(component, OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
				      OSHMEM_RELEASE_VERSION),
	},
	.spmlm_init = spml_init,
	.spmlm_finalize = spml_finalize,
};
