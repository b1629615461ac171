// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure UCX through its UCP interface.  UCX_* in the environment are its settings.
 *
 * usage: ucx am|tag|put METRIC SIZE...
 *
 * am: active messages; the handler copies eager data.
 * tag: tag matching.
 * put: stores into memory that the other process polls.  A put is not a message: the
 * sender selects the address, and streams overwrite data that was not read.
 */
#if __has_include(<ucp/api/ucp.h>)	/* not installed for lint */
#define _GNU_SOURCE

#include <ucp/api/ucp.h>

#include "libsci/base/barrier.h"
#include "measure.h"

#define WINDOW	64u
#define FLAG	PEER_MAX		/* offset of put's sequence numbers */

enum { AM, TAG, PUT };

static int mode, rank;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static unsigned int under_way;		/* number of sends, or of tagged receives */
static uint64_t arrived, taken;		/* numbers of active messages */

static struct {				/* memory that the other process stores to */
	char *mine;
	uint64_t theirs;
	ucp_rkey_h rkey;
	uint64_t sent, seen;
} put;

#define OK(call)							\
	do {								\
		ucs_status_t status_ = (call);				\
		if (status_ != UCS_OK)					\
			peer_die("%s: %s", #call,			\
				 ucs_status_string(status_));		\
	} while (0)

static void send_done(void *request, ucs_status_t status, void *arg)
{
	(void)arg;
	peer_must(status == UCS_OK);
	ucp_request_free(request);
	under_way--;
}

static void recv_done(void *request, ucs_status_t status,
		      const ucp_tag_recv_info_t *info, void *arg)
{
	(void)info;
	send_done(request, status, arg);
}

static void am_done(void *request, ucs_status_t status, size_t n, void *arg)
{
	(void)n;
	(void)arg;
	peer_must(status == UCS_OK);
	ucp_request_free(request);
	arrived++;
}

static const ucp_request_param_t send_param = {
	.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
	.cb.send = send_done,
};

static const ucp_request_param_t recv_param = {
	.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
	.cb.recv = recv_done,
};

static const ucp_request_param_t am_param = {
	.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
	.cb.recv_am = am_done,
};

static ucs_status_t am_handler(void *arg, const void *header, size_t header_n,
			       void *data, size_t n,
			       const ucp_am_recv_param_t *param)
{
	ucs_status_ptr_t r;

	(void)arg;
	(void)header;
	(void)header_n;
	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		memcpy(peer_in, data, n);
		arrived++;
		return UCS_OK;
	}
	r = ucp_am_recv_data_nbx(worker, data, peer_in, n, &am_param);
	peer_must(!UCS_PTR_IS_ERR(r));
	if (!r)
		arrived++;
	return UCS_INPROGRESS;
}

/* ---- memory for put ---- */

/* The number is put after the data; shared-memory transports store in order. */
static void put_data(size_t n)
{
	ucs_status_ptr_t r;

	r = ucp_put_nbx(ep, peer_out, n, put.theirs, put.rkey, &send_param);
	peer_must(!UCS_PTR_IS_ERR(r));
	under_way += r != NULL;
}

static void put_number(void)
{
	ucs_status_ptr_t r;

	put.sent++;
	OK(ucp_worker_fence(worker));
	r = ucp_put_nbx(ep, &put.sent, 8, put.theirs + FLAG, put.rkey,
			&send_param);
	peer_must(!UCS_PTR_IS_ERR(r));
	under_way += r != NULL;
	while (under_way)
		ucp_worker_progress(worker);
}

static void put_wait(void)
{
	volatile uint64_t *flag = (volatile uint64_t *)(put.mine + FLAG);

	put.seen++;
	while (sci_load_acquire(flag) < put.seen)
		ucp_worker_progress(worker);
}

/* ---- messages ---- */

static void start_send(size_t n)
{
	ucs_status_ptr_t r;

	if (mode == AM)
		r = ucp_am_send_nbx(ep, 0, NULL, 0, peer_out, n, &send_param);
	else
		r = ucp_tag_send_nbx(ep, peer_out, n, 1, &send_param);
	peer_must(!UCS_PTR_IS_ERR(r));
	under_way += r != NULL;
}

static void start_recv(size_t n)
{
	ucs_status_ptr_t r;

	r = ucp_tag_recv_nbx(worker, peer_in, n, 1, (ucp_tag_t)-1, &recv_param);
	peer_must(!UCS_PTR_IS_ERR(r));
	under_way += r != NULL;
}

/* Wait until at most @most sends or receives are under way. */
static void wait_until(unsigned int most)
{
	while (under_way > most)
		ucp_worker_progress(worker);
}

static void peer_send(size_t n)
{
	if (mode == PUT) {
		put_data(n);
		put_number();
		return;
	}
	start_send(n);
	wait_until(0);
}

static void peer_recv(size_t n)
{
	if (mode == PUT) {
		put_wait();
		return;
	}
	if (mode == TAG) {
		start_recv(n);
		wait_until(0);
		return;
	}
	taken++;
	while (arrived < taken)
		ucp_worker_progress(worker);
}

static void peer_stream_out(size_t n, uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++) {
		if (mode == PUT)
			put_data(n);
		else
			start_send(n);
		wait_until(WINDOW - 1);
	}
	if (mode == PUT)
		put_number();
	wait_until(0);
}

static void peer_stream_in(size_t n, uint64_t count)
{
	uint64_t i;

	if (mode == PUT) {
		put_wait();
		return;
	}
	if (mode == AM) {
		taken += count;
		while (arrived < taken)
			ucp_worker_progress(worker);
		return;
	}
	for (i = 0; i < count; i++) {
		start_recv(n);
		wait_until(WINDOW - 1);
	}
	wait_until(0);
}

/* ---- setup ---- */

static void connect_worker(void)
{
	ucp_ep_params_t p = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *mine;
	size_t n, their_n;
	char theirs[65536] = "", packet[65536] = "";

	OK(ucp_worker_get_address(worker, &mine, &n));
	peer_must(n <= sizeof(packet));
	memcpy(packet, mine, n);
	peer_exchange(rank, &n, &their_n, sizeof(n));
	peer_exchange(rank, packet, theirs, sizeof(packet));
	p.address = (ucp_address_t *)theirs;
	OK(ucp_ep_create(worker, &p, &ep));
	ucp_worker_release_address(worker, mine);
}

static void set_up(void)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = mode == AM ? UCP_FEATURE_AM :
			    mode == TAG ? UCP_FEATURE_TAG : UCP_FEATURE_RMA,
	};
	ucp_worker_params_t worker_params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucp_am_handler_param_t am = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			      UCP_AM_HANDLER_PARAM_FIELD_CB,
		.id = 0,
		.cb = am_handler,
	};
	ucp_config_t *config;

	OK(ucp_config_read(NULL, NULL, &config));
	OK(ucp_init(&params, config, &context));
	ucp_config_release(config);
	OK(ucp_worker_create(context, &worker_params, &worker));
	if (mode == AM)
		OK(ucp_worker_set_am_recv_handler(worker, &am));
	connect_worker();
}

static void share_memory(void)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = PEER_MAX + 4096,
		.flags = UCP_MEM_MAP_ALLOCATE,
	};
	ucp_mem_attr_t attr = { .field_mask = UCP_MEM_ATTR_FIELD_ADDRESS };
	char packet[1024] = "", theirs[1024];
	uint64_t address;
	ucp_mem_h memory;
	void *key;
	size_t n;

	OK(ucp_mem_map(context, &params, &memory));
	OK(ucp_mem_query(memory, &attr));
	put.mine = attr.address;
	memset(put.mine, 0, PEER_MAX + 4096);
	OK(ucp_rkey_pack(context, memory, &key, &n));
	peer_must(n <= sizeof(packet));
	memcpy(packet, key, n);
	address = (uintptr_t)put.mine;
	peer_exchange(rank, &address, &put.theirs, sizeof(address));
	peer_exchange(rank, packet, theirs, sizeof(packet));
	OK(ucp_ep_rkey_unpack(ep, theirs, &put.rkey));
	peer_in = put.mine;
}

int main(int argc, char **argv)
{
	char c = 0;

	if (argc < 4)
		peer_die("usage: ucx am|tag|put METRIC SIZE...");
	mode = !strcmp(argv[1], "am") ? AM : !strcmp(argv[1], "tag") ? TAG : PUT;
	rank = peer_fork();
	peer_out = peer_alloc(PEER_MAX, MAP_PRIVATE);
	peer_in = peer_alloc(PEER_MAX, MAP_PRIVATE);
	set_up();
	if (mode == PUT)
		share_memory();
	measure(rank, argv[2], argv + 3);
	peer_exchange(rank, &c, &c, 1);		/* wait for the other rank */
	return peer_join(rank);
}

#endif
