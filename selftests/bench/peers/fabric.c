// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure a provider of libfabric: PEER_PROVIDER, by default the one for shared
 * memory. FI_* in the environment are its settings.
 *
 * usage: fabric msg|tagged METRIC SIZE...
 *
 * Messages up to the provider's inject size are injected.
 */
#if __has_include(<rdma/fabric.h>)	/* not installed for lint */
#define _GNU_SOURCE

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "measure.h"

#define WINDOW	64
#define BATCH	16			/* completions per read */

static int rank;
static bool tagged;
static struct fid_ep *ep;
static struct fid_cq *out_queue, *in_queue;
static fi_addr_t other;
static size_t inject_max;
static int out_way, in_way;
static struct fi_context contexts[2];

#define OK(call)							\
	do {								\
		int ret_ = (int)(call);					\
		if (ret_)						\
			peer_die("%s: %s", #call, fi_strerror(-ret_));	\
	} while (0)

static int reap(struct fid_cq *queue)
{
	struct fi_cq_tagged_entry entry[BATCH];
	ssize_t n = fi_cq_read(queue, entry, BATCH);

	if (n == -FI_EAGAIN)
		return 0;
	peer_must(n > 0);
	return (int)n;
}

static void progress(void)
{
	out_way -= reap(out_queue);
	in_way -= reap(in_queue);
}

static ssize_t try_send(size_t n)
{
	if (n <= inject_max)
		return tagged ? fi_tinject(ep, peer_out, n, other, 1) :
				fi_inject(ep, peer_out, n, other);
	return tagged ?
		fi_tsend(ep, peer_out, n, NULL, other, 1, &contexts[0]) :
		fi_send(ep, peer_out, n, NULL, other, &contexts[0]);
}

static void start_send(size_t n)
{
	ssize_t ret;

	while ((ret = try_send(n)) == -FI_EAGAIN)
		progress();
	OK(ret);
	out_way += n > inject_max;
}

static void start_recv(size_t n)
{
	ssize_t ret;

	do {
		ret = tagged ?
			fi_trecv(ep, peer_in, n, NULL, other, 1, 0, &contexts[1]) :
			fi_recv(ep, peer_in, n, NULL, other, &contexts[1]);
		if (ret == -FI_EAGAIN)
			progress();
	} while (ret == -FI_EAGAIN);
	OK(ret);
	in_way++;
}

/* Wait until at most @out sends and @in receives are under way. */
static void wait_until(int out, int in)
{
	while (out_way > out)
		out_way -= reap(out_queue);
	while (in_way > in)
		in_way -= reap(in_queue);
}

static void peer_send(size_t n)
{
	start_send(n);
	wait_until(0, PEER_RANKS);
}

static void peer_recv(size_t n)
{
	start_recv(n);
	wait_until(0, 0);
}

static void peer_stream_out(size_t n, uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++) {
		start_send(n);
		wait_until(WINDOW - 1, PEER_RANKS);
	}
	wait_until(0, PEER_RANKS);
}

static void peer_stream_in(size_t n, uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++) {
		start_recv(n);
		wait_until(0, WINDOW - 1);
	}
	wait_until(0, 0);
}

static void set_up(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	char mine[256] = "", theirs[256];
	size_t n = sizeof(mine);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	const char *provider = getenv("PEER_PROVIDER");

	peer_must(hints);
	hints->fabric_attr->prov_name = strdup(provider ? provider : "shm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = tagged ? FI_TAGGED : FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_HMEM;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info));
	inject_max = info->tx_attr->inject_size;
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_cq_open(domain, &cq, &out_queue, NULL));
	OK(fi_cq_open(domain, &cq, &in_queue, NULL));
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_ep_bind(ep, &out_queue->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &in_queue->fid, FI_RECV));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_enable(ep));
	OK(fi_getname(&ep->fid, mine, &n));
	peer_exchange(rank, mine, theirs, sizeof(mine));
	peer_must(fi_av_insert(av, theirs, 1, &other, 0, NULL) == 1);
}

int main(int argc, char **argv)
{
	char c = 0;

	if (argc < 4)
		peer_die("usage: fabric msg|tagged METRIC SIZE...");
	tagged = !strcmp(argv[1], "tagged");
	rank = peer_fork();
	peer_out = peer_alloc(PEER_MAX, MAP_PRIVATE);
	peer_in = peer_alloc(PEER_MAX, MAP_PRIVATE);
	set_up();
	measure(rank, argv[2], argv + 3);
	peer_exchange(rank, &c, &c, 1);		/* wait for the other rank */
	OK(fi_close(&ep->fid));
	return peer_join(rank);
}

#endif
