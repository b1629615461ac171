// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci counters`: the event counters of adapters, from sysfs (kmod/sysfs-class-sci). */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define ADAPTERS_MAX	256
#define COUNTERS_MAX	64
#define NAME_ROOM	32

struct counter {
	char name[NAME_ROOM];
	uint64_t value;
};

struct adapter {
	unsigned int number;
	uint64_t node;
	bool gone;
	size_t n;
	struct counter counters[COUNTERS_MAX];
};

struct counters {
	bool as_json;
	bool all;
	bool watch;
	unsigned int interval;		/* ms */
	struct adapter *adapters;
	size_t n;
};

static const char *sysfs_root(void)
{
	const char *s = getenv("SCI_SYSFS");

	return s && *s ? s : "/sys/class/sci";
}

/* ---- reading ---- */

static bool counter_read(const char *path, uint64_t *value)
{
	FILE *f = fopen(path, "re");
	int n;

	if (!f)
		return false;
	n = fscanf(f, "%" SCNu64, value);
	fclose(f);
	return n == 1;
}

static struct counter *counter_find(struct adapter *a, const char *name)
{
	size_t i, len;

	for (i = 0; i < a->n; i++)
		if (!strcmp(a->counters[i].name, name))
			return &a->counters[i];
	len = strlen(name);
	if (a->n == COUNTERS_MAX || len >= NAME_ROOM)
		return NULL;
	memcpy(a->counters[a->n].name, name, len + 1);
	return &a->counters[a->n++];
}

static int counter_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Read the counters of @a; call @changed for changed ones. Return false if @a has been removed. */
static bool counters_read(struct adapter *a, void (*changed)(const struct adapter *a,
							     const struct counter *c,
							     uint64_t before))
{
	char dir[PATH_MAX / 2], path[PATH_MAX];
	struct dirent **names;
	int i, n;

	snprintf(dir, sizeof(dir), "%s/sci%u/counters", sysfs_root(), a->number);
	n = scandir(dir, &names, counter_visible, alphasort);
	if (n < 0)
		return false;
	for (i = 0; i < n; i++) {
		struct counter *c = counter_find(a, names[i]->d_name);
		uint64_t value;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (c && counter_read(path, &value)) {
			uint64_t before = c->value;

			c->value = value;
			if (changed && value != before)
				changed(a, c, before);
		}
		free(names[i]);
	}
	free(names);
	return true;
}

static int adapters_compare(const void *a, const void *b)
{
	const struct adapter *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static bool name_is_adapter(const char *arg, unsigned int number)
{
	char name[16];

	snprintf(name, sizeof(name), "sci%u", number);
	return !strcmp(arg, name) ||
	       (!strncmp(arg, "/dev/", 5) && !strcmp(arg + 5, name));
}

static bool counter_is_wanted(unsigned int number, char **args)
{
	if (!*args)
		return true;
	while (*args && !name_is_adapter(*args, number))
		args++;
	return *args;
}

/* Return the first of @args that names no adapter, or NULL. */
static const char *args_find_unknown(const struct counters *c, char **args)
{
	for (; *args; args++) {
		size_t i = 0;

		while (i < c->n && !name_is_adapter(*args, c->adapters[i].number))
			i++;
		if (i == c->n)
			return *args;
	}
	return NULL;
}

/* Find all adapters, or those of @args. Return: 0 or -errno. */
static int adapters_find(struct counters *c, char **args)
{
	char path[PATH_MAX], end;
	struct dirent *d;
	DIR *dir = opendir(sysfs_root());

	if (!dir)
		return -errno;
	c->adapters = calloc(ADAPTERS_MAX, sizeof(*c->adapters));
	while (c->adapters && c->n < ADAPTERS_MAX && (d = readdir(dir))) {
		struct adapter *a = &c->adapters[c->n];

		if (sscanf(d->d_name, "sci%u%c", &a->number, &end) != 1 ||
		    !counter_is_wanted(a->number, args))
			continue;
		snprintf(path, sizeof(path), "%s/sci%u/node_id", sysfs_root(),
			 a->number);
		if (counter_read(path, &a->node) && counters_read(a, NULL))
			c->n++;
	}
	closedir(dir);
	if (!c->adapters)
		return -ENOMEM;
	qsort(c->adapters, c->n, sizeof(*c->adapters), adapters_compare);
	return c->n ? 0 : -ENODEV;
}

/* ---- once ---- */

static void counters_print_json(const struct counters *c)
{
	struct tool_json j = { .out = stdout, .first = true };
	size_t i, k;

	json_open(&j, NULL, '[');
	for (i = 0; i < c->n; i++) {
		const struct adapter *a = &c->adapters[i];

		json_open(&j, NULL, '{');
		json_number(&j, "adapter", a->number);
		json_number(&j, "node", a->node);
		json_open(&j, "counters", '{');
		for (k = 0; k < a->n; k++)
			json_number(&j, a->counters[k].name,
				    a->counters[k].value);
		json_close(&j, '}');
		json_close(&j, '}');
	}
	json_close(&j, ']');
}

static void counters_print_table(const struct counters *c)
{
	size_t i, k;

	for (i = 0; i < c->n; i++) {
		const struct adapter *a = &c->adapters[i];

		printf("%ssci%u, node %" PRIu64 "\n", i ? "\n" : "", a->number,
		       a->node);
		for (k = 0; k < a->n; k++)
			if (c->all || a->counters[k].value)
				printf("  %-18s %20" PRIu64 "\n",
				       a->counters[k].name,
				       a->counters[k].value);
	}
}

static int counters_print_once(const struct counters *c)
{
	if (c->as_json)
		counters_print_json(c);
	else
		counters_print_table(c);
	return tool_finish();
}

/* ---- watching ---- */

static void change_print(const struct adapter *a, const struct counter *c,
			 uint64_t before)
{
	char when[16];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	printf("%s  sci%-3u  %-18s %+12" PRId64 "  %20" PRIu64 "\n", when,
	       a->number, c->name, (int64_t)(c->value - before), c->value);
}

/* Read the counters of all adapters, and report removed adapters. Return how many remain. */
static size_t adapters_read(struct counters *c)
{
	size_t i, left = 0;

	for (i = 0; i < c->n; i++) {
		struct adapter *a = &c->adapters[i];

		if (counters_read(a, change_print)) {
			a->gone = false;
			left++;
		} else if (!a->gone) {
			a->gone = true;
			tool_error("sci%u has gone", a->number);
		}
	}
	return left;
}

/* Print changes until a signal arrives. */
static int counters_watch(struct counters *c)
{
	struct pollfd quit = { .events = POLLIN };
	sigset_t set;
	size_t left = c->n;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	quit.fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (quit.fd < 0)
		return tool_error("can't wait for signals: %s",
				  strerror(errno));
	printf("%-8s  %-6s  %-18s %12s  %20s\n", "TIME", "DEVICE", "COUNTER",
	       "CHANGE", "VALUE");
	do {
		fflush(stdout);
		if (poll(&quit, 1, c->interval > INT_MAX ? INT_MAX :
							   (int)c->interval))
			break;
		left = adapters_read(c);
	} while (left && !ferror(stdout));
	close(quit.fd);
	return left ? tool_finish() : tool_error("the adapters have gone");
}

int tool_counters(const struct tool_command *self, int argc, char **argv)
{
	struct counters c = { .interval = 1000 };
	const struct tool_option options[] = {
		{ .letter = 'a', .name = "all", .kind = TOOL_FLAG,
		  .value = &c.all, .help = "also print counters that are 0" },
		{ .letter = 'w', .name = "watch", .kind = TOOL_FLAG,
		  .value = &c.watch, .help = "also print each counter that changes" },
		{ .letter = 'i', .name = "interval", .kind = TOOL_SECONDS,
		  .value = &c.interval, .arg = "SECONDS",
		  .help = "time between two reads of --watch (1)" },
		{ .letter = 'j', .name = "json", .kind = TOOL_FLAG,
		  .value = &c.as_json, .help = "print JSON" },
		{ 0 },
	};
	int first = tool_parse(self, argc, argv, options, true);
	int ret = adapters_find(&c, argv + first);
	const char *none = ret ? argv[first] : args_find_unknown(&c, argv + first);

	if (!c.interval)
		c.interval = 1;
	if (!ret && !none)
		ret = c.watch ? counters_watch(&c) : counters_print_once(&c);
	else if (ret == -ENOMEM)
		ret = tool_error("out of memory");
	else if (none)
		ret = tool_error("no such adapter: %s", none);
	else
		ret = tool_error("no adapters: are sci.ko and a driver loaded?");
	free(c.adapters);
	return ret;
}
