// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests that the numbers of smi.h are those of compiled programs, and that structures have
 * their members in the order in which programs initialise them.
 */
#include <stddef.h>

#include "selftests/harness.h"
#include "smi.h"

struct value {
	const char *name;
	long is, must;
};

#define V(name, value)	{ #name, name, value }

static const struct value values[] = {
	V(SMI_SHM_UNDIVIDED, 0),
	V(SMI_SHM_BLOCKED, 1),
	V(SMI_SHM_CYCLIC, 2),
	V(SMI_SHM_CUSTOMIZED, 3),
	V(SMI_SHM_SMP, 4),
	V(SMI_SHM_PT2PT, 5),
	V(SMI_SHM_FRAGMENTED, 6),
	V(SMI_SHM_LOCAL, 7),
	V(SMI_SHM_REMOTE, 8),
	V(SMI_SHM_RDMA, 9),
	V(SMI_SHM_DELAYED, 1 << 10),
	V(SMI_SHM_NONFIXED, 1 << 11),
	V(SMI_SHM_REGISTER, 1 << 12),
	V(SMI_SHM_PRIVATE, 1 << 13),
	V(SMI_SHM_INTERN, 1 << 14),
	V(SMI_SHM_SHRINKABLE, 1 << 15),
	V(SMI_SHM_CALLBACK, 1 << 16),
	V(SMI_ADPT_DEFAULT, 0xf0),
	V(SMI_ADPT_CYCLIC, 0xf1),
	V(SMI_ADPT_IMPEXP, 0xf2),
	V(SMI_ADPT_SMP, 0xf3),
	V(SMI_ADPT_BIDIRECTIONAL, 0xf4),
	V(SMI_ADPT_INVALID, -1),
	V(SMI_CB_REASON_CONNECT, 1),
	V(SMI_CB_REASON_DISCONNECT, 2),
	V(SMI_CB_ACTION_NOTHING, 1),
	V(SMI_CB_ACTION_FREEREG, 2),
	V(SMI_CB_ACTION_TERMINATE, 4),
	V(SMI_CHECK_FULL, 0),
	V(SMI_CHECK_NOFLUSH, 1),
	V(SMI_CHECK_NOBARRIER, 2),
	V(SMI_CHECK_FAST, 3),
	V(SMI_CHECK_PROBE, 4),
	V(SMI_MEMCPY_NOBARRIER, 1),
	V(SMI_MEMCPY_NOVERIFY, 2),
	V(SMI_MEMCPY_FAST, 3),
	V(SMI_MEMCPY_ENQUEUE, 4),
	V(SMI_MEMCPY_FORCE_DMA, 8),
	V(SMI_MEMCPY_ALIGN, 16),
	V(SMI_MEMCPY_FLAGS_ALL, 0x1f9f),
	V(SMI_MEMCPY_MTFLAGS_ALL, 0x1f80),
	V(SMI_MEMCPY_LP_LP, 128),
	V(SMI_MEMCPY_LS_LP, 128),
	V(SMI_MEMCPY_LS_LS, 128),
	V(SMI_MEMCPY_LP_LS, 256),
	V(SMI_MEMCPY_LP_RS, 512),
	V(SMI_MEMCPY_RS_RS, 512),
	V(SMI_MEMCPY_RS_LP, 1024),
	V(SMI_MEMCPY_LS_RS, 2048),
	V(SMI_MEMCPY_RS_LS, 4096),
	V(SMI_SHR_SINGLE_SOURCE, 1),
	V(SMI_SHR_LOOP_SPLITTING, 2),
	V(SMI_SHR_ADD, 4),
	V(SMI_SHR_NOTHING, 8),
	V(SMI_SHR_EVERY_LOCAL, 64),
	V(SMI_SHR_SPARSE, 256),
	V(SMI_SHR_BAND, 512),
	V(SMI_REP_NOTHING, 8),
	V(SMI_REP_EVERYTHING, 16),
	V(SMI_REP_LOCAL_AND_BEYOND, 32),
	V(SMI_REP_ONE_PER_NODE, 1024),
	V(SMI_DTYPE_FIXPOINT, 2048),
	V(SMI_DTYPE_FLOATINGPOINT, 4096),
	V(SMI_DTYPE_HIGHPRECISION, 8192),
	V(SMI_SPLIT_REGULAR, 0),
	V(SMI_SPLIT_OWNER, 1),
	V(SMI_LOOP_SET_GLOBAL, 0),
	V(SMI_LOOP_GET_GLOBAL, 1),
	V(SMI_LOOP_SET_LOCAL, 2),
	V(SMI_LOOP_GET_LOCAL, 3),
	V(SMI_LOOP_READY, 0),
	V(SMI_LOOP_LOCAL, 1),
	V(SMI_LOOP_REMOTE, 2),
	V(SMI_PART_BLOCKED, 1),
	V(SMI_PART_CYCLIC, 2),
	V(SMI_PART_ADAPTED_BLOCKED, 3),
	V(SMI_PART_TIMED_BLOCKED, 4),
	V(SMI_NO_ADAPT, 1),
	V(SMI_ADAPT_EXPO, 2),
	V(SMI_ADAPT_LINEAR, 3),
	V(SMI_ADAPT_OPT, 4),
	V(SMI_HELP_ONLY_SMP, -1),
	V(SMI_NO_CHANGE, 0),
	V(SMI_SIGNAL_ANY, 0x40000000),
	V(SMI_SIGNAL_BCAST, 0x3fffffff),
	V(SMI_OWNPC, -1),
	V(SMI_FLUSH_ALL, -1),
	V(SMI_IO_ASIS, 0),
	V(SMI_IO_FILE, 1),
	V(SMI_WATCHDOG_DISABLE, 0),
	V(SMI_WATCHDOG_OFF, -1),
	V(PROGRESS_COUNTER_BARRIER, 0),
	V(SCHULZ_BARRIER, 1),
	V(L_MUTEX, 0),
	V(BL_MUTEX, 1),
	V(SCH_MUTEX, 2),
	V(NOCONSISTENCY, 1 << 30),
	V(SMI_SCI_TOPOLOGY_UNKNOWN, 0),
	V(SMI_SCI_TOPOLOGY_SWITCH, 1),
	V(SMI_SCI_TOPOLOGY_TORUS, 2),
	V(SMI_SCI_TOPOLOGY_SMP, 3),
	V(SMI_SCI_NONE, 0),
	V(SMI_SCI_DOLPHIN, 1),
	V(SMI_SCI_SCALI, 2),
	V(SMI_SCI_UNKNOWN, 256),
	V(SMI_WC_ENABLED, 1),
	V(SMI_WC_DISABLED, 0),
	V(SMI_WC_UNKNOWN, -1),
	V(SMI_ERR_OTHER, 1),
	V(SMI_ERR_NOINIT, 2),
	V(SMI_ERR_PARAM, 3),
	V(SMI_ERR_BADADR, 4),
	V(SMI_ERR_MAPFAILED, 5),
	V(SMI_ERR_NODEVICE, 6),
	V(SMI_ERR_NOSEGMENT, 7),
	V(SMI_ERR_NOMEM, 8),
	V(SMI_ERR_NOTIMPL, 9),
	V(SMI_ERR_TRANSFER, 10),
	V(SMI_ERR_PENDING, 11),
	V(SMI_ERR_NOTPOSTED, 12),
	V(SMI_ERR_BADALIGN, 13),
	V(SMI_ERR_BUSY, 14),
	V(SMI_Q_SCI_STREAMBUFSIZE, 101),
	V(SMI_Q_SCI_NBRSTREAMBUFS, 102),
	V(SMI_Q_SCI_ADAPTERTYPE, 104),
	V(SMI_Q_SCI_ID, 107),
	V(SMI_Q_SCI_NBRADAPTERS, 103),
	V(SMI_Q_SCI_DEFADAPTER, 105),
	V(SMI_Q_SCI_VALIDADAPTER, 106),
	V(SMI_Q_SCI_PROC_ID, 108),
	V(SMI_Q_SCI_CONNECTION_STATE, 109),
	V(SMI_Q_SCI_ERRORS, 110),
	V(SMI_Q_SCI_API_VERSION, 111),
	V(SMI_Q_SCI_PACKETSIZE, 112),
	V(SMI_Q_SCI_DMA_SIZE_ALIGN, 113),
	V(SMI_Q_SCI_DMA_OFFSET_ALIGN, 114),
	V(SMI_Q_SCI_DMA_MINSIZE, 115),
	V(SMI_Q_SCI_DMA_MAXSIZE, 116),
	V(SMI_Q_SCI_NBR_PHYS_DIMS, 117),
	V(SMI_Q_SCI_PHYS_DIM_EXTENT, 118),
	V(SMI_Q_SCI_SCI_TOPOLOGY_TYPE, 119),
	V(SMI_Q_SCI_SCIIDS_VALID, 120),
	V(SMI_Q_SCI_SYSTEM_TYPE, 121),
	V(SMI_Q_SMI_INITIALIZED, 201),
	V(SMI_Q_SMI_REGION_CONNECTED, 202),
	V(SMI_Q_SMI_REGION_SGMT_ID, 203),
	V(SMI_Q_SMI_SIGNALS_AVAILABLE, 204),
	V(SMI_Q_SMI_DMA_AVAILABLE, 205),
	V(SMI_Q_SMI_REGION_ADPTNBR, 206),
	V(SMI_Q_SMI_REGION_ADDRESS, 207),
	V(SMI_Q_SMI_REGION_SIZE, 208),
	V(SMI_Q_SMI_REGION_OWNER, 209),
	V(SMI_Q_SMI_REGION_OFFSET, 210),
	V(SMI_Q_SMI_NBR_APP_DIMS, 211),
	V(SMI_Q_SMI_APP_DIM_EXTENT, 212),
	V(SMI_Q_SMI_APP_DIM_OFFSET, 213),
	V(SMI_Q_SYS_NBRCPUS, 301),
	V(SMI_Q_SYS_CPUFREQ, 302),
	V(SMI_Q_SYS_PAGESIZE, 303),
	V(SMI_Q_SYS_WRITECOMBINING, 304),
	V(SMI_Q_SYS_PID, 305),
	V(SMI_Q_SYS_TICK_DURATION, 306),
	V(SMI_Q_SYS_CPU_CACHELINELEN, 307),
	V(SMI_SUCCESS, 0),
};

TEST(numbers_are_those_of_compiled_programs)
{
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (values[i].is != values[i].must)
			FAIL("%s is %ld, not %ld", values[i].name, values[i].is, values[i].must);
}

TEST(members_are_in_order)
{
	const smi_region_info_t info = { 1, 2, 3, 4, 5, 6, NULL, NULL, 7, 8, 9, NULL };
	const smi_rlayout_t layout = { 1, 2, NULL, NULL, NULL, NULL };
	const smi_sgmt_locator_t at = { 1, 2 };

	CHECK(info.size == 1 && info.owner == 2 && info.offset == 3 && info.sgmt_id == 4);
	CHECK(info.partner == 5 && info.nbr_sgmts == 6 && info.adapter == 7);
	CHECK(info.rmt_adapter == 8 && info.shrinkable == 9);
	CHECK(offsetof(smi_region_info_t, sgmt_owner) < offsetof(smi_region_info_t, sgmt_size));
	CHECK(layout.nsegments == 1 && layout.size == 2);
	CHECK(offsetof(smi_rlayout_t, adr) < offsetof(smi_rlayout_t, seg_size));
	CHECK(offsetof(smi_rlayout_t, seg_size) < offsetof(smi_rlayout_t, seg_adr));
	CHECK(offsetof(smi_rlayout_t, seg_adr) < offsetof(smi_rlayout_t, seg_machine));
	CHECK(at.sci_id == 1 && at.segment_id == 2);
	CHECK(offsetof(smi_signal_handle_t, ptThread) < offsetof(smi_signal_handle_t, iProcRank));
}
