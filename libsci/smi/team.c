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

/* Sort ranks by node id, then by the launcher's order. */
static int team_sort(struct sci_team *all)
{
	struct sci_addr at, last = { 0, 0 };
	bool sorted = true;
	int i, ret, me = sci_team_rank(all);
	unsigned int mine = 0;

	for (i = 0; i < sci_team_size(all); i++) {
		ret = sci_team_addr(all, i, &at);
		if (ret)
			return ret;
		if (i == me)
			mine = at.node;
		sorted = sorted && at.node >= last.node;
		last = at;
	}
	smi.team = all;
	return sorted ? 0 : sci_team_split(all, 0, (int)mine, &smi.team);
}

static int team_nodes(void)
{
	struct sci_addr at;
	int i, ret, n = 0;

	smi.node_of = calloc((size_t)smi.size, sizeof(*smi.node_of));
	smi.first = calloc((size_t)smi.size + 1, sizeof(*smi.first));
	smi.sci_node = calloc((size_t)smi.size, sizeof(*smi.sci_node));
	smi.procs = calloc((size_t)smi.size + 1, sizeof(*smi.procs));
	smi.board = calloc((size_t)smi.size, SMI_BOARD);
	if (!smi.node_of || !smi.first || !smi.sci_node || !smi.procs || !smi.board)
		return -ENOMEM;
	for (i = 0; i < smi.size; i++) {
		ret = sci_team_addr(smi.team, i, &at);
		if (ret)
			return ret;
		if (!n || smi.sci_node[n - 1] != at.node) {
			smi.first[n] = i;
			smi.sci_node[n++] = at.node;
		}
		smi.node_of[i] = n - 1;
	}
	smi.nodes = n;
	smi.first[n] = smi.size;
	smi.node = smi.node_of[smi.rank];
	return 0;
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
	ret = smi_agree(smi.team, smi_error_of_team(team_nodes()));
	return ret ? ret : team_pages();
}

void smi_team_end(void)
{
	if (smi.team && smi.team != smi.all)
		sci_team_close(smi.team);
	sci_team_close(smi.all);
	smi.team = smi.all = NULL;
	free(smi.node_of);
	free(smi.first);
	free(smi.sci_node);
	free(smi.procs);
	free(smi.board);
	smi.board = NULL;
	smi.node_of = smi.first = NULL;
	smi.procs = NULL;
	smi.sci_node = NULL;
}
