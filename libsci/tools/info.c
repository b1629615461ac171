// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci info`: adapters, fabrics and the environment. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/fabric/core/fabric.h"
#include "libsci/pio/pio.h"
#include "pci.h"
#include "tool.h"

/* The output of `sci info`, as text or as JSON. */
struct info {
	struct tool_json json;
	bool as_json;
	unsigned int devices;
};

static void fact_print(struct info *in, const char *key, const char *value)
{
	if (in->as_json)
		json_string(&in->json, key, value);
	else
		printf("%-16s %s\n", key, value);
}

static void fact_number(struct info *in, const char *key, uint64_t value)
{
	if (in->as_json)
		json_number(&in->json, key, value);
	else
		printf("%-16s %" PRIu64 "\n", key, value);
}

static const char *env_get(const char *name, const char *otherwise)
{
	const char *s = getenv(name);

	return s && *s ? s : otherwise;
}

static void library_version(struct info *in)
{
	char text[128] = "";
	sci_query_string_t q = { text, sizeof(text) };
	sci_error_t err;

	SCIQuery(SCI_Q_API, &q, 0, &err);
	fact_print(in, "library", err == SCI_ERR_OK ? text : "unknown");
}

/* Read the first line of a file in sysfs, without its newline; "" if there is no such file. */
static void line_read(const char *path, char *line, int room)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(line, room, f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void huge_pages_describe(struct info *in)
{
	const char *asked = env_get("SCI_HUGEPAGES", "0");
	char free_pages[32], total[32], text[128];

	line_read("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
		  free_pages, sizeof(free_pages));
	line_read("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
		  total, sizeof(total));
	snprintf(text, sizeof(text), "%s (2 MiB pages: %s of %s free)",
		 strcmp(asked, "0") ? asked : "off",
		 *free_pages ? free_pages : "0", *total ? total : "0");
	fact_print(in, "huge_pages", text);
}

/* Print the environment variables. @clusters: the fabric has virtual clusters. */
static void environment_print(struct info *in, bool clusters)
{
	const char *spec = env_get("SCI_FABRIC", "auto");
	const char *colon = strchr(spec, ':');
	char own[32], nodes[64];

	snprintf(own, sizeof(own), "default-%u", geteuid());
	fact_print(in, "fabric_asked", spec);
	if (clusters)
		fact_print(in, "cluster", colon && colon[1] ? colon + 1 : own);
	fact_print(in, "segment_mode", env_get("SCI_MODE", "0600"));
	huge_pages_describe(in);
	if (clusters)
		fact_print(in, "rundir",
			   env_get("SCI_RUNDIR", "none (abstract sockets)"));
	fact_print(in, "faults", env_get("SCI_FAULT", "none"));
	line_read("/sys/devices/system/node/online", nodes, sizeof(nodes));
	fact_print(in, "numa_nodes", *nodes ? nodes : "0");
}

static void adapter_json(struct tool_json *j, unsigned int no,
			 const struct sci_adapter_info *a)
{
	json_open(j, NULL, '{');
	json_number(j, "adapter", no);
	json_string(j, "type", a->type);
	if (a->device)
		json_string(j, "device", a->device);
	else
		json_null(j, "device");
	json_number(j, "node", a->node);
	json_bool(j, "link_up", a->link_up);
	json_number(j, "serial", a->serial);
	json_number(j, "att_page_size", a->att_page_size);
	json_number(j, "att_entries", a->att_entries);
	json_number(j, "att_available", a->att_available);
	json_number(j, "streams", a->streams);
	json_number(j, "stream_size", a->stream_size);
	json_number(j, "dma_mtu", a->dma_mtu);
	json_number(j, "min_dma_size", a->min_dma_size);
	json_number(j, "mcast_groups", a->mcast_groups);
	json_number(j, "link_up_ms", a->link_up_ms);
	json_number(j, "link_down_ms", a->link_down_ms);
	json_close(j, '}');
}

static void adapter_text(unsigned int no, const struct sci_adapter_info *a)
{
	char dma[TOOL_SIZE_STR], page[TOOL_SIZE_STR];

	printf("adapter %-8u %s%s%s, node %u, link %s\n", no, a->type,
	       a->device ? ", " : "", a->device ? a->device : "", a->node,
	       a->link_up ? "up" : "down");
	if (a->att_entries)
		printf("%-16s ATT %u of %u entries free, pages of %s\n", "",
		       a->att_available, a->att_entries,
		       tool_size_str(page, (double)a->att_page_size));
	printf("%-16s %u streams of %zu bytes, DMA from %s on\n", "",
	       a->streams, a->stream_size,
	       tool_size_str(dma, (double)a->min_dma_size));
}

static void adapters_print(struct info *in, struct sci_fabric *f)
{
	struct sci_adapter_info a;
	unsigned int i;

	if (in->as_json)
		json_open(&in->json, "adapters", '[');
	for (i = 0; i < SCI_ADAPTER_MAX; i++) {
		if (f->ops->query.adapter(f, i, &a))
			continue;
		if (in->as_json)
			adapter_json(&in->json, i, &a);
		else
			adapter_text(i, &a);
	}
	if (in->as_json)
		json_close(&in->json, ']');
}

static void bars_json(struct tool_json *j, const struct tool_pci_device *d)
{
	unsigned int i;

	json_open(j, "bars", '[');
	for (i = 0; i < TOOL_PCI_BARS; i++) {
		if (!d->bars[i].size)
			continue;
		json_open(j, NULL, '{');
		json_number(j, "bar", i);
		json_number(j, "size", d->bars[i].size);
		json_bool(j, "prefetchable", d->bars[i].prefetchable);
		json_bool(j, "wide", d->bars[i].wide);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void string_or_null_json(struct tool_json *j, const char *key,
				const char *value)
{
	if (*value)
		json_string(j, key, value);
	else
		json_null(j, key);
}

static void number_or_null_json(struct tool_json *j, const char *key,
				int value)
{
	if (value >= 0)
		json_number(j, key, (uint64_t)value);
	else
		json_null(j, key);
}

static void device_json(struct tool_json *j, const struct tool_pci_device *d)
{
	json_open(j, NULL, '{');
	json_string(j, "slot", d->slot);
	json_number(j, "vendor", d->vendor);
	json_number(j, "device", d->device);
	json_number(j, "subvendor", d->subvendor);
	json_number(j, "subdevice", d->subdevice);
	json_number(j, "revision", d->revision);
	json_string(j, "name", d->name);
	string_or_null_json(j, "driver", d->driver);
	string_or_null_json(j, "adapter", d->adapter);
	number_or_null_json(j, "numa_node", d->numa_node);
	bars_json(j, d);
	number_or_null_json(j, "msix_vectors", d->msix);
	json_bool(j, "msix_enabled", d->msix_on);
	json_close(j, '}');
}

static void device_text(const struct tool_pci_device *d)
{
	char size[TOOL_SIZE_STR];
	const char *sep = "";
	unsigned int i;

	printf("pci %-12s %s [%04x:%04x] revision %u\n", d->slot, d->name,
	       d->vendor, d->device, d->revision);
	printf("%-16s driver %s%s%s", "",
	       d->driver[0] ? d->driver : "none bound",
	       d->adapter[0] ? ", /dev/" : "", d->adapter);
	if (d->numa_node >= 0)
		printf(", NUMA node %d", d->numa_node);
	if (d->msix >= 0)
		printf(", %d vectors of MSI-X %s", d->msix,
		       d->msix_on ? "in use" : "off");
	printf("\n%-16s ", "");
	for (i = 0; i < TOOL_PCI_BARS; i++) {
		if (!d->bars[i].size)
			continue;
		printf("%sBAR %u %s%s", sep, i,
		       tool_size_str(size, (double)d->bars[i].size),
		       d->bars[i].prefetchable ? " prefetchable" : "");
		sep = ", ";
	}
	printf("%s\n", *sep ? "" : "no BARs");
}

static void device_print(void *arg, const struct tool_pci_device *d)
{
	struct info *in = arg;

	in->devices++;
	if (in->as_json) {
		device_json(&in->json, d);
		return;
	}
	device_text(d);
}

static void pci_devices(struct info *in)
{
	if (in->as_json)
		json_open(&in->json, "pci", '[');
	tool_pci_scan(device_print, in);
	if (in->as_json)
		json_close(&in->json, ']');
	else if (!in->devices)
		printf("%-16s no PCI-SCI adapter on this machine\n", "pci");
}

static int info_print(struct info *in)
{
	struct sci_adapter_info a;
	struct sci_fabric *f;
	int ret = sci_fabric_open(&f);

	if (ret)
		return tool_fabric_error(ret);
	if (in->as_json)
		json_open(&in->json, NULL, '{');
	library_version(in);
	fact_print(in, "fabric", f->ops->name);
	if (!f->ops->query.adapter(f, 0, &a))
		fact_number(in, "node", a.node);
	fact_print(in, "store_engine", sci_pio_name());
	environment_print(in, f->ops->virtual_nodes);
	adapters_print(in, f);
	pci_devices(in);
	if (in->as_json)
		json_close(&in->json, '}');
	sci_fabric_close(f);
	return tool_finish();
}

int tool_info(const struct tool_command *self, int argc, char **argv)
{
	struct info in = { .json = { .out = stdout, .first = true } };
	const struct tool_option options[] = {
		{ .letter = 'j', .name = "json", .kind = TOOL_FLAG,
		  .value = &in.as_json, .help = "print JSON" },
		{ 0 },
	};
	sci_error_t err;
	int ret;

	if (tool_parse(self, argc, argv, options, true) != argc)
		tool_usage(self, "takes no arguments");
	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK)
		return tool_join_error(err);
	ret = info_print(&in);
	SCITerminate();
	return ret;
}
