// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Lists for `sci`, read from sysfs: adapters of this machine, the nodes that the adapters
 * have sessions with, and segments.  Tests set SCI_SYSFS to a test folder.
 */

#include "libsci/fabric/dev/dev.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSFS	"/sys/class/sci"

static const char *sysfs_root(void)
{
	const char *s = getenv("SCI_SYSFS");

	return s && *s ? s : SYSFS;
}

/* Read the first line of a file below sysfs_root(), without its newline; "" if there is none. */
static int sysfs_read_line(const char *where, const char *name, char *text, int room)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", sysfs_root(), where, name);
	f = sci_open_kernel_file(path);
	text[0] = '\0';
	if (!f)
		return -errno;
	if (!fgets(text, room, f))
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/**
 * dev_sysfs_number() - read a number from a file of sysfs
 * @where: a folder below the class's folder
 */
int dev_sysfs_number(const char *where, const char *name, int base,
		     uint64_t *value)
{
	char text[64], *end;
	int ret = sysfs_read_line(where, name, text, sizeof(text));

	if (ret)
		return ret;
	*value = strtoull(text, &end, base);
	return end == text ? -EINVAL : 0;
}

/* ---- folders with numbered entries ---- */

struct numbers {
	uint32_t *n;
	size_t count;
	size_t room;
};

static int number_add(struct numbers *list, uint32_t n)
{
	uint32_t *more;

	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		more = realloc(list->n, list->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		list->n = more;
	}
	list->n[list->count++] = n;
	return 0;
}

static int numbers_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* List the entries of a folder whose names are @prefix and a number, ascending. */
static int numbers_list(const char *path, const char *prefix,
			struct numbers *list)
{
	const struct dirent *e;
	int ret = 0;
	DIR *dir;

	memset(list, 0, sizeof(*list));
	dir = opendir(path);
	if (!dir && errno == EMFILE && !sci_raise_fd_limit())
		dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!ret && (e = readdir(dir))) {
		const char *digits = e->d_name + strlen(prefix);
		unsigned long n;
		char *end;

		if (strncmp(e->d_name, prefix, strlen(prefix)) ||
		    *digits < '0' || *digits > '9')
			continue;
		n = strtoul(digits, &end, 10);
		if (!*end && n <= UINT32_MAX)
			ret = number_add(list, (uint32_t)n);
	}
	closedir(dir);
	if (!ret && list->count)
		qsort(list->n, list->count, sizeof(*list->n), numbers_compare);
	return ret;
}

/* ---- adapters, in order of their nodes ---- */

struct place {
	unsigned int node;
	char name[16];			/* sciN, or "" for a node of another machine */
};

struct places {
	struct place *place;
	size_t count;
};

static int places_compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

static int places_list(struct places *places)
{
	struct numbers list;
	uint64_t node;
	size_t i;
	int ret;

	memset(places, 0, sizeof(*places));
	ret = numbers_list(sysfs_root(), "sci", &list);
	if (!ret && list.count) {
		places->place = calloc(list.count, sizeof(*places->place));
		ret = places->place ? 0 : -ENOMEM;
	}
	for (i = 0; i < list.count && !ret; i++) {
		struct place *p = &places->place[places->count];

		snprintf(p->name, sizeof(p->name), "sci%u", list.n[i]);
		if (dev_sysfs_number(p->name, "node_id", 0, &node))
			continue;	/* the adapter was removed meanwhile */
		p->node = (unsigned int)node;
		places->count++;
	}
	free(list.n);
	if (places->count)
		qsort(places->place, places->count, sizeof(*places->place),
		      places_compare);
	return ret;
}

static int place_add(struct places *places, unsigned int node)
{
	struct place *more;
	size_t i;

	for (i = 0; i < places->count; i++)
		if (places->place[i].node == node)
			return 0;
	more = realloc(places->place, (places->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	places->place = more;
	places->place[places->count++] = (struct place){ .node = node };
	return 0;
}

/* Add the nodes of other machines to which adapter @name has a session. */
static int peers_add(struct places *places, const char *name)
{
	char path[PATH_MAX], where[64], state[16];
	struct numbers ids;
	size_t i;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", sysfs_root(), name);
	ret = numbers_list(path, "peer", &ids);
	for (i = 0; i < ids.count && !ret; i++) {
		snprintf(where, sizeof(where), "%s/peer%u", name, ids.n[i]);
		if (!sysfs_read_line(where, "state", state, sizeof(state)) &&
		    !strcmp(state, "up"))
			ret = place_add(places, ids.n[i]);
	}
	free(ids.n);
	return ret;
}

static int peers_add_all(struct places *places)
{
	size_t i, n = places->count;
	char name[16];
	int ret = 0;

	for (i = 0; i < n && !ret; i++) {
		memcpy(name, places->place[i].name, sizeof(name));
		ret = peers_add(places, name);
	}
	if (places->count)
		qsort(places->place, places->count, sizeof(*places->place),
		      places_compare);
	return ret;
}

/*
 * Describe the node of a place. Two adapters with the same node ID are in two fabrics, but count
 * as one node. The number of processes on other machines is unknown.
 */
static int node_describe(struct dev *dev, const struct places *places, size_t *i,
			 struct sci_node_info *info)
{
	const struct dev_adapter *ours = dev_adapter(dev, 0);
	uint64_t users;

	*info = (struct sci_node_info) { .node = places->place[*i].node };
	info->local = ours && info->node == ours->node;
	if (!places->place[*i].name[0]) {
		info->remote = true;
		++*i;
		return 1;
	}
	for (; *i < places->count && places->place[*i].node == info->node;
	     (*i)++)
		if (!dev_sysfs_number(places->place[*i].name, "users", 0,
				      &users))
			info->processes += (unsigned int)users;
	return info->processes;
}

int dev_node_list(struct sci_fabric *f,
		  int (*fn)(void *arg, const struct sci_node_info *n),
		  void *arg)
{
	struct sci_node_info info;
	struct places places;
	size_t i = 0;
	int ret;

	ret = places_list(&places);
	ret = ret ? ret : peers_add_all(&places);
	while (!ret && i < places.count)
		if (node_describe(dev_of(f), &places, &i, &info))
			ret = fn(arg, &info);
	free(places.place);
	return ret;
}

/* ---- segments ---- */

/* Read a segment. Return false if it was removed, or if the caller may not see it. */
static bool segment_read(const struct place *p, uint32_t id,
			 struct sci_segment_info *info)
{
	uint64_t size, exported, mode = 0, uid = 0, importers = 0, pid = 0;
	uint64_t broadcast = 0;
	char where[64];

	snprintf(where, sizeof(where), "%s/segment%u", p->name, id);
	if (dev_sysfs_number(where, "size", 10, &size) ||
	    dev_sysfs_number(where, "exported", 10, &exported))
		return false;
	dev_sysfs_number(where, "mode", 8, &mode);
	dev_sysfs_number(where, "owner", 10, &uid);
	dev_sysfs_number(where, "importers", 10, &importers);
	dev_sysfs_number(where, "pid", 10, &pid);
	dev_sysfs_number(where, "broadcast", 10, &broadcast);
	*info = (struct sci_segment_info) {
		.node = p->node, .id = id, .size = size,
		.mode = (unsigned int)mode & 0666,
		.uid = (unsigned int)uid, .pid = (int)pid,
		.importers = (unsigned int)importers,
		.available = exported,
		.broadcast = broadcast,
	};
	return true;
}

static int segments_list(const struct place *p,
			 int (*fn)(void *arg, const struct sci_segment_info *s),
			 void *arg)
{
	struct sci_segment_info info;
	char path[PATH_MAX];
	struct numbers ids;
	size_t i;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", sysfs_root(), p->name);
	ret = numbers_list(path, "segment", &ids);
	for (i = 0; i < ids.count && !ret; i++)
		if (segment_read(p, ids.n[i], &info))
			ret = fn(arg, &info);
	free(ids.n);
	return ret;
}

int dev_segment_list(struct sci_fabric *f,
		     int (*fn)(void *arg, const struct sci_segment_info *s),
		     void *arg)
{
	struct places places;
	size_t i;
	int ret;

	(void)f;
	ret = places_list(&places);
	for (i = 0; i < places.count && !ret; i++)
		ret = segments_list(&places.place[i], fn, arg);
	free(places.place);
	return ret;
}
