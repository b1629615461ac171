// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Ranks, nodes, and SMI_Query(). */

#include "libsci/smi/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- ranks ---- */

/* Define a query @name that stores the number @value. */
#define QUERY_INT(name, value)						\
	SMI_API smi_error_t name(int *result)				\
	{								\
		SMI_REFUSE(!result);					\
		*result = value;					\
		return SMI_SUCCESS;					\
	}

QUERY_INT(SMI_Proc_rank, smi.rank)
QUERY_INT(SMI_Proc_size, smi.size)
QUERY_INT(SMI_Node_rank, smi.node)
QUERY_INT(SMI_Node_size, smi.nodes)
QUERY_INT(SMI_Local_proc_rank, sci_team_local_rank(smi.team, smi.rank))
QUERY_INT(SMI_Local_proc_size, sci_team_node_size(smi.team, smi.node))
QUERY_INT(SMI_Page_size, (int)smi.page)

SMI_API smi_error_t SMI_Max_local_proc_size(int *size)
{
	SMI_REFUSE(!size);
	*size = 0;
	for (int i = 0; i < smi.nodes; i++)
		if (sci_team_node_size(smi.team, i) > *size)
			*size = sci_team_node_size(smi.team, i);
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Proc_to_node(int proc, int *node)
{
	SMI_REFUSE(!smi_rank_ok(proc) || !node);
	*node = smi_node_of(proc);
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_First_proc_on_node(int node, int *proc)
{
	SMI_REFUSE(node < 0 || node >= smi.nodes || !proc);
	*proc = smi.first[node];
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Get_node_name(char *name, size_t *len)
{
	char host[256] = "";

	if (!name || !len || !*len)
		return SMI_ERR_PARAM;
	if (gethostname(host, sizeof(host) - 1) || strlen(host) >= *len)
		return SMI_ERR_OTHER;
	*len = strlen(host);
	memcpy(name, host, *len + 1);
	return SMI_SUCCESS;
}

/* ---- adapters ---- */

static int query_store_int(int *where, int value)
{
	*where = value;
	return SMI_SUCCESS;
}

/* Get a property of an adapter; @absent: the value if the fabric does not report it. */
static int adapter_query(unsigned int adapter, unsigned int what, int absent, int *value)
{
	unsigned int n = 0;
	sci_query_adapter_t q = { adapter, 0, what, &n };
	sci_error_t err;

	SCIQuery(SCI_Q_ADAPTER, &q, 0, &err);
	if (err == SCI_ERR_ILLEGAL_ADAPTERNO || err == SCI_ERR_NO_SUCH_ADAPTERNO)
		return SMI_ERR_PARAM;
	*value = err || !n ? absent : (int)n;
	return SMI_SUCCESS;
}

bool smi_adapter_valid(unsigned int adapter)
{
	int ignored;

	return !adapter_query(adapter, SCI_Q_ADAPTER_NODEID, 0, &ignored);
}

static unsigned int adapter_number(int arg)
{
	return arg == SMI_ADPT_DEFAULT ? smi.adapter : (unsigned int)arg;
}

static int connection_query(void)
{
	int up = 0;

	if (smi.nodes > 1)
		adapter_query(smi.adapter, SCI_Q_ADAPTER_LINK_OPERATIONAL, 0, &up);
	return smi.nodes == 1 || up ? SMI_SUCCESS : SMI_ERR_PENDING;
}

static int version_copy(int len, char *buf)
{
	char text[256] = "";
	sci_query_string_t q = { text, sizeof(text) };
	sci_error_t err;

	if (len <= 0)
		return SMI_ERR_PARAM;
	SCIQuery(SCI_Q_API, &q, 0, &err);
	snprintf(buf, (size_t)len, "%s", err ? "" : text);
	return SMI_SUCCESS;
}

static int dma_is_available(void)
{
	sci_dma_capabilities_t c;
	sci_query_dma_t q = { smi.adapter, SCI_Q_DMA_CAPABILITIES, &c };
	sci_error_t err;

	SCIQuery(SCI_Q_DMA, &q, SCI_FLAG_DMA_ADAPTER, &err);
	return smi.nodes > 1 && !err;
}

/* The queries for a property of an adapter, and those whose answer is always the same. */
static const struct answer {
	smi_query_t query;
	unsigned int item;		/* property of the adapter, or 0 */
	int value;			/* if the fabric does not report the property */
} answers[] = {
	{ SMI_Q_SCI_STREAMBUFSIZE, SCI_Q_ADAPTER_STREAM_BUFFER_SIZE, 64 },
	{ SMI_Q_SCI_NBRSTREAMBUFS, SCI_Q_ADAPTER_NUMBER_OF_STREAMS, 1 },
	{ SMI_Q_SCI_ADAPTERTYPE, SCI_Q_ADAPTER_CARD_TYPE, 0 },
	{ SMI_Q_SCI_ID, SCI_Q_ADAPTER_NODEID, 0 },
	{ SMI_Q_SCI_DMA_SIZE_ALIGN, SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT, 1 },
	{ SMI_Q_SCI_DMA_OFFSET_ALIGN, SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT, 1 },
	{ SMI_Q_SCI_DMA_MINSIZE, SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE, 1 },
	{ SMI_Q_SCI_DMA_MAXSIZE, SCI_Q_ADAPTER_DMA_MTU, 0x7fffffff },
	{ SMI_Q_SCI_PACKETSIZE, 0, 64 },
	{ SMI_Q_SCI_NBR_PHYS_DIMS, 0, 1 },
	{ SMI_Q_SCI_SCIIDS_VALID, 0, 1 },
	{ SMI_Q_SCI_SYSTEM_TYPE, 0, SMI_SCI_UNKNOWN },
	{ SMI_Q_SMI_NBR_APP_DIMS, 0, 1 },
	{ SMI_Q_SYS_TICK_DURATION, 0, 1000 },
};

static int query_sci(smi_query_t query, int arg, void *result)
{
	int *n = result;

	switch (query) {
	case SMI_Q_SCI_NBRADAPTERS:
		return smi_rank_ok(arg) ? adapter_query(smi.adapter, SCI_Q_ADAPTER_NUMBER,
							1, n) : SMI_ERR_PARAM;
	case SMI_Q_SCI_DEFADAPTER:
		return query_store_int(n, (int)smi.adapter);
	case SMI_Q_SCI_VALIDADAPTER:
		return query_store_int(n, smi_adapter_valid(adapter_number(arg)));
	case SMI_Q_SCI_PROC_ID:
		return smi_rank_ok(arg) ? query_store_int(n, (int)smi.sci_node[smi_node_of(arg)]) :
					  SMI_ERR_PARAM;
	case SMI_Q_SCI_CONNECTION_STATE:
		return query_store_int(n, connection_query());
	case SMI_Q_SCI_ERRORS:
		return query_store_int(n, atomic_load(&smi.errors));
	case SMI_Q_SCI_API_VERSION:
		return version_copy(arg, result);
	case SMI_Q_SCI_PHYS_DIM_EXTENT:
		return arg ? SMI_ERR_PARAM : query_store_int(n, smi.nodes);
	case SMI_Q_SCI_SCI_TOPOLOGY_TYPE:
		return query_store_int(n, smi.nodes == 1 ? SMI_SCI_TOPOLOGY_SMP :
				       SMI_SCI_TOPOLOGY_UNKNOWN);
	default:
		return SMI_ERR_PARAM;
	}
}

/* ---- regions ---- */

/* Return the only segment of a region, else this process's segment; NULL: there is none. */
static struct smi_segment *region_own_segment(struct smi_region *r)
{
	for (int i = 0; i < r->nsegs; i++)
		if (r->nsegs == 1 || r->segs[i].owner == smi.rank)
			return &r->segs[i];
	return NULL;
}

static int query_region(smi_query_t query, int arg, void *result)
{
	struct smi_region *r = smi_region_get(arg);
	struct smi_segment *own = r ? region_own_segment(r) : NULL;

	switch (query) {
	case SMI_Q_SMI_REGION_CONNECTED:
		return r ? query_store_int(result, r->connected) : SMI_ERR_PARAM;
	case SMI_Q_SMI_REGION_SGMT_ID:
		return query_store_int(result, own ? (int)own->sci_id : -1);
	case SMI_Q_SMI_REGION_ADPTNBR:
		return query_store_int(result, own && !r->no_adapter ? (int)r->adapter :
								       SMI_ADPT_INVALID);
	case SMI_Q_SMI_REGION_ADDRESS:
		*(void **)result = !r ? NULL : own && r->nsegs > 1 && !r->replicated ?
				   own->addr : r->base;
		break;
	case SMI_Q_SMI_REGION_SIZE:
		*(size_t *)result = !r ? 0 : r->type == SMI_SHM_FRAGMENTED ? r->segs[0].size :
									     r->size;
		break;
	case SMI_Q_SMI_REGION_OWNER:
		return query_store_int(result, r ? r->owner : -1);
	default:
		*(size_t *)result = r && r->nsegs == 1 && r->base ? r->offset : (size_t)-1;
	}
	return r ? SMI_SUCCESS : SMI_ERR_PARAM;
}

static int query_smi(smi_query_t query, int arg, void *result)
{
	switch (query) {
	case SMI_Q_SMI_SIGNALS_AVAILABLE:
		return query_store_int(result, !smi_args.no_signals);
	case SMI_Q_SMI_DMA_AVAILABLE:
		return query_store_int(result, dma_is_available());
	case SMI_Q_SMI_APP_DIM_EXTENT:
		return arg ? SMI_ERR_PARAM : query_store_int(result, smi.nodes);
	case SMI_Q_SMI_APP_DIM_OFFSET:
		return arg ? SMI_ERR_PARAM : query_store_int(result, 0);
	default:
		return query >= SMI_Q_SMI_REGION_CONNECTED &&
		       query <= SMI_Q_SMI_REGION_OFFSET ?
		       query_region(query, arg, result) : SMI_ERR_PARAM;
	}
}

/* ---- the system ---- */

/* Return the frequency of the first processor in /proc/cpuinfo, in MHz; 0: the file has none. */
static int cpu_read_mhz(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	double mhz = 0;
	char line[256];

	while (f && mhz == 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu MHz : %lf", &mhz) != 1)
			mhz = 0;
	if (f)
		fclose(f);
	return (int)mhz;
}

static int query_sys(smi_query_t query, int arg, void *result)
{
	unsigned int n = 0;
	sci_query_system_t q = { SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED, &n };
	sci_error_t err;

	switch (query) {
	case SMI_Q_SYS_NBRCPUS:
		return query_store_int(result, (int)sysconf(_SC_NPROCESSORS_ONLN));
	case SMI_Q_SYS_CPUFREQ:
		return query_store_int(result, cpu_read_mhz());
	case SMI_Q_SYS_PAGESIZE:
		return query_store_int(result, (int)sysconf(_SC_PAGESIZE));
	case SMI_Q_SYS_WRITECOMBINING:
		SCIQuery(SCI_Q_SYSTEM, &q, 0, &err);
		return query_store_int(result, err ? SMI_WC_UNKNOWN : n ? SMI_WC_ENABLED :
				       SMI_WC_DISABLED);
	case SMI_Q_SYS_PID:
		return smi_rank_ok(arg) ? query_store_int(result, smi.procs[arg].pid) : SMI_ERR_PARAM;
	case SMI_Q_SYS_CPU_CACHELINELEN:
		return query_store_int(result, (int)sci_cache_line());
	default:
		return SMI_ERR_PARAM;
	}
}

SMI_API smi_error_t SMI_Query(smi_query_t query, int arg, void *result)
{
	if (!result)
		return SMI_ERR_PARAM;
	if (query == SMI_Q_SMI_INITIALIZED) {
		*(int *)result = !smi_check_up();
		return SMI_SUCCESS;
	}
	SMI_ENTER();
	for (const struct answer *a = answers; a < answers + sizeof(answers) / sizeof(*a); a++)
		if (a->query == query)
			return a->item ? adapter_query(adapter_number(arg), a->item, a->value,
						       result) : query_store_int(result, a->value);
	if (query < SMI_Q_SMI_INITIALIZED)
		return query_sci(query, arg, result);
	return query < SMI_Q_SYS_NBRCPUS ? query_smi(query, arg, result) :
					   query_sys(query, arg, result);
}
