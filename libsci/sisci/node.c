// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: names of nodes
 *
 * The dishosts file has lines "HOSTNAME: name" and "ADAPTER: name nodeid...".
 * The name of an adapter stands for the node IDs on its line.  The name of a host
 * stands for the node IDs of all adapters up to the next HOSTNAME line.  Case does
 * not matter.  Invalid lines are skipped.  Names such as "node8" need no line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsci/sisci/export.h"
#include "libsci/sisci/object.h"

#define DISHOSTS	"/etc/dis/dishosts.conf"
#define BLANKS		" \t\r\n\v\f"

static sci_error_t node_probe(sci_desc_t sd, unsigned int adapter, unsigned int node,
			      int *answers)
{
	void *desc = sci_get(sd, SCI_TYPE_DESC);
	sci_error_t err;

	if (!desc)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_check_adapter(adapter);
	if (!err)
		err = sci_check_node(&node);
	if (!err)
		err = sci_err(sci_lib.ops->query.probe(sci_lib.fabric, adapter,
						      node), SCI_CTX_NODE);
	*answers = !err;
	sci_put(desc);
	return err;
}

int SCIProbeNode(sci_desc_t sd, unsigned int localAdapterNo,
		 unsigned int nodeId, unsigned int flags, sci_error_t *error)
{
	int answers = 0;

	SCI_CALL(error, flags, 0,
		 node_probe(sd, localAdapterNo, nodeId, &answers));
	return answers;
}
SISCI_EXPORT(SCIProbeNode);

static sci_error_t node_get_local(unsigned int adapter, unsigned int *node)
{
	struct sci_adapter_info info;
	sci_error_t err;

	if (!node)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_adapter(adapter, &info);
	if (!err)
		*node = info.node;
	return err;
}

void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId,
		       unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, node_get_local(adapterNo, nodeId));
}
SISCI_EXPORT(SCIGetLocalNodeId);

struct lookup {
	const char *name;
	/* the last HOSTNAME line has the name: the following adapters belong to it */
	bool host;
	unsigned int count;
	dis_nodeId_list_t ids;		/* entries from @count on are 0 */
};

/* Return the node ID in @word; 0: @word is no valid node ID. */
static unsigned int node_id(const char *word)
{
	size_t digits = strspn(word, "0123456789");
	unsigned long id;

	if (!digits || word[digits])
		return 0;
	id = strtoul(word, NULL, 10);
	return id > SCI_NODE_MAX || id % SCI_NODE_STEP ? 0 : (unsigned int)id;
}

static void id_add(struct lookup *l, unsigned int id)
{
	unsigned int i;

	for (i = 0; i < l->count; i++)
		if (l->ids[i] == id)
			return;
	if (l->count < DIS_MAX_NODEIDS - 1)
		l->ids[l->count++] = id;
}

static void host_read(struct lookup *l, char *words)
{
	char *save, *name = strtok_r(words, BLANKS, &save);

	l->host = name && !strcasecmp(name, l->name);
}

static void adapter_read(struct lookup *l, char *words)
{
	char *save, *word = strtok_r(words, BLANKS, &save);
	struct lookup found = *l;
	unsigned int id;

	if (!word || !(l->host || !strcasecmp(word, l->name)))
		return;
	while ((word = strtok_r(NULL, BLANKS, &save))) {
		id = node_id(word);
		if (!id)
			return;
		id_add(&found, id);
	}
	*l = found;
}

static void dishosts_read_line(struct lookup *l, char *line)
{
	static const char host[] = "HOSTNAME:", adapter[] = "ADAPTER:";

	line += strspn(line, BLANKS);
	if (!strncasecmp(line, host, sizeof(host) - 1))
		host_read(l, line + sizeof(host) - 1);
	else if (!strncasecmp(line, adapter, sizeof(adapter) - 1))
		adapter_read(l, line + sizeof(adapter) - 1);
}

/* Look up the name in the dishosts file. A missing file is no error: it has no names. */
static sci_error_t dishosts_read(struct lookup *l)
{
	const char *path = getenv("SCI_DISHOSTS");
	FILE *file = fopen(path ? path : DISHOSTS, "re");
	char *line = NULL;
	size_t room = 0;
	int ret;

	if (!file)
		return errno == ENOENT ? SCI_ERR_OK :
					 sci_err(-errno, SCI_CTX_NODE);
	while (getline(&line, &room, file) >= 0)
		dishosts_read_line(l, line);
	ret = feof(file) ? 0 : -errno;
	free(line);
	fclose(file);
	return sci_err(ret, SCI_CTX_NODE);
}

static sci_error_t node_look_up(struct lookup *l)
{
	static const char prefix[] = "node";
	sci_error_t err = dishosts_read(l);
	unsigned int id;

	if (err || l->count)
		return err;
	if (strncasecmp(l->name, prefix, sizeof(prefix) - 1))
		return SCI_ERR_NO_SUCH_NODEID;
	id = node_id(l->name + sizeof(prefix) - 1);
	if (!id)
		return SCI_ERR_NO_SUCH_NODEID;
	id_add(l, id);
	return SCI_ERR_OK;
}

/* Return the kind of adapter 0, for SCIGetAdapterType(). */
static sci_error_t adapter_get_type(dis_virt_adapter_t *out)
{
	int type = DIS_ADAPTER_PCI_SCI;
	struct sci_adapter_info info;
	sci_error_t err = sci_adapter(0, &info);

	if (err)
		return err;
	while (type && strcmp(SCIGetAdapterTypeString(type), info.type))
		type--;
	*out = type;
	return SCI_ERR_OK;
}

static sci_error_t node_resolve(const char *name, dis_nodeId_list_t *ids,
				dis_virt_adapter_t *type)
{
	struct lookup l = { .name = name };
	dis_virt_adapter_t carried_by;
	sci_error_t err;

	if (!name || !ids)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = node_look_up(&l);
	if (!err)
		err = adapter_get_type(&carried_by);
	if (err)
		return err;
	memcpy(*ids, l.ids, sizeof(l.ids));
	if (type)
		*type = carried_by;
	return SCI_ERR_OK;
}

void SCIGetNodeIdByAdapterName(char *adaptername,
			       dis_nodeId_list_t *nodeIdlist,
			       dis_virt_adapter_t *type, unsigned int flags,
			       sci_error_t *error)
{
	SCI_CALL(error, flags, 0, node_resolve(adaptername, nodeIdlist, type));
}
SISCI_EXPORT(SCIGetNodeIdByAdapterName);

/* Get the node IDs of a name. Set all @adapters to 0: adapter 0 reaches every node. */
static sci_error_t node_resolve_info(const char *name, unsigned int *adapters,
				     dis_nodeId_list_t *ids,
				     dis_virt_adapter_t *type)
{
	sci_error_t err;

	if (!adapters)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = node_resolve(name, ids, type);
	if (!err)
		memset(adapters, 0, DIS_MAX_NSCIS * sizeof(*adapters));
	return err;
}

/*
 * Get the node IDs of a name. @adapterNo has DIS_MAX_NSCIS entries, one for each of the first
 * node IDs.
 */
void SCIGetNodeInfoByAdapterName(char *adaptername, unsigned int *adapterNo,
				 dis_nodeId_list_t *nodeIdlist,
				 dis_virt_adapter_t *type, unsigned int flags,
				 sci_error_t *error)
{
	SCI_CALL(error, flags, 0,
		 node_resolve_info(adaptername, adapterNo, nodeIdlist, type));
}
SISCI_EXPORT(SCIGetNodeInfoByAdapterName);
