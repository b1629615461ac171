// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: parameters
 *
 * The defaults are measured: a table for shared memory, one for adapters and one for sockets. A file
 * with lines "FABRIC NAME VALUE", which `sci tune` writes, changes them for a machine. The
 * environment changes them for a process, sci_ep_set() for an endpoint. An endpoint on two networks
 * has two sets of parameters, and the network of a peer selects one of them. Parameters of the
 * endpoint itself are in the set of the fabric only.
 */

#include "libsci/msg/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsci/base/host.h"

#define KIB		1024ull
#define MIB		(1024 * KIB)

struct param {
	const char *name;
	const char *env;
	uint64_t min;
	uint64_t max;
};

static const struct param params[SCI_PARAMS] = {
	[SCI_PARAM_LINES_MAX] = { "lines_max", "SCI_MSG_LINES_MAX",
				  0, 64 * KIB },
	[SCI_PARAM_EAGER_MAX] = { "eager_max", "SCI_MSG_EAGER_MAX", 0, MIB },
	[SCI_PARAM_EAGER_BLOCK] = { "eager_block", "SCI_MSG_EAGER_BLOCK",
				    64, MIB },
	[SCI_PARAM_EAGER_RING] = { "eager_ring", "SCI_MSG_EAGER_RING",
				   4 * KIB, 64 * MIB },
	[SCI_PARAM_BLOCK] = { "block", "SCI_MSG_BLOCK", 64, MIB },
	[SCI_PARAM_XFER_RING] = { "xfer_ring", "SCI_MSG_XFER_RING",
				  4 * KIB, 64 * MIB },
	[SCI_PARAM_RINGS_MAX] = { "rings_max", "SCI_MSG_RINGS_MAX",
				  4 * KIB, UINT64_MAX },
	[SCI_PARAM_ZCOPY_MIN] = { "zcopy_min", "SCI_MSG_ZCOPY_MIN",
				  0, UINT64_MAX },
	[SCI_PARAM_SINGLE_COPY_MIN] = { "single_copy_min",
					"SCI_MSG_SINGLE_COPY_MIN",
					0, UINT64_MAX },
	[SCI_PARAM_ATTACH_AFTER] = { "attach_after", "SCI_MSG_ATTACH_AFTER",
				     0, UINT64_MAX },
	[SCI_PARAM_UNEXPECTED_MAX] = { "unexpected_max",
				       "SCI_MSG_UNEXPECTED_MAX",
				       64 * KIB, UINT64_MAX },
	[SCI_PARAM_SPIN_US] = { "spin_us", "SCI_MSG_SPIN_US", 0, 1000000000 },
	[SCI_PARAM_CHECK_MS] = { "check_ms", "SCI_MSG_CHECK_MS", 1, 60000 },
	[SCI_PARAM_FAR_EAGER_MAX] = { "far_eager_max", "SCI_MSG_FAR_EAGER_MAX",
				      0, UINT64_MAX },
};

/* The parameters for which all networks of an endpoint have one value. */
#define OF_EP	(1u << SCI_PARAM_RINGS_MAX | 1u << SCI_PARAM_UNEXPECTED_MAX | \
		 1u << SCI_PARAM_SPIN_US | 1u << SCI_PARAM_CHECK_MS)

static bool param_is_of_ep(unsigned int i)
{
	return OF_EP >> i & 1;
}

struct table {
	uint64_t value[SCI_PARAMS];
};

enum { DEVICE, MEMORY, NET };

/* The defaults by the kind of network: the shm fabric and sci_loop use MEMORY. */
static const struct table tables[] = {
	/*
	 * A ring that fits into the writer's L2 cache stays dirty there, and the reader fetches each
	 * line from the other core. Between two cores of one L3 cache, rings of 4 MiB have moved
	 * 64 KiB and more up to twice as fast. Between cores far apart, rings of 2 and 4 MiB and huge
	 * pages make less than 5 % of difference (Xeon, 2 MiB of L2), and each busy peer takes that
	 * memory. `sci tune` measures what is best on a machine.
	 */
	[MEMORY] = { {
		[SCI_PARAM_LINES_MAX] = 64,
		[SCI_PARAM_EAGER_MAX] = 256 * KIB,
		[SCI_PARAM_EAGER_BLOCK] = 8 * KIB,
		[SCI_PARAM_EAGER_RING] = 512 * KIB,
		[SCI_PARAM_BLOCK] = 64 * KIB,
		[SCI_PARAM_XFER_RING] = 512 * KIB,
		[SCI_PARAM_RINGS_MAX] = 16 * MIB,
		[SCI_PARAM_ZCOPY_MIN] = 16 * KIB,
		[SCI_PARAM_SINGLE_COPY_MIN] = SINGLE_COPY_DEFAULT,
		[SCI_PARAM_ATTACH_AFTER] = 1 * KIB,
		[SCI_PARAM_UNEXPECTED_MAX] = 64 * MIB,
		[SCI_PARAM_SPIN_US] = 1000,
		[SCI_PARAM_CHECK_MS] = 5,
	} },
	/*
	 * Lines need no store barrier, and the receiver copies a line while later lines arrive.
	 * DECK/SCI's threshold for zero-copy, 1024 bytes (IV), is for a protocol that waits for a
	 * barrier. `sci model` has both protocols.
	 */
	[DEVICE] = { {
		[SCI_PARAM_LINES_MAX] = 8 * KIB,
		[SCI_PARAM_EAGER_MAX] = 8 * KIB,
		[SCI_PARAM_EAGER_BLOCK] = 8 * KIB,
		[SCI_PARAM_EAGER_RING] = 64 * KIB,
		[SCI_PARAM_BLOCK] = 128 * KIB,
		[SCI_PARAM_XFER_RING] = 512 * KIB,
		[SCI_PARAM_RINGS_MAX] = 16 * MIB,
		[SCI_PARAM_ZCOPY_MIN] = 6 * KIB,
		[SCI_PARAM_SINGLE_COPY_MIN] = UINT64_MAX,
		[SCI_PARAM_ATTACH_AFTER] = 1 * KIB,
		[SCI_PARAM_UNEXPECTED_MAX] = 64 * MIB,
		[SCI_PARAM_SPIN_US] = 1000,
		[SCI_PARAM_CHECK_MS] = 5,
	} },
	/*
	 * Each block is a system call on both sides, which takes longer than an early start of the
	 * receiver saves. Beyond 64 KiB, two copies through the log and the ring take longer than a
	 * handshake with another process of the machine. Other machines may be farther away.
	 */
	[NET] = { {
		[SCI_PARAM_LINES_MAX] = 64,
		[SCI_PARAM_EAGER_MAX] = 64 * KIB,
		[SCI_PARAM_EAGER_BLOCK] = 64 * KIB,
		[SCI_PARAM_EAGER_RING] = 512 * KIB,
		[SCI_PARAM_BLOCK] = 256 * KIB,
		[SCI_PARAM_XFER_RING] = 2 * MIB,
		[SCI_PARAM_ZCOPY_MIN] = 16 * KIB,
		[SCI_PARAM_SINGLE_COPY_MIN] = UINT64_MAX,
		[SCI_PARAM_ATTACH_AFTER] = 1 * KIB,
		[SCI_PARAM_FAR_EAGER_MAX] = 256 * KIB,
	} },
};

const char *sci_param_name(enum sci_param param)
{
	return (unsigned int)param < SCI_PARAMS ? params[param].name : NULL;
}

static uint64_t param_limit(unsigned int i, uint64_t v)
{
	v = v < params[i].min ? params[i].min : v;
	return v > params[i].max ? params[i].max : v;
}

static void param_set_all(struct sci_ep *ep, unsigned int i, uint64_t v)
{
	v = param_limit(i, v);
	param_set(&ep->params, i, v);
	/* sockets have no single copies, which would limit eager messages */
	if (i != SCI_PARAM_SINGLE_COPY_MIN)
		param_set(&ep->net_params, i, v);
}

static int param_read(unsigned int i, const char *text, uint64_t *value)
{
	char *end;

	if (!strcmp(text, "never")) {
		*value = param_limit(i, UINT64_MAX);
		return 0;
	}
	errno = 0;
	*value = param_limit(i, strtoull(text, &end, 0));
	return *text < '0' || *text > '9' || *end || errno ? -EINVAL : 0;
}

static int param_report(const char *where, const char *what)
{
	fprintf(stderr, "libsci: %s: %s: not understood\n", where, what);
	return -EINVAL;
}

static int param_find(const char *name)
{
	for (int i = 0; i < SCI_PARAMS; i++)
		if (!strcmp(params[i].name, name))
			return i;
	return -1;
}

static int table_read_line(struct sci_ep *ep, const char *path, char *line)
{
	char fabric[32], name[32], text[32];
	struct msg_params *of;
	uint64_t value;
	int i;

	line[strcspn(line, "#\n")] = '\0';
	i = sscanf(line, "%31s %31s %31s", fabric, name, text);
	if (i <= 0)
		return 0;
	if (i != 3)
		return param_report(path, line);
	of = !strcmp(fabric, sci_net_fabric.name) ? &ep->net_params :
	     !strcmp(fabric, ep->ops->name) ? &ep->params : NULL;
	if (!of)
		return 0;
	i = param_find(name);
	if (i < 0 || (param_is_of_ep((unsigned int)i) && of != &ep->params) ||
	    param_read((unsigned int)i, text, &value))
		return param_report(path, line);
	param_set(of, (unsigned int)i, value);
	return 0;
}

static int table_read(struct sci_ep *ep, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[256];
	int ret = 0;

	if (!f)
		return param_report("SCI_MSG_TABLE", path);
	while (!ret && fgets(line, sizeof(line), f))
		ret = table_read_line(ep, path, line);
	fclose(f);
	return ret;
}

int params_init(struct sci_ep *ep)
{
	const struct table *t = &tables[ep->may_read ? MEMORY : DEVICE];
	const char *path = getenv("SCI_MSG_TABLE");
	uint64_t value;
	int ret = 0;

	for (unsigned int i = 0; i < SCI_PARAMS; i++) {
		param_set(&ep->params, i, t->value[i]);
		param_set(&ep->net_params, i, tables[NET].value[i]);
	}
	if (path && *path)
		ret = table_read(ep, path);
	for (unsigned int i = 0; !ret && i < SCI_PARAMS; i++) {
		const char *text = getenv(params[i].env);

		if (!text || !*text)
			continue;
		if (param_read(i, text, &value))
			ret = param_report(params[i].env, text);
		else
			param_set_all(ep, i, value);
	}
	if (ep->params.value[SCI_PARAM_SINGLE_COPY_MIN] == SINGLE_COPY_DEFAULT &&
	    (!ep->ops->peer_read || !sci_processes_are_readable()))
		param_set(&ep->params, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX);
	return ret;
}

int sci_ep_set(struct sci_ep *ep, enum sci_param param, uint64_t value)
{
	if (!ep || (unsigned int)param >= SCI_PARAMS)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	param_set_all(ep, param, value);
	msg_unlock(&ep->lock);
	return 0;
}

int sci_ep_get(struct sci_ep *ep, enum sci_param param, uint64_t *value)
{
	if (!ep || (unsigned int)param >= SCI_PARAMS || !value)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	*value = ep->params.value[param];
	msg_unlock(&ep->lock);
	return 0;
}

/* Return the set that has @param for a peer. */
static struct msg_params *params_of(struct sci_peer *p, enum sci_param param)
{
	return p->stream && !param_is_of_ep(param) ? &p->ep->net_params : &p->ep->params;
}

int sci_peer_set(struct sci_peer *peer, enum sci_param param, uint64_t value)
{
	if (!peer || (unsigned int)param >= SCI_PARAMS)
		return -EINVAL;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	param_set(params_of(peer, param), param, param_limit(param, value));
	msg_unlock(&peer->ep->lock);
	return 0;
}

int sci_peer_get(struct sci_peer *peer, enum sci_param param, uint64_t *value)
{
	if (!peer || (unsigned int)param >= SCI_PARAMS || !value)
		return -EINVAL;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	*value = params_of(peer, param)->value[param];
	msg_unlock(&peer->ep->lock);
	return 0;
}
