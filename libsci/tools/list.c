// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci nodes` and `sci segments`: nodes and segments that the fabric can list. */

#include <inttypes.h>

#include "libsci/fabric/core/fabric.h"
#include "tool.h"

struct listing {
	struct tool_json json;
	bool as_json;
	unsigned int count;
};

static int node_print(void *arg, const struct sci_node_info *n)
{
	struct listing *l = arg;

	if (l->as_json) {
		json_open(&l->json, NULL, '{');
		json_number(&l->json, "node", n->node);
		if (!n->remote)
			json_number(&l->json, "processes", n->processes);
		json_bool(&l->json, "local", n->local);
		json_close(&l->json, '}');
		return 0;
	}
	if (!l->count++)
		printf("%6s  %9s\n", "NODE", "PROCESSES");
	if (n->remote)
		printf("%6u  %9s\n", n->node, "-");
	else
		printf("%6u  %9u%s\n", n->node, n->processes,
		       n->local ? "  (this node)" : "");
	return 0;
}

static int segment_print(void *arg, const struct sci_segment_info *s)
{
	struct listing *l = arg;
	char size[TOOL_SIZE_STR];

	if (l->as_json) {
		json_open(&l->json, NULL, '{');
		json_number(&l->json, "node", s->node);
		json_number(&l->json, "id", s->id);
		json_number(&l->json, "size", s->size);
		json_number(&l->json, "mode", s->mode);
		json_number(&l->json, "uid", s->uid);
		json_number(&l->json, "pid", s->pid > 0 ? (uint64_t)s->pid : 0);
		json_number(&l->json, "importers", s->importers);
		json_bool(&l->json, "available", s->available);
		json_bool(&l->json, "broadcast", s->broadcast);
		json_close(&l->json, '}');
		return 0;
	}
	if (!l->count++)
		printf("%6s  %10s  %9s  %4s  %6s  %8s  %9s  %s\n", "NODE",
		       "ID", "SIZE", "MODE", "UID", "PID", "IMPORTERS",
		       "STATE");
	printf("%6u  0x%08" PRIx32 "  %9s  %04o  %6u  %8d  %9u  %s%s\n",
	       s->node, s->id, tool_size_str(size, (double)s->size), s->mode,
	       s->uid, s->pid, s->importers,
	       s->available ? "available" : "unavailable",
	       s->broadcast ? ", broadcast" : "");
	return 0;
}

static int list_walk(struct listing *l, bool segments)
{
	struct sci_fabric *f;
	int ret = sci_fabric_open(&f);

	if (ret)
		return tool_fabric_error(ret);
	if (l->as_json)
		json_open(&l->json, NULL, '[');
	if (segments)
		ret = f->ops->query.segments(f, segment_print, l);
	else
		ret = f->ops->query.nodes(f, node_print, l);
	if (l->as_json)
		json_close(&l->json, ']');
	sci_fabric_close(f);
	return ret ? tool_fabric_error(ret) : tool_finish();
}

static int list_print(const struct tool_command *self, int argc, char **argv,
		      bool segments)
{
	struct listing l = { .json = { .out = stdout, .first = true } };
	const struct tool_option options[] = {
		{ .letter = 'j', .name = "json", .kind = TOOL_FLAG,
		  .value = &l.as_json, .help = "print JSON" },
		{ 0 },
	};

	if (tool_parse(self, argc, argv, options, true) != argc)
		tool_usage(self, "takes no arguments");
	return list_walk(&l, segments);
}

int tool_nodes(const struct tool_command *self, int argc, char **argv)
{
	return list_print(self, argc, argv, false);
}

int tool_segments(const struct tool_command *self, int argc, char **argv)
{
	return list_print(self, argc, argv, true);
}
