// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Refused hints and arguments, and reports of failed operations. */
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>

#include "selftests/ofi/link.h"

#define TAG	5u

/* ---- hints and addresses without an endpoint ---- */

static int info_for(void (*change)(struct fi_info *h))
{
	static const struct link_config usual;
	struct fi_info *hints = link_hints(&usual), *info = NULL;
	int ret;

	link_environment();
	change(hints);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (!ret)
		fi_freeinfo(info);
	return ret;
}

static void as_it_is(struct fi_info *h) { (void)h; }
static void streams(struct fi_info *h) { h->ep_attr->type = FI_EP_MSG; }
static void many_places(struct fi_info *h) { h->tx_attr->rma_iov_limit = 100; }
static void fences(struct fi_info *h) { h->caps |= FI_FENCE; }
static void collectives(struct fi_info *h) { h->caps |= FI_COLLECTIVE; }
static void ip(struct fi_info *h) { h->addr_format = FI_SOCKADDR_IN; }
static void long_inject(struct fi_info *h) { h->tx_attr->inject_size = 1 << 20; }
static void many_pieces(struct fi_info *h) { h->tx_attr->iov_limit = 1000; }
static void read_order(struct fi_info *h) { h->tx_attr->msg_order = FI_ORDER_RAR; }

static void many_requests(struct fi_info *h)
{
	h->caps |= FI_RMA;
	h->tx_attr->size = 4096;
}

static void other_domain(struct fi_info *h)
{
	h->domain_attr->name = strdup("nonesuch");
}

TEST(hints_that_cannot_be_met)
{
	static void (*const bad[])(struct fi_info *h) = {
		streams, many_places, fences, collectives, ip, long_inject,
		many_pieces, read_order, many_requests, other_domain,
	};

	CHECK_EQ(info_for(as_it_is), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(info_for(bad[i]), -FI_ENODATA);
	setenv("SCI_FABRIC", "nonesuch", 1);
	CHECK_EQ(info_for(as_it_is), -FI_ENODATA);
}

/* Sends and receives have no limit, so the sizes are at least those of the hints. */
TEST(sizes_of_hints_are_met)
{
	static const struct link_config usual;
	struct fi_info *hints = link_hints(&usual), *info;

	link_environment();
	hints->tx_attr->size = 4096;
	hints->rx_attr->size = 8192;
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	CHECK_EQ(info->tx_attr->size, 4096);
	CHECK_EQ(info->rx_attr->size, 8192);
	fi_freeinfo(info);
	hints->tx_attr->size = hints->rx_attr->size = 1;
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	CHECK_EQ(info->tx_attr->size, 512);
	CHECK_EQ(info->rx_attr->size, 1024);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

TEST(no_hints_at_all)
{
	struct fi_info *info;

	link_environment();
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info), 0);
	CHECK(!info->next);
	CHECK_EQ(info->caps & (FI_MSG | FI_TAGGED), FI_MSG | FI_TAGGED);
	CHECK_EQ(info->ep_attr->type, FI_EP_RDM);
	CHECK_EQ(info->src_addrlen, sizeof(struct sci_addr));
	fi_freeinfo(info);
	/* a node and a service name the destination */
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), "8", "17", 0, NULL, &info), 0);
	CHECK_EQ(info->dest_addrlen, sizeof(struct sci_addr));
	CHECK_EQ(((struct sci_addr *)info->dest_addr)->node, 8);
	CHECK_EQ(((struct sci_addr *)info->dest_addr)->id, 17);
	fi_freeinfo(info);
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), "host.example", "17", 0, NULL,
			    &info), -FI_ENODATA);
}

/* ---- addresses ---- */

TEST(addresses_have_numbers)
{
	struct link l = link_open(NULL, 8, NULL);
	struct sci_addr a[300], b = { 0 };
	size_t len = sizeof(b);
	fi_addr_t n[300];
	char text[64];

	for (uint32_t i = 0; i < 300; i++)
		a[i] = (struct sci_addr){ .node = 12, .id = i };
	/* link_open() has inserted number 0; id 0 is no endpoint */
	CHECK_EQ(fi_av_insert(l.av, a, 300, n, 0, NULL), 299);
	CHECK_EQ(n[0], FI_ADDR_NOTAVAIL);
	for (uint32_t i = 1; i < 300; i++) {
		CHECK_EQ(n[i], i);
		CHECK_EQ(fi_av_lookup(l.av, n[i], &b, &len), 0);
		CHECK(!memcmp(&a[i], &b, sizeof(b)));
	}
	len = sizeof(text);
	CHECK(!strcmp(fi_av_straddr(l.av, &a[7], text, &len), "fi_sci://12:7"));
	CHECK_EQ(fi_av_remove(l.av, &n[7], 1, 0), 0);
	CHECK_EQ(fi_av_lookup(l.av, n[7], &b, &len), -FI_EINVAL);
	CHECK_EQ(fi_av_remove(l.av, &n[7], 1, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_insert(l.av, &a[7], 1, n, 0, NULL), 1);
	CHECK_EQ(n[0], 7);
	CHECK_EQ(fi_av_insertsvc(l.av, "12", "9", n, 0, NULL), 1);
	CHECK_EQ(fi_av_insertsvc(l.av, "12", "none", n, 0, NULL), -FI_EINVAL);
	/* a number without an address */
	CHECK_EQ(fi_tsend(l.ep, text, 4, NULL, 4711, TAG, NULL), -FI_EINVAL);
	len = sizeof(b);
	CHECK_EQ(fi_getname(&l.ep->fid, &b, &len), 0);
	CHECK_EQ(b.node, 4);
	CHECK_EQ(b.id, 1);
	len = 3;
	CHECK_EQ(fi_getname(&l.ep->fid, &b, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, sizeof(b));
	link_close(&l);
}

/* fi_av(3): tables give the lowest free number, so that @fi_addr may be NULL. */
TEST(removed_numbers_are_given_again_lowest_first)
{
	static const fi_addr_t gone[] = { 5, 2, 9, 3 };
	static const fi_addr_t want[] = { 2, 3, 5, 9, 20, 21 };
	struct link l = link_open(NULL, 8, NULL);
	struct sci_addr a = { .node = 12 }, b;
	size_t len = sizeof(b);

	/* link_open() has inserted number 0 */
	for (a.id = 1; a.id < 20; a.id++)
		CHECK_EQ(fi_av_insert(l.av, &a, 1, NULL, 0, NULL), 1);
	for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
		fi_addr_t n = gone[i];

		CHECK_EQ(fi_av_remove(l.av, &n, 1, 0), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		fi_addr_t n;

		a.id = 100 + (uint32_t)i;
		CHECK_EQ(fi_av_insert(l.av, &a, 1, &n, 0, NULL), 1);
		CHECK_EQ(n, want[i]);
		CHECK_EQ(fi_av_lookup(l.av, n, &b, &len), 0);
		CHECK_EQ(b.id, a.id);
	}
	link_close(&l);
}

/* fi_endpoint(3): FI_TRANSMIT or FI_RECV selects the direction of the flags. */
TEST(default_flags_of_an_endpoint_are_read_and_changed)
{
	struct link l = link_open(NULL, 4, NULL);
	uint64_t flags = FI_TRANSMIT;

	CHECK_EQ(fi_control(&l.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(flags, 0);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	CHECK_EQ(fi_control(&l.ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_RECV | FI_COMPLETION;
	CHECK_EQ(fi_control(&l.ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	CHECK_EQ(fi_control(&l.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(flags, FI_DELIVERY_COMPLETE);
	flags = FI_RECV;
	CHECK_EQ(fi_control(&l.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(flags, FI_COMPLETION);
	/* both directions, no direction, and a flag of the other direction are refused */
	flags = FI_TRANSMIT | FI_RECV;
	CHECK_EQ(fi_control(&l.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	flags = 0;
	CHECK_EQ(fi_control(&l.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_RECV | FI_DELIVERY_COMPLETE;
	CHECK_EQ(fi_control(&l.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	CHECK_EQ(fi_control(&l.ep->fid, FI_SETOPSFLAG, NULL), -FI_EINVAL);
	link_close(&l);
}

/* fi_sci(7): a program that asks for an alias gets an error. */
TEST(an_endpoint_has_no_aliases)
{
	struct link l = link_open(NULL, 4, NULL);
	struct fid_ep *alias = NULL;

	CHECK_EQ(fi_ep_alias(l.ep, &alias, FI_TRANSMIT), -FI_ENOSYS);
	CHECK(!alias);
	link_close(&l);
}

TEST(memory_is_registered_in_vain)
{
	struct link l = link_open(NULL, 8, NULL);
	struct fid_mr *mr;
	char buf[8];

	CHECK_EQ(fi_mr_reg(l.domain, buf, 8, FI_SEND | FI_RECV, 0, 0, 0, &mr,
			   NULL), 0);
	fi_tsend(l.ep, buf, 8, fi_mr_desc(mr), l.to, TAG, NULL);
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
}

/* ---- failed operations ---- */

static void sends_a_long_one(struct peer *self, void *arg)
{
	static char buf[1000];
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	LINK_SEND(&l, fi_tinject(l.ep, buf, sizeof(buf), l.to, TAG));
	link_meet(&l);
	link_close(&l);
}

TEST(a_buffer_that_is_too_short)
{
	struct peer *p = peer_spawn(8, sends_a_long_one, NULL);
	struct link l = link_open(p, 8, NULL);
	struct fi_cq_err_entry e;
	char buf[100];

	CHECK_EQ(fi_trecv(l.ep, buf, sizeof(buf), NULL, l.to, TAG, 0, buf), 0);
	e = link_error(&l);
	CHECK_EQ(e.err, FI_ETRUNC);
	CHECK(e.op_context == buf);
	CHECK_EQ(e.flags, FI_RECV | FI_TAGGED);
	CHECK_EQ(e.len, 100);
	CHECK_EQ(e.olen, 900);
	CHECK_EQ(e.tag, TAG);
	CHECK_EQ(fi_cntr_readerr(l.received), 1);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(receives_are_cancelled)
{
	struct link l = link_open(NULL, 8, NULL);
	char buf[3][8];

	for (int i = 0; i < 3; i++)
		CHECK_EQ(fi_trecv(l.ep, buf[i], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
				  buf[i]), 0);
	for (int i = 2; i >= 0; i--) {
		struct fi_cq_err_entry e;

		CHECK_EQ(fi_cancel(&l.ep->fid, buf[i]), 0);
		e = link_error(&l);
		CHECK_EQ(e.err, FI_ECANCELED);
		CHECK(e.op_context == buf[i]);
		CHECK_EQ(fi_cancel(&l.ep->fid, buf[i]), -FI_ENOENT);
	}
	link_close(&l);
}

static void waits_to_die(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	peer_send(self, "open");
	link_meet(&l);
	peer_send(self, "met");
	pause();
}

#define CLIENTS	(TEST_TSAN || TEST_ASAN ? 20u : 200u)
#define WARM_UP	(CLIENTS / 2)

static void comes_and_goes(struct peer *self, void *arg)
{
	char word[8] = "";

	(void)arg;
	for (unsigned int i = 0; i < CLIENTS + WARM_UP; i++) {
		struct link l = link_open(self, 4, NULL);

		CHECK_EQ(fi_tsend(l.ep, word, 8, NULL, l.to, TAG, NULL), 0);
		link_next(&l, NULL);
		link_close(&l);
		peer_expect(self, "next");
	}
}

/* Clients send to a server that has not inserted their addresses. */
TEST(a_server_forgets_clients_that_have_gone)
{
	struct peer *p = peer_spawn(8, comes_and_goes, NULL);
	struct link l = link_open(p, 12, NULL);
	size_t before = 0, more;
	char word[8];

	for (unsigned int i = 0; i < CLIENTS + WARM_UP; i++) {
		struct fi_cq_tagged_entry e;

		if (i == WARM_UP)
			before = mallinfo2().uordblks;
		CHECK_EQ(fi_trecv(l.ep, word, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL),
			 0);
		link_next(&l, NULL);
		peer_send(p, "next");
		/* the server polls on, and notices the client's end */
		for (unsigned int k = 0; k < 2000; k++)
			CHECK_EQ(fi_cq_read(l.cq, &e, 1), -FI_EAGAIN);
	}
	more = mallinfo2().uordblks;
	more = more > before ? more - before : 0;
	test_note("%u clients: %zu bytes more", CLIENTS, more);
	/* a client that is kept takes more than 512 bytes */
	if (!(TEST_ASAN || TEST_TSAN))
		CHECK(more < CLIENTS * 256);
	link_close(&l);
	peer_join(p);
}

static void check_ends(struct link *l, int err)
{
	static char buf[8];

	CHECK_EQ(fi_tsend(l->ep, buf, 8, NULL, l->to, TAG, buf), 0);
	CHECK_EQ(link_error(l).err, err);
	CHECK_EQ(fi_trecv(l->ep, buf, 8, NULL, l->to, TAG, 0, buf), 0);
	CHECK_EQ(link_error(l).err, err);
}

TEST(a_peer_that_dies)
{
	struct peer *p = peer_spawn(8, waits_to_die, NULL);
	struct link l;
	char buf[8];

	peer_expect(p, "open");
	/* an endpoint that exists is waited for without a limit */
	setenv("FI_SCI_CONNECT_MS", "50", 1);
	l = link_open(p, 8, NULL);
	link_meet(&l);
	peer_expect(p, "met");
	/* take the completions of link_meet() */
	link_next(&l, NULL);
	link_next(&l, NULL);
	CHECK_EQ(fi_trecv(l.ep, buf, 8, NULL, l.to, TAG, 0, buf), 0);
	peer_kill(p, SIGKILL);
	CHECK_EQ(link_error(&l).err, FI_ECONNRESET);
	check_ends(&l, FI_ECONNRESET);
	/* an insertion after the removal means a new endpoint, which does not exist */
	CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
	l.to = link_insert(&l, 8, 1);
	check_ends(&l, ETIME);
	link_close(&l);
}

TEST(a_peer_that_never_was)
{
	struct link l;

	setenv("FI_SCI_CONNECT_MS", "50", 1);
	l = link_open(NULL, 4, NULL);
	/* endpoint 2 of this node does not exist */
	l.to = link_insert(&l, 4, 2);
	check_ends(&l, ETIME);
	link_close(&l);
}

/* fi_cq(3): a read fails with -FI_EAVAIL while an error is queued. */
static void check_error_first(enum fi_threading threading)
{
	const struct link_config c = { .threading = threading };
	struct link l;
	struct fi_cq_tagged_entry e = { .len = 0 };
	struct fi_cq_err_entry err = { .err = 0 };
	char buf[8] = "";

	l = link_open(NULL, 4, &c);
	/* a send to the endpoint itself completes, and a receive fails behind it */
	CHECK_EQ(fi_tsend(l.ep, buf, 8, NULL, l.to, TAG, NULL), 0);
	WAIT_UNTIL(fi_cntr_read(l.sent) == 1, TEST_WAIT_MS);
	CHECK_EQ(fi_trecv(l.ep, buf, 8, NULL, FI_ADDR_UNSPEC, TAG + 1, 0, buf), 0);
	CHECK_EQ(fi_cancel(&l.ep->fid, buf), 0);
	WAIT_UNTIL(fi_cntr_readerr(l.received) == 1, TEST_WAIT_MS);
	CHECK_EQ(fi_cq_read(l.cq, &e, 1), -FI_EAVAIL);
	CHECK_EQ(fi_cq_readfrom(l.cq, &e, 1, NULL), -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(l.cq, &err, 0), 1);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK_EQ(fi_cq_read(l.cq, &e, 1), 1);
	CHECK_EQ(e.flags, FI_SEND | FI_TAGGED);
	link_close(&l);
}

TEST(a_queued_error_is_read_before_completions)
{
	check_error_first(FI_THREAD_SAFE);
}

TEST(a_queued_error_is_read_before_completions_without_locks)
{
	check_error_first(FI_THREAD_DOMAIN);
}

/*
 * libfabric unloads its providers when a program ends, while threads of open
 * endpoints still run: dlclose() must not unload this provider.
 */
TEST(it_stays_where_it_is)
{
	char path[PATH_MAX];
	void *library, *entry;
	Dl_info info;

	link_environment();
	CHECK((size_t)snprintf(path, sizeof(path), "%s/libsci-fi.so",
			       getenv("FI_PROVIDER_PATH")) < sizeof(path));
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	entry = dlsym(library, "fi_prov_ini");
	CHECK(entry);
	CHECK_EQ(dlclose(library), 0);
	CHECK(dladdr(entry, &info));
}
