/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of the provider, through libfabric
 *
 *	static void echo(struct peer *proc, void *arg)
 *	{
 *		struct link l = link_open(proc, 4, NULL);
 *		...
 *		link_close(&l);
 *	}
 *
 * Each of two nodes has endpoint 1. The first message connects them.
 */
#ifndef SELFTESTS_OFI_LINK_H
#define SELFTESTS_OFI_LINK_H

#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <sci/msg.h>

#include "selftests/harness.h"

#define LINK_ID		"1"

/* How the objects of a link are opened; 0 is the default. */
struct link_config {
	enum fi_threading threading;
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	uint64_t bind;			/* more flags of the queue's binding */
	bool two;			/* sends have a queue of their own */
	uint64_t caps;			/* FI_RMA_EVENT: @served counts requests of the peer */
	int mr_mode;
	enum fi_progress progress;
};

struct link {
	struct peer *proc;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cq *tx_cq;		/* NULL: @cq */
	struct fid_cntr *sent, *received;
	struct fid_cntr *asked, *served; /* one-sided operations; @served may be NULL */
	struct fid_ep *ep;
	fi_addr_t to;
};

/* The provider is in the build folder, which contains the tests' folder. */
static inline void link_environment(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	CHECK(n > 0);
	path[n] = 0;
	for (int i = 0; i < 3; i++)
		dirname(path);
	setenv("FI_PROVIDER_PATH", path, 1);
	setenv("FI_PROVIDER", "sci", 1);
}

static inline struct fi_info *link_hints(const struct link_config *c)
{
	struct fi_info *h = fi_allocinfo();

	CHECK(h);
	h->caps = c->caps ? c->caps :
			    FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE |
				    FI_MULTI_RECV;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->threading = c->threading;
	h->domain_attr->mr_mode = c->mr_mode;
	h->domain_attr->data_progress = c->progress;
	h->mode = FI_CONTEXT;
	h->fabric_attr->prov_name = strdup("sci");
	return h;
}

static inline void link_objects(struct link *l, const struct link_config *c)
{
	struct fi_cq_attr cq = {
		.format = c->format ? c->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = c->wait,
	};
	struct fi_cntr_attr cntr = {
		.events = FI_CNTR_EVENTS_COMP, .wait_obj = c->wait,
	};
	struct fi_av_attr av = { .type = FI_AV_MAP };

	CHECK_EQ(fi_fabric(l->info->fabric_attr, &l->fabric, NULL), 0);
	CHECK_EQ(fi_domain(l->fabric, l->info, &l->domain, NULL), 0);
	CHECK_EQ(fi_endpoint(l->domain, l->info, &l->ep, NULL), 0);
	CHECK_EQ(fi_av_open(l->domain, &av, &l->av, NULL), 0);
	CHECK_EQ(fi_cq_open(l->domain, &cq, &l->cq, NULL), 0);
	CHECK_EQ(fi_cntr_open(l->domain, &cntr, &l->sent, NULL), 0);
	CHECK_EQ(fi_cntr_open(l->domain, &cntr, &l->received, NULL), 0);
	CHECK_EQ(fi_ep_bind(l->ep, &l->av->fid, 0), 0);
	if (c->two)
		CHECK_EQ(fi_cq_open(l->domain, &cq, &l->tx_cq, NULL), 0);
	if (c->two)
		CHECK_EQ(fi_ep_bind(l->ep, &l->tx_cq->fid, FI_SEND | c->bind), 0);
	CHECK_EQ(fi_ep_bind(l->ep, &l->cq->fid,
			    FI_RECV | (c->two ? 0 : FI_SEND) | c->bind), 0);
	CHECK_EQ(fi_ep_bind(l->ep, &l->sent->fid, FI_SEND), 0);
	CHECK_EQ(fi_ep_bind(l->ep, &l->received->fid, FI_RECV), 0);
	CHECK_EQ(fi_cntr_open(l->domain, &cntr, &l->asked, NULL), 0);
	CHECK_EQ(fi_ep_bind(l->ep, &l->asked->fid, FI_READ | FI_WRITE), 0);
	if (c->caps & FI_RMA_EVENT) {
		CHECK_EQ(fi_cntr_open(l->domain, &cntr, &l->served, NULL), 0);
		CHECK_EQ(fi_ep_bind(l->ep, &l->served->fid,
				    FI_REMOTE_READ | FI_REMOTE_WRITE), 0);
	}
	CHECK_EQ(fi_enable(l->ep), 0);
}

static inline fi_addr_t link_insert(struct link *l, uint32_t node, uint32_t id)
{
	struct sci_addr addr = { node, id };
	fi_addr_t n = FI_ADDR_UNSPEC;

	CHECK_EQ(fi_av_insert(l->av, &addr, 1, &n, 0, NULL), 1);
	return n;
}

static inline struct link link_open(struct peer *proc, unsigned int node,
				    const struct link_config *config)
{
	static const struct link_config usual;
	const struct link_config *c = config ? config : &usual;
	struct fi_info *hints = link_hints(c);
	struct link l = { .proc = proc };

	link_environment();
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, LINK_ID, FI_SOURCE, hints,
			    &l.info), 0);
	CHECK(!strcmp(l.info->fabric_attr->prov_name, "sci"));
	fi_freeinfo(hints);
	link_objects(&l, c);
	l.to = link_insert(&l, node, 1);
	return l;
}

static inline void link_close(struct link *l)
{
	/* objects in use cannot be closed */
	CHECK_EQ(fi_close(&l->cq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&l->av->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&l->domain->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&l->fabric->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&l->ep->fid), 0);
	CHECK_EQ(fi_close(&l->sent->fid), 0);
	CHECK_EQ(fi_close(&l->received->fid), 0);
	CHECK_EQ(fi_close(&l->asked->fid), 0);
	if (l->served)
		CHECK_EQ(fi_close(&l->served->fid), 0);
	CHECK_EQ(fi_close(&l->cq->fid), 0);
	if (l->tx_cq)
		CHECK_EQ(fi_close(&l->tx_cq->fid), 0);
	CHECK_EQ(fi_close(&l->av->fid), 0);
	CHECK_EQ(fi_close(&l->domain->fid), 0);
	CHECK_EQ(fi_close(&l->fabric->fid), 0);
	fi_freeinfo(l->info);
}

/* Send by @call as soon as there is room. Completions stay in their queue. */
#define LINK_SEND(l, call)						\
	do {								\
		ssize_t ret_;						\
									\
		WAIT_UNTIL((ret_ = (call)) != -FI_EAGAIN ||		\
			   (fi_cntr_read((l)->sent), false),		\
			   TEST_WAIT_MS);				\
		CHECK_EQ(ret_, 0);					\
	} while (0)

/* Return the next completion, which must not be an error. */
static inline struct fi_cq_tagged_entry link_next(struct link *l, fi_addr_t *src)
{
	struct fi_cq_tagged_entry e = { .len = 0 };
	ssize_t ret;

	WAIT_UNTIL((ret = fi_cq_readfrom(l->cq, &e, 1, src)) != -FI_EAGAIN,
		   TEST_WAIT_MS);
	CHECK_EQ(ret, 1);
	return e;
}

/* Return the next error, before which there must be no completion. */
static inline struct fi_cq_err_entry link_error(struct link *l)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { .err = 0 };
	ssize_t ret;

	WAIT_UNTIL((ret = fi_cq_read(l->cq, &e, 1)) != -FI_EAGAIN, TEST_WAIT_MS);
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(l->cq, &err, 0), 1);
	return err;
}

/* ---- a meeting, so that neither side closes too early ---- */

#define MEET_TAG	UINT64_MAX

static inline void link_meet(struct link *l)
{
	uint64_t sent = fi_cntr_read(l->sent), came = fi_cntr_read(l->received);
	static char word;

	CHECK_EQ(fi_trecv(l->ep, &word, 1, NULL, l->to, MEET_TAG, 0, &word), 0);
	CHECK_EQ(fi_tsend(l->ep, &word, 1, NULL, l->to, MEET_TAG, &word), 0);
	WAIT_UNTIL(fi_cntr_read(l->sent) > sent &&
		   fi_cntr_read(l->received) > came, TEST_WAIT_MS);
}

#endif
