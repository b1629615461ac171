// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Queries, names of nodes, strings, and functions that are not implemented. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	8192

/* ---- strings ---- */

static const unsigned int strings[] = {
	SCI_Q_VENDORID, SCI_Q_API, SCI_Q_SISCI_DRIVER_VERSION
};

TEST(strings_of_the_library)
{
	test_open();
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		char text[80];
		sci_query_string_t q = { text, sizeof(text) };

		memset(text, 0x7f, sizeof(text));
		CHECK_OK(SCIQuery(strings[i], &q, 0, &err));
		CHECK(memchr(text, 0, sizeof(text)) != NULL);
		CHECK(strlen(text) > 0);
		test_note("%u: %s", strings[i], text);
	}
}

TEST(strings_that_need_more_room)
{
	test_open();
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		char text[80], full[80];
		sci_query_string_t q = { full, sizeof(full) };
		size_t len;

		CHECK_OK(SCIQuery(strings[i], &q, 0, &err));
		len = strlen(full);
		q.str = text;
		for (q.length = 0; q.length <= len; q.length++) {
			memset(text, 0x7f, sizeof(text));
			CHECK_ERR(SCIQuery(strings[i], &q, 0, &err),
				  SCI_ERR_NOSPC);
			for (size_t k = q.length; k < sizeof(text); k++)
				CHECK_EQ(text[k], 0x7f);
		}
		CHECK_OK(SCIQuery(strings[i], &q, 0, &err));
		CHECK(!strcmp(text, full));
		CHECK_EQ(text[len + 1], 0x7f);
		q.str = NULL;
		CHECK_ERR(SCIQuery(strings[i], &q, 0, &err),
			  SCI_ERR_ILLEGAL_PARAMETER);
	}
}

TEST(every_code_has_a_string)
{
	const char *const other = SCIGetErrorString((sci_error_t)12345);
	static const int codes[] = {
		SCI_ERR_OK, SCI_ERR_BUSY, SCI_ERR_FLAG_NOT_IMPLEMENTED,
		SCI_ERR_ILLEGAL_FLAG, SCI_ERR_NOSPC, SCI_ERR_API_NOSPC,
		SCI_ERR_HW_NOSPC, SCI_ERR_NOT_IMPLEMENTED,
		SCI_ERR_ILLEGAL_ADAPTERNO, SCI_ERR_NO_SUCH_ADAPTERNO,
		SCI_ERR_TIMEOUT, SCI_ERR_OUT_OF_RANGE, SCI_ERR_NO_SUCH_SEGMENT,
		SCI_ERR_ILLEGAL_NODEID, SCI_ERR_CONNECTION_REFUSED,
		SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_SIZE_ALIGNMENT,
		SCI_ERR_OFFSET_ALIGNMENT, SCI_ERR_ILLEGAL_PARAMETER,
		SCI_ERR_MAX_ENTRIES, SCI_ERR_SEGMENT_NOT_PREPARED,
		SCI_ERR_ILLEGAL_ADDRESS, SCI_ERR_ILLEGAL_OPERATION,
		SCI_ERR_ILLEGAL_QUERY, SCI_ERR_SEGMENTID_USED, SCI_ERR_SYSTEM,
		SCI_ERR_CANCELLED, SCI_ERR_NOT_CONNECTED,
		SCI_ERR_NOT_AVAILABLE, SCI_ERR_INCONSISTENT_VERSIONS,
		SCI_ERR_COND_INT_RACE_PROBLEM, SCI_ERR_OVERFLOW,
		SCI_ERR_NOT_INITIALIZED, SCI_ERR_ACCESS, SCI_ERR_NOT_SUPPORTED,
		SCI_ERR_DEPRECATED, SCI_ERR_EWOULD_BLOCK,
		SCI_ERR_SEMAPHORE_COUNT_EXCEEDED, SCI_ERR_IRQL_ILLEGAL,
		SCI_ERR_REMOTE_BUSY, SCI_ERR_LOCAL_BUSY, SCI_ERR_ALL_BUSY,
		SCI_ERR_NO_SUCH_INTNO, SCI_ERR_INTNO_USED,
		SCI_ERR_NO_SUCH_NODEID, SCI_ERR_NODE_NOT_RESPONDING,
		SCI_ERR_NO_REMOTE_LINK_ACCESS, SCI_ERR_NO_LINK_ACCESS,
		SCI_ERR_TRANSFER_FAILED
	};

	CHECK(other != NULL);
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		const char *text = SCIGetErrorString((sci_error_t)codes[i]);

		CHECK(text != NULL && *text && strcmp(text, other));
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(text, SCIGetErrorString(
						(sci_error_t)codes[k])));
	}
	CHECK(SCIGetErrorString((sci_error_t)-1) != NULL);
}

TEST(adapter_types_have_strings)
{
	for (int i = -1; i < 20; i++) {
		CHECK(SCIGetAdapterTypeString((dis_virt_adapter_t)i) != NULL);
		CHECK(SCIGetAdapterFamilyString((dis_virt_adapter_t)i) !=
		      NULL);
	}
	CHECK(strcmp(SCIGetAdapterTypeString(DIS_ADAPTER_SHM),
		     SCIGetAdapterTypeString(DIS_ADAPTER_PCI_SCI)));
}

/* ---- adapters ---- */

struct answer {
	unsigned int value;
	unsigned int canary;
};

static sci_error_t ask_adapter(unsigned int subcommand, unsigned int *value)
{
	struct answer a = { 0xeeeeeeee, 0xcccccccc };
	sci_query_adapter_t q = {
		.localAdapterNo = 0, .portNo = 0xdddddddd,	/* not set */
		.subcommand = subcommand, .data = &a.value,
	};
	sci_error_t e = ERR_OF(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err));

	CHECK_EQ(a.canary, 0xcccccccc);
	if (e)
		CHECK_EQ(a.value, 0xeeeeeeee);
	*value = a.value;
	return e;
}

static unsigned int adapter(unsigned int subcommand)
{
	unsigned int value;

	CHECK_EQ(ask_adapter(subcommand, &value), SCI_ERR_OK);
	return value;
}

TEST(every_adapter_query_answers)
{
	unsigned int value;

	test_open();
	for (unsigned int i = SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT;
	     i <= SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO; i++) {
		sci_error_t e = ask_adapter(i, &value);

		CHECK(e == SCI_ERR_OK || e == SCI_ERR_NOT_SUPPORTED);
		test_note("%u: %s %u", i, SCIGetErrorString(e), value);
	}
}

/* Programs end if one of these queries fails. */
TEST(adapter_queries_that_programs_need)
{
	test_open();
	CHECK(adapter(SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT) > 0);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT),
		 adapter(SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT));
	CHECK(adapter(SCI_Q_ADAPTER_DMA_MTU) >= 65536);
	adapter(SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE);
	adapter(SCI_Q_ADAPTER_SUGGESTED_MIN_BLOCK_SIZE);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_NODEID), 4);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_CONFIGURED), 1);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_LINK_OPERATIONAL), 1);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK), 1);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_NUMBER), 1);
	CHECK(adapter(SCI_Q_ADAPTER_CONNECTED_TO_SWITCH) <= 1);
	/* programs want a transaction of 128 bytes to fit into a buffer */
	CHECK_EQ(adapter(SCI_Q_ADAPTER_NUMBER_OF_STREAMS), 16);
	CHECK_EQ(adapter(SCI_Q_ADAPTER_STREAM_BUFFER_SIZE), 128);
	adapter(SCI_Q_ADAPTER_SERIAL_NUMBER);
}

TEST(card_type)
{
	test_needs_shm();
	test_open();
	CHECK_EQ(adapter(SCI_Q_ADAPTER_CARD_TYPE), DIS_ADAPTER_SHM);
}

TEST(queries_that_are_illegal)
{
	static const unsigned int commands[] = { 0, 11, 99, 0xffffffff };
	unsigned int value;
	sci_query_adapter_t q = { .data = &value };

	test_open();
	for (unsigned int i = 0; i <= 15; i++)
		CHECK_EQ(ask_adapter(i, &value), SCI_ERR_ILLEGAL_QUERY);
	CHECK_EQ(ask_adapter(100, &value), SCI_ERR_ILLEGAL_QUERY);
	CHECK_EQ(ask_adapter(SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO + 1, &value),
		 SCI_ERR_ILLEGAL_QUERY);
	CHECK_EQ(ask_adapter(0xffffffff, &value), SCI_ERR_ILLEGAL_QUERY);
	CHECK_EQ(ask_adapter(SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE, &value),
		 SCI_ERR_ILLEGAL_QUERY);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		CHECK_ERR(SCIQuery(commands[i], &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
	CHECK(ERR_OF(SCIQuery(SCI_Q_DEVICE, &q, 0, &err)) != SCI_ERR_OK);
	CHECK_ERR(SCIQuery(SCI_Q_ADAPTER, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	q.subcommand = SCI_Q_ADAPTER_NODEID;
	CHECK_ERR(SCIQuery(SCI_Q_ADAPTER, &q, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	q.data = NULL;
	CHECK_ERR(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
}

TEST(system_queries)
{
	unsigned int value;
	sci_query_system_t q = { .data = &value };

	test_open();
	for (q.subcommand = SCI_Q_SYSTEM_HOSTBRIDGE;
	     q.subcommand <= SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE; q.subcommand++) {
		sci_error_t e = ERR_OF(SCIQuery(SCI_Q_SYSTEM, &q, 0, &err));

		CHECK(e == SCI_ERR_OK || e == SCI_ERR_NOT_SUPPORTED);
	}
	q.subcommand = SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE;
	CHECK_OK(SCIQuery(SCI_Q_SYSTEM, &q, 0, &err));
	CHECK(value >= 16 && value <= 1024 && !(value & (value - 1)));
	q.subcommand = SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED;
	CHECK_OK(SCIQuery(SCI_Q_SYSTEM, &q, 0, &err));
	CHECK(value <= 1);
	q.subcommand = 1;
	CHECK_ERR(SCIQuery(SCI_Q_SYSTEM, &q, 0, &err), SCI_ERR_ILLEGAL_QUERY);
}

/* ---- segments, maps, DMA ---- */

TEST(segment_queries)
{
	sci_desc_t sd = test_open();
	sci_query_local_segment_t l = { .segment = NULL };
	sci_query_remote_segment_t r = { .segment = NULL };

	test_needs_shm();
	l.subcommand = SCI_Q_LOCAL_SEGMENT_IOADDR;
	r.subcommand = SCI_Q_REMOTE_SEGMENT_IOADDR;
	CHECK_ERR(SCIQuery(SCI_Q_LOCAL_SEGMENT, &l, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIQuery(SCI_Q_REMOTE_SEGMENT, &r, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	l.segment = test_segment(sd, 1, SIZE, 0);
	r.segment = test_connect(sd, 4, 1);
	for (l.subcommand = SCI_Q_LOCAL_SEGMENT_IOADDR;
	     l.subcommand <= SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR;
	     l.subcommand++)
		CHECK_ERR(SCIQuery(SCI_Q_LOCAL_SEGMENT, &l, 0, &err),
			  SCI_ERR_NOT_SUPPORTED);
	CHECK_ERR(SCIQuery(SCI_Q_REMOTE_SEGMENT, &r, 0, &err),
		  SCI_ERR_NOT_SUPPORTED);
	CHECK_ERR(SCIQuery(SCI_Q_LOCAL_SEGMENT, &l, 0, &err),
		  SCI_ERR_ILLEGAL_QUERY);
}

static void eight(struct peer *self, void *arg)
{
	(void)arg;
	test_segment(test_open(), 1, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(map_queries)
{
	struct peer *p = peer_spawn(8, eight, NULL);
	sci_desc_t sd = test_open();
	unsigned int value;
	sci_query_map_t q = { .data = &value };

	peer_expect(p, "ready");
	test_map_remote(test_connect(sd, 8, 1), &q.map);
	for (q.subcommand = SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET;
	     q.subcommand <= SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET;
	     q.subcommand++) {
		value = 77;
		CHECK_OK(SCIQuery(SCI_Q_MAP, &q, 0, &err));
		CHECK(value <= 1);
	}
	q.subcommand = 3;
	CHECK_ERR(SCIQuery(SCI_Q_MAP, &q, 0, &err), SCI_ERR_ILLEGAL_QUERY);
	q.map = NULL;
	q.subcommand = SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET;
	CHECK_ERR(SCIQuery(SCI_Q_MAP, &q, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
}

/* A program asks about a map by the query for remote segments. */
TEST(the_wrong_structure_does_no_harm)
{
	sci_desc_t sd = test_open();
	unsigned int value = 0;
	sci_query_map_t q = {
		.subcommand = SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET, .data = &value
	};

	test_segment(sd, 1, SIZE, 0);
	test_map_remote(test_connect(sd, 4, 1), &q.map);
	CHECK(ERR_OF(SCIQuery(SCI_Q_REMOTE_SEGMENT, &q, 0, &err)) !=
	      SCI_ERR_OK);
}

TEST(dma_queries)
{
	static const unsigned int engines[] = {
		0, SCI_FLAG_DMA_ADAPTER, SCI_FLAG_DMA_GLOBAL,
		SCI_FLAG_DMA_SYSDMA
	};
	unsigned int available;
	sci_dma_capabilities_t cap;
	sci_query_dma_t q = { .localAdapterNo = 0 };

	test_open();
	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		q.subcommand = SCI_Q_DMA_AVAILABLE;
		q.data = &available;
		CHECK_OK(SCIQuery(SCI_Q_DMA, &q, engines[i], &err));
		CHECK_EQ(available, 1);
		q.subcommand = SCI_Q_DMA_CAPABILITIES;
		q.data = &cap;
		memset(&cap, 0xff, sizeof(cap));
		CHECK_OK(SCIQuery(SCI_Q_DMA, &q, engines[i], &err));
		CHECK(cap.num_channels > 0 && cap.num_channels < 1 << 20);
		CHECK(cap.max_transfer_size >= 1 << 20);
		CHECK_EQ(cap.max_vector_length, DIS_DMA_MAX_VECLEN);
		CHECK(cap.support_mem2io <= 1 && cap.support_io2mem <= 1 &&
		      cap.support_io2io <= 1);
		CHECK(cap.min_align_bytes >= 1 && cap.min_align_bytes <= 64);
		CHECK(cap.suggested_align_bytes >= cap.min_align_bytes);
	}
	q.localAdapterNo = 1;
	CHECK_ERR(SCIQuery(SCI_Q_DMA, &q, 0, &err),
		  SCI_ERR_NO_SUCH_ADAPTERNO);
	q.localAdapterNo = 0;
	q.subcommand = 1;
	CHECK_ERR(SCIQuery(SCI_Q_DMA, &q, 0, &err), SCI_ERR_ILLEGAL_QUERY);
}

TEST(nothing_answers_before_initialize)
{
	char text[80];
	sci_query_string_t q = { text, sizeof(text) };
	unsigned int node = 77;

	CHECK_ERR(SCIQuery(SCI_Q_API, &q, 0, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIGetLocalNodeId(0, &node, 0, &err),
		  SCI_ERR_NOT_INITIALIZED);
	CHECK_EQ(node, 77);
	CHECK(SCIGetErrorString(SCI_ERR_OK) != NULL);
	test_open();
	CHECK_ERR(SCIGetLocalNodeId(0, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIGetLocalNodeId(0, &node, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
}

/* ---- names of nodes ---- */

static sci_error_t look_up(const char *name, dis_nodeId_list_t *list)
{
	dis_virt_adapter_t type;
	char copy[300];

	snprintf(copy, sizeof(copy), "%s", name);
	memset(list, 0xff, sizeof(*list));
	return ERR_OF(SCIGetNodeIdByAdapterName(copy, list, &type, 0, &err));
}

static void expect_nodes(const char *name, const unsigned int *ids)
{
	dis_nodeId_list_t list;
	size_t n = 0;

	if (look_up(name, &list))
		test_note("looking up \"%s\"", name);
	CHECK_EQ(look_up(name, &list), SCI_ERR_OK);
	for (; ids[n]; n++)
		CHECK_EQ(list[n], ids[n]);
	/* unused entries are 0 */
	for (; n < DIS_MAX_NODEIDS; n++)
		CHECK_EQ(list[n], 0);
}

#define NODES(...)	((const unsigned int[]){ __VA_ARGS__, 0 })

static void expect_unknown(const char *name)
{
	dis_nodeId_list_t list;

	if (look_up(name, &list) == SCI_ERR_OK)
		test_note("looked up \"%s\"", name);
	CHECK_EQ(look_up(name, &list), SCI_ERR_NO_SUCH_NODEID);
}

TEST(names_of_a_dishosts_file)
{
	test_env_file("SCI_DISHOSTS", "# made by hand\n"
		      "DISHOSTVERSION 2\n"
		      "\n"
		      "HOSTNAME: alpha\n"
		      "ADAPTER: alpha_0 4\n"
		      "HOSTNAME: beta.example.org\n"
		      "  ADAPTER:\tbeta_0   8\t12   \n"
		      "ADAPTER: beta_1 16\n"
		      "HOSTNAME: gamma\n"
		      "ADAPTER: gamma 20 24 28 32\r\n"
		      "STRIPE: something 44\n"
		      "#ADAPTER: hidden 36\n"
		      "HOSTNAME: delta\n"
		      "ADAPTER: last 40");
	test_open();
	expect_nodes("alpha_0", NODES(4));
	expect_nodes("beta_0", NODES(8, 12));
	expect_nodes("beta_1", NODES(16));
	expect_nodes("gamma", NODES(20, 24, 28, 32));
	expect_nodes("last", NODES(40));
	expect_unknown("hidden");
	expect_unknown("something");
	expect_unknown("beta");
	expect_unknown("beta_");
	expect_unknown("beta_00");
	expect_unknown("ADAPTER:");
	expect_unknown("");
}

/* A file of host names gives each name the nodes of its adapters. */
TEST(hosts_of_a_dishosts_file)
{
	test_env_file("SCI_DISHOSTS", "HOSTNAME: alpha\n"
		      "ADAPTER: alpha_0 4\n"
		      "HOSTNAME: beta.example.org\n"
		      "ADAPTER: beta_0 8 12\n");
	test_open();
	expect_nodes("alpha", NODES(4));
	expect_nodes("beta.example.org", NODES(8, 12));
}

TEST(a_dishosts_file_of_nonsense)
{
	dis_nodeId_list_t list;
	char text[6000] = "ADAPTER: many";
	size_t len = strlen(text);

	for (unsigned int i = 1; i <= 200; i++)
		len += snprintf(text + len, sizeof(text) - len, " %u", 4 * i);
	snprintf(text + len, sizeof(text) - len,
		 "\nADAPTER:\nADAPTER: none\nADAPTER: words four\n"
		 "ADAPTER: huge 99999999999999999999\nADAPTER: minus -4\n:\n"
		 "ADAPTER: good 8\nADAPTER: %0500d 4\n", 7);
	test_env_file("SCI_DISHOSTS", text);
	test_open();
	/* an error, or as many nodes as fit */
	if (look_up("many", &list) == SCI_ERR_OK) {
		CHECK_EQ(list[0], 4);
		CHECK_EQ(list[DIS_MAX_NODEIDS - 1], 0);
	}
	expect_unknown("none");
	expect_unknown("words");
	expect_unknown("huge");
	expect_unknown("minus");
	expect_nodes("good", NODES(8));
}

TEST(nodes_have_names_without_a_file)
{
	dis_nodeId_list_t list;
	dis_virt_adapter_t type = DIS_ADAPTER_UNKNOWN;
	char name[] = "node8";

	setenv("SCI_DISHOSTS", "/nonexistent/dishosts.conf", 1);
	test_open();
	expect_nodes("node4", NODES(4));
	expect_nodes("node64", NODES(64));
	expect_unknown("node5");
	expect_unknown("node");
	expect_unknown("node0");
	expect_unknown("node4x");
	expect_unknown("node-4");
	expect_unknown("node99999999999999999999");
	expect_unknown("nobody");
	CHECK_OK(SCIGetNodeIdByAdapterName(name, &list, NULL, 0, &err));
	CHECK_OK(SCIGetNodeIdByAdapterName(name, &list, &type, 0, &err));
	test_note("type %d: %s", type, SCIGetAdapterTypeString(type));
	CHECK_ERR(SCIGetNodeIdByAdapterName(NULL, &list, &type, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIGetNodeIdByAdapterName(name, NULL, &type, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIGetNodeIdByAdapterName(name, &list, &type, 0x80000000,
					    &err), SCI_ERR_ILLEGAL_FLAG);
}

TEST(names_and_their_adapters)
{
	unsigned int adapters[DIS_MAX_NSCIS];
	dis_nodeId_list_t list;
	dis_virt_adapter_t type;
	char name[] = "pair";

	test_env_file("SCI_DISHOSTS", "ADAPTER: pair 8 12\n");
	test_open();
	memset(adapters, 0xff, sizeof(adapters));
	memset(list, 0xff, sizeof(list));
	CHECK_OK(SCIGetNodeInfoByAdapterName(name, adapters, &list, &type, 0,
					     &err));
	CHECK_EQ(list[0], 8);
	CHECK_EQ(list[1], 12);
	for (size_t i = 2; i < DIS_MAX_NSCIS; i++)
		CHECK_EQ(list[i], 0);
	for (size_t i = 0; i < DIS_MAX_NSCIS; i++)
		CHECK_EQ(adapters[i], 0);
}

/* ---- functions that are not implemented ---- */

TEST(calls_that_are_not_implemented)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_local_interrupt_t i = test_interrupt(sd, 1);
	sci_address_t address = { 8, 0, 0 };
	sci_dma_channel_t channel;
	sci_remote_segment_t r;
	unsigned int count;
	uint64_t fdid;
	sci_dma_queue_t q;

	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1, 0, &err));
#define NOT_THERE(call)	CHECK_ERR(call, SCI_ERR_NOT_IMPLEMENTED)
	NOT_THERE(SCIConnectSCISpace(sd, 0, &r, address, 64, 0, &err));
	NOT_THERE(SCIphDmaEnqueue(q, 64, 0, 8, 0, 0, 0, &err));
	NOT_THERE(SCIphDmaStart(q, NULL, NULL, 0, &err));
	NOT_THERE(SCIRegisterInterruptFlag(0, &i, s, 0, NULL, NULL, 0, &err));
	NOT_THERE(SCIEnableConditionalInterrupt(i, 0, &err));
	NOT_THERE(SCIDisableConditionalInterrupt(i, 0, &err));
	NOT_THERE(SCIGetConditionalInterruptTrigCounter(i, &count, 0, &err));
	NOT_THERE(SCICreateNamedInterrupt(sd, &i, 0, "name", NULL, NULL, 0,
					  &err));
	NOT_THERE(SCIGetCSRRegister(sd, 0, 8, 0, 0, &err));
	NOT_THERE(SCISetCSRRegister(sd, 0, 8, 0, 0, 0, &err));
	NOT_THERE(SCIGetLocalCSR(sd, 0, 0, 0, &err));
	NOT_THERE(SCISetLocalCSR(sd, 0, 0, 0, 0, &err));
	NOT_THERE(SCIRegisterPCIeRequester(sd, 0, 1, 0, 0, &err));
	NOT_THERE(SCIUnregisterPCIeRequester(sd, 0, 1, 0, 0, &err));
	NOT_THERE(SCIRequestDMAChannel(sd, &channel, SCI_DMA_TYPE_ADAPTER, 0,
				       0, &err));
	NOT_THERE(SCIGetDeviceList(sd, &fdid, &(size_t){ 1 }, NULL, 0, &err));
	NOT_THERE(SCIGetFabricDeviceId(sd, "device", &fdid, 0, &err));
#undef NOT_THERE
	CHECK_ERR(SCIGetLocalCSR(sd, 1, 0, 0, &err),
		  SCI_ERR_NO_SUCH_ADAPTERNO);
	CHECK_ERR(SCIGetLocalCSR(NULL, 0, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
}
