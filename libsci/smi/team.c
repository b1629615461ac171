// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The team of all processes, ordered by node, and exchanges among processes. */

#include "libsci/smi/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int smi_error_of_team(int ret)
{
	switch (ret) {
	case 0:
		return SMI_SUCCESS;
	case -ECONNRESET:
		return SMI_ERR_OTHER;
	case -ENOMEM:
	case -ENOSPC:
		return SMI_ERR_NOMEM;
	default:
		return 2000 - ret;
	}
}

int smi_exchange(const void *mine, size_t len)
{
	return smi_error_of_team(sci_team_allgather(smi.team, mine, len, smi.board));
}

int smi_agree(struct sci_team *team, int err)
{
	int ret = sci_team_allreduce(team, &err, &err, 1, sci_op(SCI_OP_MAX, SCI_TYPE_INT32));

	return ret ? smi_error_of_team(ret) : err;
}

static unsigned int team_node_id(const struct sci_team *team, int rank)
{
	struct sci_addr at = { 0, 0 };

	sci_team_addr(team, rank, &at);
	return at.node;
}

/* Sort ranks by node id, then by the launcher's order. */
static int team_sort(struct sci_team *all)
{
	bool sorted = true;

	for (int i = 1; i < sci_team_size(all); i++)
		sorted &= team_node_id(all, i) >= team_node_id(all, i - 1);
	smi.team = all;
	return sorted ? 0 : sci_team_split(all, 0, (int)team_node_id(all, sci_team_rank(all)),
					   &smi.team);
}

static int team_nodes(void)
{
	smi.nodes = sci_team_nodes(smi.team);
	smi.node = sci_team_node(smi.team, smi.rank);
	smi.first = calloc((size_t)smi.nodes + 1, sizeof(*smi.first));
	smi.sci_node = calloc((size_t)smi.nodes, sizeof(*smi.sci_node));
	smi.procs = calloc((size_t)smi.size + 1, sizeof(*smi.procs));
	smi.board = calloc((size_t)smi.size, SMI_BOARD);
	if (!smi.first || !smi.sci_node || !smi.procs || !smi.board)
		return SMI_ERR_NOMEM;
	for (int i = 0; i < smi.nodes; i++) {
		smi.sci_node[i] = team_node_id(smi.team, smi.first[i]);
		smi.first[i + 1] = smi.first[i] + sci_team_node_size(smi.team, i);
	}
	return SMI_SUCCESS;
}

/* Exchange pids, and set smi.page to the largest page size: page sizes are powers of two. */
static int team_pages(void)
{
	struct hello {
		int page, pid;
	} mine = { (int)sysconf(_SC_PAGESIZE), getpid() }, *all = smi.board;
	int i, err = smi_exchange(&mine, sizeof(mine));

	for (i = 0; !err && i < smi.size; i++) {
		smi.procs[i].pid = all[i].pid;
		if ((size_t)all[i].page > smi.page)
			smi.page = (size_t)all[i].page;
	}
	return err;
}

int smi_team_start(void)
{
	int ret = sci_team_open(&smi.all, NULL);

	ret = ret ? ret : team_sort(smi.all);
	if (ret)
		return smi_error_of_team(ret);
	smi.rank = sci_team_rank(smi.team);
	smi.size = sci_team_size(smi.team);
	ret = smi_agree(smi.team, team_nodes());
	return ret ? ret : team_pages();
}

void smi_team_end(void)
{
	if (smi.team && smi.team != smi.all)
		sci_team_close(smi.team);
	sci_team_close(smi.all);
	free(smi.first);
	free(smi.sci_node);
	free(smi.procs);
	free(smi.board);
}
