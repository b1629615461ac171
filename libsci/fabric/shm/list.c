// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Lists for `sci`: nodes and segments, found by the names of their sockets. */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define QUERY_TIMEOUT_MS	1000

/* Parse NODE and ID of "sci.CLUSTER.KIND.NODE.ID". Return false if they are invalid. */
static bool name_parse(struct shm *shm, const char *name, unsigned int *node,
		       uint32_t *id)
{
	const char *rest = name + strlen("sci.") + strlen(shm->cluster) +
			   strlen(".k.");
	char end;

	return sscanf(rest, "%u.%8x%c", node, id, &end) == 2 && *node &&
	       *node <= SCI_NODE_MAX;
}

struct names {
	struct shm *shm;
	struct name {
		unsigned int node;
		uint32_t id;
	} *name;
	size_t n;
	size_t room;
};

static int name_add(void *arg, const char *text)
{
	struct names *names = arg;
	struct name name, *more;

	if (!name_parse(names->shm, text, &name.node, &name.id))
		return 0;
	if (names->n == names->room) {
		names->room = names->room ? 2 * names->room : 64;
		more = realloc(names->name, names->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		names->name = more;
	}
	names->name[names->n++] = name;
	return 0;
}

static int names_compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int names_list_sorted(struct shm *shm, enum shm_kind kind,
			     struct names *names)
{
	int ret;

	memset(names, 0, sizeof(*names));
	names->shm = shm;
	ret = shm_name_list(shm, kind, name_add, names);
	if (ret < 0) {
		free(names->name);
		return ret;
	}
	if (names->n)
		qsort(names->name, names->n, sizeof(*names->name), names_compare);
	return 0;
}

int shm_node_list(struct sci_fabric *f,
		  int (*fn)(void *arg, const struct sci_node_info *n),
		  void *arg)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct names names;
	size_t i = 0;
	int ret;

	ret = names_list_sorted(shm, SHM_NODE, &names);
	if (ret)
		return ret;
	while (i < names.n && !ret) {
		struct sci_node_info info = { .node = names.name[i].node };

		info.local = info.node == shm->node;
		for (; i < names.n && names.name[i].node == info.node; i++)
			info.processes++;
		ret = fn(arg, &info);
	}
	free(names.name);
	return ret;
}

/* Query the owner of a segment. Return false if the owner has ended, or does not answer. */
static bool name_query_segment(struct shm *shm, const struct name *n,
			       struct sci_segment_info *info)
{
	struct shm_msg msg = { .type = SHM_QUERY };
	socklen_t len = sizeof(struct ucred);
	char name[SHM_NAME_MAX];
	struct ucred cred;
	bool ok;
	int sock;

	shm_name(shm, name, SHM_SEGMENT, n->node, n->id);
	if (shm_call(shm, name, &msg, NULL, NULL,
		     sci_now_ms() + QUERY_TIMEOUT_MS, NULL, &sock))
		return false;
	/* Take the owner's identity from the kernel, not from its message. */
	ok = !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	pthread_mutex_lock(&shm->svc.lock);
	sci_fd_close(&shm->svc, sock);
	pthread_mutex_unlock(&shm->svc.lock);
	if (!ok)
		return false;
	*info = (struct sci_segment_info) {
		.node = n->node, .id = n->id, .size = msg.size,
		.mode = msg.mode & 0666, .uid = cred.uid, .pid = cred.pid,
		.importers = msg.importers,
		.available = msg.flags & SHM_F_EXPORTED,
		.broadcast = msg.flags & SHM_F_BROADCAST,
	};
	return true;
}

int shm_segment_list(struct sci_fabric *f,
		     int (*fn)(void *arg, const struct sci_segment_info *s),
		     void *arg)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct sci_segment_info info;
	struct names names;
	size_t i;
	int ret;

	ret = names_list_sorted(shm, SHM_SEGMENT, &names);
	if (ret)
		return ret;
	for (i = 0; i < names.n && !ret; i++)
		if (name_query_segment(shm, &names.name[i], &info))
			ret = fn(arg, &info);
	free(names.name);
	return ret;
}
