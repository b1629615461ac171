// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* fi_getinfo(): the capabilities, limited by the hints. */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- addresses as text: node number, endpoint id ---- */

static bool number_parse(const char *text, unsigned long most, uint32_t *n)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || end == text || *end || v > most)
		return false;
	*n = (uint32_t)v;
	return true;
}

int sfi_address(const char *node, const char *service, struct sci_addr *addr)
{
	*addr = (struct sci_addr){ 0 };
	if (node && !number_parse(node, UINT32_MAX, &addr->node))
		return -FI_EINVAL;
	if (service && !number_parse(service, SCI_EP_ID_MAX, &addr->id))
		return -FI_EINVAL;
	return 0;
}

/* ---- hints ---- */

static uint64_t caps_for(const struct fi_info *h)
{
	uint64_t caps = h && h->caps ? h->caps : SFI_CAPS;

	/* a hint without a direction means both directions */
	if (caps & SFI_MESSAGES && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if (caps & SFI_ONE_SIDED && !(caps & (SFI_ASKS | SFI_SERVES)))
		caps |= SFI_ASKS | SFI_SERVES;
	if (!(caps & (FI_LOCAL_COMM | FI_REMOTE_COMM)))
		caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
	return caps;
}

static bool bits_within(uint64_t wanted, uint64_t there)
{
	return !(wanted & ~there);
}

static bool ep_fits(const struct fi_ep_attr *a)
{
	return (a->type == FI_EP_UNSPEC || a->type == FI_EP_RDM) &&
	       (a->protocol == FI_PROTO_UNSPEC || a->protocol == SFI_PROTOCOL) &&
	       a->tx_ctx_cnt <= 1 && a->rx_ctx_cnt <= 1 && !a->auth_key_size &&
	       !a->max_order_raw_size && !a->max_order_war_size &&
	       !a->max_order_waw_size;
}

static bool domain_fits(const struct fi_domain_attr *a, const char *name)
{
	return (!a->name || !strcmp(a->name, name)) &&
	       a->cq_data_size <= sizeof(uint64_t) &&
	       a->max_ep_tx_ctx <= 1 && a->max_ep_rx_ctx <= 1 &&
	       !a->max_ep_stx_ctx && !a->max_ep_srx_ctx && !a->auth_key_size &&
	       bits_within(a->caps, SFI_CAPS);
}

/* Only one-sided calls have a limit: sends and receives may be posted while there is memory. */
static bool tx_fits(const struct fi_tx_attr *a, uint64_t caps)
{
	return bits_within(a->caps, SFI_CAPS) && bits_within(a->op_flags, SFI_TX_FLAGS) &&
	       bits_within(a->msg_order, FI_ORDER_SAS) &&
	       !a->comp_order &&
	       (a->size <= SFI_ASKING_MAX || !(caps & SFI_ASKS)) &&
	       a->inject_size <= SFI_INJECT_MAX && a->iov_limit <= SFI_IOV_MAX &&
	       a->rma_iov_limit <= SFI_RMA_IOV_MAX;
}

static bool rx_fits(const struct fi_rx_attr *a)
{
	return bits_within(a->caps, SFI_CAPS) && bits_within(a->op_flags, SFI_RX_FLAGS) &&
	       bits_within(a->msg_order, FI_ORDER_SAS) &&
	       !a->comp_order &&
	       !a->total_buffered_recv && a->iov_limit <= SFI_IOV_MAX;
}

static bool hints_fit(const struct fi_info *h, const char *domain)
{
	return bits_within(h->caps, SFI_CAPS) &&
	       (h->addr_format == FI_FORMAT_UNSPEC ||
		h->addr_format == SFI_ADDR_FORMAT) &&
	       (!h->ep_attr || ep_fits(h->ep_attr)) &&
	       (!h->domain_attr || domain_fits(h->domain_attr, domain)) &&
	       (!h->tx_attr || tx_fits(h->tx_attr, caps_for(h))) &&
	       (!h->rx_attr || rx_fits(h->rx_attr)) &&
	       (!h->fabric_attr || !h->fabric_attr->name ||
		!strcmp(h->fabric_attr->name, SFI_NAME)) &&
	       (!h->fabric_attr || !h->fabric_attr->prov_name ||
		!strcmp(h->fabric_attr->prov_name, SFI_NAME));
}

/* ---- capabilities ---- */

/*
 * Find the fabric and the node of new endpoints by opening an endpoint. This is reliable, and cheap
 * enough for each call.
 */
static int fabric_find(struct sci_addr *self, char *name, size_t size)
{
	struct sci_ep *ep;
	int ret = sci_ep_open(&ep, 0, 0);

	if (ret)
		return -FI_ENODATA;
	sci_ep_addr(ep, self);
	self->id = 0;
	strncpy(name, sci_ep_fabric(ep), size - 1);
	name[size - 1] = 0;
	sci_ep_close(ep);
	return 0;
}

static size_t size_for(size_t wanted, size_t least)
{
	return wanted > least ? wanted : least;
}

static void attrs_fill(struct fi_info *i, const struct fi_info *h)
{
	*i->tx_attr = (struct fi_tx_attr){
		.caps = i->caps & SFI_TX_CAPS,
		.op_flags = h && h->tx_attr ? h->tx_attr->op_flags : 0,
		.msg_order = FI_ORDER_SAS,
		.inject_size = SFI_INJECT_MAX,
		.size = size_for(h && h->tx_attr ? h->tx_attr->size : 0, SFI_ASKING_MAX),
		.iov_limit = SFI_IOV_MAX, .rma_iov_limit = SFI_RMA_IOV_MAX,
	};
	*i->rx_attr = (struct fi_rx_attr){
		.caps = i->caps & SFI_RX_CAPS,
		.op_flags = h && h->rx_attr ? h->rx_attr->op_flags : 0,
		.msg_order = FI_ORDER_SAS,
		.size = size_for(h && h->rx_attr ? h->rx_attr->size : 0, 1024),
		.iov_limit = SFI_IOV_MAX,
	};
	*i->ep_attr = (struct fi_ep_attr){
		.type = FI_EP_RDM, .protocol = SFI_PROTOCOL,
		.protocol_version = 1, .max_msg_size = SIZE_MAX >> 1,
		.mem_tag_format = UINT64_MAX, .tx_ctx_cnt = 1,
		.rx_ctx_cnt = 1,
	};
}

/*
 * Return the MR mode. This provider needs no mode: the program may choose keys and use offsets. But
 * a program with FI_MR_PROV_KEY gets the provider's keys, and a program with FI_MR_BASIC gets
 * FI_MR_BASIC.
 */
static int mr_mode_for(int wanted, uint32_t version)
{
	if (wanted & SFI_MR_BASIC)
		return SFI_MR_BASIC;
	/* before version 1.5 there were no mode bits, and 0 was FI_MR_UNSPEC */
	if (wanted & SFI_MR_SCALABLE || FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return SFI_MR_SCALABLE;
	return wanted & FI_MR_PROV_KEY;
}

/* Return the progress mode. FI_PROGRESS_AUTO takes CPU time, so the hints must ask for it. */
static enum fi_progress progress_for(const struct fi_domain_attr *h)
{
	return h->control_progress == FI_PROGRESS_AUTO ||
	       h->data_progress == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO :
						      FI_PROGRESS_MANUAL;
}

static void domain_fill(struct fi_domain_attr *a, const struct fi_domain_attr *h,
			uint32_t version)
{
	char *name = a->name;

	*a = (struct fi_domain_attr){
		.name = name, .threading = FI_THREAD_SAFE,
		.control_progress = FI_PROGRESS_MANUAL,
		.data_progress = FI_PROGRESS_MANUAL,
		.resource_mgmt = FI_RM_ENABLED, .av_type = FI_AV_UNSPEC,
		.cq_data_size = sizeof(uint64_t), .cq_cnt = 65536,
		.ep_cnt = 65536, .tx_ctx_cnt = 65536, .rx_ctx_cnt = 65536,
		.max_ep_tx_ctx = 1, .max_ep_rx_ctx = 1, .cntr_cnt = 65536,
		.mr_key_size = sizeof(uint64_t), .mr_iov_limit = 1,
		.mr_cnt = SIZE_MAX, .caps = FI_LOCAL_COMM | FI_REMOTE_COMM,
	};
	if (!h)
		return;
	a->mr_mode = mr_mode_for(h->mr_mode, version);
	a->control_progress = a->data_progress = progress_for(h);
	a->av_type = h->av_type;
	if (h->threading != FI_THREAD_UNSPEC)
		a->threading = h->threading;
}

static void *mem_dup(const void *what, size_t size)
{
	void *p = malloc(size);

	return p ? memcpy(p, what, size) : NULL;
}

static int addresses_fill(struct fi_info *i, const struct fi_info *h,
			  const struct sci_addr *self, const char *node,
			  const char *service, uint64_t flags)
{
	struct sci_addr there, here = *self;
	bool has_dest = (node || service) && !(flags & FI_SOURCE);
	int ret = sfi_address(node, service, &there);

	if (ret)
		return -FI_ENODATA;
	if (flags & FI_SOURCE && (node || service)) {
		if (node && there.node != here.node)
			return -FI_ENODATA;
		here.id = there.id;
	} else if (h && h->src_addr && h->src_addrlen == sizeof(here)) {
		memcpy(&here, h->src_addr, sizeof(here));
	}
	if (!has_dest && h && h->dest_addr && h->dest_addrlen == sizeof(there)) {
		memcpy(&there, h->dest_addr, sizeof(there));
		has_dest = true;
	} else if (has_dest && !node) {
		there.node = self->node;
	}
	i->addr_format = SFI_ADDR_FORMAT;
	i->src_addr = mem_dup(&here, sizeof(here));
	i->src_addrlen = sizeof(here);
	if (!i->src_addr)
		return -FI_ENOMEM;
	if (!has_dest)
		return 0;
	i->dest_addr = mem_dup(&there, sizeof(there));
	i->dest_addrlen = sizeof(there);
	return i->dest_addr ? 0 : -FI_ENOMEM;
}

static int names_fill(struct fi_info *i, const char *domain)
{
	i->fabric_attr->name = strdup(SFI_NAME);
	i->fabric_attr->prov_version = SFI_VERSION;
	i->domain_attr->name = strdup(domain);
	/* libfabric fills in prov_name */
	return i->fabric_attr->name && i->domain_attr->name ? 0 : -FI_ENOMEM;
}

int sfi_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	struct sci_addr self;
	struct fi_info *i;
	char domain[32];
	int ret = fabric_find(&self, domain, sizeof(domain));

	if (ret)
		return ret;
	if (hints && !hints_fit(hints, domain))
		return -FI_ENODATA;
	i = fi_allocinfo();
	if (!i)
		return -FI_ENOMEM;
	i->caps = caps_for(hints);
	attrs_fill(i, hints);
	ret = names_fill(i, domain);
	if (!ret)
		ret = addresses_fill(i, hints, &self, node, service, flags);
	if (ret) {
		fi_freeinfo(i);
		return ret;
	}
	domain_fill(i->domain_attr, hints ? hints->domain_attr : NULL,
		    version);
	i->fabric_attr->api_version = version;
	*info = i;
	return 0;
}

static void provider_cleanup(void)
{
}

struct fi_provider sfi_provider = {
	.version = SFI_VERSION,
	.fi_version = SFI_API,
	.name = SFI_NAME,
	.getinfo = sfi_getinfo,
	.fabric = sfi_fabric_open,
	.cleanup = provider_cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	fi_param_define(&sfi_provider, "connect_ms", FI_PARAM_INT,
			"Milliseconds after which a peer that is not there is given up (5000)");
	fi_param_define(&sfi_provider, "direct", FI_PARAM_BOOL,
			"Export regions of whole pages, which peers then access themselves "
			"(no on shm, sci_pool and sci_ntb, else yes)");
	return &sfi_provider;
}
